//! The small file that `farthing api add` reads, and the node takes as JSON: upstream, operations, prices.

use std::collections::BTreeMap;

use farthing_protocol::{ServiceId, Usdc, call::Method};
use serde::{Deserialize, Serialize};

use super::Text;

/// A service as `farthing api add` reads it from a TOML or JSON file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServiceFile {
    /// Chosen by the node when absent; the same id again replaces the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Text<ServiceId>>,
    pub name: String,
    #[serde(default)]
    pub summary: String,
    #[serde(default)]
    pub category: String,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Markdown.
    #[serde(default)]
    pub description: String,
    /// The owner's own server, for instance `http://127.0.0.1:8080/api`.
    pub upstream: String,
    /// Headers added to every upstream request, such as an API key. Never published.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub upstream_headers: BTreeMap<String, String>,
    /// Of every operation that names none of its own. Zero is free.
    pub price: Text<Usdc>,
    #[serde(default)]
    pub charge: Charge,
    #[serde(default)]
    pub operations: Vec<OperationFile>,
}

/// Which answers are charged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Charge {
    /// Status below 400.
    #[default]
    Success,
    /// 4xx as well.
    Answered,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OperationFile {
    pub method: Text<Method>,
    /// Template such as `/users/{id}`.
    pub path: String,
    #[serde(default)]
    pub summary: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Text<Usdc>>,
    #[serde(default)]
    pub parameters: Vec<ParameterFile>,
    /// Whether a request body is passed on.
    #[serde(default)]
    pub body: bool,
    /// Undeclared parameters go to the query instead of being refused.
    #[serde(default)]
    pub any_params: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlaceFile {
    #[default]
    Query,
    Path,
    Header,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    fn a_mistyped_field_of_a_service_file_is_named() {
        let error =
            toml::from_str::<ServiceFile>("name = \"x\"\nupstream = \"u\"\nprise = \"1\"\n").unwrap_err();
        assert!(error.to_string().contains("prise"), "{error}");
    }
}
