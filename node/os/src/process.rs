//! Limits what other programs of this machine get to see of this one.

/// Keeps this process's memory to itself: no other program of the same user may attach to it or read its environment,
/// and a crash writes no image of it anywhere. Keys lie in it.
pub fn keep_memory_private() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if let Err(error) = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
    {
        tracing::warn!(%error, "the system does not keep other programs out of this one's memory");
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
        tracing::warn!(%error, "the system gives this process few open files");
    }
}
