//! Calls that were refused: the part of the log of calls that no ledger has.
//!
//! Bounded in rows for each half, in the bytes of each row, and in how many rows of one kind a minute adds: a program that
//! sends a hundred thousand bad calls takes sixty rows a minute, and the others are counted at the last of them. A wrong
//! secret is counted and nothing else, so that strangers fill nothing. Once all rows of the owner's half are taken, one payer has
//! a part of them. No call waits for any of it: it is memory, which the composition writes to a file now and then.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use farthing_values::{Address, CallId, Method, ServiceId};
use minicbor::{Decode, Encode};
use parking_lot::Mutex;

use crate::call_ends::Half;

/// Rows that are kept of each half.
pub const ROWS_MAX: usize = 1_000;
/// Of the rows of the owner's half, once all are taken, one in so many is the most of one payer.
const PAYERS_PART: usize = 4;
/// Rows of one half and one code that a minute adds; further ones are counted.
pub const PER_MINUTE_MAX: u32 = 60;
pub const TEXT_BYTES_MAX: usize = 512;
/// A file that is longer was not written here.
pub const STORED_BYTES_MAX: usize = 8 * 1024 * 1024;
const MINUTE_SECS: u64 = 60;

/// A call that was refused, or that ended without an answer of the service.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct RefusedCall {
    /// Given when it is noted, each higher than the one before.
    #[n(0)]
    pub number: u64,
    #[n(1)]
    pub half: Half,
    /// Seconds since the Unix epoch.
    #[n(2)]
    pub time_secs: u64,
    #[n(3)]
    pub call_id: Option<CallId>,
    /// As it was asked for: nobody may know it.
    #[n(4)]
    pub service: Option<ServiceId>,
    #[n(5)]
    pub method: Option<Method>,
    /// Empty where the call could not be read that far.
    #[n(6)]
    pub path: String,
    /// The wallet on the other side, where it is known.
    #[n(7)]
    pub peer: Option<Address>,
    /// The name of the secret that ordered it.
    #[n(8)]
    pub secret: Option<String>,
    /// The name of the problem or of the owner's refusal.
    #[n(9)]
    pub code: String,
    /// The HTTP status that the caller was answered with; `None` for calls of other nodes.
    #[n(10)]
    pub status: Option<u16>,
    #[n(11)]
    pub detail: String,
    #[n(12)]
    pub next: String,
    /// True if it was charged; `None` while that is not known.
    #[n(13)]
    pub charged: Option<bool>,
    #[n(14)]
    pub took_us: u64,
    /// Further ones of its half and its code within its minute, which have no rows.
    #[n(15)]
    pub others: u64,
}

impl RefusedCall {
    /// A call of which nothing else is known yet.
    pub const fn new(half: Half, time_secs: u64) -> Self {
        Self {
            number: 0,
            half,
            time_secs,
            call_id: None,
            service: None,
            method: None,
            path: String::new(),
            peer: None,
            secret: None,
            code: String::new(),
            status: None,
            detail: String::new(),
            next: String::new(),
            charged: Some(false),
            took_us: 0,
            others: 0,
        }
    }

    fn within_bounds(mut self) -> Self {
        for text in [&mut self.path, &mut self.code, &mut self.detail, &mut self.next] {
            cut(text);
        }
        if let Some(secret) = &mut self.secret {
            cut(secret);
        }
        self
    }
}

/// The beginning of a text, as long as a row keeps it.
pub fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT_BYTES_MAX)).unwrap_or_default()
}

/// Cuts a text, and gives the room of the rest back.
fn cut(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        *text = beginning(text).to_owned();
    }
}

/// Calls whose secret is none of this node's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct WrongSecrets {
    #[n(0)]
    pub count: u64,
    /// The time of the last one, in seconds since the Unix epoch.
    #[n(1)]
    pub last_secs: u64,
}

/// The state by which one sees that a file has to be written again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The number of the newest row.
    pub newest: u64,
    /// Calls that were counted and have no row.
    pub counted: u64,
}

/// The calls that were refused. A cheap handle.
#[derive(Clone, Debug, Default)]
pub struct RefusedCalls(Arc<Mutex<KeptRows>>);

#[derive(Debug, Default)]
struct KeptRows {
    consumer: VecDeque<Arc<RefusedCall>>,
    owner: VecDeque<Arc<RefusedCall>>,
    stamp: Stamp,
    minutes: HashMap<(Half, String), RunningMinute>,
    wrong_secrets: WrongSecrets,
}

/// The rows that one kind has taken of its minute.
#[derive(Debug, Default)]
struct RunningMinute {
    began_secs: u64,
    rows: u32,
    newest: u64,
}

#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredRows {
    #[n(0)]
    rows: Vec<RefusedCall>,
    #[n(1)]
    wrong_secrets: WrongSecrets,
}

impl RefusedCalls {
    pub fn note(&self, call: RefusedCall) {
        let call = call.within_bounds();
        self.0.lock().note(call);
    }

