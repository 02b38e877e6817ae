//! Calls of agents that wait for their user: asked about, listed, approved and refused.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use farthing_config::gateway_url;
use farthing_control::types::{Approval, ApprovalRequest};
use farthing_node::{
    approvals::{ApprovalError, AskingSecret},
    handles::Handles,
    history::ServiceNames,
    secrets::SecretsError,
};

use super::{Failed, Reply};

/// The page of the console with these calls.
const PAGE: &str = "/panel/finance/approvals";

/// The secret of this name as it is now.
pub(super) fn asking(node: &Handles, name: String) -> Result<AskingSecret, SecretsError> {
    let found = node.secrets.all().into_iter().find(|facts| facts.name == name);
    let facts = found.ok_or(SecretsError::NotFound(name))?;
    Ok(AskingSecret { name: facts.name, created_secs: facts.created_secs })
}

/// A call with what the node knows beside it.
fn shown(node: &Handles, names: &ServiceNames, approval: Approval) -> Approval {
    let panel = &node.config.panel;
    Approval {
        service_name: names.of(approval.call.api_id_public.0),
        url: format!("{}{PAGE}", gateway_url(panel.listen, panel.tls)),
        ..approval
    }
}

answer!(Approvals: list);
async fn list(State(node): State<Handles>) -> Json<Vec<Approval>> {
    let names = node.history().names();
    Json(node.approvals.all().into_iter().map(|approval| shown(&node, &names, approval)).collect())
}

answer!(AskApproval: ask);
async fn ask(
    State(node): State<Handles>,
    Path(name): Path<String>,
    Json(request): Json<ApprovalRequest>,
) -> Reply<Approval> {
    let approval = node.approvals.ask(asking(&node, name)?, request)?;
    Ok(Json(shown(&node, &node.history().names(), approval)))
}

answer!(ApproveCall: approve);
async fn approve(State(node): State<Handles>, Path(id): Path<String>) -> Reply<Approval> {
    let approval = node.approvals.approve(&id)?;
    Ok(Json(shown(&node, &node.history().names(), approval)))
}

answer!(RefuseCall: refuse);
async fn refuse(State(node): State<Handles>, Path(id): Path<String>) -> Reply<Approval> {
    let approval = node.approvals.refuse(&id)?;
    Ok(Json(shown(&node, &node.history().names(), approval)))
}

refused!(ApprovalError {
    ApprovalError::TooLarge => BAD_REQUEST,
    ApprovalError::NotFound => NOT_FOUND,
});
