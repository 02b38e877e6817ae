//! Limits of what the node may spend, and the switch that stops it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ServiceIdText, UsdcText};

/// `farthing spending`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpendingState {
    /// Nothing is bought while this is set; selling and settling go on.
    pub stopped: Option<StoppedBy>,
    /// Seconds since the Unix epoch, when the user stopped it.
    pub stopped_secs: Option<u64>,
    /// Spent and reserved since midnight UTC.
    pub spent_today: UsdcText,
    /// In force.
    pub limits: SpendingLimits,
    /// Of the section `[spending]`, in force where nothing else was set while the node ran.
    pub configured: SpendingLimits,
    /// An agent needs a confirmation for a call that costs more: `spending.confirm_above`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirm_above: Option<UsdcText>,
    pub at_rest: MoneyAtRest,
}

/// The money in channels, deposited and not paid out, and the most that may lie there; set in the section `[spending]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoneyAtRest {
    /// In all channels, deposits under way included.
    pub now: UsdcText,
    /// The part of `now` that counts for deposits of the last day that came back.
    pub returned: UsdcText,
    pub max: UsdcText,
    pub per_owner: UsdcText,
    /// The longest that a listing may bind a deposit when its owner does not answer.
    pub close_delay_max_secs: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// `spending.enabled` is `false`; only the configuration lifts it.
    Configuration,
    /// Lifted by `farthing spending resume`.
    User,
}

/// The node's own caps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpendingLimits {
    /// Highest price of one call.
    pub price_max: UsdcText,
    /// Most that the node may spend in a day (UTC).
    pub per_day: UsdcText,
    /// Most that may be spent with one secret in a day (UTC).
    pub per_secret_day: UsdcText,
}

/// `farthing spending accept`: calls of a service may cost so much without naming a price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptPrice {
    pub service: ServiceIdText,
    /// The price that was looked at: one that rises further meanwhile is not accepted with it.
    pub up_to: UsdcText,
}

/// `farthing spending limits`; members that are left out stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsRequest {
    pub price_max: Option<UsdcText>,
    pub per_day: Option<UsdcText>,
    pub per_secret_day: Option<UsdcText>,
    /// Goes back to the configured values first, all of them.
    #[serde(default)]
    pub reset: bool,
}
