//! What the record store accepts, replaces and forgets.

use farthing_protocol::SecretKey;

use super::*;

#[cfg(target_os = "linux")]
#[path = "../../../../protocol/tests/support/alone.rs"]
mod alone;
#[cfg(target_os = "linux")]
use alone::{is_alone, resident_kib};

const NOW_SECS: u64 = 1_000_000;
const SOURCE: Address = Address::from_bytes([9; 20]);

fn key(n: u32) -> SecretKey {
    let mut bytes = [1; 32];
    bytes[..4].copy_from_slice(&n.to_be_bytes());
    SecretKey::from_bytes(&bytes).unwrap()
}

fn network() -> NetworkName {
    NetworkName::new("local-test").unwrap()
}

fn signed(n: u32, seq: u64, issued_secs: u64, lifetime_secs: u64) -> Signed<NodeRecord> {
    let record = NodeRecord {
        network: "local-test".to_owned(),
        public_key: key(n).public_key(),
        net_key: None,
        seq,
        issued_secs,
        expires_secs: issued_secs + lifetime_secs,
        flags: 0,
        protocol_min: 1,
        protocol_max: 1,
        addresses: Vec::new(),
        listings_count: 0,
        listings_root: [0; 32],
        agent: String::new(),
    };
    Signed::sign(&record, &key(n)).unwrap()
}

fn verified(n: u32, seq: u64) -> Verified<NodeRecord> {
    signed(n, seq, NOW_SECS, 3600).verify().unwrap()
}

fn store(records_max: usize, per_source_max: usize) -> Records {
    Records::new(&key(0).public_key(), records_max, per_source_max, Partners::default())
}

