//! Description, operations and samples without paying, without the owner, and without touching its server.

use anyhow::{Context, Result, ensure};
use farthing::control::types::route;
use farthing_network::{Inbound, Network, NetworkConfig};
use farthing_protocol::{
    Listing, SecretKey, ServiceId, ServiceNonce, Signed, Usdc,
    call::ChargePolicy,
    info::{InfoRequest, InfoResponse},
    keccak256,
    listing::ServiceKind,
    wire::NetworkName,
};
use farthing_tests::{command::farthing, simulate::now_secs, upstream::Upstream, world::eventually};
use serde_json::Value;

use crate::support::{Nodes, all_find, offer, path, publish, samples, show, with_and_without_gossip, words};

with_and_without_gossip!(
    samples_are_free_and_never_touch_the_upstream,
    a_preview_works_while_the_owner_is_away,
);

async fn samples_are_free_and_never_touch_the_upstream(mut nodes: Nodes) -> Result<()> {
    let upstream = Upstream::start().await?;
    let all = nodes.star(2).await?;
    let api = publish(&all[0], &offer("Free to look at", &upstream.url())).await?;
    all_find(&all, &words("look"), 1).await?;
    for _ in 0..20 {
        ensure!(!samples(&all[1], api.id.0).await?.samples.is_empty());
    }
    ensure!(upstream.hits() == 0);
    Ok(())
}

async fn a_preview_works_while_the_owner_is_away(mut nodes: Nodes) -> Result<()> {
    let mut all = nodes.star(2).await?;
    let third = nodes.join(&[&all[1]]).await?;
    let api = publish(&all[0], &offer("Still there", "http://127.0.0.1:9")).await?;
    all_find(&all, &words("still"), 1).await?;
    all_find(std::slice::from_ref(&third), &words("still"), 1).await?;
    // One of them has looked; whoever comes later has it from there.
    ensure!(!show(&all[1], api.id.0).await?.offers.is_empty());
    all[0].stop().await?;
    for node in [&all[1], &third] {
        eventually("the service is shown whole", async || {
            let shown = show(node, api.id.0).await?;
            Ok(shown.details_missing.is_none() && !shown.offers.is_empty() && shown.samples > 0)
        })
        .await?;
        ensure!(!samples(node, api.id.0).await?.samples.is_empty());
        let document: Value = node.control().get(&path(route::CATALOG_OPENAPI, api.id.0)).await?;
        ensure!(document["paths"]["/ok"].is_object(), "{document:#}");
    }
    Ok(())
}

/// An owner, in this process, that gives everybody other bytes than its listing names.
#[tokio::test(flavor = "multi_thread")]
async fn details_that_do_not_match_the_listing_s_hash_are_not_believed_by_anybody() -> Result<()> {
    const NETWORK: &str = "31337";
    let mut nodes = Nodes::new()?;
    let node = nodes.join(&[]).await?;
    let key = SecretKey::from_bytes(&[7; 32])?;
    let nonce = ServiceNonce::from_bytes([0x77; 16]);
    let service = ServiceId::derive(key.address(), nonce);
    let listing = Listing {
        network: NETWORK.to_owned(),
        service,
        owner: key.address(),
        seq: 1,
        name: "Not what it says".to_owned(),
        summary: String::new(),
        category: "test".to_owned(),
        tags: Vec::new(),
        kind: ServiceKind::Rest,
        price: Usdc::ZERO,
        charge_policy: ChargePolicy::default(),
        accepts: Vec::new(),
        operations_count: 1,
        details_hash: keccak256(&[b"what it says"]),
        details_bytes: 12,
        created_secs: now_secs(),
        updated_secs: now_secs(),
        tombstone: false,
        paused: false,
        samples_count: 0,
        history: None,
        nonce,
    };
    let listing = Signed::sign(&listing, &key)?;
    let config = NetworkConfig {
        listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()],
        bootstrap: vec![node.loopback_address().await?],
        allow_private: true,
        ..NetworkConfig::new(key, NetworkName::new(NETWORK)?)
    };
    let (_owner, Inbound { mut info, .. }) = Network::start(config).await?;
    let answering = tokio::spawn(async move {
        while let Some(question) = info.recv().await {
            let answer = match &question.request {
                InfoRequest::Services(_) => InfoResponse::Listings(vec![listing.clone()]),
                InfoRequest::Blob(_) => InfoResponse::Blob(Some(b"what it does".to_vec().into())),
                _ => InfoResponse::Refused("not asked for".to_owned()),
            };
            question.reply.send(answer);
        }
    });
    eventually("the owner is there", async || Ok(node.status().await?.peers > 0)).await?;
    let mut missing = None;
    let shown = eventually("the listing is shown", async || {
        missing = show(&node, service).await.ok().and_then(|shown| shown.details_missing);
        Ok(missing.is_some())
    });
    shown.await?;
    let missing = missing.context("no reason")?;
    ensure!(missing.contains("other content than its listing names"), "{missing}");
    let service = service.to_string();
    for arguments in [&["catalog", "openapi", &service][..], &["call", &service, "GET", "/ok"]] {
        let told = farthing(&node, arguments).await?;
        ensure!(
            told.code != 0 && told.err.contains("other content than its listing"),
            "{arguments:?}: {told:?}"
        );
    }
    answering.abort();
    Ok(())
}
