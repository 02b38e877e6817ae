//! Ends of an attempt: with a receipt that is booked, uncharged, or undecided.
//!
//! In order: the answer is verified, what was reserved is settled, the ledger is closed, the caller is served. What
//! contradicts its receipt stops the channel.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_discovery::Catalog;
use farthing_ledger::{Acknowledgement, Ledger, LedgerError, Uncharged};
use farthing_os::clock;
use farthing_protocol::{
    CallId, CallResponse, Domain, RefusalCode, Signature, Usdc, Verified, channel::Receipt,
    listing::ServiceKind, resolution::Copies,
};
use farthing_shared::{keyed_mutex::KeyedMutex, tasks::Tasks};
use farthing_wallet::Signer;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{
    Bought, BuyError, Timing, Turn,
    accounts::{Accounts, Attempt},
    answer::{self, Mismatch},
    channels::{PayerChannel, PayerChannels, Reservation},
    exchange::{CallClient, Exchanged, LostAt, not_sent},
    funding::Funding,
    observations::Observer,
    open_verdict::OpenVerdict,
    places::OwnerPlaces,
    reconcile::Reconciler,
    unanswered::Unanswered,
};

mod resolve;

/// The longest that a deposit may be on its way into the books which an owner serves a call on already.
const BOOKED_WITHIN: Duration = Duration::from_secs(10);
/// The end of a promise whose call was bought before, at a higher price.
const DEARER_BEFORE: &str = "charged before, at a higher price, for a promise that this ledger lacks";

/// The end of every attempt: its receipt is booked, or what it reserved is given back, or its owner is asked until the
/// end is known. A cheap handle.
#[derive(Clone, Debug)]
pub(super) struct CallCloser(Arc<CallCloserParts>);

/// The parts that a closer is made of; it shares all of them with the consumer.
#[derive(Debug)]
pub(super) struct CallCloserParts {
    pub signer: Signer,
    pub ledger: Ledger,
    pub catalog: Catalog,
    pub channels: Arc<PayerChannels>,
    pub funding: Funding,
    pub accounts: Arc<Accounts>,
    pub places: Arc<OwnerPlaces>,
    pub turns: Arc<KeyedMutex<CallId, Copies>>,
    pub client: CallClient,
    pub observer: Observer,
    pub books: Reconciler,
    pub tasks: Tasks,
    pub stopping: CancellationToken,
}

