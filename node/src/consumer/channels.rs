//! The channels this node pays with: one in use per owner, counted in memory, backed by the ledger.
//!
//! A call reserves headroom before anything is signed and ends its reservation exactly once: released when
//! nothing was charged, acknowledged with the owner's receipt, or left in flight while its end is unknown.
//! What the chain confirms arrives through [`PayerChannels::apply`]. The lock is held for a few additions, never
//! across an await.
//!
//! An owner that changed its terms has a second channel, and another program with the same wallet may open any. Each is
//! counted by its own id; new calls are promised on one of them, and on none of another chain, contract or token than the
//! settings name.

use std::collections::{HashMap, HashSet};

use farthing_ledger::{Cause, PayerChannelRow};
use farthing_protocol::{
    Address, CallId, ChannelConfig, ChannelId, Usdc,
    channel::{PayerState, Receipt, ReceiptMismatch},
};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

mod shown;

/// One channel as the consumer sees it.
#[derive(Clone, Debug)]
pub struct PayerChannel {
    pub id: ChannelId,
    pub config: ChannelConfig,
    /// True if it is on another chain, in another contract or of another token than the settings name.
    pub is_elsewhere: bool,
    pub state: PayerState,
    /// The part of what is in flight that this node signed and then forgot.
    pub forgotten: Usdc,
    /// The most that forgotten calls may have been charged, beyond what is booked. More than the part in flight while
    /// known calls are open: those may have cost less, and forgotten ones have been charged instead.
    pub forgettable: Usdc,
    /// The highest total that this node signed before it forgot, by the owner's proof.
    pub signed_before: Usdc,
    /// The reason that it forgot.
    pub forgotten_cause: Cause,
    /// Calls of earlier runs that were open at the start. What their receipts come to, forgotten ones were not charged.
    pub open_at_start: HashSet<CallId>,
    /// True if everything that forgotten calls were charged is booked, but for what open calls hide.
    pub is_settled: bool,
    /// The highest total that the owner has told, or the chain has paid to it.
    pub seen_total: Usdc,
    /// The highest total of a receipt that the ledger keeps.
    pub receipted: Usdc,
    /// True if all that a crash lost is known: the ledger lacks nothing, or calls were promised since the start.
    pub is_compared: bool,
    pub claimed: Usdc,
    /// The number of times that the channel was emptied.
    pub round: u32,
    /// The payer's withdrawal is possible from this second on.
    pub close_at_secs: Option<u64>,
    /// The last increase of the deposit, from which a top-up is computed.
    pub last_deposit: Usdc,
    /// The time when this node saw its last deposit; the owner may see it later.
    pub filled_at: Option<Instant>,
    pub last_used_secs: u64,
}

impl PayerChannel {
    /// Returns what the owner counts beyond everything known here.
    pub fn unexplained(&self) -> Usdc {
        self.state.unexplained(self.seen_total)
    }

    /// Counts a receipt against what forgotten calls may have been charged, if its call was promised as they were: the part
    /// of its charge that lies within what was signed then. What an owner charged beyond that left the rest of it to others.
    fn count_call_of_before(&mut self, receipt: &Receipt) {
        if self.open_at_start.remove(&receipt.call_id) {
            let total_before = receipt.spent_total.saturating_sub(receipt.charged);
            let within = receipt.spent_total.min(self.signed_before).saturating_sub(total_before);
            self.forgettable = self.forgettable.saturating_sub(within);
        }
    }

    /// Once nothing is open, nothing hides the charge of a forgotten call any more. What the owner has told is put down to
    /// forgotten ones first.
    fn settle_if_idle(&mut self) {
        if self.is_settled && self.state.in_flight.is_zero() && self.unexplained().is_zero() {
            self.forgettable = Usdc::ZERO;
        }
    }

    /// Counts what forgotten calls were charged.
    fn count_forgotten(&mut self, charged: Usdc) {
        let held = charged.min(self.forgotten);
        self.forgettable = self.forgettable.saturating_sub(charged);
        self.forgotten = self.forgotten.saturating_sub(held);
        self.state.in_flight = self.state.in_flight.saturating_sub(held);
        self.state.acknowledged = self.state.acknowledged.saturating_add(charged);
    }

