//! Adjustments: what a channel counts and no call of this ledger explains, with the cause; and what the chain took back of a call
//! that is on no channel.
//!
//! A channel's opening balance is the sum of its adjustments. Every rise of it is one row, written in the commit
//! that raises it; a call that turns out to be the cause takes its part back out of the rows ([`take_back`]).

pub(crate) use farthing_os::clock::now_secs;
use farthing_values::{Address, ChannelConfig, ChannelId, Usdc};
use minicbor::{Decode, Encode};
use redb::{ReadableTable, WriteTransaction};

use crate::{
    Ledger,
    error::Result,
    group::Group,
    history::{self, Stretch, Window},
    rows::{
        Side, payee,
        payer::{self, day_of},
    },
    tables::{self, ADJUSTMENTS, DAY_TOTALS, META, PAYEE_CHANNELS, PAYER_CHANNELS},
};

/// Key in [`META`]: when this ledger was put in place of another one from a backup.
const RESTORED_SECS: &str = "restored_secs";
/// In [`DAY_TOTALS`], what no secret is known for. No secret has this name.
const NO_SECRET: &str = "";

/// The reason that a channel counts what no call here explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Cause {
    /// A crash kept a promise out of this ledger, and its call was charged.
    #[n(0)]
    Crash,
    /// This ledger came from a backup, and the calls were charged after that was made.
    #[n(1)]
    Restored,
    /// It was paid before this ledger knew of the channel, or noted causes.
    #[n(2)]
    Earlier,
    /// The owner was paid it on chain, and every call was known when that was seen.
    #[n(3)]
    Claimed,
    /// This ledger refused a promise whose call was on its way already, and the call was charged.
    #[n(4)]
    Refused,
    /// A transaction paid a call here, the chain took it back, and none pays that call any more. On no channel.
    #[n(5)]
    TakenBack,
}

/// One amount that a channel counts and no call explains, or that a call counts and nothing pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(map)]
pub struct Adjustment {
    #[n(0)]
    pub side: Side,
    #[n(1)]
    pub channel: ChannelId,
    /// The other side's wallet.
    #[n(2)]
    pub peer: Address,
    #[n(3)]
    pub amount: Usdc,
    #[n(4)]
    pub cause: Cause,
    /// The time it was found, in seconds since the Unix epoch.
    #[n(5)]
    pub time_secs: u64,
}

impl Adjustment {
    /// Returns whether it counts for the day it was found on. What is older counted on days that are over, and what was taken
    /// back is no longer in the day of its call.
    pub fn is_of_its_day(&self) -> bool {
        !matches!(self.cause, Cause::Earlier | Cause::TakenBack)
    }

    /// Day and secret it counts for in the limits.
    pub(crate) fn budget(&self) -> Option<(u32, &'static str)> {
        let counts = self.side == Side::Payer && self.is_of_its_day();
        counts.then(|| (day_of(self.time_secs), NO_SECRET))
    }
}

impl Ledger {
    /// Adjustments, of both sides.
    pub fn adjustments_in(
        &self,
        window: &Window,
        mut keep: impl FnMut(&Adjustment) -> bool,
    ) -> Result<Stretch<Adjustment>> {
        self.read(|tx| {
            history::scan(&tx.open_table(ADJUSTMENTS)?, window, |_: &[u8; 16], bytes: &[u8]| {
                let adjustment: Adjustment = tables::decode("adjustments", bytes)?;
                Ok(Some(adjustment).filter(&mut keep))
            })
        })
    }

    /// Sums what adjustments of one side count on channels with a wallet on the other.
    pub fn adjusted_with(&self, side: Side, peer: Address) -> Result<Usdc> {
        self.read(|tx| {
            let mut sum = Usdc::ZERO;
            for entry in tx.open_table(ADJUSTMENTS)?.iter()? {
                let row: Adjustment = tables::decode("adjustments", entry?.1.value())?;
                if row.side == side && row.peer == peer && row.channel != ChannelId::NONE {
                    sum = sum.saturating_add(row.amount);
                }
            }
            Ok(sum)
        })
    }

    /// Notes that this ledger takes the place of another one.
    pub async fn mark_restored(&self, time_secs: u64) -> Result<()> {
        self.write(move |tx| {
            tx.open_table(META)?.insert(RESTORED_SECS, time_secs)?;
            payer::mark_all(tx).map(drop)
        })
        .await
    }

