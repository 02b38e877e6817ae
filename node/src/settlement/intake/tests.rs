//! A book without a free place, and a real chain.

use std::sync::Arc;

use farthing_chain::{Chain, ChainHandle, ClaimRow, MemoryJournal};
use farthing_ledger::{OpenMode, Promise};
use farthing_protocol::{
    CallId, ChannelConfig, SecretKey, ServiceId, Signature, Voucher,
    call::{CallRequest, Method, Payment},
};

use super::*;
use crate::{
    settlement::worth::Means,
    testnet::{LocalChain, anvil::Anvil},
};

const fn usdc(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}

/// A funded wallet's view of the chain.
async fn wallet(chain: &LocalChain, seed: u8) -> (SecretKey, ChainHandle) {
    let key = SecretKey::from_bytes(&[seed; 32]).unwrap();
    chain.fund(key.address(), usdc(1_000_000)).await.unwrap();
    let spec = farthing_chain::local(chain.rpc_url(), Anvil::CHAIN_ID, chain.token);
    let spec = farthing_chain::ChainSpec { poll_interval_ms: 50, ..spec };
    let handle = Chain::start(spec, key.clone(), Arc::new(MemoryJournal::default())).await.unwrap();
    handle.balances().wait_for(Option::is_some).await.unwrap();
    (key, handle)
}

async fn open(payer: &ChainHandle, payee: &ChainHandle, deposit: u64) -> (ChannelConfig, ChannelId) {
    let config = ChannelConfig {
        payer: payer.wallet(),
        payee: payee.wallet(),
        token: payer.spec().token,
        signer: payer.wallet(),
        close_delay_secs: 86_400,
        salt: [0; 32],
    };
    payer.open_or_top_up(config, usdc(deposit)).await.unwrap();
    let id = config.id(&payer.domain());
    payee
        .channels()
        .wait_for(|views| views.get(&id).is_some_and(|view| !view.deposited.is_zero()))
        .await
        .unwrap();
    (config, id)
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1_200 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it never came true that {what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_that_found_no_place_enters_the_book_when_there_is_one() {
    let chain = LocalChain::start().await.unwrap();
    let ((_, owner), (first_key, first), (_, second)) =
        (wallet(&chain, 1).await, wallet(&chain, 2).await, wallet(&chain, 3).await);
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
    let terms = Terms {
        deposit_min: usdc(1),
        close_delay_secs: 0,
        unsafe_max: Usdc::ZERO,
        without_gas_max: Usdc::ZERO,
    };
    let book = Book::with_places(1);
    let intake = Intake::new(owner.wallet(), owner.clone(), ledger, book.clone(), Arc::default(), terms);
    let following = tokio::spawn(intake.clone().follow());

    let (_, small) = open(&first, &owner, 5_000).await;
    until("the first has the place", || book.get(small).is_some()).await;
    let voucher = Voucher { channel: small, cumulative: usdc(2_000) };
    let signature = voucher.sign(&owner.domain(), &first_key);
    let voucher = voucher.verify(&owner.domain(), signature, first.wallet()).unwrap();
    let call = book.admit(small, Some(&voucher), usdc(2_000), Means::UNLIMITED).unwrap();
    let (config, large) = open(&second, &owner, 10_000).await;
    assert!(!intake.catch_up().await.is_placed, "there is a call on the first");
    assert!(book.get(large).is_none());

    // The chain shows nothing new of either.
    drop(call);
    until("the second has the place", || book.get(large).is_some()).await;
    assert!(book.get(small).is_none());
    let nothing = ClaimRow {
        config,
        cumulative: Usdc::ZERO,
        amount: Usdc::ZERO,
        signature: Signature::from_bytes([0; 65]),
    };
    owner.close(nothing).await.unwrap();
    until("the first has it again", || book.get(small).is_some()).await;
    following.abort();
}

/// A call that was given up in doubt, as an owner makes one at will.
async fn given_up(ledger: &Ledger, channels: &Channels, owner: Address, price: Usdc) {
    let reservation = channels.reserve(owner, price, 1).unwrap();
    let request = CallRequest {
        call_id: CallId::from_bytes([1; 16]),
        service: ServiceId::from_bytes([1; 16]),
        listing_version: 1,
        method: Method::Get,
        path: "/a".into(),
        params: Default::default(),
        headers: Default::default(),
        body_bytes: 0,
        price,
        deadline_ms: 30_000,
        payment: Payment::Channel {
            channel: reservation.channel,
            cumulative: reservation.cumulative,
            signature: None,
        },
    };
    let promise = Promise {
        request_hash: request.request_hash(b""),
        request,
        body: bytes::Bytes::new(),
        owner,
        secret: "default".to_owned(),
        time_secs: 1,
        limits: None,
        seen_total: Usdc::ZERO,
    };
    let call_id = promise.request.call_id;
    ledger.promise(promise).await.unwrap().await.unwrap();
    ledger.release_in_doubt(call_id, "its connection broke", 2).await.unwrap();
    channels.release(&reservation);
}

/// What an owner claims with `claimed` and closes at once: whether nothing more is promised to it.
async fn is_stopped_after(claimed: Usdc) -> bool {
    let chain = LocalChain::start().await.unwrap();
    let ((_, owner), (payer_key, payer)) = (wallet(&chain, 1).await, wallet(&chain, 2).await);
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
    let terms = Terms {
        deposit_min: usdc(1),
        close_delay_secs: 0,
        unsafe_max: Usdc::ZERO,
        without_gas_max: Usdc::ZERO,
    };
    let channels: Arc<Channels> = Arc::default();
    let book = Book::with_places(1);
    let intake =
        Intake::new(payer.wallet(), payer.clone(), ledger.clone(), book, Arc::clone(&channels), terms);
    let following = tokio::spawn(intake.follow());
    let (config, id) = open(&payer, &owner, 10_000).await;
    until("the payer has its channel", || channels.get(owner.wallet()).is_some()).await;
    given_up(&ledger, &channels, owner.wallet(), usdc(2_000)).await;

    let voucher = Voucher { channel: id, cumulative: claimed };
    let signature = voucher.sign(&payer.domain(), &payer_key);
    owner.close(ClaimRow { config, cumulative: claimed, amount: claimed, signature }).await.unwrap();
    let state = || channels.get(owner.wallet()).unwrap();
    until("the payer sees it emptied", || state().state.deposited <= state().claimed).await;
    following.abort();
    state().state.stopped
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_given_up_in_doubt_explains_its_price_and_no_more() {
    assert!(!is_stopped_after(usdc(2_000)).await);
    assert!(is_stopped_after(usdc(9_000)).await);
}
