//! The consumer's half: channels this node pays on, promises in flight, and what it bought.
//!
//! 1. [`Ledger::promise`] queues the promise at once; its commit runs beside the call.
//! 2. [`Ledger::acknowledge`] closes it with the owner's receipt, or [`Ledger::release`] without a charge.
//!    A call that is paid by a transfer of its own is closed by [`Ledger::transferred`].
//! 3. What stays open after a crash is [`Ledger::unresolved`]: with everything needed to ask again.
//!
//! Invariants: per channel acknowledged = opening balance + Σ charges of acknowledged receipts, pruned ones
//! included; every open promise's cumulative ≤ signed ≤ deposited (the highest ever confirmed); a day's total
//! is the sum of the charges of its purchases. They change in the same commits as what they sum.

mod chain_facts;
mod missing_calls;
mod receipts;
mod transfers;

use std::sync::Arc;

use farthing_values::{
    CallId, ChannelConfig, ChannelId, Payment, Receipt, Signature, Usdc,
    limits::{CALL_HEAD_BYTES_MAX, REFUSAL_DETAIL_BYTES_MAX, REQUEST_BODY_BYTES_MAX},
};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use self::{
    chain_facts::observe,
    receipts::{acknowledge, acknowledge_found},
};
use crate::{
    Ledger,
    adjustment::{self, Cause},
    allowed,
    error::{LedgerError, Result, within},
    figures,
    group::Group,
    rows::{
        Side,
        figures::EndedCall,
        payer::{
            Acknowledgement, ChannelChange, PayerChannelFacts, PayerChannelRow, Promise, Purchase,
            PurchaseEnd, StoredEnd, StoredPayerChannel, StoredPromise, StoredPurchase, Uncharged, channel_in,
            day_of, purchase_in, time_key,
        },
    },
    tables::{
        self, DAY_TOTALS, PAYER_CHANNELS, PROMISES, PURCHASES, PURCHASES_BY_TIME, UNCHARGED_PURCHASES_BY_TIME,
    },
};

/// A late charge is looked for among so many purchases.
const DOUBTFUL_LOOK_BACK: usize = 40_000;

/// Purchases that cost nothing are kept by number: with the longest paths they take 200 MB.
const UNCHARGED_MAX: u64 = 50_000;

/// The name of a consumer secret, as users write it in settings.
pub const SECRET_NAME_BYTES_MAX: usize = 128;

/// Proof that a promise is durable. Only [`crate::Ledger::promise`] makes one, after its commit.
#[derive(Debug, PartialEq, Eq)]
pub struct PromiseProof {
    call_id: CallId,
}

impl PromiseProof {
    pub const fn call_id(&self) -> CallId {
        self.call_id
    }
}

impl Ledger {
    /// Records what the chain says, and whether the channel is stopped; what was signed and acknowledged
    /// stays as it is. Gives the channel as recorded.
    ///
    /// A channel new to this ledger starts with what was paid out as its opening balance. What an emptied channel paid
    /// beyond every call that is known is an adjustment.
    ///
    /// # Errors
    /// [`LedgerError::ChannelConflict`] when the id is known with other terms.
    pub async fn put_payer_channel(&self, channel: PayerChannelFacts) -> Result<ChannelChange> {
        self.write(move |tx| observe(tx, &channel)).await
    }

    /// Counts charges of calls whose promises are not in this ledger, as an adjustment, up to a total that the owner
    /// told. The caller has verified its own signature on a voucher that covers them.
    ///
    /// # Errors
    /// [`LedgerError::UnknownChannel`].
    pub async fn recover_charges(
        &self,
        id: ChannelId,
        charged: Usdc,
        total: Usdc,
        cause: Cause,
    ) -> Result<PayerChannelRow> {
        self.write(move |tx| {
            update_channel(tx, id, None, cause, |row| {
                let acknowledged = row.acknowledged.saturating_add(charged).min(total).min(row.signed);
                row.recover(acknowledged, Usdc::ZERO);
            })
            .map(|observed| observed.row)
        })
        .await
    }

