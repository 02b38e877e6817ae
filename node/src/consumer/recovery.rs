//! Calls with a past: repeats of a call id, and promises whose end is not known.
//!
//! A repeat asks the owner again under the same id, which costs nothing more. A promise left open by a lost
//! connection or a crash is asked for until the owner answers: charged with a receipt, or never served
//! (invariant C4). One on a channel of another contract or chain than the settings name waits until they are set back.

use std::time::Duration;

use farthing_ledger::{LedgerError, Promise, Purchase};
use farthing_protocol::{
    Address, CallId, ChannelId, Refusal, RefusalCode, ServiceId, Usdc, limits,
    resolution::{Copies, End},
};
use tokio::time::Instant;

use crate::secret::file::DEFAULT_SECRET;

use super::{
    Bought, BuyError, Consumer, LastKnown, NoAnswer, NotTold, Order, Slot, Timing, Turn,
    accounts::{Attempt, Earlier},
    answer::{self, ExpectedAnswer, Mismatch},
    channels::Reservation,
    exchange::{ASK_TIMEOUT, Exchanged, OwnerWord},
    open_verdict::OpenVerdict,
    pauses::{ASK_EVERY_FIRST, ASK_EVERY_MAX},
    spending::Grant,
};

impl Earlier {
    /// Tells whether a caller may have the call's answer: its own, or every one with the node's own secret.
    pub(crate) fn belongs_to(&self, grant: &Grant) -> bool {
        let (secret, secs) = match self {
            Self::Nothing | Self::InDoubt => return true,
            Self::Open(promise) => (&promise.secret, promise.time_secs),
            Self::Bought(purchase) => (&purchase.secret, purchase.promised_secs),
        };
        grant.name == DEFAULT_SECRET || (*secret == grant.name && secs >= grant.since_secs)
    }

    /// The x402 server that the call was promised to: no owner knows of it.
    pub(super) fn server(&self) -> Option<ServiceId> {
        match self {
            Self::Open(promise) => promise.is_by_transfer().then_some(promise.request.service),
            Self::Bought(purchase) => purchase.is_by_transfer().then_some(purchase.service),
            Self::Nothing | Self::InDoubt => None,
        }
    }

    /// Turns what keeps a call from being bought into an error that tells what the call may have cost before.
    pub(crate) fn tell(&self, error: BuyError) -> BuyError {
        match self {
            Self::Nothing | Self::InDoubt => error,
            Self::Open(_) => BuyError::Undecided(NoAnswer::NotAsked(Box::new(error))),
            Self::Bought(purchase) => BuyError::NotRepeated {
                charged: purchase.charged,
                reason: NoAnswer::NotAsked(Box::new(error)),
            },
        }
    }
}

impl Consumer {
    /// Repeats a call whose end is not known: the same request under the same id and voucher.
    pub(super) async fn finish(
        &self,
        order: Order,
        promise: Promise,
        deadline: Instant,
        mut turn: Turn,
    ) -> Result<Bought, BuyError> {
        // As long as it was given then.
        let time = Some(Duration::from_millis(promise.request.deadline_ms.min(limits::CALL_DEADLINE_MS_MAX)));
        let deadline = deadline + self.0.settings.longer(time);
        let asked = self.request(&order, promise.request.listing_version, promise.request.price, time);
        if asked.request_hash(&order.body) != promise.request_hash {
            return Err(BuyError::CallIdConflict);
        }
        self.check_signed_here(promise.channel()).map_err(BuyError::Undecided)?;
        turn.doubt(self.0.client.uptime());
        let attempt = Attempt { body: order.body, ..Attempt::of(promise) };
        if let Some(Reservation { owner, channel, .. }) = attempt.reservation {
            let compared = self.0.books.compare_books_for_a_call(owner, channel, deadline).await;
            compared.map_err(|error| BuyError::Undecided(error.into()))?;
        }
        let sent = Instant::now();
        let mut exchanged = self.0.client.exchange(&attempt, deadline, &mut turn, || false).await;
        let is_behind =
            matches!(&exchanged, Exchanged::Refused(refusal) if refusal.code == RefusalCode::BooksBehind);
        if is_behind && self.0.books.heal_for_a_call(attempt.expected.owner, deadline).await.is_ok() {
            exchanged = self.0.client.exchange(&attempt, deadline, &mut turn, || false).await;
        }
        let ExpectedAnswer { owner, call_id, .. } = attempt.expected;
        let unjudged = self.0.accounts.undecided().take_unjudged(owner, call_id);
        self.conclude(&attempt, exchanged, sent.elapsed(), turn, unjudged).await
    }

