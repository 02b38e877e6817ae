//! A sorted picture of a set, and what some shards have of it, seen without a copy.
//!
//! A peer names the shards that are compared, so a view of any of them takes no memory: places in it are counted, with the
//! help of counts that all views share.

use std::sync::Arc;

use negentropy::{Bound, Error, Id, Item as Dated, NegentropyStorageBase};

use crate::shards::Shards;

/// The name of a member of a set.
pub type Item = [u8; 32];

/// Members from one count to the next: to find a place, so many are looked at. The counts take a quarter of a byte a member.
const STRIDE: usize = 256;
const SHARDS: usize = 16;

/// A sorted picture of a set, shared by the sessions that compare it, or what some shards have of it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Picture {
    members: Arc<Members>,
    shards: Shards,
}

#[derive(Debug)]
struct Members {
    sorted: Vec<Member>,
    /// The number of each shard before each stride, and of all after the last one.
    before: Vec<[u32; SHARDS]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Member {
    dated: Dated,
    shard: u8,
}

impl Picture {
    /// Of these items, each with its time: what differs between two sets is mostly what came last, and lies together.
    pub fn of(items: impl IntoIterator<Item = (u64, Item)>) -> Self {
        Self::of_sharded(items.into_iter().map(|(secs, item)| (secs, item, 0)))
    }

    /// The same of items that are in shards, each with its own, below sixteen.
    pub fn of_sharded(items: impl IntoIterator<Item = (u64, Item, u8)>) -> Self {
        let member = |(secs, item, shard): (u64, Item, u8)| Member {
            dated: Dated::with_timestamp_and_id(secs, Id::from_byte_array(item)),
            shard: shard & 0xf,
        };
        let mut sorted: Vec<_> = items.into_iter().map(member).collect();
        sorted.sort_unstable();
        sorted.dedup_by_key(|member| member.dated);
        let before = counted(&sorted);
        Self { members: Arc::new(Members { sorted, before }), shards: Shards::ALL }
    }

    /// The part that these shards have of it.
    #[must_use]
    pub fn within(&self, shards: Shards) -> Self {
        Self { members: Arc::clone(&self.members), shards: self.shards.common(shards) }
    }

    fn sees(&self, member: &Member) -> bool {
        self.shards.has(member.shard)
    }

    /// The number of these that are seen.
    fn sum(&self, counts: &[u32; SHARDS]) -> usize {
        let seen = (0..).zip(counts).filter(|(shard, _)| self.shards.has(*shard));
        seen.map(|(_, count)| *count as usize).sum()
    }

    fn len(&self) -> usize {
        self.members.before.last().map_or(0, |all| self.sum(all))
    }

    /// The number that are seen before this place among all.
    fn seen_before(&self, place: usize) -> usize {
        let Members { sorted, before } = &*self.members;
        let stride = place / STRIDE;
        let counted = before.get(stride).map_or(0, |before| self.sum(before));
        let rest = sorted.get(stride * STRIDE..place).unwrap_or_default();
        counted + rest.iter().filter(|member| self.sees(member)).count()
    }

    /// Those that are seen, without the first `skipped`.
    fn seen_after(&self, skipped: usize) -> impl Iterator<Item = Dated> {
        let Members { sorted, before } = &*self.members;
        // Nothing comes before the first stride, so there is always one.
        let stride = before.partition_point(|before| self.sum(before) <= skipped).saturating_sub(1);
        let counted = before.get(stride).map_or(0, |before| self.sum(before));
        let rest = sorted.get(stride * STRIDE..).unwrap_or_default();
        let seen = rest.iter().filter(|member| self.sees(member));
        seen.skip(skipped - counted).map(|member| member.dated)
    }
}

fn counted(sorted: &[Member]) -> Vec<[u32; SHARDS]> {
    let mut count = [0; SHARDS];
    let mut before = vec![count];
    for stride in sorted.chunks(STRIDE) {
        stride.iter().for_each(|member| count[usize::from(member.shard)] += 1);
        before.push(count);
    }
    before
}

impl NegentropyStorageBase for Picture {
    fn size(&self) -> Result<usize, Error> {
        Ok(self.len())
    }

