//! What the record store accepts, replaces and forgets.

use farthing_protocol::{
    Signed,
    wire::{self, NetworkName},
};

use super::{
    testing::{key, signed},
    *,
};

#[cfg(target_os = "linux")]
#[path = "../../../../protocol/tests/support/alone.rs"]
mod alone;
#[cfg(target_os = "linux")]
use alone::{is_alone, resident_kib};

const NOW_SECS: u64 = 1_000_000;
const SOURCE: NeighbourOrigin = NeighbourOrigin::Wallet(Address::from_bytes([9; 20]));

fn network() -> NetworkName {
    NetworkName::new("local-test").unwrap()
}

fn verified(n: u32, seq: u64) -> Verified<NodeRecord> {
    signed(n, seq, NOW_SECS, 3600).verify().unwrap()
}

fn store(records_max: usize) -> Records {
    Records::new(key(0).address(), records_max, Partners::default())
}

/// An address range that records come from.
fn range(n: u8) -> NeighbourOrigin {
    NeighbourOrigin::Range([9, 9, n, 0].into())
}

/// Every index agrees with the entries.
fn assert_consistent(records: &Records) {
    assert_eq!(records.owners.len(), records.entries.len());
    let at = |n: usize| records.entries[&records.owners[n]].at;
    assert!((0..records.owners.len()).all(|n| at(n) == n));
    let seated = records.seats.all();
    assert_eq!(seated.len(), records.entries.len());
    for (tenure, bringer, seat, owner) in seated {
        let entry = &records.entries[&owner];
        assert_eq!((entry.bringer, entry.tenure, entry.seat), (bringer, tenure, seat));
    }
    assert!(records.len() <= records.records_max);
}

/// What may be added to this process's memory while ten thousand records are refused: a third of what the smallest of
/// them take, and three times what an allocator's whims do.
#[cfg(target_os = "linux")]
const GROWTH_KIB_MAX: u64 = 1024;

/// A hundred different ones of wallets from `first` on, each `change`d and signed by its owner.
fn hundred(first: u32, change: impl Fn(&mut NodeRecord)) -> Vec<Vec<u8>> {
    let one = |n| {
        let mut record = signed(n, 1, NOW_SECS, 3600).verify().unwrap().into_inner();
        change(&mut record);
        wire::encode(&Signed::sign(&record, &key(n)).unwrap())
    };
    (first..first + 100).map(one).collect()
}

/// Offers `count` records, the given ones in turns, to a store with room for all; each must be refused with `reason`.
fn refuses(records: &mut Records, offered: &[Vec<u8>], count: usize, reason: impl Fn(&Rejected) -> bool) {
    for value in offered.iter().cycle().take(count) {
        let taken = decode(value, None, &network()).and_then(|r| records.insert(&r, SOURCE, NOW_SECS));
        let refused = taken.expect_err("a bad record was taken");
        assert!(reason(&refused), "{refused:?}");
    }
}

/// What floods are made of, and why each is refused.
type Flood = (&'static str, Vec<Vec<u8>>, fn(&Rejected) -> bool);

fn floods() -> [Flood; 6] {
    let mut forged = hundred(101, |_| {});
    for (n, bytes) in (0_usize..).zip(&mut forged) {
        let from_the_end = 2 + n % 60;
        let at = bytes.len() - from_the_end;
        bytes[at] ^= u8::try_from(n % 255).unwrap() + 1;
    }
    let clocks = |refused: &Rejected| matches!(refused, Rejected::Time(reason) if reason.problem.contains("check both nodes' clocks"));
    [
        ("forged", forged, |refused| *refused == Rejected::Forged),
        // Seven is held of each.
        ("replayed", hundred(1, |record| record.seq = 6), |r| *r == Rejected::NotNewer { held: 7 }),
        ("from the future", hundred(101, |record| (record.issued_secs, record.expires_secs) = AHEAD), clocks),
        ("expired", hundred(101, |record| (record.issued_secs, record.expires_secs) = PAST), |refused| {
            matches!(refused, Rejected::Time(_))
        }),
        ("oversize", vec![vec![0; RECORD_VALUE_BYTES_MAX + 1]], |refused| {
            *refused == Rejected::TooLarge(RECORD_VALUE_BYTES_MAX + 1)
        }),
        ("of another network", hundred(101, |record| record.network = "other".to_owned()), |refused| {
            *refused == Rejected::OtherNetwork
        }),
    ]
}

/// Issued and expiring, for a clock that is an hour ahead and for one that stood still.
const AHEAD: (u64, u64) = (NOW_SECS + 3600, NOW_SECS + 7200);
const PAST: (u64, u64) = (NOW_SECS - 7200, NOW_SECS - 3600);

#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_of_each_bad_record_leave_no_trace_and_memory_flat() {
    if !is_alone("records::tests::ten_thousand_of_each_bad_record_leave_no_trace_and_memory_flat") {
        return;
    }
    // Room for all, so that it is not the store's bound that keeps memory flat.
    let mut records = store(1_000_000);
    for n in 1..=100 {
        records.insert(&verified(n, 7), SOURCE, NOW_SECS).unwrap();
    }
    for (what, offered, reason) in floods() {
        // What is allocated once is allocated by then.
        refuses(&mut records, &offered, 500, reason);
        let before = resident_kib();
        refuses(&mut records, &offered, 10_000, reason);
        let grown = resident_kib().saturating_sub(before);
        assert!(grown <= GROWTH_KIB_MAX, "{what}: {grown} KiB more");
        assert_eq!(records.len(), 100, "{what}");
        assert!((1..=100).all(|n| records.get(key(n).address()).is_some_and(|held| held.seq == 7)), "{what}");
        assert_consistent(&records);
    }
}

