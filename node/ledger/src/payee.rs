//! The owner's half: channels this node is paid on, and the calls it served.
//!
//! 1. [`Ledger::put_payee_channel`] records what the chain says of a channel.
//! 2. [`Ledger::accept`] records a call with effects before it runs.
//! 3. [`Ledger::serve`] records voucher, call and charge in one commit and hands out [`Recorded`], without
//!    which there is no answer. [`Ledger::serve_paid`] records a call that a transaction has paid.
//!
//! Invariants: O1 claimed ≤ spent ≤ best or claimed ≤ deposited (the highest deposit ever confirmed); O2 spent = opening
//! balance + Σ charges of finished calls, pruned ones included; O4 a failed upstream costs nothing; O5 a call
//! id is charged at most once.
//!
//! The ledger counts `spent_total` but does not sign receipts. Commits decide the order of charges, so only
//! the writer knows the total; signing there would put 60 µs of arithmetic per call and the wallet's code
//! into the one thread everyone waits for. Signatures are deterministic (RFC 6979): the caller signs the
//! stored receipt after the commit, on its own thread, and a receipt asked for again is signed again to the
//! same bytes.

mod bodies;
mod channels;
mod checks;
mod shares;
mod uncharged;

use bytes::Bytes;
use farthing_values::{
    Address, CallId, ChannelId, Hash, Receipt, Usdc, Verified, Voucher, limits::PATH_BYTES_MAX,
};
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

pub(crate) use self::bodies::{BODIES_BYTES_MAX, forget_body};
use self::{
    bodies::keep_body,
    checks::{check_call, check_not_finished},
    uncharged::Kind,
};
use crate::{
    Ledger, adjustment,
    error::{LedgerError, Result, within},
    figures,
    group::Group,
    history,
    rows::{
        figures::EndedCall,
        payee::{
            AcceptedCall, Call, CallRow, ChargedOn, ServedRow, StoredCall, StoredState, call_key, channel_in,
            receipt, split_call_key, time_key,
        },
    },
    settlement,
    tables::{self, BODIES, CALLS, CALLS_BY_TIME},
};

/// A call as [`Ledger::serve`] records it.
#[derive(Clone, Debug)]
pub struct Served {
    pub payer: Address,
    /// [`ChannelId::NONE`] for a free call.
    pub channel: ChannelId,
    /// The voucher this call brought, if any; a lower one than the best is ignored.
    pub voucher: Option<Verified<Voucher>>,
    pub call: Call,
}

/// Proof that a call and its charge are durable. Only [`Ledger::serve`] makes one, after its commit.
#[derive(Debug, PartialEq, Eq)]
pub struct Recorded {
    receipt: Receipt,
}

impl Recorded {
    /// The receipt to sign and send; `spent_total` counts this call.
    pub const fn receipt(&self) -> &Receipt {
        &self.receipt
    }
}

impl Ledger {
    /// Records a call with effects (not GET or HEAD) durably, before it goes to its service.
    ///
    /// # Errors
    /// [`LedgerError::MayHaveRun`] when it was accepted before, [`LedgerError::AlreadyServed`] when it is
    /// finished, [`LedgerError::CallIdConflict`] when the id names another request.
    pub async fn accept(&self, accepted: AcceptedCall) -> Result<()> {
        self.write_grouped(move |group| accept(group, &accepted)).await
    }

    /// Records voucher, call and charge in one durable commit.
    ///
    /// A finished call is never recorded again, with one exception: a failed, uncharged GET or HEAD may be
    /// tried again under its id.
    ///
    /// # Errors
    /// The rule that would be broken; nothing is then recorded and nothing charged.
    pub async fn serve(&self, served: Served) -> Result<Recorded> {
        let Served { payer, channel, voucher, call } = served;
        let charged_on = ChargedOn::Channel(channel);
        self.write_grouped(move |group| serve(group, payer, charged_on, voucher.as_ref(), &call)).await
    }

    /// Records a call that a transaction of its payer's has paid, on no channel.
    ///
    /// # Errors
    /// As [`Ledger::serve`]; [`LedgerError::AlreadyServed`] when it is recorded.
    pub async fn serve_paid(&self, payer: Address, call: Call, transaction: Hash) -> Result<Recorded> {
        let charged_on = ChargedOn::Transaction(transaction);
        self.write_grouped(move |group| serve(group, payer, charged_on, None, &call)).await
    }

    /// Records that the chain has taken back the transaction that paid a call: another one pays it, or none can any more. Then
    /// the totals leave it out, and an adjustment says so.
    ///
    /// # Errors
    /// [`LedgerError::NotServed`] when no call that a transaction has paid has this id.
    pub async fn pay_again(&self, payer: Address, call_id: CallId, transaction: Option<Hash>) -> Result<()> {
        self.write_grouped(move |group| pay_again(group, payer, call_id, transaction)).await
    }

