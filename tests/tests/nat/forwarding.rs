//! An owner that announces nothing finds out by itself where it can be reached, and says what to do about it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{
    lab::{HOME_FIRST, HOME_SECOND, HomeRouter, OWNER, Place, router::Forwarded},
    market::{Consumer, Market, PATIENCE, Setup, addresses_at, quic_boots, until},
    tell::tell,
};

/// Until callers are served again after the owner's address changed.
const RECOVERY_MAX: Duration = Duration::from_secs(60);

/// A first test at once, others every so many seconds, and peers that are patient with them.
fn tested_every(secs: u32) -> Vec<(&'static str, String)> {
    vec![
        ("network.upnp", "false".to_owned()),
        // What is called here is called without a relay, or not at all.
        ("network.use_relays", "false".to_owned()),
        ("network.reach_first_ms", "2000".to_owned()),
        ("network.reach_interval_secs", secs.to_string()),
        ("network.reach_peer_interval_secs", "2".to_owned()),
    ]
}

/// The owner begins with QUIC alone, from its listening port. Its router therefore lets the very sockets of the
/// peers that test it back in, and a test that came from there would find the port open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_notices_what_its_router_forwards() -> Result<()> {
    let setup = Setup {
        all: tested_every(3),
        owner: vec![("network.bootstrap", quic_boots().join(","))],
        consumers: vec![Place::BehindPlain],
        ..Setup::default()
    };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    let [tcp, quic] = addresses_at(HOME_FIRST);
    market.case(
        "an owner that nothing is forwarded to announces no public address and says what to forward where",
        async {
            says(
                &market,
                &[
                    &format!("TCP not forwarded — forward TCP 3001 to {OWNER}"),
                    &format!("UDP not forwarded — forward UDP 3001 to {OWNER}"),
                ],
            )
            .await?;
            announces(&market, &[]).await?;
            let consumer = market.consumer(Place::BehindPlain);
            let answer = market.call(consumer, "/ok", "too early").await?;
            ensure!(!answer.status.is_success(), "an owner without a forward was called");
            Ok(())
        },
    )
    .await?;
    market
        .case("with TCP alone forwarded no QUIC is announced", async {
            market.lab.forward(Forwarded::TCP)?;
            says(&market, &["TCP reachable", &format!("UDP not forwarded — forward UDP 3001 to {OWNER}")])
                .await?;
            announces(&market, &[&tcp]).await
        })
        .await?;
    market
        .case("a forward that is added is noticed, and the owner is called", async {
            market.lab.forward(Forwarded::BOTH)?;
            announces(&market, &[&tcp, &quic]).await?;
            market.call_until_served(market.consumer(Place::BehindPlain), "/ok", "at last").await
        })
        .await?;
    market
        .case("a forward that is removed is noticed, and nothing is announced any more", async {
            market.lab.forward(Forwarded::NOTHING)?;
            announces(&market, &[]).await?;
            says(&market, &["TCP not forwarded", "UDP not forwarded"]).await
        })
        .await?;
    market.case("the one call was executed once and charged once", market.check_books(1)).await
}

