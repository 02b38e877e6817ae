//! What an attempt holds is given back when it is dropped, and from its promise on stays counted and leaks nothing.

use std::sync::Arc;

use farthing_protocol::Escrow;
use futures::FutureExt;

use super::{
    days::{Books, ID, WALLET, promise, usdc},
    *,
};
use crate::consumer::{
    channels::Shortage,
    prepared::{Headroom, Prepared},
    recording::Recording,
};

const CAPS: SpendingCaps =
    SpendingCaps { price_max: usdc(100), per_day: usdc(100), per_secret_day: usdc(100) };

#[tokio::test]
async fn an_attempt_that_promised_leaves_its_money_counted_and_no_memory_behind() {
    let books = Books::new().await;
    let owner = books.owner.address();
    let channels = Arc::new(PayerChannels::default());
    let accounts = Arc::new(Accounts::new(books.ledger.clone(), channels.clone(), (WALLET, books.domain)));
    accounts.observe(books.channel(), None).await.unwrap();
    let prepared = || {
        let hold = accounts.hold(1, &Grant::unlimited("laptop"), usdc(10), &CAPS).unwrap();
        let reservation = channels.reserve(owner, usdc(10), 1).unwrap();
        let promise = promise(1, 1, 10, owner);
        let expected = Attempt::of(promise.clone()).expected;
        let headroom = Some(Headroom::new(channels.clone(), reservation));
        Prepared::new((promise, expected), Bytes::new(), Duration::ZERO, hold, headroom)
    };
    let counted = || (accounts.spending.lock().total(1), channels.in_use(owner).unwrap().state.in_flight);
    let shares = || (Arc::strong_count(&accounts), Arc::strong_count(&channels));
    let before = shares();

    drop(prepared());
    assert_eq!((counted(), shares()), ((Usdc::ZERO, Usdc::ZERO), before), "nothing was promised");
    let attempt = prepared().promised();
    assert_eq!((counted(), shares()), ((usdc(10), usdc(10)), before), "promised");
    drop(attempt);
    assert_eq!(counted(), (usdc(10), usdc(10)), "only an end gives it back");
}

#[tokio::test]
async fn an_undecided_call_counts_until_its_end_whatever_that_is() {
    let books = Books::new().await;
    let owner = books.owner.address();
    let accounts = Accounts::new(books.ledger.clone(), Arc::default(), (WALLET, books.domain));
    let sum = || accounts.undecided().all(Usdc::ZERO).first().map(|of_owner| of_owner.sum);
    let promises = [1, 2].map(|number| promise(number, 1, 10, owner));
    for promise in &promises {
        books.ledger.promise(promise.clone()).await.unwrap().await.unwrap();
        accounts.undecided().note(owner, promise.request.call_id, promise.request.price, None);
    }
    assert_eq!(sum(), Some(usdc(20)));
    let [released, charged] = promises.map(Attempt::of);
    accounts.release(&released, "never served", &Copies::default()).await;
    assert_eq!(sum(), Some(usdc(10)));
    let receipt = books.receipt(&charged.promise, usdc(4), usdc(4)).receipt;
    let _counted = accounts.count(&charged, &receipt);
    assert_eq!(sum(), None);
}

#[tokio::test]
async fn a_call_on_a_channel_of_another_contract_stays_reserved_and_is_held_against_no_owner() {
    let books = Books::new().await;
    let owner = books.owner.address();
    books.ledger.promise(promise(1, 1, 10, owner)).await.unwrap().await.unwrap();
    let open = books.ledger.unresolved().unwrap();
    let moved = Escrow { chain_id: 1, contract: Address::from_bytes([9; 20]), token: Address::ZERO };
    for (settings, is_held_against) in [(None, true), (Some(moved), false)] {
        let channels = Arc::new(PayerChannels::default());
        for row in books.ledger.payer_channels().unwrap() {
            match &settings {
                Some(_) => channels.restore(&row, true),
                None => channels.apply(&row, None),
            }
        }
        let domain = settings.map_or(books.domain, |settings| settings.domain());
        let accounts = Accounts::new(books.ledger.clone(), channels.clone(), (WALLET, domain));
        accounts.restore(&open).unwrap();
        assert_eq!(channels.get(ID).unwrap().state.in_flight, usdc(10), "{settings:?}");
        let may_deposit = accounts.undecided().check_deposit(owner, usdc(1), Usdc::ZERO);
        assert_eq!(may_deposit.is_err(), is_held_against, "{settings:?}");
    }
}

/// The channel as the chain shows it after a close.
fn emptied(books: &Books) -> PayerChannelFacts {
    PayerChannelFacts { deposited: Usdc::ZERO, round: Some(1), ..books.channel() }
}

#[tokio::test]
async fn nothing_is_reserved_on_what_a_channel_held_before_its_close_while_the_ledger_stores_that() {
    let books = Books::new().await;
    let (owner, channels) = (books.owner.address(), Arc::new(PayerChannels::default()));
    let accounts = Accounts::new(books.ledger.clone(), channels.clone(), (WALLET, books.domain));
    accounts.observe(books.channel(), None).await.unwrap();
    let held = channels.reserve(owner, usdc(10), 1).unwrap();
    channels.release(&held);
    let mut stored = Box::pin(accounts.observe(emptied(&books), None));
    // Polled once, it waits for the commit.
    let at_once = stored.as_mut().now_or_never();
    assert_eq!(channels.reserve(owner, usdc(10), 1), Err(Shortage::NotOpen));
    let round = channels.get(ID).map(|channel| channel.round);
    assert_eq!(round, Some(1), "whoever fills it anew begins the next round");
    match at_once {
        Some(stored) => stored.unwrap(),
        None => stored.await.unwrap(),
    }
    assert_eq!(channels.reserve(owner, usdc(10), 1), Err(Shortage::NotOpen));
}

#[tokio::test]
async fn a_promise_on_an_emptied_channel_is_known_as_failed_and_is_taken_once_the_channel_is_filled() {
    let books = Books::new().await;
    let promise = Arc::new(promise(1, 1, 10, books.owner.address()));
    books.ledger.put_payer_channel(emptied(&books)).await.unwrap();
    let mut recording = Recording::begin(&books.ledger, Arc::clone(&promise)).await.unwrap();
    let failed = async {
        while !recording.has_failed() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), failed).await.unwrap();
    assert!(matches!(recording.stored().await, Err(LedgerError::VoucherAboveDeposit { .. })));
    let filled = PayerChannelFacts { round: Some(1), ..books.channel() };
    books.ledger.put_payer_channel(filled).await.unwrap();
    let mut again = Recording::begin(&books.ledger, promise).await.unwrap();
    let had_failed = again.has_failed();
    again.stored().await.unwrap();
    assert!(!had_failed);
}
