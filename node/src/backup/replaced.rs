//! Files that a restoration put aside: those of the node that was there before, until their user removes them.

use std::{fs, io, path::Path, time::UNIX_EPOCH};

use farthing_control::types::{ReplacedNode, WalletBalance};
use farthing_os::file_names;

use super::BackupError;

/// Nobody restores more often without looking.
const LISTED_MAX: usize = 100;

/// All of them, the newest first.
///
/// # Errors
/// [`BackupError::Io`].
pub fn all(data_dir: &Path) -> Result<Vec<ReplacedNode>, BackupError> {
    let failed = |source| BackupError::Io { path: data_dir.to_owned(), source };
    let mut all = Vec::new();
    for entry in fs::read_dir(data_dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A link is none of ours, wherever it leads.
        if !name.starts_with(file_names::REPLACED_PREFIX) || !entry.file_type().map_err(failed)?.is_dir() {
            continue;
        }
        let changed = entry.metadata().map_err(failed)?.modified().ok();
        let since = changed.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        all.push(ReplacedNode {
            bytes: bytes_of(&entry.path()).map_err(failed)?,
            wallet: wallet_of(&entry.path()),
            left: left_in(&entry.path()),
            replaced_secs: since.map_or(0, |since| since.as_secs()),
            path: entry.path().display().to_string(),
            name,
        });
    }
    // Their names sort by time.
    all.sort_by(|one, other| other.name.cmp(&one.name));
    all.truncate(LISTED_MAX);
    Ok(all)
}

/// Removes one for good; `None` when there is none of that name.
///
/// # Errors
/// [`BackupError::Io`].
pub fn remove(data_dir: &Path, name: &str) -> Result<Option<ReplacedNode>, BackupError> {
    let Some(found) = all(data_dir)?.into_iter().find(|replaced| replaced.name == name) else {
        return Ok(None);
    };
    let path = data_dir.join(&found.name);
    fs::remove_dir_all(&path).map_err(|source| BackupError::Io { path, source })?;
    Ok(Some(found))
}

/// Of the files of a folder and of those in it.
fn bytes_of(folder: &Path) -> io::Result<u64> {
    let of = |entry: io::Result<fs::DirEntry>| {
        let entry = entry?;
        if entry.file_type()?.is_dir() { bytes_of(&entry.path()) } else { Ok(entry.metadata()?.len()) }
    };
    fs::read_dir(folder)?.map(of).sum()
}

fn wallet_of(folder: &Path) -> Option<String> {
    wallet_in(&fs::read(folder.join(file_names::WALLET)).ok()?)
}

/// The money that was noted at the end of the node. A note that cannot be read tells nothing.
fn left_in(folder: &Path) -> Option<WalletBalance> {
    serde_json::from_slice(&fs::read(folder.join(file_names::LEFT)).ok()?).ok()
}

/// The address that a wallet's file says is its own.
pub(super) fn wallet_in(json: &[u8]) -> Option<String> {
    let stored: serde_json::Value = serde_json::from_slice(json).ok()?;
    let address = format!("0x{}", stored["address"].as_str()?.trim_start_matches("0x"));
    address.parse::<farthing_protocol::Address>().ok().map(|address| address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_restoration_put_aside_is_listed_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let data_dir = folder.path();
        for (name, wallet) in [
            ("replaced-2026-11-22T113000Z", "7e5f4552091a69125d5dfcb7b8c2659029395bdf"),
            ("replaced-2026-11-23T113000Z", "nobody"),
            ("backups", ""),
        ] {
            fs::create_dir(data_dir.join(name)).unwrap();
            fs::write(data_dir.join(name).join(file_names::WALLET), format!("{{\"address\":\"{wallet}\"}}"))
                .unwrap();
        }
        std::os::unix::fs::symlink("/", data_dir.join("replaced-by-a-link")).unwrap();
        fs::write(data_dir.join("replaced-notes"), "mine").unwrap();
        let found = all(data_dir).unwrap();
        let names: Vec<&str> = found.iter().map(|replaced| replaced.name.as_str()).collect();
        assert_eq!(names, ["replaced-2026-11-23T113000Z", "replaced-2026-11-22T113000Z"]);
        assert_eq!(found[1].wallet.as_deref(), Some("0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"));
        assert_eq!(found[0].wallet, None);
        assert!(found[1].bytes > 40);
        for wrong in ["backups", "../x", "replaced-by-a-link", "replaced-notes", ""] {
            assert_eq!(remove(data_dir, wrong).unwrap(), None, "{wrong}");
        }
        assert!(remove(data_dir, names[1]).unwrap().is_some());
        assert_eq!(all(data_dir).unwrap().len(), 1);
        assert!(data_dir.join("backups").exists() && data_dir.join("replaced-notes").exists());
    }
}
