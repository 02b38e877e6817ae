//! A node whose settings name another token than its channels have: it tells of the money there until they are set back.

use anyhow::{Context, Result, ensure};
use farthing_chain::deploy::{Deployer, dev_account};
use farthing_control::{
    endpoint,
    types::{Alert, AlertKind, AlertSeverity},
};
use farthing_testnet::{NodeProcess, anvil::Anvil};
use farthing_tests::{
    calls::{cost, expect_served, fixed_owner},
    command::farthing,
    world::{FUNDS, World},
};

async fn told(node: &NodeProcess) -> Result<Option<Alert>> {
    let alerts = node.control().ask(endpoint::Alerts).await?;
    Ok(alerts.into_iter().find(|alert| alert.kind == AlertKind::MoneyElsewhere))
}

#[tokio::test]
async fn money_on_channels_of_another_token_than_the_settings_name_is_told_until_the_token_is_set_back()
-> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    expect_served(&world.get("/ok").await?)?;
    world.wait_until_decided().await?;
    let deployer = Deployer::connect(&world.chain.rpc_url(), Anvil::CHAIN_ID, dev_account(0)?).await?;
    let other = deployer.test_usdc("USD Coin", deployer.address()).await?;
    let changed = || vec![("FARTHING_CHAIN__TOKEN".to_owned(), other.to_string())];
    let back = format!("set `chain.token` back to {}, restart", world.chain.token);

    for node in [&mut world.owner, &mut world.consumer] {
        ensure!(told(node).await?.is_none(), "all is where the settings lead");
        node.stop().await?;
        node.restart(changed()).await?;
    }
    let earned = cost(1);
    for (node, severity, words, mark) in [
        (&world.owner, AlertSeverity::Error, format!("{earned} USDC that you earned"), "FAIL"),
        (&world.consumer, AlertSeverity::Warning, "USDC that you deposited".to_owned(), "WARN"),
    ] {
        let alert = told(node).await?.context("no alert")?;
        ensure!(alert.severity == severity && alert.cause.contains(&words), "{alert:?}");
        ensure!(alert.cause.contains(&other.to_string()) && alert.action.contains(&back), "{alert:?}");
        let doctor = farthing(node, &["doctor"]).await?.out;
        let line = doctor.lines().find(|line| line.contains("  channels: ")).context("no line")?;
        ensure!(line.starts_with(mark) && line.contains(&words), "{doctor}");
        let listed = farthing(node, &["channel", "list"]).await?;
        ensure!(listed.ends_with(0)?.err.contains(&back), "{listed:?}");
        ensure!(node.log().contains(&back), "the log does not say it: {}", node.log());
    }
    let channels = world.consumer.control().ask(endpoint::Channels).await?;
    let channel = channels.first().context("no channel")?.id.to_string();
    let close = ["channel", "close", &channel, "--force", "--yes"];
    let refused = farthing(&world.consumer, &close).await?;
    ensure!(refused.code != 0 && refused.err.contains(&back), "{refused:?}");
    let settled = farthing(&world.owner, &["settle", "now"]).await?;
    let out = &settled.ends_with(0)?.out;
    ensure!(out.contains(&back) && !out.contains("nothing to claim"), "{settled:?}");

    for node in [&mut world.owner, &mut world.consumer] {
        node.stop().await?;
        node.restart(Vec::new()).await?;
        node.wait_until_ready().await?;
        ensure!(told(node).await?.is_none(), "the settings are as they were");
    }
    world.wait_until_met().await?;
    assert_eq!(world.settle_and_check(FUNDS).await?, earned);
    Ok(())
}
