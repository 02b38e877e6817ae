//! Payments by EIP-3009: taken once, by anybody, and judged by the token's events.

use alloy::{
    primitives::{Address as EthAddress, B256, U256, hex},
    sol,
    sol_types::{SolCall as _, SolStruct as _, eip712_domain},
};
use farthing_chain::{ChainError, ChainHandle, PaymentState, TransferState};
use farthing_values::{Address, SignedTransfer, TransferAuthorization};
use serde_json::{Value, json};

use crate::world::{World, deployer, new_key, until_true, usdc};

sol! {
    function transferWithAuthorization(
        address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v,
        bytes32 r, bytes32 s
    );
    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s);
    struct CancelAuthorization { address authorizer; bytes32 nonce; }
}

/// A payment of 2,000 by the world's payer.
async fn signed(world: &World, chain: &ChainHandle, to: Address, nonce: u8) -> SignedTransfer {
    let domain = chain.token_domain().await.unwrap();
    let authorization = TransferAuthorization {
        from: world.payer.address(),
        to,
        value: usdc(2_000),
        valid_after_secs: 0,
        valid_before_secs: 4_000_000_000,
        nonce: [nonce; 32],
    };
    authorization.sign(&domain, &world.payer)
}

/// Has a stranger bring a payment to the token.
async fn brought_by_a_stranger(world: &World, payment: &SignedTransfer) {
    mined(world, transfer(payment)).await;
}

fn transfer(payment: &SignedTransfer) -> Vec<u8> {
    let SignedTransfer { authorization, signature } = payment;
    let of = |address: Address| EthAddress::from(*address.as_bytes());
    let bytes = signature.as_bytes();
    let call = transferWithAuthorizationCall {
        from: of(authorization.from),
        to: of(authorization.to),
        value: U256::from(authorization.value.micros()),
        validAfter: U256::from(authorization.valid_after_secs),
        validBefore: U256::from(authorization.valid_before_secs),
        nonce: authorization.nonce.into(),
        v: bytes[64],
        r: B256::from_slice(&bytes[..32]),
        s: B256::from_slice(&bytes[32..64]),
    };
    call.abi_encode()
}

/// Has a stranger bring two payments to the token, one after the other in one transaction.
async fn brought_together(world: &World, payments: [&SignedTransfer; 2]) {
    let [first, second] = payments.map(transfer);
    let token = hex::encode(world.token.as_bytes());
    let call = |at: usize, bytes: usize| format!("6000600061{bytes:04x}61{at:04x}600073{token}5af150");
    let calls = [call(0, first.len()), call(first.len(), second.len())].concat();
    // Copies what it is called with into its memory, and calls the token with each part of it.
    let code = format!("0x366000600037{calls}00");
    let batch = new_key().address();
    world.anvil.rpc("anvil_setCode", json!([batch.to_string(), code])).await;
    has_mined(world, &sent_to(world, batch, [first, second].concat()).await).await;
}

/// Sends a stranger's transaction, and waits for its block.
async fn mined(world: &World, data: Vec<u8>) {
    has_mined(world, &sent(world, data).await).await;
}

async fn has_mined(world: &World, hash: &Value) {
    until_true(|| async { !world.anvil.rpc("eth_getTransactionReceipt", json!([hash])).await.is_null() })
        .await;
}

/// Sends a stranger's transaction to the token, which goes before all others of its block.
async fn sent(world: &World, data: Vec<u8>) -> Value {
    sent_to(world, world.token, data).await
}

