//! An owner's line fails while calls are under way: nothing is executed or paid twice.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use farthing_tests::{
    lab::{HOME_FIRST, Place, router::Forwarded},
    market::{Market, PATIENCE, Setup, addresses_at, until},
    tell::tell,
};

/// Short enough that the connection outlives it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_five_seconds_executes_and_charges_nothing_twice() -> Result<()> {
    an_outage_of(Duration::from_secs(5)).await
}

/// Long enough that calls and connections end in it, and that the owner's address is doubted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_ninety_seconds_executes_and_charges_nothing_twice() -> Result<()> {
    an_outage_of(Duration::from_secs(90)).await
}

async fn an_outage_of(length: Duration) -> Result<()> {
    let setup = Setup {
        owner: vec![("network.announce", addresses_at(HOME_FIRST).join(","))],
        consumers: vec![Place::BehindPlain],
        ..Setup::default()
    };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    market.lab.forward(Forwarded::BOTH)?;
    market.call_until_served(market.consumer(Place::BehindPlain), "/ok", "before").await?;
    let promise = format!("an outage of {} s executes nothing twice", length.as_secs());
    market.case(&promise, nothing_happens_twice(&market, length)).await?;
    market.case("every call was executed once and charged once", market.check_books(3)).await
}

/// One call is being served when the line fails, another is made while it is down. Both are repeated under
/// their ids until they are served.
async fn nothing_happens_twice(market: &Market, length: Duration) -> Result<()> {
    let consumer = market.consumer(Place::BehindPlain);
    let hits = market.upstream.hits();
    let ids = ["being served", "made meanwhile"].map(|what| format!("{what}, {} s", length.as_secs()));
    let outage = async {
        until("the upstream works on the call", PATIENCE, async || Ok(market.upstream.hits() > hits)).await?;
        market.lab.cut_home_off()?;
        // The line comes back when its time is over, whatever has become of the call.
        let reconnect = async {
            tokio::time::sleep(length).await;
            market.lab.reconnect_home()
        };
        let (meanwhile, reconnected) = tokio::join!(market.call(consumer, "/ok", &ids[1]), reconnect);
        reconnected.and(meanwhile)
    };
    let (served, meanwhile) = tokio::join!(market.call(consumer, "/slow/2000", &ids[0]), outage);
    let first = [served?.status.as_u16(), meanwhile?.status.as_u16()];

    let began = Instant::now();
    market.call_until_served(consumer, "/slow/2000", &ids[0]).await?;
    market.call_until_served(consumer, "/ok", &ids[1]).await?;
    tell(&format!(
        "  nat: after {} s without a line: first answers {first:?}, both calls served {} ms after the last of them",
        length.as_secs(),
        began.elapsed().as_millis()
    ));
    let executed = market.upstream.hits() - hits;
    ensure!(executed == 2, "two calls were executed {executed} times");
    Ok(())
}
