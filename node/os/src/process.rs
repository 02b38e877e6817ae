//! This process: what other programs of this machine get to see of it, and what it takes of the machine.

use std::{fs, time::Duration};

/// Keeps this process's memory to itself: no other program of the same user may attach to it or read its environment,
/// and a crash writes no image of it anywhere. Keys lie in it.
pub fn keep_memory_private() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "the system does not protect this program's memory from other programs");
    }
}

/// Makes every file from now on one that its user alone can read, whichever library makes it.
pub fn keep_files_private() {
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// As many as the service unit and the containers set.
const OPEN_FILES: u64 = 16_384;

/// Asks for as many open files as connections on all ports may take, where the system gives a process fewer at first.
pub fn allow_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.unwrap_or(u64::MAX).min(OPEN_FILES);
    if current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum })
    {
        tracing::warn!(%error, "the system allows this process only a few open files");
    }
}

/// The part of the machine that this process takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Time of processors since its start.
    pub cpu: Duration,
    pub resident_bytes: u64,
    pub virtual_bytes: u64,
    /// Connections included.
    pub open_files: u64,
    pub open_files_max: u64,
}

/// Asks the system what this process takes; `None` where it does not say.
pub fn usage() -> Option<Usage> {
    use rustix::{
        process::{Resource, getrlimit},
        time::{ClockId, clock_gettime},
    };
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let files = fs::read_dir("/proc/self/fd").ok()?.count();
    Some(Usage {
        cpu: Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).ok()?,
        resident_bytes: kib_of(&status, "VmRSS:")?.saturating_mul(1024),
        virtual_bytes: kib_of(&status, "VmSize:")?.saturating_mul(1024),
        // One is the folder that is being read.
        open_files: u64::try_from(files.saturating_sub(1)).ok()?,
        open_files_max: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
    })
}

/// A line of `/proc/self/status` such as `VmRSS:     12345 kB`.
fn kib_of(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_says_what_this_process_takes() {
        let before = usage().unwrap();
        let file = tempfile::tempfile().unwrap();
        let memory = std::hint::black_box(vec![1_u8; 64 * 1024 * 1024]);
        let after = usage().unwrap();
        assert!(after.cpu > before.cpu && after.open_files_max >= after.open_files, "{after:?}");
        assert!(after.virtual_bytes >= after.resident_bytes, "{after:?}");
        assert!(after.resident_bytes >= memory.len() as u64, "{after:?}");
        assert!(after.open_files > 3, "{after:?}");
        drop(file);
        assert_eq!(kib_of("VmPeak:\t 7 kB\nVmRSS:\t  12 kB\n", "VmRSS:"), Some(12));
        assert_eq!(kib_of("VmPeak:\t 7 kB\n", "VmRSS:"), None);
    }
}
