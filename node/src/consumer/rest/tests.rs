//! Deposits into channels of owners that are numbered, in sums of micros.

use farthing_ledger::PayerChannelRow;

use super::*;
use crate::consumer::channels::tests::{row, terms, usdc};

const fn owner(n: u8) -> Address {
    Address::from_bytes([n; 20])
}

const fn at(n: u8) -> RestingPlace {
    RestingPlace { owner: owner(n), channel: ChannelId::from_bytes([n; 32]) }
}

const fn held(deposited: u64) -> ChannelSum {
    ChannelSum { round: 0, deposited: usdc(deposited) }
}

const LIMITS: RestLimits = RestLimits { per_owner: usdc(50), in_all: usdc(100) };

fn holding(channels: &PayerChannels, n: u8, deposited: u64, claimed: u64) {
    holding_in(channels, n, 0, [deposited, claimed]);
}

/// Has the books show a channel that was emptied so often.
fn holding_in(channels: &PayerChannels, n: u8, round: u32, [deposited, claimed]: [u64; 2]) {
    let row = PayerChannelRow {
        id: ChannelId::from_bytes([n; 32]),
        claimed: usdc(claimed),
        round: Some(round),
        acknowledged: usdc(claimed),
        receipted: usdc(claimed),
        signed: usdc(claimed),
        ..row(terms(Address::ZERO, owner(n)), deposited)
    };
    channels.apply(&row, None);
}

#[test]
fn a_deposit_fits_into_what_is_left_with_its_owner_and_in_all_or_is_refused() {
    let channels = Arc::new(PayerChannels::default());
    holding(&channels, 1, 60, 20);
    let rest = AtRest::new(channels, LIMITS);
    assert_eq!(rest.take(at(1), held(60), usdc(10), usdc(30)), Ok(usdc(10)), "40 lie there, 50 may");
    rest.give_up(at(1), held(60));
    let refused = rest.take(at(1), held(60), usdc(11), usdc(30)).unwrap_err();
    assert!(matches!(refused, OverLimit::RestOfOwner { .. }), "{refused}");
    assert_eq!(rest.take(at(2), held(0), usdc(50), usdc(50)), Ok(usdc(50)));
    let refused = rest.take(at(3), held(0), usdc(11), usdc(50)).unwrap_err();
    assert!(matches!(refused, OverLimit::Rest { .. }), "{refused}");
    assert_eq!(rest.take(at(3), held(0), usdc(10), usdc(50)), Ok(usdc(10)));
    assert_eq!(rest.total(), usdc(100));
}

#[test]
fn a_deposit_counts_once_while_its_confirmation_reaches_the_books() {
    let channels = Arc::new(PayerChannels::default());
    let rest = AtRest::new(channels.clone(), LIMITS);
    rest.take(at(1), held(0), usdc(40), usdc(40)).unwrap();
    assert_eq!(rest.total(), usdc(40), "under way");
    holding(&channels, 1, 40, 0);
    assert_eq!(rest.total(), usdc(40), "in the books and under way");
    rest.give_up(at(1), held(0));
    assert_eq!(rest.total(), usdc(40), "in the books");
    holding(&channels, 1, 40, 30);
    assert_eq!(rest.total(), usdc(10), "what is paid out does not lie there");
}

