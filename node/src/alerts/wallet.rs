//! Alerts about the money of the wallet, and about transactions of it that wait.

use std::time::Duration;

use farthing_control::{
    counted,
    types::{
        Alert, AlertKind,
        AlertSeverity::{Error, Warning},
        Eth,
    },
};

use super::{Levels, NodeFacts, RefusedClaims};

/// A transaction that takes longer keeps claims from the chain for a part of the time that they have.
const MINED_WITHIN: Duration = Duration::from_secs(600);

/// Lists what is amiss.
pub(super) fn alerts(facts: &NodeFacts, levels: &Levels) -> Vec<Alert> {
    let mut alerts = Vec::new();
    let pays = !facts.paying.is_empty();
    if let Some(usdc) = facts.usdc.filter(|usdc| pays && *usdc < levels.usdc_below) {
        let cause =
            format!("the wallet has {usdc} USDC, less than your alert level of {}", levels.usdc_below);
        let action = "send USDC to the wallet, or lower the alert level";
        alerts.push(Alert::new(AlertKind::UsdcLow, Warning, cause, action));
    }
    let earns = !facts.unclaimed.is_zero();
    if let Some(RefusedClaims { channels, amount, reason }) = facts.refused.as_ref().filter(|_| earns) {
        let cause = format!(
            "the contract refuses the claims of {}, {amount} USDC: {reason}. When {} USDC cannot be claimed, this node \
             serves no more paid calls",
            counted(*channels, "channel"),
            facts.without_gas_max
        );
        let action =
            "`farthing settle now` tries again; if the token has blocked this wallet, ask its issuer";
        alerts.push(Alert::new(AlertKind::ClaimRefused, Error, cause, action));
    }
    if !facts.unaffordable.is_zero() {
        let left = Eth { wei: facts.wei.unwrap_or_default() };
        let cause = format!(
            "{left} ETH do not pay for claiming {} of the {} USDC that you have earned; when {} USDC cannot be \
             claimed, this node serves no more paid calls",
            facts.unaffordable, facts.unclaimed, facts.without_gas_max
        );
        let action = "send a little ETH to the wallet; calls then continue automatically";
        alerts.push(Alert::new(AlertKind::ClaimUnaffordable, Error, cause, action));
    }
    let needs_gas = earns || pays && !facts.is_gas_paid;
    if let Some(wei) = facts.wei.filter(|wei| needs_gas && *wei < levels.eth_below.wei) {
        let (left, level) = (Eth { wei }, levels.eth_below);
        let cause = format!("the wallet has {left} ETH for gas, less than your alert level of {level}");
        let action = "send a little ETH to the wallet, or lower the alert level";
        alerts.push(Alert::new(AlertKind::EthLow, Warning, cause, action));
    }
    if let Some((what, _)) = facts.under_way.filter(|(_, since)| *since >= MINED_WITHIN) {
        let cause = format!(
            "{what} has not been mined for {} minutes, so later transactions wait, including claims",
            MINED_WITHIN.as_secs() / 60
        );
        let action = "send a little ETH to the wallet so that the node can pay more for gas, or wait until gas is \
                      cheaper";
        alerts.push(Alert::new(AlertKind::TransactionWaits, Error, cause, action));
    }
    alerts
}
