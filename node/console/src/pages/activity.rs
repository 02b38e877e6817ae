//! Activity: the log of calls ([`log`]), of which other pages show the newest, and one of them ([`one`]).

use farthing_control::types::{CallOutcome, CallSide, LoggedCall};

use crate::show;

pub(super) mod log;
pub(super) mod one;

pub(super) fn named(name: &str) -> String {
    if name.is_empty() { "A service no longer known".to_owned() } else { show::visible(name) }
}

/// The service of a call in words; a call that could not be read that far has none.
fn service_of(call: &LoggedCall) -> String {
    call.service.map_or_else(|| "Unknown service".to_owned(), |_| named(&call.name))
}

/// Tells whether somebody at this node waits for a call, as far as the log shows it.
fn can_be_cancelled(call: &LoggedCall) -> bool {
    call.side == CallSide::Bought && call.outcome == CallOutcome::UnderWay
}
