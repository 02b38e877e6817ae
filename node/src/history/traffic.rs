//! Bytes that travelled between this node and others: over time, also before the present run.
//!
//! 1. Each minute, and when somebody asks, what travelled since the look before counts in the present hour, and in its five minutes.
//! 2. Every ten minutes, and at a stop, one commit stores the hours that changed, never one for each call. A crash loses what
//!    came later.
//! 3. After 31 days an hour moves into its day; after three years the day goes. Parts of five minutes are in memory alone.
//!
//! Invariant: a byte is in one hour or in one day, so that no sum has it twice. These are 1,900 small documents at most.

use std::{collections::BTreeMap, mem, sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_control::types::{SeriesRange, TrafficPoint, TrafficSeries};
use farthing_ledger::{Document, Ledger, LedgerError, Namespace};
use farthing_network::NetworkHandle;
use farthing_os::clock;
use parking_lot::Mutex;

use super::series::{part_of, starts};

const LOOK_EVERY: Duration = Duration::from_secs(60);
const LOOKS_PER_COMMIT: u32 = 10;
const PART_SECS: u64 = 300;
const HOUR_SECS: u64 = 3_600;
const DAY_SECS: u64 = 86_400;
const HOURS_OF_A_DAY: u64 = DAY_SECS / HOUR_SECS;
/// An hour, and the part that has begun.
const PARTS_KEPT: u64 = 13;
/// As the figures of calls are kept.
const HOURS_KEPT: u64 = 31 * HOURS_OF_A_DAY;
const DAYS_KEPT: u64 = 3 * 366;

/// The length that a stored row is of: the first byte of its key.
const OF_HOUR: u8 = 0;
const OF_DAY: u8 = 1;

/// Bytes in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Travelled {
    sent: u64,
    received: u64,
}

impl Travelled {
    const fn add(&mut self, more: Self) {
        self.sent = self.sent.saturating_add(more.sent);
        self.received = self.received.saturating_add(more.received);
    }

    const fn since(self, before: Self) -> Self {
        Self {
            sent: self.sent.saturating_sub(before.sent),
            received: self.received.saturating_sub(before.received),
        }
    }

    fn stored(self) -> Bytes {
        Bytes::from([self.sent.to_be_bytes(), self.received.to_be_bytes()].concat())
    }

    /// `None` of what no node stored so.
    fn read(stored: &[u8]) -> Option<Self> {
        let (sent, received) = stored.split_first_chunk::<8>()?;
        let received = <[u8; 8]>::try_from(received).ok()?;
        Some(Self { sent: u64::from_be_bytes(*sent), received: u64::from_be_bytes(received) })
    }
}

/// Rows by their number since the epoch.
#[derive(Debug, Default)]
struct Rows {
    /// The count of the network at the last look, since its start.
    counted: Travelled,
    parts: BTreeMap<u64, Travelled>,
    hours: BTreeMap<u64, Travelled>,
    days: BTreeMap<u64, Travelled>,
    /// Keys and values that differ from what is stored; `None` of rows that are gone.
    unstored: BTreeMap<Vec<u8>, Option<Bytes>>,
}

impl Rows {
    fn restored(documents: Vec<(Bytes, Bytes)>) -> Self {
        let mut rows = Self::default();
        for (key, value) in documents {
            let number = key.get(1..).and_then(|number| <[u8; 8]>::try_from(number).ok());
            let (Some(number), Some(travelled)) = (number, Travelled::read(&value)) else { continue };
            let of = if key.first() == Some(&OF_HOUR) { &mut rows.hours } else { &mut rows.days };
            of.insert(u64::from_be_bytes(number), travelled);
        }
        rows
    }

