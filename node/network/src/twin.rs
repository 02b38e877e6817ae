//! Detects another node that runs with this node's wallet, as after a copied data folder. Pure.
//!
//! Two nodes with one key outbid each other's records, and neither is reached reliably. A record above ours may be
//! left from before a restored backup; one that was signed since we started, and not by us, was signed by somebody
//! who is running now. So was a second one after we went above the first, whatever its clock says. And so is whoever
//! answers with our own key where we dial while nobody dials us.

use std::time::{Duration, Instant};

/// Rises of our record's number by somebody else that are no accident any more.
const RISES_SUSPICIOUS: u32 = 2;
/// Rises that are answered at once, so that both know of each other soon; after these both know.
const RISES_ANSWERED: u32 = 5;
/// A handshake takes no longer, so that of one that we have with ourselves both ends lie within this.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// The suspicion ends when nothing has been noticed for so long. Two nodes outbid each other once a minute.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(600);

/// The signs of a twin that have been noticed.
#[derive(Debug, Default)]
pub(crate) struct Twin {
    rises: u32,
    /// The number we found above ours last.
    risen_to: u64,
    /// The time at which a connection last began, ours to others and theirs to us.
    dial_began: Option<Instant>,
    arrival_began: Option<Instant>,
    /// Something that nobody but a twin does.
    is_seen: bool,
    noticed: Option<Instant>,
}

impl Twin {
    /// A record of ours came by with the number `seq`, which we did not sign in this run, when ours was
    /// `own_seq`. It counts again only after we went above the one before. `is_of_this_run` says whether it was
    /// signed since we started.
    pub(crate) fn rose(&mut self, own_seq: u64, seq: u64, is_of_this_run: bool, now: Instant) {
        self.notice(now);
        self.is_seen |= is_of_this_run;
        if self.rises == 0 || own_seq > self.risen_to {
            self.rises += 1;
        }
        self.risen_to = seq;
    }

    /// A record of ours that we did not sign says goodbye: whoever signed it has stopped.
    pub(crate) fn left(&mut self) {
        *self = Self { dial_began: self.dial_began, arrival_began: self.arrival_began, ..Self::default() };
    }

    /// We began to dial somebody.
    pub(crate) fn dial_began(&mut self, now: Instant) {
        self.dial_began = Some(now);
    }

    /// Somebody began to dial us.
    pub(crate) fn arrival_began(&mut self, now: Instant) {
        self.arrival_began = Some(now);
    }

    /// We dialled an address and found our own key. When somebody dialled us at that time, it may have been we.
    pub(crate) fn dialled_own_key(&mut self, now: Instant) {
        if !is_recent(self.arrival_began, now) {
            self.notice(now);
            self.is_seen = true;
        }
    }

    /// Somebody dialled us with our own key. When we dialled somebody at that time, it may have been we.
    pub(crate) fn dialled_by_own_key(&mut self, now: Instant) {
        if !is_recent(self.dial_began, now) {
            self.notice(now);
            self.is_seen = true;
        }
    }

    pub(crate) fn is_suspected(&self, now: Instant) -> bool {
        let fresh = self.noticed.is_some_and(|at| now.duration_since(at) < FORGOTTEN_AFTER);
        fresh && (self.is_seen || self.rises >= RISES_SUSPICIOUS)
    }

    /// Returns whether the last rise is worth an answer at once.
    pub(crate) const fn is_news(&self) -> bool {
        0 < self.rises && self.rises <= RISES_ANSWERED
    }

    fn notice(&mut self, now: Instant) {
        if self.noticed.is_some_and(|at| now.duration_since(at) >= FORGOTTEN_AFTER) {
            self.left();
        }
        self.noticed = Some(now);
    }
}

fn is_recent(began: Option<Instant>, now: Instant) -> bool {
    began.is_some_and(|at| now.duration_since(at) < HANDSHAKE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_rise_is_no_accident() {
        let (mut twin, now) = (Twin::default(), Instant::now());
        twin.rose(5, 10, false, now);
        assert!(!twin.is_suspected(now), "a restored backup");
        twin.rose(10, 12, false, now);
        assert!(!twin.is_suspected(now), "a newer one from before the same backup");
        twin.rose(13, 14, false, now);
        assert!(twin.is_suspected(now));
        assert!(!twin.is_suspected(now + FORGOTTEN_AFTER), "the other one was stopped");
        twin.rose(15, 16, false, now + FORGOTTEN_AFTER);
        assert!(!twin.is_suspected(now + FORGOTTEN_AFTER), "and counting starts again");
    }

    #[test]
    fn a_record_signed_since_the_start_is_enough_until_its_signer_says_goodbye() {
        let (mut twin, now) = (Twin::default(), Instant::now());
        twin.rose(5, 10, true, now);
        assert!(twin.is_suspected(now));
        twin.left();
        assert!(!twin.is_suspected(now));
    }

    #[test]
    fn dialling_oneself_is_no_twin() {
        let (mut twin, now) = (Twin::default(), Instant::now());
        for _ in 0..10 {
            twin.dial_began(now);
            twin.arrival_began(now);
            twin.dialled_own_key(now);
            twin.dialled_by_own_key(now);
        }
        assert!(!twin.is_suspected(now));
    }

    #[test]
    fn whoever_answers_with_our_key_while_nobody_dials_us_is_a_twin() {
        let now = Instant::now();
        let (mut dialling, mut dialled) = (Twin::default(), Twin::default());
        dialling.dial_began(now);
        dialling.dialled_own_key(now);
        assert!(dialling.is_suspected(now));
        dialled.dial_began(now);
        dialled.arrival_began(now + HANDSHAKE_MAX);
        dialled.dialled_by_own_key(now + HANDSHAKE_MAX);
        assert!(dialled.is_suspected(now + HANDSHAKE_MAX), "it dialled somebody else, long ago");
    }
}
