//! Limits of what may be under way at once: in all, per peer, and of strangers, per address range.

use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};

use farthing_protocol::Address;
use parking_lot::Mutex;
use tokio::time::timeout;

use crate::{line::Line, neighbour_origin::NeighbourOrigin, partners::Partners};

/// A peer that asks for a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visitor {
    pub(crate) wallet: Address,
    /// Its address range, by [`farthing_bounds::range`]; `None` in private networks and within this process, where
    /// one address may stand for many nodes.
    pub(crate) range: Option<IpAddr>,
    /// True if a channel is open with it. Everybody else is a stranger: wallets cost nothing.
    pub(crate) is_partner: bool,
}

impl Visitor {
    /// The peer that opened this stream, as it stands now.
    pub(crate) fn of(wallet: Address, line: &Line, partners: &Partners) -> Self {
        Self { wallet, range: line.range(), is_partner: partners.contains(&wallet) }
    }

    /// Returns what it is counted by: a partner by itself, and the strangers of one address range together.
    pub(crate) fn origin(&self) -> NeighbourOrigin {
        NeighbourOrigin::of(self.wallet, self.range.filter(|_| !self.is_partner))
    }
}

/// The division of places among visitors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    pub(crate) total_max: usize,
    pub(crate) per_peer_max: usize,
    /// Of all places, those that strangers may take together.
    pub(crate) strangers_max: usize,
    /// Of these, what one address range may take.
    pub(crate) per_range_max: usize,
    /// True if a peer takes no more than it leaves free: the next one finds a place, and no two peers take all of them
    /// (Choudhury and Hahne, "Dynamic queue length thresholds", 1998).
    pub(crate) leaves_as_much: bool,
}

impl Shares {
    /// Half of the places are kept for partners, and an eighth is the most that the strangers of one range get: four
    /// ranges are needed to fill what strangers have.
    pub(crate) fn half_for_partners(per_peer_max: usize, total_max: usize) -> Self {
        let strangers_max = total_max.div_ceil(2);
        let per_range_max = strangers_max.div_ceil(4);
        Self { total_max, per_peer_max, strangers_max, per_range_max, leaves_as_much: true }
    }
}

/// Counts what is under way. Cheap to ask, never waits: what does not fit is refused.
#[derive(Debug)]
pub(crate) struct Admission {
    shares: Shares,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    total: usize,
    strangers: usize,
    by_peer: HashMap<Address, usize>,
    by_range: HashMap<IpAddr, usize>,
    closed: bool,
}

impl Admission {
    /// Without a part for anybody.
    pub(crate) fn new(per_peer_max: usize, total_max: usize) -> Arc<Self> {
        let (strangers_max, per_range_max) = (total_max, total_max);
        Self::shared(Shares { total_max, per_peer_max, strangers_max, per_range_max, leaves_as_much: false })
    }

    pub(crate) fn shared(shares: Shares) -> Arc<Self> {
        Arc::new(Self { shares, counts: Mutex::default() })
    }

    /// A place for one more of `peer`, wherever it comes from.
    pub(crate) fn admit(self: &Arc<Self>, peer: Address) -> Option<Permit> {
        self.admit_visitor(Visitor { wallet: peer, range: None, is_partner: true })
    }

    /// A place for one more of `visitor`, or nothing when one of its shares is used up.
    pub(crate) fn admit_visitor(self: &Arc<Self>, visitor: Visitor) -> Option<Permit> {
        let mut counts = self.counts.lock();
        if counts.closed || !counts.has_room(&self.shares, &visitor) {
            return None;
        }
        counts.add(&visitor);
        Some(Permit { admission: Arc::clone(self), visitor })
    }

    /// Admits nothing more.
    pub(crate) fn close(&self) {
        self.counts.lock().closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.counts.lock().closed
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.counts.lock().total
    }
}

