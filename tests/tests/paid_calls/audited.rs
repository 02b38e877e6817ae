//! `farthing audit`: the ledger, and its channels held against the contract.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::{LocalChain, NodeProcess, rpc};
use farthing_tests::{
    calls::{cost, expect_served},
    command::{Ran, farthing},
    wait::eventually,
    world::World,
};
use farthing_values::{Address, Usdc};
use serde_json::{Value, json};

async fn audit(node: &NodeProcess) -> Result<(Ran, Value)> {
    let ran = farthing(node, &["audit", "--json"]).await?;
    let told = ran.json()?;
    Ok((ran, told))
}

fn not_checked(told: &Value) -> Vec<&str> {
    told["not_checked"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_books_of_both_sides_are_held_against_the_contract_and_text_and_json_say_the_same() -> Result<()>
{
    let mut world = World::start().await?;
    // The ledger stores the end of a call behind its answer, at a moment of its own; an audit that does not wait for that misses
    // nearly all of them.
    let mut missed = 0;
    for _ in 0..10 {
        expect_served(&world.get("/ok").await?)?;
        let told = world.consumer.control().ask(endpoint::Audit.with("offline", true)).await?;
        missed += told.calls_undecided;
    }
    ensure!(missed <= 2, "of ten calls that were answered, {missed} were told as undecided");
    for node in [&world.owner, &world.consumer] {
        let (ran, told) = audit(node).await?;
        ensure!(ran.code == 0 && told["violations_total"] == 0, "{ran:?}");
        let chain = &told["chain"];
        ensure!(chain["channels"] == 1 && chain["unconfirmed"] == json!([]), "{told:#}");
        ensure!(chain["escrow"] == chain["at_stake"] && chain["escrow"] != "0", "{told:#}");
        let left: Vec<&str> = not_checked(&told);
        ensure!(left.len() == 2 && left[0].starts_with("M1:") && left[1].starts_with("X1"), "{told:#}");

        let text = farthing(node, &["audit"]).await?;
        let number = |field: &str| told[field].to_string();
        for word in [
            format!("Calls served       {}", number("calls_served")),
            format!("Calls bought       {}", number("calls_bought")),
            format!("1, as of block {}", chain["block"]),
            format!(
                "{} USDC, of which {} in these channels",
                chain["escrow"].as_str().unwrap_or_default(),
                chain["at_stake"].as_str().unwrap_or_default()
            ),
        ] {
            let shown = text.out.split_whitespace().collect::<Vec<_>>().join(" ");
            let word = word.split_whitespace().collect::<Vec<_>>().join(" ");
            ensure!(text.code == 0 && shown.contains(&word), "{word}: {text:?}");
        }
        ensure!(left.iter().all(|line| text.err.contains(line)), "{text:?}");

        let offline = farthing(node, &["audit", "--offline", "--json"]).await?;
        let offline = offline.ends_with(0)?.json()?;
        ensure!(offline["chain"] == Value::Null, "{offline:#}");
        ensure!(not_checked(&offline).iter().any(|line| line.starts_with("M2, and M3")), "{offline:#}");
    }
    let both = ["audit", "--offline", "--with", &world.owner_wallet.to_string()];
    farthing(&world.consumer, &both).await?.ends_with(2)?;

    // A chain that has gone is said, and is no violation.
    world.chain = LocalChain::start().await?;
    eventually("the chain's absence is told", async || {
        let (ran, told) = audit(&world.consumer).await?;
        ensure!(ran.code == 0 && told["violations_total"] == 0, "{ran:?}");
        let said = not_checked(&told);
        let why = said.iter().find(|line| line.starts_with("M2, and M3 in the contract:"));
        Ok(told["chain"] == Value::Null && why.is_some())
    })
    .await
}

/// Takes USDC out of the contract, as no transaction can.
async fn rob(world: &World, amount: Usdc) -> Result<()> {
    let (url, contract) = (world.chain.rpc_url(), world.chain.contract.to_string());
    rpc::call(&url, "anvil_setBalance", json!([contract, "0xde0b6b3a7640000"])).await?;
    rpc::call(&url, "anvil_impersonateAccount", json!([contract])).await?;
    let thief = "11".repeat(20);
    // 0xa9059cbb is the selector of transfer(address,uint256) (EIP-20).
    let data = format!("0xa9059cbb{thief:0>64}{:064x}", amount.micros());
    let transfer = json!([{ "from": contract, "to": world.chain.token.to_string(), "data": data }]);
    rpc::call(&url, "eth_sendTransaction", transfer).await?;
    let left = world.chain.usdc_of(world.chain.contract).await?;
    ensure!(world.chain.usdc_of(Address::from_bytes([0x11; 20])).await? == amount, "{left} USDC are left");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contract_that_holds_less_than_the_channels_is_a_violation() -> Result<()> {
    let world = World::start().await?;
    world.buy(1).await?;
    rob(&world, Usdc::from_micros(1)).await?;
    let (ran, told) = audit(&world.consumer).await?;
    let line = told["violations"][0].as_str().context("no violation")?;
    ensure!(ran.code == 1 && told["violations_total"] == 1 && line.starts_with("M2 the contract"), "{ran:?}");
    world.expect_differences(&["M2 the contract: it holds"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_is_held_against_the_limits_of_then_and_not_of_now() -> Result<()> {
    let world = World::start().await?;
    world.buy(3).await?;
    // Below what is spent already.
    farthing(&world.consumer, &["spending", "limits", "--per-day", "0.002"]).await?.ends_with(0)?;
    let (ran, told) = audit(&world.consumer).await?;
    ensure!(ran.code == 0 && told["violations_total"] == 0, "{ran:?}");
    ensure!(!not_checked(&told).iter().any(|line| line.starts_with("C2")), "{told:#}");
    world.settle_for(cost(3)).await
}
