//! A service for sale, as `farthing api add` takes it: from a small file, or from an API description and options.
//!
//! Without a `source` the operations are those of the file. With one they are those that the description offers,
//! and the file's operations only choose among them: prices, exclusions.

use std::collections::BTreeMap;

use clap::ValueEnum;
use farthing_bridge::graphql::schema::ScalarForm;
use farthing_values::{Method, Usdc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{MethodText, ServiceIdText, UsdcText};

use crate::text::Text;

/// A service as `farthing api add` reads it from a TOML or JSON file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceFile {
    /// Chosen by the node when absent; the same id again replaces the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ServiceIdText>,
    /// The description's title when empty.
    #[serde(default)]
    pub name: String,
    /// The first line of the description's when empty.
    #[serde(default)]
    pub summary: String,
    #[serde(default)]
    pub category: String,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Markdown; the source's own when empty.
    #[serde(default)]
    pub description: String,
    /// The source that describes the API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceFile>,
    /// The owner's own server, for instance `http://127.0.0.1:8080/api`; the one the source names when empty.
    #[serde(default)]
    pub upstream: String,
    /// Headers added to every upstream request, such as an API key; `@FILE` in a service file is read from there.
    /// Never published. A replacement without any keeps those of the service.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub upstream_headers: BTreeMap<String, String>,
    /// The same for parameters of the query.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub upstream_query: BTreeMap<String, String>,
    /// Headers of your server's answers that callers get beside the usual ones, such as `x-cost`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub response_headers: Vec<String>,
    /// Of every operation that names none of its own. Zero is free.
    pub price: UsdcText,
    #[serde(default)]
    pub charge: Charge,
    /// Seconds that an answer may take, 1 to 300, of every operation that names none of its own. Consumers wait as long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u16>,
    /// True if operations of the source are offered that write (all but GET and HEAD) and that `operations` does not name.
    #[serde(default, alias = "mutations", skip_serializing_if = "std::ops::Not::not")]
    pub writes: bool,
    /// The way to read values of GraphQL's custom scalars, where their names mislead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub scalars: BTreeMap<String, ScalarFile>,
    #[serde(default)]
    pub samples: SamplesFile,
    #[serde(default)]
    pub operations: Vec<OperationFile>,
}

impl ServiceFile {
    /// Nothing but a price.
    pub fn priced(price: Usdc) -> Self {
        Self { price: price.into(), ..Self::default() }
    }
}

/// An API description: its text, or where to fetch it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    pub kind: SourceKind,
    /// Fetched by the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The document itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file that `text` came from, for errors and for the owner's memory.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
}

impl SourceFile {
    /// A description that comes as its text.
    pub const fn given(kind: SourceKind, text: String, file: String) -> Self {
        Self { kind, url: None, text: Some(text), file }
    }

    /// A description that the node fetches.
    pub const fn at(kind: SourceKind, url: String) -> Self {
        Self { kind, url: Some(url), text: None, file: String::new() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    Openapi,
    /// A schema, an introspection result, or a server that answers introspection.
    Graphql,
    /// A running server whose description is looked for.
    Scan,
}

/// Examples of answers that anyone may look at for free.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SamplesFile {
    /// The description's examples, or made up from its schemas and labelled so.
    #[default]
    Described,
    /// Answers of the owner's server to calls that need no parameters, recorded at registration.
    #[value(help = "Answers of your server to calls that need no parameters")]
    Recorded,
    None,
}

/// The text form of a custom scalar's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScalarFile {
    /// Any JSON.
    Json,
    /// Digits, passed on as they are.
    Number,
    String,
}

impl ScalarFile {
    #[must_use]
    pub const fn form(self) -> ScalarForm {
        match self {
            Self::Json => ScalarForm::CustomJson,
            Self::Number => ScalarForm::CustomNumber,
            Self::String => ScalarForm::CustomString,
        }
    }
}

/// The answers that are charged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// Status below 400, except 304 (not modified) to a caller that names the one answer it has.
    #[default]
    Success,
    /// 4xx as well.
    Answered,
}

