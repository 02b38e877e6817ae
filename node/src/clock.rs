//! The wall clock, read in one place.

use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since the Unix epoch.
#[must_use]
pub fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// Days since the Unix epoch in UTC: what daily budgets count by.
#[must_use]
pub fn day_of(secs: u64) -> u32 {
    u32::try_from(secs / 86_400).unwrap_or(u32::MAX)
}
