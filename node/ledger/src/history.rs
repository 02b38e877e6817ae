//! The records in the order of time, read backwards a stretch at a time, and what each day came to.
//!
//! A reader names where to begin and how much to look at; it gets what it wants to keep and where it stopped, so
//! that a long history is read in steps of bounded time, whatever it is searched for.
//!
//! Days are counted in the same commits as the calls they count, and only calls that a service answered: those are
//! final, so none is counted twice.

use std::ops::Bound;

use farthing_values::{Address, CallId, ChannelId, Hash, Outcome, Receipt, Usdc};
use minicbor::{Decode, Encode};
use redb::ReadableTable;

use crate::{
    Ledger,
    error::Result,
    group::Group,
    rows::{
        payee::{self, CallRow, ServedRow, StoredCall},
        payer::{self, Purchase, StoredPurchase, day_of},
    },
    settlement,
    tables::{self, CALLS, CALLS_BY_TIME, DAY_FIGURES, PURCHASES, PURCHASES_BY_TIME, TRANSACTIONS},
};

/// A transaction that is noted again after a crash is among the newest.
const NOTED_AGAIN_WITHIN: usize = 64;

/// A place in the order of time: what is at it comes before whatever has a later second, or a higher key in the
/// same second.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Seconds since the Unix epoch.
    pub secs: u64,
    /// Of the record within its second; the empty one comes first.
    pub key: Vec<u8>,
}

impl Position {
    /// Before everything that happened in or after this second.
    pub const fn start_of(secs: u64) -> Self {
        Self { secs, key: Vec::new() }
    }

    fn of<const N: usize>(key: &[u8; N]) -> Self {
        Self { secs: tables::secs_of(key), key: key.get(8..).unwrap_or_default().to_vec() }
    }

    /// The lowest key of a table that is not before this place.
    fn bound<const N: usize>(&self) -> [u8; N] {
        let mut bound = [0; N];
        let parts = self.secs.to_be_bytes().into_iter().chain(self.key.iter().copied());
        for (byte, part) in bound.iter_mut().zip(parts) {
            *byte = part;
        }
        bound
    }
}

/// The part of the history to read, backwards from `before`.
#[derive(Clone, Debug)]
pub struct Window {
    /// Nothing at or behind this place.
    pub before: Position,
    /// Nothing earlier than this second.
    pub from_secs: u64,
    /// Rows to keep.
    pub limit: usize,
    /// Rows to look at.
    pub scan_max: usize,
}

/// Rows that were kept, the newest first.
#[derive(Clone, Debug)]
pub struct Stretch<T> {
    pub rows: Vec<(Position, T)>,
    /// Everything at or behind this place was looked at; `None` when there is no more before it.
    pub next: Option<Position>,
}

/// The figures of one day (UTC): calls that a service answered, and what was charged for them and in adjustments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DayFigures {
    pub bought: u64,
    pub spent: Usdc,
    pub served: u64,
    pub earned: Usdc,
}

/// A transaction of this wallet that is in a block.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Transaction {
    #[cbor(n(0), with = "minicbor::bytes")]
    pub hash: Hash,
    #[n(1)]
    pub block: u64,
    /// Seconds since the Unix epoch, on this node's clock.
    #[n(2)]
    pub time_secs: u64,
    /// The purpose, in a word or two of the chain's module.
    #[n(3)]
    pub purpose: String,
    /// The channel it concerns, when it is one.
    #[n(4)]
    pub channel: Option<ChannelId>,
    /// The other side's address, when there is one.
    #[n(5)]
    pub peer: Option<Address>,
    /// USDC that was to move.
    #[n(6)]
    pub amount: Usdc,
    /// ETH that was to move, beside the fee; big-endian wei.
    #[cbor(n(7), with = "minicbor::bytes")]
    pub wei: [u8; 16],
    /// Paid for gas; big-endian wei.
    #[cbor(n(8), with = "minicbor::bytes")]
    pub fee_wei: [u8; 16],
    /// `None` until the chain was asked again, once it could not replace the block any more.
    #[n(9)]
    pub standing: Option<Standing>,
    /// The chain whose block it is in: no other one's word on it counts. `None` in ledgers of before.
    #[n(10)]
    pub chain_id: Option<u64>,
}