impl CallCloser {
    pub(super) fn new(parts: CallCloserParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Ends an attempt as its exchange ended, and counts what that says of the service. A call that its owner has, or of which
    /// the way lost the answer, stays to be judged: an effect may take longer than its caller waits.
    pub(super) async fn conclude(
        &self,
        attempt: &Attempt,
        exchanged: Exchanged,
        network: Duration,
        turn: Turn,
        unjudged: Option<OpenVerdict>,
    ) -> Result<Bought, BuyError> {
        let lost_at = exchanged.lost_at();
        let is_open = matches!(exchanged, Exchanged::Undecided { .. }) && lost_at != Some(LostAt::Here);
        let (judged, left_open) = if is_open { (None, unjudged) } else { (unjudged, None) };
        let left_open = left_open.map(|unjudged| OpenVerdict {
            was_taken: unjudged.was_taken || lost_at == Some(LostAt::Owner),
            ..unjudged
        });
        let bought = self.end(attempt, exchanged, network, turn, left_open).await;
        if let Some(unjudged) = judged {
            self.0.observer.observe(&attempt.promise, &bought, lost_at, unjudged);
        }
        bought
    }

    async fn end(
        &self,
        attempt: &Attempt,
        exchanged: Exchanged,
        network: Duration,
        turn: Turn,
        left_open: Option<OpenVerdict>,
    ) -> Result<Bought, BuyError> {
        match exchanged {
            Exchanged::Response(response, body) => self.close(attempt, response, body, network, turn).await,
            Exchanged::Gone { receipt, signature, .. } => {
                Err(self.close_without_answer(attempt, receipt, signature, turn).await)
            }
            Exchanged::Unasked(receipt, signature) => {
                Err(self.close_unasked(attempt, receipt, signature, turn).await)
            }
            Exchanged::Refused(refusal) => {
                self.release(attempt, Uncharged::refused(refusal.code), &turn).await;
                if refusal.code == RefusalCode::ChannelClosing
                    && let Some(reservation) = attempt.reservation
                {
                    self.0.funding.refused_as_closing(reservation.channel);
                }
                Err(BuyError::Refused(refusal))
            }
            Exchanged::Busy(reason) => {
                self.release(attempt, "never sent", &turn).await;
                Err(not_sent(reason))
            }
            Exchanged::NeverStarted(reason) => {
                self.release(attempt, reason.in_ledger(), &turn).await;
                Err(BuyError::OwnerUnreachable(reason))
            }
            Exchanged::Undecided { reason, .. } => {
                self.resolve_later(attempt, turn, left_open);
                Err(BuyError::Undecided(reason))
            }
        }
    }

    /// Ends an attempt whose promise was not stored, unless it is in the end. Nothing stays open of one that its owner never got
    /// or refused.
    ///
    /// # Errors
    /// [`BuyError::ChannelLow`] where the channel holds too little by now, and nothing was charged.
    pub(super) async fn end_unstored(
        &self,
        attempt: &Attempt,
        exchanged: &Exchanged,
        error: LedgerError,
        turn: &Turn,
    ) -> Result<(), BuyError> {
        match exchanged {
            Exchanged::Refused(_) | Exchanged::NeverStarted(_) | Exchanged::Busy(_) => {
                self.release(attempt, "not stored, and not charged", turn).await;
                Err(match (error, attempt.reservation) {
                    (
                        LedgerError::VoucherAboveDeposit { .. },
                        Some(Reservation { owner, channel, price, .. }),
                    ) => {
                        let channel = self.0.channels.get(channel);
                        let available = channel.map_or(Usdc::ZERO, |channel| channel.state.available());
                        BuyError::ChannelLow { owner, available, price }
                    }
                    (error, _) => BuyError::Ledger(error),
                })
            }
            Exchanged::Response(..)
            | Exchanged::Gone { .. }
            | Exchanged::Unasked(..)
            | Exchanged::Undecided { .. } => {
                self.promise_again(attempt, error).await.map_err(BuyError::NotStored)
            }
        }
    }

    /// Promises once more what an owner may have served on a deposit that is not in the books here yet.
    async fn promise_again(&self, attempt: &Attempt, error: LedgerError) -> Result<(), LedgerError> {
        let (LedgerError::VoucherAboveDeposit { .. }, Some(held)) = (&error, attempt.reservation) else {
            return Err(error);
        };
        let is_covered = |channel: &PayerChannel| channel.state.deposited >= held.cumulative;
        let booked = self.0.channels.until(held.channel, is_covered);
        if timeout(BOOKED_WITHIN, booked).await.is_err() {
            return Err(error);
        }
        self.0.ledger.promise(Arc::clone(&attempt.promise)).await?.await.map(drop)
    }

    /// Verifies the answer, closes the ledger, and serves the caller.
    async fn close(
        &self,
        attempt: &Attempt,
        response: CallResponse,
        body: Bytes,
        network: Duration,
        turn: Turn,
    ) -> Result<Bought, BuyError> {
        let domain = self.domain_of(attempt, response.receipt, response.signature);
        let receipt = match answer::verify(&attempt.expected, &domain, &response, &body) {
            Ok(receipt) => receipt,
            Err(mismatch) => return Err(self.refuse(attempt, mismatch, &response.receipt, turn).await),
        };
        let bought = Bought {
            call_id: attempt.call_id(),
            status: response.status,
            headers: response.headers,
            body,
            price: attempt.expected.price,
            charged: Some(receipt.charged),
            receipt: Some(receipt.digest(&domain)),
            timing: Timing {
                funding: attempt.funding,
                network,
                // Whatever the owner says, its part took no longer than the whole.
                owner: Duration::from_micros(response.owner_us).min(network),
                upstream: Duration::from_micros(response.upstream_us).min(network),
            },
            is_repeat: false,
        };
        self.acknowledge(attempt, receipt, response.status, &bought.timing, turn)?;
        if response.outcome.is_the_services_answer() {
            Ok(bought)
        } else {
            let (status, service) = (response.status, attempt.promise.request.service);
            let known = self.0.catalog.in_memory(service);
            let is_graphql = known.is_some_and(|known| known.listing().kind == ServiceKind::Graphql);
            let why = Unanswered::of(response.outcome, status, is_graphql);
            Err(BuyError::UpstreamFailed { why, status })
        }
    }

    /// The domain that an attempt's receipt is to be verified in.
    pub(super) fn domain_of(&self, attempt: &Attempt, receipt: Receipt, signature: Signature) -> Domain {
        let accepts = || {
            let known = self.0.catalog.in_memory(attempt.promise.request.service);
            known.map_or_else(Vec::new, |known| known.listing().accepts.clone())
        };
        answer::domain_of(&attempt.expected, *self.0.signer.domain(), accepts, receipt, signature)
    }

    /// The call was served earlier and only its receipt is left.
    async fn close_without_answer(
        &self,
        attempt: &Attempt,
        receipt: Receipt,
        signature: Signature,
        turn: Turn,
    ) -> BuyError {
        let domain = self.domain_of(attempt, receipt, signature);
        match answer::verify_receipt(&attempt.expected, &domain, receipt, signature) {
            Ok(receipt) => {
                let charged = receipt.charged;
                match self.acknowledge(attempt, receipt, 0, &Timing::default(), turn) {
                    Ok(()) => BuyError::BodyGone { charged },
                    Err(error) => error,
                }
            }
            Err(mismatch) => self.refuse(attempt, mismatch, &receipt, turn).await,
        }
    }

    /// The receipt is not acceptable. A verified one of a promise at a higher price, which this node forgot, ends this one as free:
    /// no owner charges a call twice.
    async fn refuse(&self, attempt: &Attempt, mismatch: Mismatch, receipt: &Receipt, turn: Turn) -> BuyError {
        if !self.is_of_dearer_promise(attempt, &mismatch, receipt) {
            return self.distrust(attempt, mismatch, turn).await;
        }
        self.release(attempt, DEARER_BEFORE, &turn).await;
        BuyError::BodyGone { charged: receipt.charged }
    }

    /// Tells whether a receipt, which charges too much and is right in all else, is of a promise that is booked among the calls
    /// which this ledger lacks.
    fn is_of_dearer_promise(&self, attempt: &Attempt, mismatch: &Mismatch, receipt: &Receipt) -> bool {
        let reservation = attempt.reservation.filter(|_| matches!(mismatch, Mismatch::Charge { .. }));
        reservation.is_some_and(|reservation| self.0.accounts.is_of_before(&reservation, receipt))
    }

    /// The owner presents a receipt for a call that it never got before. It is honest only of a call that this node
    /// made and then forgot in a crash; otherwise nothing was bought, and nothing is paid.
    async fn close_unasked(
        &self,
        attempt: &Attempt,
        receipt: Receipt,
        signature: Signature,
        turn: Turn,
    ) -> BuyError {
        let may_be_forgotten = || self.0.accounts.may_be_forgotten(attempt, &receipt);
        if !receipt.charged.is_zero()
            && !may_be_forgotten()
            && let Some(reservation) = &attempt.reservation
            && let Err(error) = self.0.books.compare_again(reservation.owner, reservation.channel).await
        {
            tracing::warn!(%error, "the owner's ledger cannot be read");
        }
        if receipt.charged.is_zero() || may_be_forgotten() {
            return self.close_without_answer(attempt, receipt, signature, turn).await;
        }
        let mismatch = Mismatch::Unasked;
        self.release(attempt, mismatch.to_string(), &turn).await;
        self.stop_buying(attempt, &mismatch).await;
        BuyError::BadAnswer { mismatch, charged: None }
    }

    /// Books a verified receipt: limits and channel at once, the ledger in the background. The turn is held
    /// until the ledger has it, so a repeat of the call sees it finished.
    fn acknowledge(
        &self,
        attempt: &Attempt,
        receipt: Verified<Receipt>,
        status: u16,
        timing: &Timing,
        turn: Turn,
    ) -> Result<(), BuyError> {
        let charged = receipt.charged;
        let counted = self.0.accounts.count(attempt, &receipt);
        let mismatch = counted.mismatch.clone();
        let acknowledgement = Acknowledgement {
            receipt,
            status,
            timing: farthing_ledger::Timing {
                total_us: clock::micros(timing.funding + timing.network),
                owner_us: clock::micros(timing.owner),
                upstream_us: clock::micros(timing.upstream),
            },
            time_secs: clock::now_secs(),
        };
        let (closer, attempt) = (self.clone(), attempt.clone());
        let owner = attempt.expected.owner;
        self.0.tasks.spawn(async move {
            closer.0.accounts.store(&attempt, &counted, acknowledgement).await;
            if counted.mismatch.is_some() {
                closer.stop_channel_of(&attempt).await;
            }
            drop(turn);
            closer.0.books.explain_total(owner).await;
        });
        match mismatch {
            Some(mismatch) => {
                Err(BuyError::BadAnswer { mismatch: Mismatch::Books(mismatch), charged: Some(charged) })
            }
            None => Ok(()),
        }
    }

    /// Ends an attempt that was not charged. What it hid of the owner's total is the charge of another call.
    async fn release(&self, attempt: &Attempt, why: impl Into<Uncharged>, turn: &Turn) {
        self.0.accounts.release(attempt, why, turn).await;
        let owner = attempt.expected.owner;
        if !self.0.channels.unexplained(owner).is_zero() {
            let books = self.0.books.clone();
            self.0.tasks.spawn(async move { books.explain_total(owner).await });
        }
    }

    /// An answer that contradicts its receipt: the money stays reserved until the owner says what it charged, and
    /// nothing more is promised.
    async fn distrust(&self, attempt: &Attempt, mismatch: Mismatch, turn: Turn) -> BuyError {
        self.stop_buying(attempt, &mismatch).await;
        self.resolve_later(attempt, turn, None);
        BuyError::BadAnswer { mismatch, charged: None }
    }

    async fn stop_buying(&self, attempt: &Attempt, mismatch: &Mismatch) {
        let (owner, call_id) = (attempt.expected.owner, attempt.call_id());
        tracing::error!(%owner, %call_id, %mismatch, "the owner's answer does not match its receipt");
        self.stop_channel_of(attempt).await;
    }

    async fn stop_channel_of(&self, attempt: &Attempt) {
        if let Some(channel) = self.channel_of(attempt) {
            self.0.books.stop_channel(channel.id).await;
        }
    }

    /// The channel that an attempt was promised on; of a free call, the one that its owner's next call would use.
    fn channel_of(&self, attempt: &Attempt) -> Option<PayerChannel> {
        match attempt.reservation {
            Some(reservation) => self.0.channels.get(reservation.channel),
            None => self.0.channels.in_use(attempt.expected.owner),
        }
    }
}