    /// Takes the one further execution that a finished call has, durably and before its service is asked. `false`
    /// when it was taken before.
    ///
    /// # Errors
    /// [`LedgerError::NotServed`] when no finished call has this id.
    pub async fn repeat(&self, payer: Address, call_id: CallId, time_secs: u64) -> Result<bool> {
        self.write(move |tx| repeat(tx, payer, call_id, time_secs)).await
    }

    /// Returns the record of a call, with its body while that is kept.
    pub fn served(&self, payer: Address, call_id: CallId) -> Result<Option<ServedRow>> {
        let (snapshot, key) = (self.snapshot(), call_key(payer, call_id));
        let Some(row) = tables::get::<_, StoredCall>(snapshot.calls()?, "calls", &key)? else {
            return Ok(None);
        };
        let body = body_in(&snapshot.transaction, row.time_secs, &key)?;
        Ok(Some(row.into_served(payer, call_id, body)))
    }

    /// Returns the record of a call without looking at its body, for whoever may not take time.
    pub fn served_head(&self, payer: Address, call_id: CallId) -> Result<Option<ServedRow>> {
        let (snapshot, key) = (self.snapshot(), call_key(payer, call_id));
        let row = tables::get::<_, StoredCall>(snapshot.calls()?, "calls", &key)?;
        Ok(row.map(|row| row.into_served(payer, call_id, None)))
    }

    /// Returns the body of a recorded call, while it is kept.
    pub fn served_body(&self, row: &CallRow) -> Result<Option<Bytes>> {
        let key = call_key(row.payer, row.call.call_id);
        self.read(|tx| body_in(tx, row.call.time_secs, &key))
    }

    /// Finished calls, newest first, without bodies.
    pub fn served_calls(&self, limit: usize) -> Result<Vec<CallRow>> {
        self.read(|tx| newest_calls(tx, limit))
    }
}

fn body_in(tx: &ReadTransaction, time_secs: u64, key: &[u8; 36]) -> Result<Option<Bytes>> {
    let body = tx.open_table(BODIES)?.get(&time_key(time_secs, key))?;
    Ok(body.map(|body| Bytes::copy_from_slice(body.value())))
}

fn accept(group: &mut Group<'_>, accepted: &AcceptedCall) -> Result<()> {
    within("the path", accepted.path.len(), PATH_BYTES_MAX)?;
    let key = call_key(accepted.payer, accepted.call_id);
    let calls = group.calls()?;
    if let Some(known) = tables::get::<_, StoredCall>(calls, "calls", &key)? {
        return Err(match known.state {
            _ if known.request_hash != accepted.request_hash => LedgerError::CallIdConflict(accepted.call_id),
            StoredState::Accepted => LedgerError::MayHaveRun(accepted.call_id),
            StoredState::Done(_) => LedgerError::AlreadyServed(accepted.call_id),
        });
    }
    calls.insert(&key, tables::encode(&StoredCall::accepted(accepted)).as_slice())?;
    group.calls_by_time()?.insert(&time_key(accepted.time_secs, &key), ())?;
    Ok(())
}

fn serve(
    group: &mut Group<'_>,
    payer: Address,
    charged_on: ChargedOn,
    voucher: Option<&Verified<Voucher>>,
    call: &Call,
) -> Result<Recorded> {
    check_call(call, charged_on)?;
    let key = call_key(payer, call.call_id);
    let known: Option<StoredCall> = tables::get(group.calls()?, "calls", &key)?;
    check_not_finished(call, charged_on, known.as_ref())?;

    // Every check is above or inside `charge`, which writes last: a refusal leaves the transaction as it was.
    let (channel, spent_total) = match charged_on {
        ChargedOn::Channel(ChannelId::NONE) | ChargedOn::Transaction(_) => (ChannelId::NONE, Usdc::ZERO),
        ChargedOn::Channel(id) => (id, charge(group, id, payer, voucher, call.charged)?),
    };
    if let Some(known) = known {
        // It is one call still, whose last end counts.
        EndedCall::served(&known).map_or(Ok(()), |ended| figures::uncount(group, &ended))?;
        forget(group.transaction(), &key, &known)?;
    }
    let row = StoredCall::done(call, charged_on, spent_total);
    EndedCall::served(&row).map_or(Ok(()), |ended| figures::count(group, &ended))?;
    group.calls()?.insert(&key, tables::encode(&row).as_slice())?;
    let by_time = time_key(call.time_secs, &key);
    group.calls_by_time()?.insert(&by_time, ())?;
    history::count_served(group, call)?;
    if call.charged.is_zero() {
        let tx = group.transaction();
        uncharged::keep_newest(tx, &mut tx.open_table(CALLS)?, by_time, Kind::of(call.method))?;
    }
    if let Some(body) = &call.body {
        keep_body(group.transaction(), &by_time, body, BODIES_BYTES_MAX)?;
    }
    Ok(Recorded { receipt: receipt(call, channel, spent_total) })
}

