//! Accounts of what this node has promised and paid: channels and limits in memory, and the ledger behind them.
//!
//! An owner's words come in as values and nothing here waits for a peer, so that a test can play every history of a
//! network to these books (`node/tests/simulation`).
//!
//! In the order of a call: what is known of its id ([`Accounts::earlier`]); what it holds before its promise
//! ([`Hold`]); its end, which is counted at once ([`Accounts::count`]) and stored in the background ([`Accounts::store`]),
//! or given back ([`Accounts::release`]). After a start, [`Accounts::restore`] and [`Accounts::take_over`].

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_ledger::{
    Acknowledgement, ChannelChange, DayLimits, Ledger, LedgerError, PayerChannelFacts, Promise, Purchase,
    PurchaseEnd, Side, Uncharged,
};
use farthing_os::{clock, killpoint};
use farthing_protocol::{
    Address, CallId, ChannelId, Domain, Receipt, Usdc, Verified, Voucher,
    call::{ChannelSync, Payment},
    channel::ReceiptMismatch,
    resolution::Copies,
};
use farthing_shared::keyed_mutex::KeyedMutex;
use parking_lot::{Mutex, MutexGuard};

use super::{
    BuyError,
    answer::ExpectedAnswer,
    channels::{ForgottenCharge, PayerChannels, Reservation},
    spending::{Grant, Spending, SpendingCaps},
    undecided::UndecidedCalls,
};

/// Stands for the secrets of calls that nobody remembers; none has this name.
const NO_SECRET: &str = "";

/// The sum that a call may cost, counted against the limits of its day. Dropped, it is given back.
#[derive(Debug)]
pub struct Hold {
    accounts: Arc<Accounts>,
    day: u32,
    secret: String,
    price: Usdc,
    /// The limits at that time.
    pub limits: DayLimits,
    is_kept: bool,
}

impl Hold {
    /// Of a price that was just counted for a secret on a day.
    fn new(accounts: &Arc<Accounts>, (day, secret, price): (u32, &str, Usdc), limits: DayLimits) -> Self {
        Self { accounts: Arc::clone(accounts), day, secret: secret.to_owned(), price, limits, is_kept: false }
    }

    /// Leaves it counted: only the call's end gives it back from now on.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.is_kept {
            self.accounts.spending.lock().settle(self.day, &self.secret, self.price, Usdc::ZERO);
        }
    }
}

/// Everything one attempt promised, until it ends.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The call that is sent, and what the ledger keeps of it, which shares it.
    pub promise: Arc<Promise>,
    /// Of the request; empty where nothing is sent any more.
    pub body: Bytes,
    pub expected: ExpectedAnswer,
    /// `None` for a free call.
    pub reservation: Option<Reservation>,
    pub funding: Duration,
}

impl Attempt {
    /// The attempt behind a promise of an earlier moment.
    pub fn of(promise: Promise) -> Self {
        let reservation = match promise.request.payment {
            Payment::Free => None,
            Payment::Channel { channel, cumulative, .. } => Some(Reservation {
                channel,
                owner: promise.owner,
                price: promise.request.price,
                cumulative,
                deposited: cumulative,
                seen_total: promise.seen_total,
            }),
        };
        let expected = ExpectedAnswer {
            owner: promise.owner,
            call_id: promise.request.call_id,
            channel: promise.channel(),
            request_hash: promise.request_hash,
            price: promise.request.price,
            charge_policy: promise.charge_policy,
        };
        Self { promise: promise.into(), body: Bytes::new(), expected, reservation, funding: Duration::ZERO }
    }

    pub fn call_id(&self) -> CallId {
        self.promise.request.call_id
    }
}

/// Tells whether an owner's word so long after a start covers every copy that an earlier run sent: before, one may
/// still arrive. Nothing else tells of calls that a crash kept out of the ledger.
pub fn tells_of_all(since_start: Duration) -> bool {
    !Copies::in_doubt(Duration::ZERO).may_arrive(since_start)
}