#[test]
fn a_deposit_that_failed_counts_as_long_as_its_authorization_can_be_used_and_is_not_booked() {
    let channels = Arc::new(PayerChannels::default());
    let rest = AtRest::new(channels.clone(), LIMITS);
    let later = Instant::now() + Duration::from_secs(3_600);
    for n in 1..=2 {
        rest.take(at(n), held(0), usdc(40), usdc(40)).unwrap();
        rest.keep(at(n), held(0), later);
    }
    assert!(rest.take(at(3), held(0), usdc(30), usdc(30)).is_err(), "both may still be made");
    assert_eq!(rest.take(at(1), held(0), usdc(50), usdc(50)), Ok(usdc(50)), "in place of the first");
    rest.keep(at(1), held(0), Instant::now());
    assert_eq!(rest.total(), usdc(40), "it cannot be made any more");
    for deposited in [40, 1_000_000] {
        holding(&channels, 2, deposited, 0);
        assert_eq!(rest.total(), usdc(deposited), "in the books");
        holding(&channels, 2, 0, 0);
        assert_eq!(rest.total(), usdc(40), "an endpoint may have shown it for a moment");
    }
    rest.keep(at(2), held(0), Instant::now());
    assert_eq!(rest.total(), usdc(0), "it cannot be made any more");
    // Closed since, so that the channel is filled under another authorization: the earlier one is still good.
    rest.take(at(5), held(10), usdc(20), usdc(20)).unwrap();
    rest.keep(at(5), held(10), later);
    rest.take(at(5), held(0), usdc(15), usdc(15)).unwrap();
    assert_eq!(rest.total(), usdc(35));
    rest.give_up(at(5), held(0));
    assert_eq!(rest.total(), usdc(20));
    // One that is refused, or smaller, takes nothing of the place of the one before, which may still be made.
    assert!(rest.take(at(5), held(10), usdc(60), usdc(60)).is_err());
    assert_eq!(rest.total(), usdc(20));
    assert_eq!(rest.take(at(5), held(10), usdc(5), usdc(5)), Ok(usdc(5)));
    assert_eq!(rest.total(), usdc(20));
    // One that signs nothing leaves the place of the one before.
    rest.keep(at(5), held(10), later);
    assert_eq!(rest.take(at(5), held(10), usdc(35), usdc(35)), Ok(usdc(35)));
    assert_eq!(rest.total(), usdc(35));
    rest.give_up(at(5), held(10));
    assert_eq!(rest.total(), usdc(20));
    rest.give_up(at(5), held(10));
    assert_eq!(rest.take(at(5), held(10), usdc(35), usdc(35)), Ok(usdc(35)));
    rest.give_up(at(5), held(10));
    assert_eq!(rest.total(), usdc(0));
    rest.restore_under_way(at(4), usdc(0), usdc(70), later);
    assert_eq!(rest.total(), usdc(70), "of before the start");
}

#[test]
fn a_deposit_of_an_earlier_round_counts_beside_those_of_later_ones_as_long_as_it_can_be_made() {
    let channels = Arc::new(PayerChannels::default());
    let rest = AtRest::new(channels.clone(), LIMITS);
    let later = Instant::now() + Duration::from_secs(3_600);
    for round in 0..2 {
        let held = ChannelSum { round, deposited: usdc(0) };
        assert_eq!(rest.take(at(1), held, usdc(20), usdc(20)), Ok(usdc(20)));
        rest.keep(at(1), held, later);
    }
    assert_eq!(rest.total(), usdc(40), "each has an authorization of its own");
    let third = ChannelSum { round: 2, deposited: usdc(0) };
    assert!(rest.take(at(1), third, usdc(20), usdc(20)).is_err());
    holding(&channels, 1, 20, 0);
    assert_eq!(rest.total(), usdc(40), "one is in the books, and the other may still be made");
    rest.keep(at(1), held(0), Instant::now());
    assert_eq!(rest.total(), usdc(20));
    // Of a round that an endpoint invented.
    let invented = ChannelSum { round: 9, deposited: usdc(0) };
    assert_eq!(rest.take(at(2), invented, usdc(20), usdc(20)), Ok(usdc(20)));
    rest.keep(at(2), invented, later);
    assert_eq!(rest.take(at(2), held(0), usdc(20), usdc(20)), Ok(usdc(20)));
    holding(&channels, 2, 20, 0);
    assert_eq!(
        rest.total(),
        usdc(60),
        "20 with the first, 20 with the second, and 20 that may still be made"
    );
}

