//! What needs a person, and who is told of it.

use farthing_protocol::Usdc;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Eth, Text};

/// Something that needs a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// `not-ready`, `disk-low`, `clock-off`, `wallet-twice`, `spending-stopped`, `usdc-low`, `eth-low`, `budget-low`, `channel-low`,
    /// `channel-stopped`, `server-down`, `listing-unseen` or `backup-failed`
    pub kind: String,
    /// Which of several of a kind: a part of the node, a channel's or a service's id. Empty where there is only one.
    pub subject: String,
    pub severity: AlertSeverity,
    pub cause: String,
    /// What to do.
    pub action: String,
    /// Seconds since the Unix epoch; since the start of the node at most.
    pub since_secs: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertSeverity {
    Warning,
    Error,
}

/// From when on an alert is raised, and where alerts are posted to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlertLevels {
    /// In the wallet of a node that buys; zero raises nothing, here and below.
    #[schema(value_type = String)]
    pub usdc_below: Text<Usdc>,
    /// For gas, in the wallet of a node that buys or has something to claim.
    #[schema(value_type = String)]
    pub eth_below: Text<Eth>,
    /// Left on a channel on which the node pays.
    #[schema(value_type = String)]
    pub channel_below: Text<Usdc>,
    /// Scheme, host and port of the webhook: the rest of its address often is a secret.
    pub webhook: Option<String>,
    /// Seconds since the Unix epoch, when the webhook was told last since the node started.
    pub told_secs: Option<u64>,
    /// Why the webhook was not told, the last time.
    pub problem: Option<String>,
}

/// `farthing alert set`: what is not named stays as it is.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertLevelsRequest {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub usdc_below: Option<Text<Usdc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub eth_below: Option<Text<Eth>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub channel_below: Option<Text<Usdc>>,
    /// An address that takes JSON by POST; empty for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
}

impl std::fmt::Debug for AlertLevelsRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AlertLevelsRequest(…)")
    }
}
