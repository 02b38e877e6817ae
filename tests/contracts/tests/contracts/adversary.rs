//! What strangers, hostile tokens, delegated accounts and a censoring issuer may try, and what they get.

use alloy::{
    eips::eip7702::Authorization,
    network::TransactionBuilder7702 as _,
    primitives::{Address, Bytes, U256},
    rpc::types::TransactionRequest,
    signers::{SignerSync as _, local::PrivateKeySigner},
    sol_types::{SolCall as _, SolError as _},
};
use anyhow::{Result, ensure};
use farthing_contract_tests::{
    CHAIN_ID, HostileToken,
    PayChannels::{self, Channel, Claim},
    TestAccount, TestUsdc, events,
};

use crate::world::{State, World};

/// A channel in a token that does what the test says, and the payer's riches in it.
async fn hostile_world() -> Result<(World, Channel)> {
    let world = World::start().await?;
    let token = world.chain.deploy(HostileToken::BYTECODE.clone()).await?;
    let mint = HostileToken::mintCall { to: world.payer.address(), value: U256::from(1_000_000) };
    world.chain.send(world.payer.address(), token, &mint).await?;
    let terms = Channel { token, ..world.terms() };
    Ok((world, terms))
}

async fn hostile_balance(world: &World, token: Address, account: Address) -> Result<U256> {
    world.chain.read(token, &HostileToken::balanceOfCall(account)).await
}

fn deposit(terms: &Channel, amount: u128) -> PayChannels::depositCall {
    PayChannels::depositCall { channel: terms.clone(), amount }
}

#[tokio::test]
async fn a_relayed_top_up_does_not_touch_a_pending_close() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.mint(terms.payer, 500).await?;
    let top_up = world.authorize(&terms, 500, 1).await?;
    let close_at = world.request_close(&terms).await?;
    world.chain.mine_at(close_at - 10).await?;

    world.send(world.stranger.address(), &top_up).await?;
    assert_eq!(world.state(&terms).await?, State { deposited: 1_500, claimed: 0, close_at });
    world.chain.mine_at(close_at).await?;
    world.send(terms.payer, &PayChannels::withdrawCall { channel: terms.clone() }).await?;
    assert_eq!(world.balances().await?, (1_500, 0, 0), "the top-up comes back with the rest");
    Ok(())
}

#[tokio::test]
async fn a_close_cannot_be_prepared_before_there_is_a_deposit() -> Result<()> {
    // Otherwise a payer could let the delay pass first, and deposit and withdraw in one breath later.
    let world = World::start().await?;
    let terms = world.terms();
    let request = PayChannels::requestCloseCall { channel: terms.clone() };
    world.refuses::<PayChannels::NotOpen>(terms.payer, &request).await?;
    world.open(&terms, 100).await?;
    world.claim(world.voucher(&terms, 100, 100)?).await?;
    world.refuses::<PayChannels::NotOpen>(terms.payer, &request).await
}

#[tokio::test]
async fn a_blacklisted_payer_blocks_neither_claim_nor_close() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.blacklist(terms.payer).await?;
    world.claim(world.voucher(&terms, 200, 200)?).await?;
    let call = PayChannels::closeCall { claim_: world.voucher(&terms, 300, 300)? };
    let receipt = world.send(terms.payee, &call).await?;

    assert_eq!(world.balances().await?, (0, 300, 700), "the payee has its money, the refund waits");
    let now = world.chain.now().await?;
    assert_eq!(world.state(&terms).await?, State { deposited: 1_000, claimed: 300, close_at: now });
    let [event] = &events::<PayChannels::RefundKept>(&receipt)[..] else {
        panic!("one kept refund, one event")
    };
    assert_eq!((event.channelId, event.refund), (world.id(&terms), 700));
    assert!(events::<PayChannels::Closed>(&receipt).is_empty());

    let withdraw = PayChannels::withdrawCall { channel: terms.clone() };
    world.refuses::<PayChannels::TransferFailed>(terms.payer, &withdraw).await?;
    world.unblacklist(terms.payer).await?;
    world.send(terms.payer, &withdraw).await?;
    assert_eq!(world.balances().await?, (700, 300, 0), "without another delay");
    Ok(())
}