    /// Tells whether the channel still has a deposit or a call in progress.
    pub fn holds_something(&self) -> bool {
        self.holds_deposit() || !self.state.in_flight.is_zero()
    }

    /// Tells whether a part of the deposit is not paid out.
    pub fn holds_deposit(&self) -> bool {
        self.state.deposited > self.claimed
    }
}

/// Headroom taken for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub channel: ChannelId,
    pub owner: Address,
    pub price: Usdc,
    /// The total to sign.
    pub cumulative: Usdc,
    /// The sum that the channel holds; no signature goes beyond it.
    pub deposited: Usdc,
    /// The highest total that the owner had told before this promise.
    pub seen_total: Usdc,
}

impl Reservation {
    /// Tells whether the owner charged the call before this promise for it was made: such a call was promised,
    /// forgotten in a crash, and is now asked for again. Its charge is part of a total that was seen already,
    /// and is booked with what was forgotten; booking it here too would count it twice.
    pub fn repeats_forgotten(&self, receipt: &Receipt) -> bool {
        !receipt.charged.is_zero() && receipt.spent_total <= self.seen_total
    }
}

/// The charge of calls that this node forgot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgottenCharge {
    pub charged: Usdc,
    pub cause: Cause,
}

/// The reason that a channel cannot carry a call now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// No deposit with this owner yet, or it was withdrawn.
    NotOpen,
    /// Not enough left: top up.
    Low { available: Usdc },
    /// A close is pending; nothing new may be promised on it.
    Closing,
    /// The owner's books contradict the receipts; nothing more is promised to it.
    Distrusted,
}

/// The consumer's channels.
#[derive(Debug, Default)]
pub struct PayerChannels {
    channels: Mutex<Channels>,
    /// Told of every change that the chain confirmed.
    applied: Notify,
}

#[derive(Debug, Default)]
struct Channels {
    by_id: HashMap<ChannelId, PayerChannel>,
    /// The channels with each owner; the first one that is not elsewhere is in use.
    by_owner: HashMap<Address, Vec<ChannelId>>,
}

impl Channels {
    fn with(&self, owner: Address) -> impl Iterator<Item = &PayerChannel> {
        self.by_owner.get(&owner).into_iter().flatten().filter_map(|id| self.by_id.get(id))
    }

    fn in_use(&self, owner: Address) -> Option<&PayerChannel> {
        self.with(owner).find(|channel| !channel.is_elsewhere)
    }

    fn in_use_mut(&mut self, owner: Address) -> Option<&mut PayerChannel> {
        let id = self.in_use(owner)?.id;
        self.by_id.get_mut(&id)
    }

    /// Puts the channel first that new calls are promised on: of those with a deposit the one with the longest delay,
    /// because an owner serves no shorter one than it asks for; of equals the one in use.
    fn choose(&mut self, owner: Address) {
        let rank = |channel: &PayerChannel| {
            let may_pay = channel.holds_deposit() && !channel.is_elsewhere;
            may_pay.then_some(channel.config.close_delay_secs)
        };
        let best = self.with(owner).map(rank).max().flatten();
        let first = self.with(owner).position(|channel| rank(channel) == best);
        if let (Some(first), Some(ids)) = (first, self.by_owner.get_mut(&owner)) {
            ids[..=first].rotate_right(1);
        }
    }
}

