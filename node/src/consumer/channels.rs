//! The channels this node pays with: one per owner, counted in memory, backed by the ledger.
//!
//! A call reserves headroom before anything is signed and ends its reservation exactly once: released when
//! nothing was charged, acknowledged with the owner's receipt, or left in flight while its end is unknown.
//! What the chain confirms arrives through [`Channels::apply`]. The lock is held for a few additions, never
//! across an await.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use farthing_ledger::{Cause, PayerChannelRow};
use farthing_protocol::{
    Address, ChannelConfig, ChannelId, Usdc,
    channel::{PayerState, Receipt, ReceiptMismatch},
};

/// One channel as the consumer sees it.
#[derive(Clone, Debug)]
pub struct PayerChannel {
    pub id: ChannelId,
    pub config: ChannelConfig,
    pub state: PayerState,
    /// The part of what is in flight that this node signed and then forgot.
    pub forgotten: Usdc,
    /// Why it did.
    pub forgotten_cause: Cause,
    /// The highest total that the owner has told, or the chain has paid to it.
    pub seen_total: Usdc,
    /// Calls were promised since the start, so what a crash made this node forget is known.
    is_compared: bool,
    pub claimed: Usdc,
    /// The payer's withdrawal is possible from this second on.
    pub close_at_secs: Option<u64>,
    /// The last increase of the deposit, from which a top-up is computed.
    pub last_deposit: Usdc,
    pub last_used_secs: u64,
}

impl PayerChannel {
    /// What the owner counts beyond everything known here.
    #[must_use]
    pub fn unexplained(&self) -> Usdc {
        self.state.unexplained(self.seen_total)
    }

    /// Whether the channel still has a deposit or a call in progress.
    #[must_use]
    pub fn holds_something(&self) -> bool {
        self.state.deposited > self.claimed || !self.state.in_flight.is_zero()
    }
}

/// Headroom taken for one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation {
    pub channel: ChannelId,
    pub owner: Address,
    pub price: Usdc,
    /// What to sign.
    pub cumulative: Usdc,
    /// What the channel holds; no signature goes beyond it.
    pub deposited: Usdc,
    /// The highest total that the owner had told before this promise.
    pub seen_total: Usdc,
}

impl Reservation {
    /// Whether the owner charged the call before this promise for it was made: a call that was promised,
    /// forgotten in a crash, and is now asked for again. Its charge is part of a total that was seen already,
    /// and is booked with what was forgotten; booking it here too would count it twice.
    #[must_use]
    pub fn repeats_forgotten(&self, receipt: &Receipt) -> bool {
        !receipt.charged.is_zero() && receipt.spent_total <= self.seen_total
    }
}

/// What calls that this node forgot were charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Explained {
    pub channel: ChannelId,
    pub charged: Usdc,
    pub cause: Cause,
}

/// Why a channel cannot carry a call now.
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

/// The consumer's channels, by owner.
#[derive(Debug, Default)]
pub struct Channels {
    by_owner: Mutex<HashMap<Address, PayerChannel>>,
}

impl Channels {
    /// Takes over a channel of the ledger, at start or after the chain confirmed a change. What runs in
    /// memory (calls in flight, receipts whose commit is under way) stays as it is.
    ///
    /// An owner that changed its terms has a second channel: the first one is used until nothing is left in it.
    pub fn apply(&self, row: &PayerChannelRow, close_at_secs: Option<u64>) {
        let mut channels = self.lock();
        match channels.get(&row.config.payee) {
            Some(other) if other.id != row.id && other.holds_something() => return,
            Some(other) if other.id != row.id && row.deposited > row.claimed => {
                channels.remove(&row.config.payee);
            }
            Some(other) if other.id != row.id => return,
            _ => {}
        }
        let channel = channels.entry(row.config.payee).or_insert_with(|| PayerChannel {
            id: row.id,
            config: row.config,
            state: PayerState { deposited: Usdc::ZERO, in_flight: Usdc::ZERO, ..row.state() },
            forgotten: Usdc::ZERO,
            forgotten_cause: Cause::Crash,
            seen_total: Usdc::ZERO,
            is_compared: false,
            claimed: row.claimed,
            close_at_secs,
            last_deposit: Usdc::ZERO,
            last_used_secs: crate::clock::now_secs(),
        });
        if row.deposited > channel.state.deposited {
            channel.last_deposit = row.deposited.saturating_sub(channel.state.deposited.max(row.claimed));
        }
        channel.state.deposited = row.deposited;
        channel.state.acknowledged = channel.state.acknowledged.max(row.acknowledged);
        channel.state.stopped |= row.stopped;
        channel.claimed = row.claimed;
        channel.seen_total = channel.seen_total.max(row.claimed);
        channel.close_at_secs = close_at_secs;
    }

