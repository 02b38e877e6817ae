//! Calls that a transfer of its own pays: to servers that are no nodes, keep no channel and give no receipts.

use farthing_values::{CallId, Usdc};

use super::{
    StoredEnd, StoredPromise, StoredPurchase, close, day_of, purchase_in, receipts::count_for_day, time_key,
};
use crate::{
    Ledger, allowed,
    error::{LedgerError, Result},
    figures,
    group::Group,
    history,
    rows::{
        figures::EndedCall,
        payer::{Purchase, TransferEnd},
    },
    tables::{self, UNCHARGED_PURCHASES_BY_TIME},
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

    /// Turns a call that had ended as not charged into one that a transfer over its price has paid, and returns it: the chain shows
    /// the transfer after all. It is held against no limit, because its money is gone.
    ///
    /// # Errors
    /// [`LedgerError::NotPromised`] for every other call.
    pub async fn transferred_after_all(&self, call_id: CallId, end: TransferEnd) -> Result<Purchase> {
        self.write_grouped(move |group| transferred_after_all(group, call_id, &end)).await
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

fn transferred_after_all(group: &mut Group<'_>, call_id: CallId, end: &TransferEnd) -> Result<Purchase> {
    let is_unpaid = |purchase: &StoredPurchase| {
        purchase.is_by_transfer() && matches!(purchase.end, StoredEnd::Released { .. })
    };
    let known = purchase_in(group.purchases()?, call_id)?.filter(is_unpaid);
    let mut purchase = known.ok_or(LedgerError::NotPromised(call_id))?;
    let (price, promised_secs) = (purchase.price, purchase.promised_secs);
    count_for_day(group, promised_secs, &purchase.secret, price)?;
    history::count_transferred(group, promised_secs, price)?;
    let tx = group.transaction();
    allowed::note_late(tx, day_of(promised_secs), &purchase.secret, price)?;
    tx.open_table(UNCHARGED_PURCHASES_BY_TIME)?.remove(&time_key(promised_secs, call_id))?;
    figures::uncount(group, &EndedCall::bought(&purchase))?;
    (purchase.end, purchase.closed_secs) = (StoredEnd::transferred(price, end), end.time_secs);
    figures::count(group, &EndedCall::bought(&purchase))?;
    group.purchases()?.insert(call_id.as_bytes(), tables::encode(&purchase).as_slice())?;
    Ok(purchase.into_purchase(call_id))
}
