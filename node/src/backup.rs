//! A backup: everything that money and identity depend on, in one file that a passphrase opens.
//!
//! The contents are CBOR ([`BackupContents`]): wallet, passphrase file where there is one, settings file, secrets, the
//! authority of the node's certificates, so that whoever trusts the node goes on to, and a copy of the ledger without the
//! bodies of answers; [`seal`] closes and opens them. A restored node buys nothing until
//! its user says so: since the backup was made more may have been promised, and each owner is asked before anything else
//! is signed. Its secrets are new ones: those of the backup may have been revoked or replaced since, because others had them.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use farthing_ledger::{Ledger, LedgerError, Namespace, OpenError, OpenMode};
use farthing_os::{
    clock,
    file_names::{self, BACKED_UP},
    files,
    lock::DataFolderError,
    secret::SecretText,
};
use farthing_protocol::{ChannelConfig, ChannelId};
use farthing_wallet::{WalletError, lock_folder};
use minicbor::{Decode, Encode, bytes::ByteVec};
use zeroize::Zeroizing;

use crate::{
    consumer::rules,
    escrows,
    secret::file::{SecretFile, SecretFileError},
};

pub mod automatic;
mod folder;
pub mod money_at_end;
pub mod replaced;
mod seal;
pub mod staged;

pub use automatic::Automatic;
pub use farthing_control::types::BackupFacts as BackupSummary;
pub use folder::{BackupOrigin, Backups};
pub use seal::{Lock, Recipient};

use seal::PASSPHRASE_CHARS_MIN;

const WRITTEN_DOWN_KEY: &[u8] = b"phrase-written-down";

