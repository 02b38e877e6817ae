//! However many channels there are, the settlements of each are found, also in a ledger of before.

use farthing_ledger::{
    Ledger, Namespace, OpenMode, PayeeChannelFacts, Settlement, SettlementRow, SettlementState, Standing,
    Transaction,
};
use farthing_values::Usdc;
use redb::{Database, TableDefinition, WriteTransaction};

use crate::world::*;
use SettlementState::{Confirmed, Pending};

const CHANNELS: u8 = 100;

/// A claim on each of many channels, which is not paid yet.
async fn claims_of_many(ledger: &Ledger) -> Vec<Settlement> {
    let mut claims = Vec::new();
    for salt in 1..=CHANNELS {
        ledger.put_payee_channel(payee_channel(salt)).await.unwrap();
        ledger.serve(served(salt, PRICE, call(salt.into()))).await.unwrap();
        let row = SettlementRow { channel: channel(salt), from: Usdc::ZERO, to: PRICE };
        claims.push(ledger.open_settlement(vec![row], NOW_SECS).await.unwrap());
    }
    claims
}

/// The chain shows so much of each channel as paid.
async fn show(ledger: &Ledger, claimed: Usdc) {
    for salt in 1..=CHANNELS {
        ledger.put_payee_channel(PayeeChannelFacts { claimed, ..payee_channel(salt) }).await.unwrap();
    }
}

fn states(ledger: &Ledger) -> Vec<SettlementState> {
    ledger.settlements(1_000).unwrap().into_iter().map(|one| one.state).collect()
}

