//! Calls as the ledger has them, one by one and in figures.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AddressText, CallIdText, CallOutcome, ServiceIdText, UsdcText};

/// The newest calls, bought and served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Activity {
    pub bought: Vec<BoughtCall>,
    pub served: Vec<ServedCall>,
}

/// A call that this node bought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BoughtCall {
    pub call_id: CallIdText,
    pub service: ServiceIdText,
    /// As the catalog has it; empty when it does not know the service any more. A stranger's text.
    pub name: String,
    pub owner: AddressText,
    /// `GET /v1/things`
    pub operation: String,
    /// Seconds since the Unix epoch.
    pub time_secs: u64,
    pub outcome: CallOutcome,
    /// As the service answered; `None` when it did not.
    pub status: Option<u16>,
    /// The reason that there is no answer.
    pub reason: Option<String>,
    pub charged: UsdcText,
    /// The whole call, what the owner took of it, and of that its upstream, in microseconds.
    pub total_us: u64,
    pub owner_us: u64,
    pub upstream_us: u64,
}

/// A call that this node served.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServedCall {
    pub call_id: CallIdText,
    pub service: ServiceIdText,
    /// Empty when the service is not offered any more.
    pub name: String,
    pub payer: AddressText,
    /// `GET /v1/things`
    pub operation: String,
    /// Seconds since the Unix epoch.
    pub time_secs: u64,
    pub outcome: CallOutcome,
    /// As this node's server answered; 0 when it did not.
    pub status: u16,
    pub charged: UsdcText,
}

/// A summary of the newest calls. Up to a few seconds old.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Figures {
    /// The last days, the oldest first and today last.
    pub days: Vec<DayFigures>,
    pub bought_today: u64,
    pub served_today: u64,
    /// Of the calls bought today, in microseconds.
    pub median_us: Option<u64>,
    /// This node's measurements of services that it called.
    pub measured: Vec<Measured>,
}

/// One day in UTC.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DayFigures {
    /// Days since the Unix epoch.
    pub day: u32,
    /// Calls that were answered, by services of others.
    #[serde(default)]
    pub bought: u64,
    pub spent: UsdcText,
    /// Calls that were answered, by services of this node.
    #[serde(default)]
    pub served: u64,
    pub earned: UsdcText,
}

/// One service, as this node's own calls show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Measured {
    pub service: ServiceIdText,
    pub calls: u64,
    /// Answered with a status below 500.
    pub answered: u64,
    /// Of those that were answered, in microseconds.
    pub median_us: Option<u64>,
}