/// The chain's word on a transaction when it was asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Standing {
    #[n(0)]
    Stays,
    /// No block has it any more.
    #[n(1)]
    Nowhere,
    /// A block has it, and it did nothing but cost its fee.
    #[n(2)]
    Failed,
}

impl Transaction {
    fn is_dropped(&self) -> bool {
        self.standing == Some(Standing::Nowhere)
    }
}

impl Ledger {
    /// Ended purchases by the time of their promise.
    pub fn purchases_in(
        &self,
        window: &Window,
        mut keep: impl FnMut(&Purchase) -> bool,
    ) -> Result<Stretch<Purchase>> {
        self.read(|tx| {
            let purchases = tx.open_table(PURCHASES)?;
            scan(&tx.open_table(PURCHASES_BY_TIME)?, window, |key: &[u8; 24], ()| {
                let call_id = CallId::from_bytes(tables::join(&[&key[8..]]));
                let purchase = payer::purchase_in(&purchases, call_id)?;
                Ok(purchase.map(|purchase| purchase.into_purchase(call_id)).filter(&mut keep))
            })
        })
    }

    /// Finished calls that were served, without bodies.
    pub fn calls_in(
        &self,
        window: &Window,
        mut keep: impl FnMut(&CallRow) -> bool,
    ) -> Result<Stretch<CallRow>> {
        self.read(|tx| {
            let calls = tx.open_table(CALLS)?;
            scan(&tx.open_table(CALLS_BY_TIME)?, window, |by_time: &[u8; 44], ()| {
                let key: [u8; 36] = tables::join(&[&by_time[8..]]);
                let row = tables::get::<_, StoredCall>(&calls, "calls", &key)?;
                let (payer, call_id) = payee::split_call_key(&key);
                Ok(match row.map(|row| row.into_served(payer, call_id, None)) {
                    Some(ServedRow::Done(row)) => Some(*row).filter(&mut keep),
                    _ => None,
                })
            })
        })
    }

    /// Calls of one payer behind the id `after`, in the order of ids and without bodies: those that `keep` makes
    /// something of, at most `limit` of `scan_max` rows. The id is the last one looked at, when there are more.
    pub fn calls_of<T>(
        &self,
        payer: Address,
        after: Option<CallId>,
        limit: usize,
        scan_max: usize,
        mut keep: impl FnMut(ServedRow) -> Option<T>,
    ) -> Result<(Vec<T>, Option<CallId>)> {
        let key = |id: [u8; 16]| payee::call_key(payer, CallId::from_bytes(id));
        let from = after.map_or(Bound::Included(key([0; 16])), |id| Bound::Excluded(key(*id.as_bytes())));
        let bounds = (from.as_ref(), Bound::Included(&key([255; 16])));
        self.read(|tx| {
            let (mut rows, mut last) = (Vec::new(), None);
            let calls = tx.open_table(CALLS)?;
            for (looked_at, entry) in calls.range::<&[u8; 36]>(bounds)?.enumerate() {
                if rows.len() >= limit || looked_at >= scan_max {
                    return Ok((rows, last));
                }
                let (key, bytes) = entry?;
                let (payer, call_id) = payee::split_call_key(key.value());
                let row: StoredCall = tables::decode("calls", bytes.value())?;
                rows.extend(keep(row.into_served(payer, call_id, None)));
                last = Some(call_id);
            }
            Ok((rows, None))
        })
    }