    /// Returns when this ledger took the place of another one, in seconds since the Unix epoch.
    pub fn restored_secs(&self) -> Result<Option<u64>> {
        self.read(|tx| Ok(tx.open_table(META)?.get(RESTORED_SECS)?.map(|secs| secs.value())))
    }

    /// Returns the reason that this ledger may lack calls on a channel that it pays on: nothing was promised on it
    /// since the ledger came from a backup, it refused promises, or there was a crash.
    pub fn why_calls_are_missing(&self, id: ChannelId) -> Result<Cause> {
        self.read(|tx| {
            let row = payer::channel_in(&tx.open_table(PAYER_CHANNELS)?, id)?;
            let restored_secs = tx.open_table(META)?.get(RESTORED_SECS)?.map(|secs| secs.value());
            Ok(why_missing(restored_secs, row.as_ref()))
        })
    }
}

/// Returns the second at which this ledger came from a backup, if it did.
pub(crate) fn restored_secs(tx: &WriteTransaction) -> Result<Option<u64>> {
    Ok(tx.open_table(META)?.get(RESTORED_SECS)?.map(|secs| secs.value()))
}

/// Of a channel that this node pays on.
pub(crate) fn why_missing(restored_secs: Option<u64>, row: Option<&payer::StoredPayerChannel>) -> Cause {
    let promised_secs = row.and_then(|row| row.promised_secs);
    match restored_secs {
        Some(restored) if promised_secs.is_none_or(|promised| promised < restored) => Cause::Restored,
        _ if row.is_some_and(payer::StoredPayerChannel::lacks_refused) => Cause::Refused,
        _ => Cause::Crash,
    }
}

/// Notes that a channel's opening balance rose by `amount` now. Gives what that adds to the limits of a day.
pub(crate) fn record(
    tx: &WriteTransaction,
    (side, channel): (Side, ChannelId),
    terms: &ChannelConfig,
    amount: Usdc,
    cause: Cause,
) -> Result<Option<(u32, Usdc)>> {
    let peer = if side == Side::Payer { terms.payee } else { terms.payer };
    let adjustment = Adjustment { side, channel, peer, amount, cause, time_secs: now_secs() };
    book(tx, &adjustment)?;
    Ok(adjustment.budget().filter(|_| !amount.is_zero()).map(|(day, _)| (day, amount)))
}

/// Notes that nothing pays a call of this payer any more, which was paid on no channel; or takes that note back.
pub(crate) fn book_taken_back(
    tx: &WriteTransaction,
    payer: Address,
    amount: Usdc,
    is_lost: bool,
) -> Result<()> {
    let (side, channel) = (Side::Payee, ChannelId::NONE);
    if is_lost {
        let cause = Cause::TakenBack;
        return insert(tx, &Adjustment { side, channel, peer: payer, amount, cause, time_secs: now_secs() });
    }
    take_back(tx, (side, channel), amount, |row| row.peer == payer).map(drop)
}

fn book(tx: &WriteTransaction, adjustment: &Adjustment) -> Result<()> {
    if adjustment.amount.is_zero() {
        return Ok(());
    }
    if adjustment.side == Side::Payer || !add_to_its_day(tx, adjustment)? {
        insert(tx, adjustment)?;
    }
    if adjustment.is_of_its_day() {
        count_adjusted(tx, adjustment, Usdc::saturating_add)?;
    }
    count_for_limits(tx, adjustment, u64::saturating_add)
}

/// Adds what an owner found on a channel to what it found there the same day, for the same cause, and returns whether
/// there was such a row: a payer may show what was lost in as many parts as it likes.
fn add_to_its_day(tx: &WriteTransaction, adjustment: &Adjustment) -> Result<bool> {
    let mut table = tx.open_table(ADJUSTMENTS)?;
    let mut earlier = None;
    for entry in table.iter()?.rev() {
        let (key, bytes) = entry?;
        let row: Adjustment = tables::decode("adjustments", bytes.value())?;
        if day_of(row.time_secs) != day_of(adjustment.time_secs) {
            break;
        }
        if (row.side, row.channel, row.cause) == (adjustment.side, adjustment.channel, adjustment.cause) {
            earlier = Some((*key.value(), row));
            break;
        }
    }
    let Some((key, row)) = earlier else { return Ok(false) };
    let row = Adjustment { amount: row.amount.saturating_add(adjustment.amount), ..row };
    table.insert(&key, tables::encode(&row).as_slice())?;
    Ok(true)
}

