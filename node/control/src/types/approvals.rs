//! Calls of agents that cost more than their secret pays for without its user, and what the user says of them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CallRequest, UsdcText};

/// The longest call that a user is asked about. The user reads all of it, so nothing of it is cut.
pub const APPROVAL_KIB_MAX: usize = 16;

words! {
    /// The state of a question whether an agent may buy a call.
    ApprovalState {
        /// The user has not decided.
        Waiting = "waiting",
        /// The agent may buy this call once.
        Approved = "approved",
        Refused = "refused",
    }
}

/// A call that an agent may not buy before its user approves it. The node keeps it in memory, until it expires or restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Approval {
    /// UUID.
    pub id: String,
    /// Name of the secret that the agent buys with.
    pub secret: String,
    pub state: ApprovalState,
    /// The call as the agent asked for it, without its id and its highest price. Its values are the agent's words.
    pub call: CallRequest,
    /// Name of the service; empty when this node does not know it.
    pub service_name: String,
    /// The approval is for this price at most.
    pub price: UsdcText,
    /// The amount above which the agent needs an approval.
    pub above: UsdcText,
    /// Seconds since the Unix epoch.
    pub asked_secs: u64,
    /// Seconds from now.
    pub expires_in_secs: u64,
    /// Page of the console on which the user decides.
    pub url: String,
}

/// A call for which an agent asks its user's approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    pub call: CallRequest,
    pub price: UsdcText,
    /// The amount above which the agent needs an approval.
    pub above: UsdcText,
}

impl CallRequest {
    /// The call that a user is asked about: the same whatever the agent would pay at most and however it names the call. `None` if it
    /// is longer than a user is asked to read.
    #[must_use]
    pub fn to_approve(&self) -> Option<Self> {
        let call = Self { max_price: None, call_id: None, ..self.clone() };
        let bytes = serde_json::to_vec(&call).map_or(usize::MAX, |text| text.len());
        (bytes <= APPROVAL_KIB_MAX * 1024).then_some(call)
    }
}