    /// Returns whether a channel counts as charged what the chain alone shows: the owner is asked to prove it before
    /// anything more is promised.
    pub fn is_carried(&self, id: ChannelId) -> Result<bool> {
        let known = self.read(|tx| channel_in(&tx.open_table(PAYER_CHANNELS)?, id))?;
        Ok(known.is_some_and(|row| row.carried.is_some()))
    }

    /// Keeps of what the chain alone shows as charged what this wallet's own signature covers, as the owner shows it.
    ///
    /// # Errors
    /// [`LedgerError::UnknownChannel`].
    pub async fn prove_carried(&self, id: ChannelId, proven: Usdc) -> Result<ChannelChange> {
        self.write(move |tx| update_channel(tx, id, None, Cause::Earlier, |row| row.prove(proven))).await
    }

    /// Lets a stopped channel be used again, when it is filled anew.
    ///
    /// # Errors
    /// [`LedgerError::UnknownChannel`].
    pub async fn resume_payer_channel(&self, id: ChannelId) -> Result<PayerChannelRow> {
        let resume = |row: &mut StoredPayerChannel| row.stopped = false;
        self.write(move |tx| Ok(update_channel(tx, id, None, Cause::Earlier, resume)?.row)).await
    }

    pub fn payer_channels(&self) -> Result<Vec<PayerChannelRow>> {
        self.read(all_channels)
    }

    /// The owner's receipt with the highest total on a channel, for an owner that counts less, and what is acknowledged
    /// here of that total: it may count calls whose end is not known here. `None` before the first one, and for channels of
    /// ledgers of before until the next one.
    pub fn newest_receipt(&self, id: ChannelId) -> Result<Option<(Receipt, Signature, Usdc)>> {
        self.read(|tx| {
            let row = channel_in(&tx.open_table(PAYER_CHANNELS)?, id)?;
            Ok(row.and_then(|row| row.newest()))
        })
    }

