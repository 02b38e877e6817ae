//! Calls that a transfer of its own pays: to servers that are no nodes, keep no channel and give no receipts.

use farthing_values::{CallId, Usdc};

use super::{StoredEnd, StoredPromise, close, purchase_in, receipts::count_for_day};
use crate::{
    Ledger,
    error::{LedgerError, Result},
    group::Group,
    history,
    rows::payer::TransferEnd,
    tables,
};

impl Ledger {
    /// Closes the promise of a call that a transfer over its price has paid, and counts the charge for its day. Once more
    /// changes nothing.
    ///
    /// # Errors
    /// [`LedgerError::NotPromised`], also for a promise that a channel or nothing pays.
    pub async fn transferred(&self, call_id: CallId, end: TransferEnd) -> Result<Usdc> {
        self.write_grouped(move |group| transferred(group, call_id, &end)).await
    }
}

fn transferred(group: &mut Group<'_>, call_id: CallId, end: &TransferEnd) -> Result<Usdc> {
    let promise = tables::get::<_, StoredPromise>(group.promises()?, "promises", call_id.as_bytes())?;
    let Some(promise) = promise else {
        let known = purchase_in(group.purchases()?, call_id)?.map(|purchase| purchase.end);
        return match known {
            Some(StoredEnd::Transferred { charged, .. }) => Ok(charged),
            _ => Err(LedgerError::NotPromised(call_id)),
        };
    };
    let price = promise.price;
    if promise.channel().is_some() || price.is_zero() {
        return Err(LedgerError::NotPromised(call_id));
    }
    count_for_day(group, promise.time_secs, &promise.secret, price)?;
    history::count_transferred(group, promise.time_secs, price)?;
    close(group, call_id, end.time_secs, StoredEnd::transferred(price, end))?;
    Ok(price)
}