/// Returns what a receipt for a call that has ended must agree with.
pub const fn expected_of(purchase: &Purchase) -> ExpectedAnswer {
    ExpectedAnswer {
        owner: purchase.owner,
        call_id: purchase.call_id,
        channel: purchase.channel,
        request_hash: purchase.request_hash,
        price: purchase.price,
        charge_policy: purchase.charge_policy,
    }
}

/// The ledger's knowledge of a call id.
#[derive(Debug)]
pub enum Earlier {
    Nothing,
    /// Promised, and its end is not known.
    Open(Box<Promise>),
    /// Answered, with this receipt.
    Bought(Box<Purchase>),
    /// Ended as not charged, while a copy was unaccounted for.
    InDoubt,
}

/// A receipt that memory counts and the ledger does not have yet.
#[derive(Debug)]
pub struct CountedReceipt {
    /// Headroom of a call that was promised before, forgotten, and asked for again: its charge is part of a total that
    /// was seen before, and counted with what was forgotten.
    pub found: Option<Reservation>,
    /// The owner charged more than the price; its channel is stopped.
    pub mismatch: Option<ReceiptMismatch>,
}

/// The books of what this node buys.
#[derive(Debug)]
pub struct Accounts {
    ledger: Ledger,
    channels: Arc<PayerChannels>,
    spending: Mutex<Spending>,
    undecided: UndecidedCalls,
    /// Of each owner; held while the ledger and memory are brought to count the same of what no call explains.
    booking: KeyedMutex<Address>,
    wallet: Address,
    domain: Domain,
}

impl Accounts {
    /// The books of `wallet`, whose signatures count in `domain`.
    pub fn new(ledger: Ledger, channels: Arc<PayerChannels>, (wallet, domain): (Address, Domain)) -> Self {
        let (spending, undecided, booking) = Default::default();
        Self { ledger, channels, spending, undecided, booking, wallet, domain }
    }

    /// The calls whose end nobody waits for any more.
    pub const fn undecided(&self) -> &UndecidedCalls {
        &self.undecided
    }

