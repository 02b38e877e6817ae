//! Hostile neighbours fill gossip and sessions with the listings of wallets that cost nothing, while an honest owner
//! publishes, changes and retires a service, and an honest consumer finds and buys it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use farthing_catalog::{Catalog, Limits, Neighbour, Options, Source, Step, Verdict};
use farthing_control::{
    endpoint,
    types::{CatalogPage, CatalogQuery, Charge, PriceRequest, ServiceFile},
};
use farthing_network::{Inbound, NetworkHandle};
use farthing_peers::simulate::now_secs;
use farthing_protocol::{
    Address, Listing, SecretKey, ServiceNonce, Signed, Usdc, keccak256,
    sync::SyncMessage,
    wire::{self, NetworkName},
};
use farthing_testnet::anvil::Anvil;
use farthing_tests::{
    calls::{expect_served, setting},
    nodes::counted,
    report::memory_mib,
    wait::eventually,
    world::{FUNDS, PRICE, Setup, World, service_file},
};
use serde_json::json;
use tokio::task::JoinSet;

use crate::stranger::{join, until_connected};

/// Neighbours of one address range, and what each has to tell.
const FLOODERS: u8 = 4;
const WALLETS_OF_EACH: u64 = 75;
const LISTINGS_OF_A_WALLET: u64 = 12;
/// So much of it at the consumer shows that the flood is under way.
const UNDER_WAY: u64 = 200;
/// What the whole flood may add to the memory of a node.
const MEMORY_MIB_MAX: u64 = 96;
/// Comparisons of catalogs, hostile ones among them, until one piece of news has come.
const COMPARISONS_MAX: u64 = 400;

fn network() -> Result<NetworkName> {
    Ok(NetworkName::new(Anvil::CHAIN_ID.to_string())?)
}

/// A key that nobody else has, for nothing.
fn key(of: &str, number: u64) -> Result<SecretKey> {
    Ok(SecretKey::from_bytes(&keccak256(&[of.as_bytes(), &number.to_be_bytes()]))?)
}

/// A valid listing of a service that nobody offers.
fn junk(owner: &SecretKey, number: u64) -> Result<Signed<Listing>> {
    let mut nonce = [0; 16];
    nonce[..8].copy_from_slice(&number.to_be_bytes());
    let nonce = ServiceNonce::from_bytes(nonce);
    let listing = Listing {
        name: format!("Harbour tides {number}"),
        summary: "Tides of every harbour".to_owned(),
        category: "weather".to_owned(),
        tags: vec!["tides".to_owned()],
        price: Usdc::from_micros(1),
        operations_count: 1,
        details_hash: [7; 32],
        details_bytes: 100,
        created_secs: now_secs() - 1_000,
        ..Listing::first(network()?.as_str(), owner.address(), nonce, now_secs() - 1)
    };
    Ok(Signed::sign(&listing, owner)?)
}

/// A neighbour that never stops telling and comparing. It ends when this is dropped.
struct Flooder {
    _tasks: JoinSet<()>,
    _folder: tempfile::TempDir,
}

