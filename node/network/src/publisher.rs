//! This node's own record: what it says, and when it is signed and put again. Pure but for the clock passed in.

use std::time::{Duration, Instant};

use farthing_protocol::{
    Hash, NodeRecord, SecretKey, Signed, Verified, limits,
    record::{FLAG_ACCEPTS_CALLS, FLAG_CALL_STREAMS},
    signed::DocumentError,
    wire::NetworkName,
};
use libp2p::Multiaddr;

use crate::RecordHolders;

/// A record lives 48 hours and is signed anew every day; four refreshes may fail before it dies.
const REFRESH_INTERVAL: Duration = Duration::from_secs(6 * 3600);
/// Changes are collected for this long before the directory hears of them again.
const PUT_INTERVAL_MIN: Duration = Duration::from_secs(60);
/// Changes of address that do not wait for it: until they are known nobody reaches the node. A node that starts makes
/// two, before and after its addresses are verified; one more is left for a provider that changes them then. Each
/// interval without a put gives one back.
const EARLY_PUTS_MAX: u32 = 3;
/// A record older than this is signed anew before it is put. All nodes hear of each new one, which is most of what they
/// say of records: 350 B/s for a network of 100,000.
const RENEW_AFTER_SECS: u64 = 24 * 3600;
/// After a put that reached nobody.
const PUT_RETRY: Duration = Duration::from_secs(5);
/// After one that too few took: doubling, because some may never take it.
const PUT_AGAIN_MIN: Duration = Duration::from_secs(60);
/// Numbers that a second of the clock has room for. Each run of a node counts from one of them, by lot: two nodes
/// with one wallet that start together would otherwise give two records one number, and neither would ever find the
/// other's above its own.
const NUMBERS_PER_SEC: u64 = 1000;
/// Version of the protocols this node speaks.
const PROTOCOL_VERSION: u16 = 1;

/// The facts that the node publishes about itself, besides where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Publication {
    /// `record::FLAG_…`
    pub(crate) flags: u32,
    pub(crate) listings_count: u32,
    pub(crate) listings_root: Hash,
}

/// Makes and remembers the node's own record.
#[derive(Debug)]
pub(crate) struct Publisher {
    key: SecretKey,
    network: NetworkName,
    agent: String,
    lot: u64,
    seq: u64,
    publication: Option<Publication>,
    addresses: Vec<Multiaddr>,
    /// `record::FLAG_…_VERIFIED`
    reach_flags: u32,
    changed: bool,
    record: Option<Verified<NodeRecord>>,
    put_due: Option<Instant>,
    put_at: Option<Instant>,
    early_puts_left: u32,
    /// Of the last put that ended.
    holders: Option<RecordHolders>,
    /// The pause after the next put that too few take.
    put_again: Duration,
}

