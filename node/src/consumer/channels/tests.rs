//! One channel with one owner, in sums of micros.

use farthing_protocol::Escrow;

use super::*;

const OWNER: Address = Address::from_bytes([2; 20]);

pub(crate) const fn usdc(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}

pub(crate) const fn terms(payer: Address, payee: Address) -> ChannelConfig {
    let token = Address::ZERO;
    ChannelConfig { payer, payee, token, signer: payer, close_delay_secs: 86_400, salt: [0; 32] }
}

fn funded(micros: u64) -> PayerChannels {
    let channels = PayerChannels::default();
    channels.apply(&row(terms(Address::from_bytes([1; 20]), OWNER), micros), None);
    channels
}

/// A channel on which nothing was charged, nor paid out.
pub(crate) fn row(config: ChannelConfig, micros: u64) -> PayerChannelRow {
    PayerChannelRow {
        id: ChannelId::NONE,
        config,
        deposited: usdc(micros),
        claimed: usdc(0),
        round: None,
        stopped: false,
        acknowledged: usdc(0),
        receipted: Usdc::ZERO,
        signed: usdc(0),
        in_flight: usdc(0),
        used_secs: None,
        is_promised_on: true,
        may_lack_calls: true,
    }
}

#[test]
fn what_the_chain_paid_to_an_owner_beyond_all_calls_is_unexplained() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    let paid = |micros| PayerChannelRow { claimed: usdc(micros), ..row(config, 100) };
    channels.apply(&paid(7), None);
    assert!(!channels.is_overclaimed(ChannelId::NONE, usdc(7)), "it may have forgotten calls");
    assert_eq!(channels.unexplained(OWNER), usdc(7));
    let channels = funded(100);
    let call = channels.reserve(OWNER, usdc(10), 0).unwrap();
    channels.apply(&paid(10), None);
    assert_eq!(channels.unexplained(OWNER), usdc(0), "the call in progress explains it");
    channels.release(&call);
    assert_eq!(channels.unexplained(OWNER), usdc(10), "it was not charged");
    assert!(channels.is_overclaimed(ChannelId::NONE, usdc(10)));
}

fn receipt(charged: u64, spent_total: u64) -> Receipt {
    Receipt {
        channel: ChannelId::NONE,
        call_id: CallId::from_bytes([0; 16]),
        request_hash: [0; 32],
        response_hash: [0; 32],
        outcome: 0,
        charged: usdc(charged),
        spent_total: usdc(spent_total),
        time_secs: 0,
    }
}

#[test]
fn concurrent_calls_never_promise_the_same_money_twice() {
    let channels = funded(25);
    let first = channels.reserve(OWNER, usdc(10), 0).unwrap();
    let second = channels.reserve(OWNER, usdc(10), 0).unwrap();
    assert_eq!((first.cumulative, second.cumulative), (usdc(10), usdc(20)));
    assert_eq!(channels.reserve(OWNER, usdc(10), 0), Err(Shortage::Low { available: usdc(5) }));
    channels.acknowledge(&second, &receipt(10, 10)).unwrap();
    channels.release(&first);
    assert_eq!(channels.reserve(OWNER, usdc(10), 0).unwrap().cumulative, usdc(20));
}

#[test]
fn an_owner_that_overcharges_gets_no_further_promise() {
    let channels = funded(100);
    let reservation = channels.reserve(OWNER, usdc(10), 0).unwrap();
    assert!(channels.acknowledge(&reservation, &receipt(11, 11)).is_err());
    assert_eq!(channels.reserve(OWNER, usdc(10), 0), Err(Shortage::Distrusted));
}

#[test]
fn a_total_that_nothing_explains_is_seen_until_a_late_receipt_explains_it() {
    let channels = funded(100);
    let [first, second] = [(); 2].map(|()| channels.reserve(OWNER, usdc(10), 0).unwrap());
    channels.release(&first);
    channels.acknowledge(&second, &receipt(10, 20)).unwrap();
    assert_eq!(channels.unexplained(OWNER), usdc(10));
    channels.acknowledge_late(&receipt(10, 20));
    assert_eq!(channels.unexplained(OWNER), Usdc::ZERO);
    assert_eq!(channels.in_use(OWNER).unwrap().state.acknowledged, usdc(20));
    assert_eq!(channels.reserve(OWNER, usdc(10), 0).unwrap().cumulative, usdc(30));
}

