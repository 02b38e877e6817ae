//! The JSON of introspection. Everything may be missing: what that means is decided elsewhere.

use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct RawAnswer {
    pub data: Option<RawData>,
    #[serde(rename = "__schema")]
    pub schema: Option<RawSchema>,
    pub errors: Option<Vec<RawError>>,
}

#[derive(Deserialize, Default)]
pub(super) struct RawData {
    #[serde(rename = "__schema")]
    pub schema: Option<RawSchema>,
    #[serde(rename = "_service")]
    pub service: Option<Service>,
}

/// Of Apollo Federation.
#[derive(Deserialize)]
pub(super) struct Service {
    pub sdl: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct RawError {
    pub message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawSchema {
    pub types: Option<Vec<RawType>>,
    pub query_type: Option<Root>,
    pub mutation_type: Option<Root>,
    pub subscription_type: Option<Root>,
}

#[derive(Deserialize)]
pub(super) struct Root {
    pub name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawType {
    pub kind: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub fields: Option<Vec<RawMember>>,
    pub interfaces: Option<Vec<RawTypeRef>>,
    pub possible_types: Option<Vec<RawTypeRef>>,
    pub enum_values: Option<Vec<RawMember>>,
    pub input_fields: Option<Vec<RawMember>>,
    pub is_one_of: Option<bool>,
    #[serde(rename = "specifiedByURL")]
    pub specified_by_url: Option<String>,
}

/// A field, an argument, a field of an input, or a value of an enum.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawMember {
    pub name: Option<String>,
    pub description: Option<String>,
    /// Of a field.
    pub args: Option<Vec<RawMember>>,
    /// Of all but a value of an enum.
    #[serde(rename = "type")]
    pub ty: Option<RawTypeRef>,
    /// Of an argument and of a field of an input.
    pub default_value: Option<String>,
    pub is_deprecated: Option<bool>,
    pub deprecation_reason: Option<String>,
}

/// The JSON reader bounds how deeply it is nested.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RawTypeRef {
    pub kind: Option<String>,
    pub name: Option<String>,
    pub of_type: Option<Box<RawTypeRef>>,
}
