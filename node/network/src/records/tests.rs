//! What the record store accepts, replaces and forgets.

use farthing_protocol::SecretKey;

use super::*;

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
    Records::new(&key(0).public_key(), records_max, per_source_max)
}

/// Every index agrees with the entries.
fn assert_consistent(records: &Records) {
    assert_eq!(records.by_distance.len(), records.entries.len());
    assert_eq!(records.by_source.values().sum::<usize>(), records.entries.len());
    assert!(records.len() <= records.records_max);
}

#[test]
fn ten_thousand_forged_records_leave_no_trace() {
    let mut records = store(100, 100);
    let honest = wire::encode(&signed(1, 1, NOW_SECS, 3600));
    for n in 0..10_000_u32 {
        let mut forged = honest.clone();
        let from_the_end = 2 + n as usize % 60;
        let at = forged.len() - from_the_end;
        forged[at] ^= u8::try_from(n % 255).unwrap() + 1;
        let taken =
            decode(&forged, None, &network()).and_then(|record| records.insert(record, SOURCE, NOW_SECS));
        assert_eq!(taken, Err(Rejected::Forged), "{n}");
    }
    assert_eq!(records.len(), 0);
    assert_consistent(&records);
}

/// Offers the same bytes ten thousand times and says why they were refused the last time.
fn offer_ten_thousand_times(records: &mut Records, value: &[u8]) -> Rejected {
    let mut last = None;
    for n in 0..10_000 {
        let taken = decode(value, None, &network()).and_then(|r| records.insert(r, SOURCE, NOW_SECS));
        last = Some(taken.expect_err(&n.to_string()));
    }
    last.unwrap()
}

#[test]
fn ten_thousand_records_too_large_or_of_another_network_leave_no_trace() {
    let mut records = store(100, 100);
    let too_large = vec![0; RECORD_VALUE_BYTES_MAX + 1];
    assert_eq!(offer_ten_thousand_times(&mut records, &too_large), Rejected::TooLarge(too_large.len()));
    let mut foreign = signed(1, 1, NOW_SECS, 3600).verify().unwrap().into_inner();
    foreign.network = "other".to_owned();
    let foreign = wire::encode(&Signed::sign(&foreign, &key(1)).unwrap());
    assert_eq!(offer_ten_thousand_times(&mut records, &foreign), Rejected::OtherNetwork);
    assert_eq!(records.len(), 0);
    assert_consistent(&records);
}

#[test]
fn ten_thousand_records_out_of_their_time_leave_no_trace_and_the_reason_names_clocks() {
    let mut records = store(100, 100);
    let ahead = wire::encode(&signed(1, 1, NOW_SECS + 3600, 3600));
    let Rejected::Time(reason) = offer_ten_thousand_times(&mut records, &ahead) else { panic!() };
    assert!(reason.contains("check both nodes' clocks"), "{reason}");
    let expired = wire::encode(&signed(1, 1, NOW_SECS - 7200, 3600));
    assert!(matches!(offer_ten_thousand_times(&mut records, &expired), Rejected::Time(_)));
    assert_eq!(records.len(), 0);
    assert_consistent(&records);
}

#[test]
fn a_record_replayed_ten_thousand_times_is_held_once() {
    let mut records = store(100, 100);
    records.insert(verified(1, 7), SOURCE, NOW_SECS).unwrap();
    let replayed = wire::encode(&signed(1, 6, NOW_SECS, 3600));
    assert_eq!(offer_ten_thousand_times(&mut records, &replayed), Rejected::NotNewer { held: 7 });
    assert_eq!((records.len(), records.get(key(1).address()).unwrap().seq), (1, 7));
    assert_consistent(&records);
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