/// Every index agrees with the entries.
fn assert_consistent(records: &Records) {
    assert_eq!(records.by_distance.len(), records.entries.len());
    assert_eq!(records.by_source.values().sum::<usize>(), records.entries.len());
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
        let taken = decode(value, None, &network()).and_then(|r| records.insert(r, SOURCE, NOW_SECS));
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
    let mut records = store(1_000_000, 1_000_000);
    for n in 1..=100 {
        records.insert(verified(n, 7), SOURCE, NOW_SECS).unwrap();
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
fn a_node_whose_clock_is_an_hour_behind_is_believed_until_its_record_expires() {
    let mut records = store(100, 100);
    let behind = signed(1, 1, NOW_SECS - 3600, limits::RECORD_LIFETIME_SECS_MAX).verify().unwrap();
    let expires_secs = behind.expires_secs;
    records.insert(behind, SOURCE, NOW_SECS).unwrap();
    assert_eq!(records.alive(expires_secs - 1).count(), 1);
    assert_eq!(records.alive(expires_secs).count(), 0);
}

#[test]
fn what_changed_is_stored_and_what_was_stored_is_not_stored_again() {
    let mut records = store(100, 100);
    records.track_changes();
    records.insert(verified(1, 1), SOURCE, NOW_SECS).unwrap();
    records.insert(verified(2, 1), SOURCE, NOW_SECS).unwrap();
    records.remove(key(2).address());
    let changed: HashMap<_, _> = records.take_changed(10).into_iter().collect();
    assert_eq!(changed[&key(1).address()], Some(wire::encode(&signed(1, 1, NOW_SECS, 3600))));
    assert_eq!(changed[&key(2).address()], None);
    assert_eq!(records.take_changed(10), []);

    records.restore(key(3).address(), Some(verified(3, 1)), NOW_SECS);
    assert_eq!(records.take_changed(10), [], "it is stored already");
    let late_secs = NOW_SECS + 7200;
    records.restore(key(4).address(), Some(verified(4, 1)), late_secs);
    records.restore(key(5).address(), None, late_secs);
    assert_eq!(records.take_changed(1).len(), 1, "and what expired or was forged is removed");
    assert_eq!(records.take_changed(10).len(), 1);
}

#[test]
fn a_record_is_checked_before_it_is_kept() {
    let value = wire::encode(&signed(1, 1, NOW_SECS, 3600));
    let owner = key(1).address();
    assert!(decode(&value, Some(owner), &network()).is_ok());
    assert_eq!(decode(&value, Some(SOURCE), &network()), Err(Rejected::WrongKey(owner)));
    let other = NetworkName::new("other").unwrap();
    assert_eq!(decode(&value, None, &other), Err(Rejected::OtherNetwork));
    let long = vec![0; RECORD_VALUE_BYTES_MAX + 1];
    assert_eq!(decode(&long, None, &network()), Err(Rejected::TooLarge(long.len())));
    assert!(matches!(decode(&long[1..], None, &network()), Err(Rejected::Malformed(_))));
}

#[test]
fn only_a_newer_record_replaces_the_one_held() {
    let mut records = store(100, 100);
    records.insert(verified(1, 5), SOURCE, NOW_SECS).unwrap();
    for seq in [4, 5] {
        let taken = records.insert(verified(1, seq), SOURCE, NOW_SECS);
        assert_eq!(taken, Err(Rejected::NotNewer { held: 5 }));
    }
    records.insert(verified(1, 6), SOURCE, NOW_SECS).unwrap();
    assert_eq!(records.get(key(1).address()).unwrap().seq, 6);
    assert_eq!(records.len(), 1);
    assert_consistent(&records);
}

#[test]
fn clocks_may_differ_by_five_minutes_and_no_more() {
    let skew = limits::CLOCK_SKEW_SECS_MAX;
    for (ahead_secs, taken) in [(skew - 1, true), (skew, true), (skew + 1, false)] {
        let record = signed(1, 1, NOW_SECS + ahead_secs, 3600).verify().unwrap();
        assert_eq!(store(10, 10).insert(record, SOURCE, NOW_SECS).is_ok(), taken, "{ahead_secs} s ahead");
    }
    for (lifetime_secs, taken) in [(99, false), (100, false), (101, true)] {
        let record = signed(1, 1, NOW_SECS - 100, lifetime_secs).verify().unwrap();
        assert_eq!(store(10, 10).insert(record, SOURCE, NOW_SECS).is_ok(), taken, "{lifetime_secs} s long");
    }
}

#[test]
fn a_goodbye_supersedes_what_was_held_and_nothing_older_comes_back() {
    let mut records = store(100, 100);
    let owner = key(1).address();
    let goodbye = signed(1, 6, NOW_SECS, 0).verify().unwrap();
    let unheard_of = records.insert(goodbye.clone(), SOURCE, NOW_SECS);
    assert!(matches!(unheard_of, Err(Rejected::Time(_))), "{unheard_of:?}");
    records.insert(verified(1, 5), SOURCE, NOW_SECS).unwrap();
    records.insert(goodbye, SOURCE, NOW_SECS).unwrap();
    assert_eq!(records.alive(NOW_SECS).count(), 0);
    assert_eq!(records.insert(verified(1, 5), SOURCE, NOW_SECS), Err(Rejected::NotNewer { held: 6 }));
    records.remove_expired(NOW_SECS + GOODBYE_SECS - 1);
    assert!(records.get(owner).is_some());
    records.remove_expired(NOW_SECS + GOODBYE_SECS);
    assert!(records.get(owner).is_none());
    assert_consistent(&records);
}

#[test]
fn a_full_store_keeps_the_closest() {
    let mut records = store(50, 1000);
    for n in 1..=300 {
        let _ = records.insert(verified(n, 1), SOURCE, NOW_SECS);
        assert_consistent(&records);
    }
    let mut all: Vec<Address> = (1..=300).map(|n| key(n).address()).collect();
    all.sort_by_key(|owner| records.distance(*owner));
    assert!(all[..50].iter().all(|owner| records.get(*owner).is_some()));
    assert_eq!(records.len(), 50);
}

#[test]
fn the_own_record_is_kept_whatever_its_distance() {
    let mut records = store(5, 1000);
    for n in 1..=50 {
        let _ = records.insert(verified(n, 1), SOURCE, NOW_SECS);
    }
    records.insert(verified(0, 1), key(0).address(), NOW_SECS).unwrap();
    for n in 51..=100 {
        let _ = records.insert(verified(n, 1), SOURCE, NOW_SECS);
    }
    assert!(records.get(key(0).address()).is_some());
    assert_consistent(&records);
}

/// A thousand wallets, the ones that are closer to this node than `n` among them.
fn closer_than(records: &Records, n: u32) -> Vec<u32> {
    let target = records.distance(key(n).address());
    (1_000..2_000).filter(|other| records.distance(key(*other).address()) < target).collect()
}

#[test]
fn wallets_ground_close_to_a_target_do_not_make_it_gone() {
    let mut records = store(20, 1000);
    // One that is far away, so that there are many closer ones.
    let target = (1..100).max_by_key(|n| records.distance(key(*n).address())).unwrap();
    let owner = key(target).address();
    records.insert(verified(target, 1), owner, NOW_SECS).unwrap();
    let first = records.take_heard();
    assert_eq!(first.get(&owner), Some(&(NOW_SECS + 3600)));
    for closer in closer_than(&records, target) {
        let _ = records.insert(verified(closer, 1), key(closer).address(), NOW_SECS);
    }
    assert!(records.get(owner).is_none(), "they took its place");
    assert!(!records.take_heard().contains_key(&owner), "which says nothing of its owner");
    // It goes on publishing; there is no room for it, and it is heard all the same.
    let renewed = signed(target, 2, NOW_SECS, 7200).verify().unwrap();
    assert_eq!(records.insert(renewed, owner, NOW_SECS), Err(Rejected::StoreFull));
    assert_eq!(records.take_heard().get(&owner), Some(&(NOW_SECS + 7200)));
    // Only its own word says that it has left, and only to whom it has not left already.
    let goodbye = |n| signed(n, 3, NOW_SECS, 0).verify().unwrap();
    assert!(matches!(records.insert(goodbye(target), owner, NOW_SECS + 1), Err(Rejected::Time(_))));
    assert!(records.take_heard().is_empty());
    let kept =
        *closer_than(&records, target).iter().find(|n| records.get(key(**n).address()).is_some()).unwrap();
    records.insert(goodbye(kept), key(kept).address(), NOW_SECS + 1).unwrap();
    assert_eq!(records.take_heard().get(&key(kept).address()), Some(&NOW_SECS));
    assert_consistent(&records);
}

#[test]
fn wallets_ground_close_to_a_partner_do_not_displace_it() {
    let partners = Partners::default();
    let mut records = Records::new(&key(0).public_key(), 20, 5, partners.clone());
    let target = (1..100).max_by_key(|n| records.distance(key(*n).address())).unwrap();
    let owner = key(target).address();
    partners.set([owner].into());
    for n in 1_000..1_020 {
        records.insert(verified(n, 1), key(n).address(), NOW_SECS).unwrap();
    }
    records.insert(verified(target, 1), SOURCE, NOW_SECS).expect("it has a place, however full and far away");
    for n in 2_000..2_200 {
        let _ = records.insert(verified(n, 1), key(n).address(), NOW_SECS);
        assert!(records.get(owner).is_some(), "{n} displaced it");
    }
    partners.set(HashSet::new());
    let closer = closer_than(&records, target);
    assert!(closer.iter().any(|n| records.insert(verified(*n, 2), key(*n).address(), NOW_SECS).is_ok()));
    assert!(records.get(owner).is_none(), "without a channel it is one of many");
    assert_consistent(&records);
}

#[test]
fn one_source_cannot_fill_the_store() {
    let mut records = store(100, 10);
    for n in 1..=11 {
        let taken = records.insert(verified(n, 1), SOURCE, NOW_SECS);
        assert_eq!(taken, if n <= 10 { Ok(()) } else { Err(Rejected::SourceFull) }, "{n}");
    }
    records.insert(verified(1, 2), SOURCE, NOW_SECS).expect("news about a known wallet always fits");
    records.insert(verified(12, 1), Address::ZERO, NOW_SECS).expect("others have their own share");
    records.insert(verified(13, 1), key(13).address(), NOW_SECS).expect("its own word");
    assert_consistent(&records);
}
