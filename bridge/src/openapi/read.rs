//! OpenAPI in: a description and a report from an owner's document.
//!
//! 1. Bytes become a JSON value, JSON or YAML, bounded in every direction ([`text`]).
//! 2. Its version decides; Swagger 2.0 is rewritten as 3.0 ([`swagger`]).
//! 3. Paths become operations ([`operations`]): parameters ([`parameters`]), bodies and answers ([`contents`]),
//!    with the schemas they refer to ([`schemas`], [`shapes`], [`merging`]).
//! 4. Servers and security schemes are listed beside the description ([`upstream`]).
//!
//! It is tolerant: what is odd is repaired, what cannot be offered is skipped, and the report says both and why.
//! Invariant: what it returns, [`crate::Api::new`] accepts.

mod contents;
mod foreign;
mod ids;
mod merging;
mod operations;
mod parameters;
mod refs;
mod schemas;
mod shapes;
mod swagger;
mod text;
mod upstream;
mod values;
mod version;

use serde_json::Value;

pub use self::version::looks_like_openapi;
use self::{
    foreign::foreign, refs::Document, schemas::SchemaReader, values::Members, version::DocumentVersion,
};
use crate::{
    description::ApiDescription,
    graphql::prune,
    report::{ReadError, Reading, Report},
};

/// The name of the format in errors.
const FORMAT: &str = "OpenAPI";

/// A document of more than this is not held against the typed model, whose errors are not worth the time.
const TYPED_CHECK_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Reads OpenAPI 3.0, 3.1 or Swagger 2.0, in JSON or YAML.
///
/// # Errors
/// [`ReadError`] when it cannot be parsed, is something else, or has no operation that can be offered.
pub fn read(bytes: &[u8]) -> Result<Reading, ReadError> {
    let text = text::decode(FORMAT, bytes)?;
    if text.trim().is_empty() {
        return Err(ReadError::new(FORMAT, "the document is empty"));
    }
    if let Some(what) = foreign(text) {
        return Err(ReadError::new(
            FORMAT,
            format!("the document is not an OpenAPI document. It seems to be {what}"),
        ));
    }
    read_value(text::parse(FORMAT, text)?, text.len())
}

/// Reads a parsed document of `bytes` bytes.
fn read_value(parsed: text::ParsedDocument, bytes: usize) -> Result<Reading, ReadError> {
    let version = DocumentVersion::of(&parsed.value)?;
    let mut report = Report { format: version.to_string(), ..Report::default() };
    for pointer in &parsed.duplicates {
        report.warnings.add(pointer, "the key is given more than once; the last one counts");
    }
    version.note_oddities(&parsed.value, &mut report);
    if version.is_3_0() && bytes <= TYPED_CHECK_BYTES_MAX {
        typed_check(&parsed.value, &mut report);
    }
    let root = if version.is_swagger() { swagger::to_3_0(parsed.value, &mut report) } else { parsed.value };
    DocumentReader::new(&root, version, report).read()
}

/// Holds a document against the model of the `openapiv3` crate, which is strict about 3.0.
fn typed_check(root: &Value, report: &mut Report) {
    use serde::Deserialize;
    if let Err(error) = openapiv3::OpenAPI::deserialize(root) {
        report.warnings.add("document", format!("it does not follow OpenAPI 3.0 everywhere: {error}"));
    }
}

#[derive(Debug)]
struct DocumentReader<'d> {
    document: Document<'d>,
    version: DocumentVersion,
    report: Report,
    /// The place that findings belong to: an operation or a named schema.
    place: String,
    schemas: SchemaReader<'d>,
}

impl<'d> DocumentReader<'d> {
    fn new(root: &'d Value, version: DocumentVersion, report: Report) -> Self {
        let (document, schemas) = (Document { root }, SchemaReader::default());
        Self { document, version, report, place: String::new(), schemas }
    }

    fn read(mut self) -> Result<Reading, ReadError> {
        let empty = Members::new();
        let root: &'d Value = self.document.root;
        let info = root.get("info").and_then(Value::as_object).unwrap_or(&empty);
        let security = self.security();
        let operations = self.operations(&security)?;
        let schemas = self.named_schemas();
        let servers = self.servers();
        self.report.bridged = operations.len();
        let mut description = ApiDescription {
            title: values::first_line(&values::text(info, "title")),
            version: values::first_line(&values::text(info, "version")),
            description: values::text(info, "description"),
            operations,
            schemas,
            graphql: None,
            packs_answers: false,
        };
        // Operations that were skipped, and schemas that were merged into others, leave some behind.
        prune(&mut description);
        Ok(Reading { description, report: self.report, servers, security })
    }
}

#[cfg(test)]
mod tests;
