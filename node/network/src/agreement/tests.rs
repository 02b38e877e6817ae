//! Two stores agree, without sockets: what one session brings both, and what it costs.

use std::sync::LazyLock;

use farthing_protocol::{
    Signed,
    agreement::item,
    limits,
    reconciliation::{Answers, compress},
};

use super::*;
use crate::{
    partners::Partners,
    records::{
        Records,
        testing::{key, signed},
    },
};

const PEER: RecordSource = (Address::from_bytes([9; 20]), None);
const DAY_SECS: u64 = 24 * 3600;
/// Records of all stores are issued at one time.
static NOW_SECS: LazyLock<u64> = LazyLock::new(crate::now_secs);

fn owner(n: u32) -> Address {
    key(n).address()
}

fn record(n: u32, seq: u64) -> Signed<NodeRecord> {
    signed(n, seq, *NOW_SECS, DAY_SECS)
}

/// What is reported is not looked at here.
fn agreement(records_max: usize) -> Agreement {
    let store = Records::new(key(0).address(), records_max, Partners::default());
    let network = NetworkName::new("local-test").unwrap();
    let limits = NetworkLimits::default();
    Agreement::new(SharedRecords::new(store), network, Arc::default(), Reporter::new().0, limits)
}

fn keep(agreement: &Agreement, record: Signed<NodeRecord>) {
    let source = NeighbourOrigin::Wallet(PEER.0);
    agreement.records.lock().insert(&record.verify().unwrap(), source, crate::now_secs()).unwrap();
}

fn seq(agreement: &Agreement, n: u32) -> Option<u64> {
    agreement.records.lock().seq(owner(n))
}

/// One session that `here` opens: what came of it, the messages of the opener, and the bytes of both sides.
fn session(here: &Agreement, there: &Agreement) -> (Agreed, Vec<RecordsMessage>, usize) {
    // What changed in the last seconds is seen as well.
    for side in [here, there] {
        *side.picture.lock() = None;
    }
    let now_secs = crate::now_secs();
    let (mut opener, mut message) = Opener::begin(here.clone(), PEER, now_secs).unwrap();
    let mut answerer = Answerer::new(there.clone(), PEER);
    let (mut said, mut bytes) = (Vec::new(), 0);
    loop {
        let answer = answerer.on(message.clone(), now_secs).unwrap();
        bytes += wire::encode(&message).len() + wire::encode(&answer).len();
        said.push(message);
        match opener.on(answer).unwrap() {
            Some(next) => message = next,
            None => return (opener.agreed(), said, bytes),
        }
    }
}

#[test]
fn after_a_session_both_have_the_newest_of_all() {
    let (here, there) = (agreement(1_000), agreement(1_000));
    for n in 1..=300 {
        keep(&here, record(n, if n == 250 { 2 } else { 1 }));
    }
    for n in 201..=600 {
        keep(&there, record(n, if n == 260 { 2 } else { 1 }));
    }
    let (agreed, ..) = session(&here, &there);
    assert_eq!(agreed, Agreed { learned: 301, is_rest: false });
    for n in 1..=600 {
        let newest = Some(if n == 250 || n == 260 { 2 } else { 1 });
        assert_eq!((seq(&here, n), seq(&there, n)), (newest, newest), "{n}");
    }
    let (again, said, _) = session(&here, &there);
    assert_eq!((again.learned, said.len()), (0, 1), "one comparison says that nothing is missing");
}

#[test]
fn renewals_cost_little_more_than_the_records() {
    const RENEWED: u32 = 20;
    let (here, there) = (agreement(3_000), agreement(3_000));
    for n in 1..=2_000 {
        let old = signed(n, 1, *NOW_SECS - DAY_SECS + u64::from(n) * 40, 2 * DAY_SECS);
        keep(&here, old.clone());
        // Those that are a day old are signed anew.
        keep(&there, if n <= RENEWED { record(n, 2) } else { old });
    }
    let (agreed, _, bytes) = session(&here, &there);
    assert_eq!(agreed.learned, RENEWED as usize);
    assert!(bytes < 16 * 1024, "{bytes} bytes for {RENEWED} records of 2,000");
}

