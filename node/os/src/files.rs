//! Files that must survive a power cut and be read by nobody else.
//!
//! Content goes to a temporary file of mode 0600 beside the target, is synced, takes its final name in one
//! step, and then the folder is synced: at any instant there is the old file, the new one, or none.
//!
//! All of it is done in a folder that was opened once and belongs to this user or the system's: whoever puts another
//! folder, or a link, in its place is given nothing.

use std::{
    fs::{File, Permissions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::Path,
};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::container;

/// Writes `bytes` to `path`, in place of what was there.
///
/// # Errors
/// What the file system says, or that the folder is another user's; `path` is then as it was.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = (Folder::own(folder_of(path))?, name_of(path)?);
    let temporary = folder.write_temporary(name, bytes)?;
    let renamed = rustix::fs::renameat(&folder, &temporary, &folder, name);
    renamed.inspect_err(|_| folder.discard(&temporary))?;
    folder.sync()
}

/// Writes `bytes` to `path`, which must not exist yet.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] when it does; it is then left alone. Otherwise as [`replace_private`].
pub fn create_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Folder::own(folder_of(path))?.create(path, bytes)
}

/// The same in whatever folder its user named, which may be shared with others.
pub fn create_named(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Folder::open(folder_of(path))?.create(path, bytes)
}

/// Takes a secret file from everybody else of this machine: one that was copied by hand often lets others read it.
pub fn keep_private(path: &Path) {
    let Ok(opened) = File::open(path) else { return };
    let is_open = opened.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0);
    if !is_open {
        return;
    }
    let file = path.display();
    match opened.set_permissions(Permissions::from_mode(0o600)) {
        Ok(()) => tracing::warn!(%file, "other users could read this file; its permissions are fixed now"),
        Err(error) => {
            tracing::warn!(%file, %error, "other users can read this file; run chmod 600 on it");
        }
    }
}

/// An opened folder: what was judged is what is written to, whatever its name leads to meanwhile.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl AsFd for Folder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Reads a file that nobody else may change: no other user than this one and the system's, no group but this user's own,
/// and not everybody. In a container users have other numbers than outside, so whose it is says nothing there.
///
/// # Errors
/// What the file system says; an error that says who else may change it, [`io::ErrorKind::PermissionDenied`] where that is
/// another user whose file it is.
pub fn read_own(path: &Path) -> io::Result<String> {
    // What is looked at is what is read.
    let mut file = File::open(path)?;
    let found = file.metadata()?;
    let own = [0, rustix::process::geteuid().as_raw()].contains(&found.uid()) || container::is_here();
    let own_group = [0, rustix::process::getegid().as_raw()].contains(&found.gid()) || container::is_here();
    let told = match found.mode() {
        mode if mode & 0o002 != 0 => {
            "every user of this machine may change it; forbid that with `chmod o-w`".to_owned()
        }
        mode if mode & 0o020 != 0 && !own_group => {
            format!("everybody in a group (id {}) may change it; forbid that with `chmod g-w`", found.gid())
        }
        _ if !own => {
            let told = format!(
                "it belongs to another user (id {}); run this as that user with `sudo -u`, or use `chown` if the file is \
                 yours",
                found.uid()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, told));
        }
        _ => {
            let mut text = String::new();
            return file.read_to_string(&mut text).map(|_| text);
        }
    };
    Err(io::Error::other(told))
}

/// Returns what to do where a file could not be read or written.
#[must_use]
pub fn next_step(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free some disk space, then try again",
        _ => "check that this user owns it",
    }
}

/// Tells whether something is there and this user's own.
pub fn is_own(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
}

impl Folder {
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// One that is this user's, or the system's, who can do everything anyway.
    ///
    /// # Errors
    /// As [`Folder::open`], and [`io::ErrorKind::PermissionDenied`] naming the other user.
    pub fn own(path: &Path) -> io::Result<Self> {
        let folder = Self::open(path)?;
        let user = rustix::fs::fstat(&folder)?.st_uid;
        if user == 0 || user == rustix::process::geteuid().as_raw() {
            return Ok(folder);
        }
        let told =
            format!("{} now belongs to another user (id {user}), who could read the file", path.display());
        Err(io::Error::new(io::ErrorKind::PermissionDenied, told))
    }

