//! A node whose settings name another token or contract than its channels have: it tells of the money there until they
//! are set back, and nobody is accused meanwhile of what cannot be verified.

use anyhow::{Context, Result, ensure};
use farthing_chain::deploy::{Deployer, dev_account};
use farthing_control::{
    endpoint,
    types::{Alert, AlertKind, AlertSeverity},
};
use farthing_testnet::{NodeProcess, anvil::Anvil, rpc};
use farthing_tests::{
    calls::{cost, expect_served, fixed_owner, with},
    command::farthing,
    wait::eventually,
    world::World,
};
use farthing_values::Address;
use serde_json::{Value, json};

async fn told(node: &NodeProcess) -> Result<Option<Alert>> {
    let alerts = node.control().ask(endpoint::Alerts).await?;
    Ok(alerts.into_iter().find(|alert| alert.kind == AlertKind::MoneyElsewhere))
}

#[tokio::test]
async fn money_on_channels_of_another_token_than_the_settings_name_is_told_until_the_token_is_set_back()
-> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    world.buy(1).await?;
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
        let line = doctor.lines().find(|line| line.contains("  money-elsewhere: ")).context("no line")?;
        ensure!(line.starts_with(mark) && line.contains(&words), "{doctor}");
        let listed = farthing(node, &["channel", "list"]).await?;
        ensure!(listed.ends_with(0)?.err.contains(&back), "{listed:?}");
        ensure!(node.log().contains(&back), "the log does not say it: {}", node.log());
    }
    let channel = world.channel().await?.id.to_string();
    let close = ["channel", "close", &channel, "--force", "--yes"];
    let refused = farthing(&world.consumer, &close).await?;
    ensure!(refused.code != 0 && refused.err.contains(&back), "{refused:?}");
    let settled = farthing(&world.owner, &["settle", "now"]).await?;
    let out = &settled.ends_with(0)?.out;
    ensure!(out.contains(&back) && !out.contains("nothing to claim"), "{settled:?}");

    for node in [&mut world.owner, &mut world.consumer] {
        node.stop().await?;
        node.restart_until_ready(Vec::new()).await?;
        ensure!(told(node).await?.is_none(), "the settings are as they were");
    }
    world.wait_until_met().await?;
    world.settle_for(earned).await
}

/// Another contract with the code of the world's.
async fn second_contract(world: &World) -> Result<Vec<(String, String)>> {
    let (url, other) = (world.chain.rpc_url(), Address::from_bytes([0x7a; 20]).to_string());
    let code = rpc::call(&url, "eth_getCode", json!([world.chain.contract.to_string(), "latest"])).await?;
    rpc::call(&url, "anvil_setCode", json!([&other, code])).await?;
    Ok(vec![("FARTHING_CHAIN__CONTRACT".to_owned(), other)])
}

/// The consumer dies with an answer whose receipt it has not stored: the owner has charged the call.
async fn leave_open(world: &mut World, call: &Value) -> Result<()> {
    let kill = vec![("FARTHING_KILL_AT".to_owned(), "consumer.before_acknowledge".to_owned())];
    world.consumer.restart_until_ready(kill).await?;
    world.wait_until_met().await?;
    // As long as it does not know what the owner's listing says after a change, nothing is sent.
    eventually("the consumer has died", async || {
        drop(world.call(call).await);
        Ok(world.consumer.has_ended())
    })
    .await
}

/// Both nodes start anew, the owner first, each with the settings given.
async fn start_again(world: &mut World, settings: [&[(String, String)]; 2]) -> Result<()> {
    for (node, settings) in [&mut world.owner, &mut world.consumer].into_iter().zip(settings) {
        if !node.has_ended() {
            node.stop().await?;
        }
        node.restart(settings.to_vec()).await?;
    }
    world.wait_until_met().await
}

async fn nobody_is_accused(world: &World) -> Result<()> {
    let alerts = world.consumer.control().ask(endpoint::Alerts).await?;
    let accused = alerts.iter().find(|alert| alert.kind == AlertKind::ChannelStopped);
    ensure!(accused.is_none(), "{accused:?}");
    Ok(())
}

#[tokio::test]
async fn a_call_that_is_open_when_the_contract_changes_accuses_nobody_and_is_settled_when_it_is_set_back()
-> Result<()> {
    let mut world = World::with(fixed_owner()?).await?;
    let kept = with(world.body("POST", "/ok"), "call_id", "kept");
    expect_served(&world.call(&kept).await?)?;
    world.wait_until_decided().await?;
    let (moved, here) = (second_contract(&world).await?, Vec::new());
    let (by_owner, by_consumer) =
        ("the owner's settings name another chain or contract than", "than the settings name");
    for (id, settings, words) in [
        ("the owner's alone", [&moved, &here], by_owner),
        ("the consumer's alone", [&here, &moved], by_consumer),
        ("both", [&moved, &moved], by_consumer),
    ] {
        let open = with(world.body("POST", "/ok"), "call_id", id);
        leave_open(&mut world, &open).await?;
        start_again(&mut world, settings.map(Vec::as_slice)).await?;
        for (call, problem) in [(&open, "undecided"), (&kept, "answer-not-repeated")] {
            eventually(&format!("{id}: the call is told as {problem}"), async || {
                let answer = world.call(call).await?;
                let told = answer.json()["detail"].as_str().is_some_and(|detail| detail.contains(words));
                Ok(answer.problem() == problem && told)
            })
            .await?;
        }
        nobody_is_accused(&world).await.context(id)?;

        start_again(&mut world, [&[], &[]]).await?;
        world.owner.wait_until_ready().await?;
        world.consumer.wait_until_ready().await?;
        for call in [&open, &kept] {
            let what = format!("{id}: the call is answered once the contract is set back");
            eventually(&what, async || Ok(world.call(call).await?.status.is_success())).await?;
        }
        world.wait_until_decided().await?;
        nobody_is_accused(&world).await.context(id)?;
    }
    assert_eq!(world.upstream.hits(), 4, "none is served twice");
    world.settle_for(cost(4)).await
}
