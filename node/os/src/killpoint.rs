//! Places at which the crash tests end the process, as if power had failed there.
//!
//! `FARTHING_KILL_AT=<name>` ends the process the first time the named place is reached. Only development
//! builds contain it; a release build compiles it to nothing.

/// Ends the process here when the environment asks for it.
#[inline]
pub fn reached(name: &str) {
    #[cfg(debug_assertions)]
    if std::env::var_os("FARTHING_KILL_AT").is_some_and(|at| at == *name) {
        // Like SIGKILL: no destructor runs, nothing is flushed.
        std::process::abort();
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
