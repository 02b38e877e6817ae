//! What opens, what is created, and what is refused.

use farthing_ledger::{Ledger, LedgerError, Namespace, OpenError, OpenMode};
use farthing_values::RefusalCode;
use redb::{Database, TableDefinition};

use crate::{
    disk::{Disk, Event, apply},
    world::*,
};

#[tokio::test]
async fn a_ledger_is_created_once_and_then_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    // A leftover of a crash while creating does not matter.
    std::fs::write(folder.path().join("ledger.redb.new"), b"half a ledger").unwrap();
    let ledger = Ledger::open(&path, OpenMode::Create).unwrap();
    ledger.put_payee_channel(payee_channel(1)).await.unwrap();
    ledger.serve(served(1, PRICE, call(1))).await.unwrap();
    drop(ledger);
    for mode in [OpenMode::Existing, OpenMode::Create] {
        let ledger = Ledger::open(&path, mode).unwrap();
        assert_eq!(ledger.payee_channels().unwrap()[0].spent, PRICE);
    }
    assert!(!folder.path().join("ledger.redb.new").exists());
}

#[tokio::test]
async fn a_ledger_that_was_closed_lacks_no_call_and_one_that_was_not_may_until_its_books_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let [path, crashed] = ["ledger.redb", "crashed.redb"].map(|name| folder.path().join(name));
    let open = |path| Ledger::open(path, OpenMode::Existing).unwrap();
    let may_lack = |ledger: &Ledger| ledger.payer_channels().unwrap()[0].may_lack_calls;
    let ledger = Ledger::open(&path, OpenMode::Create).unwrap();
    ledger.put_payer_channel(payer_channel(1)).await.unwrap();
    ledger.promise(promise(1, 1, PRICE)).await.unwrap().await.unwrap();
    // A handle that somebody keeps makes no crash of it: what is promised is stored, and its end may still be.
    let kept = ledger.clone();
    ledger.end_promises().await.unwrap();
    assert!(matches!(kept.promise(promise(1, 2, PRICE)).await, Err(LedgerError::Ending)));
    kept.release(call_id(1), "never served", NOW_SECS).await.unwrap();
    std::fs::copy(&path, &crashed).unwrap();
    assert!(!may_lack(&open(&crashed)));
    drop((ledger, kept));
    let ledger = open(&path);
    assert!(!may_lack(&ledger));
    let refused = ledger.promise(promise(2, 3, PRICE)).await.unwrap().await;
    assert!(matches!(refused, Err(LedgerError::UnknownChannel(_))));
    std::fs::copy(&path, &crashed).unwrap();
    assert!(may_lack(&open(&crashed)), "its call has left");
    ledger.promise(promise(1, 3, PRICE)).await.unwrap().await.unwrap();
    // As the disk has it when the machine dies now.
    std::fs::copy(&path, &crashed).unwrap();
    assert!(may_lack(&open(&crashed)));
    let ledger = open(&crashed);
    assert!(may_lack(&ledger), "closing it again compares no books");
    ledger.note_compared(channel(1)).await.unwrap();
    drop(ledger);
    let ledger = open(&crashed);
    assert!(!may_lack(&ledger));
    // What was signed is known to the ledger, and more is not.
    assert!(!ledger.recover_signed(channel(1), PRICE).await.unwrap().may_lack_calls);
    assert!(ledger.recover_signed(channel(1), micros(2_001)).await.unwrap().may_lack_calls);
    drop(ledger);
    let ledger = open(&crashed);
    assert!(may_lack(&ledger));
    ledger.note_compared(channel(1)).await.unwrap();
    ledger.mark_restored(NOW_SECS).await.unwrap();
    assert!(may_lack(&ledger));
}

