//! Samples: what an operation's answer looks like, for those who have not bought it yet.
//!
//! The owner's own example comes first, then that of the schema, and last one is made up from the schema
//! ([`made_up`]) and labelled so. The owner's node may put an answer it recorded in their place.

mod made_up;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::steps::Steps;
use crate::{
    cut,
    description::{ApiDescription, Content, Operation, Schema, Status},
    limits::SAMPLE_BYTES_MAX,
};

/// Steps of one value: some milliseconds.
const STEPS_MAX: usize = 20_000;
/// Steps of all samples of a service; the rest is left out.
const SERVICE_STEPS_MAX: usize = 1_000_000;

/// Returns what making up the samples of one service may take.
pub const fn steps_of_service() -> Steps {
    Steps::new(SERVICE_STEPS_MAX)
}

/// An answer as it could be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    pub origin: Origin,
    pub status: u16,
    /// Empty when the answer has no body.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub media_type: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub body: String,
}

/// The origin of a sample, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// A real answer, recorded with the owner's consent.
    Recorded,
    /// The description's example of this answer.
    MediaExample,
    /// The description's example of values of this schema.
    SchemaExample,
    /// Made up from the schema.
    Synthesised,
}

/// A sample of the operation's success; `None` when nothing is known of it.
pub fn for_operation(description: &ApiDescription, index: usize, steps: &mut Steps) -> Option<Sample> {
    let operation = description.operations.get(index)?;
    let Some((status, content)) = shown_answer(operation) else {
        let empty = operation.responses.iter().find(|response| response.status.is_success())?;
        let (media_type, body) = (String::new(), String::new());
        return Some(Sample { origin: Origin::Synthesised, status: code(empty.status), media_type, body });
    };
    let resolved = || description.resolve(&content.schema)?.example.as_ref();
    let schema_example = content.schema.example.as_ref().or_else(resolved);
    let sample = |origin, value: &Value| {
        let body = text(&content.media_type, value)?;
        Some(Sample { origin, status: code(status), media_type: content.media_type.clone(), body })
    };
    let media = content.example.as_ref().and_then(|example| sample(Origin::MediaExample, example));
    media
        .or_else(|| schema_example.and_then(|example| sample(Origin::SchemaExample, example)))
        .or_else(|| sample(Origin::Synthesised, &made_up::value(description, &content.schema, steps)?))
}

/// The answer worth showing: the first success with JSON, or else with any body.
pub(crate) fn shown_answer(operation: &Operation) -> Option<(Status, &Content)> {
    let successes = || {
        let successes = operation.responses.iter().filter(|response| response.status.is_success());
        successes.filter_map(|response| Some((response.status, response.content.as_ref()?)))
    };
    successes().find(|(_, content)| is_json(&content.media_type)).or_else(|| successes().next())
}

/// A value made up from a schema: the same one always; `None` when the schema allows none of bounded size.
pub(crate) fn made_up_value(description: &ApiDescription, schema: &Schema) -> Option<Value> {
    made_up::value(description, schema, &mut Steps::new(STEPS_MAX))
}

/// An answer made up from the schema; `None` when there is no JSON, or the schema allows none of bounded size.
pub(crate) fn made_up(description: &ApiDescription, index: usize, steps: &mut Steps) -> Option<Value> {
    let (_, content) = shown_answer(description.operations.get(index)?)?;
    if is_json(&content.media_type) { made_up::value(description, &content.schema, steps) } else { None }
}

const fn code(status: Status) -> u16 {
    match status {
        Status::Code(code) => code,
        Status::Class(_) | Status::Default => 200,
    }
}

fn is_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type.ends_with("+json") || media_type == "*/*"
}

/// The value as such a body; `None` when it is longer than a sample, and for forms that are not ours to write, such as
/// XML and images. Many operations may have one long example.
fn text(media_type: &str, value: &Value) -> Option<String> {
    match value {
        value if is_json(media_type) => cut::whole(value, SAMPLE_BYTES_MAX),
        // An example in a description is the text of the body, whatever that is.
        Value::String(text) => cut::whole(text, SAMPLE_BYTES_MAX),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
