//! A wallet without money: told what to send where, and served as soon as it arrived.

use anyhow::{Context, Result, ensure};
use farthing::testnet::anvil::Anvil;
use farthing_chain::deploy::{Deployer, dev_account};
use farthing_protocol::Usdc;
use farthing_tests::world::{Answer, FUNDS, PRICE, Setup, World, eventually};

use crate::support::{cost, expect_free, expect_served, setting, with};

#[tokio::test]
async fn an_empty_wallet_is_told_what_to_send_where_and_the_same_call_works_then() -> Result<()> {
    let world = World::with(Setup { funds: Usdc::ZERO, ..Setup::default() }).await?;
    let call = with(world.body("GET", "/ok"), "call_id", "the same");
    let wallet = world.consumer_wallet.to_string();
    let says = |answer: &Answer, parts: &[&str]| -> Result<()> {
        let detail = answer.json()["detail"].as_str().context("no detail")?.to_owned();
        for part in parts {
            ensure!(detail.contains(part), "`{detail}` does not say {part}");
        }
        Ok(())
    };

    let answer = world.call(&call).await?;
    expect_free("no USDC and no ETH", &answer, 402, "insufficient-funds")?;
    says(&answer, &[&wallet, "send at least 0.40 USDC", "0.0002 ETH", "local"])?;

    // The chain's first development account mints the token.
    let minter = Deployer::connect(&world.chain.rpc_url(), Anvil::CHAIN_ID, dev_account(0)?).await?;
    minter.mint(world.chain.token, world.consumer_wallet, FUNDS).await?;
    eventually("the wallet lacks ETH alone", async || {
        let answer = world.call(&call).await?;
        expect_free("no ETH", &answer, 402, "insufficient-funds")?;
        let detail = answer.json()["detail"].as_str().context("no detail")?.to_owned();
        Ok(detail.contains("0.0002 ETH") && detail.contains(&wallet) && !detail.contains("USDC"))
    })
    .await?;

    world.chain.fund(world.consumer_wallet, Usdc::ZERO).await?;
    eventually("the call is served", async || {
        let answer = world.call(&call).await?;
        if !answer.status.is_success() {
            expect_free("the ETH is not seen yet", &answer, 402, "insufficient-funds")?;
        }
        Ok(answer.status.is_success())
    })
    .await?;
    expect_served(&world.call(&call).await?)?;
    assert_eq!(world.upstream.hits(), 1);
    assert_eq!(world.settle_and_check(FUNDS).await?, PRICE);
    Ok(())
}

#[tokio::test]
async fn a_wallet_that_runs_dry_buys_what_it_can_and_not_one_call_more() -> Result<()> {
    let funds = Usdc::from_micros(cost(10).micros() + 1_999);
    let small = [setting("spending.deposit_min", "0.004"), setting("spending.deposit_prices", "3")].concat();
    let world = World::with(Setup { funds, consumer_settings: small, ..Setup::default() }).await?;
    for n in 1..=10 {
        expect_served(&world.get("/ok").await.with_context(|| format!("call {n}"))?)?;
    }
    for _ in 0..3 {
        let answer = world.get("/ok").await?;
        expect_free("nothing left", &answer, 402, "insufficient-funds")?;
    }
    assert_eq!(world.upstream.hits(), 10);

    world.chain.fund(world.consumer_wallet, cost(5)).await?;
    eventually("the new money is used", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    assert_eq!(world.upstream.hits(), 11);
    let total = Usdc::from_micros(funds.micros() + cost(5).micros());
    assert_eq!(world.settle_and_check(total).await?, cost(11));
    Ok(())
}
