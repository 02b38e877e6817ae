//! Small questions about JSON values, tolerant of what is odd.

use serde_json::{Map, Value};

use crate::limits::VALUE_DEPTH_MAX;

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

/// Tells whether a member is `true`.
pub(super) fn flag(members: &Members, key: &str) -> bool {
    members.get(key).is_some_and(|value| *value == Value::Bool(true))
}

pub(super) fn object<'d>(members: &'d Members, key: &str) -> Option<&'d Members> {
    members.get(key)?.as_object()
}

/// The items of a member that is an array; none otherwise.
pub(super) fn array<'d>(members: &'d Members, key: &str) -> &'d [Value] {
    members.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A default or an example: a member that is there, is not `null` and not too deep for a packed description.
pub(super) fn given(members: &Members, key: &str) -> Option<Value> {
    members.get(key).and_then(kept)
}

/// A copy of a default, an example or a choice; `None` for `null` and for what is nested too deeply.
pub(super) fn kept(value: &Value) -> Option<Value> {
    (!value.is_null() && !is_deeper(value, VALUE_DEPTH_MAX)).then(|| value.clone())
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(left) = levels.checked_sub(1) else { return true };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, left)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, left)),
        _ => false,
    }
}

/// Computes the cost of copying a part's own texts and values, counted in schemas: what is within its other members is
/// counted when they are read.
pub(super) fn cost(members: &Members) -> usize {
    const COPIED_WHOLE: &[&str] = &["default", "example", "examples", "x-example", "enum", "const"];
    let bytes = members.iter().map(|(key, value)| match value {
        Value::String(text) => text.len(),
        _ if COPIED_WHOLE.contains(&key.as_str()) => bytes(value),
        _ => 0,
    });
    bytes.sum::<usize>() / BYTES_PER_NODE
}

/// A schema takes about as much memory as this many bytes of text, several times over.
pub(super) const BYTES_PER_NODE: usize = 64;

/// About what a value takes.
pub(super) fn bytes(value: &Value) -> usize {
    const EACH: usize = 32;
    match value {
        Value::String(text) => EACH + text.len(),
        Value::Array(items) => EACH + items.iter().map(bytes).sum::<usize>(),
        Value::Object(members) => {
            EACH + members.iter().map(|(key, member)| key.len() + bytes(member)).sum::<usize>()
        }
        _ => EACH,
    }
}

/// The first line of a text, as a summary of it.
pub(super) fn first_line(text: &str) -> String {
    const CHARS_MAX: usize = 160;
    let line = text.trim().lines().next().unwrap_or_default().trim();
    line.chars().filter(|c| !c.is_control()).take(CHARS_MAX).collect()
}

/// Tells whether a media type without parameters is JSON.
pub(super) fn is_json(media_type: &str) -> bool {
    media_type == "application/json" || media_type == "text/json" || media_type.ends_with("+json")
}
