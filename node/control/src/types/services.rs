//! The owner's services, as the node tells of them.

use std::{collections::BTreeMap, fmt, str::FromStr};

use farthing_bridge::{changes::Changes, description::Place, report::Report, samples::Sample};
use farthing_values::listing::ServiceKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Charge, MethodText, ServiceIdText, SourceFile, Text, UsdcText};
use crate::text::NoneOf;

/// One version of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionNote {
    /// As calls name it.
    pub version: u64,
    /// By the owner's clock, in seconds since the Unix epoch.
    pub published_secs: u64,
    /// Of operations that name none of their own.
    pub price: UsdcText,
    /// The differences from the version before, one sentence each; empty where callers see no difference.
    pub what: Vec<String>,
    /// This node came by the version itself; the owner does not tell of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(default = false)]
    pub seen_here: bool,
}

/// The health of one of my services: whether others have its listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ListingHealth {
    /// The time at which neighbours were asked, in seconds since the Unix epoch; 0 before the first time.
    pub asked_secs: u64,
    /// Connected nodes that were asked: 16 at most.
    pub asked: u64,
    /// That have the version of now.
    pub current: u64,
    /// That have an earlier one.
    pub earlier: u64,
    /// That do not have it.
    pub missing: u64,
    /// That did not answer.
    pub silent: u64,
    /// True if one of them gave out the details by their hash; `None` when nobody with the listing could be asked.
    pub details_served: Option<bool>,
    /// A few words on whether one's own server takes connections; empty before it was looked at.
    pub upstream: String,
    pub upstream_good: bool,
}

/// A sample and what it is a sample of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OperationSample {
    /// `GET /planets`
    pub operation: String,
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub sample: Sample,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CatalogKind {
    /// Described by OpenAPI
    Rest,
    /// Described by a GraphQL schema
    Graphql,
}

impl fmt::Display for CatalogKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Rest => "REST",
            Self::Graphql => "GraphQL",
        })
    }
}

impl FromStr for CatalogKind {
    type Err = NoneOf;

    fn from_str(text: &str) -> Result<Self, NoneOf> {
        let found = [Self::Rest, Self::Graphql].into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| NoneOf::new(text, &["REST", "GraphQL"]))
    }
}

impl From<ServiceKind> for CatalogKind {
    fn from(kind: ServiceKind) -> Self {
        match kind {
            ServiceKind::Rest => Self::Rest,
            ServiceKind::Graphql => Self::Graphql,
        }
    }
}

/// One of my services.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Api {
    pub id: ServiceIdText,
    pub name: String,
    pub state: ApiState,
    pub upstream: String,
    /// `public`, `LAN` or `same machine`.
    pub upstream_class: String,
    pub price: UsdcText,
    pub listing_version: u64,
    pub operations: Vec<ApiOperation>,
    /// Served and charged, of the calls that the ledger keeps.
    pub calls: u64,
    pub earned: UsdcText,
    /// Calls that the upstream did not answer, or with a status of 500 and above; none of them was charged.
    #[serde(default)]
    pub errors: u64,
    /// Seconds since the Unix epoch, of the newest call.
    pub last_call_secs: Option<u64>,
    /// The median time that the upstream took for the newest requests, in microseconds.
    pub upstream_median_us: Option<u64>,
    /// The last findings on its listing and its server; `None` before the first look.
    pub health: Option<ListingHealth>,
    /// The reason that no other node hears of this version, and what to do; `None` once it is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpublished: Option<String>,
}

