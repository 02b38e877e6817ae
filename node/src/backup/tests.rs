//! A backup opens with its passphrase alone, and is restored whole or not at all.

use std::{collections::BTreeSet, os::unix::fs::PermissionsExt};

use farthing_ledger::{PayeeChannelFacts, Served};
use farthing_protocol::{Address, Escrow, SecretKey, Usdc, Voucher};

use super::{
    seal::{HEAD_BYTES, fit, seal_under},
    *,
};
use crate::{
    consumer::{rules::Rules, spending::SpendingCaps},
    escrows::Escrows,
    testing::charged_call,
};

const CHEAP: [u8; 3] = [4, 8, 1];

fn passphrase() -> SecretText {
    SecretText::new("four random words here")
}

/// A backup of a folder with every file, with cheaper protection.
fn made(folder: &Path, lock: Option<&Lock>) -> Vec<u8> {
    made_in_format(FORMAT, folder, lock)
}

/// As a program of that format makes it.
fn made_in_format(format: u8, folder: &Path, lock: Option<&Lock>) -> Vec<u8> {
    let ledger = Ledger::open(&folder.join(file_names::LEDGER), OpenMode::Create).unwrap();
    made_of(&ledger, format, folder, lock)
}

fn made_of(ledger: &Ledger, format: u8, folder: &Path, lock: Option<&Lock>) -> Vec<u8> {
    for name in BACKED_UP.iter().filter(|name| **name != file_names::LEDGER) {
        write(&folder.join(name), format!("{name} of the old node").as_bytes()).unwrap();
    }
    let names = BACKED_UP.iter().filter(|name| format > 1 || **name != file_names::AUTHORITY_PATH);
    let files = names.map(|name| {
        let bytes = match *name {
            file_names::LEDGER => copy_of(ledger, folder).unwrap(),
            name => fs::read(folder.join(name)).unwrap(),
        };
        StoredFile { name: (*name).to_owned(), bytes: bytes.into() }
    });
    let contents = BackupContents { format, made_secs: 7, wallet: "0x00".to_owned(), files: files.collect() };
    let plain = encoded(&contents).unwrap();
    match lock {
        None => seal_under(&plain, &passphrase(), CHEAP).unwrap(),
        Some(lock) => seal::seal(&plain, lock).unwrap(),
    }
}

fn recipient() -> Lock {
    Lock::Recipient(Recipient::with(&passphrase(), CHEAP).unwrap())
}

#[test]
fn what_is_restored_is_what_was_backed_up_with_spending_stopped() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let backup = made(old.path(), None);
    let names = fs::read_dir(old.path()).unwrap().count();
    assert_eq!(names, BACKED_UP.len(), "the copy of the ledger is not left behind");
    let facts = verify(&backup, &passphrase(), old.path()).unwrap();
    assert_eq!((facts.made_secs, facts.channels, facts.violations), (7, 0, 0));
    let data_dir = new.path().join("node");
    assert_eq!(restore(&backup, &passphrase(), &data_dir).unwrap(), facts);
    let secrets = fs::read_to_string(data_dir.join(file_names::SECRETS)).unwrap();
    assert!(
        secrets.starts_with("default = \"farthing_sk_"),
        "a new one in place of a file that cannot be read"
    );
    for name in BACKED_UP.iter().filter(|name| ![file_names::LEDGER, file_names::SECRETS].contains(*name)) {
        assert_eq!(
            fs::read(data_dir.join(name)).unwrap(),
            fs::read(old.path().join(name)).unwrap(),
            "{name}"
        );
        let mode = fs::metadata(data_dir.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let ledger = Ledger::open(&data_dir.join(file_names::LEDGER), OpenMode::Existing).unwrap();
    let limits = SpendingCaps { price_max: Usdc::ZERO, per_day: Usdc::ZERO, per_secret_day: Usdc::ZERO };
    let rules = Rules::restore(ledger, limits, true).unwrap();
    assert!(rules.stopped().is_some(), "nothing is bought before its user says so");
}

#[test]
fn a_backup_of_before_is_restored_without_an_authority_and_one_of_a_later_program_says_so() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data_dir = new.path().join("node");
    restore(&made_in_format(1, old.path(), None), &passphrase(), &data_dir).unwrap();
    assert!(
        data_dir.join(file_names::WALLET).exists() && !data_dir.join(file_names::AUTHORITY_PATH).exists()
    );
    for (format, told) in [(0, "not a backup from this program"), (3, "newer program")] {
        let old = tempfile::tempdir().unwrap();
        let backup = made_in_format(format, old.path(), None);
        let refused = verify(&backup, &passphrase(), old.path()).unwrap_err();
        assert!(refused.to_string().contains(told), "{format}: {refused}");
    }
}