#[tokio::test]
async fn from_the_first_call_that_leaves_after_a_start_a_power_cut_is_a_crash() {
    let disk = Disk::default();
    let ledger = Ledger::with_backend(disk.clone()).unwrap();
    ledger.put_payer_channel(payer_channel(1)).await.unwrap();
    ledger.promise(promise(1, 1, PRICE)).await.unwrap().await.unwrap();
    // Signed and not charged, so that the next voucher is no larger than what this ledger knows to be signed.
    ledger.release(call_id(1), "never served", NOW_SECS).await.unwrap();
    drop(ledger);
    let mut durable = disk.bytes();
    disk.start_trace();
    let ledger = Ledger::with_backend(disk.clone()).unwrap();
    let stored = ledger.promise(promise(1, 2, PRICE)).await.unwrap();
    // The call leaves now, and the power goes.
    let point = disk.trace_len();
    stored.await.unwrap();
    let trace = disk.take_trace();
    let synced = trace[..point].iter().rposition(|event| matches!(event, Event::Sync)).map_or(0, |at| at + 1);
    for event in &trace[..synced] {
        apply(&mut durable, event);
    }
    let ledger = Ledger::with_backend(Disk::new(durable)).unwrap();
    assert!(ledger.payer_channels().unwrap()[0].may_lack_calls);
}

#[test]
fn a_missing_or_empty_ledger_is_never_replaced_where_one_must_exist() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let missing = Ledger::open(&path, OpenMode::Existing).unwrap_err();
    assert!(matches!(missing, OpenError::Missing { .. }), "{missing:?}");
    let next = missing.next_step().unwrap();
    assert!(next.starts_with("restore a backup; without one, start again in an empty folder"), "{next}");
    let told = missing.to_string();
    assert!(told.contains("is missing") && !told.contains("used"), "nobody looked into the wallet: {told}");
    assert!(!path.exists());
    std::fs::write(&path, b"").unwrap();
    for mode in [OpenMode::Existing, OpenMode::Create] {
        assert!(matches!(Ledger::open(&path, mode), Err(OpenError::Missing { .. })));
    }
    std::fs::write(&path, [7; 8_192]).unwrap();
    assert!(matches!(Ledger::open(&path, OpenMode::Existing), Err(OpenError::Storage(_))));
    assert_eq!(std::fs::read(&path).unwrap(), [7; 8_192]);
}

#[test]
fn one_ledger_is_open_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = Ledger::open(&path, OpenMode::Create).unwrap();
    let second = Ledger::open(&path, OpenMode::Existing).unwrap_err();
    assert!(matches!(second, OpenError::InUse), "{second:?}");
    let clone = ledger.clone();
    drop(ledger);
    assert!(matches!(Ledger::open(&path, OpenMode::Existing), Err(OpenError::InUse)));
    drop(clone);
    Ledger::open(&path, OpenMode::Existing).unwrap();
}

#[cfg(unix)]
#[test]
fn the_file_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    drop(Ledger::open(&path, OpenMode::Create).unwrap());
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    drop(Ledger::open(&path, OpenMode::Existing).unwrap());
    assert_eq!(mode(), 0o600);
}

#[test]
fn another_schema_is_refused_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    drop(Ledger::open(&path, OpenMode::Create).unwrap());
    let set_schema = |version: u64| {
        let database = Database::open(&path).unwrap();
        let tx = database.begin_write().unwrap();
        tx.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap().insert("schema", version).unwrap();
        tx.commit().unwrap();
    };
    set_schema(3);
    let newer = Ledger::open(&path, OpenMode::Existing).unwrap_err();
    assert!(matches!(newer, OpenError::NewerSchema { found: 3, supported: 2 }), "{newer:?}");
    assert_eq!(newer.next_step(), Some("use the newer version of the program that wrote it"));
    set_schema(0);
    let older = Ledger::open(&path, OpenMode::Existing).unwrap_err();
    assert!(matches!(older, OpenError::NoMigration { found: 0, supported: 2 }), "{older:?}");
    set_schema(2);
    Ledger::open(&path, OpenMode::Existing).unwrap();
}

/// Makes a ledger look as a program before the present contract left it.
fn age(path: &std::path::Path) {
    let database = Database::open(path).unwrap();
    let tx = database.begin_write().unwrap();
    tx.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap().insert("schema", 1).unwrap();
    tx.commit().unwrap();
}

