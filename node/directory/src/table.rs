//! The routing table: buckets of [`K`] peers by their distance from us.
//!
//! A peer enters by an [`AnsweringPeer`] alone, which a question makes of a fitting answer. A full bucket keeps whom it has; who
//! came too late waits until one of them fails.

use crate::{Contact, Distance, Failure, K, Key, question::AnsweringPeer};

/// Peers of one network in a bucket, or asked on one line of a look-up: a customer's ids, however many, are few there.
pub(crate) const SAME_NETWORK_MAX: usize = 3;
/// Peers that wait for a place in a bucket.
const WAITING_MAX: usize = 8;
/// Questions in turn that a peer may leave unanswered.
const SILENCES_MAX: u8 = 2;

#[derive(Clone, Debug)]
struct Entry {
    contact: Contact,
    silences: u8,
}

#[derive(Clone, Debug, Default)]
struct Bucket {
    entries: Vec<Entry>,
    waiting: Vec<AnsweringPeer>,
}

/// The peers that answered us, by the bits that they share with us.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    own: Key,
    buckets: Vec<Bucket>,
}

/// Returns whether one more peer would be too many of its network among `others`.
pub(crate) fn crowds<'a>(contact: &Contact, others: &(impl Iterator<Item = &'a Contact> + Clone)) -> bool {
    contact.networks().iter().any(|network| {
        others.clone().filter(|other| other.networks().contains(network)).count() >= SAME_NETWORK_MAX
    })
}

impl Table {
    pub(crate) const fn new(own: Key) -> Self {
        Self { own, buckets: Vec::new() }
    }

    /// Gives a peer its place, or renews what is known of it.
    pub(crate) fn admit(&mut self, answered: AnsweringPeer) {
        let key = answered.contact().key();
        let Some(bucket) = self.bucket_mut(key) else { return };
        bucket.waiting.retain(|other| other.contact().key() != key);
        let others = bucket.entries.iter().map(|entry| &entry.contact).filter(|other| other.key() != key);
        let crowds = crowds(answered.contact(), &others);
        let is_full = bucket.entries.len() >= K;
        match bucket.entries.iter_mut().find(|entry| entry.contact.key() == key) {
            Some(entry) => {
                entry.silences = 0;
                if !crowds {
                    entry.contact = answered.into_contact();
                }
            }
            None if crowds => {}
            None if !is_full => {
                bucket.entries.push(Entry { contact: answered.into_contact(), silences: 0 });
            }
            None => {
                bucket.waiting.truncate(WAITING_MAX - 1);
                bucket.waiting.insert(0, answered);
            }
        }
    }

    /// Takes a peer's own word on where it is, if it has a place.
    pub(crate) fn renew(&mut self, contact: &Contact) {
        let key = contact.key();
        let Some(bucket) = self.bucket_mut(key) else { return };
        let others = bucket.entries.iter().map(|entry| &entry.contact).filter(|other| other.key() != key);
        if !crowds(contact, &others)
            && let Some(entry) = bucket.entries.iter_mut().find(|entry| entry.contact.key() == key)
        {
            entry.contact = contact.clone();
        }
    }

    /// Counts a failure against a peer that was asked where we know it to be; a stranger may have named it elsewhere. A
    /// [`Failure::Denied`] is ours.
    pub(crate) fn failed(&mut self, contact: &Contact, failure: Failure) {
        let Some(bucket) = self.bucket_mut(contact.key()) else { return };
        let Some(at) = bucket.entries.iter().position(|entry| entry.contact == *contact) else { return };
        let entry = &mut bucket.entries[at];
        match failure {
            Failure::Denied => return,
            Failure::TimedOut => entry.silences += 1,
            Failure::Unreachable | Failure::Malformed => entry.silences = SILENCES_MAX,
        }
        if entry.silences >= SILENCES_MAX {
            bucket.entries.remove(at);
            if !bucket.waiting.is_empty() {
                let next = bucket.waiting.remove(0);
                self.admit(next);
            }
        }
    }

