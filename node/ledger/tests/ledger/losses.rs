//! What the chain alone tells of a channel's money: what was paid without a claim of this node, and what a payer withdrew
//! although it was charged, which is taken back when it is paid after all.

use farthing_ledger::{
    Ledger, LedgerError, OpenMode, PayeeChannelFacts, PayerChannelFacts, Settlement, SettlementRow,
    SettlementState,
};
use farthing_values::Usdc;
use redb::{Database, ReadableTable, TableDefinition};

use crate::world::*;

#[tokio::test]
async fn what_a_close_paid_is_a_settlement_too_and_once() {
    let ledger = in_memory();
    let open = payee_channel(1);
    ledger.put_payee_channel(open).await.unwrap();
    ledger.serve(served(1, micros(4_000), call(1))).await.unwrap();
    ledger.serve(served(1, micros(4_000), call(2))).await.unwrap();
    let row = SettlementRow { channel: channel(1), from: micros(0), to: micros(1_000) };
    let claim = ledger.open_settlement(vec![row], NOW_SECS).await.unwrap();
    for _ in 0..2 {
        ledger.put_payee_channel(PayeeChannelFacts { claimed: micros(1_000), ..open }).await.unwrap();
    }
    assert_eq!(ledger.settlements(10).unwrap().len(), 1, "the claim that is under way stands for it");
    ledger.record_claim(Settlement { state: SettlementState::Confirmed, ..claim }).await.unwrap();
    let closed = PayeeChannelFacts { claimed: micros(4_000), deposited: micros(4_000), ..open };
    for _ in 0..2 {
        ledger.put_payee_channel(closed).await.unwrap();
    }
    let rows: Vec<_> = ledger.settlements(10).unwrap().into_iter().flat_map(|one| one.rows).collect();
    let amounts: Vec<_> = rows.iter().map(|row| row.amount().micros()).collect();
    assert_eq!(amounts, [3_000, 1_000], "history comes to what the channel paid");
    assert!(ledger.audit(None).unwrap().violations.is_empty());
    // What these books do not know as charged is told by an adjustment alone.
    let found = in_memory();
    found.put_payee_channel(PayeeChannelFacts { claimed: micros(9_000), ..payee_channel(2) }).await.unwrap();
    assert_eq!(found.settlements(10).unwrap(), []);
}

