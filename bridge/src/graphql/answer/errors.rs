//! The upstream's errors: what is carried of them, and the status they stand for.

use std::fmt::{self, Write as _};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use super::ERRORS_MAX;
use crate::graphql::{coerce::quote, selection::aliases::Renames};

/// Characters of a message, a path, a code.
const MESSAGE_LENGTH_MAX: usize = 300;
const PATH_LENGTH_MAX: usize = 200;
const CODE_LENGTH_MAX: usize = 80;
/// Bytes of one error that are read; the rest is a stack trace.
const ERROR_BYTES_MAX: usize = 64 * 1024;

/// An error that the upstream reported, shortened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamError {
    /// First line only.
    pub message: String,
    /// Such as `planets[3].host`; empty when the upstream gave none.
    pub path: String,
    /// Such as `NOT_FOUND`; empty when the upstream gave none.
    pub code: String,
}

impl UpstreamError {
    /// `{"message":…,"path":…,"code":…}`, without what is empty.
    pub fn to_json(&self) -> String {
        let mut json = String::from("{\"message\":");
        quote(&self.message, &mut json);
        for (name, text) in [("path", &self.path), ("code", &self.code)] {
            if !text.is_empty() {
                let _ = write!(json, ",\"{name}\":");
                quote(text, &mut json);
            }
        }
        json.push('}');
        json
    }

    /// The same in ASCII, as a header wants it.
    pub(super) fn to_json_ascii(&self) -> String {
        let mut ascii = String::new();
        for c in self.to_json().chars() {
            if c.is_ascii() {
                ascii.push(c);
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(ascii, "\\u{unit:04x}");
                }
            }
        }
        ascii
    }
}

/// The contents of a response's `errors`.
#[derive(Debug, Default)]
pub(super) struct Errors {
    pub count: usize,
    pub list: Vec<UpstreamError>,
    /// The HTTP status that the first error with a known one stands for.
    pub status: Option<u16>,
}

/// Reads `errors`. Something other than a list counts as one error without words.
pub(super) fn read(json: &str, renames: Option<&Renames>, field: &str) -> Errors {
    let Ok(items) = serde_json::from_str::<Option<First<'_>>>(json) else {
        return Errors { count: 1, ..Errors::default() };
    };
    let First { count, items } = items.unwrap_or_default();
    let mut errors = Errors { count, ..Errors::default() };
    for item in items.iter().map(|item| item.get()) {
        let error = if item.len() <= ERROR_BYTES_MAX { serde_json::from_str(item) } else { Ok(Value::Null) };
        let error: Value = error.unwrap_or_default();
        let code = code(&error);
        errors.status = errors.status.or_else(|| status(&error)).or_else(|| status_of_code(code));
        errors.list.push(UpstreamError {
            message: message(&error),
            path: path(&error, renames, field),
            code: short(code, CODE_LENGTH_MAX),
        });
    }
    errors
}

/// The first items of a list that may have millions, and how many there are.
#[derive(Default)]
struct First<'a> {
    count: usize,
    items: Vec<&'a RawValue>,
}

impl<'de> Deserialize<'de> for First<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(FirstVisitor)
    }
}

struct FirstVisitor;

impl<'de> Visitor<'de> for FirstVisitor {
    type Value = First<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut first = First::default();
        while let Some(item) = list.next_element()? {
            first.count += 1;
            if first.items.len() < ERRORS_MAX {
                first.items.push(item);
            }
        }
        Ok(first)
    }
}

fn short(text: &str, length_max: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(length_max).collect()
}

fn message(error: &Value) -> String {
    let text = error.get("message").and_then(Value::as_str).or_else(|| error.as_str()).unwrap_or_default();
    short(text.trim().lines().next().unwrap_or_default(), MESSAGE_LENGTH_MAX)
}

/// `extensions.code`, or what some services have instead of it.
fn code(error: &Value) -> &str {
    let extension = |name| error.pointer("/extensions")?.get(name);
    extension("code")
        .or_else(|| extension("type"))
        .or_else(|| error.get("type"))
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// `extensions.http.status` or `extensions.status`, where it means failure.
fn status(error: &Value) -> Option<u16> {
    let status = error.pointer("/extensions/http/status").or_else(|| error.pointer("/extensions/status"))?;
    let status = u16::try_from(status.as_u64()?).ok()?;
    (400..=599).contains(&status).then_some(status)
}

fn status_of_code(code: &str) -> Option<u16> {
    let code = code.to_ascii_uppercase();
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| code.ends_with(suffix));
    match () {
        () if ends(&["BAD_USER_INPUT", "VALIDATION_FAILED"]) => Some(400),
        () if ends(&["NOT_FOUND"]) => Some(404),
        () if ends(&["CONFLICT"]) => Some(409),
        () if ends(&["FORBIDDEN"]) => Some(403),
        () if code.contains("RATE_LIMITED") => Some(429),
        () => None,
    }
}

/// The error's path as text, with names instead of aliases.
fn path(error: &Value, renames: Option<&Renames>, field: &str) -> String {
    let mut text = String::new();
    let mut renames = renames;
    for (i, step) in error.get("path").and_then(Value::as_array).into_iter().flatten().take(50).enumerate() {
        if let Some(name) = step.as_str() {
            let is_root = i == 0 && name == field;
            let rename = renames.filter(|_| !is_root).and_then(|renames| renames.get(name));
            if !is_root {
                renames = rename.and_then(|rename| rename.within.as_ref());
            }
            text.push_str(if text.is_empty() { "" } else { "." });
            text.push_str(rename.map_or(name, |rename| &rename.name));
        } else if let Some(index) = step.as_u64() {
            let _ = write!(text, "[{index}]");
        }
    }
    short(&text, PATH_LENGTH_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_errors_the_first_are_kept_and_all_are_counted() {
        let many = format!("[{}]", vec!["{}"; 100_000].join(","));
        let first: First<'_> = serde_json::from_str(&many).unwrap();
        assert_eq!((first.count, first.items.len()), (100_000, ERRORS_MAX));
        assert!(first.items.capacity() <= 2 * ERRORS_MAX, "{}", first.items.capacity());
    }

    #[test]
    fn an_error_that_is_a_stack_trace_is_counted_and_not_read() {
        let of = |bytes: usize| format!("[{{\"message\":\"m\",\"trace\":\"{}\"}}]", "x".repeat(bytes));
        let told = |json: &str| {
            let errors = read(json, None, "field");
            (errors.count, errors.list[0].message.clone())
        };
        assert_eq!(told(&of(10)), (1, "m".to_owned()));
        assert_eq!(told(&of(ERROR_BYTES_MAX)), (1, String::new()));
    }
}