fn repeat(tx: &WriteTransaction, payer: Address, call_id: CallId, time_secs: u64) -> Result<bool> {
    let key = call_key(payer, call_id);
    let mut calls = tx.open_table(CALLS)?;
    let mut row: StoredCall = tables::get(&calls, "calls", &key)?.ok_or(LedgerError::NotServed(call_id))?;
    let StoredState::Done(done) = &mut row.state else { return Err(LedgerError::NotServed(call_id)) };
    if done.repeated_secs.is_some() {
        return Ok(false);
    }
    done.repeated_secs = Some(time_secs);
    calls.insert(&key, tables::encode(&row).as_slice())?;
    Ok(true)
}

fn pay_again(
    group: &mut Group<'_>,
    payer: Address,
    call_id: CallId,
    transaction: Option<Hash>,
) -> Result<()> {
    let key = call_key(payer, call_id);
    let mut calls = group.transaction().open_table(CALLS)?;
    let mut row: StoredCall = tables::get(&calls, "calls", &key)?.ok_or(LedgerError::NotServed(call_id))?;
    let before = EndedCall::served(&row).ok_or(LedgerError::NotServed(call_id))?;
    let StoredState::Done(done) = &mut row.state else { return Err(LedgerError::NotServed(call_id)) };
    if done.paid_by.is_none() {
        return Err(LedgerError::NotServed(call_id));
    }
    done.is_lost = transaction.is_none().then_some(true);
    if let Some(transaction) = transaction {
        done.paid_by = Some(transaction.into());
    }
    let (charged, earned) = (done.charged, done.earned());
    calls.insert(&key, tables::encode(&row).as_slice())?;
    drop(calls);
    if earned == before.charged {
        return Ok(());
    }
    figures::recharge(group, &before, earned)?;
    history::count(group, row.time_secs, |day| {
        day.earned = day.earned.saturating_sub(before.charged).saturating_add(earned);
    })?;
    adjustment::book_taken_back(group.transaction(), payer, charged, earned.is_zero())
}

/// Raises the best voucher and what is spent; the new total.
fn charge(
    group: &mut Group<'_>,
    id: ChannelId,
    payer: Address,
    voucher: Option<&Verified<Voucher>>,
    charged: Usdc,
) -> Result<Usdc> {
    let mut row = channel_in(group.payee_channels()?, id)?.ok_or(LedgerError::UnknownChannel(id))?;
    let config = row.config;
    if config.payer != payer {
        return Err(LedgerError::WrongParty { channel: id, address: payer });
    }
    if let Some(voucher) = voucher {
        if voucher.channel != id || voucher.signer() != config.signer {
            return Err(LedgerError::WrongParty { channel: id, address: voucher.signer() });
        }
        row.promise(voucher.cumulative, *voucher.signature())?;
    }
    row.charge(charged)?;
    if let Some(lost) = row.book_loss() {
        settlement::book_losses(group.transaction(), id, (lost, row.spent), adjustment::now_secs())?;
    }
    group.payee_channels()?.insert(id.as_bytes(), tables::encode(&row).as_slice())?;
    Ok(row.spent)
}

/// Removes what a call left beside its row, which the caller replaces or removes.
pub(crate) fn forget(tx: &WriteTransaction, key: &[u8; 36], row: &StoredCall) -> Result<()> {
    let by_time = time_key(row.time_secs, key);
    tx.open_table(CALLS_BY_TIME)?.remove(&by_time)?;
    Kind::ALL.into_iter().try_for_each(|kind| kind.forget(tx, &by_time))?;
    forget_body(tx, &by_time).map(drop)
}

fn newest_calls(tx: &ReadTransaction, limit: usize) -> Result<Vec<CallRow>> {
    let (calls, bodies) = (tx.open_table(CALLS)?, tx.open_table(BODIES)?);
    let mut rows = Vec::new();
    for entry in tx.open_table(CALLS_BY_TIME)?.iter()?.rev() {
        if rows.len() == limit {
            break;
        }
        let by_time = *entry?.0.value();
        let key: [u8; 36] = tables::join(&[&by_time[8..]]);
        let Some(row) = tables::get::<_, StoredCall>(&calls, "calls", &key)? else { continue };
        let body_bytes = bodies.get(&by_time)?.map_or(0, |body| body.value().len() as u64);
        let (payer, call_id) = split_call_key(&key);
        if let ServedRow::Done(mut row) = row.into_served(payer, call_id, None) {
            row.body_bytes = body_bytes;
            rows.push(*row);
        }
    }
    Ok(rows)
}