#[test]
fn a_goodbye_is_told_to_who_holds_an_older_record_and_to_nobody_else() {
    let goodbye = || signed(1, 2, *NOW_SECS, 0);
    let left = || {
        let agreement = agreement(10);
        keep(&agreement, record(1, 1));
        keep(&agreement, goodbye());
        agreement
    };
    let (holder, opener_that_knows, stranger) = (agreement(10), left(), agreement(10));
    keep(&holder, record(1, 1));
    session(&holder, &left());
    assert_eq!(seq(&holder, 1), Some(2), "told by the side that answers");

    let holder = agreement(10);
    keep(&holder, record(1, 1));
    session(&opener_that_knows, &holder);
    assert_eq!(seq(&holder, 1), Some(2), "told by the side that opens");

    session(&opener_that_knows, &stranger);
    session(&stranger, &opener_that_knows);
    assert_eq!(seq(&stranger, 1), None);
}

#[test]
fn nothing_is_fetched_for_which_there_is_no_room() {
    let (full, other) = (agreement(10), agreement(100));
    for n in 1..=10 {
        keep(&full, record(n, 1));
        keep(&other, record(n, if n == 3 { 2 } else { 1 }));
    }
    for n in 11..=60 {
        keep(&other, record(n, 1));
    }
    let (agreed, said, _) = session(&full, &other);
    assert_eq!((agreed.learned, seq(&full, 3)), (1, Some(2)), "what is newer of those it has");
    let fetched = said.iter().filter_map(|message| match message {
        RecordsMessage::Fetch(owners) => Some(owners.as_slice()),
        _ => None,
    });
    assert_eq!(fetched.collect::<Vec<_>>(), [&[owner(3)]]);
    assert_eq!(full.interval(), full.limits.agreement_interval * FULL_FACTOR, "and it asks rarely");
    assert_eq!(other.interval(), other.limits.agreement_interval);
}

/// Some more than a session fetches.
const MANY: u32 = 16_500;

/// An opener that has compared with a side that names the second record of each of so many, and whom it asks for first.
fn asking_for_renewed(here: &Agreement) -> (Opener, Vec<Address>) {
    let there = Picture::of((1..=MANY).map(|n| (*NOW_SECS, item(owner(n), 2))));
    let mut answers = Answers::default();
    let (mut opener, mut message) = Opener::begin(here.clone(), PEER, crate::now_secs()).unwrap();
    loop {
        message = match message {
            RecordsMessage::Compare(asked) => {
                let answer = answers.answer(&there, &asked).unwrap();
                opener.on(RecordsMessage::Compare(answer.into())).unwrap().unwrap()
            }
            RecordsMessage::Fetch(owners) => return (opener, owners),
            other => panic!("{other:?}"),
        };
    }
}

#[test]
fn whoever_renews_more_records_than_a_session_fetches_hurries_nobody() {
    let (newcomer, knowing) = (agreement(100_000), agreement(100_000));
    let (opener, _) = asking_for_renewed(&newcomer);
    assert!(opener.agreed().is_rest, "who knows nobody fetches the rest soon");
    (1..=MANY).for_each(|n| keep(&knowing, record(n, 1)));
    let (opener, _) = asking_for_renewed(&knowing);
    assert!(!opener.agreed().is_rest, "renewals come with the next session");
}

#[test]
fn who_is_new_is_fetched_before_what_is_renewed() {
    const KNOWN: u32 = 2_000;
    let here = agreement(100_000);
    (1..=KNOWN).for_each(|n| keep(&here, record(n, 1)));
    let (_, asked) = asking_for_renewed(&here);
    // The last are asked for first: all that is renewed, where all others left no room for more.
    let renewed = asked.iter().filter(|owner| here.records.lock().seq(**owner).is_some()).count();
    assert_eq!(renewed, FETCHED_MAX - (MANY - KNOWN) as usize);
}

/// An opener that has asked for the records of 1 to 3.
fn asking() -> Opener {
    let (here, there) = (agreement(10), agreement(10));
    (1..=3).for_each(|n| keep(&there, record(n, 1)));
    let (mut opener, message) = Opener::begin(here, PEER, crate::now_secs()).unwrap();
    let answer = Answerer::new(there, PEER).on(message, crate::now_secs()).unwrap();
    let next = opener.on(answer).unwrap();
    assert!(matches!(next, Some(RecordsMessage::Fetch(_))), "{next:?}");
    opener
}

fn packed(records: &[Signed<NodeRecord>]) -> RecordsMessage {
    RecordsMessage::Records(compress(&wire::encode(&records)).unwrap().into())
}

