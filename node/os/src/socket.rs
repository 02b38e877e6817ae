//! Unix sockets to which only this user, or its group, can connect.

use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, PermissionsExt},
        net::{UnixListener, UnixStream},
    },
    path::Path,
};

/// Listens at `path`, without blocking. The socket is made where nobody else can look, gets its mode, and only then its
/// name; one that a program of before left there is replaced, and nothing else is removed.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`] when a program listens there, [`io::ErrorKind::AlreadyExists`] when something else than
/// a socket has the name, and what the file system says, for instance of a path above about 90 bytes.
pub fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(io::ErrorKind::AlreadyExists.into()),
        Ok(_) if UnixStream::connect(path).is_ok() => return Err(io::ErrorKind::AddrInUse.into()),
        _ => {}
    }
    let private = path.with_file_name(unfinished(&name));
    let made = private.join("s");
    // What a start left that was ended here. A link leads into somebody's folder, and so is one with anything else in it.
    if fs::symlink_metadata(&private).is_ok_and(|found| found.is_dir()) {
        if fs::symlink_metadata(&made).is_ok_and(|found| found.file_type().is_socket()) {
            fs::remove_file(&made)?;
        }
        let _ = fs::remove_dir(&private);
    }
    DirBuilder::new().mode(0o700).create(&private)?;
    let listener = UnixListener::bind(&made)?;
    fs::set_permissions(&made, Permissions::from_mode(mode))?;
    fs::rename(&made, path)?;
    fs::remove_dir(&private)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Returns whether this is a socket at which nobody listens, or a folder in which [`listen`] began to make one: neither holds
/// anything.
pub(crate) fn is_left(path: &Path) -> bool {
    let is_deaf = |path: &Path| {
        fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
            && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let is_begun = name.starts_with('.')
        && name.ends_with(".new")
        && fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let is_empty = |mut begun: fs::ReadDir| {
        begun.all(|entry| entry.is_ok_and(|entry| entry.file_name() == "s" && is_deaf(&entry.path())))
    };
    is_deaf(path) || is_begun && fs::read_dir(path).is_ok_and(is_empty)
}

/// The name of the folder in which a socket of this name is made.
pub(crate) fn unfinished(name: &str) -> String {
    format!(".{name}.new")
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_socket_that_was_left_is_replaced_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("call.sock");
        let listener = listen(&path, 0o660).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        assert_eq!(listen(&path, 0o660).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        // A process that another test starts has it as well, until it runs its own program.
        while UnixStream::connect(&path).is_ok() {
            thread::yield_now();
        }
        drop(listen(&path, 0o600).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let others = folder.path().join(".ssh.new");
        fs::create_dir(&others).unwrap();
        fs::write(others.join("id"), "kept").unwrap();
        assert_eq!(
            listen(&folder.path().join("ssh"), 0o600).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read(others.join("id")).unwrap(), b"kept");
        let linked = folder.path().join(".linked.new");
        let theirs = UnixListener::bind(others.join("s")).unwrap();
        std::os::unix::fs::symlink(&others, &linked).unwrap();
        let refused = listen(&folder.path().join("linked"), 0o600).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert!(UnixStream::connect(others.join("s")).is_ok(), "what a link leads to is another's");
        drop(theirs);
        fs::remove_file(others.join("s")).unwrap();
        fs::write(others.join("s"), "kept").unwrap();
        let refused = listen(&folder.path().join("ssh"), 0o600).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(others.join("s")).unwrap(), b"kept");
        let file = folder.path().join("a file");
        fs::write(&file, "kept").unwrap();
        assert_eq!(listen(&file, 0o600).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).unwrap(), b"kept");
    }
}