    /// Fetches the answer of a finished call again. It was paid for; the owner answers it once more, free.
    pub(super) async fn fetch_again(
        &self,
        order: Order,
        purchase: Purchase,
        deadline: Instant,
    ) -> Result<Bought, BuyError> {
        // What was bought stays bought: also of a service that was retired since.
        let asker = self.asker(&order.grant, order.max_price);
        let service = self.0.catalog.service(order.service, &asker).await.ok();
        let version = service.as_ref().map_or(0, |service| service.listing().seq);
        let time = service.and_then(|service| service.time_at(order.method, &order.path));
        let deadline = deadline + self.0.settings.longer(time);
        let request = self.request(&order, version, purchase.price, time);
        let request_hash = request.request_hash(&order.body);
        if request_hash != purchase.request_hash {
            return Err(BuyError::CallIdConflict);
        }
        let charged = purchase.charged;
        let not_repeated = |reason| BuyError::NotRepeated { charged, reason };
        self.check_signed_here(purchase.channel).map_err(not_repeated)?;
        let promise = Promise {
            request,
            request_hash,
            owner: purchase.owner,
            secret: purchase.secret,
            time_secs: purchase.promised_secs,
            limits: None,
            seen_total: Usdc::ZERO,
            charge_policy: purchase.charge_policy,
        };
        let mut attempt = Attempt { body: order.body, ..Attempt::of(promise) };
        attempt.expected.channel = purchase.channel;
        let sent = Instant::now();
        // The call is paid for, so nothing here is in doubt: whatever comes instead of its answer is told as it is.
        match self.0.client.exchange(&attempt, deadline, &mut Copies::default(), || false).await {
            Exchanged::Response(response, body) => {
                let domain = self.domain_of(&attempt, response.receipt, response.signature);
                let receipt = answer::verify(&attempt.expected, &domain, &response, &body)
                    .ok()
                    .filter(|receipt| receipt.charged == charged);
                let Some(receipt) = receipt else {
                    return Err(BuyError::BadAnswer { mismatch: Mismatch::Repeated, charged: Some(charged) });
                };
                Ok(Bought {
                    call_id: purchase.call_id,
                    status: response.status,
                    headers: response.headers,
                    body,
                    price: purchase.price,
                    charged,
                    receipt: Some(receipt.digest(&domain)),
                    timing: Timing { network: sent.elapsed(), ..Timing::default() },
                    is_repeat: true,
                })
            }
            Exchanged::Gone { .. } | Exchanged::Unasked(..) => Err(BuyError::BodyGone { charged }),
            Exchanged::Refused(refusal) if refusal.code == RefusalCode::CallIdConflict => {
                Err(BuyError::Refused(refusal))
            }
            Exchanged::Refused(Refusal { code, detail, .. }) => {
                let refused = LastKnown::from(NotTold::Refused { code, detail });
                Err(BuyError::NotRepeated { charged, reason: refused.into() })
            }
            Exchanged::Busy(reason) => {
                Err(BuyError::NotRepeated { charged, reason: LastKnown::from(reason).into() })
            }
            Exchanged::NeverStarted(reason) => Err(BuyError::NotRepeated { charged, reason: reason.into() }),
            Exchanged::Undecided { reason, .. } => Err(BuyError::NotRepeated { charged, reason }),
        }
    }

    /// Takes up what an earlier run of this node left open. Called once, before the first call.
    pub fn recover(&self) -> Result<usize, LedgerError> {
        let mut open = self.0.ledger.unresolved()?;
        // No owner knows of a transfer; the chain is asked.
        open.retain(|promise| !promise.is_by_transfer());
        self.0.accounts.restore(&open)?;
        self.0.books.compare_all_books();
        for promise in open.iter().filter(|promise| !self.0.books.is_signed_elsewhere(promise.channel())) {
            let call_id = promise.request.call_id;
            self.resolve_at(promise.owner, call_id, self.0.turns.slot(call_id));
        }
        Ok(open.len())
    }

