//! Details that are not what their listing says: they are neither believed nor kept.

use anyhow::{Context, Result, ensure};
use farthing_protocol::{
    SecretKey, Signed,
    info::{InfoRequest, InfoResponse},
    keccak256,
    listing::Pin,
};
use farthing_tests::{
    command::farthing,
    nodes::{Nodes, show},
    wait::eventually,
};

use crate::stranger;

/// An owner, in this process, that gives everybody other bytes than its listing names.
#[tokio::test(flavor = "multi_thread")]
async fn details_that_do_not_match_the_listing_s_hash_are_not_believed_by_anybody() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let node = nodes.join(&[]).await?;
    let key = SecretKey::from_bytes(&[7; 32])?;
    let told = Pin { hash: keccak256(&[b"what it says"]), bytes: 12 };
    let listing = stranger::listing(&key, 1, told);
    let (service, signed) = (listing.service, Signed::sign(&listing, &key)?);
    let _owner = stranger::start(key, &node, move |question| match question {
        InfoRequest::Services(_) => Some(InfoResponse::Listings(vec![signed.clone()])),
        InfoRequest::Blob(_) => Some(InfoResponse::Blob(Some(b"what it does".to_vec().into()))),
        _ => None,
    })
    .await?;
    eventually("the owner is there", async || Ok(node.status().await?.peers > 0)).await?;
    let mut missing = None;
    let shown = eventually("the listing is shown", async || {
        missing = show(&node, service).await.ok().and_then(|shown| shown.details_missing);
        Ok(missing.is_some())
    });
    shown.await?;
    let missing = missing.context("no reason")?;
    ensure!(missing.contains("content that does not match its listing"), "{missing}");
    let service = service.to_string();
    for arguments in [&["catalog", "openapi", &service][..], &["call", &service, "GET", "/ok"]] {
        let told = farthing(&node, arguments).await?;
        ensure!(
            told.code != 0 && told.err.contains("content that does not match its listing"),
            "{arguments:?}: {told:?}"
        );
    }
    Ok(())
}

/// What a node fetches of its own accord is bounded by what listings say. One that says too little of its details must
/// not fill the node's disk with them, though their hash is the one that it names.
#[tokio::test(flavor = "multi_thread")]
async fn details_larger_than_their_listing_says_are_not_kept() -> Result<()> {
    let mut nodes = Nodes::new()?;
    let node = nodes.join(&[]).await?;
    let key = SecretKey::from_bytes(&[7; 32])?;
    let contents = [vec![1; 300_000], vec![2; 10_000]];
    let pins = [(&contents[0], 1_000), (&contents[1], 10_000)]
        .map(|(content, bytes)| Pin { hash: keccak256(&[content]), bytes });
    let mut number = 0;
    let listings = pins.map(|pin| {
        number += 1;
        stranger::listing(&key, number, pin)
    });
    let signed = [Signed::sign(&listings[0], &key)?, Signed::sign(&listings[1], &key)?];
    let owner = stranger::start(key, &node, move |question| {
        let InfoRequest::Blob(hash) = question else { return None };
        let content = contents.iter().find(|content| keccak256(&[content]) == *hash);
        Some(InfoResponse::Blob(content.map(|content| content.clone().into())))
    })
    .await?;
    eventually("the owner is there", async || Ok(node.status().await?.peers > 0)).await?;
    let wallet = node.status().await?.address.0;
    for (listing, signed) in listings.iter().zip(&signed) {
        eventually("the node is told", async || Ok(owner.gossip_listing(signed).await)).await?;
        eventually("the node looks into it", async || {
            let shown = show(&node, listing.service).await.ok();
            Ok(shown.is_some_and(|shown| shown.details_missing.is_some()))
        })
        .await?;
    }
    let is_kept = async |pin: &Pin| -> Result<bool> {
        let answer = owner.ask(wallet, InfoRequest::Blob(pin.hash)).await?;
        Ok(matches!(answer, InfoResponse::Blob(Some(_))))
    };
    eventually("what is as large as it says is kept", async || is_kept(&pins[1]).await).await?;
    ensure!(!is_kept(&pins[0]).await?, "300,000 bytes are kept of a listing that says 1,000");
    Ok(())
}
