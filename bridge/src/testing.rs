//! Descriptions to test with: two that have everything, and a strategy for arbitrary ones.

mod arbitrary;
mod samples;

use std::time::{Duration, Instant};

pub(crate) use self::{
    arbitrary::descriptions,
    samples::{graphql, rest},
};

/// Generous: the slowest work takes a second in an unoptimised build on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Does work that would take minutes if it grew faster than what it is done for.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    assert!(start.elapsed() < PATIENCE, "it took {:?}", start.elapsed());
    result
}
