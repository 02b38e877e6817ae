//! Whether the books add up: by themselves, and beside an owner's.

use axum::{
    Json,
    extract::{Query, State},
    http::StatusCode,
};
use farthing_ledger::LedgerError;

use super::Failed;
use crate::{
    control::types::{Audit, AuditQuery, Compared, route},
    node::Node,
};

/// What no ledger shows, for people who read that the rest holds.
const NOT_CHECKED: [&str; 2] = [
    "M1, M2: what the contract holds is the chain's to say; its own tests show both",
    "X1, and O3 as a payer sees it: the other side's books; `farthing audit --with <owner>` compares them",
];

/// Everything that the ledger shows; with the signatures where it may take longer.
pub(super) async fn full_audit(
    node: &Node,
    with_signatures: bool,
) -> Result<farthing_ledger::Audit, LedgerError> {
    let (ledger, domain) = (node.ledger.clone(), node.chain.domain());
    let audited = move || ledger.audit(with_signatures.then_some(&domain));
    match tokio::task::spawn_blocking(audited).await {
        Ok(audit) => audit,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// The invariants that the ledger shows, checked now.
#[utoipa::path(
    get,
    path = route::AUDIT,
    summary = "The invariants that the ledger shows, and its agreement with an owner's books",
    tag = "Node",
    params(AuditQuery),
    responses((status = 200, description = "Done", body = Audit))
)]
pub(super) async fn audit(
    State(node): State<Node>,
    Query(AuditQuery { with }): Query<AuditQuery>,
) -> Result<Json<Audit>, Failed> {
    let audit = full_audit(&node, true).await?;
    let compared = match with {
        None => None,
        Some(owner) => {
            let compared = node.consumer.compare_calls(owner.0).await.map_err(|reason| {
                let detail = format!("the books of {} could not be compared: {reason}", owner.0);
                let next =
                    "Try again when the owner's node is there; `farthing net lookup` shows whether it is.";
                Failed::new(StatusCode::BAD_GATEWAY, &detail, next)
            })?;
            let told = |(call_id, difference)| format!("call {call_id}: {difference}");
            Some(Compared {
                owner,
                calls: compared.calls,
                undecided: compared.undecided,
                adjusted: compared.adjusted.into(),
                differences_total: compared.differences_total,
                differences: compared.differences.into_iter().map(told).collect(),
            })
        }
    };
    let not_checked = NOT_CHECKED.iter().take(if compared.is_some() { 1 } else { NOT_CHECKED.len() });
    Ok(Json(Audit {
        calls_served: audit.calls,
        calls_bought: audit.purchases,
        calls_undecided: audit.promises,
        adjustments: audit.adjustments,
        violations: audit.violations.iter().map(ToString::to_string).collect(),
        not_checked: not_checked.map(|&text| text.to_owned()).collect(),
        compared,
    }))
}