impl Counts {
    fn has_room(&self, shares: &Shares, visitor: &Visitor) -> bool {
        let of_peer = self.by_peer.get(&visitor.wallet).copied().unwrap_or(0);
        let of_range = visitor.range.and_then(|range| self.by_range.get(&range)).copied().unwrap_or(0);
        let free = shares.total_max.saturating_sub(self.total);
        free > 0
            && of_peer < shares.per_peer_max
            && (of_peer < free || !shares.leaves_as_much)
            && (visitor.is_partner
                || self.strangers < shares.strangers_max && of_range < shares.per_range_max)
    }

    fn add(&mut self, visitor: &Visitor) {
        self.total += 1;
        *self.by_peer.entry(visitor.wallet).or_default() += 1;
        if visitor.is_partner {
            return;
        }
        self.strangers += 1;
        if let Some(range) = visitor.range {
            *self.by_range.entry(range).or_default() += 1;
        }
    }

    fn remove(&mut self, visitor: &Visitor) {
        self.total -= 1;
        one_less(&mut self.by_peer, &visitor.wallet);
        if visitor.is_partner {
            return;
        }
        self.strangers -= 1;
        if let Some(range) = &visitor.range {
            one_less(&mut self.by_range, range);
        }
    }
}

/// Keys without anything under way are forgotten.
fn one_less<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

/// A place that was given; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    visitor: Visitor,
}

impl Permit {
    /// Serves on a task of its own for `within` at most, and gives the place back.
    pub(crate) fn spawn(self, within: Duration, serving: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(async move {
            // A peer that is too slow for the deadline finds its stream closed.
            let _ = timeout(within, serving).await;
            drop(self);
        });
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.counts.lock().remove(&self.visitor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = Address::from_bytes([1; 20]);
    const B: Address = Address::from_bytes([2; 20]);

    fn visitor(wallet: u8, range: u8, is_partner: bool) -> Visitor {
        let range = Some([9, 9, range, 0].into());
        Visitor { wallet: Address::from_bytes([wallet; 20]), range, is_partner }
    }

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
        assert!(admission.counts.lock().by_peer.is_empty());
        admission.close();
        assert!(admission.admit(A).is_none());
    }

    #[test]
    fn strangers_never_take_what_is_kept_for_partners() {
        let admission = Admission::shared(Shares::half_for_partners(64, 128));
        // Many wallets of many ranges: as free wallets are.
        let held: Vec<_> = (0..=255).filter_map(|n| admission.admit_visitor(visitor(n, n, false))).collect();
        assert_eq!(held.len(), 64);
        let partners: Vec<_> =
            (100..164).filter_map(|n| admission.admit_visitor(visitor(n, 7, true))).collect();
        assert_eq!(partners.len(), 64);
        drop((held, partners));
        assert!(admission.counts.lock().by_range.is_empty());
        assert_eq!(admission.counts.lock().strangers, 0);
        assert_eq!(admission.in_flight(), 0);
    }

    #[test]
    fn a_few_partners_with_many_calls_leave_places_for_the_next_ones() {
        let admission = Admission::shared(Shares::half_for_partners(64, 128));
        let taken = |wallet| -> Vec<_> {
            (0..128).map_while(|_| admission.admit_visitor(visitor(wallet, 7, true))).collect()
        };
        let held: Vec<_> = (1..=6).map(taken).collect();
        assert_eq!(held.iter().map(Vec::len).collect::<Vec<_>>(), [64, 32, 16, 8, 4, 2]);
        assert!(admission.admit_visitor(visitor(7, 7, true)).is_some(), "a newcomer");
        drop(held);
        assert_eq!(taken(8).len(), 64, "alone");
    }

    #[test]
    fn wallets_of_one_address_range_share_one_part() {
        let admission = Admission::shared(Shares::half_for_partners(64, 128));
        let of_one: Vec<_> =
            (0..=255).filter_map(|n| admission.admit_visitor(visitor(n, 1, false))).collect();
        assert_eq!(of_one.len(), 16);
        assert!(admission.admit_visitor(visitor(1, 2, false)).is_some(), "another range");
        assert!(admission.admit_visitor(visitor(1, 1, true)).is_some(), "a partner in the same range");
    }
}