#[test]
fn a_backup_is_looked_at_where_nobody_else_reads_and_an_interrupted_look_leaves_nothing_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let backup = made(folder.path(), None);
    let all = folder.path().join(".verify");
    let (interrupted, other) =
        (StagingFolder::within(folder.path()).unwrap(), StagingFolder::within(folder.path()).unwrap());
    for private in [&all, &interrupted.folder, &other.folder] {
        assert_eq!(fs::metadata(private).unwrap().permissions().mode() & 0o777, 0o700, "{private:?}");
    }
    drop(other);
    assert!(interrupted.folder.exists());
    std::mem::forget(interrupted);
    verify(&backup, &passphrase(), folder.path()).unwrap();
    assert_eq!(fs::read_dir(&all).unwrap().count(), 1, "the one that was interrupted");
    remove_leftovers(folder.path()).unwrap();
    assert!(!all.exists());
    verify(&backup, &passphrase(), folder.path()).unwrap();
    assert!(!all.exists());
    fs::write(&all, "in the way").unwrap();
    let refused = verify(&backup, &passphrase(), folder.path()).unwrap_err();
    assert!(refused.to_string().contains("/.verify/"), "it is looked at nowhere else: {refused}");
}

#[tokio::test]
async fn signatures_are_verified_in_each_contract_that_the_node_noted_and_counted_where_it_noted_none() {
    let key = SecretKey::from_bytes(&[1; 32]).unwrap();
    let payer = key.address();
    let [payee, token, contract, other] = [2, 3, 4, 5].map(|n| Address::from_bytes([n; 20]));
    let config = ChannelConfig { payer, payee, token, signer: payer, close_delay_secs: 1, salt: [0; 32] };
    let noted = Escrow { chain_id: 1, contract, token };
    let (id, charged) = (config.id(&noted.domain()), Usdc::from_micros(5));
    for (signed_for, is_noted, unverified, violations) in
        [(contract, true, 0, 0), (other, true, 0, 1), (other, false, 1, 0)]
    {
        let folder = tempfile::tempdir().unwrap();
        let ledger = Ledger::open(&folder.path().join(file_names::LEDGER), OpenMode::Create).unwrap();
        let facts = PayeeChannelFacts { id, config, deposited: charged, claimed: Usdc::ZERO, closing: false };
        ledger.put_payee_channel(facts).await.unwrap();
        let domain = Escrow { contract: signed_for, ..noted }.domain();
        let voucher = Voucher { channel: id, cumulative: charged };
        let voucher = voucher.verify(&domain, voucher.sign(&domain, &key), payer).unwrap();
        let call = charged_call(charged);
        ledger.serve(Served { payer, channel: id, voucher: Some(voucher), call }).await.unwrap();
        if is_noted {
            Escrows::note(&ledger, noted, &BTreeSet::new()).await.unwrap();
        }
        let backup = made_of(&ledger, FORMAT, folder.path(), None);
        let facts = verify(&backup, &passphrase(), folder.path()).unwrap();
        assert_eq!((facts.channels, facts.unverified, facts.violations), (1, unverified, violations));
    }
}

#[test]
fn a_folder_with_a_node_is_left_as_it_is() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let backup = made(old.path(), None);
    for name in [file_names::WALLET, file_names::LEDGER, "secrets.toml"] {
        let data_dir = new.path().join(name);
        fs::create_dir(&data_dir).unwrap();
        fs::write(data_dir.join(name), "mine").unwrap();
        fs::set_permissions(&data_dir, fs::Permissions::from_mode(0o755)).unwrap();
        let refused = restore(&backup, &passphrase(), &data_dir).unwrap_err();
        assert!(matches!(&refused, BackupError::InUse { path } if *path == data_dir.join(name)), "{refused}");
        assert_eq!(fs::read(data_dir.join(name)).unwrap(), b"mine");
        assert_eq!(fs::read_dir(&data_dir).unwrap().count(), 1, "not even a lock is made");
        assert_eq!(fs::metadata(&data_dir).unwrap().permissions().mode() & 0o777, 0o755);
    }
}