    /// Returns whether `path` leads to this very folder.
    pub fn is_at(&self, path: &Path) -> io::Result<bool> {
        let (this, there) = (rustix::fs::fstat(self)?, rustix::fs::stat(path)?);
        Ok((this.st_dev, this.st_ino) == (there.st_dev, there.st_ino))
    }

    /// Opens a file of it, which must not be a link, for reading and writing; makes it when it is missing.
    pub fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(self, name, flags, Mode::from_raw_mode(0o600))?.into())
    }

    fn create(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let name = name_of(path)?;
        let temporary = self.write_temporary(name, bytes)?;
        // Unlike a rename, a link never replaces its target.
        let linked = rustix::fs::linkat(self, &temporary, self, name, AtFlags::empty());
        self.discard(&temporary);
        linked?;
        self.sync()
    }

    fn write_temporary(&self, name: &str, bytes: &[u8]) -> io::Result<String> {
        let temporary = format!(".{name}.{}.tmp", uuid::Uuid::new_v4().simple());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let write = || -> io::Result<()> {
            let opened = rustix::fs::openat(self, &temporary, flags, Mode::from_raw_mode(0o600))?;
            let mut file = File::from(opened);
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().inspect_err(|_| self.discard(&temporary))?;
        Ok(temporary)
    }

    fn discard(&self, temporary: &str) {
        // A leftover temporary file is harmless, so failing to remove it is no reason to fail.
        let _ = rustix::fs::unlinkat(self, temporary, AtFlags::empty());
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self)?)
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn name_of(path: &Path) -> io::Result<&str> {
    let name = path.file_name().and_then(std::ffi::OsStr::to_str);
    name.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the name of the file is not text"))
}

#[cfg(test)]
mod tests {
    use std::fs;

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
    fn a_full_disk_is_told_apart_from_a_file_of_somebody_else() {
        let next = |kind: io::ErrorKind| next_step(&kind.into());
        assert_eq!(next(io::ErrorKind::StorageFull), "free some disk space, then try again");
        assert_eq!(next(io::ErrorKind::PermissionDenied), "check that this user owns it");
    }

    #[test]
    fn a_file_that_others_may_change_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("farthing.toml");
        fs::write(&path, "text").unwrap();
        let told = || read_own(&path).unwrap_or_else(|error| error.to_string());
        for (mode, words) in [(0o600, "text"), (0o664, "text"), (0o666, "chmod o-w"), (0o602, "chmod o-w")] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(told().contains(words), "{mode:o}: {}", told());
        }
        fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
        // Only the system's user can give a file away.
        if std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).is_ok() && !container::is_here() {
            assert!(told().contains("another user (id 65534)"), "{}", told());
            fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
            assert!(told().contains("chmod g-w"), "{}", told());
        }
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

    #[test]
    fn a_link_in_place_of_a_file_is_replaced_and_never_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let (path, notes) = (folder.path().join("key"), folder.path().join("notes"));
        fs::write(&notes, "dear diary").unwrap();
        std::os::unix::fs::symlink(&notes, &path).unwrap();
        assert_eq!(create_private(&path, b"one").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(Folder::own(folder.path()).unwrap().file("key").is_err());
        replace_private(&path, b"two").unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), fs::read(&notes).unwrap()),
            (b"two".into(), b"dear diary".into())
        );
    }

    #[test]
    fn what_was_opened_is_written_to_although_another_folder_has_its_name() {
        let top = tempfile::tempdir().unwrap();
        let (data, moved) = (top.path().join("data"), top.path().join("moved"));
        fs::create_dir(&data).unwrap();
        let folder = Folder::own(&data).unwrap();
        assert!(folder.is_at(&data).unwrap());
        fs::rename(&data, &moved).unwrap();
        fs::create_dir(&data).unwrap();
        assert!(!folder.is_at(&data).unwrap() && folder.is_at(&moved).unwrap());
        folder.create(&data.join("key"), b"one").unwrap();
        assert!(moved.join("key").exists() && !data.join("key").exists());
    }
}
