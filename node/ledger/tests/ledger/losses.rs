//! What a payer withdrew although it was charged: booked, and taken back when it is paid after all.

use farthing_ledger::{Ledger, OpenMode, PayeeChannel};
use farthing_protocol::Usdc;
use redb::{Database, ReadableTable, TableDefinition};

use crate::world::*;

#[tokio::test]
async fn what_was_lost_and_is_paid_after_all_is_lost_no_more() {
    let ledger = in_memory();
    let open = payee_channel(1);
    ledger.put_payee_channel(open).await.unwrap();
    ledger.serve(served(1, micros(4_000), call(1))).await.unwrap();
    let emptied = PayeeChannel { deposited: Usdc::ZERO, ..open };
    let lost = || {
        let rows = ledger.settlements(10).unwrap().into_iter().flat_map(|one| one.rows);
        rows.map(|row| row.amount().micros()).collect::<Vec<_>>()
    };
    // An endpoint says again and again that the payer took it all, and is wrong.
    for _ in 0..3 {
        ledger.put_payee_channel(emptied).await.unwrap();
        assert_eq!(lost(), [2_000]);
        assert!(ledger.audit(None).unwrap().is_clean());
        ledger.put_payee_channel(open).await.unwrap();
        assert_eq!(lost(), [0; 0]);
    }
    // In two parts, of which a new deposit covers one and a half.
    ledger.put_payee_channel(PayeeChannel { deposited: micros(1_200), ..open }).await.unwrap();
    ledger.put_payee_channel(emptied).await.unwrap();
    assert_eq!(lost(), [1_200, 800]);
    let row = ledger.put_payee_channel(PayeeChannel { deposited: micros(1_600), ..open }).await.unwrap();
    assert_eq!((lost(), row.lost), (vec![400], micros(400)));
    ledger.put_payee_channel(PayeeChannel { deposited: PRICE, claimed: PRICE, ..open }).await.unwrap();
    assert_eq!(lost(), [0; 0], "the claim came through");
    assert!(ledger.audit(None).unwrap().is_clean());
}

#[tokio::test]
async fn losses_that_an_earlier_program_booked_and_never_took_back_are_told_once() {
    const SETTLEMENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("settlements");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = Ledger::open(&path, OpenMode::Create).unwrap();
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    ledger.serve(served(1, PRICE, call(1))).await.unwrap();
    let emptied = PayeeChannel { deposited: Usdc::ZERO, ..payee_channel(1) };
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
    assert!(ledger.audit(None).unwrap().is_clean());
}
