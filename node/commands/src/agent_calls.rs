//! Calls of agents: noted before they leave, and ended once the agents have their answers.

use axum::{
    Json,
    extract::{Path, State},
};
use farthing_control::types::{AgentCall, CallRequest, EndedAgentCall};
use farthing_node::handles::Handles;

use super::{Reply, approvals::asking};

answer!(BeginAgentCall: begin);
async fn begin(
    State(node): State<Handles>,
    Path(name): Path<String>,
    Json(call): Json<CallRequest>,
) -> Reply<AgentCall> {
    let by = asking(&node, name)?;
    Ok(Json(node.agent_calls.begin(by, call).await?))
}

answer!(EndAgentCall: end);
async fn end(
    State(node): State<Handles>,
    Path(name): Path<String>,
    Json(ended): Json<EndedAgentCall>,
) -> Reply<AgentCall> {
    let by = asking(&node, name)?;
    Ok(Json(node.agent_calls.end(&by, ended.call_id).await?))
}