/// Counts what an adjustment adds to its day, or takes back from it.
fn count_adjusted(
    tx: &WriteTransaction,
    adjustment: &Adjustment,
    change: impl FnOnce(Usdc, Usdc) -> Usdc,
) -> Result<()> {
    history::count(&mut Group::of(tx), adjustment.time_secs, |figures| {
        let sum = match adjustment.side {
            Side::Payer => &mut figures.spent,
            Side::Payee => &mut figures.earned,
        };
        *sum = change(*sum, adjustment.amount);
    })
}

fn insert(tx: &WriteTransaction, adjustment: &Adjustment) -> Result<()> {
    let mut table = tx.open_table(ADJUSTMENTS)?;
    let key = |number: u64| -> [u8; 16] {
        tables::join(&[&adjustment.time_secs.to_be_bytes(), &number.to_be_bytes()])
    };
    // Among those of the same second.
    let number = match table.range::<&[u8; 16]>(&key(0)..=&key(u64::MAX))?.next_back().transpose()? {
        Some((last, _)) => u64::from_be_bytes(tables::join(&[&last.value()[8..]])).saturating_add(1),
        None => 0,
    };
    let key = key(number);
    table.insert(&key, tables::encode(adjustment).as_slice())?;
    Ok(())
}

fn count_for_limits(
    tx: &WriteTransaction,
    adjustment: &Adjustment,
    count: impl FnOnce(u64, u64) -> u64,
) -> Result<()> {
    let Some(budget) = adjustment.budget() else { return Ok(()) };
    let mut totals = tx.open_table(DAY_TOTALS)?;
    let total = totals.get(budget)?.map_or(0, |total| total.value());
    match count(total, adjustment.amount.micros()) {
        0 => drop(totals.remove(budget)?),
        total => drop(totals.insert(budget, total)?),
    }
    Ok(())
}

/// Takes `charged` out of the adjustments of a channel, because the call that explains it was found, or the chain took
/// back what showed it; the newest first, and as much as is there: a part may not have been booked yet, while other open
/// calls could still owe it.
///
/// Gives what no longer counts for each day.
pub(crate) fn take_back(
    tx: &WriteTransaction,
    (side, id): (Side, ChannelId),
    charged: Usdc,
    among: impl Fn(&Adjustment) -> bool,
) -> Result<Vec<(u32, Usdc)>> {
    if charged.is_zero() {
        return Ok(Vec::new());
    }
    let (mut rows, mut found) = (Vec::new(), Usdc::ZERO);
    for entry in tx.open_table(ADJUSTMENTS)?.iter()?.rev() {
        let (key, bytes) = entry?;
        let row: Adjustment = tables::decode("adjustments", bytes.value())?;
        if row.side == side && row.channel == id && among(&row) {
            rows.push((*key.value(), row));
            found = found.saturating_add(row.amount);
        }
        if found >= charged {
            break;
        }
    }
    let (mut left, mut taken) = (charged, Vec::new());
    for (key, row) in rows {
        let part = Adjustment { amount: left.min(row.amount), ..row };
        if part.amount.is_zero() {
            continue;
        }
        left = left.saturating_sub(part.amount);
        let rest = Adjustment { amount: row.amount.saturating_sub(part.amount), ..row };
        let mut table = tx.open_table(ADJUSTMENTS)?;
        if rest.amount.is_zero() {
            table.remove(&key)?;
        } else {
            table.insert(&key, tables::encode(&rest).as_slice())?;
        }
        drop(table);
        if part.is_of_its_day() {
            count_adjusted(tx, &part, Usdc::saturating_sub)?;
            taken.push((day_of(part.time_secs), part.amount));
        }
        count_for_limits(tx, &part, u64::saturating_sub)?;
    }
    Ok(taken)
}

/// One row for what the channels of an earlier ledger count and nothing explains.
pub(crate) fn explain_earlier(tx: &WriteTransaction) -> Result<()> {
    let mut rows = Vec::new();
    for entry in tx.open_table(PAYER_CHANNELS)?.iter()? {
        let (id, bytes) = entry?;
        let row: payer::StoredPayerChannel = tables::decode("payer_channels", bytes.value())?;
        rows.push((Side::Payer, *id.value(), row.config, row.opening));
    }
    for entry in tx.open_table(PAYEE_CHANNELS)?.iter()? {
        let (id, bytes) = entry?;
        let row: payee::StoredPayeeChannel = tables::decode("payee_channels", bytes.value())?;
        rows.push((Side::Payee, *id.value(), row.config, row.opening));
    }
    for (side, id, terms, amount) in rows {
        record(tx, (side, ChannelId::from_bytes(id)), &terms, amount, Cause::Earlier)?;
    }
    Ok(())
}
