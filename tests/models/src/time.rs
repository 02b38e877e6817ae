//! Time that passes when somebody waits for it.

use real_std::{cell::Cell, ops::Add};

pub use real_std::time::Duration;

real_std::thread_local! {
    /// Of all schedules that one test runs, one after the other.
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instant(Duration);

impl Instant {
    pub fn now() -> Self {
        Self(NOW.get())
    }

    pub fn elapsed(&self) -> Duration {
        NOW.get().saturating_sub(self.0)
    }

    /// Lets the time pass until then.
    pub(crate) fn comes(self) {
        NOW.set(NOW.get().max(self.0));
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, more: Duration) -> Self {
        Self(self.0 + more)
    }
}
