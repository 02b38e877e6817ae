//! Receipts: how the owner's word ends a promise, and what is counted for it.

use farthing_values::{Address, CallId, ChannelId, Hash, Outcome, Receipt, Usdc, Verified};
use redb::ReadableTable;

use super::{
    Acknowledgement, StoredEnd, StoredPromise, StoredPurchase, channel_in, day_of, keep_purchase,
    purchase_in, time_key,
};
use crate::{
    adjustment::{self, Adjustment},
    allowed,
    error::{LedgerError, Result},
    figures,
    group::Group,
    history,
    rows::{Side, figures::EndedCall},
    tables::{self, PAYER_CHANNELS, PROMISES, UNCHARGED_PURCHASES_BY_TIME},
};

pub(super) fn acknowledge(
    group: &mut Group<'_>,
    call_id: CallId,
    acknowledgement: &Acknowledgement,
) -> Result<()> {
    let end = StoredEnd::from(acknowledgement);
    let promise = tables::get::<_, StoredPromise>(group.promises()?, "promises", call_id.as_bytes())?;
    let receipt = &acknowledgement.receipt;
    let Some(promise) = promise else {
        let known = purchase_in(group.purchases()?, call_id)?;
        return match known.ok_or(LedgerError::NotPromised(call_id))? {
            known if known.is_in_doubt() => acknowledge_late(group, call_id, known, acknowledgement, end),
            known if known.end.receipt(call_id) == end.receipt(call_id) => Ok(()),
            _ => Err(LedgerError::NotPromised(call_id)),
        };
    };
    check_receipt(call_id, &RecordedRequest::from(&promise), receipt)?;
    charge(group, call_id, promise.channel(), promise.time_secs, &promise.secret, receipt)?;
    group.promises()?.remove(call_id.as_bytes())?;
    keep_purchase(group, call_id, promise, acknowledgement.time_secs, end)
}

pub(super) fn acknowledge_found(
    group: &mut Group<'_>,
    call_id: CallId,
    acknowledgement: &Acknowledgement,
) -> Result<Vec<(u32, Usdc)>> {
    let Receipt { channel, charged, .. } = *acknowledgement.receipt;
    // Checked before anything is written: a receipt that does not fit leaves the books as they are.
    let tx = group.transaction();
    let promise = tables::get::<_, StoredPromise>(&tx.open_table(PROMISES)?, "promises", call_id.as_bytes())?;
    let promise = promise.ok_or(LedgerError::NotPromised(call_id))?;
    check_receipt(call_id, &RecordedRequest::from(&promise), &acknowledgement.receipt)?;
    let mut taken = Vec::new();
    let known = channel_in(&tx.open_table(PAYER_CHANNELS)?, channel)?;
    if let Some(mut row) = known {
        // What was counted on days that are over stays.
        taken = adjustment::take_back(tx, (Side::Payer, channel), charged, Adjustment::is_of_its_day)?;
        if !taken.is_empty() {
            let counted = taken.iter().fold(Usdc::ZERO, |sum, (_, part)| sum.saturating_add(*part));
            row.opening = row.opening.saturating_sub(counted);
            row.acknowledged = row.acknowledged.saturating_sub(counted);
            tx.open_table(PAYER_CHANNELS)?.insert(channel.as_bytes(), tables::encode(&row).as_slice())?;
        }
    }
    acknowledge(group, call_id, acknowledgement)?;
    Ok(taken)
}

/// Turns a call that was released in doubt into one that was charged.
fn acknowledge_late(
    group: &mut Group<'_>,
    call_id: CallId,
    mut purchase: StoredPurchase,
    acknowledgement: &Acknowledgement,
    end: StoredEnd,
) -> Result<()> {
    let receipt = &acknowledgement.receipt;
    check_receipt(call_id, &RecordedRequest::from(&purchase), receipt)?;
    charge(group, call_id, purchase.channel, purchase.promised_secs, &purchase.secret, receipt)?;
    let tx = group.transaction();
    allowed::note_late(tx, day_of(purchase.promised_secs), &purchase.secret, receipt.charged)?;
    tx.open_table(UNCHARGED_PURCHASES_BY_TIME)?.remove(&time_key(purchase.promised_secs, call_id))?;
    figures::uncount(group, &EndedCall::bought(&purchase))?;
    (purchase.end, purchase.closed_secs) = (end, acknowledgement.time_secs);
    figures::count(group, &EndedCall::bought(&purchase))?;
    group.purchases()?.insert(call_id.as_bytes(), tables::encode(&purchase).as_slice())?;
    Ok(())
}

/// Counts a receipt's charge for its channel and for the day of its promise.
fn charge(
    group: &mut Group<'_>,
    call_id: CallId,
    channel: Option<ChannelId>,
    promised_secs: u64,
    secret: &str,
    receipt: &Verified<Receipt>,
) -> Result<()> {
    if let Some(id) = channel {
        let table = group.payer_channels()?;
        let mut row = channel_in(table, id)?.ok_or(LedgerError::UnknownChannel(id))?;
        let total = row.acknowledged.checked_add(receipt.charged);
        let rule = "charges stay within what was signed";
        row.acknowledged = total
            .filter(|total| *total <= row.signed)
            .ok_or(LedgerError::ReceiptMismatch { call_id, rule })?;
        row.note(receipt);
        table.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    }
    if !receipt.charged.is_zero() {
        count_for_day(group, promised_secs, secret, receipt.charged)?;
    }
    history::count_bought(group, promised_secs, receipt)
}

/// Adds a charge to the total of the day of its promise.
pub(super) fn count_for_day(
    group: &mut Group<'_>,
    promised_secs: u64,
    secret: &str,
    charged: Usdc,
) -> Result<()> {
    let totals = group.day_totals()?;
    let key = (day_of(promised_secs), secret);
    let total = totals.get(key)?.map_or(0, |total| total.value());
    totals.insert(key, total.saturating_add(charged.micros()))?;
    Ok(())
}

/// The facts that a receipt has to agree with.
struct RecordedRequest {
    owner: Address,
    request_hash: Hash,
    channel: Option<ChannelId>,
    price: Usdc,
}

impl From<&StoredPromise> for RecordedRequest {
    fn from(promise: &StoredPromise) -> Self {
        let StoredPromise { owner, request_hash, price, .. } = *promise;
        Self { owner, request_hash, channel: promise.channel(), price }
    }
}

impl From<&StoredPurchase> for RecordedRequest {
    fn from(purchase: &StoredPurchase) -> Self {
        let StoredPurchase { owner, request_hash, channel, price, .. } = *purchase;
        Self { owner, request_hash, channel, price }
    }
}

fn check_receipt(call_id: CallId, asked: &RecordedRequest, receipt: &Verified<Receipt>) -> Result<()> {
    let rule = match () {
        () if receipt.signer() != asked.owner => "the owner signed it",
        () if receipt.call_id != call_id => "it names the call",
        () if receipt.request_hash != asked.request_hash => "it names the request",
        () if receipt.channel != asked.channel.unwrap_or(ChannelId::NONE) => "it names the channel",
        () if receipt.charged > asked.price => "the charge is at most the price",
        () if Outcome::from_code(receipt.outcome).is_none() => "its outcome is known",
        () => return Ok(()),
    };
    Err(LedgerError::ReceiptMismatch { call_id, rule })
}
