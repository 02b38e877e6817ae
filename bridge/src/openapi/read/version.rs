//! Detects the format of a document, and what else it may be when it is none of ours.

use std::fmt;

use serde_json::Value;

use super::{
    FORMAT,
    values::{Members, scalar},
};
use crate::{
    report::{ReadError, Report},
    shown,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DocumentVersion {
    family: Family,
    /// As the document has it; empty when it has none.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Swagger20,
    OpenApi30,
    /// 3.1 and what follows it.
    OpenApi31,
}

impl fmt::Display for DocumentVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, text) = match self.family {
            Family::Swagger20 => ("Swagger", "2.0"),
            Family::OpenApi30 => ("OpenAPI", "3.0"),
            Family::OpenApi31 => ("OpenAPI", "3.1"),
        };
        write!(f, "{name} {}", if self.text.is_empty() { text } else { &self.text })
    }
}

impl DocumentVersion {
    /// The version that a document names, or that its parts betray.
    pub(super) fn of(root: &Value) -> Result<Self, ReadError> {
        let Some(members) = root.as_object() else {
            return Err(ReadError::new(
                FORMAT,
                "the document is not an object, so it is not an API description",
            ));
        };
        let named = |key| members.get(key).and_then(scalar).map(|text| shown(text.trim()));
        match (named("openapi"), named("swagger")) {
            (Some(text), _) if text == "3.0" || text.starts_with("3.0.") => {
                Ok(Self::new(Family::OpenApi30, text))
            }
            (Some(text), _) if text == "3" || text.starts_with("3.") => {
                Ok(Self::new(Family::OpenApi31, text))
            }
            (None, Some(text)) if text == "2" || text.starts_with("2.") => {
                Ok(Self::new(Family::Swagger20, text))
            }
            (Some(text), _) => Err(unknown_version("OpenAPI", &text)),
            (None, Some(text)) => Err(unknown_version("Swagger", &text)),
            (None, None) => Self::betrayed(members),
        }
    }

    const fn new(family: Family, text: String) -> Self {
        Self { family, text }
    }

    /// A document without a version that is one of ours all the same.
    fn betrayed(members: &Members) -> Result<Self, ReadError> {
        let has_any = |keys: &[&str]| keys.iter().any(|key| members.contains_key(*key));
        let family = match members.get("paths") {
            Some(Value::Object(_)) if has_any(&["definitions", "basePath", "host", "schemes"]) => {
                Family::Swagger20
            }
            Some(Value::Object(_)) if has_any(&["components", "servers", "info"]) => Family::OpenApi30,
            _ => return Err(something_else(members)),
        };
        Ok(Self::new(family, String::new()))
    }

    pub(super) fn is_swagger(&self) -> bool {
        self.family == Family::Swagger20
    }

    pub(super) fn is_3_0(&self) -> bool {
        self.family == Family::OpenApi30
    }

    /// Tells whether keywords beside `$ref` count.
    pub(super) fn has_siblings(&self) -> bool {
        self.family == Family::OpenApi31
    }

    /// Says what is odd about the version itself.
    pub(super) fn note_oddities(&self, root: &Value, report: &mut Report) {
        if self.text.is_empty() {
            report.repaired.add("document", format!("it has no version; read as {self}"));
        }
        let written = root.get("openapi").or_else(|| root.get("swagger"));
        if written.is_some_and(Value::is_number) {
            report.repaired.add("document", "the version is a number; read as text");
        }
        if self.family == Family::OpenApi31 && !self.text.starts_with("3.1") {
            report.warnings.add("document", format!("{self} is newer than the known versions; read as 3.1"));
        }
    }
}

fn unknown_version(name: &str, text: &str) -> ReadError {
    let what = format!("{name} {text} cannot be read; convert it to OpenAPI 3.0 or 3.1");
    ReadError::new(FORMAT, what)
}

/// Looked for in vain: says what the document seems to be.
fn something_else(members: &Members) -> ReadError {
    let has = |key: &str| members.contains_key(key);
    let inner = |key: &str, inner: &str| members.get(key).and_then(|value| value.get(inner)).is_some();
    let seems = if has("asyncapi") {
        "an AsyncAPI document, which describes messages; use the OpenAPI document of the HTTP part"
    } else if inner("info", "_postman_id") || (has("item") && has("info")) {
        "a Postman collection; convert it to OpenAPI first"
    } else if has("swaggerVersion") {
        "a Swagger 1 document; convert it to OpenAPI 3.0 first"
    } else if has("__schema") || inner("data", "__schema") {
        "a GraphQL introspection result; register it as GraphQL"
    } else if inner("log", "entries") {
        "a HAR recording of a browser; use the OpenAPI document of the service"
    } else if has("resources") && has("_type") {
        "an Insomnia export; convert it to OpenAPI first"
    } else if has("$schema") || (has("type") && has("properties")) {
        "a JSON Schema, which describes values and no operations"
    } else if has("errors") || has("error") || has("detail") {
        "an error answer of a server, not its description"
    } else {
        "of no known kind: neither `openapi`, nor `swagger`, nor `paths` is at its top level"
    };
    ReadError::new(FORMAT, format!("the document is not an OpenAPI document. It seems to be {seems}"))
}

/// Returns whether bytes look like OpenAPI or Swagger, judged by their beginning and cheap enough for every answer of a
/// scanned server.
pub fn looks_like_openapi(bytes: &[u8]) -> bool {
    /// Some generators write `paths` or a long `info` first.
    const LOOKED_AT_BYTES: usize = 64 * 1024;
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(LOOKED_AT_BYTES)]);
    let head = head.trim_start();
    if head.starts_with('{') {
        return ["\"openapi\"", "\"swagger\""].iter().any(|key| is_followed_by_version(head, key));
    }
    head.lines().any(|line| {
        ["openapi:", "swagger:", "\"openapi\":", "\"swagger\":", "'openapi':", "'swagger':"].iter().any(
            |key| {
                let version = line.strip_prefix(key).unwrap_or_default().trim();
                version.trim_start_matches(['"', '\'']).starts_with(['2', '3'])
            },
        )
    })
}

/// Tells whether `key` occurs as a key whose value begins with a 2 or a 3.
fn is_followed_by_version(head: &str, key: &str) -> bool {
    head.match_indices(key).any(|(at, _)| {
        let rest = head[at + key.len()..].trim_start();
        let value = rest.strip_prefix(':').unwrap_or_default().trim_start();
        value.trim_start_matches('"').starts_with(['2', '3'])
    })
}
