//! Room that is left where the data folder lies, and waiting for the disk.
//!
//! A full disk closes the ledger: then nothing is promised, served, bought or claimed, because no claim leaves this node
//! that a restart would not know of. So it is told long before.

use std::{fmt, path::Path};

use tokio::task::{JoinHandle, spawn_blocking};

const MIB: u64 = 1024 * 1024;
/// Room for weeks of calls on a busy node, and for the backup of a large ledger.
const LOW_BYTES: u64 = 512 * MIB;
/// On a file system that is small itself, a tenth of it.
const LOW_PART: u64 = 10;
/// A twentieth, 5 %, is told before that.
const LITTLE_PART: u64 = 20;
/// A twentieth of a very large disk lasts for years.
const LITTLE_BYTES: u64 = 16 * 1024 * MIB;

/// The effect of a full disk, and what to do about it.
pub const LOW: &str = "when the disk is full, nothing can be stored, so the node serves, buys and claims nothing until \
                       it is restarted";
pub const LOW_NEXT: &str = "free disk space, or give the node a larger disk";

/// The room that a file system has for this user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl Space {
    /// `None` where the system does not say.
    pub fn of(folder: &Path) -> Option<Self> {
        let told = rustix::fs::statvfs(folder).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(told.f_frsize);
        Some(Self { free_bytes: bytes(told.f_bavail), total_bytes: bytes(told.f_blocks) })
    }

    /// Returns whether it is low, or will be before long.
    pub fn is_little(&self) -> bool {
        self.is_low() || self.free_bytes < LITTLE_BYTES.min(self.total_bytes / LITTLE_PART)
    }

    /// Returns whether too little is left to go on for long.
    pub fn is_low(&self) -> bool {
        self.free_bytes < LOW_BYTES.min(self.total_bytes / LOW_PART)
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} MiB", self.free_bytes / MIB, self.total_bytes / MIB)
    }
}

/// Starts work that waits for the disk, or takes its time, apart from those who answer. It goes on if nobody waits for it.
pub fn start_aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    #[cfg(feature = "played")]
    if IS_PLAYED.get() {
        return tokio::spawn(async move { work() });
    }
    spawn_blocking(work)
}

#[cfg(feature = "played")]
thread_local! {
    static IS_PLAYED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Has this thread do such work itself, in its turn among its tasks: then everything on it happens in the same order each time.
#[cfg(feature = "played")]
pub fn play_on_this_thread() {
    IS_PLAYED.set(true);
}

/// Does such work, and waits for it. A panic of it goes on in its caller.
pub async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match start_aside(work).await {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_a_gibibyte_is_little_and_on_a_small_disk_a_tenth() {
        let is_low = |free_mib: u64, total_mib: u64| {
            Space { free_bytes: free_mib * MIB, total_bytes: total_mib * MIB }.is_low()
        };
        for (free, total, low) in [
            (511, 1_000_000, true),
            (512, 1_000_000, false),
            (511, 5_120, true),
            (512, 5_120, false),
            (99, 1_000, true),
            (100, 1_000, false),
            (0, 4, true),
        ] {
            assert_eq!(is_low(free, total), low, "{free} of {total} MiB");
        }
    }

    #[test]
    fn a_twentieth_is_told_before_and_nothing_of_what_a_very_large_disk_has_left() {
        for (free, total, little) in [
            (4_999, 100_000, true),
            (5_000, 100_000, false),
            (511, 5_120, true),
            (512, 5_120, false),
            (16_383, 10_000_000, true),
            (16_384, 10_000_000, false),
        ] {
            let space = Space { free_bytes: free * MIB, total_bytes: total * MIB };
            assert_eq!(space.is_little(), little, "{free} of {total} MiB");
        }
    }

    #[test]
    fn the_system_tells_the_space_of_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::of(folder.path()).unwrap();
        let df = std::process::Command::new("df").args(["-B1", "--output=size"]).arg(folder.path()).output();
        let told = String::from_utf8(df.unwrap().stdout).unwrap();
        assert_eq!(told.lines().last().unwrap().trim().parse(), Ok(space.total_bytes), "{told}");
        assert!(space.free_bytes <= space.total_bytes, "{space:?}");
        assert_eq!(Space::of(&folder.path().join("none")), None);
    }
}
