//! Whether another node runs with this node's wallet, as after a copied data folder. Pure.
//!
//! Two nodes with one key outbid each other's records, and neither is reached reliably. One record above
//! ours may be left from before a restored backup; a second, after we went above the first, was signed by
//! somebody who is running now. So is whoever dials us with our own key while we do not.

use std::time::{Duration, Instant};

/// Rises of our record's number by somebody else that are no accident any more.
const RISES_SUSPICIOUS: u32 = 2;
/// Meetings with our own key that cannot be explained by dialling ourselves. One may be a matter of timing.
const MEETINGS_SUSPICIOUS: u32 = 2;
/// The suspicion ends when nothing has been noticed for so long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// What has been noticed.
#[derive(Debug, Default)]
pub(crate) struct Twin {
    rises: u32,
    /// The number we found above ours last.
    risen_to: u64,
    /// Connections in which the other side had our key, by who opened them.
    outgoing: u32,
    incoming: u32,
    noticed: Option<Instant>,
}

impl Twin {
    /// A record of ours came by with the number `seq`, which we did not sign in this run, when ours was
    /// `own_seq`. It counts again only after we went above the one before.
    pub(crate) fn rose(&mut self, own_seq: u64, seq: u64, now: Instant) {
        self.notice(now);
        if self.rises == 0 || own_seq > self.risen_to {
            self.rises += 1;
        }
        self.risen_to = seq;
    }

    /// We dialled an address and found our own key. Dialling oneself makes one of each of these two.
    pub(crate) fn dialled_own_key(&mut self, now: Instant) {
        self.notice(now);
        self.outgoing += 1;
    }

    /// Somebody dialled us with our own key.
    pub(crate) fn dialled_by_own_key(&mut self, now: Instant) {
        self.notice(now);
        self.incoming += 1;
    }

    pub(crate) fn is_suspected(&self, now: Instant) -> bool {
        let fresh = self.noticed.is_some_and(|at| now.duration_since(at) < FORGOTTEN_AFTER);
        let unexplained = self.incoming.abs_diff(self.outgoing);
        fresh && (self.rises >= RISES_SUSPICIOUS || unexplained >= MEETINGS_SUSPICIOUS)
    }

    fn notice(&mut self, now: Instant) {
        if self.noticed.is_some_and(|at| now.duration_since(at) >= FORGOTTEN_AFTER) {
            *self = Self::default();
        }
        self.noticed = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_rise_is_no_accident() {
        let (mut twin, now) = (Twin::default(), Instant::now());
        twin.rose(5, 10, now);
        assert!(!twin.is_suspected(now), "a restored backup");
        twin.rose(10, 12, now);
        assert!(!twin.is_suspected(now), "a newer one from before the same backup");
        twin.rose(13, 14, now);
        assert!(twin.is_suspected(now));
        assert!(!twin.is_suspected(now + FORGOTTEN_AFTER), "the other one was stopped");
        twin.rose(15, 16, now + FORGOTTEN_AFTER);
        assert!(!twin.is_suspected(now + FORGOTTEN_AFTER), "and counting starts again");
    }

    #[test]
    fn dialling_oneself_is_no_twin() {
        let (mut twin, now) = (Twin::default(), Instant::now());
        for _ in 0..10 {
            twin.dialled_own_key(now);
            twin.dialled_by_own_key(now);
        }
        assert!(!twin.is_suspected(now));
        twin.dialled_by_own_key(now);
        assert!(!twin.is_suspected(now), "the other half may be on its way");
        twin.dialled_by_own_key(now);
        assert!(twin.is_suspected(now));
    }
}