    /// The amounts of `day` beside those of other days. A day begins with what the ledger holds of it.
    pub fn spending_of(&self, day: u32) -> Result<MutexGuard<'_, Spending>, LedgerError> {
        let mut spending = self.spending.lock();
        if !spending.counts(day) {
            let open = self.ledger.unresolved()?.into_iter().filter(|promise| promise.day() == day);
            let open = open.map(|promise| (promise.secret, promise.request.price));
            let charged = self.ledger.day_totals(day)?;
            spending.begin(day, charged.into_iter().chain(open));
        }
        Ok(spending)
    }

    /// Begins a day with what the ledger holds of it now, unless it has begun: what is stored from now on is counted apart.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn begin_day(&self, day: u32) -> Result<(), LedgerError> {
        self.spending_of(day).map(drop)
    }

    /// Reads what the ledger knows of a call id. A call that ended uncharged may be made anew.
    pub fn earlier(&self, call_id: CallId) -> Result<Earlier, LedgerError> {
        if let Some(promise) = self.ledger.promise_of(call_id)? {
            return Ok(Earlier::Open(Box::new(promise)));
        }
        let Some(purchase) = self.ledger.purchase(call_id)? else { return Ok(Earlier::Nothing) };
        Ok(match &purchase.end {
            end if end.is_answered() => Earlier::Bought(Box::new(purchase)),
            PurchaseEnd::Released { in_doubt: true, .. } => Earlier::InDoubt,
            _ => Earlier::Nothing,
        })
    }

    /// Counts what an earlier run of this node left open. All of it before the first question: a receipt also counts
    /// what other open and forgotten calls were charged, and would contradict books that do not know of them yet.
    pub fn restore(&self, open: &[Promise]) -> Result<(), LedgerError> {
        // Today's promises count before any of them ends.
        self.begin_day(farthing_ledger::day_of(clock::now_secs()))?;
        for promise in open {
            // An owner that is not asked is not silent.
            if !self.channels.is_signed_elsewhere(promise.channel(), &self.domain) {
                self.undecided.restore(promise.owner, promise.request.call_id, promise.request.price);
            }
            if let Some(reservation) = Attempt::of(promise.clone()).reservation {
                self.channels.restore_in_flight(promise.request.call_id, &reservation);
            }
        }
        Ok(())
    }

    /// Counts `price` against the limits of `day`.
    ///
    /// # Errors
    /// The limit that it passes, or that the ledger cannot be read.
    pub fn hold(
        self: &Arc<Self>,
        day: u32,
        grant: &Grant,
        price: Usdc,
        limits: &SpendingCaps,
    ) -> Result<Hold, BuyError> {
        let mut spending = self.spending_of(day)?;
        spending.reserve(limits, day, grant, price)?;
        let limits = DayLimits { node: limits.per_day, secret: limits.per_secret_day_of(grant) };
        Ok(Hold::new(self, (day, &grant.name, price), limits))
    }

    /// Ends an attempt that was not charged. While a copy of it is unaccounted for, a later receipt is still taken.
    pub async fn release(&self, attempt: &Attempt, why: impl Into<Uncharged>, copies: &Copies) {
        if let Some(reservation) = &attempt.reservation {
            self.channels.release(reservation);
        }
        self.settle(attempt, Usdc::ZERO);
        let (call_id, now_secs) = (attempt.call_id(), clock::now_secs());
        let released = match copies.are_in_doubt() {
            true => self.ledger.release_in_doubt(call_id, why, now_secs).await,
            false => self.ledger.release(call_id, why, now_secs).await,
        };
        if let Err(error) = released {
            tracing::warn!(%call_id, %error, "a released call was not stored");
        }
    }

    /// Tells whether an unasked receipt can be that of a call which this node made and then forgot in a crash.
    pub fn may_be_forgotten(&self, attempt: &Attempt, receipt: &Receipt) -> bool {
        let Some(reservation) = &attempt.reservation else { return false };
        let channel = self.channels.get(reservation.channel);
        channel.is_some_and(|channel| receipt.charged <= channel.forgettable)
            || self.is_of_before(reservation, receipt)
    }

    /// Tells whether a receipt charges what is booked already as a call that this ledger lacks: nothing is paid for it now.
    pub fn is_of_before(&self, reservation: &Reservation, receipt: &Receipt) -> bool {
        let is_booked = || {
            let adjusted = self.ledger.adjusted_with(Side::Payer, reservation.owner);
            adjusted.is_ok_and(|adjusted| receipt.charged <= adjusted)
        };
        reservation.repeats_forgotten(receipt) && is_booked()
    }

    /// Counts a verified receipt: limits and channel, at once.
    #[must_use]
    pub fn count(&self, attempt: &Attempt, receipt: &Receipt) -> CountedReceipt {
        self.settle(attempt, receipt.charged);
        let found = attempt.reservation.filter(|held| held.repeats_forgotten(receipt));
        let mismatch = match (found, attempt.reservation) {
            (Some(_), _) | (_, None) => None,
            (None, Some(reservation)) => self.channels.acknowledge(&reservation, receipt).err(),
        };
        CountedReceipt { found, mismatch }
    }

    /// Stores a receipt that was counted, and books what its total says of forgotten calls.
    pub async fn store(&self, attempt: &Attempt, counted: &CountedReceipt, acknowledgement: Acknowledgement) {
        let (call_id, owner) = (attempt.call_id(), attempt.expected.owner);
        if let Some(reservation) = &counted.found {
            return self.book_found(call_id, reservation, acknowledgement).await;
        }
        let receipt = acknowledgement.receipt.clone();
        killpoint::reached("consumer.before_acknowledge");
        match self.ledger.acknowledge(call_id, acknowledgement).await {
            Ok(()) => self.channels.note_receipt(&receipt),
            Err(error) => {
                tracing::error!(%call_id, %error, "a receipt was not stored; the node asks again after a restart");
            }
        }
        killpoint::reached("consumer.after_acknowledge");
        self.book_forgotten(owner, receipt.channel, receipt.spent_total).await;
    }

    /// Books the receipt of a call that was promised before, forgotten, and asked for again. Its charge is part of a
    /// total that the owner told before, so it is counted already, or is about to be, with what was forgotten.
    async fn book_found(&self, call_id: CallId, reservation: &Reservation, found: Acknowledgement) {
        let (owner, receipt) = (reservation.owner, found.receipt.clone());
        self.book_forgotten(owner, reservation.channel, reservation.seen_total).await;
        let found = self.ledger.acknowledge_found(call_id, found).await;
        // Until then it is in flight: the next voucher covers it, whichever way it counts.
        self.channels.release(reservation);
        match found {
            Ok(taken) => {
                let mut counted = Usdc::ZERO;
                for (day, part) in taken {
                    counted = counted.saturating_add(part);
                    self.spending.lock().settle(day, NO_SECRET, part, Usdc::ZERO);
                }
                self.channels.acknowledge_found(&receipt, counted);
                self.channels.note_receipt(&receipt);
            }
            Err(error) => {
                tracing::error!(%call_id, %error, "a receipt was not stored; the node asks again after a restart");
            }
        }
    }

    /// Books a call that had ended as not charged, with its receipt; `false` when nothing is paid for it now.
    pub async fn book_late(&self, purchase: &Purchase, receipt: Verified<Receipt>) -> bool {
        let (owner, call_id, charged) = (purchase.owner, purchase.call_id, receipt.charged);
        if !self.channels.has_room_for_late(&receipt) {
            tracing::warn!(%owner, %call_id, %charged, "a receipt for a call that had ended as not charged exceeds all that was signed");
            return false;
        }
        let acknowledgement = Acknowledgement {
            receipt: receipt.clone(),
            status: 0,
            timing: farthing_ledger::Timing::default(),
            time_secs: clock::now_secs(),
        };
        if let Err(error) = self.ledger.acknowledge(call_id, acknowledgement).await {
            tracing::error!(%call_id, %error, "a late receipt was not stored");
            return false;
        }
        tracing::warn!(%owner, %call_id, %charged, "a call that had ended as not charged was charged");
        self.channels.note_receipt(&receipt);
        self.channels.acknowledge_late(&receipt);
        let day = farthing_ledger::day_of(purchase.promised_secs);
        self.spending.lock().rehold(day, &purchase.secret, charged);
        true
    }

    /// Takes over what an owner proves to hold, and books what its total says of calls that this ledger lacks.
    pub async fn take_over(
        &self,
        owner: Address,
        channel: ChannelId,
        sync: &ChannelSync,
    ) -> Result<(), LedgerError> {
        match self.proven(channel, sync) {
            Some(signed) => {
                // Durable first: what a charge rests on is in the ledger before the charge is.
                let cause = self.ledger.why_calls_are_missing(channel)?;
                // What this ledger knows to be signed, and lacks no call of, was promised by calls that are known.
                if self.ledger.recover_signed(channel, signed).await?.may_lack_calls {
                    self.channels.remember(channel, signed, cause);
                }
            }
            None if sync.best.is_zero() => {}
            None => tracing::warn!(%owner, best = %sync.best, "the owner counts more than it can prove"),
        }
        self.book_forgotten(owner, channel, sync.spent).await;
        Ok(())
    }

    /// Takes over what the chain says of a channel. What an emptied one paid beyond every call that is known counts for
    /// today's limit, as in [`Accounts::book_forgotten`].
    pub async fn observe(
        &self,
        facts: PayerChannelFacts,
        close_at_secs: Option<u64>,
    ) -> Result<(), LedgerError> {
        let _booking = self.booking.take(facts.config.payee).await;
        self.channels.lower(&facts);
        let observed = self.ledger.put_payer_channel(facts).await?;
        if let Some((day, amount)) = observed.counted {
            self.spending.lock().rehold(day, NO_SECRET, amount);
            self.channels.count_booked(observed.row.id, amount);
        }
        self.let_go(&observed);
        self.channels.apply(&observed.row, close_at_secs);
        Ok(())
    }

    /// Forgets a channel that the chain never had, unless something was promised on it.
    pub async fn forget(&self, channel: ChannelId) -> Result<(), LedgerError> {
        if self.ledger.forget_unused_payer_channel(channel).await? {
            self.channels.forget(channel);
        }
        Ok(())
    }

    /// Before anything is promised on a channel of which the chain alone shows that it paid: what the owner cannot show
    /// this wallet's signature for was an endpoint's invention.
    pub async fn prove_carried(
        &self,
        owner: Address,
        channel: ChannelId,
        sync: Option<&ChannelSync>,
    ) -> Result<(), LedgerError> {
        if !self.ledger.is_carried(channel)? {
            return Ok(());
        }
        let _booking = self.booking.take(owner).await;
        let proven = sync.and_then(|sync| self.proven(channel, sync)).unwrap_or_default();
        let observed = self.ledger.prove_carried(channel, proven).await?;
        if !observed.let_go.is_zero() {
            let paid = observed.let_go;
            tracing::warn!(%owner, %paid, "the chain's endpoint says that the owner was paid what nobody can prove");
        }
        self.let_go(&observed);
        Ok(())
    }

    fn let_go(&self, observed: &ChannelChange) {
        let &ChannelChange { row, let_go, uncounted, .. } = observed;
        if !let_go.is_zero() {
            self.channels.let_go(row.id, let_go);
        }
        if !uncounted.is_zero() {
            let day = farthing_ledger::day_of(clock::now_secs());
            self.spending.lock().settle(day, NO_SECRET, uncounted, Usdc::ZERO);
        }
    }

    /// Tells whether the owner of an emptied channel was paid on chain for what no call explains.
    pub fn is_overclaimed(&self, channel: ChannelId, claimed: Usdc) -> Result<bool, LedgerError> {
        // Calls that were given up in doubt may have been charged, at their prices and not more.
        let doubtful = self.ledger.released_in_doubt(channel)?;
        let doubtful = doubtful.iter().fold(Usdc::ZERO, |sum, call| sum.saturating_add(call.price));
        Ok(self.channels.is_overclaimed(channel, claimed.saturating_sub(doubtful)))
    }

    /// Tells whether what an emptied channel paid would end the doubt about calls on it.
    pub fn ends_doubts(&self, channel: ChannelId, claimed: Usdc) -> Result<bool, LedgerError> {
        Ok(self.channels.is_paid_beyond_calls(channel, claimed)
            && !self.ledger.released_in_doubt(channel)?.is_empty())
    }

    /// Books what forgotten calls were charged, given a total of the owner, as an adjustment. It counts for today's
    /// limit, and for no secret: nobody knows whose they were.
    pub async fn book_forgotten(&self, owner: Address, channel: ChannelId, spent_total: Usdc) {
        let _booking = self.booking.take(owner).await;
        let Some(found) = self.channels.explain(channel, spent_total) else { return };
        let ForgottenCharge { charged, cause } = found;
        tracing::warn!(%owner, %charged, ?cause, "booking calls that this ledger does not have");
        self.spending.lock().rehold(farthing_ledger::day_of(clock::now_secs()), NO_SECRET, charged);
        if let Err(error) = self.ledger.recover_charges(channel, charged, spent_total, cause).await {
            tracing::error!(%owner, %error, "they could not be stored and are booked after the next start");
        }
    }

    /// Returns the promise that the owner holds, if it carries this node's signature.
    pub fn proven(&self, channel: ChannelId, sync: &ChannelSync) -> Option<Usdc> {
        let voucher = Voucher { channel, cumulative: sync.best };
        let proof = voucher.verify(&self.domain, sync.best_signature?, self.wallet);
        proof.ok().map(|voucher| voucher.cumulative)
    }

    /// Ends an attempt in everything that counts open calls.
    fn settle(&self, attempt: &Attempt, charged: Usdc) {
        let Attempt { promise, expected, .. } = attempt;
        self.undecided.end(expected.owner, expected.call_id);
        self.spending.lock().settle(promise.day(), &promise.secret, expected.price, charged);
    }
}

#[cfg(test)]
pub(crate) mod tests;
