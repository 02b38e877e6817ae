//! Services that calls are planned with, kept in memory: those that were paid for, and guests, which push none of these out.
//!
//! Anybody with a consumer secret may have any service read, and costs nothing with a secret that can pay for nothing, or with a
//! stranger's free service. So what is read is a guest, and takes room from guests alone, until a call of it has its money.

use std::{hash::Hash, num::NonZeroUsize};

use super::recent::{Displaced, Recent};

/// The services that are in use.
#[derive(Debug)]
pub(super) struct InUse<K: Hash + Eq, V> {
    paid: Recent<K, V>,
    guests: Recent<K, V>,
}

/// A bound of each part.
#[derive(Clone, Copy, Debug)]
pub(super) struct InUseBytes {
    pub(super) paid_max: usize,
    pub(super) guests_max: usize,
}

impl<K: Hash + Eq + Copy, V: Clone> InUse<K, V> {
    pub(super) fn new(entries_max: NonZeroUsize, bytes_of: fn(&V) -> usize, bytes: InUseBytes) -> Self {
        let InUseBytes { paid_max, guests_max } = bytes;
        Self {
            paid: Recent::new(entries_max, bytes_of, paid_max),
            guests: Recent::new(entries_max, bytes_of, guests_max),
        }
    }

    /// Counts as a use.
    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        self.paid.get(key).or_else(|| self.guests.get(key))
    }

    /// Keeps a version as a guest, and returns what has to go for it.
    pub(super) fn put(&mut self, key: K, value: V) -> Displaced<V> {
        let paid = self.paid.remove(&key);
        let Displaced { before, gone } = self.guests.put(key, value);
        Displaced { before: paid.or(before), gone }
    }

    /// Keeps a service among those that were paid for, and returns what has to go for it.
    #[must_use]
    pub(super) fn note_paid(&mut self, key: K) -> Vec<V> {
        let guest = self.guests.remove(&key);
        guest.map_or_else(Vec::new, |guest| self.paid.put(key, guest).gone)
    }

    /// Gives up the guests that have no room beside something of this size.
    #[must_use]
    pub(super) fn make_room(&mut self, bytes: usize) -> Vec<V> {
        self.guests.make_room(bytes)
    }

    /// Gives up what was paid for as well: for whoever can pay.
    #[must_use]
    pub(super) fn make_room_for_payer(&mut self, bytes: usize) -> Vec<V> {
        self.paid.make_room(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_use() -> InUse<&'static str, usize> {
        let bytes = InUseBytes { paid_max: 100, guests_max: 50 };
        InUse::new(NonZeroUsize::new(10).unwrap(), |bytes| *bytes, bytes)
    }

    fn pay(in_use: &mut InUse<&'static str, usize>, key: &'static str, bytes: usize) -> Vec<usize> {
        let guest = in_use.put(key, bytes);
        assert_eq!(guest.before, None, "{key}");
        in_use.note_paid(key)
    }

    #[test]
    fn guests_push_each_other_out_and_nothing_that_was_paid_for() {
        let mut in_use = in_use();
        assert_eq!(pay(&mut in_use, "honest", 90), [0; 0]);
        for (large, gone) in [("a", vec![]), ("b", vec![500]), ("c", vec![500])] {
            assert_eq!(in_use.make_room(500), gone, "before {large}");
            assert_eq!(in_use.put(large, 500).gone, [0; 0], "{large}");
            assert_eq!((in_use.get(&"honest"), in_use.get(&large)), (Some(90), Some(500)));
        }
        for other in ["d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"] {
            let _ = in_use.put(other, 1);
        }
        assert_eq!(in_use.get(&"honest"), Some(90), "however many they are");
    }

    #[test]
    fn what_is_paid_for_takes_the_room_of_what_was_longest_ago() {
        let mut in_use = in_use();
        assert_eq!(pay(&mut in_use, "old", 60), [0; 0]);
        assert_eq!(pay(&mut in_use, "new", 70), [60]);
        assert_eq!(in_use.note_paid("new"), [0; 0], "again");
        assert_eq!((in_use.get(&"old"), in_use.get(&"new")), (None, Some(70)));
        assert_eq!(in_use.make_room_for_payer(100), [70], "before it is read");
    }

    #[test]
    fn a_new_version_is_a_guest_until_it_is_paid_for_and_no_version_of_before_stays_beside_it() {
        let mut in_use = in_use();
        assert_eq!(pay(&mut in_use, "service", 10), [0; 0]);
        assert_eq!(in_use.put("service", 20), Displaced { before: Some(10), gone: vec![] });
        assert_eq!(in_use.get(&"service"), Some(20));
        assert_eq!(in_use.put("service", 30), Displaced { before: Some(20), gone: vec![] });
        assert_eq!(in_use.note_paid("service"), [0; 0]);
        assert_eq!(in_use.make_room(1_000), [0; 0], "it is no guest any more");
        assert_eq!(in_use.get(&"service"), Some(30));
    }
}
