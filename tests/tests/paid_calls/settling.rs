//! What an owner serves and claims while its wallet cannot pay the chain.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{AlertKind, Settled},
};
use farthing_testnet::rpc;
use farthing_tests::{
    calls::{cost, expect_free, expect_served, setting},
    command::farthing,
    wait::eventually,
    world::{Setup, World},
};
use serde_json::json;

async fn alerts_of_the_owner(world: &World) -> Result<Vec<AlertKind>> {
    let alerts = world.owner.control().ask(endpoint::Alerts).await?;
    Ok(alerts.into_iter().map(|alert| alert.kind).collect())
}

#[tokio::test]
async fn an_owner_without_eth_takes_on_no_more_than_a_float_and_goes_on_when_it_has_some() -> Result<()> {
    let owner_settings = setting("settlement.without_gas_max", &cost(2).to_string());
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    expect_served(&world.get("/ok").await?)?;
    ensure!(!alerts_of_the_owner(&world).await?.contains(&AlertKind::ClaimUnaffordable));

    world.set_eth(world.owner_wallet, "0x0").await?;
    eventually("the owner knows it", async || {
        Ok(alerts_of_the_owner(&world).await?.contains(&AlertKind::ClaimUnaffordable))
    })
    .await?;
    expect_served(&world.get("/ok").await?)?;
    let refused = world.get("/ok").await?;
    expect_free("beyond the float", &refused, 503, "owner-cannot-claim")?;
    ensure!(
        refused.json()["detail"].as_str().is_some_and(|detail| detail.contains("0.004 USDC")),
        "{refused:?}"
    );
    ensure!(!refused.header("retry-after").is_empty(), "{refused:?}");
    assert_eq!(world.upstream.hits(), 2);

    world.set_eth(world.owner_wallet, "0xde0b6b3a7640000").await?;
    eventually("it serves again", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    ensure!(!alerts_of_the_owner(&world).await?.contains(&AlertKind::ClaimUnaffordable));
    world.settle_for(cost(3)).await
}

/// At the usual tip and no base fee, this pays for a claim of four channels, but not for a payment and a claim.
const WEI_FOR_CLAIMS: &str = "0x2e90edd000";

#[tokio::test]
async fn an_owner_sells_to_x402_clients_only_with_eth_that_its_claims_do_not_need() -> Result<()> {
    let owner_settings = [("settlement.without_gas_max", "0.000001"), ("x402.listen", "127.0.0.1:0")];
    let owner_settings = owner_settings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    world.make_gas_cheap().await?;
    let door = world.owner.status().await?.x402_url.context("the port of x402 clients")?;
    let url = format!("{door}/{}/ok", world.api.id);
    let until = async |status: u16| {
        eventually(&format!("a client is answered {status}"), async || {
            Ok(world.client().get(&url).send().await?.status() == status)
        })
        .await
    };
    // Nothing is due: all ETH is for payments.
    world.set_eth(world.owner_wallet, WEI_FOR_CLAIMS).await?;
    until(402).await?;
    expect_served(&world.get("/ok").await?)?;
    until(503).await?;
    expect_served(&world.get("/ok").await?)?;
    world.set_eth(world.owner_wallet, "0xde0b6b3a7640000").await?;
    until(402).await?;
    world.settle_for(cost(2)).await
}

#[tokio::test]
async fn a_claim_that_the_chain_takes_back_is_claimed_again() -> Result<()> {
    let world = World::start().await?;
    world.buy(2).await?;
    let url = world.chain.rpc_url();
    let before = rpc::call(&url, "evm_snapshot", json!([])).await?;
    let claim = async || -> Result<Settled> { Ok(world.owner.control().ask(endpoint::Settle).await?) };
    assert_eq!(claim().await?.claimed.0, cost(2));
    assert_eq!(claim().await?.claimed.0, cost(0), "all is claimed");

    // The blocks since then are replaced by others, in which there is no claim.
    rpc::call(&url, "evm_revert", json!([before])).await?;
    rpc::call(&url, "anvil_mine", json!(["0x8"])).await?;
    eventually("what was taken back is due again", async || Ok(claim().await?.claimed.0 == cost(2))).await?;
    let shown = farthing(&world.owner, &["wallet", "history", "--kind", "settlement", "--json"]).await?;
    let shown = shown.ends_with(0)?.json()?;
    let states: Vec<_> = shown.as_array().context("a list")?.iter().map(|row| row["state"].clone()).collect();
    assert_eq!(states, ["confirmed", "failed"], "the newest first");
    eventually("what became of its transaction is told", async || {
        let shown = farthing(&world.owner, &["wallet", "history", "--kind", "settlement"]).await?;
        Ok(shown.ends_with(0)?.out.contains("claim on 1 channel: its transaction is no longer in any block"))
    })
    .await?;
    expect_served(&world.get("/ok").await?)?;
    world.settle_for(cost(3)).await
}