    /// Returns whether the peer is not there and would get a place if it answered.
    pub(crate) fn has_place_for(&self, contact: &Contact) -> bool {
        let Some(index) = self.index(contact.key()) else { return false };
        let Some(bucket) = self.buckets.get(index) else { return true };
        let entries = bucket.entries.iter().map(|entry| &entry.contact);
        bucket.entries.len() < K
            && !entries.clone().any(|other| other.key() == contact.key())
            && !crowds(contact, &entries)
    }

    /// The `count` peers that are nearest to `target`, the nearest first.
    pub(crate) fn nearest(&self, target: Key, count: usize, except: Option<Key>) -> Vec<Contact> {
        let all = self.buckets.iter().flat_map(|bucket| &bucket.entries);
        let others = all.map(|entry| &entry.contact).filter(|contact| Some(contact.key()) != except);
        let mut near: Vec<(Distance, &Contact)> =
            others.map(|contact| (target.distance(contact.key()), contact)).collect();
        if near.len() > count {
            near.select_nth_unstable_by_key(count, |(distance, _)| *distance);
            near.truncate(count);
        }
        near.sort_unstable_by_key(|(distance, _)| *distance);
        near.into_iter().map(|(_, contact)| contact.clone()).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.entries.len()).sum()
    }

    /// The number of buckets up to the last one that is in use.
    pub(crate) fn depth(&self) -> usize {
        self.buckets.iter().rposition(|bucket| !bucket.entries.is_empty()).map_or(0, |last| last + 1)
    }

    fn index(&self, key: Key) -> Option<usize> {
        let shared = self.own.distance(key).shared_bits();
        // All of them are shared with ourselves alone.
        usize::try_from(shared).ok().filter(|_| key != self.own)
    }

    fn bucket_mut(&mut self, key: Key) -> Option<&mut Bucket> {
        let index = self.index(key)?;
        if self.buckets.len() <= index {
            self.buckets.resize_with(index + 1, Bucket::default);
        }
        self.buckets.get_mut(index)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{answered, contact, place};

    fn own() -> Key {
        Key::of(b"own")
    }

    /// Peers of the first bucket, each in a network of its own.
    fn of_first_bucket(count: usize) -> Vec<Contact> {
        let all = (0..).map(|n| contact(n, place(n)));
        all.filter(|contact| own().distance(contact.key()).shared_bits() == 0).take(count).collect()
    }

    #[test]
    fn a_full_bucket_keeps_whom_it_has_and_the_next_comes_when_one_fails() {
        let peers = of_first_bucket(K + WAITING_MAX + 5);
        let mut table = Table::new(own());
        peers.iter().for_each(|peer| table.admit(answered(peer)));
        assert_eq!(table.len(), K);
        assert!(!table.has_place_for(&peers[K]));
        let kept = table.nearest(own(), usize::MAX, None);
        assert!(peers[..K].iter().all(|peer| kept.contains(peer)));
        assert_eq!(table.buckets[0].waiting.len(), WAITING_MAX);
        table.failed(&peers[3], Failure::Unreachable);
        let kept = table.nearest(own(), usize::MAX, None);
        assert!(!kept.contains(&peers[3]));
        assert!(kept.contains(&peers[K + WAITING_MAX + 4]), "who answered last is there most surely");
    }

    #[test]
    fn only_what_a_peer_does_counts_against_it() {
        let peers = of_first_bucket(3);
        let mut table = Table::new(own());
        peers.iter().for_each(|peer| table.admit(answered(peer)));
        let is_in = |table: &Table, peer: &Contact| table.nearest(own(), 9, None).contains(peer);
        for _ in 0..100 {
            table.failed(&peers[0], Failure::Denied);
        }
        assert!(is_in(&table, &peers[0]));
        table.failed(&peers[1], Failure::TimedOut);
        table.admit(answered(&peers[1]));
        table.failed(&peers[1], Failure::TimedOut);
        assert!(is_in(&table, &peers[1]), "an answer between two silences ends them");
        table.failed(&peers[1], Failure::TimedOut);
        assert!(!is_in(&table, &peers[1]));
        table.failed(&peers[2], Failure::Malformed);
        assert!(!is_in(&table, &peers[2]));
    }

    #[test]
    fn a_peer_that_a_stranger_named_elsewhere_keeps_its_place_and_goes_where_it_says_itself() {
        let mut table = Table::new(own());
        let (true_one, elsewhere) = (contact(1, place(1)), contact(1, place(2)));
        table.admit(answered(&true_one));
        table.failed(&elsewhere, Failure::Unreachable);
        assert_eq!(table.nearest(own(), 9, None), [true_one]);
        table.renew(&elsewhere);
        table.renew(&contact(2, place(3)));
        assert_eq!(table.nearest(own(), 9, None), [elsewhere], "whoever has no place gets none by its word");
    }

    #[test]
    fn few_of_a_bucket_are_of_one_network() {
        let mut table = Table::new(own());
        let of_one = |n| contact(n, [9, 9, 1, 1]);
        let peers = (0..).map(of_one).filter(|peer| own().distance(peer.key()).shared_bits() == 0);
        let peers: Vec<Contact> = peers.take(10).collect();
        peers.iter().for_each(|peer| table.admit(answered(peer)));
        assert_eq!(table.len(), SAME_NETWORK_MAX);
        assert!(!table.has_place_for(&peers[9]));
        let moved = contact(1_000_000, place(1));
        assert!(table.has_place_for(&moved));
    }

    #[test]
    fn a_private_network_is_no_network() {
        let mut table = Table::new(own());
        let peers = (0..10).map(|n| contact(n, [10, 0, 0, 1]));
        peers.for_each(|peer| table.admit(answered(&peer)));
        assert_eq!(table.len(), 10);
    }

    #[test]
    fn this_node_is_not_in_its_own_table() {
        let own = contact(7, place(7));
        let mut table = Table::new(own.key());
        table.admit(answered(&own));
        assert_eq!(table.len(), 0);
        assert!(!table.has_place_for(&own));
    }

    proptest! {
        #[test]
        fn the_nearest_are_nearer_than_all_others(target in any::<[u8; 4]>(), count in 0_usize..40) {
            let mut table = Table::new(own());
            (0..200).for_each(|n| table.admit(answered(&contact(n, place(n)))));
            let target = Key::of(&target);
            let near = table.nearest(target, count, None);
            let all = table.nearest(target, usize::MAX, None);
            prop_assert_eq!(&near[..], &all[..count.min(all.len())]);
            prop_assert!(all.is_sorted_by_key(|contact| target.distance(contact.key())));
            let without = table.nearest(target, 1, all.first().map(Contact::key));
            prop_assert_eq!(without.first(), all.get(1));
        }

        #[test]
        fn a_table_is_bounded_whoever_comes_and_fails(steps in proptest::collection::vec((0_u32..400, 0_u8..5), 0..400)) {
            let mut table = Table::new(own());
            for (n, what) in steps {
                let peer = contact(n, place(n % 50));
                match what {
                    0 => table.failed(&peer, Failure::Unreachable),
                    1 => table.failed(&peer, Failure::TimedOut),
                    _ => table.admit(answered(&peer)),
                }
                for bucket in &table.buckets {
                    prop_assert!(bucket.entries.len() <= K && bucket.waiting.len() <= WAITING_MAX);
                    let entries = bucket.entries.iter().map(|entry| &entry.contact);
                    for entry in &bucket.entries {
                        let others = entries.clone().filter(|other| other.key() != entry.contact.key());
                        prop_assert!(!crowds(&entry.contact, &others));
                    }
                }
            }
        }
    }
}
