//! Checks whose the data folder is, and who else may look into it.
//!
//! A folder without a wallet becomes a node's only while nothing else is in it than what a first start finds by right
//! (`EXPECTED`): in a folder that was mistyped, such as a user's home, others would lose what they may read there.
//!
//! Whoever may write into the folder of a wallet can put links there that lead this node's writes elsewhere, so a
//! folder with anything of another user in it is refused. What is merely open to others is closed to them: they may
//! pass through a folder whose user let them, which is how programs of others read the authority's certificate, and
//! read that certificate, and nothing else.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, Metadata, Permissions},
    io,
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

/// The file that clients of other users read; it holds no secret.
const PUBLIC_FILE: &str = "tls/ca.pem";
/// The file that makes a folder a node's.
const WALLET_FILE: &str = "wallet.json";
/// Names that a folder without a wallet may have in it.
const EXPECTED: [&str; 19] = [
    // Put there beforehand: by people, by who starts the node, and by the file system.
    "farthing.toml",
    "passphrase",
    "passphrase.txt",
    "tls",
    "backups",
    "node.log",
    "lost+found",
    // Made before the wallet, by a start or a restoration that was cut short.
    "lock",
    "ledger.redb",
    "ledger.redb.new",
    "wallet.passphrase",
    "secrets.toml",
    ".verify",
    ".restore",
    // Left of a node whose wallet is gone: its start says so.
    "settings.toml",
    "console.json",
    "networks",
    "control.sock",
    ".control.sock.new",
];
/// Deeper than anything this program makes.
const DEPTH_MAX: usize = 8;

/// The reason that a folder is none of this node's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotClaimed {
    /// Something of another user is in it.
    Foreign { path: PathBuf, user: u32 },
    /// Something else is in it, and no wallet.
    Occupied { found: OsString },
}

/// Looks through `folder`, which is `own`'s and a node's or else left as it is, and closes what others can read. Answers
/// what was open.
pub(super) fn claim(folder: &Path, own: u32) -> io::Result<Result<Vec<PathBuf>, NotClaimed>> {
    for metadata in [fs::symlink_metadata(folder)?, fs::metadata(folder)?] {
        // The way to the folder may be laid by the system; what is in it is of one user.
        let is_way = metadata.is_symlink() && metadata.uid() == 0;
        if metadata.uid() != own && !is_way {
            return Ok(Err(NotClaimed::Foreign { path: folder.into(), user: metadata.uid() }));
        }
    }
    if let Some(found) = unexpected(folder)? {
        return Ok(Err(NotClaimed::Occupied { found }));
    }
    let mut open = Vec::new();
    close(folder, &fs::metadata(folder)?, false, &mut open);
    let foreign = walk(folder, folder, own, DEPTH_MAX, &mut open)?;
    Ok(foreign.map_or(Ok(open), Err))
}

/// Finds what keeps a folder without a wallet from becoming a node's: the first by its name.
fn unexpected(folder: &Path) -> io::Result<Option<OsString>> {
    if folder.join(WALLET_FILE).symlink_metadata().is_ok() {
        return Ok(None);
    }
    let names = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name()));
    let names = names.collect::<io::Result<Vec<OsString>>>()?;
    Ok(names.into_iter().filter(|name| !is_expected(name)).min())
}

fn is_expected(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    // A file that was about to be written, a copy of the ledger, and the files of a node that was replaced.
    let is_temporary = name.starts_with('.') && name.ends_with(".tmp");
    EXPECTED.contains(&name) || is_temporary || name.starts_with(".backup.") || name.starts_with("replaced-")
}

/// A folder is closed before it is read: afterwards nobody else can change what is found.
fn walk(
    top: &Path,
    folder: &Path,
    own: u32,
    depth: usize,
    open: &mut Vec<PathBuf>,
) -> io::Result<Option<NotClaimed>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let metadata = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        // The system's user can do everything anyway.
        if metadata.uid() != own && metadata.uid() != 0 {
            return Ok(Some(NotClaimed::Foreign { path, user: metadata.uid() }));
        }
        if metadata.is_symlink() || metadata.uid() != own {
            continue;
        }
        let kind = metadata.file_type();
        if kind.is_fifo() || kind.is_char_device() || kind.is_block_device() {
            // Reading it would wait for ever.
            return Err(io::Error::other(format!("{} is a pipe or a device and no file", path.display())));
        }
        close(&path, &metadata, path == top.join(PUBLIC_FILE), open);
        if metadata.is_dir() && depth > 0 {
            let foreign = walk(top, &path, own, depth - 1, open)?;
            if foreign.is_some() {
                return Ok(foreign);
            }
        }
    }
    Ok(None)
}

