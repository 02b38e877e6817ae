//! Records of a payer's own calls, told so that it can compare books: pages of records, so many in a minute.
//!
//! A page costs a bounded look into the ledger and is free, so its number is bounded: per payer, and in payers
//! remembered. Nobody is told of another payer's calls: the payer is who signed the connection.

use std::{
    collections::HashMap,
    num::NonZeroUsize,
    sync::{Arc, atomic::AtomicU32},
    time::Duration,
};

use farthing_ledger::{Ledger, Retention, ServedRow, Side};
use farthing_protocol::{
    Address, CallId, CallReply, ChannelId, Refusal, RefusalCode, Usdc,
    books::{CALLS_PAGE_MAX, CallRecord, CallsAsked, CallsPage},
};

use farthing_os::clock;
use lru::LruCache;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::book::Book;

/// Some 30,000 calls: more than a payer makes in a minute.
const PAGES_PER_MINUTE: u32 = 120;
/// Rows looked at for one page: some milliseconds of one core.
const LOOKED_AT_MAX: usize = 4_096;
/// Payers remembered at once, and strangers as well.
const PAYERS_MAX: usize = 4_096;
/// Stored answers of which it is remembered how often they were given. Whoever has more made as many calls.
const STORED_COUNTED: NonZeroUsize = NonZeroUsize::new(16_384).expect("not zero");
const MINUTE: Duration = Duration::from_secs(60);

/// The kinds of what a payer is told from the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BooksQuestion {
    /// Pages of records.
    Calls,
    /// Answers with their bodies, one at a time.
    Answers,
}

/// A count of what payers were told lately. Wallets cost nothing: strangers take no place from those with a channel.
#[derive(Debug, Default)]
pub struct BooksLimiter {
    partners: Mutex<BooksWindows>,
    strangers: Mutex<BooksWindows>,
}

type BooksWindows = HashMap<(Address, BooksQuestion), BooksWindow>;

#[derive(Clone, Copy, Debug)]
struct BooksWindow {
    since: Instant,
    pages: u32,
}

impl BooksLimiter {
    /// Counts a page or an answer for `payer`, who has a channel or has none.
    ///
    /// # Errors
    /// A `RateLimited` refusal naming when to come back.
    pub fn count(&self, (payer, is_partner): (Address, bool), told: BooksQuestion) -> Result<(), Refusal> {
        let windows = if is_partner { &self.partners } else { &self.strangers };
        let (mut payers, key) = (windows.lock(), (payer, told));
        if payers.len() >= PAYERS_MAX {
            payers.retain(|_, window| window.since.elapsed() < MINUTE);
        }
        if payers.len() >= PAYERS_MAX && !payers.contains_key(&key) {
            return Err(come_back("too many payers are comparing ledgers", MINUTE));
        }
        let fresh = BooksWindow { since: Instant::now(), pages: 0 };
        let window = payers.entry(key).or_insert(fresh);
        if window.since.elapsed() >= MINUTE {
            *window = fresh;
        }
        if window.pages >= PAGES_PER_MINUTE {
            let wait = MINUTE.saturating_sub(window.since.elapsed());
            return Err(come_back("a payer may ask for 120 pages of its calls per minute", wait));
        }
        window.pages += 1;
        Ok(())
    }
}

/// Counts of how often stored answers were given: memory forgets an answer long before the ledger does.
#[derive(Debug)]
pub struct GivenAgain(Mutex<LruCache<(Address, CallId), Arc<AtomicU32>>>);

impl Default for GivenAgain {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(STORED_COUNTED)))
    }
}

impl GivenAgain {
    /// The count of a call's stored answer.
    #[must_use]
    pub fn of(&self, call: (Address, CallId)) -> Arc<AtomicU32> {
        let mut counts = self.0.lock();
        counts.get_or_insert(call, Arc::default).clone()
    }
}

fn come_back(detail: &str, wait: Duration) -> Refusal {
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(60_000);
    Refusal::new(RefusalCode::RateLimited, detail).retry_after_ms(wait_ms.max(1))
}

