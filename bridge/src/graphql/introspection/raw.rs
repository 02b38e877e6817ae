//! The JSON of introspection. Everything may be missing: what that means is decided elsewhere.

use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Answer {
    pub data: Option<Data>,
    #[serde(rename = "__schema")]
    pub schema: Option<Schema>,
    pub errors: Option<Vec<UpstreamError>>,
}

#[derive(Deserialize, Default)]
pub(super) struct Data {
    #[serde(rename = "__schema")]
    pub schema: Option<Schema>,
    #[serde(rename = "_service")]
    pub service: Option<Service>,
}

/// Of Apollo Federation.
#[derive(Deserialize)]
pub(super) struct Service {
    pub sdl: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct UpstreamError {
    pub message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Schema {
    pub types: Option<Vec<Type>>,
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
pub(super) struct Type {
    pub kind: Option<String>,
    pub name: Option<String>,
    pub description: Option<String>,
    pub fields: Option<Vec<Field>>,
    pub interfaces: Option<Vec<TypeRef>>,
    pub possible_types: Option<Vec<TypeRef>>,
    pub enum_values: Option<Vec<EnumValue>>,
    pub input_fields: Option<Vec<InputValue>>,
    pub is_one_of: Option<bool>,
    #[serde(rename = "specifiedByURL")]
    pub specified_by_url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Field {
    pub name: Option<String>,
    pub description: Option<String>,
    pub args: Option<Vec<InputValue>>,
    #[serde(rename = "type")]
    pub ty: Option<TypeRef>,
    pub is_deprecated: Option<bool>,
    pub deprecation_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InputValue {
    pub name: Option<String>,
    pub description: Option<String>,
    #[serde(rename = "type")]
    pub ty: Option<TypeRef>,
    pub default_value: Option<String>,
    pub is_deprecated: Option<bool>,
    pub deprecation_reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnumValue {
    pub name: Option<String>,
    pub description: Option<String>,
    pub is_deprecated: Option<bool>,
    pub deprecation_reason: Option<String>,
}

/// The JSON reader bounds how deeply it is nested.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TypeRef {
    pub kind: Option<String>,
    pub name: Option<String>,
    pub of_type: Option<Box<TypeRef>>,
}