impl PayerChannels {
    /// Takes over a channel of the ledger after the chain confirmed a change. What runs in
    /// memory (calls in flight, receipts whose commit is under way) stays as it is.
    pub fn apply(&self, row: &PayerChannelRow, close_at_secs: Option<u64>) {
        let now_secs = farthing_os::clock::now_secs();
        // A clock that was ahead once puts nothing off for longer than a restart does.
        let used_secs = row.used_secs.map(|used| used.min(now_secs));
        let mut channels = self.channels.lock();
        let owner = row.config.payee;
        let Channels { by_id, by_owner } = &mut *channels;
        let ids = by_owner.entry(owner).or_default();
        if !ids.contains(&row.id) {
            ids.push(row.id);
        }
        let channel = by_id.entry(row.id).or_insert_with(|| PayerChannel {
            id: row.id,
            config: row.config,
            is_elsewhere: false,
            state: PayerState { deposited: Usdc::ZERO, in_flight: Usdc::ZERO, ..row.state() },
            forgotten: Usdc::ZERO,
            forgettable: Usdc::ZERO,
            signed_before: Usdc::ZERO,
            forgotten_cause: Cause::Crash,
            open_at_start: HashSet::new(),
            is_settled: false,
            seen_total: Usdc::ZERO,
            receipted: row.receipted,
            is_compared: row.is_promised_on && !row.may_lack_calls,
            claimed: row.claimed,
            round: 0,
            close_at_secs,
            last_deposit: Usdc::ZERO,
            filled_at: None,
            last_used_secs: used_secs.unwrap_or(now_secs),
        });
        if row.deposited > channel.state.deposited {
            channel.last_deposit = row.deposited.saturating_sub(channel.state.deposited.max(row.claimed));
            channel.filled_at = Some(Instant::now());
        }
        channel.last_used_secs = channel.last_used_secs.max(used_secs.unwrap_or_default());
        channel.state.deposited = row.deposited;
        channel.state.acknowledged = channel.state.acknowledged.max(row.acknowledged);
        channel.state.stopped |= row.stopped;
        (channel.claimed, channel.round) = (row.claimed, row.round.unwrap_or_default());
        // The owner's total is no less than what it was paid, nor than what its receipts come to.
        channel.seen_total = channel.seen_total.max(row.claimed).max(row.acknowledged);
        channel.close_at_secs = close_at_secs;
        channels.choose(owner);
        drop(channels);
        self.applied.notify_waiters();
    }

