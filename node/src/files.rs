//! Files that must survive a power cut and be read by nobody else.
//!
//! Content goes to a temporary file of mode 0600 beside the target, is synced, takes its final name in one
//! step, and then the folder is synced: at any instant there is the old file, the new one, or none.

use std::{
    fs::{self, File, OpenOptions, Permissions},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// Writes `bytes` to `path`, in place of what was there.
///
/// # Errors
/// What the file system says; `path` is then as it was.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = write_temporary(path, bytes)?;
    fs::rename(&temporary, path).inspect_err(|_| discard(&temporary))?;
    sync_folder(path)
}

/// Writes `bytes` to `path`, which must not exist yet.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] when it does; it is then left alone. Otherwise what the file system says.
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = write_temporary(path, bytes)?;
    // Unlike a rename, a link never replaces its target.
    let linked = fs::hard_link(&temporary, path);
    discard(&temporary);
    linked?;
    sync_folder(path)
}

/// Takes a secret file from everybody else of this machine: one that was copied by hand often lets others read it.
pub fn keep_private(path: &Path) {
    let Ok(metadata) = fs::metadata(path) else { return };
    if metadata.permissions().mode() & 0o077 == 0 {
        return;
    }
    let file = path.display();
    match fs::set_permissions(path, Permissions::from_mode(0o600)) {
        Ok(()) => tracing::warn!(%file, "others of this machine could read this file, and no longer can"),
        Err(error) => {
            tracing::warn!(%file, %error, "others of this machine can read this file; run chmod 600 on it");
        }
    }
}

fn write_temporary(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{name}.{}.tmp", uuid::Uuid::new_v4().simple()));
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    write().inspect_err(|_| discard(&temporary))?;
    Ok(temporary)
}

fn discard(temporary: &Path) {
    // A leftover temporary file is harmless, so failing to remove it is no reason to fail.
    let _ = fs::remove_file(temporary);
}

fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_file_is_readable_by_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        replace_private(&path, b"one").unwrap();
        replace_private(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left behind");
    }

    #[test]
    fn a_secret_file_is_taken_from_everybody_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create_private(&path, b"one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        keep_private(&path);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        keep_private(&folder.path().join("none"));
    }

    #[test]
    fn an_existing_file_is_never_overwritten_by_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        create_private(&path, b"one").unwrap();
        assert_eq!(create_private(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left behind");
    }
}