    fn count(&mut self, counted: Travelled, now_secs: u64) {
        let travelled = counted.since(mem::replace(&mut self.counted, counted));
        if travelled == Travelled::default() {
            return;
        }
        self.parts.entry(now_secs / PART_SECS).or_default().add(travelled);
        let number = now_secs / HOUR_SECS;
        let hour = self.hours.entry(number).or_default();
        hour.add(travelled);
        self.unstored.insert(key(OF_HOUR, number), Some(hour.stored()));
        self.move_old(now_secs);
    }

    /// Moves old hours into their days, and drops what is older still.
    fn move_old(&mut self, now_secs: u64) {
        before(&mut self.parts, now_secs / PART_SECS, PARTS_KEPT);
        for (number, travelled) in before(&mut self.hours, now_secs / HOUR_SECS, HOURS_KEPT) {
            let day = number / HOURS_OF_A_DAY;
            let sum = self.days.entry(day).or_default();
            sum.add(travelled);
            self.unstored.insert(key(OF_DAY, day), Some(sum.stored()));
            self.unstored.insert(key(OF_HOUR, number), None);
        }
        for (number, _) in before(&mut self.days, now_secs / DAY_SECS, DAYS_KEPT) {
            self.unstored.insert(key(OF_DAY, number), None);
        }
    }

    /// Tells each row with a second of it.
    fn each(&self, range: SeriesRange, mut each: impl FnMut(u64, Travelled)) {
        let mut tell = |secs: u64, rows: &BTreeMap<u64, Travelled>| {
            for (number, travelled) in rows {
                each(number.saturating_mul(secs), *travelled);
            }
        };
        if range == SeriesRange::Hour {
            tell(PART_SECS, &self.parts);
        } else {
            tell(HOUR_SECS, &self.hours);
            tell(DAY_SECS, &self.days);
        }
    }
}

/// Takes out the rows that are older than so many before `present`.
fn before(rows: &mut BTreeMap<u64, Travelled>, present: u64, kept: u64) -> Vec<(u64, Travelled)> {
    let first_kept = present.saturating_sub(kept);
    let mut old = Vec::new();
    while let Some(first) = rows.first_entry().filter(|first| *first.key() < first_kept) {
        old.push(first.remove_entry());
    }
    old
}

fn key(of: u8, number: u64) -> Vec<u8> {
    [[of].as_slice(), number.to_be_bytes().as_slice()].concat()
}

/// The traffic of this node over time. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TrafficKept(Arc<TrafficInner>);

#[derive(Debug)]
struct TrafficInner {
    ledger: Ledger,
    rows: Mutex<Rows>,
}

impl TrafficKept {
    /// Reads what was stored before.
    pub fn restore(ledger: Ledger) -> Result<Self, LedgerError> {
        let rows = Mutex::new(Rows::restored(ledger.list(Namespace::Traffic)?));
        Ok(Self(Arc::new(TrafficInner { ledger, rows })))
    }

    /// Counts and stores until it is dropped.
    pub async fn run(self, network: NetworkHandle) {
        loop {
            for _ in 0..LOOKS_PER_COMMIT {
                tokio::time::sleep(LOOK_EVERY).await;
                self.look(&network);
            }
            self.keep(&network).await;
        }
    }

    /// Counts and stores what travelled so far.
    pub async fn keep(&self, network: &NetworkHandle) {
        self.look(network);
        if let Err(error) = self.store().await {
            tracing::warn!(%error, "the traffic of the last minutes could not be stored");
        }
    }

    /// Counts what travelled since the look before.
    pub fn look(&self, network: &NetworkHandle) {
        let counted = network.counters();
        let counted = Travelled { sent: counted.stream_bytes_sent, received: counted.stream_bytes_received };
        self.0.rows.lock().count(counted, clock::now_secs());
    }

    /// Returns what travelled in each part of a range that ends now.
    pub fn series(&self, range: SeriesRange) -> TrafficSeries {
        self.series_at(range, clock::now_secs())
    }

