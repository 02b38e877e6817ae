//! The pauses between questions to an owner that has not told something yet: each is twice the one before, up to the longest.

use std::time::Duration;

pub(super) const ASK_EVERY_FIRST: Duration = Duration::from_millis(500);
pub(super) const ASK_EVERY_MAX: Duration = Duration::from_secs(60);
