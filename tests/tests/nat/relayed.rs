//! Owners whose router forwards nothing sell all the same: what becomes of a call, for each pair of routers.
//!
//! `CASES` (`tests/src/lab/cases.rs`) has the pairs that begin through a relay; `documented.rs` compares them with the table for
//! owners. A relay that lies is played in `node/network/tests/network/relays.rs`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{
    lab::{
        HomeRouter, Place,
        cases::{
            CASES,
            CallsGo::{self, Directly, ThroughARelay},
            Case,
        },
        router::Forwarded,
    },
    market::{Consumer, Market, PATIENCE, Setup, is_relayed, tested_soon, until},
    tell::tell,
};

/// From the first answer to a direct connection, where there can be one.
const DIRECT_WITHIN: Duration = Duration::from_secs(10);

/// An owner behind `home` is called from each place that a case names.
async fn is_called(home: HomeRouter) -> Result<()> {
    let cases: Vec<Case> = CASES.into_iter().filter(|case| case.home == home).collect();
    ensure!(!cases.is_empty(), "no case has {home:?}");
    let consumers = cases.iter().map(|case| case.from).collect();
    let setup = Setup { all: tested_soon(), consumers, home, ..Setup::default() };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    market.case(&format!("an owner behind {home:?} is led to by two relays"), is_led_to(&market)).await?;
    for Case { from, calls_go, .. } in &cases {
        let promise = format!("behind {home:?}, called from {from:?}: {calls_go:?}");
        market.case(&promise, goes(&market, *from, *calls_go)).await?;
    }
    let promise = "every call was executed once and charged once";
    market.case(promise, market.check_books(cases.len() as u64)).await
}

/// Waits until the owner says that callers come through two relays.
async fn is_led_to(market: &Market) -> Result<Vec<String>> {
    let reach = market.wait_for_relays(PATIENCE).await?;
    ensure!(reach.summary.contains("Callers reach this node through the relays"), "{}", reach.summary);
    Ok(reach.relays.iter().map(ToString::to_string).collect())
}

async fn goes(market: &Market, place: Place, expected: CallsGo) -> Result<()> {
    let consumer = market.consumer(place);
    let took = market.call_until_served(consumer, "/ok", &format!("{place:?}")).await?;
    tell(&format!("  nat: {place:?} is served {} ms after it first asks", took.as_millis()));
    match expected {
        Directly => {
            let took = until("the connection is direct", DIRECT_WITHIN, async || {
                Ok(!is_relayed(&market.way_to_owner(consumer).await?))
            })
            .await?;
            tell(&format!("  nat: {place:?} is connected directly {} ms later", took.as_millis()));
        }
        ThroughARelay => {
            // Attempts to connect directly are over by then.
            tokio::time::sleep(DIRECT_WITHIN).await;
            let way = market.way_to_owner(consumer).await?;
            ensure!(is_relayed(&way), "{place:?} reaches the owner at {way}");
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_router_that_lets_in_everybody_no_relay_is_needed() -> Result<()> {
    let consumers = vec![Place::BehindPlain, Place::BehindSymmetric];
    let setup = Setup { all: tested_soon(), consumers, ..Setup::default() };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    market.lab.forward(Forwarded::BOTH)?;
    let promise = "an owner whose router lets in everybody is reached without a relay";
    let reached = async {
        until("it is reached, and wants no relay", PATIENCE, async || {
            let reach = market.owner.control().ask(endpoint::Reached).await?;
            Ok(reach.reachable && reach.relays.is_empty())
        })
        .await?;
        for place in [Place::BehindPlain, Place::BehindSymmetric] {
            goes(&market, place, Directly).await?;
        }
        anyhow::Ok(())
    };
    market.case(promise, reached).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_router_that_filters_by_address() -> Result<()> {
    is_called(HomeRouter::FiltersByAddress).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_router_that_filters_by_address_and_port() -> Result<()> {
    is_called(HomeRouter::Plain).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_symmetric_router() -> Result<()> {
    is_called(HomeRouter::Symmetric).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_router_and_a_provider_that_shares_an_address_among_customers() -> Result<()> {
    is_called(HomeRouter::BehindProvider).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_a_firewall_of_ipv6() -> Result<()> {
    is_called(HomeRouter::FirewallOfIpv6).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relay_that_dies_is_replaced() -> Result<()> {
    let (all, consumers) = (tested_soon(), vec![Place::BehindSymmetric]);
    let setup = Setup { all, consumers, ..Setup::default() };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    let before = market.case("the owner is led to by two relays", is_led_to(&market)).await?;
    market
        .case("a call goes through one of them", goes(&market, Place::BehindSymmetric, ThroughARelay))
        .await?;
    let consumer = market.consumer(Place::BehindSymmetric);
    let (dying, wallet) = market.relay_to_owner(consumer).await?;
    ensure!(before.contains(&wallet), "{wallet} leads to the owner, and it names {before:?}");
    let promise = "a call that a dying relay cuts off is executed once and charged once";
    market.case(promise, is_cut_off(&market, consumer, dying)).await?;
    let promise = "a relay that dies is replaced by another, and calls go on";
    let replaced = async {
        until("the owner has two other relays", PATIENCE, async || {
            let reach = market.owner.control().ask(endpoint::Reached).await?;
            let relays: Vec<String> = reach.relays.iter().map(ToString::to_string).collect();
            Ok(relays.len() == 2 && !relays.contains(&wallet))
        })
        .await?;
        market.call_until_served(consumer, "/ok", "afterwards").await
    };
    market.case(promise, replaced).await?;
    market.case("every call was executed once and charged once", market.check_books(3)).await
}

/// The relay dies while the owner's service works on a call. It is repeated under its id until it is served.
async fn is_cut_off(market: &Market, consumer: &Consumer, dying: Place) -> Result<()> {
    let hits = market.upstream.hits();
    let dies = async {
        until("the upstream works on the call", PATIENCE, async || Ok(market.upstream.hits() > hits)).await?;
        market.lab.silence(dying)
    };
    let (first, died) = tokio::join!(market.call(consumer, "/slow/2000", "cut off"), dies);
    died?;
    tell(&format!("  nat: the first answer to a call whose relay died: {}", first?.status));
    market.call_until_served(consumer, "/slow/2000", "cut off").await?;
    let executed = market.upstream.hits() - hits;
    ensure!(executed == 1, "one call was executed {executed} times");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_is_a_relay_owner_and_caller_are_told() -> Result<()> {
    let mut all = tested_soon();
    all.push(("network.relay", "false".to_owned()));
    let setup = Setup { all, consumers: vec![Place::BehindPlain], ..Setup::default() };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    let promise = "an owner that no relay leads to says so, and so does a call to it";
    let told = async {
        let mut said = String::new();
        let waited = until("the owner says that nobody can call it", PATIENCE, async || {
            said = market.owner.control().ask(endpoint::Reached).await?.summary;
            Ok(said.contains("No connected node is a relay") && said.contains("forward the port"))
        });
        waited.await.with_context(|| said)?;
        let answer = market.call(market.consumer(Place::BehindPlain), "/ok", "in vain").await?;
        let words = String::from_utf8_lossy(&answer.body).into_owned();
        ensure!(!answer.status.is_success() && words.contains("owner-unreachable"), "{words}");
        ensure!(market.upstream.hits() == 0, "an owner that nobody reaches was called");
        anyhow::Ok(())
    };
    market.case(promise, told).await
}
