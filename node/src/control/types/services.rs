//! What the node says of its owner's services, beyond the list.

use farthing_bridge::{changes::Changes, report::Report};
use farthing_protocol::{Usdc, call::Method};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Api, OperationSample, SourceFile, Text};

/// One service with everything an owner wants to see of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApiShown {
    #[serde(flatten)]
    pub api: Api,
    /// `REST` or `GraphQL`
    pub kind: String,
    pub summary: String,
    pub category: String,
    pub tags: Vec<String>,
    /// Markdown.
    pub description: String,
    /// URL or file that the description came from; empty when the operations were written by hand.
    pub source: String,
    /// Names of what this node adds to every upstream request.
    pub secrets: Vec<String>,
    /// What became of the description at registration.
    #[schema(value_type = Object)]
    pub report: Report,
    pub offers: Vec<Offer>,
    pub samples: Vec<OperationSample>,
}

/// An operation as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Offer {
    #[schema(value_type = String)]
    pub method: Text<Method>,
    pub path: String,
    #[schema(value_type = String)]
    pub price: Text<Usdc>,
    pub summary: String,
    pub parameters: Vec<OfferParameter>,
    /// Type of the body, when one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfferParameter {
    pub name: String,
    /// `path`, `query` or `header`
    #[serde(rename = "in")]
    pub place: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub required: bool,
}

/// `farthing api rescan`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RescanRequest {
    /// Another source than the one of the registration, such as a newer file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceFile>,
    /// Publish what changed as a new version.
    #[serde(default)]
    pub apply: bool,
}

/// What a newer reading of a service's source brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rescan {
    #[schema(value_type = Object)]
    pub changes: Changes,
    #[schema(value_type = Object)]
    pub report: Report,
    /// Whether a new version was published.
    pub applied: bool,
    pub api: Api,
}