#[test]
fn what_was_not_asked_for_or_is_forged_ends_the_session_and_counts_against_its_sender() {
    let unasked = asking().on(packed(&[record(4, 1)])).unwrap_err();
    assert_eq!(unasked.strike(), Some(Strike::Malformed), "{unasked}");
    let mut bytes = wire::encode(&record(1, 1));
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    let forged = asking().on(packed(&[wire::decode(&bytes).unwrap()])).unwrap_err();
    assert_eq!(forged.strike(), Some(Strike::BadSignature), "{forged}");
    let mut elsewhere = record(1, 1).verify().unwrap().into_inner();
    elsewhere.network = "local-other".to_owned();
    let elsewhere = Signed::sign(&elsewhere, &key(1)).unwrap();
    let foreign = asking().on(packed(std::slice::from_ref(&elsewhere))).unwrap_err();
    assert_eq!(foreign.strike(), Some(Strike::Malformed), "{foreign}");
    let given = Answerer::new(agreement(10), PEER).on(packed(&[elsewhere]), crate::now_secs()).unwrap_err();
    assert_eq!(given.strike(), Some(Strike::Malformed), "{given}");
    let bomb = compress(&vec![0; 2_000_000]).unwrap();
    let bomb = asking().on(RecordsMessage::Records(bomb.into())).unwrap_err();
    assert_eq!(bomb.strike(), Some(Strike::Malformed), "{bomb}");

    let mut answerer = Answerer::new(agreement(10), PEER);
    let many = vec![PEER.0; limits::SYNC_ITEMS_MAX + 1];
    let many = answerer.on(RecordsMessage::Fetch(many), crate::now_secs()).unwrap_err();
    assert_eq!(many.strike(), Some(Strike::Malformed), "{many}");
}

#[test]
fn a_peer_that_has_lost_what_it_named_is_not_asked_for_it_again_and_again() {
    let mut opener = asking();
    let rest = opener.on(packed(&[record(1, 1)])).unwrap();
    assert!(matches!(rest, Some(RecordsMessage::Fetch(ref owners)) if owners.len() == 2), "{rest:?}");
    assert_eq!(opener.on(packed(&[])).unwrap(), None);
    assert_eq!(opener.agreed(), Agreed { learned: 1, is_rest: false });
}

#[test]
fn who_gives_what_is_older_gets_no_more_for_it_than_who_asks() {
    const OWNERS: u32 = 300;
    let there = agreement(1_000);
    (1..=OWNERS).for_each(|n| keep(&there, record(n, 1)));
    let mut answerer = Answerer::new(there, PEER);
    // Nobody's signature is looked at for that.
    let older = packed(&(1..=OWNERS).map(|n| record(n, 0)).collect::<Vec<_>>());
    let mut handed = 0;
    let end = loop {
        match answerer.on(older.clone(), crate::now_secs()) {
            Ok(RecordsMessage::Records(newer)) => handed += unpack::<NodeRecord>(&newer).unwrap().len(),
            Ok(other) => panic!("{other:?}"),
            Err(end) => break end,
        }
    };
    assert!(matches!(end, AgreementError::TooLong), "{end}");
    assert!(handed > FETCHED_MAX && handed <= 2 * FETCHED_MAX, "{handed} records were handed out");
}

#[test]
fn a_side_whose_clock_is_an_hour_ahead_brings_nothing_in_and_nothing_is_held_against_it() {
    const HOUR_SECS: u64 = 3600;
    let (here, ahead) = (agreement(10), agreement(10));
    keep(&here, record(1, 1));
    let ahead_secs = *NOW_SECS + HOUR_SECS;
    for n in 2..=4 {
        let dated = signed(n, 1, ahead_secs, DAY_SECS).verify().unwrap();
        ahead.records.lock().insert(&dated, NeighbourOrigin::Wallet(PEER.0), ahead_secs).unwrap();
    }
    let (mut opener, mut message) = Opener::begin(here.clone(), PEER, crate::now_secs()).unwrap();
    let mut answerer = Answerer::new(ahead.clone(), PEER);
    while let Some(next) = opener.on(answerer.on(message, ahead_secs).unwrap()).unwrap() {
        message = next;
    }
    assert_eq!(opener.agreed(), Agreed { learned: 0, is_rest: false });
    assert_eq!([1, 2, 3, 4].map(|n| seq(&here, n)), [Some(1), None, None, None]);
    assert_eq!(seq(&ahead, 1), Some(1), "what others date may be used there");
}
