//! The rules of money, each at its limit: below, at and above.

use farthing_protocol::{
    Outcome, RefusalCode, Usdc,
    call::ChargePolicy,
    channel::{PayeeState, PayerState, ReceiptMismatch},
};
use proptest::prelude::*;

const fn usdc(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}

/// 100 deposited; vouchers for 50; 20 charged and 10 in progress.
fn payee() -> PayeeState {
    PayeeState {
        deposited: usdc(100),
        claimed: usdc(5),
        best: usdc(50),
        spent: usdc(20),
        reserved: usdc(10),
        closing: false,
    }
}

#[test]
fn a_call_needs_headroom_of_its_price_beyond_charged_and_running_calls() {
    let admit = |cumulative: Option<u64>, price| {
        let mut state = payee();
        let result = state.admit(cumulative.map(usdc), usdc(price));
        let unchanged = state == payee();
        assert_eq!(result.is_err(), unchanged, "a refusal, and nothing else, changes nothing");
        result.map(|()| (state.best.micros(), state.reserved.micros()))
    };
    for (price, expected) in
        [(19, Ok((50, 29))), (20, Ok((50, 30))), (21, Err(RefusalCode::InsufficientVoucher))]
    {
        assert_eq!(admit(None, price), expected, "on the best voucher");
        assert_eq!(admit(Some(49), price), expected, "a late, lower voucher is harmless");
    }
    assert_eq!(admit(Some(59), 30), Err(RefusalCode::InsufficientVoucher));
    assert_eq!(admit(Some(60), 30), Ok((60, 40)));
    assert_eq!(admit(Some(51), 21), Ok((51, 31)));
    assert_eq!(admit(Some(51), 22), Err(RefusalCode::InsufficientVoucher), "growth by one is not the price");
    assert_eq!(admit(None, u64::MAX), Err(RefusalCode::InsufficientVoucher), "sums do not wrap");
}

#[test]
fn a_new_voucher_lies_within_the_deposit() {
    let admit = |cumulative| payee().admit(Some(usdc(cumulative)), usdc(1));
    assert_eq!((admit(99), admit(100)), (Ok(()), Ok(())));
    assert_eq!(admit(101), Err(RefusalCode::VoucherAboveDeposit));
    assert_eq!(admit(u64::MAX), Err(RefusalCode::VoucherAboveDeposit));
}

#[test]
fn a_channel_that_was_withdrawn_from_serves_again_as_far_as_the_new_deposit_goes() {
    // Vouchers for 50 were signed, 20 charged and claimed, the rest withdrawn, and 15 deposited anew.
    let reopened = PayeeState { deposited: usdc(35), claimed: usdc(20), reserved: Usdc::ZERO, ..payee() };
    for cumulative in [None, Some(usdc(30))] {
        let admit = |price| reopened.clone().admit(cumulative, usdc(price));
        assert_eq!((admit(14), admit(15)), (Ok(()), Ok(())));
        assert_eq!(admit(16), Err(RefusalCode::VoucherAboveDeposit));
    }
}

#[test]
fn a_closing_channel_serves_nothing_new_and_finishes_what_runs() {
    let mut state = PayeeState { closing: true, ..payee() };
    assert_eq!(state.admit(Some(usdc(100)), Usdc::ZERO), Err(RefusalCode::ChannelClosing));
    state.settle(usdc(10), usdc(10));
    assert_eq!((state.spent, state.reserved, state.unclaimed()), (usdc(30), Usdc::ZERO, usdc(25)));
}

#[test]
fn a_promise_covers_what_is_acknowledged_and_in_flight_and_the_price_within_the_deposit() {
    let payer = PayerState {
        deposited: usdc(100),
        acknowledged: usdc(40),
        in_flight: usdc(30),
        signed: usdc(70),
        stopped: false,
    };
    assert_eq!(payer.available(), usdc(30));
    for (price, expected) in [(29, Some(usdc(99))), (30, Some(usdc(100))), (31, None), (u64::MAX, None)] {
        let mut state = payer;
        assert_eq!(state.reserve(usdc(price)), expected);
        assert_eq!(state == payer, expected.is_none());
    }
    assert_eq!(PayerState { stopped: true, ..payer }.reserve(usdc(1)), None);
}

#[test]
fn a_receipt_is_explained_by_what_was_bought() {
    let acknowledge = |charged, spent_total| {
        let mut state = PayerState { deposited: usdc(100), ..PayerState::default() };
        state.reserve(usdc(10)).unwrap();
        state.reserve(usdc(7)).unwrap();
        state.acknowledge(usdc(10), usdc(charged), usdc(spent_total)).map(|()| state.acknowledged.micros())
    };
    assert_eq!(acknowledge(9, 9), Ok(9));
    assert_eq!(acknowledge(10, 10), Ok(10));
    let above = ReceiptMismatch::ChargedAbovePrice { charged: usdc(11), price: usdc(10) };
    assert_eq!(acknowledge(11, 11), Err(above));
    // The other call, in flight, may have been charged already; nothing else can have been.
    assert_eq!((acknowledge(10, 16), acknowledge(10, 17)), (Ok(10), Ok(10)));
    let unexplained = ReceiptMismatch::UnexplainedTotal { spent_total: usdc(18), explained: usdc(17) };
    assert_eq!(acknowledge(10, 18), Err(unexplained));
}

#[test]
fn only_an_answer_of_the_service_is_charged() {
    for outcome in Outcome::ALL {
        assert_eq!(Outcome::from_code(outcome.code()), Some(outcome));
        for policy in [ChargePolicy::Success, ChargePolicy::Answered] {
            let due = match (outcome, policy) {
                (Outcome::Answered, _) | (Outcome::Declined, ChargePolicy::Answered) => usdc(7),
                _ => Usdc::ZERO,
            };
            assert_eq!(outcome.charge(policy, usdc(7)), due, "O4: {outcome:?}, {policy:?}");
        }
    }
    assert_eq!(Outcome::from_code(7), None);
}

proptest! {
    #[test]
    fn whatever_is_asked_charges_stay_within_vouchers_and_deposit(
        deposited in 0_u64..200,
        steps in proptest::collection::vec((any::<bool>(), proptest::option::of(0_u64..250), 0_u64..60), 0..60),
    ) {
        let mut state = PayeeState { deposited: usdc(deposited), ..PayeeState::default() };
        let mut running = Vec::new();
        for (finish, cumulative, price) in steps {
            if finish {
                if let Some(price) = running.pop() {
                    state.settle(price, price);
                }
            } else if state.admit(cumulative.map(usdc), usdc(price)).is_ok() {
                running.push(usdc(price));
            }
            prop_assert!(state.spent.saturating_add(state.reserved) <= state.best, "O1");
            prop_assert!(state.best <= state.deposited, "O1");
        }
    }
}