#[test]
fn a_total_may_include_calls_whose_receipts_are_still_under_way() {
    let channels = funded(100);
    let first = channels.reserve(OWNER, usdc(10), 0).unwrap();
    let second = channels.reserve(OWNER, usdc(10), 0).unwrap();
    channels.acknowledge(&first, &receipt(10, 20)).unwrap();
    channels.acknowledge(&second, &receipt(10, 20)).unwrap();
    assert_eq!(channels.in_use(OWNER).unwrap().state.acknowledged, usdc(20));
}

#[test]
fn forgotten_promises_stay_covered_until_the_owners_total_shows_their_charge() {
    let channels = funded(100);
    channels.remember(ChannelId::NONE, usdc(20), Cause::Crash);
    let known = channels.reserve(OWNER, usdc(10), 0).unwrap();
    assert_eq!(known.cumulative, usdc(30), "whatever the owner charges for forgotten calls is covered");
    // One forgotten call may explain the total as well as the known one does.
    assert_eq!(channels.explain(ChannelId::NONE, usdc(10)), None);
    channels.acknowledge(&known, &receipt(10, 20)).unwrap();
    let explained = |charged| Some(ForgottenCharge { charged: usdc(charged), cause: Cause::Crash });
    assert_eq!(channels.explain(ChannelId::NONE, usdc(20)), explained(10));
    assert_eq!(channels.explain(ChannelId::NONE, usdc(20)), None, "a charge is counted once");
    channels.forgive(ChannelId::NONE);
    let state = channels.in_use(OWNER).unwrap().state;
    assert_eq!((state.acknowledged, state.in_flight), (usdc(20), usdc(0)));
}

#[test]
fn a_forgotten_call_that_is_asked_for_again_is_counted_once() {
    for other_call_runs in [false, true] {
        let channels = funded(100);
        channels.remember(ChannelId::NONE, usdc(10), Cause::Crash);
        let other = other_call_runs.then(|| channels.reserve(OWNER, usdc(10), 0).unwrap());
        // The owner tells its total, which contains the forgotten call.
        let _ = channels.explain(ChannelId::NONE, usdc(10));
        let again = channels.reserve(OWNER, usdc(10), 0).unwrap();
        let first_receipt = receipt(10, 10);
        assert!(again.repeats_forgotten(&first_receipt));
        channels.release(&again);
        if let Some(other) = other {
            assert!(!other.repeats_forgotten(&receipt(10, 20)));
            channels.acknowledge(&other, &receipt(10, 20)).unwrap();
            let _ = channels.explain(ChannelId::NONE, usdc(20));
        }
        let state = channels.in_use(OWNER).unwrap().state;
        let charged = if other_call_runs { 20 } else { 10 };
        assert_eq!((state.acknowledged, state.in_flight), (usdc(charged), usdc(0)));
    }
}

#[test]
fn a_forgotten_call_that_is_found_before_it_was_booked_is_counted_once() {
    let channels = funded(100);
    channels.remember(ChannelId::NONE, usdc(10), Cause::Crash);
    let other = channels.reserve(OWNER, usdc(10), 0).unwrap();
    // The other call may owe the total as well, so nothing is booked yet.
    assert_eq!(channels.explain(ChannelId::NONE, usdc(10)), None);
    channels.acknowledge_found(&receipt(10, 10), Usdc::ZERO);
    channels.acknowledge(&other, &receipt(10, 20)).unwrap();
    assert_eq!(channels.explain(ChannelId::NONE, usdc(20)), None);
    let state = channels.in_use(OWNER).unwrap().state;
    assert_eq!((state.acknowledged, state.in_flight), (usdc(20), usdc(0)));
    assert_eq!(channels.unexplained(OWNER), Usdc::ZERO);
}

