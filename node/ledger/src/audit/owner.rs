//! The owner's half: what it served, is paid on, and claimed.

use std::collections::HashMap;

use farthing_values::{ChannelId, Domain, Usdc, Voucher};
use redb::{ReadTransaction, ReadableTable, ReadableTableMetadata};

use super::{AdjustmentSums, Audit, call_name, figures::Recount};
use crate::{
    error::Result,
    rows::{
        Side,
        figures::EndedCall,
        payee::{self, StoredCall, StoredState},
    },
    settlement::{self, SettlementState},
    tables::{
        self, BODIES, BODY_BYTES, CALLS, CALLS_BY_TIME, META, PAYEE_CHANNELS, SETTLEMENTS,
        SETTLEMENTS_BY_CHANNEL, SETTLEMENTS_UNDER_WAY,
    },
};

/// Per channel: (spent total after the call, its charge) of every charged call.
pub(super) type Charges = HashMap<ChannelId, Vec<(Usdc, Usdc)>>;

pub(super) fn calls(
    tx: &ReadTransaction,
    audit: &mut Audit,
    recount: &mut Recount,
    adjusted: &AdjustmentSums,
) -> Result<Charges> {
    let by_time = tx.open_table(CALLS_BY_TIME)?;
    let (mut charges, mut lost) = (Charges::new(), Usdc::ZERO);
    for entry in tx.open_table(CALLS)?.iter()? {
        let (key, bytes) = entry?;
        let key = key.value();
        let subject = || call_name(payee::split_call_key(key));
        let call: StoredCall = tables::decode("calls", bytes.value())?;
        audit.calls += 1;
        let indexed = by_time.get(&payee::time_key(call.time_secs, key))?.is_some();
        audit.require(indexed, "index", || (subject(), "missing from the calls by time".into()));
        if let Some(ended) = EndedCall::served(&call) {
            recount.add(&ended);
        }
        let StoredState::Done(done) = &call.state else { continue };
        if done.charged.is_zero() {
            continue;
        }
        audit.require(done.outcome.is_the_services_answer(), "O4", || {
            (subject(), format!("{:?} was charged {} USDC", done.outcome, done.charged))
        });
        audit.require(done.charged == done.price, "O6", || {
            (subject(), format!("charged {} USDC, and its price was {}", done.charged, done.price))
        });
        // What a transaction has paid is on no channel.
        if done.paid_by.is_none() {
            charges.entry(done.channel).or_default().push((done.spent_total, done.charged));
        }
        lost = lost.saturating_add(done.charged.saturating_sub(done.earned()));
    }
    // Calls that were removed keep their adjustments.
    let told = adjusted.of(Side::Payee, ChannelId::NONE);
    audit.require(lost <= told, "M4", || {
        ("calls on no channel".into(), format!("{lost} USDC are lost, and adjustments tell of {told}"))
    });
    let indexed = by_time.len()?;
    let calls = audit.calls;
    audit.require(indexed == calls, "index", || {
        ("calls".into(), format!("{calls} calls, {indexed} entries by time"))
    });
    bodies(tx, audit)?;
    Ok(charges)
}

fn bodies(tx: &ReadTransaction, audit: &mut Audit) -> Result<()> {
    let calls = tx.open_table(CALLS_BY_TIME)?;
    let mut sum = 0;
    for entry in tx.open_table(BODIES)?.iter()? {
        let (key, body) = entry?;
        sum += body.value().len() as u64;
        let has_call = calls.get(key.value())?.is_some();
        audit.require(has_call, "index", || {
            let key: [u8; 36] = tables::join(&[&key.value()[8..]]);
            (call_name(payee::split_call_key(&key)), "a body is kept for no call".into())
        });
    }
    let counted = tx.open_table(META)?.get(BODY_BYTES)?.map_or(0, |bytes| bytes.value());
    audit.require(counted == sum, "index", || {
        ("bodies".into(), format!("{sum} bytes kept, {counted} counted"))
    });
    Ok(())
}

