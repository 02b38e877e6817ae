//! A day's limits go on from what the ledger holds of that day, and of no other.

use farthing_ledger::{OpenMode, PayerChannelFacts, Timing};
use farthing_protocol::{Outcome, SecretKey};

use super::*;
pub(super) use crate::consumer::channels::tests::usdc;
use crate::consumer::{
    channels::tests::terms,
    spending::{Grant, SpendingCaps},
};

const SECRET: &str = "laptop";
const DAY_SECS: u64 = 24 * 3_600;
/// A price of 10 that is charged with 4 of them, and one that stays open.
const CHARGED: u64 = 4;
const OPEN: u64 = 100;

pub(super) fn promise(number: u8, day: u32, price: u64, owner: Address) -> Promise {
    let payment = Payment::Channel { channel: ID, cumulative: usdc(1_000), signature: None, receipted: None };
    let promise = promise_of(CallId::from_bytes([number; 16]), owner, usdc(price), payment);
    Promise { secret: SECRET.to_owned(), time_secs: u64::from(day) * DAY_SECS + 1, ..promise }
}

pub(super) const ID: ChannelId = ChannelId::from_bytes([1; 32]);

/// Books of a wallet with one channel, and what signs the owner's receipts.
pub(super) struct Books {
    pub ledger: Ledger,
    pub domain: Domain,
    pub owner: SecretKey,
    _folder: tempfile::TempDir,
}

pub(super) const WALLET: Address = Address::from_bytes([1; 20]);

impl Books {
    pub(super) async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
        let owner = SecretKey::from_bytes(&[2; 32]).unwrap();
        let books = Self { ledger, domain: Domain::new(1, Address::ZERO), owner, _folder: folder };
        books.ledger.put_payer_channel(books.channel()).await.unwrap();
        books
    }

    pub(super) fn channel(&self) -> PayerChannelFacts {
        PayerChannelFacts {
            id: ID,
            config: terms(WALLET, self.owner.address()),
            deposited: usdc(1_000),
            claimed: Usdc::ZERO,
            round: Some(0),
            stopped: false,
        }
    }

    pub(super) fn receipt(&self, promise: &Promise, charged: Usdc, spent_total: Usdc) -> Acknowledgement {
        let receipt = Receipt {
            channel: ID,
            call_id: promise.request.call_id,
            request_hash: promise.request_hash,
            response_hash: [0; 32],
            outcome: Outcome::Answered.code(),
            charged,
            spent_total,
            time_secs: promise.time_secs,
        };
        let signature = receipt.sign(&self.domain, &self.owner);
        let receipt = receipt.verify(&self.domain, signature, self.owner.address()).unwrap();
        Acknowledgement { receipt, status: 200, timing: Timing::default(), time_secs: promise.time_secs }
    }
}

#[tokio::test]
async fn a_day_begins_with_what_the_ledger_holds_of_it_and_is_not_begun_twice() {
    let books = Books::new().await;
    let owner = books.owner.address();
    let mut spent = Usdc::ZERO;
    for (number, day) in [(1, 10), (3, 11), (4, 11)] {
        let promise = promise(number, day, 10, owner);
        books.ledger.promise(promise.clone()).await.unwrap().await.unwrap();
        spent = spent.saturating_add(usdc(CHARGED));
        let receipt = books.receipt(&promise, usdc(CHARGED), spent);
        books.ledger.acknowledge(promise.request.call_id, receipt).await.unwrap();
    }
    for (number, day) in [(5, 10), (6, 11), (7, 11)] {
        books.ledger.promise(promise(number, day, OPEN, owner)).await.unwrap().await.unwrap();
    }

    let accounts = Accounts::new(books.ledger.clone(), Arc::default(), (WALLET, books.domain));
    let total = |day| accounts.spending_of(day).unwrap().total_of(day, SECRET);
    assert_eq!(total(10), usdc(CHARGED + OPEN), "what was charged, and what is open");
    assert_eq!(total(11), usdc(2 * (CHARGED + OPEN)));
    assert_eq!(total(12), Usdc::ZERO);
    // A call that is not promised yet is in memory alone.
    let limits = SpendingCaps { price_max: usdc(1), per_day: Usdc::MAX, per_secret_day: Usdc::MAX };
    accounts.spending_of(11).unwrap().reserve(&limits, 11, &Grant::unlimited(SECRET), usdc(1)).unwrap();
    assert_eq!(total(10), usdc(CHARGED + OPEN), "the clock goes back");
    assert_eq!(total(11), usdc(2 * (CHARGED + OPEN) + 1), "and forth");
}

#[tokio::test]
async fn what_is_stored_after_a_day_has_begun_is_counted_apart() {
    let books = Books::new().await;
    let accounts = Accounts::new(books.ledger.clone(), Arc::default(), (WALLET, books.domain));
    accounts.begin_day(10).unwrap();
    books.ledger.promise(promise(1, 10, OPEN, books.owner.address())).await.unwrap().await.unwrap();
    accounts.begin_day(10).unwrap();
    assert_eq!(
        accounts.spending_of(10).unwrap().total_of(10, SECRET),
        Usdc::ZERO,
        "it was reserved in memory"
    );
}
