//! Checks that the books add up: by themselves, beside the contract, and beside an owner's.

use axum::{
    Json,
    extract::{Query, State},
    http::StatusCode,
};
use farthing_control::{
    counted,
    types::{Audit, AuditQuery, Compared, OnChain},
};
use farthing_ledger::LedgerError;
use farthing_node::{
    consumer::{self, BooksError},
    handles::Handles,
    settlement::contract::{Checked, NotChecked},
};
use farthing_protocol::Address;
use farthing_shared::blocking::run_in_turn;

use super::{Failed, Reply};

/// The note on what a node cannot check from anything it reads.
const BEYOND: &str = "M1: only the chain knows the sum of all balances; the contract's own tests check it";
const WITHOUT_OWNER: &str = "X1, M4 for both sides, and O3 as a payer sees it: these need the other side's ledger; \
                             compare with `farthing audit --with <owner>`";
const OFFLINE: &str = "M2, and M3 in the contract: the chain was not asked because of --offline";

/// Everything that the ledger shows; with the signatures where it may take longer.
pub(super) async fn full_audit(
    node: &Handles,
    with_signatures: bool,
) -> Result<farthing_ledger::Audit, LedgerError> {
    let (ledger, domain) = (node.ledger.clone(), node.chain.domain());
    // The end of a call that was just answered is on its way there.
    ledger.catch_up().await;
    run_in_turn(move || ledger.audit(with_signatures.then_some(&domain))).await
}

answer!(Audit: audit);
/// The books, checked now.
async fn audit(
    State(node): State<Handles>,
    Query(AuditQuery { with, offline }): Query<AuditQuery>,
) -> Reply<Audit> {
    let audit = full_audit(&node, true).await?;
    let mut told = Audit {
        calls_served: audit.calls,
        calls_bought: audit.purchases,
        calls_undecided: audit.promises,
        adjustments: audit.adjustments,
        violations_total: audit.violations_total,
        violations: audit.violations.iter().map(ToString::to_string).collect(),
        not_checked: vec![BEYOND.to_owned()],
        chain: None,
        compared: None,
    };
    if audit.days_of_unknown_limits > 0 {
        told.not_checked.push(format!(
            "C2 on {}: the limits of those days are not on record",
            counted(audit.days_of_unknown_limits, "day")
        ));
    }
    if offline {
        told.not_checked.push(OFFLINE.to_owned());
    } else {
        check_contract(&node, &mut told).await?;
    }
    match with {
        Some(owner) => told.compared = Some(compare(&node, owner.0).await?),
        None => told.not_checked.push(WITHOUT_OWNER.to_owned()),
    }
    Ok(Json(told))
}

async fn check_contract(node: &Handles, told: &mut Audit) -> Result<(), Failed> {
    let checked = match node.settlement.check_contract().await {
        Ok(checked) => checked,
        Err(NotChecked::Ledger(error)) => return Err(error.into()),
        Err(reason) => {
            told.not_checked.push(format!("M2, and M3 in the contract: {reason}"));
            return Ok(());
        }
    };
    let Checked { block, channels, escrow, at_stake, waiting, violations, violations_total, left_out } =
        checked;
    if left_out > 0 {
        let text = format!(
            "M2, and M3 in the contract, of {}: they use another contract or token than the settings, or there are too \
             many",
            counted(left_out, "channel")
        );
        told.not_checked.push(text);
    }
    told.violations_total += violations_total;
    told.violations.extend(violations);
    let (escrow, at_stake) = (escrow.into(), at_stake.into());
    told.chain = Some(OnChain { block, channels, escrow, at_stake, unconfirmed: waiting });
    Ok(())
}

async fn compare(node: &Handles, owner: Address) -> Result<Compared, Failed> {
    let compared = node.consumer.compare_books_with(owner).await.map_err(|error| match error {
        BooksError::Ledger(error) => Failed::from(error),
        error => {
            let detail = format!("the ledger of {owner} could not be compared: {error}");
            Failed::new(StatusCode::BAD_GATEWAY, &detail, error.next_step())
        }
    })?;
    let consumer::compare::BookComparison { channels, .. } = compared;
    Ok(Compared {
        owner: owner.into(),
        calls: compared.calls,
        undecided: compared.undecided,
        not_kept: compared.not_kept,
        adjusted: compared.adjusted.into(),
        adjusted_there: compared.adjusted_there.into(),
        channels: channels.compared,
        channels_left_out: channels.left_out,
        spent_here: channels.spent_here.into(),
        earned_there: channels.earned_there.into(),
        differences_total: compared.differences_total,
        differences: compared.differences,
    })
}