pub(super) fn channels(
    tx: &ReadTransaction,
    audit: &mut Audit,
    mut charges: Charges,
    adjusted: &AdjustmentSums,
    domain: Option<&Domain>,
) -> Result<()> {
    let mut losses = settlement::losses(&tx.open_table(SETTLEMENTS)?)?;
    for entry in tx.open_table(PAYEE_CHANNELS)?.iter()? {
        let (id, bytes) = entry?;
        let id = ChannelId::from_bytes(*id.value());
        let row: payee::StoredPayeeChannel = tables::decode("payee_channels", bytes.value())?;
        audit.payee_channels += 1;
        let ordered = row.claimed <= row.spent && row.spent <= row.proven() && row.best <= row.deposited_peak;
        // A promise outlives a withdrawal, which lowers the deposit, so `best` is bounded by the most that was ever there. That
        // what was charged is still there, or booked as lost, is M4's to say, and that it can be claimed, X2's.
        audit.require(ordered, "O1", || {
            let payee::StoredPayeeChannel { claimed, spent, best, deposited_peak, .. } = &row;
            (
                id.to_string(),
                format!("claimed {claimed}, spent {spent}, best {best}, deposited {deposited_peak}"),
            )
        });
        // What the payer withdrew although it was charged is gone, and is booked as lost.
        let missing = row.spent.saturating_sub(row.deposited.max(row.claimed));
        let lost = row.lost.unwrap_or_default();
        let told = losses.remove(&id).unwrap_or_default();
        audit.require(missing == lost && lost == told, "M4", || {
            let payee::StoredPayeeChannel { spent, deposited, claimed, .. } = &row;
            let held = format!("spent {spent}, deposited {deposited}, claimed {claimed}");
            let booked = format!("{lost} is booked as lost, and settlements tell of {told}");
            (id.to_string(), format!("{held}: {missing} cannot be claimed any more, {booked}"))
        });
        audit.require(row.spent <= row.claimed || is_claimable(&row, id, domain), "X2", || {
            let unclaimed = row.spent.saturating_sub(row.claimed);
            (id.to_string(), format!("{unclaimed} USDC are charged, and no voucher here can be claimed"))
        });
        let adjusted = adjusted.of(Side::Payee, id);
        audit.require(row.opening == adjusted, "O2", || {
            (id.to_string(), format!("opening balance {}, adjustments explain {adjusted}", row.opening))
        });
        let calls = charges.remove(&id).unwrap_or_default();
        let explained =
            calls.iter().fold(row.opening.saturating_add(row.pruned), |sum, call| sum.saturating_add(call.1));
        audit.require(row.spent == explained, "O2", || {
            (id.to_string(), format!("spent {}, calls explain {explained}", row.spent))
        });
        receipts(audit, id, &row, calls);
    }
    for (id, calls) in charges {
        audit.require(false, "O2", || {
            (id.to_string(), format!("{} calls charged on no channel", calls.len()))
        });
    }
    Ok(())
}

/// Each receipt's total covers its own charge and nobody else's: no charge was counted twice.
fn receipts(audit: &mut Audit, id: ChannelId, row: &payee::StoredPayeeChannel, mut calls: Vec<(Usdc, Usdc)>) {
    calls.sort_unstable();
    let mut last = Usdc::ZERO;
    for (total, charged) in calls {
        let before = total.checked_sub(charged);
        audit.require(before.is_some_and(|before| before >= last) && total <= row.spent, "O5", || {
            (id.to_string(), format!("a receipt counts {total} after {last}, charging {charged}"))
        });
        audit.require(total <= row.best, "O3", || {
            (id.to_string(), format!("a call was answered at {total}, and the best voucher is {}", row.best))
        });
        last = last.max(total);
    }
}

/// Returns whether the contract would take the best voucher: it is there, and the channel's signer signed it. Channels
/// of another contract are for the program that served them.
fn is_claimable(row: &payee::StoredPayeeChannel, id: ChannelId, domain: Option<&Domain>) -> bool {
    let Some(signature) = row.best_signature else { return false };
    let terms = row.config;
    let voucher = Voucher { channel: id, cumulative: row.best };
    domain
        .filter(|domain| terms.id(domain) == id)
        .is_none_or(|domain| voucher.verify(domain, signature, terms.signer).is_ok())
}

pub(super) fn settlements(tx: &ReadTransaction, audit: &mut Audit) -> Result<()> {
    let channels = tx.open_table(PAYEE_CHANNELS)?;
    let (settlements, by_channel, under_way) = (
        tx.open_table(SETTLEMENTS)?,
        tx.open_table(SETTLEMENTS_BY_CHANNEL)?,
        tx.open_table(SETTLEMENTS_UNDER_WAY)?,
    );
    let are_found = settlement::index::fits(&settlements, &by_channel, &under_way)?;
    audit.require(are_found, "index", || {
        ("settlements".into(), "their tables by channel and of those under way do not fit them".into())
    });
    for entry in settlements.iter()? {
        let (id, bytes) = entry?;
        let settlement = settlement::decode(bytes.value())?.into_settlement(id.value());
        audit.settlements += 1;
        if settlement.state != SettlementState::Confirmed {
            continue;
        }
        for row in &settlement.rows {
            let claimed = payee::channel_in(&channels, row.channel)?.map(|channel| channel.claimed);
            audit.require(claimed.is_some_and(|claimed| row.to <= claimed), "M3", || {
                (format!("settlement {}", settlement.id), format!("{} paid up to {}", row.channel, row.to))
            });
        }
    }
    Ok(())
}