/// To everybody the owner has written to, its ports look open. Only whoever it has not can tell: the consumers, which
/// nobody dials because they have no address, and whom those that test have dial as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_whose_router_lets_in_whoever_it_wrote_to_is_not_taken_in() -> Result<()> {
    let setup = Setup {
        all: tested_every(3),
        consumers: vec![Place::BehindPlain, Place::BehindSymmetric],
        home: HomeRouter::FiltersByAddress,
        ..Setup::default()
    };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    let [tcp, quic] = addresses_at(HOME_FIRST);
    market
        .case("an owner that only those reach whom it has written to announces no public address", async {
            says(
                &market,
                &[
                    &format!("TCP not forwarded — forward TCP 3001 to {OWNER}"),
                    &format!("UDP not forwarded — forward UDP 3001 to {OWNER}"),
                ],
            )
            .await?;
            announces(&market, &[]).await
        })
        .await?;
    market
        .case("a forward is noticed behind such a router as behind any other", async {
            market.lab.forward(Forwarded::BOTH)?;
            announces(&market, &[&tcp, &quic]).await?;
            for consumer in &market.consumers {
                market.call_until_served(consumer, "/ok", &format!("{:?}", consumer.place)).await?;
            }
            Ok(())
        })
        .await?;
    market.case("both calls were executed once and charged once", market.check_books(2)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_find_an_owner_again_whose_address_changed() -> Result<()> {
    let setup = Setup {
        // A change of address is tested at once, whatever the interval.
        all: tested_every(600),
        consumers: vec![Place::Public, Place::BehindSymmetric],
        ..Setup::default()
    };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    market.lab.forward(Forwarded::BOTH)?;
    announces(&market, &addresses_at(HOME_FIRST).each_ref().map(String::as_str)).await?;
    for consumer in &market.consumers {
        market.call_until_served(consumer, "/ok", &format!("{:?} before", consumer.place)).await?;
    }
    market
        .case("callers find an owner again within a minute whose public address changed", async {
            market.lab.move_home(HOME_FIRST, HOME_SECOND)?;
            let served = market.consumers.iter().map(|consumer| is_served_again(&market, consumer));
            futures::future::try_join_all(served).await?;
            announces(&market, &addresses_at(HOME_SECOND).each_ref().map(String::as_str)).await
        })
        .await?;
    market.case("every call was executed once and charged once", market.check_books(4)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_find_an_owner_that_flips_between_two_networks() -> Result<()> {
    let consumers = vec![Place::Public];
    let Some(market) = Market::open(Setup { all: tested_every(600), consumers, ..Setup::default() }).await?
    else {
        return Ok(());
    };
    market.lab.forward(Forwarded::BOTH)?;
    announces(&market, &addresses_at(HOME_FIRST).each_ref().map(String::as_str)).await?;
    let consumer = market.consumer(Place::Public);
    market.call_until_served(consumer, "/ok", "before").await?;
    let ways = [(HOME_FIRST, HOME_SECOND), (HOME_SECOND, HOME_FIRST), (HOME_FIRST, HOME_SECOND)];
    for (turn, (from, to)) in ways.into_iter().enumerate() {
        let found = async {
            market.lab.move_home(from, to)?;
            market.call_until_served(consumer, "/ok", &format!("flip {turn}")).await
        };
        market.case(&format!("an owner that moves from {from} to {to} is called again"), found).await?;
    }
    market.case("every call was executed once and charged once", market.check_books(4)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_router_that_speaks_upnp_forwards_without_anybody_doing_anything() -> Result<()> {
    let owner = vec![("network.upnp", "true".to_owned())];
    let consumers = vec![Place::BehindPlain];
    let setup = Setup { all: tested_every(3), owner, consumers, upnp: true, ..Setup::default() };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    let [tcp, quic] = addresses_at(HOME_FIRST);
    market
        .case("an owner behind a router that speaks UPnP is reached over both transports and called", async {
            announces(&market, &[&tcp, &quic]).await?;
            says(&market, &["TCP reachable", "UDP reachable"]).await?;
            market.call_until_served(market.consumer(Place::BehindPlain), "/ok", "by itself").await
        })
        .await?;
    market.case("the one call was executed once and charged once", market.check_books(1)).await
}

async fn is_served_again(market: &Market, consumer: &Consumer) -> Result<()> {
    let (place, call_id) = (consumer.place, format!("{:?} after", consumer.place));
    let took = market.call_until_served(consumer, "/ok", &call_id).await?;
    tell(&format!("  nat: {place:?} is served again {} s after the change", took.as_secs()));
    // Of these some twenty are waiting: for the dead line to be missed, and for the new address to be published.
    ensure!(took <= RECOVERY_MAX, "{place:?} was served again only after {} s", took.as_secs());
    Ok(())
}

/// Waits until the owner's public addresses are these.
async fn announces(market: &Market, expected: &[&str]) -> Result<()> {
    let mut announced = Vec::new();
    let waited = until("the owner announces what it should", PATIENCE, async || {
        let addresses = market.owner.status().await?.addresses;
        // A node that announces nothing lists where it listens.
        announced = addresses.into_iter().filter(|address| address.starts_with("/ip4/20.")).collect();
        announced.sort();
        Ok(announced == expected)
    });
    if let Err(error) = waited.await {
        // Who voted what is not in its log.
        let reach = market.owner.control().ask(endpoint::Reached).await?;
        return Err(error.context(format!("{announced:?} and not {expected:?}; its tests: {reach:#?}")));
    }
    Ok(())
}

/// Waits until the owner says all of this about its port.
async fn says(market: &Market, words: &[&str]) -> Result<()> {
    let mut said = String::new();
    let waited = until("the owner says what it should", PATIENCE, async || {
        said = market.owner.control().ask(endpoint::Reached).await?.summary;
        Ok(words.iter().all(|words| said.contains(words)))
    });
    waited.await.with_context(|| format!("{words:?} in {said:?}")).map(drop)
}