    /// Counts a call whose secret is none of this node's.
    pub fn count_wrong_secret(&self, time_secs: u64) {
        let mut kept = self.0.lock();
        let count = kept.wrong_secrets.count.saturating_add(1);
        kept.wrong_secrets = WrongSecrets { count, last_secs: time_secs };
        kept.stamp.counted += 1;
    }

    /// The calls of one half that have rows, the newest first.
    pub fn of(&self, half: Half) -> Vec<Arc<RefusedCall>> {
        self.0.lock().rows(half).iter().rev().cloned().collect()
    }

    /// The call with this number, while its row is kept.
    pub fn numbered(&self, number: u64) -> Option<Arc<RefusedCall>> {
        let kept = self.0.lock();
        let mut all = kept.consumer.iter().chain(&kept.owner);
        all.find(|row| row.number == number).cloned()
    }

    pub fn wrong_secrets(&self) -> WrongSecrets {
        self.0.lock().wrong_secrets
    }

    pub fn stamp(&self) -> Stamp {
        self.0.lock().stamp
    }

    /// All of it as bytes to be stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (rows, wrong_secrets) = {
            let kept = self.0.lock();
            let rows: Vec<_> = kept.consumer.iter().chain(&kept.owner).cloned().collect();
            (rows, kept.wrong_secrets)
        };
        let rows = rows.iter().map(|row| RefusedCall::clone(row)).collect();
        minicbor::to_vec(StoredRows { rows, wrong_secrets }).unwrap_or_default()
    }

    /// Reads what was stored; nothing of what cannot be read.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let Ok(stored) = minicbor::decode::<StoredRows>(bytes) else { return Self::default() };
        let mut kept = KeptRows { wrong_secrets: stored.wrong_secrets, ..KeptRows::default() };
        let mut rows = stored.rows;
        rows.sort_by_key(|row| row.number);
        for row in rows {
            kept.stamp.newest = kept.stamp.newest.max(row.number);
            kept.keep(row.within_bounds());
        }
        Self(Arc::new(Mutex::new(kept)))
    }
}

impl KeptRows {
    fn note(&mut self, mut call: RefusedCall) {
        call.number = self.stamp.newest + 1;
        match self.row_for(&call) {
            None => {
                self.stamp.newest = call.number;
                self.keep(call);
            }
            Some(number) => self.count_at(call.half, number),
        }
    }

    /// The number of the row at which a call is counted; `None` where it gets a row of its own.
    fn row_for(&mut self, call: &RefusedCall) -> Option<u64> {
        let minute = self.minutes.entry((call.half, call.code.clone())).or_default();
        // Also when the clock was set back.
        if call.time_secs.abs_diff(minute.began_secs) >= MINUTE_SECS {
            *minute = RunningMinute { began_secs: call.time_secs, ..RunningMinute::default() };
        }
        if minute.rows >= PER_MINUTE_MAX {
            return Some(minute.newest);
        }
        (minute.rows, minute.newest) = (minute.rows + 1, call.number);
        None
    }

    /// Counts a call at a row, while that is kept.
    fn count_at(&mut self, half: Half, number: u64) {
        self.stamp.counted += 1;
        let rows = self.rows_mut(half);
        let row = rows.binary_search_by_key(&number, |row| row.number).ok();
        if let Some(row) = row.and_then(|at| rows.get_mut(at)) {
            let row = Arc::make_mut(row);
            row.others = row.others.saturating_add(1);
        }
    }

    fn keep(&mut self, call: RefusedCall) {
        let (half, peer) = (call.half, call.peer);
        let rows = self.rows_mut(half);
        rows.push_back(Arc::new(call));
        while rows.len() > ROWS_MAX {
            // An owner's own programs choose whom they buy from.
            let is_its = |row: &Arc<RefusedCall>| half == Half::Owner && peer.is_some() && row.peer == peer;
            let has_more = rows.iter().filter(|row| is_its(row)).count() > ROWS_MAX / PAYERS_PART;
            let oldest = if has_more { rows.iter().position(is_its) } else { None };
            drop(rows.remove(oldest.unwrap_or_default()));
        }
    }

    const fn rows(&self, half: Half) -> &VecDeque<Arc<RefusedCall>> {
        match half {
            Half::Consumer => &self.consumer,
            Half::Owner => &self.owner,
        }
    }