    /// Queues a promise and returns as soon as it is queued: send the call meanwhile, and await the returned future
    /// before its answer is handed on. Waits only while the queue is full, and the first one of a run until the note is gone
    /// that the ledger was closed: from then on a start knows that a crash may have taken a promise.
    ///
    /// The sender of the call shares its promise with the ledger, which keeps no more of it than a row.
    ///
    /// A call id may be promised again while it is open or when it ended without charge and answer. The voucher of a
    /// promise that is refused has left all the same: its channel is signed up to it then, and lacks that call.
    ///
    /// # Errors
    /// [`LedgerError::Closed`] at once; the rules of money from the returned future.
    pub async fn promise<P: Into<Arc<Promise>>>(
        &self,
        promise: P,
    ) -> Result<impl Future<Output = Result<PromiseProof>> + Send + use<P>> {
        let promise = promise.into();
        let record = move |group: &mut Group<'_>| {
            let promised = record_promise(group, &promise);
            match &promised {
                Err(error) if error.is_failure() => return promised.map(Ok),
                Err(_) => missing_calls::note_refused(group.transaction(), &promise.request.payment)?,
                Ok(_) => {}
            }
            Ok(promised)
        };
        let recorded = self.queue().promise(record).await?;
        Ok(async { recorded.await? })
    }

    /// Closes a promise with its receipt and counts the charge for the channel and the day.
    ///
    /// The same receipt again is accepted and changes nothing. A call that was released in doubt takes its receipt
    /// late. It begins no commit of its own for a moment: a receipt that a crash loses is asked for again.
    ///
    /// # Errors
    /// [`LedgerError::NotPromised`], or [`LedgerError::ReceiptMismatch`] naming what does not fit; the promise
    /// then stays open.
    pub async fn acknowledge(&self, call_id: CallId, acknowledgement: Acknowledgement) -> Result<()> {
        self.queue().ride(move |group| acknowledge(group, call_id, &acknowledgement)).await
    }

    /// Closes a promise with the receipt of an earlier promise for the same call, which is not in this ledger. What it
    /// charged is counted in an adjustment, and is taken out of that: the call explains it now. Gives what no longer
    /// counts for each day; what no adjustment counted of the charge was booked like any other.
    pub async fn acknowledge_found(
        &self,
        call_id: CallId,
        acknowledgement: Acknowledgement,
    ) -> Result<Vec<(u32, Usdc)>> {
        self.write_grouped(move |group| acknowledge_found(group, call_id, &acknowledgement)).await
    }

    /// Closes a promise that was not charged: it never started, or its owner does not know it.
    ///
    /// # Errors
    /// [`LedgerError::NotPromised`].
    pub async fn release(&self, call_id: CallId, why: impl Into<Uncharged>, time_secs: u64) -> Result<()> {
        self.end_uncharged(call_id, why.into(), false, time_secs).await
    }

    /// Closes a promise that was not charged by the owner's word, of which a copy was lost on its way. Should it be
    /// charged after all, [`Ledger::acknowledge`] takes the receipt.
    ///
    /// # Errors
    /// [`LedgerError::NotPromised`].
    pub async fn release_in_doubt(
        &self,
        call_id: CallId,
        why: impl Into<Uncharged>,
        time_secs: u64,
    ) -> Result<()> {
        self.end_uncharged(call_id, why.into(), true, time_secs).await
    }

    async fn end_uncharged(
        &self,
        call_id: CallId,
        Uncharged { mut reason, is_refused, status }: Uncharged,
        in_doubt: bool,
        time_secs: u64,
    ) -> Result<()> {
        reason.truncate(reason.floor_char_boundary(REFUSAL_DETAIL_BYTES_MAX));
        let (in_doubt, is_refused) = (Some(in_doubt), Some(is_refused));
        let end = StoredEnd::Released { reason, in_doubt, is_refused, status };
        self.write_grouped(move |group| close(group, call_id, time_secs, end)).await
    }

    /// Calls on a channel that were released in doubt, newest first, among the newest 40,000 purchases: those of an hour
    /// at eleven calls a second.
    pub fn released_in_doubt(&self, channel: ChannelId) -> Result<Vec<Purchase>> {
        let is_in_doubt = |purchase: &Purchase| {
            purchase.channel == channel
                && matches!(purchase.end, PurchaseEnd::Released { in_doubt: true, .. })
        };
        self.read(|tx| newest_purchases(tx, DOUBTFUL_LOOK_BACK, is_in_doubt))
    }

    /// Promises whose end is not known, in no particular order.
    pub fn unresolved(&self) -> Result<Vec<Promise>> {
        self.read(|tx| {
            let table = tx.open_table(PROMISES)?;
            let promises = table.iter()?.map(|entry| {
                let (id, bytes) = entry?;
                let promise: StoredPromise = tables::decode("promises", bytes.value())?;
                Ok(promise.into_promise(CallId::from_bytes(*id.value())))
            });
            promises.collect()
        })
    }

    pub fn promise_of(&self, call_id: CallId) -> Result<Option<Promise>> {
        let promise =
            tables::get::<_, StoredPromise>(self.snapshot().promises()?, "promises", call_id.as_bytes())?;
        Ok(promise.map(|promise| promise.into_promise(call_id)))
    }

    /// Returns how a call ended, if it did.
    pub fn purchase(&self, call_id: CallId) -> Result<Option<Purchase>> {
        Ok(purchase_in(self.snapshot().purchases()?, call_id)?.map(|p| p.into_purchase(call_id)))
    }

    /// Closed promises, newest first by the time of the promise.
    pub fn purchases(&self, limit: usize) -> Result<Vec<Purchase>> {
        self.read(|tx| newest_purchases(tx, limit, |_| true))
    }

    /// Charged on a day, by secret.
    pub fn day_totals(&self, day: u32) -> Result<Vec<(String, Usdc)>> {
        self.read(|tx| {
            let mut totals = Vec::new();
            for entry in tx.open_table(DAY_TOTALS)?.range((day, "")..)? {
                let (key, total) = entry?;
                let (of_day, secret) = key.value();
                if of_day != day {
                    break;
                }
                totals.push((secret.to_owned(), Usdc::from_micros(total.value())));
            }
            Ok(totals)
        })
    }
}

