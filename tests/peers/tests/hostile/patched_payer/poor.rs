//! What an owner claims and takes on whose ETH pays for some of its claims.

use farthing_chain::deploy::dev_account;
use farthing_control::{endpoint, types::HistoryState};
use farthing_protocol::keccak256;
use farthing_testnet::rpc;
use serde_json::json;

use super::*;

/// At the usual tip and no base fee, this pays for a claim of four channels and not for one of five.
const WEI_FOR_FOUR: &str = "0x2e90edd000";

async fn has_alert(world: &World, kind: &str) -> Result<bool> {
    let alerts = world.owner.control().ask(endpoint::Alerts).await?;
    Ok(alerts.iter().any(|alert| alert.kind.name() == kind))
}

async fn is_alarmed(world: &World) -> Result<bool> {
    has_alert(world, "claim-unaffordable").await
}

/// Has the token's issuer call `function(address)` with the owner's wallet.
async fn tell_the_token(world: &World, function: &str) -> Result<()> {
    let selector = keccak256(&[format!("{function}(address)").as_bytes()]);
    let wallet = hex::encode(world.owner_wallet.as_bytes());
    let data = format!("0x{}{wallet:0>64}", hex::encode(&selector[..4]));
    let issuer = dev_account(0)?.address().to_string();
    let transaction = json!([{ "from": issuer, "to": world.chain.token.to_string(), "data": data }]);
    rpc::call(&world.chain.rpc_url(), "eth_sendTransaction", transaction).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wallet_whose_eth_pays_for_some_claims_makes_the_dearest_and_takes_on_no_more_until_it_has_some()
-> Result<()> {
    let owner_settings = setting("settlement.without_gas_max", &cost(1).to_string());
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x64, cost(1)).await?;
    let call = |id: &str, channel: ChannelId, calls: u64| {
        let cumulative = cost(calls);
        let payment = payer.pays(channel, cumulative, Some(payer.voucher(channel, cumulative)));
        CallRequest { payment, ..payer.request(id, cumulative) }
    };
    let mut channels = Vec::new();
    for salt in 1..=10 {
        let config = ChannelConfig { salt: [salt; 32], ..payer.config };
        payer.open(config, cost(4)).await?;
        channels.push(config.id(&payer.chain.domain()));
    }
    world.make_gas_cheap().await?;
    // Four of them owe more than the others.
    for (n, channel) in channels.iter().enumerate() {
        for calls in 1..=(if n % 3 == 0 { 2 } else { 1 }) {
            payer.served(call(&format!("{n}/{calls}"), *channel, calls)).await?;
        }
    }
    ensure!(!is_alarmed(&world).await?);

    world.set_eth(world.owner_wallet, WEI_FOR_FOUR).await?;
    eventually("the owner says that ETH is short", async || is_alarmed(&world).await).await?;
    payer.refused("beyond its ETH", call("more", channels[1], 2), RefusalCode::OwnerCannotClaim).await?;
    // What many channels owe keeps nobody from calling whose claim is among those that are made.
    payer.served(call("dear", channels[0], 3)).await?;
    let settled = world.owner.control().ask(endpoint::Settle).await;
    ensure!(
        settled.is_err_and(|error| format!("{error:?}").contains("ETH")),
        "it says why not all is claimed"
    );
    assert_eq!(world.chain.usdc_of(world.owner_wallet).await?, cost(9), "the dearest four");

    world.set_eth(world.owner_wallet, "0xde0b6b3a7640000").await?;
    eventually("the owner has enough", async || Ok(!is_alarmed(&world).await?)).await?;
    payer.served(call("more", channels[1], 2)).await?;
    let settled = world.owner.control().ask(endpoint::Settle).await?;
    assert_eq!(settled.claimed.0, cost(7));
    Ok(())
}

/// Of a base fee of 0.005 gwei and a tip of 0.01 gwei, a claim of one row asks for some 0.0000025 ETH. This is more than half
/// of it.
const WEI_FOR_NO_TIP: &str = "0x174876e8000";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wallet_whose_eth_pays_for_a_claim_without_its_tip_is_told_and_takes_on_no_more() -> Result<()> {
    let owner_settings = setting("settlement.without_gas_max", &cost(2).to_string());
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x65, cost(10)).await?;
    payer.served(payer.request("first", cost(1))).await?;

    let base_fee = json!([format!("{:#x}", 5_000_000)]);
    rpc::call(&world.chain.rpc_url(), "anvil_setNextBlockBaseFeePerGas", base_fee).await?;
    world.set_eth(world.owner_wallet, WEI_FOR_NO_TIP).await?;
    let settled = world.owner.control().ask(endpoint::Settle).await;
    ensure!(settled.is_err_and(|error| format!("{error:?}").contains("ETH")), "the claim is not paid for");
    eventually("the owner says that ETH is short", async || is_alarmed(&world).await).await?;
    payer.served(payer.request("second", cost(2))).await?;
    payer.refused("beyond", payer.request("third", cost(3)), RefusalCode::OwnerCannotClaim).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_the_token_blocks_is_told_and_takes_on_no_more_until_it_is_paid() -> Result<()> {
    let mut setup = fixed_owner()?;
    setup.owner_settings.extend(setting("settlement.without_gas_max", &cost(2).to_string()));
    let mut world = World::with(setup).await?;
    let payer = Payer::join(&world, 0x66, cost(10)).await?;
    let other = Payer::join(&world, 0x67, cost(10)).await?;
    for calls in 1..=2 {
        payer.served(payer.request(&format!("{calls}"), cost(calls))).await?;
    }

    tell_the_token(&world, "blacklist").await?;
    let settled = world.owner.control().ask(endpoint::Settle).await;
    let said = format!("{:?}", settled.err());
    ensure!(said.contains("the contract refuses all claims (1 channel)"), "{said}");
    ensure!(has_alert(&world, "claim-refused").await?, "the owner is told");
    let history = world.owner.control().ask(endpoint::History.with("kind", "settlement")).await?;
    ensure!(
        !history.entries.is_empty()
            && history.entries.iter().all(|entry| entry.state == HistoryState::Failed),
        "no settlement that paid nothing is confirmed: {history:?}"
    );
    payer.refused("beyond", payer.request("beyond", cost(3)), RefusalCode::OwnerCannotClaim).await?;
    // Whoever comes anew would be served for nothing just the same.
    other.refused("anew", other.request("anew", cost(1)), RefusalCode::OwnerCannotClaim).await?;

    // A restart does not forget it.
    world.owner.stop().await?;
    world.owner.restart_until_ready(Vec::new()).await?;
    eventually("the owner knows it again", async || has_alert(&world, "claim-refused").await).await?;
    // The channel that it owes nothing is read from the chain again.
    other.until_read().await?;
    other.refused("after a restart", other.request("after", cost(1)), RefusalCode::OwnerCannotClaim).await?;

    tell_the_token(&world, "unBlacklist").await?;
    let settled = world.owner.control().ask(endpoint::Settle).await?;
    assert_eq!((settled.claimed.0, settled.refused.len()), (cost(2), 0));
    ensure!(!has_alert(&world, "claim-refused").await?, "it is over");
    payer.served(payer.request("third", cost(3))).await?;
    other.served(other.request("first", cost(1))).await?;
    Ok(())
}
