//! The service that the owner sells, which counts what it is asked for.

use std::collections::BTreeMap;

use farthing_protocol::{CallId, CallRequest};

/// Executions of one call.
#[derive(Clone, Copy, Debug, Default)]
struct Executions {
    /// Before its owner had stored an answer or a charge.
    before_end: u32,
    after_end: u32,
}

#[derive(Debug, Default)]
pub struct Service(BTreeMap<CallId, Executions>);

impl Service {
    /// Executes a call of which an answer or a charge is stored, or is not.
    pub fn execute(&mut self, request: &CallRequest, has_ended: bool) {
        let executions = self.0.entry(request.call_id).or_default();
        *(if has_ended { &mut executions.after_end } else { &mut executions.before_end }) += 1;
        let Executions { before_end, after_end } = *executions;
        assert!(after_end <= 1, "one charge buys one further execution: {executions:?}");
        assert!(
            request.method.is_safe() || before_end + after_end == 1,
            "a call with effects runs once: {executions:?}"
        );
    }

    pub fn has_executed(&self, call_id: CallId) -> bool {
        self.0.contains_key(&call_id)
    }
}
