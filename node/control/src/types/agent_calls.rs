//! Calls of agents whose answers have not arrived.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A call of an agent that the node notes until the agent has its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentCall {
    /// A UUID, or a text of the agent's own.
    pub call_id: String,
    /// True if the node had noted it before, so that it may have left already.
    pub was_noted: bool,
}

/// The name of a call that ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EndedAgentCall {
    /// A UUID, or a text of the agent's own.
    pub call_id: String,
}
