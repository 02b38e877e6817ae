//! Limits of what the node may spend, and the switch that stops it.

use farthing_protocol::{ServiceId, Usdc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Text;

/// `farthing spending`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SpendingState {
    /// Nothing is bought while this is set; selling and settling go on.
    pub stopped: Option<StoppedBy>,
    /// Seconds since the Unix epoch, when the user stopped it.
    pub stopped_secs: Option<u64>,
    /// Spent and reserved since midnight UTC.
    #[schema(value_type = String)]
    pub spent_today: Text<Usdc>,
    /// In force.
    pub limits: SpendingLimits,
    /// Of the section `[spending]`, in force where nothing else was set while the node ran.
    pub configured: SpendingLimits,
    pub at_rest: MoneyAtRest,
}

/// The money in channels, deposited and not paid out, and the most that may lie there; set in the section `[spending]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MoneyAtRest {
    /// In all channels, deposits under way included.
    #[schema(value_type = String)]
    pub now: Text<Usdc>,
    /// The part of `now` that counts for deposits of the last day that came back.
    #[schema(value_type = String)]
    pub returned: Text<Usdc>,
    #[schema(value_type = String)]
    pub max: Text<Usdc>,
    #[schema(value_type = String)]
    pub per_owner: Text<Usdc>,
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
    /// The most one call may cost.
    #[schema(value_type = String)]
    pub price_max: Text<Usdc>,
    /// The most the node spends in a day (UTC).
    #[schema(value_type = String)]
    pub per_day: Text<Usdc>,
    /// The most the holder of one secret spends in a day (UTC).
    #[schema(value_type = String)]
    pub per_secret_day: Text<Usdc>,
}

/// `farthing spending accept`: calls of a service may cost so much without naming a price.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptPrice {
    #[schema(value_type = String)]
    pub service: Text<ServiceId>,
    /// The price that was looked at: one that rises further meanwhile is not accepted with it.
    #[schema(value_type = String)]
    pub up_to: Text<Usdc>,
}

/// `farthing spending limits`: what is not named stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsRequest {
    #[schema(value_type = Option<String>)]
    pub price_max: Option<Text<Usdc>>,
    #[schema(value_type = Option<String>)]
    pub per_day: Option<Text<Usdc>>,
    #[schema(value_type = Option<String>)]
    pub per_secret_day: Option<Text<Usdc>>,
    /// First back to the configuration's, all of them.
    #[serde(default)]
    pub reset: bool,
}