#[tokio::test]
async fn a_kept_refund_is_still_good_for_the_payees_vouchers() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.blacklist(terms.payer).await?;
    let nothing = Claim { channel: terms.clone(), ..Claim::default() };
    world.send(terms.payee, &PayChannels::closeCall { claim_: nothing.clone() }).await?;
    world.claim(world.voucher(&terms, 250, 250)?).await?;
    world.unblacklist(terms.payer).await?;
    world.send(terms.payee, &PayChannels::closeCall { claim_: nothing }).await?;
    assert_eq!(world.balances().await?, (750, 250, 0), "the payee may try the refund again");
    assert_eq!(world.state(&terms).await?, State { deposited: 250, claimed: 250, close_at: 0 });
    Ok(())
}

#[tokio::test]
async fn one_blacklisted_payer_in_a_batch_blocks_nobody() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.blacklist(terms.payer).await?;
    let call =
        PayChannels::claimManyCall { token: terms.token, claims: vec![world.voucher(&terms, 400, 400)?] };
    world.send(terms.payee, &call).await?;
    assert_eq!(world.balance(terms.payee).await?, 400);
    Ok(())
}

#[tokio::test]
async fn a_blacklisted_payee_does_not_hold_the_payers_money() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    world.blacklist(terms.payee).await?;
    let close_at = world.request_close(&terms).await?;
    world.chain.mine_at(close_at).await?;
    world.send(terms.payer, &PayChannels::withdrawCall { channel: terms.clone() }).await?;
    assert_eq!(world.balances().await?, (1_000, 0, 0));
    Ok(())
}

/// Turns a key's account into one with code, as EIP-7702 lets it.
async fn delegate(world: &World, account: &PrivateKeySigner, accepts: bool) -> Result<()> {
    let code = world.chain.deploy(TestAccount::BYTECODE.clone()).await?;
    let nonce: U256 = world.chain.request("eth_getTransactionCount", (account.address(), "latest")).await?;
    let authorization = Authorization { chain_id: U256::from(CHAIN_ID), address: code, nonce: nonce.to() };
    let signature = account.sign_hash_sync(&authorization.signature_hash())?;
    let mut transaction = TransactionRequest::default()
        .from(world.stranger.address())
        .to(account.address())
        .input(Bytes::from(TestAccount::setAcceptsCall { accepts_: accepts }.abi_encode()).into());
    transaction.set_authorization_list(vec![authorization.into_signed(signature)]);
    world.chain.transact(transaction).await?;
    let code: Bytes = world.chain.request("eth_getCode", (account.address(), "latest")).await?;
    ensure!(code.starts_with(&[0xef, 0x01, 0x00]), "the account was not delegated: {code}");
    Ok(())
}

#[tokio::test]
async fn a_voucher_still_claims_after_its_signer_delegated_its_account() -> Result<()> {
    let (world, terms) = World::with_channel(1_000).await?;
    let voucher = world.voucher(&terms, 400, 400)?;
    delegate(&world, &world.payer, false).await?;

    world.claim(voucher).await?;
    assert_eq!(world.balances().await?, (0, 400, 600));
    let last = PayChannels::closeCall { claim_: world.voucher(&terms, 500, 500)? };
    world.send(terms.payee, &last).await?;
    assert_eq!(world.balances().await?, (500, 500, 0));
    Ok(())
}

#[tokio::test]
async fn a_delegated_payer_opens_by_its_accounts_own_word() -> Result<()> {
    let world = World::start().await?;
    world.mint(world.payer.address(), 1_000).await?;
    let call = world.authorize(&world.terms(), 700, 1).await?;
    delegate(&world, &world.payer, false).await?;
    world.refuses::<TestUsdc::InvalidSignature>(world.stranger.address(), &call).await?;
    world
        .chain
        .send(
            world.stranger.address(),
            world.payer.address(),
            &TestAccount::setAcceptsCall { accepts_: true },
        )
        .await?;
    world.send(world.stranger.address(), &call).await?;
    assert_eq!(world.state(&world.terms()).await?.deposited, 700);
    Ok(())
}