/// Made and opened in memory, twice over.
const CONTENTS_BYTES_MAX: usize = 512 * 1024 * 1024;
/// The wallet's address, and the files' names and lengths, in CBOR.
const BESIDE_FILES_BYTES_MAX: usize = 1024;
/// The format that is written. 1 is read as well: it has no authority.
const FORMAT: u8 = 2;
/// The reason that there is no backup, or that none can be restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    #[error("the passphrase has fewer than {PASSPHRASE_CHARS_MIN} characters")]
    ShortPassphrase,
    #[error("{path} cannot be read or written", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("the ledger cannot be copied")]
    NotCopied(#[source] LedgerError),
    #[error("the ledger in the backup cannot be opened")]
    NotOpened(#[source] OpenError),
    #[error("the ledger in the backup cannot be read")]
    NotRead(#[source] LedgerError),
    #[error(
        "{path} is no longer this node's wallet, so a backup with it would be useless",
        path = .path.display()
    )]
    WalletUnread { path: PathBuf },
    #[error("the contents are larger than 512 MiB")]
    TooLarge,
    #[error("the file is not a backup from this program, or it is incomplete")]
    NoBackup,
    #[error("the file has format {found} from a newer program; this program knows formats up to {FORMAT}")]
    Newer { found: u8 },
    #[error("the passphrase is wrong, or the file was changed")]
    WrongPassphrase,
    #[error("the disk with {path} has too little room for a backup", path = .path.display())]
    NoRoom { path: PathBuf },
    #[error("the system does not have enough memory or random numbers")]
    Resources,
    #[error("{path} already exists and is not replaced", path = .path.display())]
    InUse { path: PathBuf },
    #[error("its ledger does not add up in {0} places")]
    Violated(u64),
    #[error("the wallet in the backup cannot be opened here: {0}")]
    WalletClosed(#[source] WalletError),
    #[error("the settings in the backup do not work on this machine: {0}")]
    Settings(String),
    #[error(transparent)]
    Secrets(#[from] SecretFileError),
    #[error(transparent)]
    Folder(#[from] DataFolderError),
}

impl BackupError {
    pub fn next_step(&self) -> Option<&str> {
        Some(match self {
            Self::ShortPassphrase => "use four random words or more",
            Self::Io { .. } => "check the path and its owner",
            Self::NotCopied(error) => error.next_step(),
            Self::NotOpened(_) | Self::NotRead(_) | Self::Violated(_) => "use an earlier backup",
            Self::WalletUnread { .. } => {
                "put the file back from an earlier backup, or send the money to another wallet while this node runs"
            }
            Self::TooLarge => "copy the data folder of the stopped node instead",
            Self::NoBackup => "choose another file",
            Self::Newer { .. } => "restore it with the version that wrote it, or a later one",
            Self::WrongPassphrase => "try again, or use an earlier backup",
            Self::NoRoom { .. } => "free some disk space, or keep fewer backups",
            Self::Resources => "free some memory, then try again",
            Self::InUse { .. } => "name an empty folder with --data",
            Self::WalletClosed(error) => return error.next_step(),
            Self::Secrets(error) => error.next_step(),
            Self::Folder(error) => error.next_step(),
            Self::Settings(_) => return None,
        })
    }
}

#[derive(Debug, Encode, Decode)]
#[cbor(map)]
struct BackupContents {
    #[n(0)]
    format: u8,
    /// Seconds since the Unix epoch.
    #[n(1)]
    made_secs: u64,
    /// Address, as text.
    #[n(2)]
    wallet: String,
    #[n(3)]
    files: Vec<StoredFile>,
}

#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredFile {
    #[n(0)]
    name: String,
    #[n(1)]
    bytes: ByteVec,
}

farthing_os::hidden!(StoredFile { name });

/// A backup of the node that runs on `data_dir`, as bytes. Under a passphrase it takes about a second of one core and 256 MiB, and the
/// time to copy the ledger: call it outside of async tasks.
pub fn make(
    data_dir: &Path,
    ledger: &Ledger,
    wallet: &str,
    lock: &Lock,
    now_secs: u64,
) -> Result<Vec<u8>, BackupError> {
    if let Lock::Passphrase(passphrase) = lock {
        seal::fit(passphrase)?;
    }
    let mut stored = Vec::new();
    for name in BACKED_UP {
        let bytes = match name {
            file_names::LEDGER => Some(copy_of(ledger, data_dir)?),
            name => read(&data_dir.join(name))?,
        };
        let is_wallet = |bytes: &[u8]| replaced::wallet_in(bytes).as_deref() == Some(wallet);
        if name == file_names::WALLET && !bytes.as_deref().is_some_and(is_wallet) {
            return Err(BackupError::WalletUnread { path: data_dir.join(name) });
        }
        stored.extend(bytes.map(|bytes| StoredFile { name: name.to_owned(), bytes: bytes.into() }));
    }
    if bytes_of(&stored) > CONTENTS_BYTES_MAX {
        return Err(BackupError::TooLarge);
    }
    let contents =
        BackupContents { format: FORMAT, made_secs: now_secs, wallet: wallet.to_owned(), files: stored };
    let plain = encoded(&contents)?;
    drop(contents);
    seal::seal(&plain, lock)
}

fn bytes_of(files: &[StoredFile]) -> usize {
    files.iter().map(|stored| stored.bytes.len()).sum()
}

/// The contents in one piece of memory, which is wiped: a piece that grows would be copied, and nobody would wipe what it was.
fn encoded(contents: &BackupContents) -> Result<Zeroizing<Vec<u8>>, BackupError> {
    let mut plain = Zeroizing::new(Vec::with_capacity(bytes_of(&contents.files) + BESIDE_FILES_BYTES_MAX));
    minicbor::encode(contents, &mut *plain).map_err(|_| BackupError::Resources)?;
    Ok(plain)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, BackupError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(BackupError::Io { path: path.to_owned(), source }),
    }
}

/// The copy lies in the data folder for a moment: nobody else reads there, and there is room.
fn copy_of(ledger: &Ledger, data_dir: &Path) -> Result<Vec<u8>, BackupError> {
    let path =
        data_dir.join(format!("{}{}.redb", file_names::LEDGER_COPY_PREFIX, uuid::Uuid::new_v4().simple()));
    let copied = ledger.copy_to(&path).map_err(BackupError::NotCopied);
    let bytes = copied.and_then(|()| {
        let length = fs::metadata(&path).map_or(0, |about| about.len());
        if length > CONTENTS_BYTES_MAX as u64 {
            return Err(BackupError::TooLarge);
        }
        fs::read(&path).map_err(|source| BackupError::Io { path: path.clone(), source })
    });
    // A leftover is private, and removed with the next one; it is no reason to fail.
    let _ = fs::remove_file(&path);
    bytes
}

fn open(bytes: &[u8], passphrase: &SecretText) -> Result<BackupContents, BackupError> {
    let plain = seal::open(bytes, passphrase)?;
    let contents: BackupContents = minicbor::decode(&plain).map_err(|_| BackupError::NoBackup)?;
    if contents.format > FORMAT {
        return Err(BackupError::Newer { found: contents.format });
    }
    let known = contents.files.iter().all(|stored| BACKED_UP.contains(&stored.name.as_str()));
    let has = |name: &str| contents.files.iter().any(|stored| stored.name == name);
    if contents.format == 0 || !known || !has(file_names::LEDGER) || !has(file_names::WALLET) {
        return Err(BackupError::NoBackup);
    }
    Ok(contents)
}

/// Returns whether a file begins as a backup does; only [`verify`] knows more.
pub fn is_backup(bytes: &[u8]) -> bool {
    seal::is_sealed(bytes)
}

/// Opens a backup and looks at everything in it. Its ledger lies in a folder of its own within `data_dir` meanwhile: nobody
/// else reads there, there is room, and the next start removes what an interruption leaves. Takes its time, as [`make`].
///
/// # Errors
/// [`BackupError`]: what keeps it from being restored.
pub fn verify(bytes: &[u8], passphrase: &SecretText, data_dir: &Path) -> Result<BackupSummary, BackupError> {
    let contents = open(bytes, passphrase)?;
    look(&contents, &StagingFolder::within(data_dir)?.folder)
}

/// A folder for one look at a backup, which only this user reads, until dropped.
#[derive(Debug)]
struct StagingFolder {
    all: PathBuf,
    folder: PathBuf,
}

impl StagingFolder {
    fn within(data_dir: &Path) -> Result<Self, BackupError> {
        let all = data_dir.join(file_names::VERIFY);
        let folder = all.join(uuid::Uuid::new_v4().simple().to_string());
        make_folder(&folder)?;
        Ok(Self { all, folder })
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        // It stays while another backup is looked at.
        let _ = fs::remove_dir(&self.all);
    }
}

/// Removes the opened ledgers that a look at a backup left when it was interrupted, before anything else is looked at.
///
/// # Errors
/// [`BackupError::Io`]
pub fn remove_leftovers(data_dir: &Path) -> Result<(), BackupError> {
    discard(&data_dir.join(file_names::VERIFY))
}

/// Makes a folder that only this user reads, where it is missing.
fn make_folder(path: &Path) -> Result<(), BackupError> {
    let mut private = fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut private, 0o700);
    let made = private.recursive(true).create(path);
    made.map_err(|source| BackupError::Io { path: path.to_owned(), source })
}