#[test]
fn index_nodes_that_are_named_come_before_those_that_are_drawn_and_each_has_its_network() {
    let mut records = store(100);
    for n in 1..=40 {
        let mut record = signed(n, 1, NOW_SECS, 3600).claimed().unwrap();
        record.flags = if n <= 20 { FLAG_KEEPS_ALL } else { 0 };
        let at: libp2p::Multiaddr = "/ip4/9.8.7.6/tcp/1".parse().unwrap();
        record.addresses = vec![at.to_vec().into()];
        records.insert(&Signed::sign(&record, &key(n)).unwrap().verify().unwrap(), SOURCE, NOW_SECS).unwrap();
    }
    let named = [30, 7, 99].map(|n| key(n).address());
    let found = records.index_nodes(&named, 3, NOW_SECS);
    let network = Some([9, 8, 0, 0].into());
    assert_eq!(found.first(), Some(&IndexNode { wallet: key(7).address(), network }));
    assert!(found.len() == 4 && found.iter().all(|node| (1..=20).any(|n| key(n).address() == node.wallet)));
    assert_eq!(records.index_nodes(&[], 100, NOW_SECS).len(), 20);
}

#[test]
fn a_node_whose_clock_is_an_hour_behind_is_believed_until_its_record_expires() {
    let mut records = store(100);
    let behind = signed(1, 1, NOW_SECS - 3600, limits::RECORD_LIFETIME_SECS_MAX).verify().unwrap();
    let expires_secs = behind.expires_secs;
    records.insert(&behind, SOURCE, NOW_SECS).unwrap();
    assert_eq!(records.alive(expires_secs - 1).count(), 1);
    assert_eq!(records.alive(expires_secs).count(), 0);
}

#[test]
fn what_changed_is_stored_and_what_was_stored_is_not_stored_again() {
    let mut records = store(100);
    records.track_changes();
    records.insert(&verified(1, 1), SOURCE, NOW_SECS).unwrap();
    records.insert(&verified(2, 1), SOURCE, NOW_SECS).unwrap();
    records.remove(key(2).address());
    let changed: HashMap<_, _> = records.take_changed(10).into_iter().collect();
    let value = wire::encode(&signed(1, 1, NOW_SECS, 3600));
    assert_eq!(changed[&key(1).address()], Some(StoredRecord { value, since_secs: NOW_SECS }));
    assert_eq!(changed[&key(2).address()], None);
    assert_eq!(records.take_changed(10), []);

    records.restore(key(3).address(), Some(&verified(3, 1)), NOW_SECS, NOW_SECS);
    assert_eq!(records.take_changed(10), [], "it is stored already");
    // Before the store is looked through for what is over.
    let late = signed(4, 1, NOW_SECS - GOODBYE_SECS, 3600).verify().unwrap();
    records.restore(key(4).address(), Some(&late), NOW_SECS, NOW_SECS);
    records.restore(key(5).address(), None, NOW_SECS, NOW_SECS);
    assert_eq!(records.take_changed(1).len(), 1, "and what expired or was forged is removed");
    assert_eq!(records.take_changed(10).len(), 1);
}

