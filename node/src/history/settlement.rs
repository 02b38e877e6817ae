//! A settlement with the calls that it paid for.
//!
//! A channel's total is counted up by each charge, and a claim pays it from one total to another: the calls in
//! between are the ones.

use std::collections::HashMap;

use farthing_control::types::{ServedCall, SettledChannel, SettlementShown};
use farthing_ledger::{CallRow, Ledger, LedgerError, Position, Settlement, SettlementRow, Stretch, Window};
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
/// Calls that are looked at in one step.
const STRETCH: usize = 2_000;

pub(super) fn shown(
    ledger: &Ledger,
    names: &ServiceNames,
    id: u64,
) -> Result<Option<SettlementShown>, LedgerError> {
    let Some(settlement) = ledger.settlement(id)? else { return Ok(None) };
    let settlement = told(ledger, settlement)?;
    let parts: HashMap<ChannelId, SettlementRow> =
        settlement.rows.iter().map(|row| (row.channel, *row)).collect();
    let amount = amount_of(&settlement);
    let covered = |row: &CallRow| covered_by(&parts, row);
    let rows = calls_of((amount, settlement.time_secs), covered, |window| {
        ledger.calls_in(window, |row| covered(row).is_some())
    })?;
    let listed = rows.iter().filter_map(covered).fold(Usdc::ZERO, Usdc::saturating_add);
    let calls: Vec<ServedCall> = rows.iter().map(|row| served_call(row, names)).collect();
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

/// The part of a call's charge that a claim with these rows pays; `None` if it pays nothing of it.
fn covered_by(parts: &HashMap<ChannelId, SettlementRow>, row: &CallRow) -> Option<Usdc> {
    let (charged, total) = (row.receipt.charged, row.receipt.spent_total);
    let part = parts.get(&row.receipt.channel).filter(|part| total > part.from && total <= part.to)?;
    Some(charged.min(total.saturating_sub(part.from))).filter(|covered| !covered.is_zero())
}

/// Reads the calls of a claim, the newest first, and no further back than until they come to its amount.
fn calls_of(
    (amount, claimed_secs): (Usdc, u64),
    covered: impl Fn(&CallRow) -> Option<Usdc>,
    mut read: impl FnMut(&Window) -> Result<Stretch<CallRow>, LedgerError>,
) -> Result<Vec<CallRow>, LedgerError> {
    let (mut calls, mut listed) = (Vec::new(), Usdc::ZERO);
    // A call may have been served in the second of its claim.
    let mut before = Position::start_of(claimed_secs.saturating_add(1));
    for _ in 0..SCANNED_MAX / STRETCH {
        let window = Window { before, from_secs: 0, limit: CALLS_MAX - calls.len(), scan_max: STRETCH };
        let found = read(&window)?;
        for (_, row) in found.rows {
            listed = listed.saturating_add(covered(&row).unwrap_or_default());
            calls.push(row);
        }
        match found.next {
            Some(next) if listed < amount && calls.len() < CALLS_MAX => before = next,
            _ => break,
        }
    }
    Ok(calls)
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

#[cfg(test)]
mod tests {
    use farthing_protocol::{Address, Receipt};

    use super::*;
    use crate::testing::charged_call;

    /// A call that was charged so much, with which its channel's total came to `total`.
    fn row(charged: u64, total: u64) -> CallRow {
        let call = charged_call(Usdc::from_micros(charged));
        let receipt = Receipt {
            channel: ChannelId::NONE,
            call_id: call.call_id,
            request_hash: call.request_hash,
            response_hash: call.response_hash,
            outcome: call.outcome.code(),
            charged: call.charged,
            spent_total: Usdc::from_micros(total),
            time_secs: call.time_secs,
        };
        let (payer, body_bytes, repeated_secs) = (Address::ZERO, 0, None);
        CallRow { payer, call, receipt, body_bytes, repeated_secs, paid_by: None, is_lost: false }
    }

    #[test]
    fn a_claim_pays_what_of_a_calls_charge_is_between_its_totals() {
        let [from, to] = [250, 400].map(Usdc::from_micros);
        let parts = HashMap::from([(ChannelId::NONE, SettlementRow { channel: ChannelId::NONE, from, to })]);
        for (charged, total, covered) in
            [(100, 250, None), (100, 300, Some(50)), (100, 400, Some(100)), (100, 401, None), (0, 300, None)]
        {
            let expected = covered.map(Usdc::from_micros);
            assert_eq!(covered_by(&parts, &row(charged, total)), expected, "{charged} up to {total}");
        }
    }

    #[test]
    fn the_calls_of_a_claim_are_read_until_they_come_to_its_amount() {
        let steps_of = |amount| {
            let mut steps = 0;
            let covered = |row: &CallRow| Some(row.call.charged);
            let calls = calls_of((Usdc::from_micros(amount), 1_000), covered, |window| {
                steps += 1;
                let next = Position::start_of(window.before.secs - 1);
                Ok(Stretch { rows: vec![(next.clone(), row(100, 100))], next: Some(next) })
            });
            (calls.unwrap().len(), steps)
        };
        assert_eq!(steps_of(100), (1, 1));
        assert_eq!(steps_of(101), (2, 2));
        let most = SCANNED_MAX / STRETCH;
        assert_eq!(steps_of(u64::MAX), (most, most), "however much is not explained");
    }
}
