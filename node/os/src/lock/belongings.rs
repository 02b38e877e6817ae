//! Checks whose the data folder is, and who else may look into it.
//!
//! A folder is a node's by its wallet: a file of that name that this program wrote, or any with a ledger beside it. Any other, one
//! with another program's wallet too, becomes one only while nothing else is in it than what a first start finds by right (`expected_in`): in a folder
//! that was mistyped, such as a user's home, others would lose what they may read there. Everything is looked at before
//! anything is changed.
//!
//! Whoever may write into the folder of a wallet can put links there that lead this node's writes elsewhere, so a
//! folder with anything of another user in it is refused. What is merely open to others is closed to them: they may
//! pass through a folder whose user let them, which is how programs of others read the authority's certificate, and
//! read that certificate, and nothing else.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, Metadata, Permissions},
    io::{self, Read},
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rustix::fs::{Mode, OFlags};

use crate::{file_names, socket};

/// A wallet has about 1 KiB.
const WALLET_BYTES_MAX: u64 = 64 * 1024;
/// Files that a folder without a wallet may have in it.
const EXPECTED: [&str; 12] = [
    // Put there beforehand, by people and by who starts the node.
    file_names::SETTINGS,
    "passphrase",
    "passphrase.txt",
    file_names::LOG,
    // Made before the wallet, by a start or a restoration that was cut short.
    file_names::LOCK,
    file_names::LEDGER,
    "ledger.redb.new",
    file_names::PASSPHRASE,
    file_names::SECRETS,
    // Left of a node whose wallet is gone: its start says so.
    file_names::CHOSEN_SETTINGS,
    file_names::CONSOLE,
    file_names::CONTROL_SOCKET,
];
/// A folder of files that a library names.
const INDEX_FOLDER: &str = "catalog-index";
/// Deeper than anything this program makes.
const DEPTH_MAX: usize = 8;

/// The kind of a file that has the name of a wallet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalletFile {
    /// This program wrote it.
    Own,
    /// Another program may have, and a node opens it.
    Usable,
    Unusable,
}

/// The reason that a folder is none of this node's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotClaimed {
    /// Something of another user is in it.
    Foreign { path: PathBuf, user: u32 },
    /// Something else is in it, by its path from there, and no wallet.
    Occupied { found: PathBuf },
}

/// Looks through `folder`, which is `own`'s and a node's or else left as it is, and closes what others can read. Answers
/// what was open. `wallet_of` knows wallets by their bytes.
pub(super) fn claim(
    folder: &Path,
    own: u32,
    wallet_of: fn(&[u8]) -> WalletFile,
) -> io::Result<Result<Vec<PathBuf>, NotClaimed>> {
    // Before whose it is: a folder of something else is not to be given to this user.
    if let Some(found) = unexpected(folder, wallet_of)? {
        return Ok(Err(NotClaimed::Occupied { found }));
    }
    for metadata in [fs::symlink_metadata(folder)?, fs::metadata(folder)?] {
        // The way to the folder may be laid by the system; what is in it is of one user.
        let is_way = metadata.is_symlink() && metadata.uid() == 0;
        if metadata.uid() != own && !is_way {
            return Ok(Err(NotClaimed::Foreign { path: folder.into(), user: metadata.uid() }));
        }
    }
    if let Some(foreign) = walk(folder, folder, own, DEPTH_MAX, None)? {
        return Ok(Err(foreign));
    }
    let mut open = Vec::new();
    close(folder, &fs::metadata(folder)?, false, &mut open);
    let foreign = walk(folder, folder, own, DEPTH_MAX, Some(&mut open))?;
    Ok(foreign.map_or(Ok(open), Err))
}

