//! `farthing testnet prepare` among real nodes: what `deploy/compose.testnet.yaml` does in containers, without them.

mod down;

use std::time::Duration;

use anyhow::{Context, Result};
use farthing_chain::deploy::{dev_account, first_contract_of};
use farthing_control::endpoint;
use farthing_testnet::{
    NodeOptions, NodeProcess, ServiceProcess,
    anvil::Anvil,
    prepare::{self, Market},
    rpc,
};
use tempfile::TempDir;

/// Five nodes start at once, and other tests run beside this one.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// The token and the contract; gas for the consumer and both owners; the consumer's USDC.
const TRANSACTIONS: u64 = 2 + 3 + 1;

#[tokio::test]
async fn nodes_that_started_before_the_contracts_are_prepared_once_however_often_they_are() -> Result<()> {
    let folder = TempDir::new()?;
    let chain = tokio::task::spawn_blocking(Anvil::start).await??;
    let deployer = dev_account(0)?.address();
    let settings = vec![
        ("chain.preset".to_owned(), "local".to_owned()),
        ("chain.rpc_urls".to_owned(), chain.url()),
        ("chain.token".to_owned(), first_contract_of(deployer).to_string()),
        ("chain.poll_interval_ms".to_owned(), "100".to_owned()),
    ];
    let start = |name: &str, join: Vec<String>| {
        NodeProcess::start_on(settings.clone(), NodeOptions::new(folder.path().join(name)).bootstrap(join))
    };
    let bootstrap = start("bootstrap", Vec::new()).await?;
    let join = vec![bootstrap.loopback_address().await?];
    let start = |name: &'static str| start(name, join.clone());
    let (_neighbour, quake_owner, planet_owner, consumer) = tokio::try_join!(
        start("neighbour"),
        start("earthquake-owner"),
        start("planet-owner"),
        start("consumer"),
    )?;
    let (earthquakes, planets) =
        (ServiceProcess::start("earthquakes").await?, ServiceProcess::start("exoplanets").await?);
    prepare::probe(&earthquakes.url).await?;
    let market = Market {
        rpc_url: chain.url(),
        nodes: folder.path().to_owned(),
        earthquakes_url: earthquakes.url.clone(),
        planets_url: planets.url.clone(),
        gateway_url: "https://localhost:3000".to_owned(),
        panel_url: "https://localhost:3002/panel".to_owned(),
    };
    let missing = prepare::check(&market).await.unwrap_err().to_string();
    assert!(missing.contains("the contracts are not deployed"), "{missing}");

    for _ in 0..2 {
        let preparing = tokio::spawn({
            let market = market.clone();
            async move { prepare::prepare(&market).await }
        });
        let prepared = wait_until_prepared(&market).await;
        preparing.abort();
        prepared?;
    }

    for (owner, name) in [(&quake_owner, "Earthquakes"), (&planet_owner, "Exoplanets")] {
        let offered = owner.control().ask(endpoint::Apis).await?;
        assert_eq!(offered.iter().map(|api| api.name.as_str()).collect::<Vec<_>>(), [name]);
    }
    let balance = consumer.control().ask(endpoint::Wallet).await?;
    assert_eq!(balance.usdc.context("no balance")?.to_string(), "10.00");
    assert_eq!(rpc::transactions_of(&chain.url(), deployer).await?, TRANSACTIONS);
    Ok(())
}

async fn wait_until_prepared(market: &Market) -> Result<()> {
    let prepared = async {
        while prepare::check(market).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let ended = tokio::time::timeout(READY_WITHIN, prepared).await;
    if ended.is_err() { prepare::check(market).await } else { Ok(()) }
}
