//! The comparison of both books as a pure decision: every difference is named, and nothing else is.

use super::*;
use crate::consumer::channels::tests::usdc;

const ID: CallId = CallId::from_bytes([7; 16]);
const CHANNEL: ChannelId = ChannelId::from_bytes([3; 32]);

fn theirs(outcome: Option<Outcome>, charged: u64) -> CallRecord {
    let charged = usdc(charged);
    CallRecord { call_id: ID, channel: CHANNEL, outcome, price: usdc(5), charged, time_secs: 1 }
}

fn mine(outcome: Outcome, charged: u64) -> Option<Mine> {
    Some(Mine::Receipt { outcome, charged: usdc(charged), channel: CHANNEL })
}

#[test]
fn each_kind_of_difference_has_its_word() {
    let paid = theirs(Some(Outcome::Answered), 5);
    let elsewhere = CallRecord { channel: ChannelId::NONE, ..paid };
    for (here, there, word) in [
        (mine(Outcome::Answered, 5), None, "the owner has no such call"),
        (Some(Mine::NotCharged), Some(paid), "it was free, but the owner charged 0.000005"),
        (None, Some(paid), "neither the call nor an adjustment"),
        (mine(Outcome::Answered, 4), Some(paid), "says 0.000004 USDC, but the owner's ledger 0.000005"),
        (mine(Outcome::Declined, 5), Some(paid), "says Declined, but the owner's ledger Answered"),
        (mine(Outcome::Answered, 0), Some(theirs(None, 0)), "does not say how it ended"),
        (mine(Outcome::Answered, 5), Some(elsewhere), "has the channel"),
    ] {
        let difference = differ(here, there.as_ref()).unwrap_or_else(|| panic!("{here:?} {there:?}"));
        assert!(difference.to_string().contains(word), "{difference}");
    }
}

#[test]
fn what_agrees_or_is_not_decided_yet_is_no_difference() {
    let paid = theirs(Some(Outcome::Answered), 5);
    for (here, there) in [
        (mine(Outcome::Answered, 5), Some(paid)),
        (mine(Outcome::TimedOut, 0), Some(theirs(Some(Outcome::Unreachable), 0))),
        (mine(Outcome::TimedOut, 0), None),
        // What cost nothing an owner need not have kept.
        (mine(Outcome::Answered, 0), None),
        (Some(Mine::NotCharged), None),
        (Some(Mine::NotCharged), Some(theirs(None, 0))),
        (Some(Mine::Undecided), Some(paid)),
        (None, Some(theirs(Some(Outcome::TimedOut), 0))),
        (None, None),
    ] {
        assert_eq!(differ(here, there.as_ref()), None, "{here:?} {there:?}");
    }
}

fn page(ids: &[u8], next: Option<u8>) -> CallsPage {
    let id = |n: u8| CallId::from_bytes([n; 16]);
    let record = |n: &u8| CallRecord { call_id: id(*n), ..theirs(Some(Outcome::Answered), 5) };
    CallsPage {
        records: ids.iter().map(record).collect(),
        next: next.map(id),
        kept_since_secs: 0,
        adjusted: None,
    }
}

#[test]
fn a_page_is_taken_when_it_answers_what_was_asked() {
    let after = Some(CallId::from_bytes([4; 16]));
    for (ids, next) in [(&[5, 7][..], Some(7)), (&[5, 7], Some(9)), (&[], Some(5)), (&[5], None), (&[], None)]
    {
        assert_eq!(check_page(after, &page(ids, next)), Ok(()), "{ids:?} {next:?}");
    }
    for (ids, next, word) in [
        (&[4, 5][..], None, "out of order"),
        (&[7, 5], None, "out of order"),
        (&[5, 5], None, "out of order"),
        (&[5], Some(4), "do not advance"),
        (&[], Some(3), "do not advance"),
        (&[5, 8], Some(7), "beyond its own end"),
    ] {
        let refused = check_page(after, &page(ids, next)).unwrap_err();
        assert!(refused.to_string().contains(word), "{ids:?} {next:?}: {refused}");
    }
    let full = |records: usize| CallsPage {
        records: (0..records)
            .map(|n| CallRecord {
                call_id: CallId::from_bytes((n as u128 + 1).to_be_bytes()),
                ..theirs(None, 0)
            })
            .collect(),
        next: None,
        kept_since_secs: 0,
        adjusted: None,
    };
    assert_eq!(check_page(None, &full(CALLS_PAGE_MAX)), Ok(()));
    let one_more = CALLS_PAGE_MAX + 1;
    assert_eq!(check_page(None, &full(one_more)), Err(BadPage::TooMany(one_more)));
}

#[test]
fn no_owner_has_forgotten_what_is_younger_than_a_week() {
    const NOW: u64 = 100 * 86_400;
    const WEEK: u64 = 7 * 86_400;
    for (promised, kept_since, forgotten) in [
        (NOW - 10, u64::MAX, false),
        (NOW - WEEK + 1, u64::MAX, false),
        (NOW - WEEK, u64::MAX, true),
        (NOW - WEEK - 10, NOW - WEEK - 10, true),
        (NOW - WEEK - 9, NOW - WEEK - 10, false),
        (NOW - WEEK - 10, 0, false),
    ] {
        assert_eq!(may_be_forgotten(promised, kept_since, NOW), forgotten, "{promised} {kept_since}");
    }
}

#[test]
fn of_calls_that_nobody_knows_all_are_counted_and_a_thousand_kept() {
    let mut unknown = OneSidedCalls::default();
    for _ in 0..1_001 {
        unknown.add(ID, usdc(2), Difference::UnknownHere { charged: usdc(2) });
    }
    assert_eq!((unknown.sum, unknown.total, unknown.calls.len()), (usdc(2_002), 1_001, LISTED_MAX));
}

#[test]
fn calls_that_one_side_knows_are_named_unless_adjustments_explain_a_part_of_them() {
    let weigh = |adjustments| {
        let (mut unknown, mut compared) = (OneSidedCalls::default(), BookComparison::default());
        let charged = usdc(5);
        for (n, difference) in [
            (1, Difference::UnknownHere { charged }),
            (2, Difference::UnknownHere { charged }),
            (3, Difference::Charge { here: Usdc::ZERO, there: charged }),
        ] {
            unknown.add(CallId::from_bytes([n; 16]), charged, difference);
        }
        let unknown_here = |charged| Difference::UnknownHere { charged };
        let explained = unknown.weigh(usdc(adjustments), &mut compared, unknown_here);
        assert_eq!(compared.differences_total, compared.differences.len() as u64);
        (explained, compared.differences)
    };
    let (explained, differences) = weigh(0);
    assert_eq!((explained, differences.len()), (Usdc::ZERO, 3), "{differences:?}");
    assert!(differences[2].contains("your receipt says 0.00 USDC"), "{differences:?}");
    let (explained, differences) = weigh(10);
    let [rest] = &differences[..] else { panic!("{differences:?}") };
    assert!(explained == usdc(10) && rest.contains("the owner charged 0.000005 USDC"), "{rest}");
    assert_eq!(weigh(15), (usdc(15), Vec::new()));
    assert_eq!(weigh(99), (usdc(15), Vec::new()));
}
