//! The service that the owner sells, which counts what it is asked for.

use std::collections::BTreeMap;

use farthing_protocol::CallId;

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
    /// Executes a call, with effects or not, of which an answer or a charge is stored, or is not.
    ///
    /// # Errors
    /// A promise that this breaks.
    pub fn execute(&mut self, call_id: CallId, is_safe: bool, has_ended: bool) -> Result<(), String> {
        let executions = self.0.entry(call_id).or_default();
        *(if has_ended { &mut executions.after_end } else { &mut executions.before_end }) += 1;
        let Executions { before_end, after_end } = *executions;
        if after_end > 1 {
            return Err(format!("one charge buys one further execution: {executions:?}"));
        }
        if !is_safe && before_end + after_end > 1 {
            return Err(format!("a call with effects runs once: {executions:?}"));
        }
        Ok(())
    }

    pub fn has_executed(&self, call_id: CallId) -> bool {
        self.0.contains_key(&call_id)
    }
}
