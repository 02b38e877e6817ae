//! Small questions about JSON values, tolerant of what is odd.

use serde_json::{Map, Value};

/// An object of a document.
pub(super) type Members = Map<String, Value>;

/// A scalar member as text; empty when there is none.
pub(super) fn text(members: &Members, key: &str) -> String {
    members.get(key).and_then(scalar).unwrap_or_default()
}

/// A scalar as text: numbers and booleans as they are written.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether a member is `true`.
pub(super) fn flag(members: &Members, key: &str) -> bool {
    members.get(key).is_some_and(|value| *value == Value::Bool(true))
}

/// A member that is an object.
pub(super) fn object<'d>(members: &'d Members, key: &str) -> Option<&'d Members> {
    members.get(key)?.as_object()
}

/// The items of a member that is an array; none otherwise.
pub(super) fn array<'d>(members: &'d Members, key: &str) -> &'d [Value] {
    members.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A member that is there and is not `null`.
pub(super) fn given(members: &Members, key: &str) -> Option<Value> {
    members.get(key).filter(|value| !value.is_null()).cloned()
}

/// The first line of a text, as a summary of it.
pub(super) fn first_line(text: &str) -> String {
    const CHARS_MAX: usize = 160;
    let line = text.trim().lines().next().unwrap_or_default().trim();
    line.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect()
}

/// A media type without parameters, in lower case.
pub(super) fn media_type(text: &str) -> String {
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a media type without parameters is JSON.
pub(super) fn is_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type == "text/json" || media_type.ends_with("+json")
}
