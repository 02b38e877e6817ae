//! A payer that takes back what it owes, because claiming it costs more than it is worth.

use farthing_control::{endpoint, types::HistoryState};
use farthing_testnet::rpc;

use super::*;

#[tokio::test]
async fn what_a_payer_withdraws_unclaimed_is_booked_as_lost_and_costs_no_gas() -> Result<()> {
    let often = setting("settlement.interval_secs", "1");
    let world = World::with(Setup { owner_settings: often, ..Setup::default() }).await?;
    let url = world.chain.rpc_url();
    let payer = Payer::join(&world, 0x5e, cost(10)).await?;
    payer.served(payer.request("paid", PRICE)).await?;
    let sent = rpc::transactions_of(&url, world.owner_wallet).await?;
    payer.chain.request_close(payer.config).await?;
    payer.until_closing(payer.request("late", PRICE)).await?;
    world.mine_after(payer.config.close_delay_secs + 1).await?;
    payer.chain.withdraw(payer.config).await?;
    assert_eq!(world.chain.usdc_of(payer.key.address()).await?, FUNDS);

    let lost = async || -> Result<Vec<Usdc>> {
        let page = world.owner.control().ask(endpoint::History).await?;
        let lost = page.entries.into_iter().filter(|entry| entry.state == HistoryState::Lost);
        Ok(lost.map(|entry| entry.amount.0).collect())
    };
    eventually("the loss is booked", async || Ok(!lost().await?.is_empty())).await?;
    assert_eq!(lost().await?, [PRICE], "once, and all of it");
    // It is stored with what the chain shows, and counted once it is stored.
    eventually("it is not waited for any more", async || {
        Ok(world.owner.control().ask(endpoint::Wallet).await?.unclaimed.0.is_zero())
    })
    .await?;
    assert_eq!(
        rpc::transactions_of(&url, world.owner_wallet).await?,
        sent,
        "a claim cost more than it is worth"
    );
    let audit = world.owner.control().ask(endpoint::Audit).await?;
    ensure!(audit.violations.is_empty(), "{:?}", audit.violations);
    Ok(())
}