    /// Whether the owner was paid on chain for what no call of this node explains. `false` while this node may have
    /// forgotten calls in a crash.
    #[must_use]
    pub fn is_overclaimed(&self, owner: Address, id: ChannelId, claimed: Usdc) -> bool {
        let channels = self.lock();
        let compared = channels.get(&owner).filter(|channel| channel.id == id && channel.is_compared);
        compared.is_some_and(|channel| !channel.state.unexplained(claimed).is_zero())
    }

    /// Reserves headroom for a call at `price` with `owner`.
    ///
    /// # Errors
    /// [`Shortage`], which says what would help.
    pub fn reserve(&self, owner: Address, price: Usdc, now_secs: u64) -> Result<Reservation, Shortage> {
        let mut channels = self.lock();
        let channel = channels.get_mut(&owner).ok_or(Shortage::NotOpen)?;
        if channel.state.stopped {
            return Err(Shortage::Distrusted);
        }
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
            None if channel.state.deposited <= channel.claimed => Err(Shortage::NotOpen),
            None => Err(Shortage::Low { available: channel.state.available() }),
        }
    }

    /// Puts back what a promise of an earlier run has in flight.
    pub fn restore_in_flight(&self, reservation: &Reservation) {
        if let Some(channel) = self.lock().get_mut(&reservation.owner) {
            channel.state.in_flight = channel.state.in_flight.saturating_add(reservation.price);
        }
    }

    /// Ends a call that was not charged.
    pub fn release(&self, reservation: &Reservation) {
        if let Some(channel) = self.lock().get_mut(&reservation.owner) {
            channel.state.release(reservation.price);
        }
    }

    /// Ends a call with its verified receipt. A total that it does not explain is [`Channels::unexplained`] then.
    ///
    /// # Errors
    /// [`ReceiptMismatch::ChargedAbovePrice`]; the channel is then stopped.
    pub fn acknowledge(&self, reservation: &Reservation, receipt: &Receipt) -> Result<(), ReceiptMismatch> {
        let mut channels = self.lock();
        let Some(channel) = channels.get_mut(&reservation.owner) else { return Ok(()) };
        channel.seen_total = channel.seen_total.max(receipt.spent_total);
        match channel.state.acknowledge(reservation.price, receipt.charged, receipt.spent_total) {
            Ok(()) | Err(ReceiptMismatch::UnexplainedTotal { .. }) => Ok(()),
            Err(mismatch @ ReceiptMismatch::ChargedAbovePrice { .. }) => {
                channel.state.stopped = true;
                Err(mismatch)
            }
        }
    }

    /// Counts a call that was released and turns out to have been charged.
    pub fn acknowledge_late(&self, owner: Address, receipt: &Receipt) {
        if let Some(channel) = self.lock().get_mut(&owner) {
            channel.seen_total = channel.seen_total.max(receipt.spent_total);
            channel.state.acknowledge_late(receipt.charged);
        }
    }

    /// Counts a call that this node forgot and asked for again, before its charge was booked with what was forgotten.
    pub fn acknowledge_found(&self, owner: Address, receipt: &Receipt) {
        self.acknowledge_late(owner, receipt);
        if let Some(channel) = self.lock().get_mut(&owner) {
            let found = channel.forgotten.min(receipt.charged);
            channel.forgotten = channel.forgotten.saturating_sub(found);
            channel.state.release(found);
        }
    }

    /// Takes note of a total of the owner.
    pub fn see(&self, owner: Address, spent_total: Usdc) {
        if let Some(channel) = self.lock().get_mut(&owner) {
            channel.seen_total = channel.seen_total.max(spent_total);
        }
    }

    /// What the owner counts beyond everything known here; zero on a channel that is stopped for it.
    #[must_use]
    pub fn unexplained(&self, owner: Address) -> Usdc {
        let channels = self.lock();
        let open = channels.get(&owner).filter(|channel| !channel.state.stopped);
        open.map_or(Usdc::ZERO, PayerChannel::unexplained)
    }

    /// Counts what was signed beyond everything known here as in flight: calls that the ledger lacks, which the owner
    /// may have charged or may yet charge.
    pub fn remember(&self, owner: Address, signed: Usdc, cause: Cause) {
        let mut channels = self.lock();
        let Some(channel) = channels.get_mut(&owner) else { return };
        let known = channel.state.acknowledged.saturating_add(channel.state.in_flight);
        let forgotten = signed.saturating_sub(known);
        channel.forgotten = channel.forgotten.saturating_add(forgotten);
        channel.forgotten_cause = cause;
        channel.state.in_flight = channel.state.in_flight.saturating_add(forgotten);
        channel.state.signed = channel.state.signed.max(signed);
    }

    /// Acknowledges what the owner's total cannot owe to any call known here: forgotten ones were charged.
    pub fn explain(&self, owner: Address, spent_total: Usdc) -> Option<Explained> {
        let mut channels = self.lock();
        let channel = channels.get_mut(&owner)?;
        channel.seen_total = channel.seen_total.max(spent_total);
        let in_flight = channel.state.in_flight.saturating_sub(channel.forgotten);
        let known = channel.state.acknowledged.saturating_add(in_flight);
        let charged = spent_total.saturating_sub(known).min(channel.forgotten);
        channel.forgotten = channel.forgotten.saturating_sub(charged);
        channel.state.in_flight = channel.state.in_flight.saturating_sub(charged);
        channel.state.acknowledged = channel.state.acknowledged.saturating_add(charged);
        let explained = Explained { channel: channel.id, charged, cause: channel.forgotten_cause };
        (!charged.is_zero()).then_some(explained)
    }

    /// Gives forgotten headroom back: every call that could have used it is over.
    pub fn forgive(&self, owner: Address) {
        if let Some(channel) = self.lock().get_mut(&owner) {
            let forgotten = std::mem::take(&mut channel.forgotten);
            channel.state.release(forgotten);
        }
    }

    /// Promises nothing more to this owner.
    pub fn stop(&self, owner: Address) {
        if let Some(channel) = self.lock().get_mut(&owner) {
            channel.state.stopped = true;
        }
    }

    #[must_use]
    pub fn get(&self, owner: Address) -> Option<PayerChannel> {
        self.lock().get(&owner).cloned()
    }

    #[must_use]
    pub fn all(&self) -> Vec<PayerChannel> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, PayerChannel>> {
        self.by_owner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Address = Address::from_bytes([2; 20]);

    const fn usdc(micros: u64) -> Usdc {
        Usdc::from_micros(micros)
    }

    fn funded(micros: u64) -> Channels {
        let config = ChannelConfig {
            payer: Address::from_bytes([1; 20]),
            payee: OWNER,
            token: Address::ZERO,
            signer: Address::from_bytes([1; 20]),
            close_delay_secs: 86_400,
            salt: [0; 32],
        };
        let channels = Channels::default();
        channels.apply(&row(config, micros), None);
        channels
    }

    fn row(config: ChannelConfig, micros: u64) -> PayerChannelRow {
        PayerChannelRow {
            id: ChannelId::NONE,
            config,
            deposited: usdc(micros),
            claimed: usdc(0),
            stopped: false,
            acknowledged: usdc(0),
            signed: usdc(0),
            in_flight: usdc(0),
        }
    }

    #[test]
    fn what_the_chain_paid_to_an_owner_beyond_all_calls_is_unexplained() {
        let channels = funded(100);
        let paid = |micros| PayerChannelRow {
            claimed: usdc(micros),
            ..row(channels.get(OWNER).unwrap().config, 100)
        };
        channels.apply(&paid(7), None);
        assert!(!channels.is_overclaimed(OWNER, ChannelId::NONE, usdc(7)), "it may have forgotten calls");
        assert_eq!(channels.unexplained(OWNER), usdc(7));
        let channels = funded(100);
        let call = channels.reserve(OWNER, usdc(10), 0).unwrap();
        channels.apply(&paid(10), None);
        assert_eq!(channels.unexplained(OWNER), usdc(0), "the call in progress explains it");
        channels.release(&call);
        assert_eq!(channels.unexplained(OWNER), usdc(10), "it was not charged");
        assert!(channels.is_overclaimed(OWNER, ChannelId::NONE, usdc(10)));
    }

    fn receipt(charged: u64, spent_total: u64) -> Receipt {
        Receipt {
            channel: ChannelId::NONE,
            call_id: farthing_protocol::CallId::from_bytes([0; 16]),
            request_hash: [0; 32],
            response_hash: [0; 32],
            outcome: 0,
            charged: usdc(charged),
            spent_total: usdc(spent_total),
            time_secs: 0,
        }
    }

    #[test]
    fn concurrent_calls_never_promise_the_same_money_twice() {
        let channels = funded(25);
        let first = channels.reserve(OWNER, usdc(10), 0).unwrap();
        let second = channels.reserve(OWNER, usdc(10), 0).unwrap();
        assert_eq!((first.cumulative, second.cumulative), (usdc(10), usdc(20)));
        assert_eq!(channels.reserve(OWNER, usdc(10), 0), Err(Shortage::Low { available: usdc(5) }));
        channels.acknowledge(&second, &receipt(10, 10)).unwrap();
        channels.release(&first);
        assert_eq!(channels.reserve(OWNER, usdc(10), 0).unwrap().cumulative, usdc(20));
    }

    #[test]
    fn an_owner_that_overcharges_gets_no_further_promise() {
        let channels = funded(100);
        let reservation = channels.reserve(OWNER, usdc(10), 0).unwrap();
        assert!(channels.acknowledge(&reservation, &receipt(11, 11)).is_err());
        assert_eq!(channels.reserve(OWNER, usdc(10), 0), Err(Shortage::Distrusted));
    }

    #[test]
    fn a_total_that_nothing_explains_is_seen_until_a_late_receipt_explains_it() {
        let channels = funded(100);
        let [first, second] = [(); 2].map(|()| channels.reserve(OWNER, usdc(10), 0).unwrap());
        channels.release(&first);
        channels.acknowledge(&second, &receipt(10, 20)).unwrap();
        assert_eq!(channels.unexplained(OWNER), usdc(10));
        channels.acknowledge_late(OWNER, &receipt(10, 20));
        assert_eq!(channels.unexplained(OWNER), Usdc::ZERO);
        assert_eq!(channels.get(OWNER).unwrap().state.acknowledged, usdc(20));
        assert_eq!(channels.reserve(OWNER, usdc(10), 0).unwrap().cumulative, usdc(30));
    }

    #[test]
    fn a_total_may_include_calls_whose_receipts_are_still_under_way() {
        let channels = funded(100);
        let first = channels.reserve(OWNER, usdc(10), 0).unwrap();
        let second = channels.reserve(OWNER, usdc(10), 0).unwrap();
        channels.acknowledge(&first, &receipt(10, 20)).unwrap();
        channels.acknowledge(&second, &receipt(10, 20)).unwrap();
        assert_eq!(channels.get(OWNER).unwrap().state.acknowledged, usdc(20));
    }

    #[test]
    fn forgotten_promises_stay_covered_until_the_owners_total_shows_their_charge() {
        let channels = funded(100);
        channels.remember(OWNER, usdc(20), Cause::Crash);
        let known = channels.reserve(OWNER, usdc(10), 0).unwrap();
        assert_eq!(known.cumulative, usdc(30), "whatever the owner charges for forgotten calls is covered");
        // One forgotten call may explain the total as well as the known one does.
        assert_eq!(channels.explain(OWNER, usdc(10)), None);
        channels.acknowledge(&known, &receipt(10, 20)).unwrap();
        let explained = |charged| {
            Some(Explained { channel: ChannelId::NONE, charged: usdc(charged), cause: Cause::Crash })
        };
        assert_eq!(channels.explain(OWNER, usdc(20)), explained(10));
        assert_eq!(channels.explain(OWNER, usdc(20)), None, "a charge is counted once");
        channels.forgive(OWNER);
        let state = channels.get(OWNER).unwrap().state;
        assert_eq!((state.acknowledged, state.in_flight), (usdc(20), usdc(0)));
    }

    #[test]
    fn a_forgotten_call_that_is_asked_for_again_is_counted_once() {
        for other_call_runs in [false, true] {
            let channels = funded(100);
            channels.remember(OWNER, usdc(10), Cause::Crash);
            let other = other_call_runs.then(|| channels.reserve(OWNER, usdc(10), 0).unwrap());
            // The owner tells its total, which contains the forgotten call.
            let _ = channels.explain(OWNER, usdc(10));
            let again = channels.reserve(OWNER, usdc(10), 0).unwrap();
            let first_receipt = receipt(10, 10);
            assert!(again.repeats_forgotten(&first_receipt));
            channels.release(&again);
            if let Some(other) = other {
                assert!(!other.repeats_forgotten(&receipt(10, 20)));
                channels.acknowledge(&other, &receipt(10, 20)).unwrap();
                let _ = channels.explain(OWNER, usdc(20));
            }
            let state = channels.get(OWNER).unwrap().state;
            let charged = if other_call_runs { 20 } else { 10 };
            assert_eq!((state.acknowledged, state.in_flight), (usdc(charged), usdc(0)));
        }
    }

    #[test]
    fn a_forgotten_call_that_is_found_before_it_was_booked_is_counted_once() {
        let channels = funded(100);
        channels.remember(OWNER, usdc(10), Cause::Crash);
        let other = channels.reserve(OWNER, usdc(10), 0).unwrap();
        // The other call may owe the total as well, so nothing is booked yet.
        assert_eq!(channels.explain(OWNER, usdc(10)), None);
        channels.acknowledge_found(OWNER, &receipt(10, 10));
        channels.acknowledge(&other, &receipt(10, 20)).unwrap();
        assert_eq!(channels.explain(OWNER, usdc(20)), None);
        let state = channels.get(OWNER).unwrap().state;
        assert_eq!((state.acknowledged, state.in_flight), (usdc(20), usdc(0)));
        assert_eq!(channels.unexplained(OWNER), Usdc::ZERO);
    }

    #[test]
    fn an_owner_cannot_explain_more_than_was_signed() {
        let channels = funded(100);
        channels.remember(OWNER, usdc(20), Cause::Crash);
        assert_eq!(channels.explain(OWNER, usdc(90)).map(|found| found.charged), Some(usdc(20)));
        assert_eq!(channels.get(OWNER).unwrap().state.acknowledged, usdc(20));
    }

    #[test]
    fn a_second_channel_takes_over_when_the_first_is_empty() {
        let channels = funded(100);
        let config = channels.get(OWNER).unwrap().config;
        let second = PayerChannelRow { id: ChannelId::from_bytes([9; 32]), ..row(config, 50) };
        channels.apply(&second, None);
        assert_eq!(channels.get(OWNER).unwrap().id, ChannelId::NONE, "the first still has a deposit");
        channels.apply(&row(config, 0), None);
        channels.apply(&second, None);
        assert_eq!(channels.get(OWNER).unwrap().id, second.id);
        channels.apply(&row(config, 0), None);
        assert_eq!(channels.get(OWNER).unwrap().id, second.id, "an empty one changes nothing");
    }

    #[test]
    fn nothing_is_promised_while_a_close_is_pending() {
        let channels = funded(100);
        let config = channels.get(OWNER).unwrap().config;
        channels.apply(&row(config, 100), Some(1));
        assert_eq!(channels.reserve(OWNER, usdc(10), 0), Err(Shortage::Closing));
    }
}