#[test]
fn a_forgotten_charge_shows_when_the_open_call_that_hid_it_ends_free() {
    let channels = funded(100);
    // Two calls of before cost nothing, and a third one, which this node forgot, was charged.
    let open = [(); 2].map(|()| channels.reserve(OWNER, usdc(5), 0).unwrap());
    channels.remember(ChannelId::NONE, usdc(7), Cause::Crash);
    assert_eq!(channels.explain(ChannelId::NONE, usdc(7)), None, "the open ones may owe it");
    open.iter().for_each(|reservation| channels.release(reservation));
    assert_eq!(channels.unexplained(OWNER), usdc(7));
    assert_eq!(channels.explain(ChannelId::NONE, usdc(7)).map(|found| found.charged), Some(usdc(7)));
    assert_eq!((channels.unexplained(OWNER), channels.explain(ChannelId::NONE, usdc(90))), (usdc(0), None));
}

#[test]
fn a_found_call_counts_as_far_as_it_was_not_booked_before() {
    let channels = funded(100);
    channels.remember(ChannelId::NONE, usdc(10), Cause::Crash);
    let other = channels.reserve(OWNER, usdc(4), 0).unwrap();
    assert_eq!(channels.explain(ChannelId::NONE, usdc(10)).map(|found| found.charged), Some(usdc(6)));
    channels.acknowledge_found(&receipt(10, 10), usdc(6));
    channels.release(&other);
    let state = channels.in_use(OWNER).unwrap().state;
    assert_eq!((state.acknowledged, state.in_flight), (usdc(10), usdc(0)));
}

#[test]
fn a_total_that_was_paid_out_is_a_total_that_was_seen() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    channels.apply(&PayerChannelRow { claimed: usdc(10), ..row(config, 100) }, None);
    assert!(channels.reserve(OWNER, usdc(10), 0).unwrap().repeats_forgotten(&receipt(10, 10)));
}

#[test]
fn an_owner_cannot_explain_more_than_was_signed() {
    let channels = funded(100);
    channels.remember(ChannelId::NONE, usdc(20), Cause::Crash);
    assert_eq!(channels.explain(ChannelId::NONE, usdc(90)).map(|found| found.charged), Some(usdc(20)));
    assert_eq!(channels.in_use(OWNER).unwrap().state.acknowledged, usdc(20));
}

fn receipt_of(call: u8, charged: u64, spent_total: u64) -> Receipt {
    Receipt { call_id: CallId::from_bytes([call; 16]), ..receipt(charged, spent_total) }
}

/// As after a crash with ten calls of 2 under way, of which the ledger has all.
fn with_ten_calls_under_way() -> (PayerChannels, Vec<Reservation>) {
    let channels = funded(100);
    let first = channels.reserve(OWNER, usdc(2), 0).unwrap();
    channels.acknowledge(&first, &receipt(2, 2)).unwrap();
    let mut open = Vec::new();
    for call in 1..=10 {
        let reservation = channels.reserve(OWNER, usdc(2), 0).unwrap();
        channels.release(&reservation);
        channels.restore_in_flight(CallId::from_bytes([call; 16]), &reservation);
        open.push(reservation);
    }
    channels.remember(ChannelId::NONE, usdc(22), Cause::Crash);
    (channels, open)
}