words! {
    /// The state of one of my services.
    ApiState {
        Published = "published",
        /// It is stored, and its listing is not published yet.
        Unpublished = "unpublished",
        Paused = "paused",
        Removed = "removed",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiOperation {
    pub method: MethodText,
    pub path: String,
    pub price: UsdcText,
}

/// `farthing api price`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceRequest {
    pub price: UsdcText,
    /// Only this operation; the service's default price otherwise.
    pub operation: Option<OperationName>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OperationName {
    pub method: MethodText,
    pub path: String,
}

/// The place from which the node can read a service's description again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DescriptionOrigin {
    /// Nowhere: its owner wrote the operations by hand.
    #[default]
    ByHand,
    /// A file or a text, which its owner has to give again.
    File,
    /// An address, which the node reads again.
    Url,
}

/// One service with everything an owner wants to see of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApiShown {
    #[serde(flatten)]
    pub api: Api,
    #[schema(value_type = String)]
    pub kind: Text<CatalogKind>,
    pub summary: String,
    pub category: String,
    pub tags: Vec<String>,
    /// Markdown.
    pub description: String,
    /// URL or file that the description came from; empty when the operations were written by hand.
    pub source: String,
    #[serde(default)]
    pub origin: DescriptionOrigin,
    /// Names of what this node adds to every upstream request.
    pub secrets: Vec<String>,
    /// The report on the description from its registration.
    #[schema(value_type = Object)]
    pub report: Report,
    pub offers: Vec<Offer>,
    pub samples: Vec<OperationSample>,
    /// Operations of the description that are not offered, as the owner chose.
    #[serde(default)]
    pub hidden: Vec<OperationName>,
    /// The answers that are charged.
    #[serde(default)]
    pub charge: Charge,
}

/// `farthing api edit`; members that are left out stay as they are. Prices have their own command.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EditRequest {
    pub name: Option<String>,
    /// One line; the description's first when empty.
    pub summary: Option<String>,
    pub category: Option<String>,
    pub tags: Option<Vec<String>>,
    /// Markdown.
    pub description: Option<String>,
    /// The owner's own server.
    pub upstream: Option<String>,
    /// Added to every upstream request, in place of all that are added now; with none named those stay.
    #[serde(default)]
    pub upstream_headers: BTreeMap<String, String>,
    /// The same for parameters of the query.
    #[serde(default)]
    pub upstream_query: BTreeMap<String, String>,
    /// Names of headers and parameters that are not added any more.
    #[serde(default)]
    pub remove_secrets: Vec<String>,
    pub charge: Option<Charge>,
    /// Not offered any more.
    #[serde(default)]
    pub hide: Vec<OperationName>,
    /// Hidden ones that are offered again, for which the description is read once more.
    #[serde(default)]
    pub offer: Vec<OperationName>,
    /// The description, where it was a file.
    pub source: Option<SourceFile>,
    /// The version that the changes were made for: with another one nothing is changed.
    pub version: Option<u64>,
}

/// The result of `farthing api edit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Edited {
    #[serde(flatten)]
    pub api: Api,
    /// Names of what is not added to requests any more, because it was given for another server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped_secrets: Vec<String>,
}

/// An operation as a caller sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Offer {
    pub method: MethodText,
    pub path: String,
    pub price: UsdcText,
    pub summary: String,
    /// Its name in the description, such as `listPlanets`.
    #[serde(default)]
    pub id: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    pub parameters: Vec<OfferParameter>,
    /// Type of the body, when one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Seconds that an answer may take, where the owner says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_secs: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OfferParameter {
    pub name: String,
    /// `path`, `query` or `header`
    #[serde(rename = "in")]
    #[schema(value_type = String)]
    pub place: Place,
    #[serde(rename = "type")]
    pub kind: String,
    pub required: bool,
}

/// `farthing api rescan`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RescanRequest {
    /// Another source than the one of the registration, such as a newer file.
    pub source: Option<SourceFile>,
    /// Publish what changed as a new version.
    #[serde(default)]
    pub apply: bool,
}

/// The result of a newer reading of a service's source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rescan {
    #[schema(value_type = Object)]
    pub changes: Changes,
    #[schema(value_type = Object)]
    pub report: Report,
    /// True if a new version was published.
    pub applied: bool,
    pub api: Api,
}