/// Changes a channel's row; with `config` it is created when missing. What its opening balance rises by is an
/// adjustment for this cause.
fn update_channel(
    tx: &WriteTransaction,
    id: ChannelId,
    config: Option<&ChannelConfig>,
    cause: Cause,
    update: impl FnOnce(&mut StoredPayerChannel),
) -> Result<ChannelChange> {
    let mut table = tx.open_table(PAYER_CHANNELS)?;
    let known = channel_in(&table, id)?;
    let mut row = match (known, config) {
        (Some(row), Some(config)) if row.config != *config => return Err(LedgerError::ChannelConflict(id)),
        (Some(row), _) => row,
        (None, Some(config)) => StoredPayerChannel::new(config),
        (None, None) => return Err(LedgerError::UnknownChannel(id)),
    };
    let before = row.opening;
    update(&mut row);
    let risen = row.opening.saturating_sub(before);
    let counted = adjustment::record(tx, (Side::Payer, id), &row.config, risen, cause)?;
    let let_go = before.saturating_sub(row.opening);
    let taken = adjustment::take_back(tx, (Side::Payer, id), let_go, |_| true)?;
    let today = day_of(adjustment::now_secs());
    let taken_today = taken.into_iter().filter(|(day, _)| *day == today).map(|(_, part)| part);
    let uncounted = taken_today.fold(Usdc::ZERO, Usdc::saturating_add);
    table.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    let row = row.into_row(id, in_flight(&tx.open_table(PROMISES)?, id)?);
    Ok(ChannelChange { row, counted, let_go, uncounted })
}

fn all_channels(tx: &ReadTransaction) -> Result<Vec<PayerChannelRow>> {
    let promises = tx.open_table(PROMISES)?;
    let table = tx.open_table(PAYER_CHANNELS)?;
    let rows = table.iter()?.map(|entry| {
        let (id, bytes) = entry?;
        let id = ChannelId::from_bytes(*id.value());
        let row: StoredPayerChannel = tables::decode("payer_channels", bytes.value())?;
        Ok(row.into_row(id, in_flight(&promises, id)?))
    });
    rows.collect()
}

/// Prices of open promises on a channel. They are as many as calls are in flight, so reading them all is fine.
fn in_flight(promises: &impl ReadableTable<&'static [u8; 16], &'static [u8]>, id: ChannelId) -> Result<Usdc> {
    let mut sum = Usdc::ZERO;
    for entry in promises.iter()? {
        let promise: StoredPromise = tables::decode("promises", entry?.1.value())?;
        if promise.channel() == Some(id) {
            sum = sum.saturating_add(promise.price);
        }
    }
    Ok(sum)
}

fn record_promise(group: &mut Group<'_>, promise: &Promise) -> Result<PromiseProof> {
    check_bounds(promise)?;
    let call_id = promise.request.call_id;
    let mut stored = StoredPromise::from(promise);
    let mut limits = promise.limits;
    if let Some(open) = tables::get::<_, StoredPromise>(group.promises()?, "promises", call_id.as_bytes())? {
        if !open.is_same_call(&stored) {
            return Err(LedgerError::CallIdConflict(call_id));
        }
        // The budget of the first attempt stays the one that pays, and its time the one that counts.
        stored.keep_budget_of(open);
        limits = None;
    }
    let ended = purchase_in(group.purchases()?, call_id)?;
    if ended.as_ref().is_some_and(StoredPurchase::is_final) {
        return Err(LedgerError::AlreadyBought(call_id));
    }
    sign(group, promise)?;
    if let Some(limits) = limits {
        allowed::note(group, day_of(stored.time_secs), &stored.secret, limits)?;
    }
    if let Some(ended) = ended {
        // It is one call still, whose last end counts.
        figures::uncount(group, &EndedCall::bought(&ended))?;
        forget(group.transaction(), call_id, ended.promised_secs)?;
    }
    group.promises()?.insert(call_id.as_bytes(), tables::encode(&stored).as_slice())?;
    Ok(PromiseProof { call_id })
}

fn check_bounds(promise: &Promise) -> Result<()> {
    let request = &promise.request;
    let strings = request.params.iter().chain(&request.headers);
    let head = request.path.len() + strings.map(|(name, value)| name.len() + value.len()).sum::<usize>();
    within("the request's head", head, CALL_HEAD_BYTES_MAX)?;
    let body_bytes = usize::try_from(request.body_bytes).unwrap_or(usize::MAX);
    within("the request's body", body_bytes, REQUEST_BODY_BYTES_MAX)?;
    within("the secret's name", promise.secret.len(), SECRET_NAME_BYTES_MAX)
}

