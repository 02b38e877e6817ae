//! Bounded memories about neighbours: how many new listings each may still send, how much work it may still make, and
//! what was refused before.

use std::collections::HashMap;

use farthing_protocol::sync::ItemName;

use crate::{
    options::Limits,
    verdict::{Bringer, Neighbour, Source},
};

/// A token bucket: holds up to `burst`, gains one each `every_millis`. The clock is the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bucket {
    tokens: u32,
    since_secs: u64,
}

/// The rate at which a bucket fills.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) burst: u32,
    pub(crate) per: u32,
    pub(crate) per_secs: u64,
}

impl Bucket {
    pub(crate) const fn full(rate: Rate, now_secs: u64) -> Self {
        Self { tokens: rate.burst, since_secs: now_secs }
    }

    /// The bucket as it stands at `now_secs`. A clock that goes back adds nothing.
    fn refilled(self, rate: Rate, now_secs: u64) -> Self {
        let elapsed = now_secs.saturating_sub(self.since_secs);
        let per_secs = rate.per_secs.max(1);
        let gained = elapsed.saturating_mul(u64::from(rate.per)) / per_secs;
        let tokens = u64::from(self.tokens).saturating_add(gained);
        match u32::try_from(tokens) {
            Ok(tokens) if tokens < rate.burst => {
                // What has not made a whole token yet stays in the clock.
                let used_secs = gained * per_secs / u64::from(rate.per.max(1));
                Self { tokens, since_secs: self.since_secs + used_secs }
            }
            _ => Self { tokens: rate.burst, since_secs: now_secs },
        }
    }

    /// Seconds until there is a token; none when there is one.
    pub(crate) fn wait_secs(self, rate: Rate, now_secs: u64) -> Option<u64> {
        let now = self.refilled(rate, now_secs);
        let due_secs = now.since_secs + rate.per_secs.div_ceil(u64::from(rate.per.max(1)));
        (now.tokens == 0).then(|| due_secs.saturating_sub(now_secs).max(1))
    }

    /// Takes one token; false when there is none.
    pub(crate) fn take(&mut self, rate: Rate, now_secs: u64) -> bool {
        self.take_many(rate, 1, now_secs)
    }

    /// Takes as many tokens, or all there are; false when there were none.
    fn take_many(&mut self, rate: Rate, tokens: u32, now_secs: u64) -> bool {
        *self = self.refilled(rate, now_secs);
        let taken = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(tokens);
        taken
    }

    fn is_full(self, rate: Rate, now_secs: u64) -> bool {
        self.refilled(rate, now_secs).tokens == rate.burst
    }
}

/// The ways a neighbour sends, and the work it makes, each with a budget of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    Pushed,
    Given,
    Fetched,
    Asked(Work),
}

/// The work that a neighbour makes this node do in a session that it opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// Comparing ranges, which costs as much as is said about them.
    Compare,
    /// Reading and packing listings.
    Pack,
}

/// Work is counted in so many bytes.
const WORK_BYTES: usize = 16 * 1024;

/// The budgets of all neighbours: what each may still send and ask for.
#[derive(Debug)]
pub(crate) struct Sources {
    limits: Limits,
    buckets: HashMap<(Bringer, Way), Bucket>,
}

impl Sources {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, buckets: HashMap::new() }
    }

    /// Takes one new object from the source's budget, and returns whether it is looked at. Own ones always are.
    pub(crate) fn take(&mut self, source: Source, now_secs: u64) -> bool {
        let (peer, way) = match source {
            Source::Own => return true,
            Source::Pushed(peer) => (peer, Way::Pushed),
            Source::Given(peer) => (peer, Way::Given),
            Source::Fetched(peer) => (peer, Way::Fetched),
        };
        self.spend(peer, way, 1, now_secs)
    }

    /// Returns whether this neighbour may have more work done; what was done last, in bytes, counts from now on.
    pub(crate) fn work(&mut self, peer: Neighbour, work: Work, done_bytes: usize, now_secs: u64) -> bool {
        let tokens = u32::try_from(done_bytes.div_ceil(WORK_BYTES)).unwrap_or(u32::MAX);
        self.spend(peer, Way::Asked(work), tokens, now_secs)
    }

    fn spend(&mut self, peer: Neighbour, way: Way, tokens: u32, now_secs: u64) -> bool {
        let (rate, peer) = (self.rate(way), peer.bringer());
        if !self.buckets.contains_key(&(peer, way)) {
            self.make_room(now_secs);
        }
        let bucket = self.buckets.entry((peer, way)).or_insert(Bucket::full(rate, now_secs));
        bucket.take_many(rate, tokens, now_secs)
    }

    /// A full bucket says nothing that a new one would not say. When none is, the fullest says least: many neighbours
    /// that use up their shares must not keep others from having one.
    fn make_room(&mut self, now_secs: u64) {
        if self.buckets.len() < self.limits.sources_max {
            return;
        }
        let mut buckets = std::mem::take(&mut self.buckets);
        buckets.retain(|(_, way), bucket| !bucket.is_full(self.rate(*way), now_secs));
        if buckets.len() >= self.limits.sources_max {
            let fullness = |(way, bucket): (Way, &Bucket)| {
                let rate = self.rate(way);
                u64::from(bucket.refilled(rate, now_secs).tokens) * 1_000 / u64::from(rate.burst.max(1))
            };
            let fullest = buckets.iter().max_by_key(|((_, way), bucket)| fullness((*way, bucket)));
            let fullest = fullest.map(|(key, _)| *key);
            fullest.map(|key| buckets.remove(&key));
        }
        self.buckets = buckets;
    }

    const fn rate(&self, way: Way) -> Rate {
        let limits = &self.limits;
        let (burst, per) = match way {
            Way::Pushed => (limits.pushed_per_minute, limits.pushed_per_minute),
            Way::Given => (limits.given_burst, limits.given_burst.div_ceil(60)),
            Way::Fetched => (limits.fetched_burst, limits.fetched_burst.div_ceil(60)),
            Way::Asked(Work::Compare) => (limits.compared_burst, limits.compared_burst.div_ceil(16)),
            Way::Asked(Work::Pack) => (limits.packed_burst, limits.packed_burst.div_ceil(32)),
        };
        Rate { burst, per, per_secs: 60 }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }
}

