//! Money in and out through the handle.

use std::sync::Arc;

use alloy::{primitives::hex, sol, sol_types::SolCall as _};
use farthing_chain::{
    BaseFee, ChainError, ChainStatus, ClaimRow, ContractCode, Journal, JournalError, MemoryJournal, Mined,
    Record, Role, TransactionPurpose, TxReport, gas_limit, pay_channels_address,
};
use farthing_values::{Address, ChannelConfig, Usdc};
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    anvil::Anvil,
    proxy::{LogsMode, Mode, Proxy},
    world::{Deposits, ETH, World, deployer, new_key, start, start_ready, until, until_deposited, usdc},
};

sol! {
    struct Channel { address payer; address payee; address token; address signer; uint40 closeDelay; bytes32 salt; }
    function channelId(Channel channel) view returns (bytes32);
    function DOMAIN_SEPARATOR() view returns (bytes32);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_computes_the_ids_and_domain_that_the_protocol_does() {
    let (world, chain) = World::with_payer().await;
    let config = ChannelConfig { close_delay_secs: 1_234_567, ..world.terms(9) };
    let of = |address: Address| alloy::primitives::Address::from(*address.as_bytes());
    let channel = Channel {
        payer: of(config.payer),
        payee: of(config.payee),
        token: of(config.token),
        signer: of(config.signer),
        closeDelay: 1_234_567_u64.try_into().unwrap(),
        salt: config.salt.into(),
    };
    let id = ask(&world, channelIdCall { channel }.abi_encode()).await;
    assert_eq!(id, config.id(&chain.domain()).to_string());
    let separator = ask(&world, DOMAIN_SEPARATORCall {}.abi_encode()).await;
    assert_eq!(separator, hex::encode_prefixed(chain.domain().separator()));
}

async fn ask(world: &World, data: Vec<u8>) -> String {
    let call = json!({ "to": pay_channels_address().to_string(), "data": hex::encode_prefixed(data) });
    world.anvil.rpc("eth_call", json!([call, "latest"])).await.as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_is_opened_topped_up_claimed_and_closed() {
    let (world, payer, payee) = World::with_both().await;
    let config = world.terms(1);
    let id = config.id(&payer.domain());

    let opened = payer.open_or_top_up(config, usdc(400_000)).await.unwrap();
    assert!(opened.tx_hash.is_some() && opened.fee_wei > 0 && opened.gas_used > 50_000);
    // The views are up to date before the answer comes.
    let view = payer.channel(&id).unwrap();
    assert_eq!((view.deposited, view.claimed, view.close_at_secs), (usdc(400_000), Usdc::ZERO, None));
    assert_eq!((view.role, view.config), (Role::Payer, config));
    assert_eq!(payer.balances().borrow().unwrap().usdc, usdc(99_600_000));

    payer.open_or_top_up(config, usdc(100_000)).await.unwrap();
    assert_eq!(payer.channel(&id).unwrap().deposited, usdc(500_000));
    // Decided before the top-up was known, this one is done already.
    let again = payer.deposit_onto(config, (0, usdc(400_000)), usdc(100_000)).await.unwrap();
    assert!(again.tx_hash.is_none());
    assert_eq!(payer.channel(&id).unwrap().deposited, usdc(500_000));

    // The payee finds the channel by itself, in the contract's events.
    until_deposited(&payee, id, 500_000).await;
    assert_eq!(payee.channel(&id).unwrap().role, Role::Payee);
    let claim = payee.claim_many(vec![world.row(&payee, config, 120_000)]).await.unwrap();
    assert_eq!((claim.transactions.len(), claim.refused.len()), (1, 0));
    assert_eq!(claim.claimed, [(id, usdc(120_000))]);
    assert_eq!(payee.channel(&id).unwrap().claimed, usdc(120_000));

    payee.close(world.row(&payee, config, 150_000)).await.unwrap();
    let view = payee.channel(&id).unwrap();
    assert_eq!((view.deposited, view.claimed), (usdc(150_000), usdc(150_000)));
    assert_eq!(payee.balances().borrow().unwrap().usdc, usdc(150_000));
    until(payer.balances(), |balances| balances.is_some_and(|b| b.usdc == usdc(99_850_000))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payer_gets_its_rest_back_after_the_delay_and_not_before() {
    let world = World::new().await;
    let journal = Arc::new(NotingJournal::default());
    let payer = start_ready(world.spec(), &world.payer, journal.clone()).await;
    let payee = world.payee_chain().await;
    let config = world.terms(1);
    let id = config.id(&payer.domain());
    payer.open_or_top_up(config, usdc(300_000)).await.unwrap();
    payer.request_close(config).await.unwrap();
    let close_at_secs = payer.channel(&id).unwrap().close_at_secs.unwrap();
    until(payee.channels(), |views| views.get(&id).is_some_and(|v| v.close_at_secs == Some(close_at_secs)))
        .await;

    let early = payer.withdraw(config).await.unwrap_err();
    assert!(matches!(&early, ChainError::Reverted { reason, .. } if reason.contains("TooEarly")), "{early}");

    world.anvil.rpc("evm_mine", json!([{ "timestamp": close_at_secs }])).await;
    payer.withdraw(config).await.unwrap();
    let view = payer.channel(&id).unwrap();
    assert_eq!((view.deposited, view.close_at_secs), (Usdc::ZERO, None));
    assert_eq!(payer.balances().borrow().unwrap().usdc, usdc(100_000_000));
    let noted = journal.noted.lock().clone();
    let expected = [
        (TransactionPurpose::Deposit, usdc(300_000)),
        (TransactionPurpose::RequestClose, Usdc::ZERO),
        (TransactionPurpose::Withdrawal, Usdc::ZERO),
    ];
    assert_eq!(noted, expected, "what came back is told by the channel's state");
}

/// A journal that keeps what each transaction was for, and the USDC that it moved.
#[derive(Default)]
struct NotingJournal {
    kept: MemoryJournal,
    noted: Mutex<Vec<(TransactionPurpose, Usdc)>>,
}

impl Journal for NotingJournal {
    fn put(&self, id: String, bytes: Vec<u8>) -> BoxFuture<'_, Result<(), JournalError>> {
        self.kept.put(id, bytes)
    }

    fn all(&self) -> BoxFuture<'_, Result<Vec<Record>, JournalError>> {
        self.kept.all()
    }

    fn delete(&self, id: String) -> BoxFuture<'_, Result<(), JournalError>> {
        self.kept.delete(id)
    }

    fn mined(&self, mined: Mined) -> BoxFuture<'_, Result<(), JournalError>> {
        self.noted.lock().push((mined.purpose, mined.amount));
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_already_so_on_chain_takes_no_transaction() {
    let (world, payer, payee) = World::with_both().await;
    let config = world.terms(1);
    let (first, second) = tokio::join!(
        payer.deposit_onto(config, (0, Usdc::ZERO), usdc(200_000)),
        payer.deposit_onto(config, (0, Usdc::ZERO), usdc(200_000))
    );
    let sent = [first.unwrap(), second.unwrap()].iter().filter(|report| report.tx_hash.is_some()).count();
    assert_eq!(sent, 1);
    assert_eq!(payer.channel(&config.id(&payer.domain())).unwrap().deposited, usdc(200_000));

    let row = world.row(&payee, config, 50_000);
    assert_eq!(payee.claim_many(vec![row]).await.unwrap().transactions.len(), 1);
    assert_eq!(payee.claim_many(vec![row]).await.unwrap().transactions.len(), 0);
    assert!(payee.close(row).await.unwrap().tx_hash.is_some());
    assert!(payee.close(row).await.unwrap().tx_hash.is_none());
    assert!(payer.request_close(config).await.unwrap().tx_hash.is_none());
    assert!(payer.withdraw(config).await.unwrap().tx_hash.is_none());
    assert_eq!((world.nonce(&world.payer).await, world.nonce(&world.payee).await), (1, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_row_is_left_out_of_a_batch_and_named() {
    let (world, payer, payee) = World::with_both().await;
    let mut rows = Vec::new();
    for salt in 1..=5 {
        payer.open_or_top_up(world.terms(salt), usdc(100_000)).await.unwrap();
        rows.push(world.row(&payee, world.terms(salt), 60_000));
    }
    // A voucher for less than what is claimed: its signature does not fit the amount.
    rows[2].signature = world.row(&payee, world.terms(3), 59_999).signature;
    let bad = rows[2].config.id(&payee.domain());
    let claim = payee.claim_many(rows).await.unwrap();
    assert_eq!(claim.transactions.len(), 1);
    assert_eq!(claim.refused.len(), 1);
    assert_eq!(claim.refused[0].0, bad);
    assert!(claim.refused[0].1.contains("BadSignature"), "{:?}", claim.refused);
    for (id, claimed) in claim.claimed {
        assert_eq!(claimed, if id == bad { Usdc::ZERO } else { usdc(60_000) });
    }
    assert_eq!(payee.balances().borrow().unwrap().usdc, usdc(240_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn usdc_and_eth_are_sent_once_for_each_time_it_is_asked() {
    let (_world, payer) = World::with_payer().await;
    let friend = new_key().address();
    for _ in 0..2 {
        payer.send_usdc(friend, usdc(1_000_000)).await.unwrap();
        payer.send_eth(friend, 5).await.unwrap();
    }
    let balances = payer.balances_of(friend).await.unwrap();
    assert_eq!((balances.usdc, balances.eth_wei), (usdc(2_000_000), 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poor_wallet_hears_what_to_send_where() {
    let world = World::new().await;
    let poor = new_key();
    let chain = start_ready(world.spec(), &poor, Arc::new(MemoryJournal::default())).await;
    let config = ChannelConfig { payer: poor.address(), signer: poor.address(), ..world.terms(1) };
    let error = chain.open_or_top_up(config, usdc(500_000)).await.unwrap_err();
    let (need, have) = (usdc(500_000), Usdc::ZERO);
    assert_eq!(
        error,
        ChainError::InsufficientUsdc { chain: "local".into(), wallet: poor.address(), need, have }
    );

    // With the money to pay but none for gas.
    let payer = world.payer_chain().await;
    payer.send_usdc(poor.address(), usdc(500_000)).await.unwrap();
    let error = chain.open_or_top_up(config, usdc(500_000)).await.unwrap_err();
    assert!(
        matches!(error, ChainError::InsufficientEth { have_wei: 0, wallet, .. } if wallet == poor.address())
    );
    payer.send_eth(poor.address(), ETH / 10).await.unwrap();
    chain.open_or_top_up(config, usdc(500_000)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_this_wallets_to_do_is_refused_before_any_request() {
    let (world, payer) = World::with_payer().await;
    let config = world.terms(1);
    let foreign_token = ChannelConfig { token: new_key().address(), ..config };
    let not_ours = ChannelConfig { payer: new_key().address(), ..config };
    let before = payer.request_counts();
    let refused = [
        payer.deposit_onto(not_ours, (0, Usdc::ZERO), usdc(1)).await.unwrap_err(),
        payer.deposit_onto(foreign_token, (0, Usdc::ZERO), usdc(1)).await.unwrap_err(),
        payer.deposit_onto(config, (0, Usdc::ZERO), Usdc::ZERO).await.unwrap_err(),
        payer.deposit_onto(config, (0, usdc(1)), Usdc::ZERO).await.unwrap_err(),
        payer.claim_many(vec![world.row(&payer, config, 1)]).await.unwrap_err(),
        payer.send_usdc(Address::ZERO, usdc(1)).await.unwrap_err(),
        payer.send_eth(new_key().address(), 0).await.unwrap_err(),
    ];
    assert!(refused.iter().all(|error| matches!(error, ChainError::Invalid(_))), "{refused:?}");
    let after = payer.request_counts();
    assert_eq!((after.write, after.on_demand), (before.write, before.on_demand));
}

/// A chain with a token alone; the payer has ETH and USDC, the payee nothing.
async fn without_contract() -> World {
    let anvil = Anvil::start(&[]);
    let deploying = deployer(&anvil, 0).await;
    let token = deploying.test_usdc("USD Coin", deploying.address()).await.unwrap();
    let payer = new_key();
    deploying.fund_eth(payer.address(), ETH).await.unwrap();
    deploying.mint(token, payer.address(), usdc(100_000_000)).await.unwrap();
    World { anvil, token, payer, payee: new_key() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_contract_is_told_and_can_be_deployed() {
    let world = without_contract().await;
    let chain = start(world.spec(), &world.payer, Arc::new(MemoryJournal::default())).await;
    let contract = pay_channels_address();
    until(chain.status(), |status| *status == ChainStatus::ContractMissing { contract }).await;
    let error = chain.open_or_top_up(world.terms(1), usdc(1_000)).await.unwrap_err();
    assert_eq!(error, ChainError::ContractMissing { chain: "local".into(), contract });

    // A wallet that cannot pay is told before anything is sent, as it is at the deployment itself.
    let poor = start(world.spec(), &world.payee, Arc::new(MemoryJournal::default())).await;
    for error in [poor.deployment_cost().await.unwrap_err(), poor.deploy_contract().await.unwrap_err()] {
        assert!(matches!(error, ChainError::InsufficientEth { have_wei: 0, .. }), "{error}");
    }
    assert_eq!(chain.contract_found().await.unwrap().code, ContractCode::Missing);
    let cost = chain.deployment_cost().await.unwrap();
    assert!(cost.cost_wei > 0 && (cost.cost_wei..cost.have_wei).contains(&cost.need_wei), "{cost:?}");
    let deployed = chain.deploy_contract().await.unwrap();
    assert!(deployed.tx_hash.is_some());
    assert!((cost.cost_wei / 2..=cost.cost_wei).contains(&deployed.fee_wei), "{cost:?}: {deployed:?}");
    let found = chain.contract_found().await.unwrap();
    assert_eq!((found.code, found.hash_found), (ContractCode::Right, Some(found.hash_expected)));

    until(chain.status(), |status| *status == ChainStatus::Ready).await;
    chain.open_or_top_up(world.terms(1), usdc(1_000)).await.unwrap();
    // It is there for everyone now, and deploying it again sends nothing.
    let sent = world.nonce(&world.payer).await;
    assert_eq!(chain.deploy_contract().await.unwrap(), TxReport::default());
    assert_eq!(chain.deployment_cost().await.unwrap().cost_wei, 0);
    assert_eq!(world.nonce(&world.payer).await, sent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_contract_is_deployed_neither_without_the_deployer_nor_beside_other_code() {
    let world = without_contract().await;
    let chain = start(world.spec(), &world.payer, Arc::new(MemoryJournal::default())).await;
    let contract = pay_channels_address();
    until(chain.status(), |status| *status == ChainStatus::ContractMissing { contract }).await;

    let set_code = async |address: &str, code: &str| {
        world.anvil.rpc("anvil_setCode", json!([address, code])).await;
    };
    set_code("0x4e59b44847b379578588920cA78FbF26c0B4956C", "0x").await;
    for error in [chain.deployment_cost().await.unwrap_err(), chain.deploy_contract().await.unwrap_err()] {
        assert!(matches!(error, ChainError::DeployerMissing { .. }), "{error}");
    }
    set_code(&contract.to_string(), "0x5f5ffd").await;
    assert_eq!(chain.contract_found().await.unwrap().code, ContractCode::Other);
    let error = chain.deploy_contract().await.unwrap_err();
    assert!(matches!(error, ChainError::Refused { .. }), "{error}");
    assert_eq!(world.nonce(&world.payer).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_takes_one_transaction_up_to_a_hundred_rows_and_two_above() {
    let (world, payer, payee) = World::with_both().await;
    let mut rows = Vec::new();
    for salt in 1..=101 {
        payer.open_or_top_up(world.terms(salt), usdc(10_000)).await.unwrap();
        rows.push(world.row(&payee, world.terms(salt), 1_000));
    }
    for (count, cumulative, transactions) in [(99, 1_000, 1), (100, 2_000, 1), (101, 3_000, 2)] {
        for row in &mut rows {
            *row = world.row(&payee, row.config, cumulative);
        }
        let claim = payee.claim_many(rows[..count].to_vec()).await.unwrap();
        assert_eq!(claim.transactions.len(), transactions, "{count}");
        assert!(claim.claimed.iter().all(|(_, claimed)| *claimed == usdc(cumulative)), "{count}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_top_up_never_pays_again_what_an_unseen_close_refunded() {
    let world = World::new().await;
    let payee = world.payee_chain().await;
    let config = world.terms(1);
    let id = config.id(&payee.domain());
    // A payer that looks so rarely that its view is behind, and hears of no events.
    let proxy = Proxy::to(world.anvil.port(), Mode::Pass).await;
    proxy.set_logs(LogsMode::Refuse);
    let mut spec = world.spec_at(&[proxy.url()]);
    spec.poll_interval_ms = 3_600_000;
    let payer = world.payer_at(spec).await;
    payer.open_or_top_up(config, usdc(500_000)).await.unwrap();
    payee.close(world.row(&payee, config, 100_000)).await.unwrap();
    assert_eq!(payer.channel(&id).unwrap().deposited, usdc(500_000));

    let refused = payer.open_or_top_up(config, usdc(50_000)).await.unwrap_err();
    assert!(
        matches!(&refused, ChainError::Invalid(reason) if reason.contains("closed after this was decided")),
        "{refused}"
    );
    // Decided on what the chain shows now, it is made.
    payer.refresh().await.unwrap();
    payer.open_or_top_up(config, usdc(50_000)).await.unwrap();
    let view = payer.channel(&id).unwrap();
    assert_eq!((view.deposited, view.claimed), (usdc(150_000), usdc(100_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_that_the_eth_does_not_pay_for_is_made_in_parts_the_first_rows_first() {
    let (world, payer, payee) = World::with_both().await;
    let configs: Vec<ChannelConfig> = (1..=10).map(|salt| world.terms(salt)).collect();
    for config in &configs {
        payer.open_or_top_up(*config, usdc(100_000)).await.unwrap();
    }
    let rows = || configs.iter().map(|config| world.row(&payee, *config, 1_000)).collect::<Vec<_>>();
    let set_eth = async |wei: u128| {
        let wallet = world.payee.address().to_string();
        world.anvil.rpc("anvil_setBalance", json!([wallet, format!("{wei:#x}")])).await;
        world.anvil.rpc("anvil_setNextBlockBaseFeePerGas", json!(["0x0"])).await;
        world.anvil.rpc("evm_mine", json!([])).await;
    };
    set_eth(0).await;
    let poor = payee.claim_many(rows()).await.unwrap_err();
    assert!(matches!(poor, ChainError::InsufficientEth { .. }), "{poor}");

    // At the usual tip, more than one row costs and less than all ten.
    set_eth(ETH / 5_000_000).await;
    let claim = payee.claim_many(rows()).await.unwrap();
    assert!(matches!(claim.failed, Some(ChainError::InsufficientEth { .. })), "{claim:?}");
    let claimed: Vec<u64> = claim.claimed.iter().map(|(_, claimed)| claimed.micros()).collect();
    let paid = claimed.iter().take_while(|claimed| **claimed == 1_000).count();
    assert!((1..10).contains(&paid) && claimed[paid..].iter().all(|claimed| *claimed == 0), "{claimed:?}");

    set_eth(ETH).await;
    let claim = payee.claim_many(rows()).await.unwrap();
    assert!(claim.failed.is_none() && claim.claimed.iter().all(|(_, claimed)| *claimed == usdc(1_000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_the_bid_is_what_the_next_transaction_asks_the_wallet_to_hold() {
    let (world, payer, payee) = World::with_both().await;
    let config = world.terms(1);
    payer.open_or_top_up(config, usdc(100_000)).await.unwrap();
    let row = world.row(&payee, config, 1_000);
    let wallet = world.payee.address().to_string();
    world.anvil.rpc("anvil_setBalance", json!([wallet, "0x1"])).await;
    // The endpoint tells a tip of 1 gwei, of which twice the base fee is believed, and never more than 0.01 gwei.
    for (base_fee_wei, tip_wei) in [(3_000_000_u128, 6_000_000), (3_000_000_000, 10_000_000)] {
        let fee = format!("{base_fee_wei:#x}");
        world.anvil.rpc("anvil_setNextBlockBaseFeePerGas", json!([fee])).await;
        world.anvil.rpc("evm_mine", json!([])).await;
        let is_read = |fee: &Option<BaseFee>| fee.is_some_and(|fee| fee.current_wei == base_fee_wei);
        let known = until(payee.base_fee(), is_read).await.unwrap();
        assert_eq!(known.bid_wei, 2 * base_fee_wei + tip_wei);
        let error = payee.claim_many(vec![row]).await.unwrap_err();
        let ChainError::InsufficientEth { need_wei, .. } = error else { panic!("{error}") };
        assert_eq!(need_wei % known.bid_wei, 0, "{need_wei} for a bid of {}", known.bid_wei);
        let claim = u128::from(gas_limit(84_000)) * known.bid_wei;
        assert!(
            (claim * 3 / 4..=claim).contains(&need_wei),
            "{need_wei}, where {claim} were expected at most"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_runs_out_of_time_says_nothing_of_what_the_contract_pays() {
    let (world, proxy) = World::behind(Mode::Pass).await;
    let payer = world.payer_chain().await;
    let journal = Arc::new(MemoryJournal::default());
    let payee = start_ready(world.spec_at(&[proxy.url()]), &world.payee, journal).await;
    payer.open_or_top_up(world.terms(1), usdc(100_000)).await.unwrap();
    let row = world.row(&payee, world.terms(1), 60_000);
    until_deposited(&payee, world.terms(1).id(&payee.domain()), 100_000).await;
    proxy.set(Mode::TimeOutClaims);
    let claim = payee.claim_many(vec![row]).await;
    assert!(claim.is_err(), "nothing was claimed, and nothing refused: {claim:?}");
    assert!(payee.refused_claims(&[row]).await.is_err());
    proxy.set(Mode::Pass);
    assert_eq!(payee.refused_claims(&[row]).await, Ok(Vec::new()));
    let unsigned = ClaimRow { signature: world.row(&payee, world.terms(1), 50_000).signature, ..row };
    assert_eq!(payee.refused_claims(&[row, unsigned]).await.unwrap().len(), 1);
    let claim = payee.claim_many(vec![row]).await.unwrap();
    assert_eq!((claim.transactions.len(), claim.refused.len()), (1, 0));
}