    fn get_item(&self, place: usize) -> Result<Option<Dated>, Error> {
        Ok(self.seen_after(place).next())
    }

    fn iterate(
        &self,
        begin: usize,
        end: usize,
        visit: &mut dyn FnMut(Dated, usize) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        if begin > end || end > self.len() {
            return Err(Error::BadRange);
        }
        // The range is asked first, so nothing is looked for past its end.
        for (place, dated) in (begin..end).zip(self.seen_after(begin)) {
            if !visit(dated, place)? {
                break;
            }
        }
        Ok(())
    }

    fn find_lower_bound(&self, first: usize, last: usize, bound: &Bound) -> usize {
        let place = self.members.sorted.partition_point(|member| member.dated < bound.item);
        self.seen_before(place).max(first).min(last)
    }
}

#[cfg(test)]
mod tests {
    use negentropy::NegentropyStorageVector;

    use super::*;

    /// Some strides, of which the last is not whole. Nothing is in shard 7, and all of one long stretch is in shard 3.
    fn items() -> Vec<(u64, Item, u8)> {
        let item = |number: u32| {
            let mut item = [0; 32];
            item[..4].copy_from_slice(&number.wrapping_mul(2_654_435_761).to_be_bytes());
            let shard = if (500..1_200).contains(&number) { 3 } else { item[0] & 0xf };
            (u64::from(number / 7), item, if shard == 7 { 8 } else { shard })
        };
        (0..2_000).map(item).collect()
    }

    /// The library's own storage of what these shards have.
    fn copied(shards: Shards) -> NegentropyStorageVector {
        let mut copied = NegentropyStorageVector::new();
        for (secs, item, _) in items().iter().filter(|(_, _, shard)| shards.has(*shard)) {
            copied.insert(*secs, Id::from_byte_array(*item)).unwrap();
        }
        copied.seal().unwrap();
        copied
    }

    fn between(storage: &impl NegentropyStorageBase, begin: usize, end: usize) -> Vec<(Dated, usize)> {
        let mut found = Vec::new();
        storage
            .iterate(begin, end, &mut |dated, place| {
                found.push((dated, place));
                Ok(true)
            })
            .unwrap();
        found
    }

    #[test]
    fn a_view_of_shards_shows_what_a_copy_of_them_would() {
        let all = Picture::of_sharded(items());
        for bits in [0, 1 << 7, 1 << 3, 1, 0x8001, 0x0ff0, !(1 << 3), u16::MAX] {
            let shards = Shards::from_bits(bits);
            let (view, copy) = (all.within(shards), copied(shards));
            let size = copy.size().unwrap();
            assert_eq!(view.size().unwrap(), size, "{bits:x}");
            for begin in (0..=size).step_by(61) {
                let end = (begin + 300).min(size);
                assert_eq!(between(&view, begin, end), between(&copy, begin, end), "{bits:x} from {begin}");
                assert_eq!(view.get_item(begin).unwrap(), copy.get_item(begin).unwrap(), "{bits:x}");
            }
            for secs in 0..300 {
                let bound = Bound::with_timestamp_and_id(secs, [0x80_u8]).unwrap();
                let found = [size.min(10), 0].map(|first| {
                    (view.find_lower_bound(first, size, &bound), copy.find_lower_bound(first, size, &bound))
                });
                assert!(found.iter().all(|(view, copy)| view == copy), "{bits:x} at {secs}: {found:?}");
            }
            assert_eq!(view.iterate(0, size + 1, &mut |_, _| Ok(true)), Err(Error::BadRange));
        }
    }

    #[test]
    fn what_comes_twice_is_there_once() {
        let twice = items().into_iter().chain(items());
        assert_eq!(Picture::of_sharded(twice).size().unwrap(), items().len());
    }
}
