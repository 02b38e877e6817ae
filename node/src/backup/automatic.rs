//! A backup every day, without anybody who types a passphrase.
//!
//! The passphrase is typed once; what is kept of it closes backups and opens none ([`Recipient`]). When the next one is
//! due is seen from the files that are there, so a restart changes nothing, and a folder that was emptied is filled
//! again. [`next_secs`] and [`has_room`] decide; [`Automatic`] waits, copies and remembers what went wrong.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use farthing_control::types::{AutomaticBackups, Backup};
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_os::{clock, file_names, secret::SecretText};
use farthing_shared::blocking::{run_blocking, run_in_turn, start_blocking};
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use super::{BackupError, BackupOrigin, Backups, Lock, Recipient, make};

const STORED_KEY: &[u8] = b"automatic-backups";
/// A day's work is what may be lost.
const EVERY_SECS: u64 = 24 * 3_600;
/// Waits after the first, second and third failure in a row, and after each further one.
const AGAIN_AFTER_SECS: [u64; 4] = [60, 10 * 60, 3_600, 6 * 3_600];
/// Clocks are set, and files are removed, without a word.
const LOOK_EVERY_SECS: u64 = 60;
/// Left for the ledger: a full disk closes it.
const SPARE_BYTES: u64 = 64 * 1024 * 1024;
const KEEP_DEFAULT: u32 = 14;
const KEEP_MAX: u32 = 365;

/// The plan for automatic backups, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BackupSchedule {
    recipient: Recipient,
    keep: u32,
}

/// The reason that there was no backup, since when, and the time of the last attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFailure {
    pub cause: String,
    pub since_secs: u64,
    tried_secs: u64,
    /// In a row.
    times: usize,
}

/// The reason that they were not turned on or changed.
#[derive(Debug, thiserror::Error)]
pub enum AutomaticError {
    #[error(transparent)]
    Backup(#[from] BackupError),
    #[error("daily backups need a passphrase; it opens the backups and is not stored")]
    NoPassphrase,
    #[error("`keep` is {0}, expected 1 to {KEEP_MAX}")]
    Keep(u32),
    #[error("daily backups are off")]
    Off,
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl AutomaticError {
    pub fn next_step(&self) -> Option<&str> {
        Some(match self {
            Self::Backup(error) => return error.next_step(),
            Self::NoPassphrase | Self::Keep(_) => "Correct what is named and try again; nothing was changed.",
            Self::Off => "Turn them on with `farthing backup auto on`.",
            Self::Ledger(error) => error.next_step(),
        })
    }
}

/// A backup every day. A cheap handle.
#[derive(Debug, Clone)]
pub struct Automatic(Arc<AutomaticInner>);

#[derive(Debug)]
struct AutomaticInner {
    data_dir: PathBuf,
    backups: Backups,
    ledger: Ledger,
    wallet: String,
    plan: RwLock<Option<BackupSchedule>>,
    failing: Mutex<Option<BackupFailure>>,
    /// Changes, and backups, are made one after the other.
    busy: tokio::sync::Mutex<()>,
    changed: Notify,
}

impl Automatic {
    /// Goes on as before the last stop.
    pub fn restore(
        data_dir: PathBuf,
        backups: Backups,
        ledger: Ledger,
        wallet: String,
    ) -> Result<Self, LedgerError> {
        sweep(&data_dir, file_names::LEDGER_COPY_PREFIX);
        sweep(backups.folder(), ".farthing-");
        let stored = ledger.get(Namespace::Settings, STORED_KEY)?;
        let plan = stored.and_then(|bytes| serde_json::from_slice(&bytes).ok().flatten());
        Ok(Self(Arc::new(AutomaticInner {
            data_dir,
            backups,
            ledger,
            wallet,
            plan: RwLock::new(plan),
            failing: Mutex::default(),
            busy: tokio::sync::Mutex::default(),
            changed: Notify::new(),
        })))
    }

    /// Makes what is due, until it is dropped.
    pub async fn run(self) {
        loop {
            let standing = self.standing().await;
            let now_secs = clock::now_secs();
            match standing.next_secs {
                Some(next_secs) if next_secs <= now_secs => {
                    // What went wrong is remembered, and told as an alert.
                    let _ = self.make_now().await;
                }
                next_secs => {
                    let wait = next_secs.map_or(LOOK_EVERY_SECS, |next| next - now_secs).min(LOOK_EVERY_SECS);
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_secs(wait.max(1))) => {}
                        () = self.0.changed.notified() => {}
                    }
                }
            }
        }
    }

