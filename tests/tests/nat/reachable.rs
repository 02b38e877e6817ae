//! An owner whose router forwards port 3001 is called from everywhere.

use anyhow::{Result, ensure};
use farthing_tests::{
    lab::{HOME_FIRST, Place, line::LongLine, router::Forwarded},
    market::{Market, Setup, addresses_at},
    tell::tell,
};

/// From one end of the long line to the other.
const DELAY_MS: u32 = 80;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_behind_a_forwarded_port_is_called_directly_from_everywhere() -> Result<()> {
    let setup = Setup {
        owner: vec![("network.announce", addresses_at(HOME_FIRST).join(","))],
        consumers: vec![Place::Public, Place::BehindPlain, Place::BehindSymmetric, Place::Neighbour],
        ..Setup::default()
    };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    market.lab.forward(Forwarded::BOTH)?;

    let from = [
        ("a public host calls the owner", Place::Public),
        ("a consumer behind a plain NAT calls the owner", Place::BehindPlain),
        ("a consumer behind a symmetric NAT calls the owner", Place::BehindSymmetric),
        (
            "hairpin: a consumer in the owner's own LAN calls it through the router's public address",
            Place::Neighbour,
        ),
    ];
    for (promise, place) in from {
        market.case(promise, is_called_directly(&market, place)).await?;
    }
    market.case("every call was executed once and charged once", market.check_books(4)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_over_a_long_and_lossy_line_takes_one_round_trip() -> Result<()> {
    const CALLS: usize = 15;
    let setup = Setup {
        owner: vec![("network.announce", addresses_at(HOME_FIRST).join(","))],
        line: Some(LongLine { to: Place::Far, delay_ms: DELAY_MS, loss_percent: 2 }),
        consumers: vec![Place::Far],
        ..Setup::default()
    };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    market.lab.forward(Forwarded::BOTH)?;
    let far = market.consumer(Place::Far);
    let first = market.call_until_served(far, "/ok", "the first").await?;
    let mut times = Vec::new();
    for n in 0..CALLS {
        times.push(market.call_until_served(far, "/ok", &format!("warm {n}")).await?.as_millis());
    }
    times.sort_unstable();
    let [fastest, median, slowest] = [0, CALLS / 2, CALLS - 1].map(|n| times[n]);
    tell(&format!(
        "  nat: over a line of {DELAY_MS} ms each way with 2 % loss the first call takes {} ms, a warm one \
         {median} ms (median of {CALLS}; fastest {fastest} ms, slowest {slowest} ms)",
        first.as_millis()
    ));
    // Loss costs some calls more; most meet none. A second round trip would show in all.
    let round_trip = u128::from(2 * DELAY_MS);
    ensure!(
        (round_trip..2 * round_trip).contains(&fastest),
        "a warm call takes {fastest} ms, one round trip {round_trip} ms"
    );
    market
        .case(
            "calls over a lossy line are executed once and charged once",
            market.check_books(1 + CALLS as u64),
        )
        .await
}

async fn is_called_directly(market: &Market, place: Place) -> Result<()> {
    let consumer = market.consumer(place);
    market.call_until_served(consumer, "/ok", &format!("{place:?}")).await?;
    let way = market.way_to_owner(consumer).await?;
    let home = format!("/ip4/{HOME_FIRST}/");
    ensure!(way.starts_with(&home), "{place:?} reaches the owner at {way}");
    Ok(())
}
