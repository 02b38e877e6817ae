//! Rows of the consumer's half: channels, promises and purchases, as told and as stored.

mod channel;
mod records;
mod stored;

use farthing_values::{CallId, ChannelId};
use redb::{ReadableTable, WriteTransaction};

pub use self::records::{
    Acknowledgement, ChannelChange, DayLimits, PayerChannelFacts, PayerChannelRow, Promise, Purchase,
    PurchaseEnd, Timing, TransferEnd, Uncharged, day_of,
};
pub(crate) use self::{
    channel::StoredPayerChannel,
    stored::{StoredEnd, StoredPromise, StoredPurchase},
};
use crate::{
    error::Result,
    tables::{self, PAYER_CHANNELS},
};

pub(crate) fn channel_in(
    table: &impl ReadableTable<&'static [u8; 32], &'static [u8]>,
    id: ChannelId,
) -> Result<Option<StoredPayerChannel>> {
    tables::get(table, "payer_channels", id.as_bytes())
}

pub(crate) fn purchase_in(
    table: &impl ReadableTable<&'static [u8; 16], &'static [u8]>,
    call_id: CallId,
) -> Result<Option<StoredPurchase>> {
    tables::get(table, "purchases", call_id.as_bytes())
}

pub(crate) fn time_key(time_secs: u64, call_id: CallId) -> [u8; 24] {
    tables::join(&[&time_secs.to_be_bytes(), call_id.as_bytes()])
}

/// Marks every channel as one of which calls may be lacking, for whatever reason. Whether a channel was marked that was not.
pub(crate) fn mark_all(tx: &WriteTransaction) -> Result<bool> {
    let mut table = tx.open_table(PAYER_CHANNELS)?;
    let mut marked = Vec::new();
    for entry in table.iter()? {
        let (id, bytes) = entry?;
        let mut row: StoredPayerChannel = tables::decode("payer_channels", bytes.value())?;
        if !row.may_lack_calls() || row.lacks_refused() {
            row.lack();
            marked.push((*id.value(), row));
        }
    }
    for (id, row) in &marked {
        table.insert(id, tables::encode(row).as_slice())?;
    }
    Ok(!marked.is_empty())
}