impl Publisher {
    /// `lot` is any number, another one in every run.
    pub(crate) fn new(key: SecretKey, network: NetworkName, agent: &str, seq_start: u64, lot: u64) -> Self {
        Self {
            key,
            network,
            agent: agent.chars().take(64).collect(),
            lot: lot % NUMBERS_PER_SEC,
            seq: seq_start,
            publication: None,
            addresses: Vec::new(),
            reach_flags: 0,
            changed: false,
            record: None,
            put_due: None,
            put_at: None,
            early_puts_left: EARLY_PUTS_MAX,
            holders: None,
            put_again: PUT_AGAIN_MIN,
        }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns whether others are to call this node.
    pub(crate) fn accepts_calls(&self) -> bool {
        self.publication.is_some_and(|publication| publication.flags & FLAG_ACCEPTS_CALLS != 0)
    }

    /// The record as it stands, for peers that ask or are told.
    pub(crate) fn record(&self) -> Option<&Verified<NodeRecord>> {
        self.record.as_ref()
    }

    /// Signs a record with this publication.
    pub(crate) fn publish(
        &mut self,
        publication: Publication,
        now: Instant,
        now_secs: u64,
    ) -> Result<Verified<NodeRecord>, DocumentError> {
        self.publication = Some(publication);
        self.put_soon(now);
        self.sign(now_secs, limits::RECORD_LIFETIME_SECS_MAX)
    }

    /// Notes where the node can be reached, and over which transports that was verified. True when that
    /// changed what is published.
    pub(crate) fn set_addresses(
        &mut self,
        addresses: Vec<Multiaddr>,
        reach_flags: u32,
        now: Instant,
    ) -> bool {
        let is_new = self.addresses != addresses || self.reach_flags != reach_flags;
        let changed = is_new && self.publication.is_some();
        self.addresses = addresses;
        self.reach_flags = reach_flags;
        if changed {
            self.changed = true;
            self.put_soon(now);
            if self.early_puts_left > 0 {
                self.put_due = Some(now);
            }
        }
        changed
    }

    /// The record to put now: the one there is, or a new one when it aged or something in it changed.
    pub(crate) fn for_put(&mut self, now_secs: u64) -> Result<Verified<NodeRecord>, DocumentError> {
        match &self.record {
            Some(record)
                // One of the future is of a clock that was set right since.
                if !self.changed
                    && record.issued_secs <= now_secs
                    && now_secs < record.issued_secs.saturating_add(RENEW_AFTER_SECS) =>
            {
                Ok(record.clone())
            }
            _ => self.sign(now_secs, limits::RECORD_LIFETIME_SECS_MAX),
        }
    }

    /// The record that says goodbye: it expires as it is issued. Nothing when none was ever published.
    pub(crate) fn withdraw(&mut self, now_secs: u64) -> Result<Option<Verified<NodeRecord>>, DocumentError> {
        match self.publication {
            Some(_) => self.sign(now_secs, 0).map(Some),
            None => Ok(None),
        }
    }

    fn sign(&mut self, now_secs: u64, lifetime_secs: u64) -> Result<Verified<NodeRecord>, DocumentError> {
        let publication =
            self.publication.unwrap_or(Publication { flags: 0, listings_count: 0, listings_root: [0; 32] });
        // The clock is a floor, so that a wallet whose saved number was lost still rises.
        let clock = now_secs.saturating_mul(NUMBERS_PER_SEC).saturating_add(self.lot);
        self.seq = (self.seq + 1).max(clock);
        let record = NodeRecord {
            network: self.network.as_str().to_owned(),
            public_key: self.key.public_key(),
            net_key: None,
            seq: self.seq,
            issued_secs: now_secs,
            expires_secs: now_secs.saturating_add(lifetime_secs),
            flags: publication.flags | self.reach_flags | FLAG_CALL_STREAMS,
            protocol_min: PROTOCOL_VERSION,
            protocol_max: PROTOCOL_VERSION,
            addresses: self.addresses.iter().map(|address| address.to_vec().into()).collect(),
            listings_count: publication.listings_count,
            listings_root: publication.listings_root,
            agent: self.agent.clone(),
        };
        let record = Signed::sign(&record, &self.key)?.verify()?;
        self.record = Some(record.clone());
        self.changed = false;
        Ok(record)
    }

    /// Somebody holds a record of ours above our number, as after a restored backup: go above it.
    pub(crate) fn rise_above(&mut self, seq: u64, now: Instant) -> bool {
        let behind = seq > self.seq && seq < u64::MAX;
        if behind {
            self.seq = seq;
            self.changed = true;
            self.put_soon(now);
        }
        behind
    }

    /// Something changed, or somebody was met while there are few: the directory is told as soon as it may be.
    pub(crate) fn put_soon(&mut self, now: Instant) {
        let earliest = self.put_at.map_or(now, |at| at + PUT_INTERVAL_MIN);
        self.put_due = Some(self.put_due.map_or(earliest, |due| due.min(earliest)));
    }

    /// Returns the time at which the record is to be put next.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.publication.and(self.put_due)
    }