/// Versions not to ask for again until a time: refused ones, superseded ones, and those that left.
///
/// Two generations: when the young one is full it becomes the old one, and what was old is forgotten.
#[derive(Debug)]
pub(crate) struct Refused {
    per_generation: usize,
    young: HashMap<ItemName, u64>,
    old: HashMap<ItemName, u64>,
}

impl Refused {
    pub(crate) fn new(refused_max: usize) -> Self {
        Self { per_generation: (refused_max / 2).max(1), young: HashMap::new(), old: HashMap::new() }
    }

    pub(crate) fn add(&mut self, item: ItemName, until_secs: u64) {
        if self.young.len() >= self.per_generation && !self.young.contains_key(&item) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(item, until_secs);
    }

    pub(crate) fn contains(&self, item: &ItemName, now_secs: u64) -> bool {
        let until_secs = self.young.get(item).or_else(|| self.old.get(item));
        until_secs.is_some_and(|&until_secs| now_secs < until_secs)
    }

    /// Forgets all refusals: what was refused may be welcome now.
    pub(crate) fn forget_all(&mut self) {
        self.young.clear();
        self.old.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;
    use crate::verdict::Neighbour;

    const RATE: Rate = Rate { burst: 6, per: 1, per_secs: 600 };

    #[test]
    fn a_burst_is_followed_by_one_each_ten_minutes() {
        let mut bucket = Bucket::full(RATE, 1_000);
        assert!((0..6).all(|_| bucket.take(RATE, 1_000)), "the burst");
        assert!(!bucket.take(RATE, 1_599));
        assert_eq!(bucket.wait_secs(RATE, 1_599), Some(1));
        assert_eq!(bucket.wait_secs(RATE, 1_600), None);
        assert!(bucket.take(RATE, 1_600));
        assert!(!bucket.take(RATE, 2_199));
        assert!(bucket.take(RATE, 2_200));
    }

    #[test]
    fn a_clock_that_goes_back_adds_nothing() {
        let mut bucket = Bucket::full(RATE, 10_000);
        assert!((0..6).all(|_| bucket.take(RATE, 10_000)));
        assert!(!bucket.take(RATE, 5_000));
        assert!(!bucket.take(RATE, 10_599));
        assert!(bucket.take(RATE, 10_600));
    }

    #[test]
    fn a_neighbour_has_fifty_new_objects_a_minute_and_others_keep_theirs() {
        let mut sources = Sources::new(Limits::default());
        let [one, other] = [1, 2].map(|byte| Neighbour::from(Address::from_bytes([byte; 20])));
        let taken = (0..200).filter(|_| sources.take(Source::Pushed(one), 100)).count();
        assert_eq!(taken, 50);
        assert!(sources.take(Source::Pushed(other), 100));
        assert!(sources.take(Source::Fetched(one), 100), "what this node asks for has a budget of its own");
        let taken = (0..200).filter(|_| sources.take(Source::Pushed(one), 160)).count();
        assert_eq!(taken, 50);
    }

    #[test]
    fn many_wallets_of_one_address_range_have_one_budget() {
        let mut sources = Sources::new(Limits::default());
        let neighbour = |byte, range: [u8; 4]| Neighbour {
            wallet: Address::from_bytes([byte; 20]),
            range: Some(range.into()),
        };
        let of_one_range = (0..200).map(|byte| neighbour(byte, [9, 9, 9, 0]));
        let taken = of_one_range.filter(|neighbour| sources.take(Source::Pushed(*neighbour), 100)).count();
        assert_eq!(taken, 50);
        assert!(sources.take(Source::Pushed(neighbour(1, [9, 9, 8, 0])), 100));
    }

    #[test]
    fn invented_neighbours_do_not_grow_the_memory() {
        let mut sources = Sources::new(Limits { sources_max: 10, ..Limits::default() });
        for number in 0..10_000_u64 {
            let mut bytes = [0; 20];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            sources.take(Source::Pushed(Address::from_bytes(bytes).into()), number / 100);
            assert!(sources.len() <= 10);
        }
    }

    #[test]
    fn the_newest_refusals_are_remembered_until_their_time() {
        let mut refused = Refused::new(100);
        let item = |number: u64| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&number.to_be_bytes());
            ItemName::from_bytes(bytes)
        };
        for number in 0..10_000 {
            refused.add(item(number), 500);
            assert!(refused.len() <= 100);
        }
        assert!(refused.contains(&item(9_999), 499));
        assert!(refused.contains(&item(9_960), 499));
        assert!(!refused.contains(&item(9_999), 500), "its time has come");
        assert!(!refused.contains(&item(0), 0), "forgotten");
    }
}