#[test]
fn an_owner_is_owed_no_more_than_was_signed_whatever_it_counts() {
    let acknowledged = |channels: &PayerChannels| channels.in_use(OWNER).unwrap().state.acknowledged;
    // Known calls account for all that was signed, so nothing was forgotten.
    let (channels, open) = with_ten_calls_under_way();
    assert_eq!(channels.explain(ChannelId::NONE, usdc(42)), None);
    open.iter().for_each(|call| channels.acknowledge(call, &receipt(2, 42)).unwrap());
    assert_eq!((acknowledged(&channels), channels.unexplained(OWNER)), (usdc(22), usdc(20)));
    assert_eq!(channels.explain(ChannelId::NONE, usdc(42)), None);

    // Nor is anything left for forgotten ones when they have their receipts, whatever is signed later.
    let (channels, open) = with_ten_calls_under_way();
    for (call, reservation) in (1..).zip(&open) {
        channels.acknowledge(reservation, &receipt_of(call, 2, 2 + 2 * u64::from(call))).unwrap();
    }
    for refused in [10, 10].map(|price| channels.reserve(OWNER, usdc(price), 0).unwrap()) {
        channels.release(&refused);
    }
    assert_eq!(channels.explain(ChannelId::NONE, usdc(42)), None);
    assert_eq!((acknowledged(&channels), channels.unexplained(OWNER)), (usdc(22), usdc(20)));

    // Nor when all of it was settled and nothing is open.
    let (channels, open) = with_ten_calls_under_way();
    channels.settle(ChannelId::NONE);
    open.iter().skip(1).for_each(|call| channels.release(call));
    let hidden = channels.in_use(OWNER).unwrap().forgettable;
    assert_eq!(hidden, usdc(20), "the open one may hide a charge of another");
    channels.release(&open[0]);
    assert_eq!(channels.explain(ChannelId::NONE, usdc(22)), None);

    // Unless the owner told before that it counts what they hid.
    let (channels, open) = with_ten_calls_under_way();
    assert_eq!(channels.explain(ChannelId::NONE, usdc(6)), None);
    channels.settle(ChannelId::NONE);
    open.iter().for_each(|call| channels.release(call));
    assert_eq!(channels.explain(ChannelId::NONE, usdc(6)).map(|found| found.charged), Some(usdc(4)));
    assert_eq!(channels.explain(ChannelId::NONE, usdc(22)), None);

    // It denies the calls, counts them as forgotten, and brings their receipts after all.
    let (channels, open) = with_ten_calls_under_way();
    open.iter().for_each(|call| channels.release(call));
    assert_eq!(channels.explain(ChannelId::NONE, usdc(42)).map(|found| found.charged), Some(usdc(20)));
    assert!(!channels.has_room_for_late(&receipt(2, 24)), "its charge is booked");
    assert_eq!((acknowledged(&channels), channels.unexplained(OWNER)), (usdc(22), usdc(20)));

    // An honest one was late with three of them.
    let (channels, open) = with_ten_calls_under_way();
    open.iter().for_each(|call| channels.release(call));
    for n in 1..=3 {
        assert!(channels.has_room_for_late(&receipt(2, 2 + 2 * n)));
        channels.acknowledge_late(&receipt(2, 2 + 2 * n));
    }
    assert_eq!((acknowledged(&channels), channels.unexplained(OWNER)), (usdc(8), usdc(0)));
}

#[test]
fn a_second_channel_takes_over_when_the_first_is_empty() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    let second = PayerChannelRow { id: ChannelId::from_bytes([9; 32]), ..row(config, 50) };
    channels.apply(&second, None);
    assert_eq!(channels.in_use(OWNER).unwrap().id, ChannelId::NONE, "the first still has a deposit");
    channels.apply(&row(config, 0), None);
    channels.apply(&second, None);
    assert_eq!(channels.in_use(OWNER).unwrap().id, second.id);
    channels.apply(&row(config, 0), None);
    assert_eq!(channels.in_use(OWNER).unwrap().id, second.id, "an empty one changes nothing");
}

fn second(config: ChannelConfig, micros: u64, close_delay_secs: u64) -> PayerChannelRow {
    let config = ChannelConfig { close_delay_secs, ..config };
    PayerChannelRow { id: ChannelId::from_bytes([9; 32]), ..row(config, micros) }
}

#[test]
fn of_two_channels_with_deposits_the_one_that_the_owner_serves_is_used_and_both_are_shown() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    channels.apply(&second(config, 50, 2 * 86_400), None);
    assert_eq!(channels.in_use(OWNER).unwrap().id, ChannelId::from_bytes([9; 32]), "the longer delay");
    channels.apply(&row(config, 120), None);
    assert_eq!(
        channels.in_use(OWNER).unwrap().id,
        ChannelId::from_bytes([9; 32]),
        "after it was shown again"
    );
    let mut shown: Vec<_> = channels.all().into_iter().map(|channel| channel.state.deposited).collect();
    shown.sort_unstable();
    assert_eq!(shown, [usdc(50), usdc(120)]);
    channels.apply(&row(config, 0), None);
    assert_eq!(channels.all().len(), 1, "an empty one that is not used is not shown");
}