#[test]
fn what_was_put_into_a_channel_counts_for_a_day_whatever_the_chain_says_of_it() {
    let channels = Arc::new(PayerChannels::default());
    let rest = AtRest::new(channels.clone(), LIMITS);
    let later = Instant::now() + COUNTED_FOR;
    let put = |round, deposited| {
        let held = ChannelSum { round, deposited: usdc(deposited) };
        let room = rest.take(at(1), held, usdc(20), usdc(20));
        rest.keep(at(1), held, later);
        room
    };
    // Emptied by its payer, shown for as long as one likes, paid out to its owner: each is the chain's word alone.
    assert_eq!(put(0, 0), Ok(usdc(20)));
    for (deposited, claimed) in [(0, 0), (20, 0), (0, 0), (20, 20)] {
        holding(&channels, 1, deposited, claimed);
        assert_eq!(rest.total(), usdc(20), "{deposited} deposited, {claimed} claimed");
    }
    assert_eq!(put(1, 20), Ok(usdc(20)));
    let refused = put(2, 20).unwrap_err();
    assert!(matches!(refused, OverLimit::RestOfOwner { .. }), "{refused}");
    for deposited in [0, 40] {
        holding(&channels, 1, deposited, 0);
        assert_eq!(rest.total(), usdc(40), "the truth adds nothing: {deposited}");
    }
    assert_eq!(rest.up_to(at(1), 0), [held(0)]);
    rest.settle(at(1), held(0));
    holding(&channels, 1, 0, 0);
    assert_eq!(rest.total(), usdc(20), "the one that is back");
    rest.keep(at(1), ChannelSum { round: 1, deposited: usdc(20) }, Instant::now());
    assert_eq!(rest.total(), usdc(0), "after its day");

    // What receipts show to be paid out lies there no more, in the books or not.
    assert_eq!(rest.take(at(2), held(0), usdc(20), usdc(20)), Ok(usdc(20)));
    rest.keep(at(2), held(0), later);
    for (deposited, lies_there) in [(20, 5), (15, 5)] {
        holding(&channels, 2, deposited, 15);
        assert_eq!(rest.total(), usdc(lies_there), "{deposited} deposited");
    }
}

#[test]
fn what_an_owner_was_paid_before_a_deposit_makes_no_room_after_it() {
    let channels = Arc::new(PayerChannels::default());
    let rest = AtRest::new(channels.clone(), LIMITS);
    holding(&channels, 1, 1_000, 1_000);
    // An endpoint leaves out the past while the deposit is decided on, and tells of it afterwards.
    holding(&channels, 1, 0, 0);
    assert_eq!(rest.take(at(1), held(0), usdc(50), usdc(50)), Ok(usdc(50)));
    rest.keep(at(1), held(0), Instant::now() + COUNTED_FOR);
    holding(&channels, 1, 1_000, 1_000);
    assert_eq!(rest.total(), usdc(50));

    // What the owner has earned and not claimed yet lies there, until it is claimed after the deposit.
    holding(&channels, 2, 40, 30);
    holding(&channels, 2, 40, 10);
    assert_eq!(rest.take(at(2), held(40), usdc(20), usdc(20)), Ok(usdc(20)));
    assert_eq!(rest.total(), usdc(50 + 50), "under way");
    for (claimed, lies_there) in [(10, 50), (30, 30)] {
        holding(&channels, 2, 60, claimed);
        assert_eq!(rest.total(), usdc(50 + lies_there), "{claimed} claimed");
    }
}

/// Deposits 20 into a channel in this round of it, and has the token take them.
fn make(rest: &AtRest, n: u8, round: u32, deposited: u64) -> Result<Usdc, OverLimit> {
    let held = ChannelSum { round, deposited: usdc(deposited) };
    let room = rest.take(at(n), held, usdc(20), usdc(20));
    rest.made(at(n), held);
    rest.keep(at(n), held, Instant::now() + COUNTED_FOR);
    room
}