#[test]
fn many_changes_are_handed_out_in_a_moment() {
    let mut records = store(10);
    records.track_changes();
    // As many as a full store has when all of it is new.
    for n in 0..100_000_u32 {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&n.to_be_bytes());
        records.note_change(Address::from_bytes(bytes));
    }
    // Comparing each with all others would be five thousand million comparisons, for which this test would run for minutes.
    let mut taken = 0;
    while let some @ 1.. = records.take_changed(512).len() {
        taken += some;
    }
    assert_eq!(taken, 100_000);
}

#[test]
fn a_record_is_checked_before_it_is_kept() {
    let value = wire::encode(&signed(1, 1, NOW_SECS, 3600));
    let owner = key(1).address();
    assert!(decode(&value, Some(owner), &network()).is_ok());
    assert_eq!(decode(&value, Some(key(2).address()), &network()), Err(Rejected::WrongKey(owner)));
    let other = NetworkName::new("other").unwrap();
    assert_eq!(decode(&value, None, &other), Err(Rejected::OtherNetwork));
    let long = vec![0; RECORD_VALUE_BYTES_MAX + 1];
    assert_eq!(decode(&long, None, &network()), Err(Rejected::TooLarge(long.len())));
    assert!(matches!(decode(&long[1..], None, &network()), Err(Rejected::Malformed(_))));
}

#[test]
fn only_a_newer_record_replaces_the_one_held() {
    let mut records = store(100);
    records.insert(&verified(1, 5), SOURCE, NOW_SECS).unwrap();
    for seq in [4, 5] {
        let taken = records.insert(&verified(1, seq), SOURCE, NOW_SECS);
        assert_eq!(taken, Err(Rejected::NotNewer { held: 5 }));
    }
    records.insert(&verified(1, 6), SOURCE, NOW_SECS).unwrap();
    assert_eq!(records.get(key(1).address()).unwrap().seq, 6);
    assert_eq!(records.len(), 1);
    assert_consistent(&records);
}

#[test]
fn clocks_may_differ_by_five_minutes_and_no_more() {
    let skew = limits::CLOCK_SKEW_SECS_MAX;
    for (ahead_secs, taken) in [(skew - 1, true), (skew, true), (skew + 1, false)] {
        let record = signed(1, 1, NOW_SECS + ahead_secs, 3600).verify().unwrap();
        assert_eq!(store(10).insert(&record, SOURCE, NOW_SECS).is_ok(), taken, "{ahead_secs} s ahead");
    }
    for (lifetime_secs, taken) in [(99, false), (100, false), (101, true)] {
        let record = signed(1, 1, NOW_SECS - 100, lifetime_secs).verify().unwrap();
        assert_eq!(store(10).insert(&record, SOURCE, NOW_SECS).is_ok(), taken, "{lifetime_secs} s long");
    }
}

#[test]
fn a_goodbye_supersedes_what_was_held_and_nothing_older_comes_back() {
    let mut records = store(100);
    let owner = key(1).address();
    let goodbye = signed(1, 6, NOW_SECS, 0).verify().unwrap();
    let unheard_of = records.insert(&goodbye, SOURCE, NOW_SECS);
    assert!(matches!(unheard_of, Err(Rejected::Time(_))), "{unheard_of:?}");
    records.insert(&verified(1, 5), SOURCE, NOW_SECS).unwrap();
    records.insert(&goodbye, SOURCE, NOW_SECS).unwrap();
    assert_eq!(records.alive(NOW_SECS).count(), 0);
    assert_eq!(records.insert(&verified(1, 5), SOURCE, NOW_SECS), Err(Rejected::NotNewer { held: 6 }));
    records.remove_expired(NOW_SECS + GOODBYE_SECS - 1);
    assert!(records.get(owner).is_some());
    records.remove_expired(NOW_SECS + GOODBYE_SECS);
    assert!(records.get(owner).is_none());
    assert_consistent(&records);
}

#[test]
fn the_own_record_is_kept_however_many_come() {
    let mut records = store(5);
    for n in 1..=50 {
        let _ = records.insert(&verified(n, 1), SOURCE, NOW_SECS);
    }
    records.insert(&verified(0, 1), SOURCE, NOW_SECS).unwrap();
    for n in 51..=100 {
        let _ = records.insert(&verified(n, 1), SOURCE, NOW_SECS);
    }
    assert!(records.get(key(0).address()).is_some());
    assert_consistent(&records);
}

