//! The file of the calls that were refused. It is written apart from every call, a second after something was noted, so a
//! crash loses what the last second brought; nothing depends on it but what people look at.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use farthing_os::files;
use farthing_shared::{
    blocking::run_blocking,
    refused::{RefusedCalls, STORED_BYTES_MAX, Stamp},
};

const NAME: &str = "refused.cbor";
const WRITE_EVERY: Duration = Duration::from_secs(1);
/// Calls that are only counted are written down once in so many looks.
const COUNTS_EVERY: u32 = 60;

/// The calls that were refused, and the file where they stand.
#[derive(Clone, Debug)]
pub(super) struct RefusedFile {
    path: PathBuf,
    calls: RefusedCalls,
}

/// Reads the file in `folder`; nothing where it is missing or broken.
pub(super) async fn read(folder: &Path) -> RefusedCalls {
    let path = folder.join(NAME);
    let bytes = run_blocking(move || read_bounded(&path)).await;
    RefusedCalls::from_bytes(&bytes.unwrap_or_default())
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let length = std::fs::metadata(path)?.len();
    if usize::try_from(length).is_ok_and(|length| length <= STORED_BYTES_MAX) {
        return std::fs::read(path);
    }
    Ok(Vec::new())
}

impl RefusedFile {
    pub(super) fn new(folder: &Path, calls: RefusedCalls) -> Self {
        Self { path: folder.join(NAME), calls }
    }

    /// Writes the file whenever there is something new.
    pub(super) async fn keep(self) {
        let (mut stored, mut looks) = (self.calls.stamp(), 0_u32);
        loop {
            tokio::time::sleep(WRITE_EVERY).await;
            looks = looks.wrapping_add(1);
            let now = self.calls.stamp();
            if is_due(stored, now, looks) {
                self.store().await;
                stored = now;
            }
        }
    }

    /// Writes the file as it is now; none where nothing was ever refused.
    pub(super) async fn store(&self) {
        if self.calls.stamp() == Stamp::default() {
            return;
        }
        let Self { path, calls } = self.clone();
        let written = run_blocking(move || files::replace_private(&path, &calls.to_bytes())).await;
        if let Err(error) = written {
            tracing::warn!(%error, "the calls that were refused are not stored");
        }
    }
}

/// Returns whether what is there now is to be written over what was stored.
fn is_due(stored: Stamp, now: Stamp, looks: u32) -> bool {
    stored.newest != now.newest || (stored != now && looks.is_multiple_of(COUNTS_EVERY))
}

#[cfg(test)]
mod tests {
    use farthing_shared::{call_ends::Half, refused::RefusedCall};

    use super::*;

    #[tokio::test]
    async fn what_was_refused_is_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).await.of(Half::Consumer).is_empty());
        let calls = RefusedCalls::default();
        calls.note(RefusedCall { code: "over-limit".to_owned(), ..RefusedCall::new(Half::Consumer, 7) });
        RefusedFile::new(folder.path(), calls.clone()).store().await;
        assert_eq!(read(folder.path()).await.of(Half::Consumer), calls.of(Half::Consumer));
        std::fs::write(folder.path().join(NAME), b"broken").unwrap();
        assert!(read(folder.path()).await.of(Half::Consumer).is_empty());
    }

    #[test]
    fn a_flood_that_is_only_counted_is_not_written_down_every_second() {
        let (before, row) = (Stamp { newest: 1, counted: 0 }, Stamp { newest: 2, counted: 0 });
        let counted = Stamp { newest: 1, counted: 99_940 };
        assert!(is_due(before, row, 1));
        assert!(!is_due(before, counted, 1) && is_due(before, counted, COUNTS_EVERY));
        assert!(!is_due(before, before, COUNTS_EVERY));
    }
}