async fn sent_to(world: &World, to: Address, data: Vec<u8>) -> Value {
    let accounts = world.anvil.rpc("eth_accounts", json!([])).await;
    let transaction = json!({
        "from": accounts[5].as_str().unwrap(),
        "to": to.to_string(),
        "data": hex::encode_prefixed(data),
        "gas": "0x7a120",
        "gasPrice": "0x174876e800",
    });
    world.anvil.rpc("eth_sendTransaction", json!([transaction])).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_taken_once_however_often_it_is_asked_for() {
    let world = World::new().await;
    let payee = world.payee_chain().await;
    let payment = signed(&world, &payee, world.payee.address(), 1).await;
    assert_eq!(payee.payment_refusal(&payment).await.unwrap(), None);
    assert_eq!(payee.payment_state(&payment.authorization, 0).await.unwrap(), PaymentState::Open);
    let first = payee.take_payment(payment, 0).await.unwrap();
    assert!(matches!(first, PaymentState::Paid(_)), "{first:?}");
    assert_eq!(payee.take_payment(payment, 0).await.unwrap(), first);
    assert_eq!(payee.payment_state(&payment.authorization, 0).await.unwrap(), first);
    assert_eq!(world.nonce(&world.payee).await, 1, "one transaction");
    assert_eq!(payee.balances_of(world.payee.address()).await.unwrap().usdc, usdc(2_000));
    let refusal = payee.payment_refusal(&payment).await.unwrap().unwrap();
    assert!(refusal.contains("AuthorizationUsedOrCanceled"), "{refusal}");
    payee.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_a_stranger_brought_first_counts_as_paid() {
    let world = World::new().await;
    let payee = world.payee_chain().await;
    let payment = signed(&world, &payee, world.payee.address(), 1).await;
    brought_by_a_stranger(&world, &payment).await;
    let taken = payee.take_payment(payment, 0).await.unwrap();
    assert!(matches!(taken, PaymentState::Paid(_)), "{taken:?}");
    assert_eq!(world.nonce(&world.payee).await, 0, "this wallet paid no gas for it");
    assert_eq!(payee.balances_of(world.payee.address()).await.unwrap().usdc, usdc(2_000));
    payee.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nonce_that_its_payer_used_elsewhere_or_cancelled_is_no_payment() {
    let world = World::new().await;
    let payee = world.payee_chain().await;
    let payment = signed(&world, &payee, world.payee.address(), 1).await;
    let elsewhere = signed(&world, &payee, new_key().address(), 1).await;
    brought_by_a_stranger(&world, &elsewhere).await;
    // Another payment of the same amount counts for itself.
    let other = signed(&world, &payee, world.payee.address(), 2).await;
    brought_by_a_stranger(&world, &other).await;
    let taken = payee.take_payment(payment, 0).await.unwrap();
    assert!(matches!(&taken, PaymentState::Refused(why) if why.contains("something else")), "{taken:?}");

    let third = signed(&world, &payee, world.payee.address(), 3).await;
    let domain = payee.token_domain().await.unwrap();
    let eip712 = eip712_domain! {
        name: domain.name.clone(),
        version: domain.version.clone(),
        chain_id: domain.chain_id,
        verifying_contract: EthAddress::from(*domain.token.as_bytes()),
    };
    let authorizer = EthAddress::from(*world.payer.address().as_bytes());
    let nonce = B256::from([3; 32]);
    let cancel = CancelAuthorization { authorizer, nonce };
    let digest = cancel.eip712_signing_hash(&eip712);
    let signature = world.payer.sign(&digest.0);
    let bytes = signature.as_bytes();
    let word = |from: usize| B256::from_slice(&bytes[from..from + 32]);
    let call = cancelAuthorizationCall { authorizer, nonce, v: bytes[64], r: word(0), s: word(32) };
    mined(&world, call.abi_encode()).await;
    let taken = payee.take_payment(third, 0).await.unwrap();
    assert!(matches!(&taken, PaymentState::Refused(why) if why.contains("cancelled")), "{taken:?}");
    payee.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_payments_in_one_transaction_each_counts_for_itself() {
    let world = World::new().await;
    let payee = world.payee_chain().await;
    let payment = signed(&world, &payee, world.payee.address(), 1).await;
    let elsewhere = signed(&world, &payee, new_key().address(), 1).await;
    let other = signed(&world, &payee, world.payee.address(), 2).await;
    brought_together(&world, [&elsewhere, &other]).await;
    let taken = payee.take_payment(payment, 0).await.unwrap();
    assert!(matches!(&taken, PaymentState::Refused(why) if why.contains("something else")), "{taken:?}");
    let taken = payee.take_payment(other, 0).await.unwrap();
    assert!(matches!(taken, PaymentState::Paid(_)), "{taken:?}");
    assert_eq!(payee.balances_of(world.payee.address()).await.unwrap().usdc, usdc(2_000));
    payee.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_the_payer_cannot_make_costs_no_gas_and_is_taken_once_it_can() {
    let (world, payer, payee) = World::with_both().await;
    let payment = signed(&world, &payee, world.payee.address(), 1).await;
    let all = payer.balances_of(world.payer.address()).await.unwrap().usdc;
    let friend = new_key().address();
    payer.send_usdc(friend, all).await.unwrap();
    let refused = payee.take_payment(payment, 0).await.unwrap();
    assert!(
        matches!(&refused, PaymentState::Refused(why) if why.contains("InsufficientBalance")),
        "{refused:?}"
    );
    assert_eq!(world.nonce(&world.payee).await, 0, "nothing was sent");
    let deployer = deployer(&world.anvil, 0).await;
    deployer.mint(world.token, world.payer.address(), usdc(2_000)).await.unwrap();
    let taken = payee.take_payment(payment, 0).await.unwrap();
    assert!(matches!(taken, PaymentState::Paid(_)), "{taken:?}");
    payer.shutdown().await;
    payee.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_fails_in_its_block_is_refused_and_taken_once_its_payer_has_the_money() {
    let world = World::new().await;
    let payee = world.payee_chain().await;
    let payment = signed(&world, &payee, world.payee.address(), 1).await;
    let all = payee.balances_of(world.payer.address()).await.unwrap().usdc;
    let (domain, friend) = (payee.token_domain().await.unwrap(), new_key().address());
    let elsewhere = TransferAuthorization { to: friend, value: all, nonce: [2; 32], ..payment.authorization };
    let elsewhere = elsewhere.sign(&domain, &world.payer);
    world.anvil.rpc("evm_setAutomine", json!([false])).await;
    let taker = payee.clone();
    let taking = tokio::spawn(async move { taker.take_payment(payment, 0).await });
    until_true(|| async { world.waiting_transactions().await == 1 }).await;
    sent(&world, transfer(&elsewhere)).await;
    world.anvil.mine().await;
    let refused = taking.await.unwrap().unwrap();
    assert!(
        matches!(&refused, PaymentState::Refused(why) if why.contains("InsufficientBalance")),
        "{refused:?}"
    );
    assert_eq!(world.nonce(&world.payee).await, 1, "it was in the block");
    assert_eq!(payee.balances_of(world.payee.address()).await.unwrap().usdc, usdc(0));
    world.anvil.rpc("evm_setAutomine", json!([true])).await;
    let deployer = deployer(&world.anvil, 0).await;
    deployer.mint(world.token, world.payer.address(), usdc(2_000)).await.unwrap();
    let taken = payee.take_payment(payment, 0).await.unwrap();
    assert!(matches!(taken, PaymentState::Paid(_)), "{taken:?}");
    payee.shutdown().await;
}

/// Says yes to every signature (ERC-1271): returns `0x1626ba7e` and zeros.
const ACCEPTS_ALL: &str = "0x631626ba7e60e01b60005260206000f3";

#[tokio::test(flavor = "multi_thread")]
async fn a_payer_with_code_that_could_fail_in_the_block_alone_is_refused_before_it_costs_gas() {
    let world = World::new().await;
    let payee = world.payee_chain().await;
    let payment = signed(&world, &payee, world.payee.address(), 1).await;
    let payer = world.payer.address().to_string();
    world.anvil.rpc("anvil_setCode", json!([payer, ACCEPTS_ALL])).await;
    let tried = payee.payment_refusal(&payment).await.unwrap();
    assert!(tried.as_ref().is_some_and(|why| why.contains("has code")), "{tried:?}");
    // Code may come after the trial.
    let taken = payee.take_payment(payment, 0).await.unwrap();
    assert!(matches!(&taken, PaymentState::Refused(why) if why.contains("has code")), "{taken:?}");
    assert_eq!(world.nonce(&world.payee).await, 0, "nothing was sent");
    payee.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_may_expire_before_its_block_is_refused_before_it_costs_gas() {
    let world = World::new().await;
    let payee = world.payee_chain().await;
    let block = world.anvil.rpc("eth_getBlockByNumber", json!(["latest", false])).await;
    let digits = block["timestamp"].as_str().unwrap().trim_start_matches("0x");
    let block_secs = u64::from_str_radix(digits, 16).unwrap();
    let long = signed(&world, &payee, world.payee.address(), 1).await.authorization;
    let soon = TransferAuthorization { valid_before_secs: block_secs + 29, ..long };
    let soon = soon.sign(&payee.token_domain().await.unwrap(), &world.payer);
    let taken = payee.take_payment(soon, 0).await.unwrap();
    assert!(matches!(&taken, PaymentState::Refused(why) if why.contains("expires too soon")), "{taken:?}");
    assert_eq!(world.nonce(&world.payee).await, 0, "nothing was sent");
    payee.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payments_take_half_of_the_writers_queue_and_leave_the_rest_to_the_wallets_own_transactions() {
    let world = World::new().await;
    let payee = world.payee_chain().await;
    let domain = payee.token_domain().await.unwrap();
    let any = signed(&world, &payee, world.payee.address(), 0).await.authorization;
    world.anvil.rpc("evm_setAutomine", json!([false])).await;
    let mut takings = tokio::task::JoinSet::new();
    for nonce in 1..=100 {
        let payment = TransferAuthorization { nonce: [nonce; 32], ..any }.sign(&domain, &world.payer);
        let taker = payee.clone();
        takings.spawn(async move { taker.take_payment(payment, 0).await });
    }
    // No block comes, so that nothing else ends.
    let ended = takings.join_next().await.unwrap().unwrap();
    assert_eq!(ended, Err(ChainError::Busy { waiting: 32 }));
    // Nobody is to work for a payment that waits behind so many.
    let further = any.sign(&domain, &world.payer);
    assert_eq!(payee.payment_refusal(&further).await, Err(ChainError::Busy { waiting: 32 }));
    payee.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_with_a_long_name_is_offered_to_nobody() {
    let world = World::new().await;
    let deployer = deployer(&world.anvil, 0).await;
    let mut spec = world.spec();
    spec.token = deployer.test_usdc(&"x".repeat(65), deployer.address()).await.unwrap();
    let payee = world.payee_at(spec).await;
    let told = payee.token_domain().await;
    assert!(
        matches!(&told, Err(ChainError::Refused { reason, .. }) if reason.contains("longer")),
        "{told:?}"
    );
    payee.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_that_this_wallet_signed_is_open_until_somebody_takes_it() {
    let (world, payer) = World::with_payer().await;
    let payment = signed(&world, &payer, world.payee.address(), 1).await;
    let state = async || payer.transfer_state(&payment.authorization, 0).await.unwrap();
    let TransferState::Open { as_of_secs } = state().await else { panic!("it is taken") };
    assert!(as_of_secs > 1_600_000_000, "{as_of_secs}");
    world.anvil.rpc("evm_increaseTime", json!([1_000])).await;
    world.anvil.rpc("evm_mine", json!([])).await;
    until_true(|| async {
        matches!(state().await, TransferState::Open { as_of_secs: now } if now >= as_of_secs + 1_000)
    })
    .await;
    brought_by_a_stranger(&world, &payment).await;
    until_true(|| async { matches!(state().await, TransferState::Taken { transaction: Some(_), .. }) }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_transfers_that_are_asked_about_together_each_has_its_own_state() {
    let (world, payer) = World::with_payer().await;
    let mut transfers = Vec::new();
    // More than one batch of requests.
    for nonce in 1..=12 {
        transfers.push(signed(&world, &payer, world.payee.address(), nonce).await);
    }
    brought_by_a_stranger(&world, &transfers[0]).await;
    let asked: Vec<_> = transfers.iter().map(|transfer| (transfer.authorization, Some(0))).collect();
    let states = async || payer.transfer_states(&asked).await.unwrap();
    until_true(|| async { matches!(states().await[0], TransferState::Taken { transaction: Some(_), .. }) })
        .await;
    let states = states().await;
    let is_open = |state: &TransferState| matches!(state, TransferState::Open { .. });
    assert!(states.len() == asked.len() && states[1..].iter().all(is_open), "{states:?}");
    assert!(payer.transfer_states(&[]).await.unwrap().is_empty());
}