    /// The put was started.
    pub(crate) fn put_started(&mut self, now: Instant) {
        if let Some(at) = self.put_at {
            let intervals = now.duration_since(at).as_secs() / PUT_INTERVAL_MIN.as_secs();
            self.early_puts_left = match u32::try_from(intervals).unwrap_or(EARLY_PUTS_MAX) {
                0 => self.early_puts_left.saturating_sub(1),
                intervals => self.early_puts_left.saturating_add(intervals).min(EARLY_PUTS_MAX),
            };
        }
        self.put_due = Some(now + REFRESH_INTERVAL);
    }

    /// The put ended, and so many said that they verified the record and keep it. It is done when these are all that are to;
    /// otherwise it is due again.
    pub(crate) fn put_ended(&mut self, holders: RecordHolders, now: Instant) {
        self.holders = Some(holders);
        if holders.kept_by == 0 {
            self.put_due = Some(now + PUT_RETRY);
            return;
        }
        self.put_at = Some(now);
        if holders.are_enough() {
            self.put_again = PUT_AGAIN_MIN;
            return;
        }
        let again = now + self.put_again;
        self.put_due = Some(self.put_due.map_or(again, |due| due.min(again)));
        self.put_again = (2 * self.put_again).min(REFRESH_INTERVAL);
    }

