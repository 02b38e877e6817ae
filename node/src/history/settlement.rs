//! A settlement with the calls that it paid for.
//!
//! A channel's total is counted up by each charge, and a claim pays it from one total to another: the calls in
//! between are the ones.

use std::collections::HashMap;

use farthing_control::types::{ServedCall, SettledChannel, SettlementShown};
use farthing_ledger::{Ledger, LedgerError, Position, Settlement, SettlementRow, Window};
use farthing_protocol::{ChannelId, Usdc};

use super::{
    ServiceNames,
    claims::{reason_of_settlement, state_of_settlement, told},
    read::{amount_of, hash_text},
    served_call,
};

/// More does not help anybody who looks; everything is in the export.
const CALLS_MAX: usize = 500;
const SCANNED_MAX: usize = 100_000;

pub(super) fn shown(
    ledger: &Ledger,
    names: &ServiceNames,
    id: u64,
) -> Result<Option<SettlementShown>, LedgerError> {
    let Some(settlement) = ledger.settlement(id)? else { return Ok(None) };
    let settlement = told(ledger, settlement)?;
    let parts: HashMap<ChannelId, SettlementRow> =
        settlement.rows.iter().map(|row| (row.channel, *row)).collect();
    let window = Window {
        // A call may have been served in the second of its claim.
        before: Position::start_of(settlement.time_secs.saturating_add(1)),
        from_secs: 0,
        limit: CALLS_MAX,
        scan_max: SCANNED_MAX,
    };
    let calls = ledger.calls_in(&window, |row| {
        let (receipt, part) = (&row.receipt, parts.get(&row.receipt.channel));
        let pays = |part: &SettlementRow| receipt.spent_total > part.from && receipt.spent_total <= part.to;
        !receipt.charged.is_zero() && part.is_some_and(pays)
    })?;
    let calls: Vec<ServedCall> = calls.rows.iter().map(|(_, row)| served_call(row, names)).collect();
    let amount = amount_of(&settlement);
    let listed = calls.iter().fold(Usdc::ZERO, |sum, call| sum.saturating_add(call.charged.0));
    Ok(Some(SettlementShown {
        id,
        time_secs: settlement.time_secs,
        state: state_of_settlement(&settlement),
        transaction: settlement.transaction.map(|hash| hash_text(&hash)),
        reason: reason_of_settlement(&settlement).map(str::to_owned),
        amount: amount.into(),
        channels: channels(ledger, &settlement)?,
        calls,
        partial: listed < amount,
    }))
}

fn channels(ledger: &Ledger, settlement: &Settlement) -> Result<Vec<SettledChannel>, LedgerError> {
    let channel = |row: &SettlementRow| {
        let known = ledger.payee_channel(row.channel)?;
        Ok(SettledChannel {
            channel: row.channel.into(),
            payer: known.map(|known| known.config.payer.into()),
            amount: row.amount().into(),
        })
    };
    settlement.rows.iter().map(channel).collect()
}