/// One page of what the ledger has of a payer's calls, as far as they are of the network: what the same wallet paid by
/// transactions of its own is in no books of a node. Reads the disk: run it off the async threads. Only who has paid
/// on a channel here, closed by now or not, has adjustments, and they are all looked at.
pub fn page(ledger: &Ledger, book: &Book, payer: Address, asked: CallsAsked) -> CallReply {
    let read = ledger.calls_of(payer, asked.after, CALLS_PAGE_MAX, LOOKED_AT_MAX, |row| {
        let is_of_a_channel =
            |record: &CallRecord| record.channel != ChannelId::NONE || record.charged.is_zero();
        let record = Some(record(row)).filter(|record| record.time_secs >= asked.since_secs);
        record.filter(is_of_a_channel)
    });
    let adjusted = |next: Option<CallId>| match next {
        None if book.has_channel_of(payer) => {
            ledger.adjusted_with(Side::Payee, payer).map(|sum| Some(sum).filter(|sum| !sum.is_zero()))
        }
        _ => Ok(None),
    };
    match read.and_then(|(records, next)| Ok((records, next, adjusted(next)?))) {
        Ok((records, next, adjusted)) => {
            let kept_since_secs = Retention::default().kept_since_secs(clock::now_secs());
            CallReply::Calls(CallsPage { records, next, kept_since_secs, adjusted })
        }
        Err(error) => {
            tracing::warn!(%error, "a payer's question about its calls could not be answered");
            CallReply::Refused(Refusal::new(RefusalCode::Unavailable, "the owner's books cannot be read"))
        }
    }
}

fn record(row: ServedRow) -> CallRecord {
    match row {
        ServedRow::Accepted(accepted) => CallRecord {
            call_id: accepted.call_id,
            channel: ChannelId::NONE,
            outcome: None,
            price: Usdc::ZERO,
            charged: Usdc::ZERO,
            time_secs: accepted.time_secs,
        },
        ServedRow::Done(row) => CallRecord {
            call_id: row.call.call_id,
            channel: row.receipt.channel,
            outcome: Some(row.call.outcome),
            price: row.call.price,
            charged: row.call.charged,
            time_secs: row.call.time_secs,
        },
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::{OpenMode, PayeeChannelFacts};

    use super::*;
    use crate::book::tests::{ID, terms};

    #[tokio::test]
    async fn who_paid_on_a_channel_that_is_closed_is_told_what_no_record_here_explains() {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join("ledger.redb"), OpenMode::Create).unwrap();
        let (payer, stranger) = (Address::from_bytes([1; 20]), Address::from_bytes([3; 20]));
        let paid = Usdc::from_micros(8_000);
        let closed = PayeeChannelFacts {
            id: ID,
            config: terms(payer, Address::from_bytes([2; 20])),
            deposited: paid,
            claimed: paid,
            closing: false,
        };
        let book = Book::new(Usdc::ZERO, Usdc::ZERO);
        book.restore(&ledger.put_payee_channel(closed).await.unwrap(), None, false);
        for (asking, adjusted) in [(payer, Some(paid)), (stranger, None)] {
            let asked = CallsAsked { after: None, since_secs: 0 };
            let CallReply::Calls(page) = page(&ledger, &book, asking, asked) else { panic!("refused") };
            assert_eq!(page.adjusted, adjusted, "{asking}");
        }
    }

    #[test]
    fn pages_are_bounded_per_payer_below_at_and_above_the_limit() {
        let told = BooksLimiter::default();
        let count = |n: u8, what| told.count((Address::from_bytes([n; 20]), true), what);
        for _ in 0..PAGES_PER_MINUTE {
            assert!(count(1, BooksQuestion::Calls).is_ok());
        }
        let refusal = count(1, BooksQuestion::Calls).unwrap_err();
        assert_eq!(refusal.code, RefusalCode::RateLimited);
        assert!(refusal.retry_after_ms.is_some_and(|wait| (1..=60_000).contains(&wait)));
        assert!(count(2, BooksQuestion::Calls).is_ok(), "others are not concerned");
        assert!(count(1, BooksQuestion::Answers).is_ok(), "nor is what became of a call");
    }

    #[test]
    fn as_many_payers_as_there_may_be_take_no_more_memory() {
        let told = BooksLimiter::default();
        for n in 0..PAYERS_MAX {
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&(n as u64).to_be_bytes());
            assert!(told.count((Address::from_bytes(bytes), false), BooksQuestion::Calls).is_ok());
        }
        let count =
            |n, is_partner| told.count((Address::from_bytes([n; 20]), is_partner), BooksQuestion::Calls);
        assert!(count(255, false).is_err());
        assert!(count(0, false).is_ok(), "who is remembered is told");
        assert!(count(255, true).is_ok(), "strangers take no place from who has a channel");
    }
}
