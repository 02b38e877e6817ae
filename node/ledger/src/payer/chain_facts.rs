//! Takes over what the chain says of a channel that this node pays on.

use farthing_values::{CallId, ChannelId, Usdc};
use redb::{ReadableTable, WriteTransaction};

use super::{
    ChannelChange, DOUBTFUL_LOOK_BACK, PayerChannelFacts, StoredEnd, channel_in, purchase_in, update_channel,
};
use crate::{
    Ledger,
    adjustment::{self, Cause},
    error::Result,
    settlement::{self, SettlementRow},
    tables::{self, PAYER_CHANNELS, PURCHASES, PURCHASES_BY_TIME},
};

impl Ledger {
    /// Forgets a channel that the chain never had, when nothing was promised on it; any other stays. Returns whether it did.
    pub async fn forget_unused_payer_channel(&self, id: ChannelId) -> Result<bool> {
        self.write(move |tx| {
            let mut table = tx.open_table(PAYER_CHANNELS)?;
            let is_unused = channel_in(&table, id)?.is_some_and(|row| row.is_unused());
            if is_unused {
                table.remove(id.as_bytes())?;
            }
            Ok(is_unused)
        })
        .await
    }
}

pub(super) fn observe(tx: &WriteTransaction, channel: &PayerChannelFacts) -> Result<ChannelChange> {
    let (id, now_secs) = (channel.id, adjustment::now_secs());
    let mut before = None;
    let observed = update_channel(tx, id, Some(&channel.config), Cause::Earlier, |row| {
        before = row.round.map(|round| (round, row.deposited));
        row.observe(channel, now_secs);
    })?;
    if let (Some((round_before, deposited)), Some(round)) = (before, channel.round) {
        let row = SettlementRow { channel: id, from: channel.deposited.max(channel.claimed), to: deposited };
        settlement::note_returned(tx, row, (round_before, round), now_secs)?;
    }
    // What an emptied channel paid beyond every call that is known was charged, and nobody is asked about it again.
    let row = observed.row;
    let unexplained = row.claimed.saturating_sub(row.acknowledged.saturating_add(row.in_flight));
    if row.deposited > row.claimed || unexplained.is_zero() {
        return Ok(observed);
    }
    let stored = channel_in(&tx.open_table(PAYER_CHANNELS)?, id)?;
    let is_whole = stored.as_ref().is_some_and(|row| !row.may_lack_calls() && row.promised_secs.is_some());
    // What calls in doubt are believed to have cost is believed once: an owner that empties the channel again has to be
    // explained by others.
    let is_put_down_to_doubts = !channel.stopped && end_doubts(tx, id, unexplained)?;
    let cause = match channel.stopped || is_put_down_to_doubts || is_whole {
        true => Cause::Claimed,
        false => adjustment::why_missing(adjustment::restored_secs(tx)?, stored.as_ref()),
    };
    let carried = update_channel(tx, id, None, cause, |row| {
        row.carry(row.acknowledged.saturating_add(unexplained));
    })?;
    Ok(ChannelChange { let_go: observed.let_go, uncounted: observed.uncounted, ..carried })
}

/// Ends the doubt about calls on a channel, the newest first, until their prices come to `claimed`. Whether there were any.
fn end_doubts(tx: &WriteTransaction, id: ChannelId, claimed: Usdc) -> Result<bool> {
    let (mut left, mut ended) = (claimed, Vec::new());
    let mut purchases = tx.open_table(PURCHASES)?;
    for entry in tx.open_table(PURCHASES_BY_TIME)?.iter()?.rev().take(DOUBTFUL_LOOK_BACK) {
        if left.is_zero() {
            break;
        }
        let call_id = CallId::from_bytes(tables::join(&[&entry?.0.value()[8..]]));
        let known = purchase_in(&purchases, call_id)?;
        let Some(mut purchase) = known.filter(|known| known.channel == Some(id) && known.is_in_doubt())
        else {
            continue;
        };
        left = left.saturating_sub(purchase.price);
        let reason = "the owner was paid as much on chain".to_owned();
        // The figures go on to count it as they did.
        let is_refused = purchase.end.is_refused();
        purchase.end = StoredEnd::Released { reason, in_doubt: Some(false), is_refused, status: None };
        ended.push((call_id, purchase));
    }
    for (call_id, purchase) in &ended {
        purchases.insert(call_id.as_bytes(), tables::encode(purchase).as_slice())?;
    }
    Ok(!ended.is_empty())
}