    fn series_at(&self, range: SeriesRange, now_secs: u64) -> TrafficSeries {
        let starts = starts(range, now_secs);
        let mut parts = vec![Travelled::default(); starts.len()];
        self.0.rows.lock().each(range, |secs, travelled| {
            if let Some(part) = part_of(&starts, secs).and_then(|at| parts.get_mut(at)) {
                part.add(travelled);
            }
        });
        let point = |(start_secs, part): (&u64, &Travelled)| TrafficPoint {
            start_secs: *start_secs,
            sent_bytes: part.sent,
            received_bytes: part.received,
        };
        TrafficSeries { range, points: starts.iter().zip(&parts).map(point).collect() }
    }

    /// Stores what changed. If that fails, the next time stores it as well.
    async fn store(&self) -> Result<(), LedgerError> {
        let unstored = self.0.rows.lock().unstored.clone();
        let document = |(key, value): (Vec<u8>, Option<Bytes>)| Document {
            namespace: Namespace::Traffic,
            key: Bytes::from(key),
            value,
        };
        let documents: Vec<Document> = unstored.clone().into_iter().map(document).collect();
        if documents.is_empty() {
            return Ok(());
        }
        self.0.ledger.put_many(documents).await?;
        // What changed meanwhile has another value.
        self.0.rows.lock().unstored.retain(|key, value| unstored.get(key) != Some(&*value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::OpenMode;

    use super::*;

    fn counted(bytes: u64) -> Travelled {
        Travelled { sent: bytes, received: 2 * bytes }
    }

    fn sums(traffic: &TrafficKept, range: SeriesRange, now_secs: u64) -> (u64, u64) {
        let points = traffic.series_at(range, now_secs).points;
        points.iter().fold((0, 0), |(sent, received), point| {
            (sent + point.sent_bytes, received + point.received_bytes)
        })
    }

    #[tokio::test]
    async fn a_byte_counts_once_in_its_hour_or_its_day_also_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ledger.redb");
        let now_secs = clock::start_of("2026-03-30").unwrap() + 50_000;
        let traffic = TrafficKept::restore(Ledger::open(&file, OpenMode::Create).unwrap()).unwrap();
        let count = |bytes, secs| traffic.0.rows.lock().count(counted(bytes), secs);
        count(100, now_secs - 40 * DAY_SECS);
        count(160, now_secs - 40 * DAY_SECS);
        count(200, now_secs);
        assert_eq!(sums(&traffic, SeriesRange::Hour, now_secs), (40, 80));
        assert_eq!(sums(&traffic, SeriesRange::Month, now_secs), (40, 80));
        assert_eq!(sums(&traffic, SeriesRange::Year, now_secs), (200, 400));
        traffic.store().await.unwrap();
        assert!(traffic.0.rows.lock().unstored.is_empty());
        drop(traffic);
        let traffic = TrafficKept::restore(Ledger::open(&file, OpenMode::Existing).unwrap()).unwrap();
        assert_eq!(sums(&traffic, SeriesRange::Day, now_secs), (40, 80));
        assert_eq!(sums(&traffic, SeriesRange::Year, now_secs), (200, 400));
        assert_eq!(sums(&traffic, SeriesRange::Hour, now_secs), (0, 0), "five minutes are in memory alone");
        // The network counts from the start.
        traffic.0.rows.lock().count(counted(7), now_secs);
        assert_eq!(sums(&traffic, SeriesRange::Day, now_secs), (47, 94));
    }

    #[test]
    fn rows_are_bounded_however_long_a_node_runs() {
        let mut rows = Rows::default();
        for hour in 0..4 * 366 * HOURS_OF_A_DAY {
            rows.count(counted(hour + 1), hour * HOUR_SECS);
        }
        let (hours, days) = (rows.hours.len() as u64, rows.days.len() as u64);
        assert!(hours <= HOURS_KEPT + 1 && days <= DAYS_KEPT + 1, "{hours} hours, {days} days");
        assert!(rows.parts.len() as u64 <= PARTS_KEPT + 1);
    }
}
