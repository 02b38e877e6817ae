//! Calls that a transaction of their payer's has paid, without a channel.

use farthing_ledger::{
    Adjustment, Call, CallFigures, Cause, Ledger, LedgerError, Retention, ServedRow, Side, day_of,
};
use farthing_values::{Address, ChannelId, Method, Usdc};

use crate::{adjustments::ALL, world::*};

/// The answered calls of the first call's day with what they earned: by day, by service, and of the last hours.
fn totals(ledger: &Ledger) -> [(u64, Usdc); 3] {
    let day = day_of(call(1).time_secs);
    let of_day = ledger.day_figures(day, day).unwrap()[0].1;
    let [mut of_services, mut latest] = [(0, Usdc::ZERO); 2];
    let add = |to: &mut (u64, Usdc), figures: CallFigures| {
        *to = (to.0 + figures.answered(), to.1.saturating_add(figures.charged));
    };
    ledger.call_figures(0, |_| true, |_, _, figures| add(&mut of_services, figures)).unwrap();
    ledger.latest_figures(0, |_| true, |_, _, figures| add(&mut latest, figures));
    [(of_day.served, of_day.earned), of_services, latest]
}

#[tokio::test]
async fn a_call_that_a_transaction_paid_is_charged_once_and_on_no_channel() {
    let ledger = in_memory();
    let payer = world().payer.address();
    let paid = |number| Call { method: Method::Post, ..call(number) };
    let recorded = ledger.serve_paid(payer, paid(1), [9; 32]).await.unwrap();
    let receipt = recorded.receipt();
    assert_eq!((receipt.channel, receipt.charged, receipt.spent_total), (ChannelId::NONE, PRICE, Usdc::ZERO));
    let again = ledger.serve_paid(payer, paid(1), [9; 32]).await;
    assert!(matches!(again, Err(LedgerError::AlreadyServed(_))), "{again:?}");
    let Some(ServedRow::Done(row)) = ledger.served(payer, call_id(1)).unwrap() else { panic!() };
    assert_eq!(row.call, paid(1));
    assert_eq!((row.paid_by, row.is_lost), (Some([9; 32]), false));

    let failed = Call { charged: PRICE, ..failed_call(2) };
    let refused = ledger.serve_paid(payer, failed, [9; 32]).await;
    assert!(matches!(refused, Err(LedgerError::ChargeNotAllowed { .. })), "{refused:?}");
    assert_eq!(ledger.audit(None).unwrap().violations, []);

    let keep = Retention { rows_kept_secs: 0, ..Retention::default() };
    let pruned = ledger.prune(keep, NOW_SECS + 30 * 86_400).await.unwrap();
    assert_eq!(pruned.calls, 1);
    assert_eq!(ledger.audit(None).unwrap().violations, []);
}

#[tokio::test]
async fn a_payment_that_the_chain_takes_back_is_replaced_or_lost_and_totals_and_adjustments_say_so() {
    let ledger = in_memory();
    let payer = world().payer.address();
    ledger.serve_paid(payer, call(1), [9; 32]).await.unwrap();
    ledger.serve_paid(payer, call(3), [6; 32]).await.unwrap();
    for (transaction, expected) in [
        (Some([8; 32]), (Some([8; 32]), false)),
        (None, (Some([8; 32]), true)),
        (None, (Some([8; 32]), true)),
        (Some([7; 32]), (Some([7; 32]), false)),
    ] {
        ledger.pay_again(payer, call_id(1), transaction).await.unwrap();
        let Some(ServedRow::Done(row)) = ledger.served(payer, call_id(1)).unwrap() else { panic!() };
        assert_eq!((row.paid_by, row.is_lost), expected);
        assert_eq!(row.call, call(1));
        let told = ledger.adjustments_in(&ALL, |_| true).unwrap().rows;
        let told: Vec<Adjustment> = told.into_iter().map(|(_, row)| row).collect();
        let (earned, rows) = if row.is_lost { (PRICE, 1) } else { (PRICE.saturating_mul(2), 0) };
        assert_eq!(totals(&ledger), [(2, earned); 3]);
        assert_eq!(told.len(), rows, "{told:?}");
        for row in told {
            assert_eq!(
                (row.side, row.cause, row.peer, row.amount),
                (Side::Payee, Cause::TakenBack, payer, PRICE)
            );
        }
        assert_eq!(ledger.adjusted_with(Side::Payee, payer).unwrap(), Usdc::ZERO, "no channel counts it");
        assert_eq!(ledger.audit(None).unwrap().violations, []);
    }
    let unknown = ledger.pay_again(payer, call_id(2), None).await;
    assert!(matches!(unknown, Err(LedgerError::NotServed(_))), "{unknown:?}");
}

#[tokio::test]
async fn the_payers_of_a_call_id_are_found_among_all_calls() {
    let ledger = in_memory();
    let payer = |byte: u8| Address::from_bytes([byte; 20]);
    // The first and the last address, neighbours, and ids before and behind the one that is looked for.
    let calls: [(u8, &[u64]); 6] =
        [(0, &[1, 5, 9]), (1, &[1, 9]), (2, &[5]), (3, &[9]), (4, &[1]), (255, &[1, 2, 5])];
    for (byte, numbers) in calls {
        for number in numbers {
            ledger.serve_paid(payer(byte), call(*number), [9; 32]).await.unwrap();
        }
    }
    assert_eq!(ledger.payers_of(call_id(5)).unwrap(), [0, 2, 255].map(payer));
    assert_eq!(ledger.payers_of(call_id(2)).unwrap(), [payer(255)]);
    assert_eq!(ledger.payers_of(call_id(6)).unwrap(), []);
}