#[tokio::test]
async fn no_function_can_be_reentered_from_a_token() -> Result<()> {
    let (world, terms) = hostile_world().await?;
    let claim_ = world.voucher(&terms, 5, 5)?;
    let consent = PayChannels::Consent::default;
    let entries: [(&str, Vec<u8>); 9] = [
        ("deposit", deposit(&terms, 5).abi_encode()),
        (
            "depositWithAuthorization",
            PayChannels::depositWithAuthorizationCall {
                channel: terms.clone(),
                amount: 5,
                ..Default::default()
            }
            .abi_encode(),
        ),
        ("claim", PayChannels::claimCall { claim_: claim_.clone() }.abi_encode()),
        (
            "claimMany",
            PayChannels::claimManyCall { token: terms.token, claims: vec![claim_.clone()] }.abi_encode(),
        ),
        ("close", PayChannels::closeCall { claim_: claim_.clone() }.abi_encode()),
        ("closeBySignature", PayChannels::closeBySignatureCall { claim_, consent: consent() }.abi_encode()),
        (
            "requestCloseBySignature",
            PayChannels::requestCloseBySignatureCall { channel: terms.clone(), consent: consent() }
                .abi_encode(),
        ),
        ("requestClose", PayChannels::requestCloseCall { channel: terms.clone() }.abi_encode()),
        ("withdraw", PayChannels::withdrawCall { channel: terms.clone() }.abi_encode()),
    ];
    let mut deposited = 0;
    for (name, data) in entries {
        let hook = HostileToken::setHookCall { target: world.chain.channels, data: data.into() };
        world.chain.send(terms.payer, terms.token, &hook).await?;
        world.send(terms.payer, &deposit(&terms, 100)).await?;
        deposited += 100;
        let succeeded = world.chain.read(terms.token, &HostileToken::hookSucceededCall {}).await?;
        let answer = world.chain.read(terms.token, &HostileToken::hookAnswerCall {}).await?;
        assert!(!succeeded, "{name}");
        assert_eq!(answer[..], PayChannels::Reentered::SELECTOR, "{name}");
        assert_eq!(world.state(&terms).await?, State { deposited, ..State::default() }, "{name}");
    }
    // The same from every payout, where the books are already written.
    let payouts: [Vec<u8>; 3] = [
        PayChannels::claimCall { claim_: world.voucher(&terms, 10, 10)? }.abi_encode(),
        PayChannels::claimManyCall { token: terms.token, claims: vec![world.voucher(&terms, 20, 20)?] }
            .abi_encode(),
        PayChannels::closeCall { claim_: world.voucher(&terms, 30, 30)? }.abi_encode(),
    ];
    for data in payouts {
        let hook = HostileToken::setHookCall { target: world.chain.channels, data: data.clone().into() };
        world.chain.send(terms.payer, terms.token, &hook).await?;
        let transaction = TransactionRequest::default()
            .from(terms.payee)
            .to(world.chain.channels)
            .input(Bytes::from(data).into());
        world.chain.transact(transaction).await?;
        let answer = world.chain.read(terms.token, &HostileToken::hookAnswerCall {}).await?;
        assert_eq!(answer[..], PayChannels::Reentered::SELECTOR);
    }
    assert_eq!(hostile_balance(&world, terms.token, terms.payee).await?, U256::from(30));
    assert_eq!(hostile_balance(&world, terms.token, world.chain.channels).await?, U256::ZERO);
    Ok(())
}

#[tokio::test]
async fn a_token_that_keeps_a_fee_is_counted_by_what_arrives() -> Result<()> {
    let (world, terms) = hostile_world().await?;
    let fee = |units: u64| HostileToken::setFeeCall { units: U256::from(units) };
    world.chain.send(terms.payer, terms.token, &fee(30)).await?;
    world.send(terms.payer, &deposit(&terms, 1_000)).await?;
    assert_eq!(world.state(&terms).await?.deposited, 970);
    world.refuses::<PayChannels::NothingReceived>(terms.payer, &deposit(&terms, 30)).await?;
    world.claim(world.voucher(&terms, 1_000, 1_000)?).await?;
    assert_eq!(
        hostile_balance(&world, terms.token, world.chain.channels).await?,
        U256::ZERO,
        "not one unit more"
    );
    Ok(())
}

