//! Earnings that payers withdrew before they were claimed, and payments of x402 clients that the chain took back: the alerts of them,
//! for a week.

use std::collections::BTreeMap;

use farthing_control::{
    counted,
    types::{Alert, AlertKind, AlertSeverity::Warning},
};
use farthing_ledger::{Adjustment, Cause, Ledger, Position, Settlement, SettlementState, Window};
use farthing_owner::book::PayeeChannel;
use farthing_protocol::{ChannelId, Usdc};

/// The time for which a loss is told here; what is older is told by the history alone.
const TOLD_FOR_SECS: u64 = 7 * 86_400;
/// Entries of the history that are looked at, the newest.
const LOOKED_AT_MAX: usize = 256;

/// The sum of what payers withdrew lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EarningsLost {
    pub(super) amount: Usdc,
    pub(super) channels: usize,
}

/// Reads what was lost lately on channels where a claim would have been worth its gas. A ledger that cannot be read is told of by
/// itself.
pub(super) fn lately(
    ledger: &Ledger,
    channels: &[(ChannelId, PayeeChannel)],
    now_secs: u64,
    is_worth_gas: impl Fn(Usdc) -> bool,
) -> Option<EarningsLost> {
    let has_lost =
        |channel: &PayeeChannel| channel.state.spent > channel.state.deposited.max(channel.state.claimed);
    // Hardly any node has, and then there is nothing to read.
    if !channels.iter().any(|(_, channel)| has_lost(channel)) {
        return None;
    }
    sum(&ledger.settlements(LOOKED_AT_MAX).unwrap_or_default(), now_secs, is_worth_gas)
}

fn sum(
    settlements: &[Settlement],
    now_secs: u64,
    is_worth_gas: impl Fn(Usdc) -> bool,
) -> Option<EarningsLost> {
    let mut lost: BTreeMap<ChannelId, Usdc> = BTreeMap::new();
    for settlement in settlements.iter().filter(|one| one.state == SettlementState::Lost) {
        if now_secs.saturating_sub(settlement.time_secs) < TOLD_FOR_SECS {
            for row in &settlement.rows {
                let sum = lost.entry(row.channel).or_default();
                *sum = sum.saturating_add(row.amount());
            }
        }
    }
    // What is dearer to claim than it is worth is left to payers knowingly.
    lost.retain(|_, amount| is_worth_gas(*amount));
    let amount = lost.values().copied().fold(Usdc::ZERO, Usdc::saturating_add);
    (!lost.is_empty()).then_some(EarningsLost { amount, channels: lost.len() })
}

/// The sum of the calls of x402 clients that nothing pays any more, of lately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SalesLost {
    pub(super) amount: Usdc,
    pub(super) calls: usize,
}

/// Reads which payments the chain took back lately.
pub(super) fn sales(ledger: &Ledger, now_secs: u64) -> Option<SalesLost> {
    let window = Window {
        before: Position::start_of(u64::MAX),
        from_secs: now_secs.saturating_sub(TOLD_FOR_SECS).saturating_add(1),
        limit: LOOKED_AT_MAX,
        scan_max: LOOKED_AT_MAX,
    };
    let found = ledger.adjustments_in(&window, |row: &Adjustment| row.cause == Cause::TakenBack).ok()?;
    let amounts = found.rows.iter().map(|(_, row)| row.amount);
    let (amount, calls) = (amounts.fold(Usdc::ZERO, Usdc::saturating_add), found.rows.len());
    (calls > 0).then_some(SalesLost { amount, calls })
}

pub(super) fn sales_alert(lost: &SalesLost) -> Alert {
    let SalesLost { amount, calls } = lost;
    let cause = format!(
        "in the last 7 days the chain took back payments of x402 clients, of {amount} USDC for {}, after the answers had left",
        counted(*calls, "call")
    );
    let action = "see `farthing wallet history --kind adjustment`; if it happens again, set more than one endpoint in \
                  `chain.rpc_urls`, or a higher number in `chain.confirmations`";
    Alert::new(AlertKind::SalesLost, Warning, cause, action)
}

pub(super) fn alert(lost: &EarningsLost) -> Alert {
    let EarningsLost { amount, channels } = lost;
    let cause = format!(
        "payers withdrew {amount} USDC that you had earned on {} in the last 7 days, before this node claimed it",
        counted(*channels, "channel")
    );
    let action = "see `farthing wallet history --kind settlement`; keep the node running and with ETH for gas, so that \
                  it can claim before a channel's delay ends";
    Alert::new(AlertKind::EarningsLost, Warning, cause, action)
}

#[cfg(test)]
mod tests {
    use farthing_ledger::SettlementRow;

    use super::*;

    const NOW_SECS: u64 = 1_800_000_000;

    fn entry(channel: u8, amount: u64, ago_secs: u64, state: SettlementState) -> Settlement {
        let (from, to) = (Usdc::from_micros(100), Usdc::from_micros(100 + amount));
        Settlement {
            id: 1,
            transaction: None,
            rows: vec![SettlementRow { channel: ChannelId::from_bytes([channel; 32]), from, to }],
            time_secs: NOW_SECS - ago_secs,
            state,
            is_dropped: false,
        }
    }

    #[test]
    fn what_payers_withdrew_is_told_for_a_week_where_a_claim_was_worth_its_gas() {
        use SettlementState::{Confirmed, Lost, Returned};
        let told = |entries: &[Settlement]| {
            let lost = sum(entries, NOW_SECS, |amount| amount > Usdc::from_micros(10));
            lost.map(|lost| (lost.amount.micros(), lost.channels))
        };
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[entry(1, 50, 0, Confirmed), entry(1, 50, 0, Returned)]), None);
        assert_eq!(told(&[entry(1, 10, 0, Lost)]), None, "dearer to claim than it is worth");
        assert_eq!(
            told(&[entry(1, 10, 0, Lost), entry(1, 1, 9, Lost)]),
            Some((11, 1)),
            "one claim pays for both"
        );
        assert_eq!(told(&[entry(1, 11, 0, Lost), entry(2, 20, 0, Lost)]), Some((31, 2)));
        assert_eq!(told(&[entry(1, 11, TOLD_FOR_SECS - 1, Lost)]), Some((11, 1)));
        assert_eq!(told(&[entry(1, 11, TOLD_FOR_SECS, Lost)]), None, "the history has it");
        let alert = alert(&EarningsLost { amount: Usdc::from_micros(40_000), channels: 1 });
        assert!(alert.cause.contains("0.04 USDC that you had earned on 1 channel "), "{}", alert.cause);
    }
}