    /// Takes back a part of what the chain alone showed as charged.
    pub fn let_go(&self, id: ChannelId, part: Usdc) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&id) {
            channel.state.acknowledged = channel.state.acknowledged.saturating_sub(part);
            channel.seen_total = channel.seen_total.saturating_sub(part).max(channel.state.acknowledged);
        }
    }

    /// Tells whether the owner was paid on chain for what no call of this node explains. `false` while this node may
    /// have forgotten calls in a crash.
    pub fn is_overclaimed(&self, id: ChannelId, claimed: Usdc) -> bool {
        let channels = self.channels.lock();
        let compared = channels.by_id.get(&id).filter(|channel| channel.is_compared);
        // What a crash made this node forget may have been charged, also where the owner never said so.
        compared.is_some_and(|channel| {
            !channel.state.unexplained(claimed.saturating_sub(channel.forgettable)).is_zero()
        })
    }

    /// Tells whether the owner was paid on chain for what no call that the ledger counts explains, forgotten or not.
    pub fn is_paid_beyond_calls(&self, id: ChannelId, claimed: Usdc) -> bool {
        let channels = self.channels.lock();
        let unexplained =
            |channel: &PayerChannel| channel.state.unexplained(claimed.saturating_add(channel.forgotten));
        channels.by_id.get(&id).is_some_and(|channel| !unexplained(channel).is_zero())
    }

    /// Reserves headroom for a call at `price` with `owner`.
    pub fn reserve(&self, owner: Address, price: Usdc, now_secs: u64) -> Result<Reservation, Shortage> {
        let mut channels = self.channels.lock();
        if channels.with(owner).any(|channel| channel.state.stopped) {
            return Err(Shortage::Distrusted);
        }
        let channel = channels.in_use_mut(owner).ok_or(Shortage::NotOpen)?;
        if channel.close_at_secs.is_some() {
            return Err(Shortage::Closing);
        }
        match channel.state.reserve(price) {
            Some(cumulative) => {
                channel.last_used_secs = now_secs;
                channel.is_compared = true;
                let deposited = channel.state.deposited;
                let seen_total = channel.seen_total;
                Ok(Reservation { channel: channel.id, owner, price, cumulative, deposited, seen_total })
            }
            None if !channel.holds_deposit() => Err(Shortage::NotOpen),
            None => Err(Shortage::Low { available: channel.state.available() }),
        }
    }

    /// Puts back what a promise of an earlier run has in flight.
    pub fn restore_in_flight(&self, call_id: CallId, reservation: &Reservation) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&reservation.channel) {
            channel.open_at_start.insert(call_id);
            channel.state.in_flight = channel.state.in_flight.saturating_add(reservation.price);
        }
    }

    /// Ends a call that was not charged.
    pub fn release(&self, reservation: &Reservation) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&reservation.channel) {
            channel.state.release(reservation.price);
            channel.settle_if_idle();
        }
    }

    /// Ends a call with its verified receipt. A total that it does not explain is [`PayerChannels::unexplained`] then.
    ///
    /// # Errors
    /// [`ReceiptMismatch::ChargedAbovePrice`]; the channel is then stopped.
    pub fn acknowledge(&self, reservation: &Reservation, receipt: &Receipt) -> Result<(), ReceiptMismatch> {
        let mut channels = self.channels.lock();
        let Some(channel) = channels.by_id.get_mut(&reservation.channel) else { return Ok(()) };
        channel.seen_total = channel.seen_total.max(receipt.spent_total);
        channel.count_call_of_before(receipt);
        match channel.state.acknowledge(reservation.price, receipt.charged, receipt.spent_total) {
            Ok(()) | Err(ReceiptMismatch::UnexplainedTotal { .. }) => Ok(()),
            Err(mismatch @ ReceiptMismatch::ChargedAbovePrice { .. }) => {
                channel.state.stopped = true;
                Err(mismatch)
            }
        }
    }

    /// Tells whether a charge of a call that was released fits into what was signed. One that does not was counted
    /// already, with what this node forgot, or was never owed.
    pub fn has_room_for_late(&self, receipt: &Receipt) -> bool {
        let channels = self.channels.lock();
        let state = channels.by_id.get(&receipt.channel).map(|channel| channel.state);
        state.is_some_and(|state| state.acknowledged.saturating_add(receipt.charged) <= state.signed)
    }

    /// Counts a call that was released and turns out to have been charged.
    pub fn acknowledge_late(&self, receipt: &Receipt) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&receipt.channel) {
            channel.seen_total = channel.seen_total.max(receipt.spent_total);
            channel.count_call_of_before(receipt);
            channel.state.acknowledge_late(receipt.charged);
        }
    }

    /// Counts a call that this node forgot and asked for again. `counted` is the part of its charge that was booked
    /// with what was forgotten.
    pub fn acknowledge_found(&self, receipt: &Receipt, counted: Usdc) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&receipt.channel) {
            let rest = receipt.charged.saturating_sub(counted);
            channel.seen_total = channel.seen_total.max(receipt.spent_total);
            channel.state.acknowledge_late(rest);
            channel.forgettable = channel.forgettable.saturating_sub(rest);
            let found = channel.forgotten.min(rest);
            channel.forgotten = channel.forgotten.saturating_sub(found);
            channel.state.release(found);
        }
    }

    /// Takes note of a receipt that the ledger has. One over more than was signed is not kept there.
    pub fn note_receipt(&self, receipt: &Receipt) {
        let mut channels = self.channels.lock();
        let channel = channels.by_id.get_mut(&receipt.channel);
        if let Some(channel) = channel.filter(|channel| receipt.spent_total <= channel.state.signed) {
            channel.receipted = channel.receipted.max(receipt.spent_total);
        }
    }

    /// Returns the least that the owner must count on a channel, because its receipts and the calls known here both do.
    pub fn receipted(&self, id: ChannelId) -> Option<Usdc> {
        let channels = self.channels.lock();
        let channel = channels.by_id.get(&id)?;
        Some(channel.receipted.min(channel.state.acknowledged)).filter(|total| !total.is_zero())
    }

    /// Takes note of the owner's total as its books have it now. It is lower than one that was told before when the owner
    /// lost records of calls that are not known here either.
    pub fn hear(&self, id: ChannelId, spent_total: Usdc) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&id) {
            channel.seen_total = spent_total.max(channel.claimed).max(channel.state.acknowledged);
        }
    }

    /// Returns what the owner counts beyond everything known here; zero on a channel that is stopped for it.
    pub fn unexplained(&self, owner: Address) -> Usdc {
        let channels = self.channels.lock();
        let open = channels.in_use(owner).filter(|channel| !channel.state.stopped);
        open.map_or(Usdc::ZERO, PayerChannel::unexplained)
    }

    /// Counts what was signed beyond everything known here as in flight: calls that the ledger lacks, which the owner
    /// may have charged or may yet charge.
    pub fn remember(&self, id: ChannelId, signed: Usdc, cause: Cause) {
        let mut channels = self.channels.lock();
        let Some(channel) = channels.by_id.get_mut(&id) else { return };
        let known = channel.state.acknowledged.saturating_add(channel.state.in_flight);
        let forgotten = signed.saturating_sub(known);
        let forgettable = signed.saturating_sub(channel.state.acknowledged);
        channel.forgettable = channel.forgettable.max(forgettable);
        channel.is_settled = false;
        channel.forgotten = channel.forgotten.saturating_add(forgotten);
        channel.signed_before = channel.signed_before.max(signed);
        channel.forgotten_cause = cause;
        channel.state.in_flight = channel.state.in_flight.saturating_add(forgotten);
        channel.state.signed = channel.state.signed.max(signed);
    }

    /// Acknowledges what the owner's total cannot owe to any call known here: forgotten ones were charged. No owner is
    /// owed more than was signed, so nothing is believed beyond that.
    pub fn explain(&self, id: ChannelId, spent_total: Usdc) -> Option<ForgottenCharge> {
        let mut channels = self.channels.lock();
        let channel = channels.by_id.get_mut(&id)?;
        channel.seen_total = channel.seen_total.max(spent_total);
        let in_flight = channel.state.in_flight.saturating_sub(channel.forgotten);
        let known = channel.state.acknowledged.saturating_add(in_flight);
        let owed_at_most = spent_total.min(channel.state.signed);
        let charged = owed_at_most.saturating_sub(known).min(channel.forgettable);
        channel.count_forgotten(charged);
        channel.settle_if_idle();
        let explained = ForgottenCharge { charged, cause: channel.forgotten_cause };
        (!charged.is_zero()).then_some(explained)
    }

    /// Counts what the ledger has booked by itself, because an emptied channel paid it and no call explains it.
    pub fn count_booked(&self, id: ChannelId, charged: Usdc) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&id) {
            channel.count_forgotten(charged);
        }
    }

    /// Gives forgotten headroom back: every call that could have used it is over.
    pub fn forgive(&self, id: ChannelId) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&id) {
            let forgotten = std::mem::take(&mut channel.forgotten);
            channel.state.release(forgotten);
        }
    }

    /// From now on nothing is put down to forgotten calls but what calls that are open now hide.
    pub fn settle(&self, id: ChannelId) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&id) {
            channel.is_settled = true;
            channel.settle_if_idle();
        }
    }

    /// Trusts a channel again that was stopped and is empty: what its owner was paid is what it is owed.
    pub fn resume(&self, id: ChannelId) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&id) {
            channel.state.stopped = false;
            channel.seen_total = channel.claimed.max(channel.state.acknowledged);
        }
    }

    /// Promises nothing more on a channel, nor on another one with its owner.
    pub fn stop(&self, id: ChannelId) {
        if let Some(channel) = self.channels.lock().by_id.get_mut(&id) {
            channel.state.stopped = true;
        }
    }

    /// Forgets a channel that holds nothing, and on which nothing was promised.
    pub fn forget(&self, id: ChannelId) {
        let Channels { by_id, by_owner } = &mut *self.channels.lock();
        by_id.remove(&id);
        by_owner.values_mut().for_each(|ids| ids.retain(|other| *other != id));
        by_owner.retain(|_, ids| !ids.is_empty());
    }

    /// The channel with an owner that new calls are promised on.
    pub fn in_use(&self, owner: Address) -> Option<PayerChannel> {
        self.channels.lock().in_use(owner).cloned()
    }

    pub fn get(&self, id: ChannelId) -> Option<PayerChannel> {
        self.channels.lock().by_id.get(&id).cloned()
    }

    /// All channels but the empty ones that another one took the place of.
    pub fn all(&self) -> Vec<PayerChannel> {
        let channels = self.channels.lock();
        let matters = |channel: &&PayerChannel| {
            let in_use = || channels.in_use(channel.config.payee).map(|in_use| in_use.id);
            channel.holds_something() || channel.state.stopped || in_use() == Some(channel.id)
        };
        channels.by_id.values().filter(matters).cloned().collect()
    }
}

#[cfg(test)]
pub(crate) mod tests;