#[tokio::test]
async fn an_endpoint_that_lies_about_all_channels_leaves_no_settlement_that_says_otherwise() {
    let ledger = in_memory();
    let claims = claims_of_many(&ledger).await;
    assert_eq!(ledger.settlements_under_way().unwrap(), claims);
    show(&ledger, PRICE).await;
    assert_eq!(states(&ledger), [Pending; CHANNELS as usize], "a claim of each stands for what it is paid");
    for claim in claims {
        ledger.record_claim(Settlement { state: Confirmed, ..claim }).await.unwrap();
    }
    assert!(ledger.settlements_under_way().unwrap().is_empty());

    show(&ledger, Usdc::ZERO).await;
    assert_eq!(states(&ledger), [Pending; CHANNELS as usize]);
    assert!(ledger.audit(None).unwrap().violations.is_empty());

    // It was a lie, and whoever asks what is under way learns of all of it.
    show(&ledger, PRICE).await;
    for claim in ledger.settlements_under_way().unwrap() {
        ledger.record_claim(Settlement { state: Confirmed, ..claim }).await.unwrap();
    }
    assert_eq!(states(&ledger), [Confirmed; CHANNELS as usize]);
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_settlement_is_found_by_its_number_and_by_each_channel_that_it_names() {
    let ledger = in_memory();
    let claims = claims_of_many(&ledger).await;
    for (salt, claim) in (1..=CHANNELS).zip(&claims) {
        assert_eq!(ledger.settlement(claim.id).unwrap().as_ref(), Some(claim));
        assert_eq!(ledger.settlements_of(channel(salt)).unwrap(), std::slice::from_ref(claim));
    }
    assert_eq!(ledger.settlement(u64::from(CHANNELS) + 1).unwrap(), None);
    let rows = [1, 2].map(|salt| SettlementRow { channel: channel(salt), from: Usdc::ZERO, to: PRICE });
    let both = ledger.open_settlement(rows.into(), NOW_SECS).await.unwrap();
    assert_eq!(ledger.settlements_of(channel(2)).unwrap(), [both, claims[1].clone()], "the newest first");
    assert_eq!(ledger.settlements_of(channel(CHANNELS + 1)).unwrap(), []);
}

#[tokio::test]
async fn settlements_of_a_ledger_of_before_are_found_by_their_channel() {
    const SETTLEMENTS: TableDefinition<u64, &[u8]> = TableDefinition::new("settlements");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = Ledger::open(&path, OpenMode::Create).unwrap();
    let claims = claims_of_many(&ledger).await;
    show(&ledger, PRICE).await;
    for claim in claims {
        ledger.record_claim(Settlement { state: Confirmed, ..claim }).await.unwrap();
    }
    drop(ledger);

    let change = |of_before: &dyn Fn(&WriteTransaction)| {
        let database = Database::open(&path).unwrap();
        let tx = database.begin_write().unwrap();
        of_before(&tx);
        tx.commit().unwrap();
    };
    // Such a program knows of no other table.
    change(&|tx| {
        let by_channel: TableDefinition<&[u8; 40], ()> = TableDefinition::new("settlements_by_channel");
        let under_way: TableDefinition<u64, ()> = TableDefinition::new("settlements_under_way");
        assert!(tx.delete_table(by_channel).unwrap() && tx.delete_table(under_way).unwrap());
    });
    let ledger = Ledger::open(&path, OpenMode::Existing).unwrap();
    assert!(ledger.audit(None).unwrap().violations.is_empty());
    show(&ledger, Usdc::ZERO).await;
    assert_eq!(states(&ledger), [Pending; CHANNELS as usize]);
    drop(ledger);

    // It is run once more, takes a settlement away and makes another one of it.
    change(&|tx| {
        let mut table = tx.open_table(SETTLEMENTS).unwrap();
        let first = table.remove(1).unwrap().unwrap().value().to_owned();
        table.insert(1_000, first.as_slice()).unwrap();
    });
    let ledger = Ledger::open(&path, OpenMode::Existing).unwrap();
    assert!(ledger.audit(None).unwrap().violations.is_empty());
    let last = ledger.settlements_under_way().unwrap().pop().unwrap();
    assert_eq!((last.id, last.rows[0].channel), (1_000, channel(1)));
    show(&ledger, PRICE).await;
    assert_eq!(states(&ledger).len(), usize::from(CHANNELS), "no payment is told twice");
}

#[tokio::test]
async fn a_copy_finds_the_settlements_of_a_channel() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.redb");
    let ledger = in_memory();
    let claims = claims_of_many(&ledger).await;
    ledger.copy_to(&copy).unwrap();
    let copied = Ledger::open(&copy, OpenMode::Existing).unwrap();
    assert_eq!(copied.settlements_under_way().unwrap(), claims);
    assert!(copied.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn a_copy_has_all_documents_but_the_bodies_of_answers() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.redb");
    let ledger = in_memory();
    for namespace in [Namespace::Settings, Namespace::Sales, Namespace::SaleBodies] {
        ledger.put(namespace, b"key".to_vec(), b"value".to_vec()).await.unwrap();
    }
    ledger.copy_to(&copy).unwrap();
    let copied = Ledger::open(&copy, OpenMode::Existing).unwrap();
    let is_there = |namespace| copied.get(namespace, b"key").unwrap().is_some();
    assert!(is_there(Namespace::Settings) && is_there(Namespace::Sales));
    assert!(!is_there(Namespace::SaleBodies));
}

fn mined(number: u8) -> Transaction {
    Transaction {
        hash: [number; 32],
        block: 7,
        time_secs: NOW_SECS,
        purpose: "claim".into(),
        channel: None,
        peer: None,
        amount: Usdc::ZERO,
        wei: [0; 16],
        fee_wei: [0; 16],
        standing: None,
        chain_id: None,
    }
}

#[tokio::test]
async fn a_claim_that_a_restart_finishes_names_its_transaction_whichever_is_told_first() {
    for is_noted_first in [true, false] {
        let ledger = earning().await;
        ledger.serve(served(1, PRICE, call(1))).await.unwrap();
        let row = SettlementRow { channel: channel(1), from: Usdc::ZERO, to: PRICE };
        let claim = ledger.open_settlement(vec![row], NOW_SECS).await.unwrap();
        let note = |number| ledger.note_transaction(mined(number), Some(channel(1)));
        if is_noted_first {
            note(7).await.unwrap();
        }
        ledger.put_payee_channel(PayeeChannelFacts { claimed: PRICE, ..payee_channel(1) }).await.unwrap();
        ledger.record_claim(Settlement { state: Confirmed, ..claim }).await.unwrap();
        note(7).await.unwrap();
        // One that pays nothing more on the channel is not the claim's.
        note(8).await.unwrap();
        let told = ledger.settlements(10).unwrap();
        assert_eq!((told.len(), told[0].state, told[0].transaction), (1, Confirmed, Some([7; 32])));
    }
}

#[tokio::test]
async fn a_claim_whose_transaction_no_block_has_says_so_whatever_pays_it() {
    let ledger = earning().await;
    ledger.serve(served(1, PRICE, call(1))).await.unwrap();
    let row = SettlementRow { channel: channel(1), from: Usdc::ZERO, to: PRICE };
    let claim = ledger.open_settlement(vec![row], NOW_SECS).await.unwrap();
    let mined = mined(7);
    ledger.note_transaction(mined.clone(), None).await.unwrap();
    let paid = PayeeChannelFacts { claimed: PRICE, ..payee_channel(1) };
    ledger.put_payee_channel(paid).await.unwrap();
    let confirmed = Settlement { transaction: Some(mined.hash), state: Confirmed, ..claim };
    ledger.record_claim(confirmed).await.unwrap();
    let told = || {
        let claim = ledger.settlements(1).unwrap().remove(0);
        (claim.state, claim.is_dropped)
    };
    let stands = |standing| ledger.correct_transaction(Transaction { standing, ..mined.clone() });
    stands(Some(Standing::Stays)).await.unwrap();
    assert_eq!(told(), (Confirmed, false));

    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    stands(Some(Standing::Nowhere)).await.unwrap();
    assert_eq!(told(), (Pending, true));
    // A close pays it, and whoever ends the claim knows nothing of its transaction.
    ledger.put_payee_channel(paid).await.unwrap();
    for claim in ledger.settlements_under_way().unwrap() {
        ledger.record_claim(Settlement { state: Confirmed, is_dropped: false, ..claim }).await.unwrap();
    }
    assert_eq!(told(), (Confirmed, true), "paid, and not by that transaction");
    // An endpoint was wrong, or another block has it now.
    stands(None).await.unwrap();
    assert_eq!(told(), (Confirmed, false));
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}
