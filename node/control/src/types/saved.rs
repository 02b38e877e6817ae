//! Requests of the sandbox that the user saved under names of theirs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ServiceIdText;

/// A saved request, without what it asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedTitle {
    /// UUID of the saved request.
    pub id: String,
    /// The user's name for it.
    pub name: String,
    pub service: ServiceIdText,
    /// Name of the service, a stranger's text; empty where it is not known.
    pub service_name: String,
    /// `GET /v1/things`
    pub operation: String,
    /// Seconds since the Unix epoch.
    pub saved_secs: u64,
}

/// A saved request with everything that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SavedRequest {
    pub title: SavedTitle,
    pub fields: RequestFields,
    /// Names of the fields whose values are not kept, because they are secret.
    pub left_out: Vec<String>,
}

/// A request as it was typed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequestFields {
    /// By the name of the parameter.
    pub parameters: BTreeMap<String, String>,
    /// Parameters that the description does not name, one `name=value` in each line.
    pub extra: String,
    /// A body that is typed.
    pub body: String,
    /// Parts of the body; of a file its name.
    pub parts: Vec<RequestPart>,
    /// The name of the file that is the body.
    pub file: String,
}

/// A part of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestPart {
    pub name: String,
    pub value: String,
}

/// A request to be saved: at most 16 KiB in all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSavedRequest {
    /// Up to 100 characters, and no other of this service.
    pub name: String,
    pub service: ServiceIdText,
    /// `GET /v1/things`
    pub operation: String,
    pub fields: RequestFields,
}

/// Another name for a saved request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SavedName {
    /// Up to 100 characters, and no other of this service.
    pub name: String,
}