    /// Returns whether they are on, what there is, and what is wrong.
    pub async fn standing(&self) -> AutomaticBackups {
        let plan = self.plan();
        let backups = self.0.backups.clone();
        let newest = start_blocking(move || backups.newest(BackupOrigin::Automatically)).await;
        let newest = newest.ok().and_then(Result::ok).flatten();
        let failing = self.failing();
        let newest_secs = newest.as_ref().map(|newest| newest.written_secs);
        let next = plan.as_ref().map(|_| next_secs(newest_secs, failing.as_ref(), clock::now_secs()));
        AutomaticBackups {
            on: plan.is_some(),
            keep: plan.map_or(KEEP_DEFAULT, |plan| plan.keep),
            folder: self.0.backups.folder().display().to_string(),
            newest,
            next_secs: next,
            problem: failing.as_ref().map(|failing| failing.cause.clone()),
            failing_since_secs: failing.map(|failing| failing.since_secs),
        }
    }

    /// Returns the reason that the newest attempt failed, and since when.
    pub fn failing(&self) -> Option<BackupFailure> {
        self.0.failing.lock().clone()
    }

    /// Turns it on, or changes it: with a passphrase, later backups are opened by that one.
    ///
    /// # Errors
    /// [`AutomaticError`]; nothing is changed then.
    pub async fn turn_on(
        &self,
        passphrase: Option<SecretText>,
        keep: Option<u32>,
    ) -> Result<(), AutomaticError> {
        if let Some(keep) = keep.filter(|keep| !(1..=KEEP_MAX).contains(keep)) {
            return Err(AutomaticError::Keep(keep));
        }
        let _alone = self.0.busy.lock().await;
        let before = self.plan();
        let recipient = match (passphrase, &before) {
            (Some(passphrase), _) => run_blocking(move || Recipient::of(&passphrase)).await?,
            (None, Some(plan)) => plan.recipient.clone(),
            (None, None) => return Err(AutomaticError::NoPassphrase),
        };
        let keep = keep.or(before.map(|plan| plan.keep)).unwrap_or(KEEP_DEFAULT);
        self.set(Some(BackupSchedule { recipient, keep })).await?;
        Ok(())
    }

    /// Turns it off, and forgets what backups were closed with. Those that are there stay.
    ///
    /// # Errors
    /// When the ledger fails; nothing is changed then.
    pub async fn turn_off(&self) -> Result<(), AutomaticError> {
        let _alone = self.0.busy.lock().await;
        Ok(self.set(None).await?)
    }

    /// Makes one now, whether or not it is due.
    ///
    /// # Errors
    /// [`AutomaticError`]; what failed is remembered until one is made.
    pub async fn make_now(&self) -> Result<Backup, AutomaticError> {
        let _alone = self.0.busy.lock().await;
        let plan = self.plan().ok_or(AutomaticError::Off)?;
        let inner = self.0.clone();
        let made = run_in_turn(move || inner.make(plan)).await;
        let mut failing = self.0.failing.lock();
        match &made {
            Ok(file) => {
                tracing::info!(file = file.name, bytes = file.bytes, "a daily backup was made");
                *failing = None;
            }
            Err(error) => {
                tracing::warn!(%error, "the daily backup could not be made");
                let now_secs = clock::now_secs();
                let before = failing.take();
                *failing = Some(BackupFailure {
                    cause: told(error),
                    since_secs: before.as_ref().map_or(now_secs, |before| before.since_secs),
                    tried_secs: now_secs,
                    times: before.map_or(1, |before| before.times + 1),
                });
            }
        }
        Ok(made?)
    }

    fn plan(&self) -> Option<BackupSchedule> {
        self.0.plan.read().clone()
    }

    async fn set(&self, plan: Option<BackupSchedule>) -> Result<(), LedgerError> {
        let bytes = serde_json::to_vec(&plan).expect("texts and numbers are always JSON");
        self.0.ledger.put(Namespace::Settings, STORED_KEY, bytes).await?;
        *self.0.plan.write() = plan;
        *self.0.failing.lock() = None;
        self.0.changed.notify_one();
        Ok(())
    }
}