/// Notes the cumulative amount that this promise signs.
fn sign(group: &mut Group<'_>, promise: &Promise) -> Result<()> {
    let Payment::Channel { channel: id, cumulative, .. } = promise.request.payment else { return Ok(()) };
    let table = group.payer_channels()?;
    let mut row = channel_in(table, id)?.ok_or(LedgerError::UnknownChannel(id))?;
    if row.config.payee != promise.owner {
        return Err(LedgerError::WrongParty { channel: id, address: promise.owner });
    }
    if row.stopped {
        return Err(LedgerError::ChannelStopped(id));
    }
    if cumulative > row.deposited {
        return Err(LedgerError::VoucherAboveDeposit { cumulative, deposited: row.deposited });
    }
    row.signed = row.signed.max(cumulative);
    row.promised_secs = row.promised_secs.max(Some(promise.time_secs));
    table.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    Ok(())
}

/// Moves a promise to the purchases.
fn close(group: &mut Group<'_>, call_id: CallId, closed_secs: u64, end: StoredEnd) -> Result<()> {
    let removed = group.promises()?.remove(call_id.as_bytes())?;
    let promise = removed.map(|bytes| tables::decode("promises", bytes.value())).transpose()?;
    keep_purchase(group, call_id, promise.ok_or(LedgerError::NotPromised(call_id))?, closed_secs, end)
}

/// Keeps the end of a promise that is not among the open ones any more.
fn keep_purchase(
    group: &mut Group<'_>,
    call_id: CallId,
    promise: StoredPromise,
    closed_secs: u64,
    end: StoredEnd,
) -> Result<()> {
    let by_time = time_key(promise.time_secs, call_id);
    group.purchases_by_time()?.insert(&by_time, ())?;
    let purchase = StoredPurchase::new(promise, closed_secs, end);
    group.purchases()?.insert(call_id.as_bytes(), tables::encode(&purchase).as_slice())?;
    figures::count(group, &EndedCall::bought(&purchase))?;
    // What is in doubt may be charged yet.
    if !purchase.end.charged().is_zero() || purchase.is_in_doubt() {
        return Ok(());
    }
    // Whoever makes calls for nothing fills no disk.
    let tx = group.transaction();
    tx.open_table(UNCHARGED_PURCHASES_BY_TIME)?.insert(&by_time, ())?;
    while let Some((secs, call_id)) = beyond(tx)? {
        forget(tx, call_id, secs)?;
    }
    Ok(())
}

/// The oldest of the purchases that cost nothing, when there are too many.
fn beyond(tx: &WriteTransaction) -> Result<Option<(u64, CallId)>> {
    Ok(tables::oldest_beyond(tx, UNCHARGED_PURCHASES_BY_TIME, UNCHARGED_MAX)?.map(|key| {
        let (secs, id) = (tables::join(&[&key[..8]]), tables::join(&[&key[8..]]));
        (u64::from_be_bytes(secs), CallId::from_bytes(id))
    }))
}

/// Takes a purchase out of every table.
pub(crate) fn forget(tx: &WriteTransaction, call_id: CallId, promised_secs: u64) -> Result<()> {
    let by_time = time_key(promised_secs, call_id);
    tx.open_table(PURCHASES)?.remove(call_id.as_bytes())?;
    tx.open_table(PURCHASES_BY_TIME)?.remove(&by_time)?;
    tx.open_table(UNCHARGED_PURCHASES_BY_TIME)?.remove(&by_time)?;
    Ok(())
}

/// Those of the newest `limit` purchases that are wanted.
fn newest_purchases(
    tx: &ReadTransaction,
    limit: usize,
    is_wanted: impl Fn(&Purchase) -> bool,
) -> Result<Vec<Purchase>> {
    let purchases = tx.open_table(PURCHASES)?;
    let mut rows = Vec::new();
    for entry in tx.open_table(PURCHASES_BY_TIME)?.iter()?.rev().take(limit) {
        let call_id = CallId::from_bytes(tables::join(&[&entry?.0.value()[8..]]));
        let purchase = purchase_in(&purchases, call_id)?.map(|stored| stored.into_purchase(call_id));
        rows.extend(purchase.filter(&is_wanted));
    }
    Ok(rows)
}
