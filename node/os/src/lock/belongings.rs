//! Checks whose the data folder is, and who else may look into it.
//!
//! A folder is a node's by a wallet with a ledger beside it. Any other, one with a wallet alone too, becomes one only while
//! nothing else is in it than what a first start finds by right (`expected_in`), and sockets at which nobody listens, such as one
//! that a start left which was ended early: in a folder that was mistyped, such as a user's home with a copy of a wallet in it,
//! others would lose what they may read there. Everything is looked at before anything is changed.
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

/// The reason that a folder is none of this node's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotClaimed {
    /// Something of another user is in it.
    Foreign { path: PathBuf, user: u32 },
    /// It is no node's, and something else is in it, by its path from there.
    Occupied { found: PathBuf },
    /// It is no node's, and a link leads to a folder where a node makes one, by its path from there.
    Linked { found: PathBuf },
}

/// Looks through `folder`, which is `own`'s and a node's or else left as it is, and closes what others can read. Answers
/// what was open. `is_wallet` knows wallets by their bytes.
pub(super) fn claim(
    folder: &Path,
    own: u32,
    is_wallet: fn(&[u8]) -> bool,
) -> io::Result<Result<Vec<PathBuf>, NotClaimed>> {
    // Before whose it is: a folder of something else is not to be given to this user.
    if !is_nodes(folder)
        && let Some(refused) = refusal(folder, is_wallet)?
    {
        return Ok(Err(refused));
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

/// Returns whether a node has run on a folder, whatever else is in it by now: its wallet and its ledger are there, damaged
/// ones too. While a restoration replaces one of them, the other and the restoration are.
fn is_nodes(folder: &Path) -> bool {
    let ready = Path::new(file_names::RESTORE).join(file_names::RESTORE_READY);
    let known = [Path::new(file_names::WALLET), Path::new(file_names::LEDGER), &ready];
    known.iter().filter(|path| is_file(&folder.join(path))).count() >= 2
}

/// Finds what keeps a folder that is no node's from becoming one.
fn refusal(folder: &Path, is_wallet: fn(&[u8]) -> bool) -> io::Result<Option<NotClaimed>> {
    for name in names(folder)? {
        let path = folder.join(&name);
        let is_whole = name == file_names::WALLET && read(&path).is_ok_and(|bytes| is_wallet(&bytes));
        let found = match expected_in(&name) {
            None if is_whole || socket::is_left(&path) => continue,
            None => Some(name.into()),
            // What a node makes there would lie elsewhere, and what lies there would lose its rights.
            Some(_) if path.is_symlink() && path.is_dir() => {
                return Ok(Some(NotClaimed::Linked { found: name.into() }));
            }
            Some(is_expected) if is_folder(&path) => {
                unexpected_in(folder, Path::new(&name), is_expected, DEPTH_MAX)?
            }
            Some(_) => None,
        };
        if let Some(found) = found {
            return Ok(Some(NotClaimed::Occupied { found }));
        }
    }
    Ok(None)
}

/// Finds a file below `inside` that is not expected there.
fn unexpected_in(
    folder: &Path,
    inside: &Path,
    is_expected: IsExpected,
    depth: usize,
) -> io::Result<Option<PathBuf>> {
    for name in names(&folder.join(inside))? {
        let path = inside.join(&name);
        let found = if !is_folder(&folder.join(&path)) {
            let is_known = is_temporary(&name.to_string_lossy()) || is_expected(&path);
            (!is_known).then_some(path)
        } else if name == INDEX_FOLDER {
            None
        } else if depth == 0 {
            Some(path)
        } else {
            unexpected_in(folder, &path, is_expected, depth - 1)?
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

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir())
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
}

/// Tells by its path whether a file is one of those that a folder may hold.
type IsExpected = fn(&Path) -> bool;

/// Returns which files a folder of this name may hold, at any depth. `None` where nothing of this name is expected; in place of
/// a file a folder is empty.
fn expected_in(name: &OsStr) -> Option<IsExpected> {
    let name = name.to_str()?;
    let is_expected: IsExpected = match name {
        file_names::TLS => |path| has_part(path, &[".pem", ".crt", ".key", file_names::OWN_NAME]),
        file_names::BACKUPS => |path| path.file_name().is_some_and(file_names::is_backup),
        file_names::NETWORKS => |path| has_part(path, &[".redb"]),
        file_names::VERIFY => |path| has_part(path, &[file_names::LEDGER]),
        file_names::RESTORE => {
            |path| has_part(path, &file_names::BACKED_UP) || has_part(path, &[file_names::RESTORE_READY])
        }
        // The file system's.
        "lost+found" => |_| true,
        _ if name.starts_with(file_names::REPLACED_PREFIX) => |path| has_part(path, &file_names::BACKED_UP),
        _ if is_expected_file(name) => |_| false,
        _ => return None,
    };
    Some(is_expected)
}

/// Returns whether a file has one of `parts` in its name or, of more parts than one, at the end of its path.
fn has_part(path: &Path, parts: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    parts.iter().any(|part| name.contains(part) || path.ends_with(part))
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
            return Err(io::Error::other(format!("{} is a pipe or a device, not a file", path.display())));
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
mod tests;
