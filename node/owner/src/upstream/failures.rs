//! Lines about answers that the owner's server did not give, each with the call that it was for. Callers cause them, some
//! for nothing: so many a minute are written.

use farthing_bounds::LineLimiter;
use farthing_protocol::{CallId, ServiceId};
use tokio::time::Instant;
use url::Url;

use super::Fault;

/// The most characters of a server's messages that the log repeats.
const MESSAGES_CHARS_MAX: usize = 500;

static TOLD: LineLimiter = LineLimiter::new(30);

/// A call as the owner's log names it.
#[derive(Debug, Clone)]
pub struct CallName {
    pub call_id: CallId,
    pub service: ServiceId,
    /// Method and path as described: values of callers are not in it.
    pub operation: String,
}

/// Tells that there was no answer, or none that is passed on. A question of the owner's own has no call.
pub(super) fn no_answer(call: Option<&CallName>, upstream: &Url, status: u16, fault: Fault) {
    let Some(left_out) = TOLD.admits(Instant::now().into_std()) else { return };
    tracing::info!(
        call_id = call.map(|call| display(&call.call_id)),
        service = call.map(|call| display(&call.service)),
        operation = call.map(|call| call.operation.as_str()),
        %upstream,
        status,
        reason = fault.words(),
        left_out,
        "the upstream gave no answer"
    );
}

/// Tells what a GraphQL server said instead of data, which may repeat what callers sent.
pub(super) fn no_data<'a>(call: Option<&CallName>, status: u16, said: impl Iterator<Item = &'a str>) {
    let Some(left_out) = TOLD.admits(Instant::now().into_std()) else { return };
    let messages: String = said.collect::<Vec<_>>().join("; ").chars().take(MESSAGES_CHARS_MAX).collect();
    tracing::info!(
        call_id = call.map(|call| display(&call.call_id)),
        service = call.map(|call| display(&call.service)),
        operation = call.map(|call| call.operation.as_str()),
        status,
        messages,
        left_out,
        "the GraphQL server gave no data"
    );
}
