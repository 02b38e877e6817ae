//! What payers try with deposits: those that the chain may still take back, and very many small ones.

use alloy::{primitives::U256, sol, sol_types::SolCall as _};
use farthing_control::endpoint;
use farthing_testnet::rpc;
use farthing_tests::calls::on_a_fixed_port;
use serde_json::{Value, json};

use super::*;

#[tokio::test]
async fn a_channel_that_was_served_before_keeps_to_what_the_owner_lists_now() -> Result<()> {
    let mut world = World::with(Setup { owner_settings: on_a_fixed_port()?, ..Setup::default() }).await?;
    let payer = Payer::join(&world, 0x66, cost(10)).await?;
    payer.served(payer.request("before", cost(1))).await?;
    world.owner.stop().await?;
    let least = ("FARTHING_SETTLEMENT__CHANNEL_MIN".to_owned(), cost(20).to_string());
    world.owner.restart_until_ready(vec![least]).await?;

    let mut listing_version = 0;
    eventually("the listing tells it", async || {
        let Ok(listing) = listing_of(&payer.network, &world).await else { return Ok(false) };
        listing_version = listing.seq;
        Ok(listing.accepts[0].min_deposit == cost(20))
    })
    .await?;
    let request = CallRequest { listing_version, ..payer.request("now", cost(2)) };
    eventually("the owner has read the chain", async || match payer.send(request.clone()).await? {
        Reply::Refused(refusal) if refusal.code == RefusalCode::DepositTooSmall => Ok(true),
        Reply::Refused(refusal) if refusal.code == RefusalCode::UnknownChannel => Ok(false),
        other => bail!("{other:?}"),
    })
    .await?;
    payer.open(payer.config, cost(10)).await?;
    eventually("the deposit is what is listed", async || {
        Ok(matches!(payer.send(request.clone()).await?, Reply::Served(_)))
    })
    .await?;
    expect_paid(&world, 2).await
}

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

sol! {
    function go(address channels, address token, address payee, uint128 amount, uint256 from, uint256 count);
}

/// Has a stranger's contract open channels with the owner, each with `deposit`.
async fn open_dust(world: &World, deposit: Usdc, count: u64) -> Result<()> {
    let url = world.chain.rpc_url();
    let artifact = concat!(env!("CARGO_MANIFEST_DIR"), "/../contracts/fixtures/Dust.json");
    let artifact: Value = serde_json::from_str(&std::fs::read_to_string(artifact)?)?;
    let accounts = rpc::call(&url, "eth_accounts", json!([])).await?;
    let send = async |transaction: Value| -> Result<Value> {
        let hash = rpc::call(&url, "eth_sendTransaction", json!([transaction])).await?;
        let mut receipt = Value::Null;
        eventually("it is mined", async || {
            receipt = rpc::call(&url, "eth_getTransactionReceipt", json!([hash])).await.unwrap_or_default();
            Ok(!receipt.is_null())
        })
        .await?;
        ensure!(receipt["status"] == "0x1", "{receipt}");
        Ok(receipt)
    };
    // Not the account that the token is minted by.
    let from = &accounts[1];
    let deployed = send(json!({ "from": from, "data": artifact["bytecode"] })).await?;
    let contract = deployed["contractAddress"].as_str().context("no contract")?.to_owned();
    world.chain.fund(contract.parse()?, Usdc::from_micros(deposit.micros() * count)).await?;
    let of = |address: Address| alloy::primitives::Address::from(*address.as_bytes());
    for first in (0..count).step_by(180) {
        let call = goCall {
            channels: of(world.chain.contract),
            token: of(world.chain.token),
            payee: of(world.owner_wallet),
            amount: deposit.micros().into(),
            from: U256::from(first),
            count: U256::from((count - first).min(180)),
        };
        let data = format!("0x{}", hex::encode(call.abi_encode()));
        send(json!({ "from": from, "to": contract, "data": data, "gas": "0xfed260" })).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_channels_of_dust_keep_out_neither_a_newcomer_nor_a_customer() -> Result<()> {
    let owner_settings = setting("settlement.channel_min", &cost(5).to_string());
    let world = World::with(Setup { owner_settings, ..Setup::default() }).await?;
    let customer = Payer::join(&world, 0x60, cost(5)).await?;
    customer.served(customer.request("before", cost(1))).await?;
    open_dust(&world, cost(5), 10_000).await?;
    eventually("the owner's books are full", async || {
        let channels = world.owner.control().ask(endpoint::Channels).await?;
        Ok(channels.len() >= 10_000)
    })
    .await?;
    let started = std::time::Instant::now();
    expect_served(&world.get("/ok").await?)?;
    println!("a newcomer is served after {:?}", started.elapsed());
    customer.served(customer.request("after", cost(2))).await?;
    let asks = async |salt: u8, deposit: Usdc| -> Result<CallRequest> {
        let config = ChannelConfig { salt: [salt; 32], ..customer.config };
        customer.deposit(config, deposit).await?;
        let channel = config.id(&customer.chain.domain());
        let payment = customer.pays(channel, PRICE, Some(customer.voucher(channel, PRICE)));
        Ok(CallRequest { payment, ..customer.request(&format!("on channel {salt}"), PRICE) })
    };
    let (equal, more) = (asks(1, cost(5)).await?, asks(2, cost(6)).await?);
    eventually("one that holds more takes a place", async || {
        Ok(matches!(customer.send(more.clone()).await?, Reply::Served(_)))
    })
    .await?;
    // The owner has seen it before the other.
    let reply = customer.send(equal).await?;
    let Reply::Refused(refusal) = reply else { bail!("it took the place of an equal: {reply:?}") };
    ensure!(
        matches!(refusal.code, RefusalCode::UnknownChannel | RefusalCode::DepositTooSmall),
        "{refusal:?}"
    );
    assert_eq!(world.upstream.hits(), 4);
    Ok(())
}