/// A full store of 20, into which the wallet of this number came last.
fn crowded(last: u32, partners: &Partners) -> Records {
    let mut records = Records::new(key(0).address(), 20, partners.clone());
    for n in 1_000..1_020 {
        records.insert(&verified(n, 1), SOURCE, NOW_SECS).unwrap();
    }
    records.insert(&verified(last, 1), SOURCE, NOW_SECS + 1).expect("a newcomer has a place");
    records
}

/// Others come, one of which takes the place of whoever came last.
fn crowd_out(records: &mut Records, numbers: std::ops::Range<u32>) {
    for n in numbers {
        records.insert(&verified(n, 1), SOURCE, NOW_SECS).unwrap();
    }
}

#[test]
fn wallets_that_crowd_an_owner_out_do_not_make_it_gone() {
    let partners = Partners::default();
    let (mut records, owner) = (crowded(1, &partners), key(1).address());
    assert_eq!(records.take_heard().get(&owner), Some(&(NOW_SECS + 3600)));
    crowd_out(&mut records, 2_000..2_200);
    assert!(records.get(owner).is_none(), "they took its place");
    assert!(!records.take_heard().contains_key(&owner), "which says nothing of its owner");
    // It goes on publishing; there is no room for it, and it is heard all the same.
    partners.set(records.owners.iter().copied().collect());
    let renewed = signed(1, 2, NOW_SECS, 7200).verify().unwrap();
    assert_eq!(records.insert(&renewed, SOURCE, NOW_SECS), Err(Rejected::StoreFull));
    assert_eq!(records.take_heard().get(&owner), Some(&(NOW_SECS + 7200)));
    // Only its own word says that it has left, and only to whom it has not left already.
    let goodbye = |n| signed(n, 3, NOW_SECS, 0).verify().unwrap();
    assert!(matches!(records.insert(&goodbye(1), SOURCE, NOW_SECS + 1), Err(Rejected::Time(_))));
    assert!(records.take_heard().is_empty());
    let kept = (1_000..2_200).find(|n| records.get(key(*n).address()).is_some()).unwrap();
    records.insert(&goodbye(kept), SOURCE, NOW_SECS + 1).unwrap();
    assert_eq!(records.take_heard().get(&key(kept).address()), Some(&NOW_SECS));
    assert_consistent(&records);
}

#[test]
fn wallets_that_crowd_in_do_not_displace_a_partner() {
    let (partners, owner) = (Partners::default(), key(1).address());
    partners.set([owner].into());
    let mut records = crowded(1, &partners);
    for n in 2_000..2_200 {
        crowd_out(&mut records, n..n + 1);
        assert!(records.get(owner).is_some(), "{n} displaced it");
    }
    partners.set(HashSet::new());
    crowd_out(&mut records, 3_000..3_200);
    assert!(records.get(owner).is_none(), "without a channel it is one of many");
    assert_consistent(&records);
}

#[test]
fn places_are_shared_out_by_where_records_came_from() {
    let mut records = store(100);
    for n in 1..=160 {
        let bringer = if n <= 100 { range(1) } else { range(2) };
        records.insert(&verified(n, 1), bringer, NOW_SECS).unwrap();
        assert_consistent(&records);
    }
    let of = |n| records.entries.values().filter(|entry| entry.bringer == Some(range(n))).count();
    assert_eq!((of(1), of(2)), (50, 50));
    records.insert(&verified(160, 2), range(1), NOW_SECS).expect("news about a known wallet always fits");
}

#[test]
fn the_signature_of_a_record_of_another_network_is_not_looked_at() {
    let mut record = signed(1, 1, NOW_SECS, 3600).verify().unwrap().into_inner();
    record.network = "other".to_owned();
    let mut bytes = wire::encode(&Signed::sign(&record, &key(1)).unwrap());
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    assert_eq!(decode(&bytes, None, &network()).unwrap_err(), Rejected::OtherNetwork);
}

/// A store of 400 with 300 owners that have been here for long.
fn with_settled() -> Records {
    let mut records = store(400);
    for n in 1..=300 {
        let since_secs = NOW_SECS - SETTLED_SECS;
        records.restore(key(n).address(), Some(&verified(n, 1)), since_secs, NOW_SECS);
    }
    records
}

