//! Payments whose ends are not known: the chain is asked until it shows them, also after a restart.
//!
//! One task asks about all of them: once a second about those that are due (`followed`), together and of one block.
//!
//! A payment is taken when the token says so. It is never taken once a block that stays is dated after its time. No endpoint's date
//! says this alone: this machine's clock must be after it, too. Until then its price counts as spent, and stays set aside. The chain
//! is also asked for a payment that the server says it took: its price stays set aside until the balance shows that it is paid.

use std::time::Duration;

use farthing_chain::{ChainError, ChainKind, TransferState};
use farthing_ledger::{LedgerError, Promise, Purchase, PurchaseEnd, TransferEnd, Uncharged, day_of};
use farthing_os::clock;
use farthing_protocol::{CallId, Hash, Usdc};
use tokio::time::{Instant, sleep};

use super::{ForeignCalls, ForeignParts, payments::ForeignPayment, times::has_lapsed};
use crate::consumer::{BuyError, ForeignError, NoAnswer};

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The pause between two questions about payments of ended calls: nobody waits for them.
const ASK_ENDED_EVERY: Duration = Duration::from_millis(250);
/// The longest pause between two questions about one payment.
const ASK_EVERY_MAX: Duration = Duration::from_secs(30);
/// A local chain's blocks come when they like.
const ASK_EVERY_MAX_LOCAL: Duration = Duration::from_secs(1);
const TEND_EVERY: Duration = Duration::from_secs(3_600);
/// The time for which the payment of an ended call is kept, so that its answer can be asked for again.
const KEPT_SECS: u64 = 86_400;

