//! What both ledgers hold at the end of a history that failed, a line each.

use std::fmt::Debug;

use farthing_ledger::{Ledger, PurchaseEnd, ServedRow};
use farthing_protocol::Address;

use crate::halves::state::number;

/// The rows of a ledger that buys.
pub fn bought(ledger: &Ledger) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(ledger.payer_channels().unwrap().iter().map(|row| line("channel", row)));
    lines.extend(ledger.unresolved().unwrap().iter().map(|promise| {
        let (number, price) = (number(promise.request.call_id), promise.request.price);
        format!("  call {number} at {price}: open")
    }));
    lines.extend(ledger.purchases(usize::MAX).unwrap().iter().map(|purchase| {
        let (number, price) = (number(purchase.call_id), purchase.price);
        let end = match &purchase.end {
            PurchaseEnd::Acknowledged { outcome, .. } => format!("{outcome:?}"),
            PurchaseEnd::Transferred { status, .. } => format!("transferred, {status}"),
            PurchaseEnd::Released { reason, in_doubt, .. } => format!("{reason}, in doubt: {in_doubt}"),
        };
        format!("  call {number} at {price}: {end}, {} charged", purchase.charged)
    }));
    lines.extend(violations(ledger));
    lines
}

/// The rows of a ledger that sells to this payer.
pub fn sold(ledger: &Ledger, payer: Address) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    lines.extend(ledger.payee_channels().unwrap().iter().map(|row| line("channel", row)));
    let calls = ledger.calls_of(payer, None, usize::MAX, usize::MAX, |row| {
        Some(match row {
            ServedRow::Accepted(accepted) => format!("  call {}: accepted", number(accepted.call_id)),
            ServedRow::Done(row) => {
                let (number, price, outcome) = (number(row.call.call_id), row.call.price, row.call.outcome);
                format!("  call {number} at {price}: {outcome:?}, {} charged", row.call.charged)
            }
        })
    });
    lines.extend(calls.unwrap().0);
    lines.extend(violations(ledger));
    lines
}

fn violations(ledger: &Ledger) -> Vec<String> {
    let audit = ledger.audit(None).unwrap();
    audit.violations.iter().map(|violation| line("violation", violation)).collect()
}

pub fn line(what: &str, value: &impl Debug) -> String {
    format!("  {what}: {value:?}")
}