#[test]
fn a_flood_of_free_wallets_keeps_no_newcomer_out_and_pushes_no_old_owner_out() {
    let mut records = with_settled();
    let (flood, newcomer, beside) = (range(66), key(500).address(), key(501).address());
    for n in 1_000..1_400 {
        records.insert(&verified(n, 1), flood, NOW_SECS).unwrap();
    }
    records.insert(&verified(500, 1), range(2), NOW_SECS).unwrap();
    for n in 1_400..1_700 {
        records.insert(&verified(n, 1), flood, NOW_SECS).unwrap();
    }
    assert!(records.get(newcomer).is_some(), "the flood takes its own places");
    records.insert(&verified(501, 1), flood, NOW_SECS).unwrap();
    assert!(records.get(beside).is_some(), "also who is brought by whom the flood is brought by");
    assert!((1..=300).all(|n| records.get(key(n).address()).is_some()), "nobody that was here had to go");
    assert!(records.take_heard().values().all(|expires_secs| *expires_secs > NOW_SECS), "and nobody is gone");
    assert_consistent(&records);
}

#[test]
fn who_is_new_has_a_quarter_of_the_places() {
    let mut records = with_settled();
    for n in 301..=400 {
        records.restore(key(n).address(), Some(&verified(n, 1)), NOW_SECS - SETTLED_SECS, NOW_SECS);
    }
    for n in 1_000..1_200 {
        records.insert(&verified(n, 1), range(1), NOW_SECS).unwrap();
    }
    assert_eq!((1..=400).filter(|n| records.get(key(*n).address()).is_some()).count(), 300);
    assert_consistent(&records);
}

#[test]
fn who_stays_for_a_week_is_settled() {
    const DAY_SECS: u64 = 24 * 3600;
    let mut records = store(10);
    let tenure = |records: &Records| records.entries[&key(1).address()].tenure;
    for day in 0..=7 {
        let now_secs = NOW_SECS + day * DAY_SECS;
        let renewed = signed(1, 1 + day, now_secs, 2 * DAY_SECS).verify().unwrap();
        records.insert(&renewed, range(1), now_secs).unwrap();
        assert_eq!(tenure(&records), if day < 7 { Tenure::Young } else { Tenure::Settled }, "day {day}");
        assert_consistent(&records);
    }
}

#[test]
fn what_is_over_goes_also_from_a_store_with_room() {
    let mut records = store(100);
    records.insert(&verified(1, 1), SOURCE, NOW_SECS).unwrap();
    let later_secs = NOW_SECS + GOODBYE_SECS;
    let later = signed(2, 1, later_secs, 3600).verify().unwrap();
    records.insert(&later, SOURCE, later_secs).unwrap();
    assert_eq!(records.len(), 1);
    assert_consistent(&records);
}

#[test]
fn a_goodbye_is_believed_after_a_restart_as_well() {
    let mut records = store(100);
    let goodbye = signed(1, 6, NOW_SECS, 0).verify().unwrap();
    let restarted_secs = NOW_SECS + 10;
    records.restore(key(1).address(), Some(&goodbye), NOW_SECS, restarted_secs);
    let older = records.insert(&verified(1, 5), SOURCE, restarted_secs);
    assert_eq!(older, Err(Rejected::NotNewer { held: 6 }));
    assert!(records.take_heard().is_empty(), "nobody is told of it a second time");
}

#[test]
fn a_sample_is_drawn_from_all_that_may_be_used() {
    let mut records = store(300);
    for n in 1..=200 {
        records.insert(&verified(n, 1), SOURCE, NOW_SECS).unwrap();
    }
    let expired = signed(201, 1, NOW_SECS - 7200, 7201).verify().unwrap();
    records.insert(&expired, SOURCE, NOW_SECS).unwrap();
    let (asker, now_secs) = (key(1).address(), NOW_SECS + 1);
    let mut drawn = HashSet::new();
    for _ in 0..100 {
        let sample: HashSet<Address> =
            records.sample(16, asker, now_secs).iter().map(Verified::signer).collect();
        assert_eq!(sample.len(), 16, "each once");
        drawn.extend(sample);
    }
    assert!(!drawn.contains(&asker) && !drawn.contains(&key(201).address()));
    // Of 199, any is missed by all with a chance of (1 - 16/199)^100: 2 in 10,000.
    assert!(drawn.len() > 190, "{}", drawn.len());

    let mut few = store(10);
    for n in 1..=10 {
        few.insert(&verified(n, 1), SOURCE, NOW_SECS).unwrap();
    }
    assert_eq!(few.sample(16, asker, NOW_SECS).len(), 9, "of a few, all");
}
