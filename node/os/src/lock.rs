//! The data folder, held by one process at a time.
//!
//! Two nodes with one wallet would sign conflicting vouchers and share a network identity, so the folder is
//! created and locked before anything in it is read. The operating system ends the lock with the process.

mod belongings;

use std::{
    fs::{self, File, TryLockError},
    io::{self, Read, Seek, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use belongings::NotClaimed;

use crate::{container, file_names, files::Folder, shell::word};

/// The reason that the data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataFolderError {
    #[error("{path} is in use by another node{holder}", path = .path.display())]
    InUse { path: PathBuf, holder: String },
    #[error("{path} belongs to another user (id {user}), who could change this node's files", path = .path.display())]
    Foreign { path: PathBuf, user: u32, next: String },
    #[error(
        "{path} is not a node's folder and is not empty: `{found}` is there",
        path = .path.display(), found = .found.display()
    )]
    Occupied { path: PathBuf, found: PathBuf },
    #[error(
        "{path} is not a node's folder yet, and `{found}` in it is a link where a node needs a folder",
        path = .path.display(), found = .found.display()
    )]
    Linked { path: PathBuf, found: PathBuf },
    #[error("{path} is not writable for this user", path = .path.display())]
    NotWritable { path: PathBuf, next: String, source: io::Error },
    #[error("the disk with {path} is full", path = .path.display())]
    Full { path: PathBuf, source: io::Error },
    #[error("{path} cannot be used as the data folder", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl DataFolderError {
    /// Returns what to do next: the command that helps, where there is one.
    pub fn next_step(&self) -> &str {
        match self {
            Self::InUse { .. } => "stop that node, or name another folder with --data",
            Self::Foreign { next, .. } | Self::NotWritable { next, .. } => next,
            Self::Occupied { .. } => {
                "a node needs a folder for itself and closes it to other users: name an empty or a new one with \
                 --data; if this node lost its wallet or its ledger, restore a backup there; nothing was changed here"
            }
            Self::Linked { .. } => {
                "remove the link, or name another folder with --data; to keep backups in another folder, set \
                 node.backups_dir; nothing was changed here"
            }
            Self::Full { .. } => "free some disk space, or name another folder with --data",
            Self::Io { .. } => "name another one with --data",
        }
    }
}

/// Exclusive use of a data folder, until dropped.
#[derive(Debug)]
pub struct DataFolder {
    path: PathBuf,
    /// Closing this file ends the lock.
    _lock: File,
}

impl DataFolder {
    /// Creates the folder (0700) when it is missing and locks it. `is_wallet` knows wallets by their bytes.
    pub fn lock(path: &Path, is_wallet: fn(&[u8]) -> bool) -> Result<Self, DataFolderError> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|source| failure(path, source))?;
        let folder = Folder::open(path).map_err(|source| failure(path, source))?;
        claim(path, is_wallet)?;
        // What was looked through and what is locked are one folder, whoever may move it above.
        if !folder.is_at(path).map_err(|source| failure(path, source))? {
            let source = io::Error::other("another folder replaced it meanwhile");
            return Err(failure(path, source));
        }
        let mut lock = folder.file(file_names::LOCK).map_err(|source| failure(path, source))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(DataFolderError::InUse { path: path.into(), holder: holder(&mut lock) });
            }
            Err(TryLockError::Error(source)) => return Err(failure(path, source)),
        }
        name_holder(&mut lock).map_err(|source| failure(path, source))?;
        Ok(Self { path: path.into(), _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Refuses a folder with anything of another user in it, or of something else than a node, and closes it to others.
fn claim(path: &Path, is_wallet: fn(&[u8]) -> bool) -> Result<(), DataFolderError> {
    let own = own_ids();
    let open = belongings::claim(path, own.0, is_wallet).map_err(|source| failure(path, source))?;
    let open = open.map_err(|refused| match refused {
        NotClaimed::Foreign { path: foreign, user } => {
            let fix = fix(path, io::ErrorKind::PermissionDenied, own, container::is_here());
            let next = format!(
                "run `{fix}` if it is yours or belongs to a node that you ran before, or name another folder with \
                 --data"
            );
            DataFolderError::Foreign { path: foreign, user, next }
        }
        NotClaimed::Occupied { found } => DataFolderError::Occupied { path: path.into(), found },
        NotClaimed::Linked { found } => DataFolderError::Linked { path: path.into(), found },
    })?;
    if let Some(first) = open.first() {
        let (first, count) = (first.display(), open.len());
        tracing::warn!(%first, count, "other users could read or change files in the data folder and no longer can");
    }
    Ok(())
}

/// The process that holds the lock wrote its id into the file.
fn holder(lock: &mut File) -> String {
    let mut text = String::new();
    match lock.take(20).read_to_string(&mut text) {
        Ok(_) if text.trim().parse::<u32>().is_ok() => format!(" (process {})", text.trim()),
        _ => String::new(),
    }
}

fn name_holder(lock: &mut File) -> io::Result<()> {
    lock.set_len(0)?;
    lock.rewind()?;
    writeln!(lock, "{}", std::process::id())
}

fn failure(path: &Path, source: io::Error) -> DataFolderError {
    match source.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            let fix = fix(path, source.kind(), own_ids(), container::is_here());
            // What this user cannot look into may be anything.
            let is_safe = source.kind() == io::ErrorKind::ReadOnlyFilesystem;
            let otherwise = " if nothing but a node's files is in it, or name another folder with --data";
            let next = format!("run `{fix}`{}", if is_safe { "" } else { otherwise });
            DataFolderError::NotWritable { path: path.into(), next, source }
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            DataFolderError::Full { path: path.into(), source }
        }
        _ => DataFolderError::Io { path: path.into(), source },
    }
}

