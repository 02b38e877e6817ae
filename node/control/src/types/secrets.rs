//! The secrets that scripts present, and what their holders may do.

use std::collections::BTreeSet;

use farthing_values::ServiceId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Text, UsdcText};

/// `farthing secret show`, `create` and `rotate`, and `farthing alert secret`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Secret {
    pub secret: String,
}

/// The name that budgets, history and settings have for the node's own secret.
pub const DEFAULT_SECRET: &str = "default";

/// A secret, without the secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SecretShown {
    /// `default` for the node's own, which has no limits beside the node's.
    pub name: String,
    /// Seconds since the Unix epoch; `None` for the default one.
    pub created_secs: Option<u64>,
    /// Seconds since the Unix epoch; `None` while nobody presented it.
    pub last_used_secs: Option<u64>,
    /// Spent and reserved with it since midnight UTC.
    pub spent_today: UsdcText,
    pub limits: SecretLimits,
    /// Services whose operations are tools of an agent that buys with this secret.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub pinned: BTreeSet<Text<ServiceId>>,
}

/// `farthing secret pin`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PinnedServices {
    /// All of them, at most 10; they replace earlier ones.
    #[schema(value_type = Vec<String>)]
    pub services: BTreeSet<Text<ServiceId>>,
}

/// The limits of the holder of a secret, within those of the node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretLimits {
    /// Highest price of one call; the node's limit when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_max: Option<UsdcText>,
    /// Most that may be spent in a day (UTC); the node's limit per secret when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_day: Option<UsdcText>,
    /// An agent needs a confirmation for a call that costs more; the node's amount when absent. Scripts are not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_above: Option<UsdcText>,
    /// Only these services; every service when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    pub services: Option<BTreeSet<Text<ServiceId>>>,
}

/// `farthing secret create`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSecret {
    /// Up to 40 letters, digits, `-`, `_` and `.`.
    pub name: String,
    #[serde(default)]
    pub limits: SecretLimits,
}