    /// Checks that a receipt on a channel can be verified. Where it cannot, nobody is asked for one: it would look like a
    /// forgery, and the owner that gave it like a liar.
    fn check_signed_here(&self, channel: ChannelId) -> Result<(), NoAnswer> {
        if self.0.books.is_signed_elsewhere(channel) { Err(NoAnswer::Elsewhere(channel)) } else { Ok(()) }
    }

    /// Resolves an undecided call in the background. It counts as one before anybody else may learn its end.
    pub(super) fn resolve_later(&self, attempt: &Attempt, turn: Turn, unjudged: Option<OpenVerdict>) {
        let ExpectedAnswer { owner, call_id, price, .. } = attempt.expected;
        self.0.accounts.undecided().note(owner, call_id, price, unjudged);
        let slot = Turn::mutex(&turn).clone();
        drop(turn);
        self.resolve_at(owner, call_id, slot);
    }

    fn resolve_at(&self, owner: Address, call_id: CallId, slot: Slot) {
        let consumer = self.clone();
        self.0.tasks.spawn(async move { consumer.resolve(owner, call_id, slot).await });
    }

    /// Asks the owner what became of a call until it is known, giving others their turn in between.
    async fn resolve(&self, owner: Address, call_id: CallId, slot: Slot) {
        let mut pause = ASK_EVERY_FIRST;
        while !self.0.stopping.is_cancelled() {
            let place = tokio::select! {
                place = self.0.places.of_question(owner) => place,
                () = self.0.stopping.cancelled() => return,
            };
            let mut turn = slot.clone().lock_owned().await;
            turn.doubt(self.0.client.uptime());
            let promise = match self.0.ledger.promise_of(call_id) {
                Ok(Some(promise)) => promise,
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%call_id, %error, "an undecided call cannot be read");
                    return;
                }
            };
            let Some(turn) = self.resolve_once(Attempt::of(promise), turn).await else { return };
            drop((turn, place));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.0.stopping.cancelled() => return,
            }
            pause = (pause * 2).min(ASK_EVERY_MAX);
        }
    }

    /// One question. The turn comes back when the end is still unknown.
    async fn resolve_once(&self, attempt: Attempt, turn: Turn) -> Option<Turn> {
        let (owner, call_id) = (attempt.expected.owner, attempt.call_id());
        if self.0.books.compare_books_of(&attempt).await.is_err() {
            return Some(turn);
        }
        let (receipt, signature, brought) = match self.0.client.ask(owner, call_id, &turn, ASK_TIMEOUT).await
        {
            (End::Receipt, OwnerWord::Response(response, body)) => {
                (response.receipt, response.signature, Some((response, body)))
            }
            (End::Receipt, OwnerWord::Receipt(receipt, signature)) => (receipt, signature, None),
            (End::NotCharged, word) => {
                let reason = word.last_known().to_string();
                tracing::info!(%call_id, reason, "an undecided call was not charged");
                if let Some(unjudged) = self.0.accounts.undecided().take_unjudged(owner, call_id) {
                    self.0.observer.observe_uncharged(&attempt.promise, unjudged);
                }
                self.0.accounts.release(&attempt, reason, &turn).await;
                return None;
            }
            (End::Open | End::Receipt, _) => return Some(turn),
        };
        let domain = self.domain_of(&attempt, receipt, signature);
        match answer::verify_receipt(&attempt.expected, &domain, receipt, signature) {
            Ok(receipt) => {
                tracing::info!(%call_id, charged = %receipt.charged, "an undecided call has its receipt");
                if let Some(unjudged) = self.0.accounts.undecided().take_unjudged(owner, call_id) {
                    let answer = brought.filter(|(response, body)| {
                        answer::verify(&attempt.expected, &domain, response, body).is_ok()
                    });
                    self.0.observer.observe_late(&attempt.promise, &receipt, answer, unjudged);
                }
                if let Err(error) = self.acknowledge(&attempt, receipt, 0, &Timing::default(), turn) {
                    tracing::error!(%call_id, %error, "the owner's books do not match");
                }
                None
            }
            Err(mismatch) => {
                tracing::error!(%call_id, %mismatch, "the owner's receipt is not acceptable");
                // Once: the owner is asked again, and may say the same each time.
                if let Some(channel) = self.channel_of(&attempt).filter(|channel| !channel.state.stopped) {
                    self.0.books.stop_channel(channel.id).await;
                }
                Some(turn)
            }
        }
    }
}