/// An operation: defined, or chosen among those of the source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationFile {
    pub method: MethodText,
    /// Template such as `/users/{id}`.
    pub path: String,
    #[serde(default)]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<UsdcText>,
    #[serde(default)]
    pub parameters: Vec<ParameterFile>,
    /// True if a request body is passed on.
    #[serde(default)]
    pub body: bool,
    /// Media types that it answers with, such as `text/html` or `image/png`; JSON unless said. Web pages are answers where
    /// they are named, and failures elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<String>,
    /// Undeclared parameters go to the query instead of being refused.
    #[serde(default)]
    pub any_params: bool,
    /// GraphQL: lists within lists that one call may ask for, for the same price; 2 unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists: Option<u8>,
    /// Seconds that an answer may take, 1 to 300.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u16>,
    /// Not offered.
    #[serde(default)]
    pub exclude: bool,
}

impl OperationFile {
    /// An operation of which only the name is said.
    pub fn named(method: Method, path: String) -> Self {
        Self { method: Text(method), path, ..Self::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ParameterFile {
    pub name: String,
    #[serde(rename = "in", default)]
    pub place: PlaceFile,
    #[serde(rename = "type", default)]
    pub kind: KindFile,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub choices: Vec<String>,
    #[serde(default)]
    pub description: String,
    /// A value, to show. One with a slash lets values of a path have slashes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlaceFile {
    #[default]
    Query,
    Path,
    Header,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindFile {
    #[default]
    #[serde(alias = "string")]
    Text,
    Integer,
    Number,
    Boolean,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use utoipa::PartialSchema;

    use super::*;

    #[test]
    fn a_service_file_needs_little() {
        let file: ServiceFile = toml::from_str(
            r#"
            name = "Earthquakes"
            upstream = "http://127.0.0.1:8080"
            price = "0.002"

            [[operations]]
            method = "get"
            path = "/v1/earthquakes/recent"

            [[operations.parameters]]
            name = "limit"
            type = "integer"
            "#,
        )
        .unwrap();
        assert_eq!(file.price.to_string(), "0.002");
        assert_eq!(file.operations[0].parameters[0].kind, KindFile::Integer);
        assert_eq!(file.operations[0].method.0, Method::Get);
        let sent = serde_json::to_string(&file).unwrap();
        assert_eq!(serde_json::from_str::<ServiceFile>(&sent).unwrap(), file);
    }

    #[test]
    fn files_of_before_say_mutations_where_it_is_writes_now() {
        let file = |more: &str| toml::from_str::<ServiceFile>(&format!("price = \"1\"\n{more}")).unwrap();
        assert!(file("mutations = true").writes && file("writes = true").writes && !file("").writes);
    }

    #[test]
    fn a_mistyped_field_of_a_service_file_is_named() {
        let error =
            toml::from_str::<ServiceFile>("name = \"x\"\nupstream = \"u\"\nprise = \"1\"\n").unwrap_err();
        assert!(error.to_string().contains("prise"), "{error}");
    }

    const REFERENCE: &str = include_str!("../../../../docs/service-file.md");

    /// The names of a type's fields, as files have them.
    fn fields<T: PartialSchema>() -> BTreeSet<String> {
        let schema = serde_json::to_value(T::schema()).unwrap();
        schema["properties"].as_object().unwrap().keys().cloned().collect()
    }

    #[test]
    fn the_reference_has_every_field_and_no_other() {
        for (title, fields) in [
            ("The service", fields::<ServiceFile>()),
            ("`source`", fields::<SourceFile>()),
            ("`operations`", fields::<OperationFile>()),
            ("`operations.parameters`", fields::<ParameterFile>()),
        ] {
            let mut chapters = REFERENCE.split("\n## ");
            let chapter = chapters.find(|chapter| chapter.lines().next() == Some(title)).unwrap();
            let name = |row: &str| Some(row.strip_prefix("| `")?.split('`').next()?.to_owned());
            let written: BTreeSet<String> = chapter.lines().filter_map(name).collect();
            assert_eq!(written, fields, "{title} in docs/service-file.md");
        }
    }

    #[test]
    fn the_examples_of_the_reference_are_service_files() {
        let examples: Vec<&str> =
            REFERENCE.split("```toml\n").skip(1).filter_map(|example| example.split("```").next()).collect();
        assert_eq!(examples.len(), 2);
        for example in examples {
            toml::from_str::<ServiceFile>(example).unwrap_or_else(|error| panic!("{error}\n{example}"));
        }
    }
}