    /// Lists the payers whose call has this id: each chooses its own ids. This looks up two keys for each payer, and no row, however
    /// many calls there are.
    pub fn payers_of(&self, call_id: CallId) -> Result<Vec<Address>> {
        self.read(|tx| {
            let (calls, mut payers) = (tx.open_table(CALLS)?, Vec::new());
            let mut from: Bound<[u8; 36]> = Bound::Unbounded;
            loop {
                let bounds = (from.as_ref(), Bound::Unbounded);
                let next = calls.range::<&[u8; 36]>(bounds)?.next().transpose()?;
                let Some((payer, _)) = next.map(|(key, _)| payee::split_call_key(key.value())) else {
                    return Ok(payers);
                };
                if calls.get(&payee::call_key(payer, call_id))?.is_some() {
                    payers.push(payer);
                }
                from = Bound::Excluded(payee::call_key(payer, CallId::from_bytes([255; 16])));
            }
        })
    }

    /// Ended purchases over channels from `owner` behind the id `after` and up to `until`, in the order of ids.
    pub fn purchases_from(
        &self,
        owner: Address,
        after: Option<CallId>,
        until: Option<CallId>,
    ) -> Result<Vec<Purchase>> {
        let id = |id: Option<CallId>| id.map(|id| *id.as_bytes());
        let (after, until) = (id(after), id(until));
        let bounds = (
            after.as_ref().map_or(Bound::Unbounded, Bound::Excluded),
            until.as_ref().map_or(Bound::Unbounded, Bound::Included),
        );
        self.read(|tx| {
            let mut rows = Vec::new();
            for entry in tx.open_table(PURCHASES)?.range::<&[u8; 16]>(bounds)? {
                let (id, bytes) = entry?;
                let row: StoredPurchase = tables::decode("purchases", bytes.value())?;
                if row.owner == owner && !row.is_by_transfer() {
                    rows.push(row.into_purchase(CallId::from_bytes(*id.value())));
                }
            }
            Ok(rows)
        })
    }

    /// Transactions of this wallet.
    pub fn transactions_in(
        &self,
        window: &Window,
        mut keep: impl FnMut(&Transaction) -> bool,
    ) -> Result<Stretch<Transaction>> {
        self.read(|tx| {
            scan(&tx.open_table(TRANSACTIONS)?, window, |_: &[u8; 40], bytes: &[u8]| {
                let transaction: Transaction = tables::decode("transactions", bytes)?;
                Ok(Some(transaction).filter(&mut keep))
            })
        })
    }

    /// Notes a transaction, also in the claim that it was sent for, by a channel that it claims on; one that is noted already
    /// stays as it is.
    pub async fn note_transaction(
        &self,
        transaction: Transaction,
        claims_on: Option<ChannelId>,
    ) -> Result<()> {
        self.write(move |tx| {
            let mut table = tx.open_table(TRANSACTIONS)?;
            let hash: &Hash = &transaction.hash;
            for entry in table.iter()?.rev().take(NOTED_AGAIN_WITHIN) {
                if entry?.0.value()[8..] == hash[..] {
                    return Ok(());
                }
            }
            put_transaction(&mut table, &transaction)?;
            claims_on.map_or(Ok(()), |channel| settlement::note_sent(tx, channel, transaction.hash))
        })
        .await
    }

    /// Replaces what is noted of a transaction. Where no block has it any more, or one has it again, so does the claim that it
    /// was sent for.
    pub async fn correct_transaction(&self, transaction: Transaction) -> Result<()> {
        self.write(move |tx| {
            let mut table = tx.open_table(TRANSACTIONS)?;
            let noted: Option<Transaction> = tables::get(&table, "transactions", &key_of(&transaction))?;
            put_transaction(&mut table, &transaction)?;
            let is_dropped = transaction.is_dropped();
            match noted.is_some_and(|noted| noted.is_dropped()) == is_dropped {
                true => Ok(()),
                false => settlement::note_dropped(tx, &transaction.hash, is_dropped),
            }
        })
        .await
    }