#[test]
fn no_call_is_promised_on_a_channel_of_another_chain_contract_or_token() {
    let [contract, token, other] = [3, 4, 5].map(|n| Address::from_bytes([n; 20]));
    let settings = Escrow { chain_id: 1, contract, token };
    let terms = funded(1).in_use(OWNER).unwrap().config;
    let channel_in = |escrow: Escrow, close_delay_secs: u64| {
        let config = ChannelConfig { token: escrow.token, close_delay_secs, ..terms };
        PayerChannelRow { id: config.id(&escrow.domain()), ..row(config, 100) }
    };
    let [short, long] = [1, 2].map(|delay_secs| channel_in(settings, delay_secs));
    for former in [
        Escrow { chain_id: 2, ..settings },
        Escrow { contract: other, ..settings },
        Escrow { token: other, ..settings },
    ] {
        // Its delay speaks for it.
        let elsewhere = channel_in(former, 3);
        let channels = PayerChannels::default();
        channels.restore(&elsewhere, true);
        assert!(channels.in_use(OWNER).is_none(), "{former:?}");
        assert_eq!(channels.reserve(OWNER, usdc(1), 0), Err(Shortage::NotOpen), "{former:?}");
        let is_signed_elsewhere = |id| channels.is_signed_elsewhere(id, &settings.domain());
        assert_eq!(is_signed_elsewhere(elsewhere.id), former.token == token, "no signature names a token");
        channels.restore(&short, false);
        channels.apply(&elsewhere, None);
        channels.restore(&long, false);
        assert_eq!(channels.in_use(OWNER).unwrap().id, long.id, "{former:?}");
        assert_eq!(channels.reserve(OWNER, usdc(1), 0).unwrap().channel, long.id, "{former:?}");
        assert!(![short.id, ChannelId::NONE].into_iter().any(is_signed_elsewhere), "{former:?}");
        assert_eq!(channels.all().len(), 3, "its money is told all the same");
        channels.stop(elsewhere.id);
        assert_eq!(channels.reserve(OWNER, usdc(1), 0), Err(Shortage::Distrusted), "it is the same owner");
    }
}

#[test]
fn an_emptied_channel_with_a_call_in_progress_makes_way_for_another_one() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    let _call = channels.reserve(OWNER, usdc(10), 0).unwrap();
    channels.apply(&PayerChannelRow { claimed: usdc(100), ..row(config, 100) }, None);
    // Of a shorter delay, so that nothing but the deposit speaks for it.
    channels.apply(&second(config, 50, 43_200), None);
    assert_eq!(channels.reserve(OWNER, usdc(10), 0).unwrap().channel, ChannelId::from_bytes([9; 32]));
    assert_eq!(channels.all().len(), 2, "the call may still be charged on the first");
}

#[test]
fn what_ends_on_one_channel_changes_nothing_on_the_other() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    let [first, released] = [10, 5].map(|price| channels.reserve(OWNER, usdc(price), 0).unwrap());
    channels.remember(ChannelId::NONE, usdc(20), Cause::Crash);
    let other = second(config, 50, 2 * 86_400);
    channels.apply(&other, None);
    channels.acknowledge(&first, &receipt(10, 10)).unwrap();
    channels.release(&released);
    channels.restore_in_flight(CallId::from_bytes([1; 16]), &released);
    channels.hear(ChannelId::NONE, usdc(12));
    assert_eq!(channels.explain(ChannelId::NONE, usdc(18)).map(|found| found.charged), Some(usdc(3)));
    channels.forgive(ChannelId::NONE);
    channels.acknowledge_late(&receipt(1, 19));
    let untouched = channels.get(other.id).unwrap();
    assert_eq!((untouched.state, untouched.seen_total), (PayerState { ..other.state() }, Usdc::ZERO));
    let next = channels.reserve(OWNER, usdc(7), 0).unwrap();
    assert_eq!((next.channel, next.cumulative), (other.id, usdc(7)), "nothing of the first is signed for");
}

#[test]
fn the_channel_that_is_named_is_stopped_also_when_another_is_in_use() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    let other = second(config, 50, 2 * 86_400);
    channels.apply(&other, None);
    let in_use = channels.in_use(OWNER).unwrap().id;
    let idle = if in_use == other.id { ChannelId::NONE } else { other.id };
    channels.stop(idle);
    let is_stopped = |id| channels.get(id).unwrap().state.stopped;
    assert!(is_stopped(idle) && !is_stopped(in_use));
}

