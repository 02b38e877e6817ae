//! How much of something may be under way at once, per peer and in all.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use farthing_protocol::Address;

/// Counts what is under way. Cheap to ask, never waits: what does not fit is refused.
#[derive(Debug)]
pub(crate) struct Admission {
    per_peer_max: usize,
    total_max: usize,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    by_peer: HashMap<Address, usize>,
    closed: bool,
}

impl Admission {
    pub(crate) fn new(per_peer_max: usize, total_max: usize) -> Arc<Self> {
        Arc::new(Self { per_peer_max, total_max, counts: Mutex::default() })
    }

    /// A place for one more of `peer`, or nothing when either limit is reached.
    pub(crate) fn admit(self: &Arc<Self>, peer: Address) -> Option<Permit> {
        let mut counts = self.counts();
        let of_peer = counts.by_peer.get(&peer).copied().unwrap_or(0);
        if counts.closed || counts.total >= self.total_max || of_peer >= self.per_peer_max {
            return None;
        }
        counts.total += 1;
        counts.by_peer.insert(peer, of_peer + 1);
        Some(Permit { admission: Arc::clone(self), peer })
    }

    /// Admits nothing more.
    pub(crate) fn close(&self) {
        self.counts().closed = true;
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.counts().total
    }

    /// The counts stay consistent under a panic elsewhere: they are changed by single assignments.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place that was given; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    peer: Address,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self.admission.counts();
        counts.total -= 1;
        if let Some(of_peer) = counts.by_peer.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                counts.by_peer.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address::from_bytes([1; 20]);
    const B: Address = Address::from_bytes([2; 20]);

    #[test]
    fn one_peer_cannot_take_every_place() {
        let admission = Admission::new(2, 3);
        let held = [admission.admit(A), admission.admit(A)];
        assert!(held.iter().all(Option::is_some));
        assert!(admission.admit(A).is_none(), "above the peer's share");
        let last = admission.admit(B);
        assert!(last.is_some());
        assert!(admission.admit(B).is_none(), "above the total");
        drop(held);
        assert!(admission.admit(B).is_some());
    }

    #[test]
    fn a_place_is_given_back() {
        let admission = Admission::new(1, 1);
        for _ in 0..3 {
            assert!(admission.admit(A).is_some());
        }
        assert_eq!(admission.in_flight(), 0);
        assert!(admission.counts().by_peer.is_empty());
        admission.close();
        assert!(admission.admit(A).is_none());
    }
}