#[tokio::test]
async fn money_sent_to_the_contract_by_mistake_belongs_to_no_channel() -> Result<()> {
    let (world, terms) = World::with_channel(100).await?;
    world.mint(world.chain.channels, 900).await?;
    world.claim(world.voucher(&terms, 1_000, 1_000)?).await?;
    assert_eq!(world.balances().await?, (0, 100, 900));
    world.open(&terms, 50).await?;
    assert_eq!(world.state(&terms).await?.deposited, 150, "a deposit counts its own money only");
    Ok(())
}

#[tokio::test]
async fn a_token_that_answers_nothing_works_and_one_that_answers_no_is_believed() -> Result<()> {
    let (world, terms) = hostile_world().await?;
    let (payer, token) = (terms.payer, terms.token);
    let answer = async |answer: u8| {
        world.chain.send(payer, token, &HostileToken::setAnswerCall { answer_: answer }).await
    };
    let [yes, nothing, no, two] = [0, 1, 2, 3];

    answer(nothing).await?;
    world.send(payer, &deposit(&terms, 1_000)).await?;
    world.claim(world.voucher(&terms, 100, 100)?).await?;

    for refusing in [no, two] {
        answer(refusing).await?;
        world.refuses::<PayChannels::TransferFailed>(payer, &deposit(&terms, 10)).await?;
        let claim_ = PayChannels::claimCall { claim_: world.voucher(&terms, 200, 200)? };
        world.refuses::<PayChannels::TransferFailed>(terms.payee, &claim_).await?;
    }
    answer(yes).await?;
    world.claim(world.voucher(&terms, 200, 200)?).await?;
    assert_eq!(hostile_balance(&world, token, terms.payee).await?, U256::from(200));
    Ok(())
}

#[tokio::test]
async fn one_tokens_channel_never_pays_from_anothers_escrow() -> Result<()> {
    let (world, worthless) = hostile_world().await?;
    world.open(&world.terms(), 1_000).await?;
    world.send(worthless.payer, &deposit(&worthless, 1_000)).await?;
    let claims = vec![world.voucher(&worthless, 1_000, 1_000)?];
    let call = PayChannels::claimManyCall { token: world.chain.usdc, claims };
    assert_eq!(world.view(world.payee.address(), &call).await?, U256::ZERO);
    world.claim(world.voucher(&worthless, 1_000, 1_000)?).await?;
    assert_eq!(world.balances().await?, (0, 0, 1_000));
    Ok(())
}

#[tokio::test]
async fn a_starved_refund_never_costs_the_payer_its_money() -> Result<()> {
    // The payee chooses the gas. Too little for the refund may at worst keep it, withdrawable at once.
    let (world, terms) = World::with_channel(1_000).await?;
    let data = Bytes::from(PayChannels::closeCall { claim_: world.voucher(&terms, 300, 300)? }.abi_encode());
    let mut snapshot: U256 = world.chain.request("evm_snapshot", ()).await?;
    let (mut kept, mut closed, mut reverted) = (0, 0, 0);
    for gas in (40_000..140_000).step_by(1_000) {
        let transaction = TransactionRequest::default()
            .from(terms.payee)
            .to(world.chain.channels)
            .gas_limit(gas)
            .input(data.clone().into());
        match world.chain.transact(transaction).await {
            Err(_) => reverted += 1,
            Ok(receipt) if events::<PayChannels::RefundKept>(&receipt).is_empty() => closed += 1,
            Ok(_) => kept += 1,
        }
        let state = world.state(&terms).await?;
        let (payer, payee, escrow) = world.balances().await?;
        assert_eq!(payer + payee + escrow, 1_000);
        assert_eq!(escrow, state.deposited - state.claimed, "at {gas} gas");
        assert!(escrow == 0 || payee == 0 || state.close_at != 0, "at {gas} gas the rest is withdrawable");
        let _: bool = world.chain.request("evm_revert", (snapshot,)).await?;
        snapshot = world.chain.request("evm_snapshot", ()).await?;
    }
    println!("close by gas limit: {reverted} reverted, {kept} kept the refund, {closed} closed");
    assert!(reverted > 0 && closed > 0);
    Ok(())
}
