//! A stranger that lists a service under its owner's id: before the owner is met, while it serves, and while it is away.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use anyhow::{Context, Result, bail, ensure};
use farthing_control::endpoint;
use farthing_network::{Inbound, NetworkHandle};
use farthing_protocol::{
    Address, CallReply, Listing, Refusal, RefusalCode, SecretKey, ServiceId, Signed, Usdc,
    info::{InfoRequest, InfoResponse},
    keccak256,
    signed::Document,
    wire,
};
use farthing_testnet::{NodeOptions, NodeProcess, demo::metrics};
use farthing_tests::{
    agreement,
    calls::{expect_served, fixed_owner},
    command::{Ran, farthing},
    wait::eventually,
    world::{FUNDS, World},
};

use crate::stranger::{join, until_connected};

/// A patched node: it answers every question about services with listings of its own under the owner's id.
struct Thief {
    key: SecretKey,
    network: NetworkHandle,
    owners: Listing,
    /// Calls that somebody believed to be its to answer.
    calls: Arc<AtomicU64>,
}

impl Thief {
    async fn join(world: &World) -> Result<Self> {
        let key = SecretKey::from_bytes(&[0x66; 32])?;
        let (network, inbound) = join(key.clone(), &[&world.owner, &world.consumer]).await?;
        for node in [world.owner_wallet, world.consumer_wallet] {
            until_connected(&network, node).await?;
        }
        let question = InfoRequest::Services(vec![world.api.id.0]);
        let answer = network.ask(world.owner_wallet, question).await?;
        let InfoResponse::Listings(mut listings) = answer else { bail!("no listings: {answer:?}") };
        let owners = listings.pop().context("no listing")?.verify()?.into_inner();
        let thief = Self { key, network, owners, calls: Arc::default() };
        thief.answer(inbound);
        Ok(thief)
    }

    fn wallet(&self) -> Address {
        self.key.address()
    }

    fn address(&self) -> Result<String> {
        let status = self.network.status();
        let listening = status.borrow().listening.first().cloned().context("it does not listen")?;
        Ok(format!("{listening}/p2p/{}", self.key.public_key().peer_id()))
    }

    /// The owner's listing as the thief's own, signed by it although its rules forbid that.
    fn listing(&self, version: u64) -> Signed<Listing> {
        let mut listing = self.owners.clone();
        listing.owner = self.wallet();
        listing.seq += version;
        listing.accepts.iter_mut().for_each(|accept| accept.pay_to = listing.owner);
        let document = wire::encode(&listing);
        let parts: [&[u8]; 4] =
            [b"\x19Farthing signed document:\0", Listing::DOMAIN.as_bytes(), b"\0", &document];
        let signature = wire::encode(&self.key.sign(&keccak256(&parts)));
        // A map of two: the document as a byte string, and the signature.
        let bytes = u16::try_from(document.len()).expect("a listing is short").to_be_bytes();
        let sent = [&[0xa2, 0x00, 0x59], &bytes[..], &document, &[0x01], &signature].concat();
        wire::decode(&sent).expect("it is a signed document, whatever it says")
    }

    fn answer(&self, inbound: Inbound) {
        let Inbound { mut info, calls: mut inbound_calls, .. } = inbound;
        let (listing, calls) = (self.listing(1_000), Arc::clone(&self.calls));
        tokio::spawn(async move {
            while let Some(question) = info.recv().await {
                question.reply.send(match question.request {
                    InfoRequest::Services(_) | InfoRequest::OwnListings => {
                        InfoResponse::Listings(vec![listing.clone()])
                    }
                    _ => InfoResponse::refused("not asked for"),
                });
            }
        });
        tokio::spawn(async move {
            while let Some(call) = inbound_calls.recv().await {
                calls.fetch_add(1, Ordering::Relaxed);
                let refusal = Refusal::new(RefusalCode::Unavailable, "thank you for the voucher");
                call.reply.send(CallReply::Refused(refusal), bytes::Bytes::new());
            }
        });
    }
}

async fn call(node: &NodeProcess, service: ServiceId) -> Result<Ran> {
    farthing(node, &["call", &service.to_string(), "GET", "/ok", "--json"]).await
}

async fn blocked(node: &NodeProcess) -> Result<u64> {
    let counts = metrics(node).await?;
    counts
        .get("farthing_network_peers_blocked_total")
        .copied()
        .with_context(|| format!("it is not among {counts:?}"))
}

/// Whom the node ever had a channel with.
async fn payees(node: &NodeProcess) -> Result<Vec<Address>> {
    let channels = node.control().ask(endpoint::Channels).await?;
    Ok(channels.iter().map(|channel| channel.peer.0).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_that_lists_a_service_under_its_owner_s_id_is_not_believed_not_paid_and_shut_out()
-> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let service = world.api.id.0;
    expect_served(&world.get("/ok").await?)?;
    let thief = Thief::join(&world).await?;

    // To nodes that know the service, its owner among them.
    let mut version = 0;
    for node in [&world.owner, &world.consumer] {
        eventually("the thief is shut out", async || {
            version += 1;
            thief.network.gossip_listing(&thief.listing(version)).await;
            Ok(blocked(node).await? == 1)
        })
        .await
        .with_context(|| node.log())?;
        let shown = node.control().ask(endpoint::CatalogService.of(service)).await?;
        ensure!(shown.hit.owner.0 == world.owner_wallet, "{shown:?}");
    }
    expect_served(&world.get("/ok").await?)?;
    ensure!(payees(&world.consumer).await? == [world.owner_wallet]);

    // To a newcomer that meets the thief and nobody else.
    let owner = world.owner.loopback_address().await?;
    world.owner.stop().await?;
    world.consumer.stop().await?;
    let folder = tempfile::tempdir()?;
    let options = NodeOptions::new(folder.path()).bootstrap([thief.address()?, owner]);
    let mut newcomer = NodeProcess::start(&world.chain, options).await?;
    let wallet = newcomer.status().await?.address.0;
    world.chain.fund(wallet, FUNDS).await?;
    newcomer.wait_for_usdc(FUNDS).await?;
    eventually("the newcomer met the thief", async || Ok(newcomer.status().await?.peers > 0)).await?;
    eventually("the thief is shut out there", async || {
        let refused = call(&newcomer, service).await?;
        ensure!(refused.error()?["code"] == "unknown-service", "{refused:?}");
        Ok(blocked(&newcomer).await? == 1)
    })
    .await?;

    // And once the owner is back.
    world.owner.restart(Vec::new()).await?;
    newcomer.restart_until_ready(Vec::new()).await?;
    eventually("the newcomer is served by the owner", async || Ok(call(&newcomer, service).await?.code == 0))
        .await
        .with_context(|| newcomer.log())?;
    ensure!(payees(&newcomer).await? == [world.owner_wallet]);
    ensure!(thief.calls.load(Ordering::Relaxed) == 0, "somebody called the thief");
    ensure!(world.chain.usdc_of(thief.wallet()).await? == Usdc::ZERO);
    ensure!(world.upstream.hits() == 3);
    agreement::check_at_rest(&[&world.owner, &newcomer]).await?;
    Ok(())
}