impl Flooder {
    /// `passes_on`: also what honest nodes have to tell, which then reaches others by it, too.
    async fn join(world: &World, number: u8, passes_on: bool) -> Result<Self> {
        let key = key("flooder", number.into())?;
        let mut junk_of_all = Vec::new();
        for wallet in 0..WALLETS_OF_EACH {
            let owner = self::key("junk", u64::from(number) * WALLETS_OF_EACH + wallet)?;
            for listing in 0..LISTINGS_OF_A_WALLET {
                junk_of_all.push(junk(&owner, listing)?);
            }
        }
        let folder = tempfile::tempdir()?;
        let mut options = Options::new(network()?.as_str(), key.address());
        if !passes_on {
            options.limits = Limits { given_burst: 0, fetched_burst: 0, ..Limits::default() };
        }
        let (catalog, _) = Catalog::open(folder.path(), options)?;
        let verdicts = catalog.offer(junk_of_all.clone(), Source::Own, now_secs()).await;
        ensure!(verdicts.iter().all(|verdict| *verdict == Verdict::Stored), "the junk is not taken");
        let (network, inbound) = join(key, &[&world.owner, &world.consumer]).await?;
        let nodes = [world.owner_wallet, world.consumer_wallet];
        for node in nodes {
            until_connected(&network, node).await?;
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(gossip(network.clone(), junk_of_all));
        for node in nodes {
            tasks.spawn(compare(network.clone(), catalog.clone(), node));
        }
        tasks.spawn(answer(inbound, catalog));
        Ok(Self { _tasks: tasks, _folder: folder })
    }
}

async fn gossip(network: NetworkHandle, junk: Vec<Signed<Listing>>) {
    loop {
        for listing in &junk {
            network.gossip_listing(listing).await;
            tokio::task::yield_now().await;
        }
    }
}

/// Session after session with one node.
async fn compare(network: NetworkHandle, catalog: Catalog, with: Address) {
    loop {
        // Whatever the other does, the next one follows.
        let _ = tokio::time::timeout(Duration::from_secs(5), session(&network, &catalog, with)).await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn session(network: &NetworkHandle, catalog: &Catalog, with: Address) -> Result<()> {
    let mut stream = network.sync(with).await?;
    let (mut session, mut message) = catalog.initiator(Neighbour::from(with), false, now_secs()).await?;
    loop {
        stream.send(wire::encode(&message).into()).await?;
        let frame = stream.recv().await.context("ended")?;
        match session.on(wire::decode::<SyncMessage>(&frame)?, now_secs()).await? {
            Step::Send(next) => message = next,
            Step::Done(_) => {
                stream.close().await;
                return Ok(());
            }
        }
    }
}

/// Sessions that others open are answered with all the junk; nothing else is answered.
async fn answer(inbound: Inbound, catalog: Catalog) {
    let Inbound { mut syncs, mut info, mut listings, mut calls } = inbound;
    loop {
        tokio::select! {
            Some(opened) = syncs.recv() => {
                let catalog = catalog.clone();
                tokio::spawn(async move {
                    let mut stream = opened.stream;
                    let mut session = catalog.responder(Neighbour::from(opened.peer), now_secs());
                    while let Some(frame) = stream.recv().await {
                        let Ok(message) = wire::decode::<SyncMessage>(&frame) else { return };
                        let Ok(answer) = session.on(message, now_secs()).await else { return };
                        if stream.send(wire::encode(&answer).into()).await.is_err() { return }
                    }
                });
            }
            Some(_) = info.recv() => {}
            Some(_) = listings.recv() => {}
            Some(_) = calls.recv() => {}
            else => return,
        }
    }
}

/// What the consumer finds for words.
async fn found(world: &World, words: &str) -> Result<CatalogPage> {
    let query = CatalogQuery { words: words.to_owned(), ..CatalogQuery::default() };
    Ok(world.consumer.control().tell(endpoint::CatalogSearch, &query).await?)
}

/// Waits for news at the consumer, whose calls go on meanwhile, and says how many comparisons it took.
async fn arrives(world: &World, what: &str, mut came: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let comparisons = async || counted(&world.consumer, "farthing_catalog_comparisons_total").await;
    let before = comparisons().await?;
    eventually(what, async || {
        expect_served(&world.get("/ok").await?)?;
        came().await
    })
    .await
    .with_context(|| world.consumer.log())?;
    let took = comparisons().await? - before;
    eprintln!("{what}: {took} comparisons");
    ensure!(took <= COMPARISONS_MAX, "{what} took {took} comparisons");
    Ok(())
}

async fn a_flood_hides_nobody(gossip: &str) -> Result<()> {
    let (owner_settings, consumer_settings) =
        (setting("network.gossip", gossip), setting("network.gossip", gossip));
    let world = World::with(Setup { owner_settings, consumer_settings, ..Setup::default() }).await?;
    expect_served(&world.get("/ok").await?)?;
    let before = [memory_mib(&world.owner)?, memory_mib(&world.consumer)?];
    let mut flood = Vec::new();
    for number in 0..FLOODERS {
        // Without gossip an owner tells a few of its neighbours at once, which may all be hostile ones.
        flood.push(Flooder::join(&world, number, gossip == "false").await?);
    }
    let known = async || counted(&world.consumer, "farthing_catalog_listings").await;
    arrives(&world, "the flood is under way", async || Ok(known().await? >= UNDER_WAY)).await?;

    let file = ServiceFile {
        name: "Quiet lagoon".to_owned(),
        ..service_file(&world.upstream.url(), Charge::Success)
    };
    let api = world.publish(&file).await?;
    arrives(&world, "a new service is found", async || Ok(found(&world, "lagoon").await?.total == 1)).await?;
    expect_served(&world.call_of(&api, "GET", "/ok").await?)?;

    let price = PRICE.checked_sub(Usdc::from_micros(1_000)).context("less")?;
    let request = PriceRequest { price: price.into(), operation: None };
    world.owner.control().tell(endpoint::PriceApi.of(api.id), &request).await?;
    arrives(&world, "another price is known", async || {
        Ok(found(&world, "lagoon").await?.hits.first().is_some_and(|hit| hit.price.0 == price))
    })
    .await?;
    let cheaper = world.call_of(&api, "GET", "/ok").await?;
    expect_served(&cheaper)?;
    ensure!(cheaper.header("x-farthing-charged") == price.to_string(), "{cheaper:?}");

    world.owner.control().ask(endpoint::RemoveApi.of(api.id)).await?;
    arrives(&world, "a retired service is gone", async || Ok(found(&world, "lagoon").await?.total == 0))
        .await?;
    let gone = world.call_of(&api, "GET", "/ok").await?;
    ensure!(!gone.status.is_success() && gone.charged() == json!(false), "{gone:?}");

    let after = [memory_mib(&world.owner)?, memory_mib(&world.consumer)?];
    eprintln!(
        "{} listings at the consumer; MiB of owner and consumer {before:?}, then {after:?}",
        known().await?
    );
    for (before, after) in before.into_iter().zip(after) {
        ensure!(after <= before + MEMORY_MIB_MAX, "the flood takes {} MiB", after - before);
    }
    drop(flood);
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn news_and_calls_get_through_neighbours_that_never_stop_telling() -> Result<()> {
    a_flood_hides_nobody("true").await
}

#[tokio::test(flavor = "multi_thread")]
async fn news_and_calls_get_through_neighbours_that_never_stop_comparing() -> Result<()> {
    a_flood_hides_nobody("false").await
}
