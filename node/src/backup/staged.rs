//! A backup that takes the place of a node: made ready beside it while it runs, and put in its place by the next start.
//!
//! [`stage`] checks everything that could keep the restored node from starting, and writes it into `.restore`, the file
//! `ready` last. [`apply`] runs before anything of the folder is read: it moves the files of now into a folder of their
//! own, which is never removed, and the restored ones to their names, one rename each. Interrupted anywhere, the next
//! start goes on where it ended. It begins again only while that may have been interrupted: `ready` is gone for good before the
//! node writes anything, because a restoration that came back would move away what the node has written since.

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use farthing_control::types::WalletBalance;
use farthing_os::{
    clock,
    file_names::{self, BACKED_UP},
    files,
    secret::SecretText,
};
use farthing_wallet::Wallet;
use serde::{Deserialize, Serialize};

use super::{
    BackupContents, BackupError, BackupSummary, discard, make_folder,
    money_at_end::{EarnedOn, MoneyAtEnd},
    open, put_into, read, verify,
};

/// The contents of `ready`.
#[derive(Serialize, Deserialize)]
struct StagedPlan {
    /// The folder, within the data folder, that the files of the replaced node are moved to.
    kept_in: String,
    /// The files that the backup has.
    files: Vec<String>,
    /// The money of the replaced node: its ledger is opened by nobody any more, and the one in its place may know less, also
    /// of the same wallet. It is as of now, and from the node's end on as of then.
    #[serde(default)]
    left: Option<WalletBalance>,
    /// The part of it that payers owe.
    #[serde(default)]
    earned: Vec<EarnedOn>,
}

