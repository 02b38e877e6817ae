//! What a payer tries with deposits: those that the chain may still take back.

use farthing::testnet::rpc;
use serde_json::json;

use super::*;

#[tokio::test]
async fn a_deposit_that_the_chain_may_take_back_serves_each_payer_up_to_a_bound() -> Result<()> {
    let bound = setting("settlement.unsafe_max", &cost(2).to_string());
    let owner_settings = [setting("chain.safe_tag", "true"), bound].concat();
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x59, cost(10)).await?;
    let second = ChannelConfig { salt: [1; 32], ..payer.config };
    payer.open(second, cost(10)).await?;
    let second = second.id(&payer.chain.domain());
    let on_second = |id: &str, calls| CallRequest {
        payment: payer.pays(second, cost(calls), Some(payer.voucher(second, cost(calls)))),
        ..payer.request(id, PRICE)
    };
    payer.served(payer.request("first", cost(1))).await?;
    payer.served(on_second("second", 1)).await?;
    let refusal =
        payer.refused("third", payer.request("third", cost(2)), RefusalCode::DepositNotSafe).await?;
    ensure!(refusal.detail.contains("0.004 USDC"), "{}", refusal.detail);
    ensure!(refusal.retry_after_ms.is_some(), "{refusal:?}");
    payer.refused("on the other channel", on_second("fourth", 2), RefusalCode::DepositNotSafe).await?;

    // An honest payer has a bound of its own, and hears in words what to do.
    for _ in 0..2 {
        expect_served(&world.get("/ok").await?)?;
    }
    expect_free("beyond the bound", &world.get("/ok").await?, 402, "deposit-not-safe")?;
    assert_eq!(world.upstream.hits(), 4);

    // anvil's safe block is 32 behind its head.
    rpc::call(&world.chain.rpc_url(), "anvil_mine", json!(["0x40"])).await?;
    eventually("the deposit is safe", async || Ok(world.get("/ok").await?.status.is_success())).await?;
    for request in [payer.request("third", cost(10)), on_second("fourth", 10)] {
        let is_served = async || Ok(matches!(payer.send(request.clone()).await?, Reply::Served(_)));
        eventually("so are the others", is_served).await?;
    }
    expect_paid(&world, 7).await
}