impl ForeignCalls {
    /// Takes up what an earlier run of this node left open. Called once, before the first call.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn recover(&self) -> Result<usize, LedgerError> {
        let mut open = self.0.parts.ledger.unresolved()?;
        open.retain(Promise::is_by_transfer);
        for promise in &open {
            self.follow(promise.request.call_id);
        }
        for (call_id, _) in self.charged_lately()? {
            self.follow(call_id);
        }
        Ok(open.len())
    }

    /// Lists the payments of charged calls that a block may take yet: the next balance that is read may still contain their prices.
    pub(super) fn charged_lately(&self) -> Result<Vec<(CallId, ForeignPayment)>, LedgerError> {
        let ForeignParts { ledger, chain, .. } = &self.0.parts;
        let (kind, now_secs) = (chain.spec().kind, clock::now_secs());
        let mut charged = Vec::new();
        for (call_id, payment) in self.0.payments.all()? {
            let valid_before_secs = payment.transfer.authorization.valid_before_secs;
            let is_over = has_lapsed(kind, valid_before_secs, now_secs, now_secs);
            if !is_over && self.check_here(&payment).is_ok() && is_paid(ledger.purchase(call_id)?.as_ref()) {
                charged.push((call_id, payment));
            }
        }
        Ok(charged)
    }

    /// Looks at payments that counted as not taken, and forgets those of calls that ended a while ago: at the start, and now and then.
    pub async fn tend(self) {
        loop {
            let all_seen = self.look_at_ended().await;
            if all_seen && let Err(error) = self.forget_ended(clock::now_secs()).await {
                tracing::warn!(%error, "payments of ended calls are not removed");
            }
            sleep(if all_seen { TEND_EVERY } else { ASK_EVERY_MAX }).await;
        }
    }

    /// Asks about the calls that ended as not charged, as long as their payments are kept: an endpoint may have lied. False if one
    /// could not be asked about.
    async fn look_at_ended(&self) -> bool {
        let ForeignParts { consumer, ledger, .. } = &self.0.parts;
        let mut all_seen = true;
        for (call_id, payment) in self.0.payments.all().unwrap_or_default() {
            let turn = consumer.turn(call_id).await;
            let ended = ledger.purchase(call_id).ok().flatten().filter(is_unpaid);
            let Some(ended) = ended.filter(|_| self.check_here(&payment).is_ok()) else { continue };
            if let Err(error) = self.taken_after_all(&ended, &payment).await {
                tracing::debug!(%call_id, %error, "nobody tells whether a payment was taken that counts as not taken");
                all_seen = false;
            }
            drop(turn);
            sleep(ASK_ENDED_EVERY).await;
        }
        all_seen
    }

    /// Asks the chain once more about a call that ended as not charged, and books it if the token has taken its payment. The
    /// caller has the turn of the call.
    ///
    /// # Errors
    /// When nobody can tell now, or the charge is not stored.
    pub(super) async fn taken_after_all(
        &self,
        ended: &Purchase,
        payment: &ForeignPayment,
    ) -> Result<Option<Purchase>, BuyError> {
        let ForeignParts { consumer, ledger, chain, .. } = &self.0.parts;
        self.check_here(payment)?;
        let state = chain.transfer_state(&payment.transfer.authorization, payment.since_block).await;
        let not_told = |error: ChainError| BuyError::Undecided(NoAnswer::NotAsked(Box::new(error.into())));
        let TransferState::Taken { by_block, transaction } = state.map_err(not_told)? else {
            return Ok(None);
        };
        self.0.parts.funding.paid(ended.call_id, payment.transfer.authorization.value, by_block);
        let (accounts, day) = (consumer.accounts(), day_of(ended.promised_secs));
        accounts.begin_day(day).map_err(BuyError::Unread)?;
        let end = seen(payment, transaction.map(|hash| hash.0));
        let paid = ledger.transferred_after_all(ended.call_id, end).await.map_err(BuyError::NotStored)?;
        let Purchase { call_id, charged, .. } = paid;
        tracing::warn!(%call_id, %charged, "a payment that had counted as not taken was taken");
        if let Ok(mut spending) = accounts.spending_of(day) {
            spending.rehold(day, &paid.secret, charged);
        }
        Ok(Some(paid))
    }

    /// Checks that the chain and the token of the settings can tell how a payment ends: those of others say nothing of it.
    pub(super) fn check_here(&self, payment: &ForeignPayment) -> Result<(), ForeignError> {
        let spec = self.0.parts.chain.spec();
        if payment.is_in((spec.chain_id, spec.token)) {
            return Ok(());
        }
        Err(ForeignError::Elsewhere { place: payment.place() })
    }

    /// Tells why nobody is asked how the payment of an open call ends, if it is in another token or on another chain than the settings
    /// name.
    pub fn elsewhere(&self, call_id: CallId) -> Option<ForeignError> {
        let payment = self.0.payments.find(call_id).ok().flatten()?;
        self.check_here(&payment).err()
    }

    /// Returns the status of the answer to an open call whose server did not say whether it took the payment.
    pub fn answered(&self, call_id: CallId) -> Option<u16> {
        self.0.payments.find(call_id).ok().flatten()?.answered
    }

    /// Forgets payments whose ends are known for a while. Those that no chain of the settings can tell of are kept.
    async fn forget_ended(&self, now_secs: u64) -> Result<(), LedgerError> {
        let ledger = &self.0.parts.ledger;
        for (call_id, payment) in self.0.payments.all()? {
            let ended = ledger.purchase(call_id)?;
            let is_unseen = ended.as_ref().is_some_and(is_unpaid) && self.check_here(&payment).is_err();
            let is_followed = self.0.followed.lock().has(call_id);
            let is_open = is_unseen || is_followed || ledger.promise_of(call_id)?.is_some();
            let ended_secs = ended.map_or(payment.time_secs, |call| call.closed_secs);
            if !is_open && ended_secs.saturating_add(KEPT_SECS) < now_secs {
                self.0.payments.forget(call_id).await?;
            }
        }
        Ok(())
    }

    /// Asks the chain in the background how a payment ends.
    pub(super) fn follow(&self, call_id: CallId) {
        if !self.0.followed.lock().add(call_id, Instant::now()) {
            return;
        }
        let own = self.clone();
        self.0.parts.tasks.spawn(async move { own.follow_all().await });
    }

    async fn follow_all(&self) {
        let ForeignParts { chain, stopping, .. } = &self.0.parts;
        let is_local = chain.spec().kind == ChainKind::Local;
        let pause_max = if is_local { ASK_EVERY_MAX_LOCAL } else { ASK_EVERY_MAX };
        while self.0.followed.lock().goes_on() {
            tokio::select! {
                () = sleep(LOOK_EVERY) => {}
                () = stopping.cancelled() => return,
            }
            let due = self.0.followed.lock().due(Instant::now(), pause_max);
            tokio::select! {
                () = self.look(&due) => {}
                () = stopping.cancelled() => return,
            }
        }
    }

    /// Looks once for the ends of payments, and books those that the chain shows. Of a call that has its end, only the block is asked for.
    async fn look(&self, due: &[CallId]) {
        let mut asked = Vec::new();
        for call_id in due {
            match self.followed_payment(*call_id) {
                // One in another token waits until the settings name its own again.
                Some((promise, payment)) if self.check_here(&payment).is_ok() => {
                    let since_block = promise.map(|_| payment.since_block);
                    asked.push((*call_id, (payment.transfer.authorization, since_block)));
                }
                Some(_) => {}
                None => self.0.followed.lock().remove(*call_id),
            }
        }
        if asked.is_empty() {
            return;
        }
        let transfers: Vec<_> = asked.iter().map(|(_, transfer)| *transfer).collect();
        let states = match self.0.parts.chain.transfer_states(&transfers).await {
            Ok(states) => states,
            Err(error) => {
                tracing::debug!(payments = asked.len(), %error, "the chain does not tell how payments ended");
                return;
            }
        };
        for ((call_id, (transfer, _)), state) in asked.into_iter().zip(states) {
            if self.has_end(transfer.valid_before_secs, state) && self.end(call_id, state).await {
                self.0.followed.lock().remove(call_id);
            }
        }
    }

    /// The payment of a call, with its promise while its end is open; `None` if there is nothing more to look for.
    fn followed_payment(&self, call_id: CallId) -> Option<(Option<Promise>, ForeignPayment)> {
        match (self.0.parts.ledger.promise_of(call_id), self.0.payments.find(call_id)) {
            (Ok(promise), Ok(Some(payment))) => Some((promise, payment)),
            (Ok(None), Ok(None)) => None,
            (Ok(Some(_)), Ok(None)) => {
                tracing::error!(%call_id, "a promise has no payment; its price stays set aside");
                None
            }
            (Err(error), _) | (_, Err(error)) => {
                tracing::error!(%call_id, %error, "an open payment cannot be read");
                None
            }
        }
    }

    fn has_end(&self, valid_before_secs: u64, state: TransferState) -> bool {
        let kind = self.0.parts.chain.spec().kind;
        match state {
            TransferState::Taken { .. } => true,
            TransferState::Open { as_of_secs } => {
                has_lapsed(kind, valid_before_secs, as_of_secs, clock::now_secs())
            }
        }
    }

    /// Books the end of a payment; false if it is looked for again.
    async fn end(&self, call_id: CallId, state: TransferState) -> bool {
        // Nobody sends the payment meanwhile. Who does so now may wait for a slow server, and others do not wait for that.
        let Some(_turn) = self.0.parts.consumer.turn_now(call_id) else { return false };
        let Some((promise, payment)) = self.followed_payment(call_id) else { return true };
        let funding = &self.0.parts.funding;
        match (state, promise) {
            (TransferState::Taken { by_block, transaction }, promise) => {
                funding.paid(call_id, payment.transfer.authorization.value, by_block);
                match promise {
                    Some(promise) => {
                        self.taken(&promise, seen(&payment, transaction.map(|hash| hash.0))).await
                    }
                    None => true,
                }
            }
            (TransferState::Open { .. }, Some(promise)) => self.lapsed(&promise, payment.answered).await,
            (TransferState::Open { .. }, None) => {
                tracing::warn!(%call_id, "a server said that it took a payment, and the token has not taken it in its time");
                funding.unpledge(call_id);
                true
            }
        }
    }

    /// Books a call whose payment was taken; false if that is not stored.
    pub(super) async fn taken(&self, promise: &Promise, end: TransferEnd) -> bool {
        let call_id = promise.request.call_id;
        let stored = match self.begin_day_of(promise) {
            Ok(()) => self.0.parts.ledger.transferred(call_id, end).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(charged) => {
                self.settle(promise, charged);
                true
            }
            Err(error) => {
                tracing::error!(%call_id, %error, "a payment that was taken is not stored; the chain is asked again");
                false
            }
        }
    }

    /// Books a call whose payment nobody took in its time, whether or not it was answered; false if that is not stored.
    async fn lapsed(&self, promise: &Promise, answered: Option<u16>) -> bool {
        let call_id = promise.request.call_id;
        let why = Uncharged::not_taken("the server did not take the payment in its time", answered);
        let stored = match self.begin_day_of(promise) {
            Ok(()) => self.0.parts.ledger.release(call_id, why, clock::now_secs()).await,
            Err(error) => Err(error),
        };
        match stored {
            Ok(()) => {
                tracing::info!(%call_id, "a payment was not taken in its time, so nothing is charged");
                self.settle(promise, Usdc::ZERO);
                self.0.parts.funding.unpledge(call_id);
                true
            }
            Err(error) => {
                tracing::error!(%call_id, %error, "the end of a payment is not stored; the chain is asked again");
                false
            }
        }
    }

    /// Has the promise counted for its day before its end is.
    fn begin_day_of(&self, promise: &Promise) -> Result<(), LedgerError> {
        self.0.parts.consumer.accounts().begin_day(promise.day())
    }

    /// Ends a call in the limits.
    fn settle(&self, promise: &Promise, charged: Usdc) {
        let accounts = self.0.parts.consumer.accounts();
        if let Ok(mut spending) = accounts.spending_of(promise.day()) {
            spending.settle(promise.day(), &promise.secret, promise.request.price, charged);
        }
    }
}

/// Returns whether a call ended as not charged although a transfer was to pay it.
fn is_unpaid(ended: &Purchase) -> bool {
    ended.is_by_transfer() && matches!(ended.end, PurchaseEnd::Released { .. })
}

/// Returns whether a call ended as charged, and a transfer pays it.
fn is_paid(ended: Option<&Purchase>) -> bool {
    ended.is_some_and(|ended| matches!(ended.end, PurchaseEnd::Transferred { .. }))
}

/// The end of a payment that the chain shows as taken.
fn seen(payment: &ForeignPayment, transaction: Option<Hash>) -> TransferEnd {
    let status = payment.answered.unwrap_or_default();
    TransferEnd { transaction, status, total_us: 0, time_secs: clock::now_secs(), is_seen: true }
}