impl AutomaticInner {
    fn make(&self, plan: BackupSchedule) -> Result<Backup, BackupError> {
        let now_secs = clock::now_secs();
        self.backups.prepare()?;
        let ledger = self.data_dir.join(file_names::LEDGER);
        let ledger_bytes = fs::metadata(&ledger).map_or(0, |about| about.len());
        for folder in [self.data_dir.as_path(), self.backups.folder()] {
            let space = rustix::fs::statvfs(folder)
                .map_err(|error| BackupError::Io { path: folder.to_owned(), source: error.into() })?;
            if !has_room(space.f_bavail.saturating_mul(space.f_frsize), ledger_bytes) {
                return Err(BackupError::NoRoom { path: folder.to_owned() });
            }
        }
        let bytes =
            make(&self.data_dir, &self.ledger, &self.wallet, &Lock::Recipient(plan.recipient), now_secs)?;
        let keep = usize::try_from(plan.keep).unwrap_or(usize::MAX);
        self.backups.add(&bytes, BackupOrigin::Automatically, now_secs, keep)
    }
}

/// Removes what a backup that was interrupted left half written. Failing to is no reason not to start.
fn sweep(folder: &Path, prefix: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(prefix) && (name.ends_with(".redb") || name.ends_with(".tmp")) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// With its cause: a person reads it, away from the log.
fn told(error: &BackupError) -> String {
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(" ({cause})"));
    format!("{error}{cause}")
}

/// Computes when the next one is due: a day after the newest, or a while after the last failure.
fn next_secs(newest_secs: Option<u64>, failing: Option<&BackupFailure>, now_secs: u64) -> u64 {
    if let Some(failing) = failing {
        let wait = AGAIN_AFTER_SECS[failing.times.clamp(1, AGAIN_AFTER_SECS.len()) - 1];
        return failing.tried_secs.min(now_secs) + wait;
    }
    // A file of the future comes from a clock that was wrong, and is not waited for.
    newest_secs
        .filter(|newest| *newest <= now_secs + EVERY_SECS)
        .map_or(now_secs, |newest| newest + EVERY_SECS)
}

/// Returns whether a copy of the ledger, a backup of it, and some room for the ledger itself fit.
const fn has_room(free_bytes: u64, ledger_bytes: u64) -> bool {
    free_bytes >= 2 * ledger_bytes + SPARE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    #[test]
    fn one_is_due_a_day_after_the_newest_and_at_once_where_there_is_none() {
        assert_eq!(next_secs(None, None, NOW), NOW);
        assert_eq!(next_secs(Some(NOW - 10), None, NOW), NOW - 10 + EVERY_SECS);
        assert!(next_secs(Some(NOW - EVERY_SECS), None, NOW) <= NOW);
        assert!(next_secs(Some(NOW - EVERY_SECS + 1), None, NOW) > NOW);
        assert_eq!(next_secs(Some(NOW + 10 * EVERY_SECS), None, NOW), NOW, "a file of the future");
    }

    #[test]
    fn a_failure_is_tried_again_soon_and_then_less_often() {
        let failing =
            |times| BackupFailure { cause: String::new(), since_secs: NOW - 9, tried_secs: NOW, times };
        for (times, wait) in [(1, 60), (2, 600), (3, 3_600), (4, 21_600), (99, 21_600)] {
            assert_eq!(next_secs(Some(NOW - 9), Some(&failing(times)), NOW), NOW + wait, "{times}");
        }
    }

    #[test]
    fn the_ledger_keeps_its_room() {
        let ledger = 10 * 1024 * 1024;
        let enough = 2 * ledger + SPARE_BYTES;
        for (free, fits) in [(enough - 1, false), (enough, true), (enough + 1, true), (0, false)] {
            assert_eq!(has_room(free, ledger), fits, "{free}");
        }
    }

    #[test]
    fn what_an_interrupted_backup_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let names = [".backup.0a.redb", ".farthing-x.backup.0b.tmp", "farthing-x.backup", "ledger.redb"];
        for name in names {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        sweep(folder.path(), ".backup.");
        sweep(folder.path(), ".farthing-");
        let left = names.map(|name| folder.path().join(name).exists());
        assert_eq!(left, [false, false, true, true]);
    }

    #[test]
    fn the_plan_is_stored_without_anything_that_opens_a_backup() {
        let passphrase = SecretText::new("four random words here");
        let recipient = Recipient::with(&passphrase, [4, 8, 1]).unwrap();
        let plan = BackupSchedule { recipient, keep: 3 };
        let stored = serde_json::to_string(&plan).unwrap();
        assert!(!stored.contains("random") && stored.contains("salt"), "{stored}");
        assert_eq!(serde_json::from_str::<Option<BackupSchedule>>(&stored).unwrap(), Some(plan));
        assert_eq!(serde_json::from_str::<Option<BackupSchedule>>("null").unwrap(), None);
    }
}