#[test]
fn what_came_back_counts_wholly_with_its_owner_and_for_a_quarter_in_all() {
    let channels = Arc::new(PayerChannels::default());
    let rest = AtRest::new(channels.clone(), LIMITS);
    // Owners that close each channel at once.
    for n in 1..=4 {
        for round in 0..2 {
            assert_eq!(make(&rest, n, round, 0), Ok(usdc(20)), "{n}, {round}");
            holding_in(&channels, n, round, [20, 0]);
            holding_in(&channels, n, round + 1, [0, 0]);
        }
        let refused = make(&rest, n, 2, 0).unwrap_err();
        let OverLimit::RestOfOwner { resting, .. } = refused else { panic!("{refused}") };
        assert_eq!((resting.total(), resting.returned), (usdc(40), usdc(40)), "{n}");
    }
    let all = rest.in_all();
    assert_eq!((all.total(), all.returned), (usdc(4 * 10), usdc(4 * 10)));
    assert_eq!((all.hours(), rest.returned().len()), (24, 8));
    // Another owner is paid on, wholly counted.
    assert_eq!(make(&rest, 5, 0, 0), Ok(usdc(20)));
    assert_eq!(rest.total(), usdc(40 + 20), "not in the books yet");
    holding(&channels, 5, 20, 0);
    assert_eq!(rest.total(), usdc(40 + 20));
    let of_fifth = rest.with_owners()[&owner(5)];
    assert_eq!((of_fifth.shown, of_fifth.total()), (usdc(20), usdc(20)));
}

#[test]
fn what_lies_there_by_the_books_and_what_is_on_its_way_never_counts_for_a_part() {
    let channels = Arc::new(PayerChannels::default());
    let limits = RestLimits { per_owner: usdc(1_000), in_all: usdc(1_000) };
    let rest = AtRest::new(channels.clone(), limits);
    let counted = || {
        let RestSum { shown, coming, returned, .. } = rest.with_owners()[&owner(1)];
        [shown, coming, returned].map(Usdc::micros)
    };
    make(&rest, 1, 0, 0).unwrap();
    holding_in(&channels, 1, 1, [0, 0]);
    assert_eq!(counted(), [0, 0, 20]);
    // Filled again: under way, made, and in the books.
    let second = ChannelSum { round: 1, deposited: usdc(0) };
    rest.take(at(1), second, usdc(20), usdc(20)).unwrap();
    assert_eq!(counted(), [0, 20, 20]);
    rest.made(at(1), second);
    rest.keep(at(1), second, Instant::now() + COUNTED_FOR);
    assert_eq!(counted(), [0, 20, 20]);
    holding_in(&channels, 1, 1, [20, 0]);
    assert_eq!((counted(), rest.total()), ([20, 0, 20], usdc(20 + 5)));
    // More is put onto it.
    let third = ChannelSum { round: 1, deposited: usdc(20) };
    rest.take(at(1), third, usdc(8), usdc(8)).unwrap();
    assert_eq!((counted(), rest.total()), ([20, 8, 20], usdc(28 + 5)));
    // The first of this round has lapsed, and lies there still.
    rest.keep(at(1), second, Instant::now());
    assert_eq!(rest.total(), usdc(28), "what came back is masked by what lies there, and not the reverse");
    // The books show in a later round as much as in the earlier one: that the first came back was a lie, or not.
    rest.give_up(at(1), third);
    holding_in(&channels, 1, 2, [500, 0]);
    assert_eq!((counted(), rest.total()), ([500, 0, 0], usdc(500)));
    // An earlier round is shown again.
    holding_in(&channels, 1, 0, [0, 0]);
    assert_eq!((counted(), rest.total()), ([0, 20, 0], usdc(20)), "nothing came back");
}