    /// Returns who keeps the record, as far as the last put has shown.
    pub(crate) const fn holders(&self) -> Option<RecordHolders> {
        self.holders
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: RecordHolders = RecordHolders { kept_by: 20, wanted: 20 };
    const PUBLICATION: Publication = Publication { flags: 0, listings_count: 2, listings_root: [7; 32] };

    fn publisher(seq_start: u64) -> Publisher {
        let key = SecretKey::from_bytes(&[5; 32]).unwrap();
        Publisher::new(key, NetworkName::new("local-test").unwrap(), "farthing/test", seq_start, 4_007)
    }

    #[test]
    fn sequence_numbers_rise_strictly() {
        let mut publisher = publisher(0);
        let now = Instant::now();
        let first = publisher.publish(PUBLICATION, now, 1_000).unwrap().seq;
        let second = publisher.publish(PUBLICATION, now, 1_000).unwrap().seq;
        let behind_the_clock = publisher.publish(PUBLICATION, now, 500).unwrap().seq;
        assert!(first < second && second < behind_the_clock);
        assert!(publisher.rise_above(9_000_000, now));
        assert_eq!(publisher.for_put(1_000).unwrap().seq, 9_000_001);
        assert!(!publisher.rise_above(9_000_001, now));
    }

    #[test]
    fn a_restart_goes_on_above_the_saved_number() {
        let seq =
            |saved, now_secs| publisher(saved).publish(PUBLICATION, Instant::now(), now_secs).unwrap().seq;
        assert_eq!(seq(5_000_000, 1_000), 5_000_001);
        assert_eq!(seq(5_000_000, 6_000), 6_000_007, "or where the clock is, at this run's lot");
    }

    #[test]
    fn a_record_is_signed_anew_once_a_day() {
        let mut publisher = publisher(0);
        let first = publisher.publish(PUBLICATION, Instant::now(), 1_000).unwrap().seq;
        assert_eq!(publisher.for_put(1_000 + 24 * 3600 - 1).unwrap().seq, first);
        assert!(publisher.for_put(1_000 + 24 * 3600).unwrap().seq > first);
    }

    #[test]
    fn the_directory_hears_of_changes_at_most_once_a_minute() {
        let mut publisher = publisher(0);
        let start = Instant::now();
        publisher.publish(PUBLICATION, start, 1_000).unwrap();
        assert_eq!(publisher.next_due(), Some(start));
        publisher.put_started(start);
        publisher.put_ended(ALL, start);
        assert_eq!(publisher.next_due(), Some(start + REFRESH_INTERVAL));
        publisher.put_soon(start + Duration::from_secs(1));
        assert_eq!(publisher.next_due(), Some(start + PUT_INTERVAL_MIN));
    }

    #[test]
    fn a_change_of_address_does_not_wait_for_its_minute_a_few_times() {
        let mut publisher = publisher(0);
        let mut now = Instant::now();
        let puts = |publisher: &mut Publisher, now: Instant, n: u16| {
            let address = format!("/ip4/9.9.9.9/tcp/{n}").parse().unwrap();
            assert!(publisher.set_addresses(vec![address], 0, now));
            let due = publisher.next_due().unwrap();
            if due <= now {
                publisher.put_started(now);
                publisher.put_ended(ALL, now);
            }
            due - now
        };
        publisher.publish(PUBLICATION, now, 1_000).unwrap();
        publisher.put_started(now);
        publisher.put_ended(ALL, now);
        for n in 1..=3 {
            assert_eq!(puts(&mut publisher, now, n), Duration::ZERO, "change {n}");
        }
        assert_eq!(puts(&mut publisher, now, 4), PUT_INTERVAL_MIN, "one that flaps waits");
        now += PUT_INTERVAL_MIN;
        publisher.put_started(now);
        publisher.put_ended(ALL, now);
        assert_eq!(puts(&mut publisher, now, 5), Duration::ZERO, "a minute gives one back");
        assert_eq!(puts(&mut publisher, now, 6), PUT_INTERVAL_MIN);
    }

    #[test]
    fn a_node_that_flips_between_two_networks_is_told_of_twice_a_minute_at_most_and_as_it_is_then() {
        let mut publisher = publisher(0);
        let start = Instant::now();
        publisher.publish(PUBLICATION, start, 1_000).unwrap();
        let mut puts = 0;
        for second in 0..3600 {
            let now = start + Duration::from_secs(second);
            let network = second / 10 % 2;
            let here: Multiaddr = format!("/ip4/9.9.9.{network}/tcp/3001").parse().unwrap();
            publisher.set_addresses(vec![here.clone()], 0, now);
            if publisher.next_due().is_some_and(|due| due <= now) {
                publisher.put_started(now);
                let record = publisher.for_put(1_000 + second).unwrap();
                assert_eq!(record.addresses[0].to_vec(), here.to_vec(), "after {second} s");
                publisher.put_ended(ALL, now);
                puts += 1;
            }
        }
        assert!((60..=120).contains(&puts), "{puts} puts in an hour");
    }

    #[test]
    fn a_put_that_reached_nobody_is_repeated_soon() {
        let mut publisher = publisher(0);
        let start = Instant::now();
        publisher.publish(PUBLICATION, start, 1_000).unwrap();
        publisher.put_started(start);
        publisher.put_ended(RecordHolders { kept_by: 0, wanted: 20 }, start);
        assert_eq!(publisher.next_due(), Some(start + PUT_RETRY));
        publisher.put_soon(start);
        assert_eq!(publisher.next_due(), Some(start), "a new peer makes it worth while at once");
    }

    #[test]
    fn a_put_that_too_few_took_is_not_done_and_is_repeated_ever_more_rarely_until_enough_did() {
        let mut publisher = publisher(0);
        let mut now = Instant::now();
        publisher.publish(PUBLICATION, now, 1_000).unwrap();
        let mut put = |kept_by| {
            publisher.put_started(now);
            publisher.put_ended(RecordHolders { kept_by, wanted: 20 }, now);
            let pause = publisher.next_due().unwrap() - now;
            now += pause;
            pause.as_secs()
        };
        let pauses: Vec<u64> = (0..12).map(|_| put(19)).collect();
        assert_eq!(pauses, [60, 120, 240, 480, 960, 1920, 3840, 7680, 15_360, 21_600, 21_600, 21_600]);
        assert_eq!(put(20), REFRESH_INTERVAL.as_secs());
        assert_eq!(put(1), 60, "it begins anew");
        assert_eq!(publisher.holders(), Some(RecordHolders { kept_by: 1, wanted: 20 }));
    }

    #[test]
    fn goodbye_expires_as_it_is_issued() {
        let mut publisher = publisher(0);
        assert_eq!(publisher.withdraw(1_000).unwrap(), None);
        let live = publisher.publish(PUBLICATION, Instant::now(), 1_000).unwrap();
        let goodbye = publisher.withdraw(1_001).unwrap().unwrap();
        assert!(goodbye.seq > live.seq);
        assert!(live.check_time(1_001).is_ok() && goodbye.check_time(1_001).is_err());
    }
}
