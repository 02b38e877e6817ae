//! Answers of the service and of the network under one status.
//!
//! A status of its own hides what a class or the default says, so that is said again for each of the network's
//! statuses. A stranger's answer may have megabytes: a large one stands among the components once, and is referred to.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{ANY_FAILURE, FAILURES, Failure, NameAllocator, Operation, Operations, Status, UNAUTHORIZED};

/// Bytes of an answer that is said again; one with twenty members takes about one thousand.
const ANSWER_BYTES_MAX: usize = 4 * 1024;
/// Bytes of all answers that are said again. As values in memory they take twenty times as much.
pub(super) const AGAIN_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Names of answers among the components; those of the network are taken.
pub(super) fn names() -> NameAllocator {
    let mut names = NameAllocator::default();
    for failure in FAILURES.iter().chain([&UNAUTHORIZED]) {
        names.unique(failure.name, "Answer");
    }
    names
}

impl Operations<'_, '_> {
    /// The answer of the service and the network for the status of the failure; `None` when the service says nothing.
    pub(super) fn joined_with_own(
        &mut self,
        operation: &Operation,
        failure: &Failure,
        responses: &mut BTreeMap<Status, Value>,
    ) -> Option<Value> {
        if let Some(own) = responses.remove(&Status::Code(failure.status)) {
            return Some(self.joined(own, failure));
        }
        let class = Status::Class(u8::try_from(failure.status / 100).unwrap_or(0));
        let status = [class, Status::Default].into_iter().find(|status| responses.contains_key(status))?;
        let own = responses.get_mut(&status)?;
        if own.get("$ref").is_some() {
            return Some(own.clone());
        }
        let bytes = own.to_string().len();
        if bytes <= ANSWER_BYTES_MAX && bytes <= self.again_bytes_left {
            self.again_bytes_left -= bytes;
            let own = own.clone();
            return Some(self.joined(own, failure));
        }
        let name = self.large_names.unique(&format!("{status}_{}", operation.id), "Answer");
        let reference = json!({ "$ref": format!("#/components/responses/{name}") });
        let own = std::mem::replace(own, reference.clone());
        let large = ANY_FAILURE.iter().fold(own, |own, failure| self.joined(own, failure));
        self.large.insert(name, large);
        Some(reference)
    }

    /// The service's answer, or the network's with the same status.
    fn joined(&mut self, mut own: Value, failure: &Failure) -> Value {
        let network = self.network(failure);
        let both = match own["content"][failure.media_type]["schema"].take() {
            Value::Null => network,
            schema => json!({ "anyOf": [schema, network] }),
        };
        let description = own["description"].as_str().unwrap_or_default().trim_end_matches('.');
        own["description"] = format!("{description}. Or: {}", failure.description).into();
        own["content"][failure.media_type] = json!({ "schema": both });
        own
    }
}
