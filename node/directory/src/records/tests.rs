//! What the store takes, replaces and forgets.

use proptest::prelude::*;

use super::*;
use crate::testing::{NOW_SECS, Notary, record};

const SOURCE: &[u8] = b"source";

fn store(records_max: usize, per_source_max: usize) -> Records<()> {
    Records::new(Key::of(b"own"), records_max, per_source_max)
}

fn alive(n: u32, seq: u64) -> VerifiedRecord<()> {
    record(n, seq, NOW_SECS, 3600)
}

fn insert(records: &mut Records<()>, record: VerifiedRecord<()>) -> Result<(), RecordRefusal> {
    records.insert(record, Key::of(SOURCE), NOW_SECS)
}

/// Every index agrees with the entries.
fn assert_consistent(records: &Records<()>) {
    assert_eq!(records.by_distance.len(), records.held.len());
    assert_eq!(records.by_source.values().sum::<usize>(), records.held.len());
    assert!(records.len() <= records.records_max);
}

fn seq_of(records: &Records<()>, n: u32) -> Option<u64> {
    records.get(&alive(n, 0).filed().name).map(VerifiedRecord::seq)
}

#[test]
fn only_what_the_verifier_believes_becomes_a_record() {
    let mut filed = alive(1, 1).filed().clone();
    assert!(VerifiedRecord::of(&Notary, filed.clone()).is_ok());
    let mut forged = filed.value.to_vec();
    forged[0] ^= 1;
    filed.value = forged.into();
    assert_eq!(VerifiedRecord::of(&Notary, filed).unwrap_err(), Untrue::Forged);
}

#[test]
fn only_a_newer_record_replaces_the_one_held() {
    let mut records = store(100, 100);
    insert(&mut records, alive(1, 5)).unwrap();
    for seq in [4, 5] {
        assert_eq!(insert(&mut records, alive(1, seq)), Err(RecordRefusal::NotNewer { held: 5 }));
    }
    insert(&mut records, alive(1, 6)).unwrap();
    assert_eq!((seq_of(&records, 1), records.len()), (Some(6), 1));
    assert_consistent(&records);
}

#[test]
fn clocks_may_differ_by_five_minutes_and_no_more() {
    for (ahead_secs, taken) in [(299, true), (300, true), (301, false)] {
        let record = record(1, 1, NOW_SECS + ahead_secs, 3600);
        assert_eq!(insert(&mut store(10, 10), record).is_ok(), taken, "{ahead_secs} s ahead");
    }
    for (lifetime_secs, taken) in [(99, false), (100, false), (101, true)] {
        let record = record(1, 1, NOW_SECS - 100, lifetime_secs);
        assert_eq!(insert(&mut store(10, 10), record).is_ok(), taken, "{lifetime_secs} s long");
    }
}

#[test]
fn a_goodbye_supersedes_what_was_held_and_nothing_older_comes_back() {
    let mut records = store(100, 100);
    let goodbye = record(1, 6, NOW_SECS, 0);
    assert_eq!(insert(&mut records, goodbye.clone()), Err(RecordRefusal::Time), "nobody to say goodbye to");
    insert(&mut records, alive(1, 5)).unwrap();
    insert(&mut records, goodbye).unwrap();
    assert_eq!(insert(&mut records, alive(1, 5)), Err(RecordRefusal::NotNewer { held: 6 }));
    // An older record that is dated ahead lives for as long.
    records.remove_expired(NOW_SECS + CLOCK_SKEW_SECS_MAX + LIFETIME_SECS_MAX - 1);
    assert_eq!(seq_of(&records, 1), Some(6));
    records.remove_expired(NOW_SECS + CLOCK_SKEW_SECS_MAX + LIFETIME_SECS_MAX);
    assert_eq!(seq_of(&records, 1), None);
    assert_consistent(&records);
    insert(&mut records, alive(1, 5)).unwrap();
    let ahead = record(1, 7, NOW_SECS + 301, 0);
    assert_eq!(insert(&mut records, ahead), Err(RecordRefusal::Time), "no goodbye is of the future");
}

#[test]
fn a_full_store_keeps_the_nearest_and_that_of_this_node() {
    // A node whose record lies in the other half of the key space.
    let is_far = |own: &VerifiedRecord<()>| own.facts().publisher.distance(own.key()).shared_bits() == 0;
    let of_this_node = (1_000..).map(|n| alive(n, 1)).find(is_far).unwrap();
    let mut records = Records::new(of_this_node.facts().publisher, 50, 1000);
    insert(&mut records, of_this_node.clone()).unwrap();
    for n in 0..300 {
        let _ = insert(&mut records, alive(n, 1));
        assert_consistent(&records);
    }
    assert!(records.get(&of_this_node.filed().name).is_some());
    let mut others: Vec<u32> = (0..300).collect();
    others.sort_by_key(|n| records.own.distance(alive(*n, 1).key()));
    assert!(others[..49].iter().all(|n| seq_of(&records, *n).is_some()));
}

#[test]
fn one_source_cannot_fill_the_store() {
    let mut records = store(100, 10);
    for n in 0..11 {
        let taken = insert(&mut records, alive(n, 1));
        assert_eq!(taken, if n < 10 { Ok(()) } else { Err(RecordRefusal::SourceFull) }, "{n}");
    }
    insert(&mut records, alive(1, 2)).expect("news of a wallet that is known always fits");
    records.insert(alive(12, 1), Key::of(b"other"), NOW_SECS).expect("others have their own share");
    let own_word = alive(13, 1);
    let publisher = own_word.facts().publisher;
    records.insert(own_word, publisher, NOW_SECS).expect("its own word");
    assert_consistent(&records);
}

proptest! {
    #[test]
    fn whatever_comes_the_store_is_bounded_and_a_number_never_falls(
        offers in proptest::collection::vec((0_u32..40, 0_u64..6, 0_u64..3, 0_u8..4), 0..200)
    ) {
        let mut records = store(10, 6);
        for (n, seq, hours, source) in offers {
            let before = seq_of(&records, n);
            let taken = records.insert(record(n, seq, NOW_SECS, hours * 3600), Key::of(&[source]), NOW_SECS);
            let after = seq_of(&records, n);
            prop_assert!(after >= before);
            prop_assert_eq!(taken.is_ok(), after == Some(seq) && before != Some(seq));
            assert_consistent(&records);
        }
    }
}