#[tokio::test]
async fn what_is_left_of_a_deposit_comes_back_as_a_settlement_and_goes_with_the_block_that_showed_it() {
    let ledger = in_memory();
    let open = payer_channel(1);
    let back = async |channel| {
        ledger.put_payer_channel(channel).await.unwrap();
        let told = ledger.settlements(10).unwrap();
        assert!(told.iter().all(|one| one.state == SettlementState::Returned));
        told.iter().map(|one| one.rows[0].amount().micros()).collect::<Vec<_>>()
    };
    assert_eq!(back(open).await, [0; 0]);
    // A deposit whose block is replaced is none that came back.
    assert_eq!(back(PayerChannelFacts { deposited: PRICE, ..open }).await, [0; 0]);
    assert_eq!(back(open).await, [0; 0]);
    let closed = PayerChannelFacts { claimed: PRICE, deposited: PRICE, round: Some(1), ..open };
    let left = DEPOSIT.micros() - PRICE.micros();
    for _ in 0..2 {
        assert_eq!(back(closed).await, [left]);
    }
    assert_eq!(back(open).await, [0; 0], "the block with the close was replaced");
    assert_eq!(back(closed).await, [left]);
    let filled = PayerChannelFacts { deposited: DEPOSIT, ..closed };
    assert_eq!(back(filled).await, [left]);
    // It was stopped by its user, who has not read the chain.
    assert_eq!(back(PayerChannelFacts { round: None, stopped: true, ..filled }).await, [left]);
    assert_eq!(ledger.payer_channels().unwrap()[0].round, Some(1), "as it was read last");
    assert_eq!(back(PayerChannelFacts { round: Some(2), ..closed }).await, [left, left]);
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn what_was_lost_and_is_paid_after_all_is_lost_no_more() {
    let ledger = in_memory();
    let open = payee_channel(1);
    ledger.put_payee_channel(open).await.unwrap();
    ledger.serve(served(1, micros(4_000), call(1))).await.unwrap();
    let emptied = PayeeChannelFacts { deposited: Usdc::ZERO, ..open };
    let lost = || {
        let mut told = ledger.settlements(10).unwrap();
        told.retain(|one| one.state == SettlementState::Lost);
        told.iter().map(|one| one.rows[0].amount().micros()).collect::<Vec<_>>()
    };
    // An endpoint says again and again that the payer took it all, and is wrong.
    for _ in 0..3 {
        ledger.put_payee_channel(emptied).await.unwrap();
        assert_eq!(lost(), [2_000]);
        assert!(ledger.audit(None).unwrap().violations.is_empty());
        ledger.put_payee_channel(open).await.unwrap();
        assert_eq!(lost(), [0; 0]);
    }
    // In two parts, of which a new deposit covers one and a half.
    ledger.put_payee_channel(PayeeChannelFacts { deposited: micros(1_200), ..open }).await.unwrap();
    ledger.put_payee_channel(emptied).await.unwrap();
    assert_eq!(lost(), [1_200, 800]);
    let row = ledger.put_payee_channel(PayeeChannelFacts { deposited: micros(1_600), ..open }).await.unwrap();
    assert_eq!((lost(), row.lost), (vec![400], micros(400)));
    ledger.put_payee_channel(PayeeChannelFacts { deposited: PRICE, claimed: PRICE, ..open }).await.unwrap();
    assert_eq!(lost(), [0; 0], "the claim came through");
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn losses_that_an_earlier_program_booked_and_never_took_back_are_told_once() {
    const SETTLEMENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("settlements");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = Ledger::open(&path, OpenMode::Create).unwrap();
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    ledger.serve(served(1, PRICE, call(1))).await.unwrap();
    let emptied = PayeeChannelFacts { deposited: Usdc::ZERO, ..payee_channel(1) };
    ledger.put_payee_channel(emptied).await.unwrap();
    drop(ledger);
    let database = Database::open(&path).unwrap();
    let tx = database.begin_write().unwrap();
    {
        let mut table = tx.open_table(SETTLEMENTS).unwrap();
        let first = table.get(1).unwrap().unwrap().value().to_owned();
        // It was told again.
        table.insert(7, first.as_slice()).unwrap();
        let meta = TableDefinition::<&str, u64>::new("meta");
        tx.open_table(meta).unwrap().remove("losses_weighed").unwrap();
    }
    tx.commit().unwrap();
    drop(database);
    let ledger = Ledger::open(&path, OpenMode::Existing).unwrap();
    let losses = ledger.settlements(10).unwrap();
    assert_eq!(losses.iter().map(|loss| loss.rows[0].amount()).collect::<Vec<_>>(), [PRICE]);
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_call_that_was_admitted_is_charged_whatever_the_chain_shows_at_its_end() {
    let ledger = earning().await;
    ledger.serve(served(1, PRICE, call(1))).await.unwrap();
    let emptied = PayeeChannelFacts { deposited: PRICE, claimed: PRICE, closing: true, ..payee_channel(1) };
    ledger.put_payee_channel(emptied).await.unwrap();

    // Also on a voucher that it brought itself.
    let twice = micros(2 * PRICE.micros());
    assert_eq!(ledger.serve(served(1, twice, call(2))).await.unwrap().receipt().spent_total, twice);
    ledger.serve(served(1, twice, failed_call(3))).await.unwrap();
    assert_eq!(ledger.payee_channels().unwrap()[0].lost, PRICE, "the deposit does not cover it");
    assert!(ledger.audit(None).unwrap().violations.is_empty());
    // It was an endpoint's word, or a block that was replaced.
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    let row = ledger.payee_channels().unwrap()[0];
    assert_eq!((row.lost, row.spent), (Usdc::ZERO, twice));
    // A deposit that was never there covers nothing.
    let above = ledger.serve(served(1, micros(DEPOSIT.micros() + 1), call(4))).await;
    assert!(matches!(above, Err(LedgerError::VoucherAboveDeposit { .. })), "{above:?}");
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}