#[test]
fn an_owner_is_distrusted_on_every_channel_until_the_stopped_one_is_resumed() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    channels.stop(ChannelId::NONE);
    channels.apply(&PayerChannelRow { claimed: usdc(100), stopped: true, ..row(config, 100) }, None);
    channels.apply(&second(config, 50, 2 * 86_400), None);
    assert_eq!(channels.reserve(OWNER, usdc(1), 0), Err(Shortage::Distrusted));
    assert_eq!(channels.all().len(), 2, "the stopped one can be found and resumed");
    channels.resume(ChannelId::NONE);
    assert!(channels.reserve(OWNER, usdc(1), 0).is_ok());
}

#[test]
fn nothing_is_promised_while_a_close_is_pending() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    channels.apply(&row(config, 100), Some(1));
    assert_eq!(channels.reserve(OWNER, usdc(10), 0), Err(Shortage::Closing));
}

#[test]
fn a_channel_is_as_long_unused_after_a_restart_as_it_was_before() {
    let (now_secs, owner) = (farthing_os::clock::now_secs(), Address::from_bytes([2; 20]));
    let restarted = |used_secs: Option<u64>| {
        let channels = PayerChannels::default();
        let config = funded(1).all()[0].config;
        channels.apply(
            &PayerChannelRow { used_secs, ..row(ChannelConfig { payee: owner, ..config }, 100) },
            None,
        );
        channels.in_use(owner).unwrap().last_used_secs
    };
    assert_eq!(restarted(Some(now_secs - 86_400)), now_secs - 86_400);
    assert!(restarted(None) >= now_secs, "a ledger of before does not tell");
    let ahead = restarted(Some(now_secs + 86_400));
    assert!((now_secs..now_secs + 86_400).contains(&ahead), "a clock was ahead");
}

#[test]
fn an_owner_is_held_to_what_its_receipts_and_the_calls_here_both_count() {
    let channels = funded(100);
    assert_eq!(channels.receipted(ChannelId::NONE), None);
    let [lost, answered] = [(); 2].map(|()| channels.reserve(OWNER, usdc(10), 0).unwrap());
    // It counts the call whose answer was lost.
    channels.acknowledge(&answered, &receipt(10, 20)).unwrap();
    channels.note_receipt(&receipt(10, 20));
    assert_eq!(channels.receipted(ChannelId::NONE), Some(usdc(10)));
    assert_eq!(channels.receipted(ChannelId::from_bytes([1; 32])), None);

    // The owner lost its books, takes over what it is shown, and has no such call.
    channels.release(&lost);
    assert_eq!(channels.unexplained(OWNER), usdc(10));
    channels.hear(ChannelId::NONE, usdc(10));
    assert_eq!(channels.unexplained(OWNER), usdc(0));
    let again = channels.reserve(OWNER, usdc(10), 0).unwrap();
    assert!(!again.repeats_forgotten(&receipt(10, 20)), "it is charged for the first time");
    channels.acknowledge(&again, &receipt(10, 20)).unwrap();
    assert_eq!((channels.unexplained(OWNER), channels.receipted(ChannelId::NONE)), (usdc(0), Some(usdc(20))));
    channels.hear(ChannelId::NONE, usdc(3));
    assert_eq!(channels.in_use(OWNER).unwrap().seen_total, usdc(20), "never below what is acknowledged");
}

#[tokio::test]
async fn whoever_waits_for_a_deposit_goes_on_when_the_books_have_it() {
    let channels = funded(100);
    let config = channels.in_use(OWNER).unwrap().config;
    let is_more = |channel: &PayerChannel| channel.state.deposited > usdc(100);
    let mut waiting = std::pin::pin!(channels.until(ChannelId::NONE, is_more));
    assert!(futures::poll!(waiting.as_mut()).is_pending());
    channels.apply(&row(config, 100), None);
    assert!(futures::poll!(waiting.as_mut()).is_pending(), "a change without a deposit");
    channels.apply(&row(config, 101), None);
    assert!(futures::poll!(waiting.as_mut()).is_ready());
    assert!(futures::poll!(std::pin::pin!(channels.until(ChannelId::NONE, is_more))).is_ready());
}