    const fn rows_mut(&mut self, half: Half) -> &mut VecDeque<Arc<RefusedCall>> {
        match half {
            Half::Consumer => &mut self.consumer,
            Half::Owner => &mut self.owner,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(half: Half, code: &str, time_secs: u64) -> RefusedCall {
        RefusedCall { code: code.to_owned(), ..RefusedCall::new(half, time_secs) }
    }

    /// The number of calls that the rows of a half stand for.
    fn stand_for(calls: &RefusedCalls, half: Half) -> u64 {
        calls.of(half).iter().map(|row| 1 + row.others).sum()
    }

    #[test]
    fn a_flood_of_one_kind_takes_so_many_rows_a_minute_and_the_rest_is_counted() {
        let calls = RefusedCalls::default();
        (0..100_000).for_each(|_| calls.note(call(Half::Consumer, "malformed", 1_000)));
        calls.note(call(Half::Consumer, "over-limit", 1_000));
        let rows = calls.of(Half::Consumer);
        assert_eq!(rows.len(), 61);
        assert_eq!((rows[0].code.as_str(), rows[1].others), ("over-limit", 99_940));
        assert_eq!(stand_for(&calls, Half::Consumer), 100_001);
        calls.note(call(Half::Consumer, "malformed", 1_060));
        assert_eq!(calls.of(Half::Consumer).len(), 62, "the next minute has rows of its own");
        assert_eq!(stand_for(&calls, Half::Consumer), 100_002);
    }

    #[test]
    fn refusals_of_strangers_take_no_row_of_ones_own_calls() {
        let calls = RefusedCalls::default();
        calls.note(call(Half::Consumer, "over-limit", 1));
        for minute in 0..100 {
            (0..60).for_each(|_| calls.note(call(Half::Owner, "bad_signature", minute * 60)));
        }
        assert_eq!(calls.of(Half::Owner).len(), ROWS_MAX);
        assert_eq!(calls.of(Half::Consumer).len(), 1);
    }

    #[test]
    fn one_stranger_leaves_others_their_rows_however_many_kinds_of_calls_it_sends() {
        let calls = RefusedCalls::default();
        let [customer, stranger] = [1, 2].map(|byte| Some(Address::from_bytes([byte; 20])));
        let of = |peer| move |code: &str, secs| RefusedCall { peer, ..call(Half::Owner, code, secs) };
        for minute in 0..20 {
            (0..50).for_each(|_| calls.note(of(customer)("deposit_not_safe", minute * 60)));
        }
        for minute in 20..40 {
            for code in ["malformed", "unknown_service", "bad_signature", "call_id_conflict"] {
                (0..60).for_each(|_| calls.note(of(stranger)(code, minute * 60)));
            }
        }
        let rows = calls.of(Half::Owner);
        let its = rows.iter().filter(|row| row.peer == stranger).count();
        assert_eq!((rows.len(), its), (ROWS_MAX, ROWS_MAX / PAYERS_PART));
        assert_eq!((rows[0].peer, rows[0].time_secs), (stranger, 39 * 60), "its newest");
        assert!(rows.is_sorted_by(|newer, older| newer.number > older.number));
        let again = RefusedCalls::from_bytes(&calls.to_bytes());
        assert_eq!(again.of(Half::Owner), rows);
        calls.note(of(customer)("deposit_not_safe", 40 * 60));
        assert_eq!(calls.of(Half::Owner)[0].peer, customer);
    }

    #[test]
    fn a_row_has_bounded_texts_and_ends_none_within_a_character() {
        let calls = RefusedCalls::default();
        let path = format!("/{}", "é".repeat(4_096));
        let secret = Some("s".repeat(9_000));
        let long = RefusedCall { path, secret, ..call(Half::Consumer, "too-large", 1) };
        calls.note(long);
        let row = &calls.of(Half::Consumer)[0];
        assert_eq!(row.path.len(), TEXT_BYTES_MAX - 1, "a slash and whole characters");
        assert_eq!(row.secret.as_ref().unwrap().len(), TEXT_BYTES_MAX);
    }

    #[test]
    fn all_of_it_is_there_again_after_it_was_stored_and_numbers_go_on() {
        let calls = RefusedCalls::default();
        let known = RefusedCall {
            call_id: Some(CallId::from_bytes([1; 16])),
            service: Some(ServiceId::from_bytes([2; 16])),
            method: Some(Method::Post),
            peer: Some(Address::ZERO),
            charged: None,
            status: Some(402),
            ..call(Half::Consumer, "over-limit", 7)
        };
        calls.note(known);
        calls.note(call(Half::Owner, "busy", 8));
        calls.count_wrong_secret(9);
        let again = RefusedCalls::from_bytes(&calls.to_bytes());
        for half in Half::ALL {
            assert_eq!(again.of(half), calls.of(half), "{half:?}");
        }
        assert_eq!(again.wrong_secrets(), WrongSecrets { count: 1, last_secs: 9 });
        again.note(call(Half::Owner, "busy", 10));
        assert_eq!(again.of(Half::Owner)[0].number, 3);
        assert_eq!(again.numbered(1).unwrap().code, "over-limit");
        assert!(RefusedCalls::from_bytes(b"not what was written").of(Half::Owner).is_empty());
    }

    #[test]
    fn wrong_secrets_take_no_row_however_many_there_are() {
        let calls = RefusedCalls::default();
        let before = calls.to_bytes().len();
        (0..100_000).for_each(|secs| calls.count_wrong_secret(secs));
        assert_eq!(calls.wrong_secrets(), WrongSecrets { count: 100_000, last_secs: 99_999 });
        assert!(calls.to_bytes().len() < before + 16);
    }
}