/// Finds what keeps a folder that is no node's from becoming one, by its path from there.
fn unexpected(folder: &Path, wallet_of: fn(&[u8]) -> WalletFile) -> io::Result<Option<PathBuf>> {
    let wallet = folder.join(file_names::WALLET);
    let found = read(&wallet).map_or(WalletFile::Unusable, |bytes| wallet_of(&bytes));
    // Beside a ledger a damaged one counts as well.
    let has_ledger = folder.join(file_names::LEDGER).symlink_metadata().is_ok();
    if found == WalletFile::Own || (has_ledger && wallet.symlink_metadata().is_ok()) {
        return Ok(None);
    }
    for name in names(folder)? {
        let is_usable = name == file_names::WALLET && found == WalletFile::Usable;
        let expected = expected_in(&name).or_else(|| is_usable.then(Vec::new));
        let Some(parts) = expected else { return Ok(Some(name.into())) };
        if is_folder(&folder.join(&name))
            && let Some(found) = unexpected_in(folder, Path::new(&name), &parts, DEPTH_MAX)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Finds a file below `inside` that has none of `parts`.
fn unexpected_in(folder: &Path, inside: &Path, parts: &[&str], depth: usize) -> io::Result<Option<PathBuf>> {
    for name in names(&folder.join(inside))? {
        let path = inside.join(&name);
        let found = if !is_folder(&folder.join(&path)) {
            let text = name.to_string_lossy();
            let is_known =
                is_temporary(&text) || parts.iter().any(|part| text.contains(part) || path.ends_with(part));
            (!is_known).then_some(path)
        } else if name == INDEX_FOLDER {
            None
        } else if depth == 0 {
            Some(path)
        } else {
            unexpected_in(folder, &path, parts, depth - 1)?
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Reads the beginning of a file; a pipe in its place is not waited for.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let mut bytes = Vec::new();
    file.take(WALLET_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Lists the names in a folder in their order; none where this user may not look, which is told by whose it is.
fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound) => {
            return Ok(Vec::new());
        }
        entries => entries?,
    };
    let names = entries.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<io::Result<Vec<OsString>>>()?;
    names.sort_unstable();
    Ok(names)
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Returns what a folder of this name may hold: each file in it, at any depth, has one of these in its own name or, of more
/// parts than one, at the end of its path. `None` where nothing of this name is expected; in place of a file a folder is empty.
fn expected_in(name: &OsStr) -> Option<Vec<&'static str>> {
    let name = name.to_str()?;
    let parts = match name {
        file_names::TLS => vec![".pem", ".crt", ".key", file_names::OWN_NAME],
        file_names::BACKUPS => vec![file_names::BACKUP_EXTENSION],
        file_names::NETWORKS => vec![".redb"],
        file_names::VERIFY => vec![file_names::LEDGER],
        file_names::RESTORE => [&file_names::BACKED_UP[..], &[file_names::RESTORE_READY]].concat(),
        // The file system's.
        "lost+found" => vec![""],
        _ if name.starts_with(file_names::REPLACED_PREFIX) => file_names::BACKED_UP.to_vec(),
        _ if is_expected_file(name) => Vec::new(),
        _ => return None,
    };
    Some(parts)
}

fn is_expected_file(name: &str) -> bool {
    let is_copy = name.starts_with(file_names::LEDGER_COPY_PREFIX);
    EXPECTED.contains(&name)
        || name == socket::unfinished(file_names::CONTROL_SOCKET)
        || is_copy
        || is_temporary(name)
}

/// Returns whether a file of this name was about to be written: its name has 32 digits that nobody chose.
fn is_temporary(name: &str) -> bool {
    let stem = name.strip_prefix('.').and_then(|name| name.strip_suffix(".tmp"));
    let digits = stem.and_then(|stem| stem.rsplit_once('.')).map_or("", |(_, digits)| digits);
    digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Looks for anything of another user, and with `open` closes what it finds open. A folder is closed before it is read:
/// afterwards nobody else can change what is found.
fn walk(
    top: &Path,
    folder: &Path,
    own: u32,
    depth: usize,
    mut open: Option<&mut Vec<PathBuf>>,
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
        if let Some(open) = open.as_deref_mut() {
            // Clients of other users read it; it holds no secret.
            let is_public = path == top.join(file_names::TLS).join(file_names::CA);
            close(&path, &metadata, is_public, open);
        }
        if metadata.is_dir() && depth > 0 {
            let foreign = walk(top, &path, own, depth - 1, open.as_deref_mut())?;
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

    /// A claim of this user, to whom a wallet is a file that says so.
    fn claimed(top: &Path) -> Result<Vec<PathBuf>, NotClaimed> {
        let own = fs::metadata(top).unwrap().uid();
        let wallet_of = |bytes: &[u8]| match bytes {
            b"a wallet" => WalletFile::Own,
            b"another's" => WalletFile::Usable,
            _ => WalletFile::Unusable,
        };
        claim(top, own, wallet_of).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn open_to_all(path: &Path) {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_pipe_in_place_of_a_file_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("settings.toml");
        let own = fs::metadata(top.path()).unwrap().uid();
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let refused = claim(top.path(), own, |_| WalletFile::Unusable).unwrap_err().to_string();
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
        let mode = |name: &str| mode(&top.path().join(name));
        let set = |name: &str, mode| {
            fs::set_permissions(top.path().join(name), Permissions::from_mode(mode)).unwrap();
        };
        fs::create_dir_all(top.path().join("networks/lab")).unwrap();
        fs::create_dir_all(top.path().join("tls")).unwrap();
        for (name, open) in [
            ("networks/lab/catalog.redb", 0o644),
            (file_names::WALLET, 0o600),
            (file_names::LEDGER, 0o600),
            ("tls/ca.pem", 0o644),
        ] {
            fs::write(top.path().join(name), "").unwrap();
            set(name, open);
        }
        set("networks", 0o700);
        set("networks/lab", 0o755);
        set("tls", 0o711);
        set(".", 0o755);
        let open = claimed(top.path()).unwrap();
        let lab = top.path().join("networks/lab");
        assert_eq!(open, [top.path().into(), lab.clone(), lab.join("catalog.redb")]);
        assert_eq!(
            (mode("."), mode("networks/lab"), mode("networks/lab/catalog.redb")),
            (0o711, 0o711, 0o600)
        );
        assert_eq!(mode("tls/ca.pem"), 0o644);
        assert_eq!(claimed(top.path()), Ok(Vec::new()));
        // To any other user the same folder is somebody else's, and nothing of it is changed.
        set(".", 0o755);
        let foreign = NotClaimed::Foreign { path: top.path().into(), user: own };
        assert_eq!(claim(top.path(), own + 1, |_| WalletFile::Unusable).unwrap(), Err(foreign));
        assert_eq!(mode("."), 0o755);
    }

    #[test]
    fn a_folder_of_something_else_is_left_as_it_is_until_it_has_a_wallet() {
        let top = tempfile::tempdir().unwrap();
        let temporary = format!(".wallet.json.{}.tmp", "5f2a".repeat(8));
        let folders = [
            "tls",
            "backups",
            "networks",
            ".verify",
            ".restore",
            "lost+found",
            "replaced-2026-01-02",
            ".control.sock.new",
        ];
        for name in EXPECTED.iter().chain(&folders).chain(&[&*temporary, ".backup.5f2a.redb"]) {
            fs::create_dir(top.path().join(name)).unwrap();
        }
        fs::remove_dir(top.path().join(file_names::LEDGER)).unwrap();
        claimed(top.path()).unwrap();
        let diary = top.path().join("diary");
        fs::write(&diary, "dear diary").unwrap();
        for path in [top.path(), diary.as_path()] {
            open_to_all(path);
        }
        let occupied = |found: &str| Err(NotClaimed::Occupied { found: found.into() });
        assert_eq!(claimed(top.path()), occupied("diary"));
        // Other programs call theirs so, too.
        let wallet = top.path().join(file_names::WALLET);
        fs::write(&wallet, "{}").unwrap();
        assert_eq!(claimed(top.path()), occupied("diary"));
        // Whose it is comes second: nobody is told to give it to this user.
        let another = fs::metadata(top.path()).unwrap().uid() + 1;
        assert_eq!(claim(top.path(), another, |_| WalletFile::Unusable).unwrap(), occupied("diary"));
        assert_eq!((mode(top.path()), mode(&diary)), (0o755, 0o755), "something was changed");
        // People keep notes beside their wallet, and a damaged one is known by its ledger.
        for (wallet_is, has_ledger) in [("a wallet", false), ("{", true)] {
            open_to_all(top.path());
            open_to_all(&diary);
            fs::write(&wallet, wallet_is).unwrap();
            if has_ledger {
                fs::write(top.path().join(file_names::LEDGER), "").unwrap();
            }
            claimed(top.path()).unwrap();
            assert_eq!((mode(top.path()), mode(&diary)), (0o711, 0o700), "{wallet_is}");
        }
    }

    #[test]
    fn a_wallet_of_something_else_keeps_a_folder_from_becoming_a_nodes() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join(file_names::WALLET), "{}").unwrap();
        assert_eq!(claimed(top.path()), Err(NotClaimed::Occupied { found: file_names::WALLET.into() }));
        // One that another program wrote is a beginning, and no leave to close what else there is.
        fs::write(top.path().join(file_names::WALLET), "another's").unwrap();
        claimed(top.path()).unwrap();
        fs::write(top.path().join("diary"), "").unwrap();
        assert_eq!(claimed(top.path()), Err(NotClaimed::Occupied { found: "diary".into() }));
    }

    #[test]
    fn an_expected_folder_has_nothing_in_it_but_what_a_node_puts_there() {
        let digits = "5f2a".repeat(8);
        for (file, is_nodes) in [
            ("backups/farthing-2026-01-02T030405Z-auto.backup", true),
            (&*format!("backups/.farthing-2026.backup.{digits}.tmp"), true),
            ("backups/photos/a.jpg", false),
            ("backups/.notes.tmp", false),
            ("tls/authority.pem", true),
            ("tls/site/index.html", false),
            ("networks/lab-8453/catalog.redb.damaged-1", true),
            ("networks/lab-8453/catalog-index/5f2a.store", true),
            ("networks/interfaces", false),
            ("replaced-2026-01-02T030405Z/tls/authority.pem", true),
            ("replaced-parts/list.csv", false),
            (".restore/ready", true),
            (".restore/tls/authority.pem", true),
            (".restore/diary", false),
            ("node.log/2026/january", false),
            ("lost+found/#12/a.jpg", true),
        ] {
            let top = tempfile::tempdir().unwrap();
            let path = top.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
            open_to_all(&path);
            let found = claimed(top.path());
            let occupied = NotClaimed::Occupied { found: file.into() };
            assert_eq!(found.err(), (!is_nodes).then_some(occupied), "{file}");
            assert_eq!(mode(&path) == 0o755, !is_nodes, "{file}");
        }
    }

    #[test]
    fn what_is_refused_for_something_deep_in_it_is_changed_nowhere() {
        let top = tempfile::tempdir().unwrap();
        let tls = top.path().join("tls");
        fs::create_dir(&tls).unwrap();
        for number in 0..20 {
            fs::write(tls.join(format!("{number}.pem")), "").unwrap();
            open_to_all(&tls.join(format!("{number}.pem")));
        }
        let mode_of_pipe = Mode::from_raw_mode(0o600);
        let pipe = tls.join("pipe.pem");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode_of_pipe, 0).unwrap();
        for path in [top.path(), &tls] {
            open_to_all(path);
        }
        let own = fs::metadata(top.path()).unwrap().uid();
        claim(top.path(), own, |_| WalletFile::Unusable).unwrap_err();
        assert_eq!((mode(top.path()), mode(&tls)), (0o755, 0o755));
        for number in 0..20 {
            assert_eq!(mode(&tls.join(format!("{number}.pem"))), 0o755);
        }
    }
}