/// The exact command that gives this user the folder.
fn fix(path: &Path, kind: io::ErrorKind, (user, group): (u32, u32), in_container: bool) -> String {
    let path = word(path);
    let owner = format!("{user}:{group}");
    match kind {
        io::ErrorKind::ReadOnlyFilesystem => format!(
            "docker run -v farthing:{path} …` to mount a volume there, or `mount -o remount,rw {path}"
        ),
        // The same path outside is another folder.
        _ if in_container => format!(
            "sudo chown -R {owner} FOLDER` outside of the container, where FOLDER is what is mounted at {path}, or \
             mount a volume instead: `docker run -v farthing:{path} …"
        ),
        _ => format!("sudo mkdir -p {path} && sudo chown -R {owner} {path}"),
    }
}

/// User and group this process writes files as.
fn own_ids() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_serves_one_node_at_a_time_and_the_other_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new");
        let lock = || DataFolder::lock(&path, |_| false);
        let held = lock().unwrap();
        let refusal = lock().unwrap_err().to_string();
        assert!(refusal.contains(&format!("(process {})", std::process::id())), "{refusal}");
        drop(held);
        lock().unwrap();
    }

    #[test]
    fn a_folder_of_somebody_else_is_told_with_the_command_that_helps() {
        let denied = failure(Path::new("/data"), io::ErrorKind::PermissionDenied.into());
        let next = denied.next_step();
        assert!(next.contains("sudo chown -R ") && next.contains("if nothing but a node's files"), "{next}");
        // The tests themselves may run in a container.
        let outside = fix(Path::new("/data"), io::ErrorKind::PermissionDenied, (1000, 100), false);
        assert_eq!(outside, "sudo mkdir -p /data && sudo chown -R 1000:100 /data");
        let full = failure(Path::new("/data"), io::ErrorKind::StorageFull.into());
        assert!(full.to_string().contains("is full") && full.next_step().contains("free some"), "{full}");
        let read_only = failure(Path::new("/data"), io::ErrorKind::ReadOnlyFilesystem.into());
        assert!(read_only.next_step().contains("-v farthing:/data"), "{read_only}");
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(matches!(DataFolder::lock(file.path(), |_| false), Err(DataFolderError::Io { .. })));
    }

    #[test]
    fn a_container_is_told_what_to_do_outside_of_it() {
        let told = |in_container| {
            fix(Path::new("/data"), io::ErrorKind::PermissionDenied, (10001, 10001), in_container)
        };
        assert_eq!(told(false), "sudo mkdir -p /data && sudo chown -R 10001:10001 /data");
        assert_eq!(
            told(true),
            "sudo chown -R 10001:10001 FOLDER` outside of the container, where FOLDER is what is mounted at /data, or \
             mount a volume instead: `docker run -v farthing:/data …"
        );
    }
}