fn discard(folder: &Path) -> Result<(), BackupError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(BackupError::Io { path: folder.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

fn look(contents: &BackupContents, folder: &Path) -> Result<BackupSummary, BackupError> {
    let path = folder.join(file_names::LEDGER);
    write(&path, file_of(contents, file_names::LEDGER))?;
    let ledger = Ledger::open(&path, OpenMode::Existing).map_err(BackupError::NotOpened)?;
    let (channels, unverified, violations) = audit(&ledger).map_err(BackupError::NotRead)?;
    Ok(BackupSummary {
        made_secs: contents.made_secs,
        wallet: contents.wallet.clone(),
        files: contents.files.iter().map(|stored| stored.name.clone()).collect(),
        channels,
        unverified,
        violations,
    })
}

/// Counts the channels of a ledger, those whose signatures nothing here verifies, and the invariants that do not hold. The
/// signatures are verified in each contract that the ledger's node noted: the settings here may be another's.
fn audit(ledger: &Ledger) -> Result<(usize, usize, u64), LedgerError> {
    let paying = ledger.payer_channels()?.into_iter().map(|row| (row.id, row.config));
    let paid = ledger.payee_channels()?.into_iter().map(|row| (row.id, row.config));
    let channels: Vec<(ChannelId, ChannelConfig)> = paying.chain(paid).collect();
    let domains = escrows::domains(ledger)?;
    let is_known =
        |id: ChannelId, config: &ChannelConfig| domains.iter().any(|domain| config.id(domain) == id);
    let unverified = channels.iter().filter(|(id, config)| !is_known(*id, config)).count();
    let without = ledger.audit(None)?.violations_total;
    let mut violations = without;
    for domain in &domains {
        violations += ledger.audit(Some(domain))?.violations_total.saturating_sub(without);
    }
    Ok((channels.len(), unverified, violations))
}

fn file_of<'a>(contents: &'a BackupContents, name: &str) -> &'a [u8] {
    contents.files.iter().find(|stored| stored.name == name).map_or(&[], |stored| &stored.bytes)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
    path.parent().map_or(Ok(()), make_folder)?;
    files::create_private(path, bytes).map_err(|source| BackupError::Io { path: path.to_owned(), source })
}