#[test]
fn what_may_still_be_made_counts_wholly_in_whatever_round_the_books_show_the_channel() {
    let channels = Arc::new(PayerChannels::default());
    let rest = AtRest::new(channels.clone(), LIMITS);
    assert_eq!(rest.take(at(1), held(0), usdc(20), usdc(20)), Ok(usdc(20)));
    rest.keep(at(1), held(0), Instant::now() + COUNTED_FOR);
    holding_in(&channels, 1, 3, [0, 0]);
    assert_eq!((rest.total(), rest.returned()), (usdc(20), Vec::new()), "its authorization can be brought");
    // Over a restart too, and what was made stays made.
    make(&rest, 1, 1, 0).unwrap();
    let after = AtRest::new(channels, LIMITS);
    rest.placed(at(1), 1_000).iter().for_each(|deposit| after.restore(at(1), deposit, 1_000));
    for rest in [rest, after] {
        assert_eq!((rest.total(), rest.returned().len()), (usdc(20 + 5), 1));
    }
}

#[test]
fn what_an_owner_was_paid_of_a_deposit_did_not_come_back() {
    let channels = Arc::new(PayerChannels::default());
    let rest = AtRest::new(channels.clone(), LIMITS);
    make(&rest, 1, 0, 0).unwrap();
    // Its owner earned 4, and closed.
    holding_in(&channels, 1, 1, [4, 4]);
    assert_eq!((rest.with_owners()[&owner(1)].returned, rest.total()), (usdc(16), usdc(4)));
    make(&rest, 1, 1, 4).unwrap();
    holding_in(&channels, 1, 1, [24, 4]);
    assert_eq!(rest.total(), usdc(20 + 4));
}

#[test]
fn a_restart_frees_no_place_and_prolongs_none() {
    const NOW: u64 = 1_795_000_000;
    let rest = AtRest::new(Arc::default(), LIMITS);
    for round in 0..2 {
        let held = ChannelSum { round, deposited: usdc(0) };
        rest.take(at(1), held, usdc(20), usdc(20)).unwrap();
    }
    rest.keep(at(1), held(0), Instant::now() + COUNTED_FOR / 2);
    let stored = rest.placed(at(1), NOW);
    let half_secs = COUNTED_FOR.as_secs() / 2;
    for (now_secs, counted) in [
        (NOW, 40),
        (NOW + half_secs, 20),
        (NOW + COUNTED_FOR.as_secs(), 0),
        // The clock was far ahead before.
        (1, 40),
    ] {
        let after = AtRest::new(Arc::default(), LIMITS);
        stored.iter().for_each(|deposit| after.restore(at(1), deposit, now_secs));
        assert_eq!(after.total(), usdc(counted), "{now_secs}");
        let longest_secs = after.placed(at(1), 0).iter().map(|deposit| deposit.lapses_secs).max();
        assert!(longest_secs <= Some(COUNTED_FOR.as_secs()), "{now_secs}: {longest_secs:?}");
    }
    // A transaction that was under way is one of them.
    let after = AtRest::new(Arc::default(), LIMITS);
    stored.iter().for_each(|deposit| after.restore(at(1), deposit, NOW));
    after.restore_under_way(at(1), usdc(0), usdc(20), Instant::now() + COUNTED_FOR);
    assert_eq!(after.total(), usdc(40));
    after.restore_under_way(at(1), usdc(5), usdc(10), Instant::now() + COUNTED_FOR);
    assert_eq!(after.total(), usdc(45), "of a program of before");
}

#[test]
fn deposits_to_many_owners_at_once_never_pass_the_limit_together() {
    let rest = Arc::new(AtRest::new(Arc::default(), LIMITS));
    let takers = (1..=16_u8).map(|n| {
        let rest = rest.clone();
        std::thread::spawn(move || rest.take(at(n), held(0), usdc(9), usdc(9)).is_ok())
    });
    let takers: Vec<_> = takers.collect();
    let taken = takers.into_iter().map(|taker| taker.join().unwrap());
    assert_eq!(taken.filter(|taken| *taken).count(), 11, "eleven times 9 fit into 100");
    assert_eq!(rest.total(), usdc(99));
}