#[tokio::test]
async fn a_ledger_with_money_in_the_earlier_contract_is_left_to_the_program_that_wrote_it() {
    let folder = tempfile::tempdir().unwrap();
    for what in ["earned", "deposited", "under way"] {
        let path = folder.path().join(what);
        let ledger = Ledger::open(&path, OpenMode::Create).unwrap();
        match what {
            "earned" => {
                ledger.put_payee_channel(payee_channel(1)).await.unwrap();
                ledger.serve(served(1, PRICE, call(1))).await.unwrap();
            }
            "deposited" => drop(ledger.put_payer_channel(payer_channel(1)).await.unwrap()),
            _ => {
                let name = b"31337/0x11/tx/00000000000000000007".to_vec();
                ledger.put(Namespace::Transactions, name, b"bytes".to_vec()).await.unwrap();
            }
        }
        let rows = (ledger.payee_channels().unwrap(), ledger.payer_channels().unwrap());
        drop(ledger);
        age(&path);
        for _ in 0..2 {
            let refused = Ledger::open(&path, OpenMode::Existing).unwrap_err();
            assert!(matches!(refused, OpenError::EarlierContract(_)), "{refused:?}");
            let next = refused.next_step().unwrap();
            assert!(next.contains("Start the version that wrote it, run `farthing settle`"), "{next}");
        }
        // Nothing was lost: once the version is set back, every row is there.
        let database = Database::open(&path).unwrap();
        let tx = database.begin_write().unwrap();
        tx.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap().insert("schema", 2).unwrap();
        tx.commit().unwrap();
        drop(database);
        let ledger = Ledger::open(&path, OpenMode::Existing).unwrap();
        assert_eq!((ledger.payee_channels().unwrap(), ledger.payer_channels().unwrap()), rows, "{what}");
    }
}

#[tokio::test]
async fn channels_of_the_earlier_contract_hold_nothing_and_keep_their_history() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger.redb");
    let ledger = Ledger::open(&path, OpenMode::Create).unwrap();
    let channel = payee_channel(1);
    ledger.put_payee_channel(channel).await.unwrap();
    ledger.serve(served(1, PRICE, call(1))).await.unwrap();
    // Everything earned is claimed; what the payer left in the channel is the payer's.
    ledger.put_payee_channel(farthing_ledger::PayeeChannelFacts { claimed: PRICE, ..channel }).await.unwrap();
    drop(ledger);
    age(&path);

    let ledger = Ledger::open(&path, OpenMode::Existing).unwrap();
    let [row] = &ledger.payee_channels().unwrap()[..] else { panic!("one channel") };
    assert_eq!((row.spent, row.claimed, row.deposited), (PRICE, PRICE, PRICE));
    // The contract of this program pays nothing on it, so nothing more is served.
    let refused = row.state().admit(Some(micros(2 * PRICE.micros())), PRICE).unwrap_err();
    assert_eq!(refused, RefusalCode::VoucherAboveDeposit);
    assert!(ledger.audit(None).unwrap().violations.is_empty());
}

#[tokio::test]
async fn documents_of_one_namespace_do_not_show_in_another() {
    let ledger = in_memory();
    ledger.put(Namespace::Services, b"b".to_vec(), b"2".to_vec()).await.unwrap();
    ledger.put(Namespace::Services, b"a".to_vec(), b"1".to_vec()).await.unwrap();
    ledger.put(Namespace::Settings, b"a".to_vec(), b"3".to_vec()).await.unwrap();
    let services = ledger.list(Namespace::Services).unwrap();
    assert_eq!(services, [("a".into(), "1".into()), ("b".into(), "2".into())]);
    assert_eq!(ledger.get(Namespace::Settings, b"a").unwrap(), Some("3".into()));
    ledger.delete(Namespace::Services, b"a".to_vec()).await.unwrap();
    ledger.delete(Namespace::Services, b"a".to_vec()).await.unwrap();
    assert_eq!(ledger.get(Namespace::Services, b"a").unwrap(), None);
    assert_eq!(ledger.list(Namespace::Secrets).unwrap(), []);
    assert_eq!(ledger.list(Namespace::Settings).unwrap().len(), 1);
}

#[tokio::test]
async fn documents_and_keys_are_bounded() {
    use farthing_ledger::{DOCUMENT_BYTES_MAX, DOCUMENT_KEY_BYTES_MAX};
    let ledger = in_memory();
    let put = |key: usize, value: usize| ledger.put(Namespace::Settings, vec![1; key], vec![2; value]);
    put(DOCUMENT_KEY_BYTES_MAX - 1, 0).await.unwrap();
    put(DOCUMENT_KEY_BYTES_MAX, DOCUMENT_BYTES_MAX).await.unwrap();
    put(DOCUMENT_KEY_BYTES_MAX + 1, 0).await.unwrap_err();
    put(1, DOCUMENT_BYTES_MAX + 1).await.unwrap_err();
}