    /// Returns the figures of the days from `first` to `last`, the earliest first; days without calls are left out.
    pub fn day_figures(&self, first: u32, last: u32) -> Result<Vec<(u32, DayFigures)>> {
        self.read(|tx| {
            let table = tx.open_table(DAY_FIGURES)?;
            let days = table.range(first..=last)?.map(|entry| {
                let (day, figures) = entry?;
                Ok((day.value(), DayFigures::from(figures.value())))
            });
            days.collect()
        })
    }
}

fn put_transaction(
    table: &mut redb::Table<'_, &'static [u8; 40], &'static [u8]>,
    transaction: &Transaction,
) -> Result<()> {
    table.insert(&key_of(transaction), tables::encode(transaction).as_slice())?;
    Ok(())
}

fn key_of(transaction: &Transaction) -> [u8; 40] {
    tables::join(&[&transaction.time_secs.to_be_bytes(), &transaction.hash])
}

/// Reads a table whose keys begin with the time, from its end.
pub(crate) fn scan<const N: usize, V: redb::Value + 'static, T>(
    table: &impl ReadableTable<&'static [u8; N], V>,
    window: &Window,
    mut read: impl for<'v> FnMut(&[u8; N], V::SelfType<'v>) -> Result<Option<T>>,
) -> Result<Stretch<T>> {
    let (start, end) = (Position::start_of(window.from_secs).bound::<N>(), window.before.bound::<N>());
    let mut stretch = Stretch { rows: Vec::new(), next: None };
    if start >= end {
        return Ok(stretch);
    }
    for (looked_at, entry) in table.range::<&[u8; N]>(&start..&end)?.rev().enumerate() {
        // There is another row, and it is left to the next stretch.
        if stretch.rows.len() >= window.limit || looked_at >= window.scan_max {
            return Ok(stretch);
        }
        let (key, value) = entry?;
        let position = Position::of(key.value());
        stretch.next = Some(position.clone());
        if let Some(row) = read(key.value(), value.value())? {
            stretch.rows.push((position, row));
        }
    }
    stretch.next = None;
    Ok(stretch)
}

pub(crate) fn count_bought(group: &mut Group<'_>, promised_secs: u64, receipt: &Receipt) -> Result<()> {
    if !Outcome::from_code(receipt.outcome).is_some_and(Outcome::is_the_services_answer) {
        return Ok(());
    }
    count(group, promised_secs, |figures| {
        figures.bought += 1;
        figures.spent = figures.spent.saturating_add(receipt.charged);
    })
}

/// Counts a call that a transfer has paid.
pub(crate) fn count_transferred(group: &mut Group<'_>, promised_secs: u64, charged: Usdc) -> Result<()> {
    count(group, promised_secs, |figures| {
        figures.bought += 1;
        figures.spent = figures.spent.saturating_add(charged);
    })
}

pub(crate) fn count_served(group: &mut Group<'_>, call: &payee::Call) -> Result<()> {
    if !call.outcome.is_the_services_answer() {
        return Ok(());
    }
    count(group, call.time_secs, |figures| {
        figures.served += 1;
        figures.earned = figures.earned.saturating_add(call.charged);
    })
}

pub(crate) fn count(group: &mut Group<'_>, time_secs: u64, add: impl FnOnce(&mut DayFigures)) -> Result<()> {
    let (table, day) = (group.day_figures()?, day_of(time_secs));
    let mut figures = table.get(day)?.map_or_else(DayFigures::default, |figures| figures.value().into());
    add(&mut figures);
    let DayFigures { bought, spent, served, earned } = figures;
    table.insert(day, (bought, spent.micros(), served, earned.micros()))?;
    Ok(())
}

impl From<(u64, u64, u64, u64)> for DayFigures {
    fn from((bought, spent, served, earned): (u64, u64, u64, u64)) -> Self {
        Self { bought, spent: Usdc::from_micros(spent), served, earned: Usdc::from_micros(earned) }
    }
}
