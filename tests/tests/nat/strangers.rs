//! Two nodes of different networks that nobody told of each other meet in a DHT of others.

use std::time::Duration;

use anyhow::{Result, ensure};
use farthing_tests::{
    lab::Place,
    market::{Market, Setup},
};

/// Once both are ready.
const FOUND_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_of_two_networks_that_know_the_entrance_of_a_dht_alone_meet_and_one_buys() -> Result<()> {
    let setup = Setup { consumers: vec![Place::Public], are_strangers: true, ..Setup::default() };
    let Some(market) = Market::open(setup).await? else { return Ok(()) };
    let consumer = market.consumer(Place::Public);
    let promise = "two nodes that were told of nobody find each other";
    let took = market.case(promise, market.call_until_served(consumer, "/ok", "strangers-1")).await?;
    ensure!(took < FOUND_WITHIN, "it took {} s", took.as_secs());
    market.check_books(1).await
}