/// A file system that knows no modes keeps nobody from running a node, who is told.
fn close(path: &Path, metadata: &Metadata, is_public: bool, open: &mut Vec<PathBuf>) {
    let mode = metadata.permissions().mode() & 0o7777;
    let Some(closed) = closed(mode, metadata.is_dir(), is_public) else { return };
    match fs::set_permissions(path, Permissions::from_mode(closed)) {
        Ok(()) => open.push(path.into()),
        Err(error) => {
            let file = path.display();
            tracing::warn!(%file, %error, "other users can read or change this, and its mode cannot be changed");
        }
    }
}

/// The mode that something of this mode gets, if another.
const fn closed(mode: u32, is_folder: bool, is_public: bool) -> Option<u32> {
    let others = if is_folder {
        0o066
    } else if is_public {
        0o022
    } else {
        0o077
    };
    if mode & others == 0 { None } else { Some(mode & !others) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_place_of_a_file_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("settings.toml");
        let own = fs::metadata(top.path()).unwrap().uid();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let refused = claim(top.path(), own).unwrap_err().to_string();
        assert!(refused.contains("settings.toml is a pipe"), "{refused}");
    }

    #[test]
    fn what_is_open_is_closed_and_what_is_closed_stays() {
        for (mode, is_folder, is_public, expected) in [
            (0o700, true, false, None),
            (0o711, true, false, None),
            (0o755, true, false, Some(0o711)),
            (0o2775, true, false, Some(0o2711)),
            (0o777, true, false, Some(0o711)),
            (0o600, false, false, None),
            (0o640, false, false, Some(0o600)),
            (0o644, false, false, Some(0o600)),
            (0o666, false, false, Some(0o600)),
            (0o644, false, true, None),
            (0o666, false, true, Some(0o644)),
        ] {
            assert_eq!(closed(mode, is_folder, is_public), expected, "{mode:o} {is_folder} {is_public}");
        }
    }

    #[test]
    fn a_folder_is_claimed_with_everything_in_it() {
        let top = tempfile::tempdir().unwrap();
        let own = fs::metadata(top.path()).unwrap().uid();
        let mode = |name: &str| fs::metadata(top.path().join(name)).unwrap().permissions().mode() & 0o777;
        let set = |name: &str, mode| {
            fs::set_permissions(top.path().join(name), Permissions::from_mode(mode)).unwrap();
        };
        fs::create_dir_all(top.path().join("networks/lab")).unwrap();
        fs::create_dir_all(top.path().join("tls")).unwrap();
        for (name, open) in
            [("networks/lab/catalog.redb", 0o644), ("wallet.json", 0o600), ("tls/ca.pem", 0o644)]
        {
            fs::write(top.path().join(name), "").unwrap();
            set(name, open);
        }
        set("networks", 0o700);
        set("networks/lab", 0o755);
        set("tls", 0o711);
        set(".", 0o755);
        let open = claim(top.path(), own).unwrap().unwrap();
        let lab = top.path().join("networks/lab");
        assert_eq!(open, [top.path().into(), lab.clone(), lab.join("catalog.redb")]);
        assert_eq!(
            (mode("."), mode("networks/lab"), mode("networks/lab/catalog.redb")),
            (0o711, 0o711, 0o600)
        );
        assert_eq!(mode("tls/ca.pem"), 0o644);
        assert_eq!(claim(top.path(), own).unwrap(), Ok(Vec::new()));
        // To any other user the same folder is somebody else's, and nothing of it is changed.
        set(".", 0o755);
        let foreign = NotClaimed::Foreign { path: top.path().into(), user: own };
        assert_eq!(claim(top.path(), own + 1).unwrap(), Err(foreign));
        assert_eq!(mode("."), 0o755);
    }

    #[test]
    fn a_folder_of_something_else_is_left_as_it_is_until_it_has_a_wallet() {
        let top = tempfile::tempdir().unwrap();
        let own = fs::metadata(top.path()).unwrap().uid();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for name in
            EXPECTED.iter().chain(&[".wallet.json.5f2a.tmp", ".backup.5f2a.redb", "replaced-2026-01-02"])
        {
            fs::create_dir(top.path().join(name)).unwrap();
        }
        assert!(claim(top.path(), own).unwrap().is_ok(), "a first start finds these");
        let diary = top.path().join("diary");
        fs::write(&diary, "dear diary").unwrap();
        for path in [top.path(), diary.as_path()] {
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        let occupied = NotClaimed::Occupied { found: "diary".into() };
        assert_eq!(claim(top.path(), own).unwrap(), Err(occupied));
        assert_eq!((mode(top.path()), mode(&diary)), (0o755, 0o755), "something was changed");
        fs::write(top.path().join(WALLET_FILE), "").unwrap();
        assert!(claim(top.path(), own).unwrap().is_ok(), "people keep notes beside their wallet");
        assert_eq!((mode(top.path()), mode(&diary)), (0o711, 0o700));
    }
}
