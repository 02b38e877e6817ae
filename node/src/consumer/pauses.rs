//! The pauses between questions to an owner that has not told something yet: each is twice the one before, up to the longest.

use std::time::Duration;

use farthing_protocol::limits;

pub(super) const ASK_EVERY_FIRST: Duration = Duration::from_millis(500);
pub(super) const ASK_EVERY_MAX: Duration = Duration::from_secs(60);
/// No call runs longer, and none that was sent waits longer before it runs.
pub(super) const FORGOTTEN_MAX: Duration = Duration::from_millis(2 * limits::CALL_DEADLINE_MS_MAX);
