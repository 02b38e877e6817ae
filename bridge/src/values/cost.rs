//! The cost of checking a value, in steps.

use super::Checker;
use crate::json::Json;

/// The cost of refusing a value, in steps of checking; as many bytes of its place are another step.
pub(super) const REFUSAL_CHECKS: usize = 20;
/// Choices that are compared with a value for one step: the largest body may hold a choice of 250 in each place.
pub(super) const CHOICES_PER_CHECK: usize = 256;
/// Members that are compared with a property in the time of one step.
pub(super) const MEMBERS_PER_CHECK: usize = 16;
/// Bytes of a text that are read in that time: each alternative reads it anew.
pub(super) const BYTES_PER_CHECK: usize = 128;
/// Characters that are compared in that time, to say what may have been meant.
pub(super) const CELLS_PER_CHECK: usize = 20;

/// The steps of comparing a value with one choice: its values, and 64 bytes of a text as one.
pub(super) fn weight(value: &Json<'_>) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(weight).sum::<usize>(),
        Json::Object(members) => 1 + members.iter().map(|(_, value)| weight(value)).sum::<usize>(),
        Json::String(text) => 1 + text.len() / 64,
        Json::Number(text) => weight_of_number(text),
        Json::Null | Json::Boolean(_) => 1,
    }
}

/// A number is read to be compared, which takes as long as it has digits when there are more than usual.
pub(super) const fn weight_of_number(text: &str) -> usize {
    1 + text.len() / 64 * 64
}

impl Checker<'_> {
    pub(super) const fn spend(&mut self, checks: usize) {
        self.steps.take(checks);
    }

    /// True if nothing more is looked at.
    pub(crate) const fn is_spent(&self) -> bool {
        self.steps.are_spent()
    }
}