/// Makes a backup ready to replace the node of `data_dir` at its next start. `check_settings` is told where the restored
/// `farthing.toml` lies, and says what is wrong with it. `own` tells the present node's money once all else is done: it is kept
/// with its files. Takes its time: call it outside of async tasks.
///
/// Answers with what is in the backup, and where the present node's files will be.
///
/// # Errors
/// [`BackupError`]: what would keep the restored node from running. Nothing is replaced then.
pub fn stage(
    bytes: &[u8],
    passphrase: &SecretText,
    wallet_passphrase: Option<&SecretText>,
    data_dir: &Path,
    own: impl FnOnce() -> MoneyAtEnd,
    check_settings: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(BackupSummary, PathBuf), BackupError> {
    let facts = verify(bytes, passphrase, data_dir)?;
    if facts.violations > 0 {
        return Err(BackupError::Violated(facts.violations));
    }
    let contents = open(bytes, passphrase)?;
    let folder = data_dir.join(file_names::RESTORE);
    discard(&folder)?;
    make_folder(&folder)?;
    let kept_in =
        format!("{}{}", file_names::REPLACED_PREFIX, clock::timestamp(clock::now_secs()).replace(':', ""));
    let ready = prepare(&contents, &folder, wallet_passphrase, check_settings).and_then(|()| {
        let MoneyAtEnd { balance, earned } = own();
        let (kept_in, files) = (kept_in.clone(), facts.files.clone());
        write_plan(&folder, &StagedPlan { kept_in, files, left: Some(balance), earned })
    });
    if let Err(error) = ready {
        // Without `ready` it is nothing but a leftover.
        let _ = fs::remove_dir_all(&folder);
        return Err(error);
    }
    Ok((facts, data_dir.join(kept_in)))
}

fn prepare(
    contents: &BackupContents,
    folder: &Path,
    wallet_passphrase: Option<&SecretText>,
    check_settings: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<(), BackupError> {
    put_into(contents, folder)?;
    Wallet::open(folder, wallet_passphrase).map_err(BackupError::WalletClosed)?;
    let settings = folder.join(file_names::SETTINGS);
    if settings.exists() { check_settings(&settings).map_err(BackupError::Settings) } else { Ok(()) }
}

fn write_plan(folder: &Path, plan: &StagedPlan) -> Result<(), BackupError> {
    let path = folder.join(file_names::RESTORE_READY);
    let json = serde_json::to_vec(plan).unwrap_or_default();
    files::replace_private(&path, &json).map_err(|source| BackupError::Io { path, source })
}

/// Reads the plan of a restoration that is ready; `None` for one that is not, or that cannot be understood.
fn read_plan(folder: &Path) -> Result<Option<StagedPlan>, BackupError> {
    let ready = folder.join(file_names::RESTORE_READY);
    Ok(read(&ready)?.and_then(|json| serde_json::from_slice(&json).ok()))
}

/// Notes the money of a node that ends, where a backup is ready to take its place: since that was made ready it has served and
/// bought.
///
/// # Errors
/// [`BackupError::Io`]; the note of before stays.
pub fn note_left(data_dir: &Path, own: MoneyAtEnd) -> Result<(), BackupError> {
    let folder = data_dir.join(file_names::RESTORE);
    let MoneyAtEnd { balance, earned } = own;
    match read_plan(&folder)? {
        Some(plan) => write_plan(&folder, &StagedPlan { left: Some(balance), earned, ..plan }),
        None => Ok(()),
    }
}

/// Returns whether a backup waits to take the node's place.
pub fn is_waiting(data_dir: &Path) -> bool {
    data_dir.join(file_names::RESTORE).join(file_names::RESTORE_READY).exists()
}

/// Puts the backup that is ready in the node's place, and tells where the replaced files are. The folder must be locked,
/// and nothing of it open.
///
/// # Errors
/// [`BackupError::Io`]; the next start goes on with it.
pub fn apply(data_dir: &Path) -> Result<Option<PathBuf>, BackupError> {
    apply_with(data_dir, |folder| fs::File::open(folder)?.sync_all())
}

/// The same with a way to make the entries of a folder last over a power cut.
fn apply_with(
    data_dir: &Path,
    mut sync: impl FnMut(&Path) -> io::Result<()>,
) -> Result<Option<PathBuf>, BackupError> {
    let folder = data_dir.join(file_names::RESTORE);
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| BackupError::Io { path, source }
    };
    let Some(plan) = read_plan(&folder)? else {
        discard(&folder)?;
        return Ok(None);
    };
    let kept_in = data_dir.join(&plan.kept_in);
    make_folder(&kept_in)?;
    if let Some(left) = &plan.left {
        let earned = serde_json::to_vec(&plan.earned).unwrap_or_default();
        let left = serde_json::to_vec(left).unwrap_or_default();
        for (name, json) in [(file_names::LEFT, left), (file_names::EARNED, earned)] {
            let path = kept_in.join(name);
            files::replace_private(&path, &json).map_err(failed(&path))?;
        }
    }
    let mut changed = BTreeSet::from([kept_in.clone(), data_dir.to_owned()]);
    for name in BACKED_UP {
        let is_brought = plan.files.iter().any(|file| file == name);
        // Earlier programs' backups have none: the one that this machine's clients trust stays.
        if name == file_names::AUTHORITY_PATH && !is_brought {
            continue;
        }
        let (restored, own, kept) = (folder.join(name), data_dir.join(name), kept_in.join(name));
        for folder in [&own, &kept].into_iter().filter_map(|file| file.parent()) {
            make_folder(folder)?;
            changed.insert(folder.to_owned());
        }
        let is_restored = is_brought && !restored.exists();
        if !is_restored && own.exists() {
            fs::rename(&own, &kept).map_err(failed(&own))?;
        }
        if restored.exists() {
            fs::rename(&restored, &own).map_err(failed(&restored))?;
        }
    }
    for changed in &changed {
        sync(changed).map_err(failed(changed))?;
    }
    discard(&folder)?;
    sync(data_dir).map_err(failed(data_dir))?;
    Ok(Some(kept_in))
}

#[cfg(test)]
mod tests {
    use farthing_ledger::{Ledger, OpenMode};
    use farthing_protocol::{ChannelId, Usdc};

    use super::*;
    use crate::backup::{Lock, Recipient, make, money_at_end::noted_in};

    fn folder_with(files: &[(&str, &str)], plan: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(file_names::RESTORE)).unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            make_folder(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let plan = StagedPlan {
            kept_in: "replaced-x".into(),
            files: plan.iter().map(ToString::to_string).collect(),
            left: None,
            earned: Vec::new(),
        };
        write_plan(&folder.path().join(file_names::RESTORE), &plan).unwrap();
        folder
    }

    fn read(folder: &tempfile::TempDir, name: &str) -> Option<String> {
        fs::read_to_string(folder.path().join(name)).ok()
    }

    #[test]
    fn the_backups_files_take_the_place_of_the_nodes_which_are_kept() {
        let old =
            [("ledger.redb", "old"), ("wallet.json", "old"), ("farthing.toml", "old"), ("notes", "mine")];
        let new = [(".restore/ledger.redb", "new"), (".restore/wallet.json", "new")];
        let folder = folder_with(&[&old[..], &new].concat(), &["ledger.redb", "wallet.json"]);
        assert!(is_waiting(folder.path()));
        assert_eq!(apply(folder.path()).unwrap(), Some(folder.path().join("replaced-x")));
        for name in ["ledger.redb", "wallet.json"] {
            assert_eq!(read(&folder, name).as_deref(), Some("new"), "{name}");
            assert_eq!(read(&folder, &format!("replaced-x/{name}")).as_deref(), Some("old"), "{name}");
        }
        assert_eq!(read(&folder, "farthing.toml"), None, "the backup had none");
        assert_eq!(read(&folder, "replaced-x/farthing.toml").as_deref(), Some("old"));
        assert_eq!(read(&folder, "notes").as_deref(), Some("mine"));
        assert_eq!(apply(folder.path()).unwrap(), None, "once");
        assert!(!folder.path().join(file_names::RESTORE).exists());
    }

    #[test]
    fn the_authority_that_clients_trust_is_replaced_by_the_backups_and_stays_where_it_has_none() {
        let old = [("tls/authority.pem", "old"), ("tls/own-name", "mine"), ("wallet.json", "old")];
        let new = [(".restore/tls/authority.pem", "new"), (".restore/wallet.json", "new")];
        let folder = folder_with(&[&old[..], &new].concat(), &["tls/authority.pem", "wallet.json"]);
        apply(folder.path()).unwrap();
        assert_eq!(read(&folder, "tls/authority.pem").as_deref(), Some("new"));
        assert_eq!(read(&folder, "replaced-x/tls/authority.pem").as_deref(), Some("old"));
        assert_eq!(read(&folder, "tls/own-name").as_deref(), Some("mine"));
        let listed = super::super::replaced::all(folder.path()).unwrap();
        assert_eq!(listed[0].bytes, 6, "two files of three bytes");

        let folder = folder_with(&[&old[..], &new[1..]].concat(), &["wallet.json"]);
        apply(folder.path()).unwrap();
        assert_eq!(read(&folder, "tls/authority.pem").as_deref(), Some("old"));
        assert_eq!(read(&folder, "wallet.json").as_deref(), Some("new"));
    }

    #[test]
    fn an_interrupted_restoration_is_finished_by_the_next_start() {
        // The ledger has its place already; of the wallet only the old one was moved away.
        let files = [
            ("ledger.redb", "new"),
            (".restore/wallet.json", "new"),
            ("secrets.toml", "old"),
            (".restore/secrets.toml", "new"),
        ];
        let folder = folder_with(&files, &["ledger.redb", "secrets.toml", "wallet.json"]);
        let kept = folder.path().join("replaced-x");
        fs::create_dir(&kept).unwrap();
        for name in ["ledger.redb", "wallet.json"] {
            fs::write(kept.join(name), "old").unwrap();
        }
        apply(folder.path()).unwrap();
        for name in ["ledger.redb", "secrets.toml", "wallet.json"] {
            assert_eq!(read(&folder, name).as_deref(), Some("new"), "{name}");
            assert_eq!(read(&folder, &format!("replaced-x/{name}")).as_deref(), Some("old"), "{name}");
        }
    }

    #[test]
    fn the_money_at_the_nodes_end_is_noted_beside_its_files_also_after_an_interruption() {
        let folder = folder_with(&[("wallet.json", "new"), ("replaced-x/left.json", "half of")], &[]);
        let amount = Usdc::from_micros(7);
        let left = WalletBalance {
            address: farthing_protocol::Address::ZERO.into(),
            usdc: None,
            eth: None,
            in_channels: amount.into(),
            unclaimed: amount.into(),
            stale: None,
        };
        let restore = folder.path().join(file_names::RESTORE);
        fs::remove_file(restore.join(file_names::RESTORE_READY)).unwrap();
        let files = vec!["wallet.json".to_owned()];
        let plan =
            StagedPlan { kept_in: "replaced-x".into(), files, left: Some(left.clone()), earned: Vec::new() };
        write_plan(&restore, &plan).unwrap();
        let unclaimed = Usdc::from_micros(94).into();
        let earned = EarnedOn { channel: ChannelId::NONE.into(), total: unclaimed, unclaimed };
        let at_its_end = MoneyAtEnd { balance: WalletBalance { unclaimed, ..left }, earned: vec![earned] };
        note_left(folder.path(), at_its_end.clone()).unwrap();
        apply(folder.path()).unwrap();
        let noted = read(&folder, "replaced-x/left.json").unwrap();
        assert_eq!(serde_json::from_str::<WalletBalance>(&noted).unwrap(), at_its_end.balance);
        assert_eq!(noted_in(&folder.path().join("replaced-x")), at_its_end.earned);
        assert_eq!(read(&folder, "wallet.json").as_deref(), Some("new"));

        note_left(folder.path(), at_its_end).unwrap();
        assert!(!is_waiting(folder.path()), "nothing takes the place of this one");
    }

    #[test]
    fn the_money_of_the_same_wallet_is_noted_as_well() {
        let (data, passphrase) = (tempfile::tempdir().unwrap(), SecretText::new("four random words here"));
        let wallet = Wallet::open_or_create(data.path(), None).unwrap().wallet.address();
        let ledger = Ledger::open(&data.path().join(file_names::LEDGER), OpenMode::Create).unwrap();
        let lock = Lock::Recipient(Recipient::with(&passphrase, [4, 8, 1]).unwrap());
        let bytes = make(data.path(), &ledger, &wallet.to_string(), &lock, 7).unwrap();
        drop(ledger);
        let unclaimed = Usdc::from_micros(22).into();
        let own = MoneyAtEnd {
            balance: WalletBalance {
                address: wallet.into(),
                usdc: None,
                eth: None,
                in_channels: Usdc::ZERO.into(),
                unclaimed,
                stale: None,
            },
            earned: vec![EarnedOn { channel: ChannelId::NONE.into(), total: unclaimed, unclaimed }],
        };
        let noted = || own.clone();
        let (_, kept_in) = stage(&bytes, &passphrase, None, data.path(), noted, |_| Ok(())).unwrap();
        apply(data.path()).unwrap();
        let left = fs::read_to_string(kept_in.join(file_names::LEFT)).unwrap();
        assert_eq!(serde_json::from_str::<WalletBalance>(&left).unwrap(), own.balance);
        assert_eq!(noted_in(&kept_in), own.earned);
    }

    #[test]
    fn a_restoration_is_over_for_good_once_its_files_are_in_place_for_good() {
        let files = [("wallet.json", "old"), (".restore/wallet.json", "new")];
        let folder = folder_with(&files, &["wallet.json"]);
        let (data_dir, mut synced) = (folder.path(), Vec::new());
        let sync = |at: &Path| {
            synced.push((at.to_owned(), is_waiting(data_dir)));
            Ok(())
        };
        apply_with(data_dir, sync).unwrap();
        let kept_in = data_dir.join("replaced-x");
        let expected = [(data_dir.to_owned(), true), (kept_in, true), (data_dir.to_owned(), false)];
        assert_eq!(synced, expected);
    }

    #[test]
    fn what_was_not_made_ready_replaces_nothing() {
        let folder =
            folder_with(&[("wallet.json", "old"), (".restore/wallet.json", "new")], &["wallet.json"]);
        fs::remove_file(folder.path().join(file_names::RESTORE).join(file_names::RESTORE_READY)).unwrap();
        assert!(!is_waiting(folder.path()));
        assert_eq!(apply(folder.path()).unwrap(), None);
        assert_eq!(read(&folder, "wallet.json").as_deref(), Some("old"));
        assert!(!folder.path().join(file_names::RESTORE).exists());
    }
}
