//! The backups that lie in the data folder, or one of the configuration, until the user puts them elsewhere.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use farthing_config::NodeConfig;
use farthing_control::types::Backup;
use farthing_os::{clock, file_names, files};

use super::BackupError;

/// The origin of a backup; said in its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackupOrigin {
    Here,
    /// Brought by the user from elsewhere.
    Uploaded,
    /// By the node, every day.
    Automatically,
}

impl BackupOrigin {
    const fn suffix(self) -> &'static str {
        match self {
            Self::Here => "",
            Self::Uploaded => "-uploaded",
            Self::Automatically => "-auto",
        }
    }

    fn of(name: &str) -> Self {
        let stem = name.trim_end_matches(file_names::BACKUP_EXTENSION);
        let named =
            [Self::Uploaded, Self::Automatically].into_iter().find(|made| stem.ends_with(made.suffix()));
        named.unwrap_or(Self::Here)
    }

    /// Those of the node do not push out those of its user.
    const fn counts_with(self, other: Self) -> bool {
        matches!(self, Self::Automatically) == matches!(other, Self::Automatically)
    }
}

#[derive(Debug, Clone)]
pub struct Backups {
    folder: PathBuf,
    /// One of the configuration is made by whoever named it: it may be a disk that is not there now.
    is_own: bool,
}

impl Backups {
    pub fn of(node: &NodeConfig) -> Self {
        match &node.backups_dir {
            Some(folder) => Self { folder: folder.clone(), is_own: false },
            None => Self::in_folder(&node.data_dir),
        }
    }

    pub fn in_folder(data_dir: &Path) -> Self {
        Self { folder: data_dir.join(file_names::BACKUPS), is_own: true }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes the folder where it is this program's own.
    ///
    /// # Errors
    /// [`BackupError::Io`], also where a folder of the configuration is not there.
    pub fn prepare(&self) -> Result<(), BackupError> {
        if self.folder.is_dir() {
            return Ok(());
        }
        let failed = |source| BackupError::Io { path: self.folder.clone(), source };
        if !self.is_own {
            return Err(failed(io::ErrorKind::NotFound.into()));
        }
        let mut folder = fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700).create(&self.folder).map_err(failed)
    }

    /// Puts a new one there, and removes the oldest of its kind beyond `keep`.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn add(
        &self,
        bytes: &[u8],
        made: BackupOrigin,
        now_secs: u64,
        keep: usize,
    ) -> Result<Backup, BackupError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| BackupError::Io { path, source }
        };
        self.prepare()?;
        let time = clock::timestamp(now_secs).replace(':', "");
        let (start, end) = (file_names::BACKUP_PREFIX, file_names::BACKUP_EXTENSION);
        let name = format!("{start}{time}{}{end}", made.suffix());
        let path = self.folder.join(&name);
        files::replace_private(&path, bytes).map_err(failed(&path))?;
        let like_it = self.all()?.into_iter().filter(|file| made.counts_with(BackupOrigin::of(&file.name)));
        for old in like_it.skip(keep) {
            let path = self.folder.join(&old.name);
            fs::remove_file(&path).map_err(failed(&path))?;
        }
        let path = path.display().to_string();
        Ok(Backup { name, path, bytes: bytes.len() as u64, written_secs: now_secs })
    }

    /// The newest of its kind.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn newest(&self, made: BackupOrigin) -> Result<Option<Backup>, BackupError> {
        Ok(self.all()?.into_iter().find(|file| BackupOrigin::of(&file.name) == made))
    }

    /// All of them, the newest first.
    ///
    /// # Errors
    /// [`BackupError::Io`].
    pub fn all(&self) -> Result<Vec<Backup>, BackupError> {
        let failed = |source| BackupError::Io { path: self.folder.clone(), source };
        if !self.folder.exists() {
            return Ok(Vec::new());
        }
        let mut all = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if file_names::is_backup(&entry.file_name()) {
                let name = entry.file_name().to_string_lossy().into_owned();
                let about = entry.metadata().map_err(failed)?;
                let written = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let written_secs = written.map_or(0, |since| since.as_secs());
                let path = entry.path().display().to_string();
                all.push(Backup { name, path, bytes: about.len(), written_secs });
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
    pub fn find(&self, name: &str) -> Result<Option<Backup>, BackupError> {
        Ok(self.all()?.into_iter().find(|file| file.name == name))
    }
}

#[cfg(test)]
mod tests {
    use farthing_control::types::BACKUPS_KEPT_MAX;

    use super::*;

    #[test]
    fn the_newest_are_kept_and_nothing_else_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let backups = Backups::in_folder(folder.path());
        assert_eq!(backups.all().unwrap(), []);
        for hour in 0..=BACKUPS_KEPT_MAX as u64 {
            backups.add(b"x", BackupOrigin::Here, 1_795_303_815 + 3_600 * hour, BACKUPS_KEPT_MAX).unwrap();
        }
        fs::write(folder.path().join("backups/notes.txt"), "mine").unwrap();
        let all = backups.all().unwrap();
        assert_eq!(all.len(), BACKUPS_KEPT_MAX);
        assert_eq!(
            all[BACKUPS_KEPT_MAX - 1].name,
            "farthing-2026-11-22T003015Z.backup",
            "the first one is gone"
        );
        assert!(backups.find(&all[0].name).unwrap().is_some());
        assert!(backups.find("../wallet.json").unwrap().is_none());
        assert!(backups.find("notes.txt").unwrap().is_none());
    }
    #[test]
    fn those_of_every_day_are_kept_apart_from_those_of_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let backups = Backups::in_folder(folder.path());
        backups.add(b"mine", BackupOrigin::Here, 1_795_303_815, BACKUPS_KEPT_MAX).unwrap();
        backups.add(b"brought", BackupOrigin::Uploaded, 1_795_303_816, BACKUPS_KEPT_MAX).unwrap();
        for day in 1..=5 {
            backups.add(b"x", BackupOrigin::Automatically, 1_795_303_815 + 86_400 * day, 2).unwrap();
        }
        let names: Vec<String> = backups.all().unwrap().into_iter().map(|file| file.name).collect();
        assert_eq!(
            names,
            [
                "farthing-2026-11-26T233015Z-auto.backup",
                "farthing-2026-11-25T233015Z-auto.backup",
                "farthing-2026-11-21T233016Z-uploaded.backup",
                "farthing-2026-11-21T233015Z.backup",
            ]
        );
        assert_eq!(backups.newest(BackupOrigin::Here).unwrap().unwrap().name, names[3]);
        assert_eq!(backups.newest(BackupOrigin::Automatically).unwrap().unwrap().name, names[0]);
    }

    #[test]
    fn a_folder_of_the_configuration_that_is_not_there_is_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("another-disk");
        let node =
            NodeConfig { data_dir: folder.path().to_owned(), backups_dir: Some(named.clone()), name: None };
        let refused = Backups::of(&node).add(b"x", BackupOrigin::Here, 1, BACKUPS_KEPT_MAX).unwrap_err();
        assert!(refused.to_string().contains("another-disk") && !named.exists(), "{refused}");
        fs::create_dir(&named).unwrap();
        Backups::of(&node).add(b"x", BackupOrigin::Here, 1, BACKUPS_KEPT_MAX).unwrap();
        assert_eq!(Backups::of(&node).all().unwrap().len(), 1);
    }
}
