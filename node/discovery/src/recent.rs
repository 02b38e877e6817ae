//! A store of what was used last, up to a number of entries and a size: the services that calls are planned with.

use std::{hash::Hash, num::NonZeroUsize};

use lru::LruCache;

/// A cache that gives up what was not used for the longest time. The newest entry stays, whatever its size.
#[derive(Debug)]
pub(super) struct Recent<K: Hash + Eq, V> {
    entries: LruCache<K, V>,
    bytes_of: fn(&V) -> usize,
    bytes_max: usize,
}

/// The entries that a new one displaced, to be dropped after the lock.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(super) struct Displaced<V> {
    /// Under the same key.
    pub(super) before: Option<V>,
    /// For want of room.
    pub(super) gone: Vec<V>,
}

impl<K: Hash + Eq + Copy, V: Clone> Recent<K, V> {
    pub(super) fn new(entries_max: NonZeroUsize, bytes_of: fn(&V) -> usize, bytes_max: usize) -> Self {
        Self { entries: LruCache::new(entries_max), bytes_of, bytes_max }
    }

    /// Counts as a use.
    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        self.entries.get(key).cloned()
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        self.entries.pop(key)
    }

    /// Keeps an entry, and returns what has to go for it.
    pub(super) fn put(&mut self, key: K, value: V) -> Displaced<V> {
        let (before, oldest) = match self.entries.push(key, value) {
            Some((of, before)) if of == key => (Some(before), None),
            pushed_out => (None, pushed_out.map(|(_, oldest)| oldest)),
        };
        let gone = oldest.into_iter().chain(self.hold_at_most(self.bytes_max, 1)).collect();
        Displaced { before, gone }
    }

    /// Gives up what has no room beside something of this size, before that is made, and returns it: what is large takes a
    /// while to be dropped, which is done after the lock.
    #[must_use]
    pub(super) fn make_room(&mut self, bytes: usize) -> Vec<V> {
        self.hold_at_most(self.bytes_max.saturating_sub(bytes), 0)
    }

    fn hold_at_most(&mut self, bytes_max: usize, entries_min: usize) -> Vec<V> {
        let mut held: usize = self.entries.iter().map(|(_, value)| (self.bytes_of)(value)).sum();
        let mut given_up = Vec::new();
        while held > bytes_max
            && self.entries.len() > entries_min
            && let Some((_, gone)) = self.entries.pop_lru()
        {
            held -= (self.bytes_of)(&gone);
            given_up.push(gone);
        }
        given_up
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recent(entries_max: usize, bytes_max: usize) -> Recent<&'static str, usize> {
        Recent::new(NonZeroUsize::new(entries_max).unwrap(), |bytes| *bytes, bytes_max)
    }

    #[test]
    fn what_is_used_stays_while_others_come_and_go() {
        let mut recent = recent(3, 100);
        let nothing = recent.put("used", 1);
        assert_eq!(nothing, Displaced { before: None, gone: vec![] });
        for (other, gone) in [("a", 0), ("b", 0), ("c", 1), ("d", 1)] {
            assert_eq!(recent.put(other, 1).gone.len(), gone, "for {other}");
            assert_eq!(recent.get(&"used"), Some(1), "after {other}");
        }
        assert_eq!((recent.get(&"b"), recent.get(&"d")), (None, Some(1)));
    }

    #[test]
    fn a_large_entry_takes_the_room_of_those_that_were_used_longest_ago() {
        let mut recent = recent(10, 100);
        let _ = (recent.put("old", 60), recent.put("used", 30));
        assert_eq!(recent.put("large", 70), Displaced { before: None, gone: vec![60] });
        assert_eq!(
            (recent.get(&"old"), recent.get(&"used"), recent.get(&"large")),
            (None, Some(30), Some(70))
        );
        let displaced = Displaced { before: Some(70), gone: vec![30] };
        assert_eq!(recent.put("large", 200), displaced, "the version of before, and what has no room");
        assert_eq!((recent.get(&"used"), recent.get(&"large")), (None, Some(200)), "the newest stays");
    }

    #[test]
    fn room_is_made_before_a_large_entry_is_there() {
        let mut recent = recent(10, 100);
        let _ = (recent.put("old", 60), recent.put("used", 30));
        assert_eq!(recent.make_room(10), [0; 0]);
        assert_eq!((recent.get(&"old"), recent.get(&"used")), (Some(60), Some(30)), "there is room");
        assert_eq!(recent.make_room(70), [60]);
        assert_eq!((recent.get(&"old"), recent.get(&"used")), (None, Some(30)), "what was used last stays");
        assert_eq!(recent.make_room(1_000), [30]);
        assert_eq!(recent.get(&"used"), None, "nothing is held beside what is larger than all of it");
    }
}
