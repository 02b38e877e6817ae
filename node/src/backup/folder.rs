//! The backups that lie in the data folder, until the user puts them elsewhere.

use std::{
    fs,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use super::BackupError;
use crate::{clock, files};

const FOLDER: &str = "backups";
const EXTENSION: &str = ".backup";
/// The oldest go first; whoever wants to keep one puts it elsewhere, which is the point of it.
const KEPT_MAX: usize = 31;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupFile {
    /// `farthing-2026-11-22T113000Z.backup`
    pub name: String,
    pub path: PathBuf,
    pub bytes: u64,
    /// Seconds since the Unix epoch.
    pub written_secs: u64,
}

/// Where a backup came from; said in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Here,
    /// Brought by the user from elsewhere.
    Uploaded,
}

/// The folder.
#[derive(Debug, Clone)]
pub struct Backups(PathBuf);

impl Backups {
    #[must_use]
    pub fn in_folder(data_dir: &Path) -> Self {
        Self(data_dir.join(FOLDER))
    }

    /// Puts a new one there, and removes the oldest beyond 31.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn add(&self, bytes: &[u8], made: Made, now_secs: u64) -> Result<BackupFile, BackupError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| BackupError::Io { path, source }
        };
        if !self.0.exists() {
            let mut folder = fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700)
                .create(&self.0)
                .map_err(failed(&self.0))?;
        }
        let time = clock::timestamp(now_secs).replace(':', "");
        let from = match made {
            Made::Here => "",
            Made::Uploaded => "-uploaded",
        };
        let name = format!("farthing-{time}{from}{EXTENSION}");
        let path = self.0.join(&name);
        files::replace_private(&path, bytes).map_err(failed(&path))?;
        for old in self.all()?.into_iter().skip(KEPT_MAX) {
            fs::remove_file(&old.path).map_err(failed(&old.path))?;
        }
        Ok(BackupFile { name, path, bytes: bytes.len() as u64, written_secs: now_secs })
    }

    /// All of them, the newest first.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn all(&self) -> Result<Vec<BackupFile>, BackupError> {
        let failed = |source| BackupError::Io { path: self.0.clone(), source };
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("farthing-") && name.ends_with(EXTENSION) {
                let about = entry.metadata().map_err(failed)?;
                let written = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let written_secs = written.map_or(0, |since| since.as_secs());
                all.push(BackupFile { name, path: entry.path(), bytes: about.len(), written_secs });
            }
        }
        // Their names sort by time.
        all.sort_by(|one, other| other.name.cmp(&one.name));
        Ok(all)
    }

    /// The one of this name.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn find(&self, name: &str) -> Result<Option<BackupFile>, BackupError> {
        Ok(self.all()?.into_iter().find(|file| file.name == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_nothing_else_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let backups = Backups::in_folder(folder.path());
        assert_eq!(backups.all().unwrap(), []);
        for hour in 0..=KEPT_MAX as u64 {
            backups.add(b"x", Made::Here, 1_795_303_815 + 3_600 * hour).unwrap();
        }
        fs::write(folder.path().join("backups/notes.txt"), "mine").unwrap();
        let all = backups.all().unwrap();
        assert_eq!(all.len(), KEPT_MAX);
        assert_eq!(all[KEPT_MAX - 1].name, "farthing-2026-11-22T003015Z.backup", "the first one is gone");
        assert!(backups.find(&all[0].name).unwrap().is_some());
        assert!(backups.find("../wallet.json").unwrap().is_none());
        assert!(backups.find("notes.txt").unwrap().is_none());
    }
}
