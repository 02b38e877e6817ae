//! This node's own record: what it says, and when it is signed and put again. Pure but for the clock passed in.

use std::time::{Duration, Instant};

use farthing_protocol::{
    Hash, NodeRecord, SecretKey, Signed, Verified, limits, signed::DocumentError, wire::NetworkName,
};
use libp2p::Multiaddr;

/// A record lives 48 hours; eight refreshes may fail before it dies.
const REFRESH_INTERVAL: Duration = Duration::from_secs(6 * 3600);
/// Changes are collected for this long before the directory hears of them again.
const PUT_INTERVAL_MIN: Duration = Duration::from_secs(60);
/// Changes of address that do not wait for it: until they are known nobody reaches the node. A node that starts makes
/// two, before and after its addresses are verified; one more is left for a provider that changes them then. Each
/// interval without a put gives one back.
const EARLY_PUTS_MAX: u32 = 3;
/// A record older than this is signed anew before it is put.
const RENEW_AFTER_SECS: u64 = 3600;
/// After a put that reached nobody.
const PUT_RETRY: Duration = Duration::from_secs(5);
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
        }
    }

    pub(crate) fn seq(&self) -> u64 {
        self.seq
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
            flags: publication.flags | self.reach_flags,
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

    /// The put ended; `reached` when at least one peer took the record.
    pub(crate) fn put_ended(&mut self, reached: bool, now: Instant) {
        if reached {
            self.put_at = Some(now);
        } else {
            self.put_due = Some(now + PUT_RETRY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_directory_hears_of_changes_at_most_once_a_minute() {
        let mut publisher = publisher(0);
        let start = Instant::now();
        publisher.publish(PUBLICATION, start, 1_000).unwrap();
        assert_eq!(publisher.next_due(), Some(start));
        publisher.put_started(start);
        publisher.put_ended(true, start);
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
                publisher.put_ended(true, now);
            }
            due - now
        };
        publisher.publish(PUBLICATION, now, 1_000).unwrap();
        publisher.put_started(now);
        publisher.put_ended(true, now);
        for n in 1..=3 {
            assert_eq!(puts(&mut publisher, now, n), Duration::ZERO, "change {n}");
        }
        assert_eq!(puts(&mut publisher, now, 4), PUT_INTERVAL_MIN, "one that flaps waits");
        now += PUT_INTERVAL_MIN;
        publisher.put_started(now);
        publisher.put_ended(true, now);
        assert_eq!(puts(&mut publisher, now, 5), Duration::ZERO, "a minute gives one back");
        assert_eq!(puts(&mut publisher, now, 6), PUT_INTERVAL_MIN);
    }

    #[test]
    fn a_put_that_reached_nobody_is_repeated_soon() {
        let mut publisher = publisher(0);
        let start = Instant::now();
        publisher.publish(PUBLICATION, start, 1_000).unwrap();
        publisher.put_started(start);
        publisher.put_ended(false, start);
        assert_eq!(publisher.next_due(), Some(start + PUT_RETRY));
        publisher.put_soon(start);
        assert_eq!(publisher.next_due(), Some(start), "a new peer makes it worth while at once");
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