#[test]
fn another_passphrase_and_a_changed_byte_are_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let backup = made(folder.path(), None);
    let wrong = verify(&backup, &SecretText::new("four random words there"), Path::new("/nowhere"));
    assert!(matches!(wrong, Err(BackupError::WrongPassphrase)), "{wrong:?}");
    for at in [12, 30, HEAD_BYTES, backup.len() / 2, backup.len() - 1] {
        let mut changed = backup.clone();
        changed[at] ^= 1;
        let found = verify(&changed, &passphrase(), Path::new("/nowhere"));
        assert!(matches!(found, Err(BackupError::WrongPassphrase)), "byte {at}: {found:?}");
    }
    for broken in
        [&backup[..HEAD_BYTES - 1], b"", b"PK\x03\x04", &[b"FARTHBK1\xff\x08\x01", &[0; 60][..]].concat()]
    {
        assert!(matches!(verify(broken, &passphrase(), Path::new("/nowhere")), Err(BackupError::NoBackup)));
    }
    assert!(matches!(
        verify(&backup[..backup.len() - 1], &passphrase(), Path::new("/nowhere")),
        Err(BackupError::WrongPassphrase)
    ));
}

#[test]
fn a_short_passphrase_is_refused_and_nothing_inside_is_shown() {
    for (text, fits) in [("123456789", false), ("1234567890", true)] {
        assert_eq!(fit(&SecretText::new(text)).is_ok(), fits, "{text}");
    }
    let stored = StoredFile { name: "secrets.toml".to_owned(), bytes: b"farthing_sk_".to_vec().into() };
    assert!(!format!("{stored:?}").contains("102"), "the bytes are shown");
}

#[test]
fn what_a_node_closes_for_a_recipient_only_the_passphrase_opens() {
    let (old, new) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let lock = recipient();
    let backup = made(old.path(), Some(&lock));
    assert!(is_backup(&backup));
    let facts = verify(&backup, &passphrase(), old.path()).unwrap();
    assert_eq!(restore(&backup, &passphrase(), &new.path().join("node")).unwrap(), facts);
    let wrong = verify(&backup, &SecretText::new("four random words there"), Path::new("/nowhere"));
    assert!(matches!(wrong, Err(BackupError::WrongPassphrase)), "{wrong:?}");
    for at in [12, 30, 60, 83, 84, backup.len() / 2, backup.len() - 1] {
        let mut changed = backup.clone();
        changed[at] ^= 1;
        let found = verify(&changed, &passphrase(), Path::new("/nowhere"));
        assert!(matches!(found, Err(BackupError::WrongPassphrase)), "byte {at}: {found:?}");
    }
    assert!(matches!(
        verify(&backup[..84], &passphrase(), Path::new("/nowhere")),
        Err(BackupError::NoBackup)
    ));
    // The same contents, for the same recipient: another key each time.
    let plain = b"the same".to_vec();
    let (one, other) = (seal::seal(&plain, &lock).unwrap(), seal::seal(&plain, &lock).unwrap());
    assert_eq!(one[..27], other[..27]);
    assert_ne!(one[27..60], other[27..60]);
    assert_ne!(one[84..], other[84..]);
}

#[test]
fn contents_are_encoded_in_one_piece_which_holds_no_second_copy_of_the_ledger() {
    let files = BACKED_UP.map(|name| {
        let bytes = if name == file_names::LEDGER { vec![1; 1_000_000] } else { vec![2; 100] };
        StoredFile { name: name.to_owned(), bytes: bytes.into() }
    });
    let wallet = Address::from_bytes([1; 20]).to_string();
    let contents = BackupContents { format: FORMAT, made_secs: u64::MAX, wallet, files: files.into() };
    let plain = encoded(&contents).unwrap();
    assert_eq!(plain.capacity(), bytes_of(&contents.files) + BESIDE_FILES_BYTES_MAX, "it never grew");
    assert!(plain.len() > 1_000_600, "{}", plain.len());
}