/// Restores a backup into a folder without a node. Spending is stopped in it until its user resumes it, and its secrets
/// are new ones. Takes its time, as [`make`].
///
/// # Errors
/// [`BackupError`]; a folder that holds anything that a backup does is left as it is.
pub fn restore(bytes: &[u8], passphrase: &SecretText, data_dir: &Path) -> Result<BackupSummary, BackupError> {
    // Before the folder is locked, which changes it, and again when nobody else can put anything there.
    check_free(data_dir)?;
    let _lock = lock_folder(data_dir)?;
    check_free(data_dir)?;
    let facts = verify(bytes, passphrase, data_dir)?;
    put_into(&open(bytes, passphrase)?, data_dir)?;
    Ok(facts)
}

/// Refuses a folder in which something lies that a restoration would replace.
fn check_free(data_dir: &Path) -> Result<(), BackupError> {
    let mut paths = BACKED_UP.iter().map(|name| data_dir.join(name));
    paths.find(|path| path.symlink_metadata().is_ok()).map_or(Ok(()), |path| Err(BackupError::InUse { path }))
}

/// Writes everything into a folder that has none of it, with spending stopped, the ledger marked as restored, and a new
/// secret for each name.
fn put_into(contents: &BackupContents, folder: &Path) -> Result<(), BackupError> {
    for name in BACKED_UP {
        let Some(stored) = contents.files.iter().find(|stored| stored.name == name) else { continue };
        let path = folder.join(name);
        write(&path, &stored.bytes)?;
        match name {
            file_names::LEDGER => stop_spending(&path)?,
            file_names::SECRETS => SecretFile::in_folder(folder).renew()?,
            _ => {}
        }
    }
    Ok(())
}

fn stop_spending(path: &Path) -> Result<(), BackupError> {
    let ledger = Ledger::open(path, OpenMode::Existing).map_err(BackupError::NotOpened)?;
    let marked = async {
        rules::stop_in(&ledger).await?;
        ledger.mark_restored(clock::now_secs()).await
    };
    futures::executor::block_on(marked).map_err(BackupError::NotRead)
}

/// Returns the second at which the user showed to have written the phrase down.
pub fn phrase_written_down(ledger: &Ledger) -> Result<Option<u64>, LedgerError> {
    let stored = ledger.get(Namespace::Settings, WRITTEN_DOWN_KEY)?;
    Ok(stored.and_then(|bytes| <[u8; 8]>::try_from(bytes.as_ref()).ok()).map(u64::from_be_bytes))
}

pub async fn note_phrase_written_down(ledger: &Ledger) -> Result<(), LedgerError> {
    ledger.put(Namespace::Settings, WRITTEN_DOWN_KEY, clock::now_secs().to_be_bytes().to_vec()).await
}

#[cfg(test)]
mod tests;
