//! Calls with a past: repeats of a call id, and promises whose end is not known.
//!
//! A repeat asks the owner again under the same id, which costs nothing more. A promise left open by a lost
//! connection or a crash is asked for until the owner answers: charged with a receipt, or never served
//! (invariant C4).

use std::time::{Duration, Instant};

use farthing_ledger::{LedgerError, Promise, Purchase, PurchaseEnd};
use farthing_protocol::{
    CallId, CallMessage, CallReply, CallRequest, RefusalCode, Usdc, Verified,
    call::{CallStatus, ChargePolicy, Payment},
    channel::Receipt,
};

use crate::clock;

use super::{
    Bought, BuyError, Consumer, Order, Timing,
    answer::{self, Expected},
    attempt::Attempt,
    channels::Reservation,
    exchange::{Exchanged, Failure},
    turns::Turn,
};

/// An owner that says "never served" or "not charged" is believed once no earlier copy of the request can still be on its way:
/// a stream is given up after five seconds without a complete head.
const GRACE_SECS: u64 = 5;
const ASK_EVERY_FIRST: Duration = Duration::from_millis(500);
const ASK_EVERY_MAX: Duration = Duration::from_secs(60);
const ASK_TIMEOUT: Duration = Duration::from_secs(10);

/// What the ledger knows of a call id.
#[derive(Debug)]
pub(super) enum Earlier {
    /// Promised, and its end is not known.
    Open(Promise),
    /// Answered, with this receipt.
    Bought(Purchase),
}

impl Consumer {
    /// What the ledger knows of a call id. A call that ended uncharged may be made anew.
    pub(super) fn earlier(&self, call_id: CallId) -> Result<Option<Earlier>, BuyError> {
        let closed = |error: LedgerError| BuyError::LedgerClosed(error.to_string());
        if let Some(promise) = self.0.ledger.promise_of(call_id).map_err(closed)? {
            return Ok(Some(Earlier::Open(promise)));
        }
        let purchase = self.0.ledger.purchase(call_id).map_err(closed)?;
        Ok(purchase
            .filter(|purchase| match &purchase.end {
                PurchaseEnd::Acknowledged { outcome, .. } => outcome.is_the_services_answer(),
                PurchaseEnd::Released { .. } => false,
            })
            .map(Earlier::Bought))
    }

    /// Answers a repeated order: the same request under the same id and voucher, charged once at most.
    pub(super) async fn again(
        &self,
        order: Order,
        earlier: Earlier,
        deadline: Instant,
        turn: Turn,
    ) -> Result<Bought, BuyError> {
        match earlier {
            Earlier::Open(promise) => self.finish(order, promise, deadline, turn).await,
            Earlier::Bought(purchase) => self.fetch_again(order, purchase, deadline).await,
        }
    }

    /// Repeats a call whose end is not known.
    async fn finish(
        &self,
        order: Order,
        promise: Promise,
        deadline: Instant,
        turn: Turn,
    ) -> Result<Bought, BuyError> {
        if asked(&order, &promise.request).request_hash(&order.body) != promise.request_hash {
            return Err(BuyError::CallIdConflict);
        }
        let attempt = attempt_of(promise);
        self.compare_books(attempt.expected.owner).await.map_err(BuyError::Undecided)?;
        let sent = Instant::now();
        match self.exchange(&attempt, deadline).await {
            Ok(Exchanged::Response(response, body)) => {
                self.close(&attempt, response, body, sent.elapsed(), turn).await
            }
            Ok(Exchanged::Gone(receipt, signature)) => {
                Err(self.close_without_answer(&attempt, receipt, signature, turn))
            }
            Ok(Exchanged::Refused(refusal)) => {
                // The owner never served it: what was promised for it is free again.
                if is_final(refusal.code) {
                    self.release(&attempt, refusal.code.name()).await;
                }
                Err(BuyError::Refused(refusal))
            }
            Err(Failure::NeverStarted(reason) | Failure::Undecided(reason)) => {
                Err(BuyError::Undecided(reason))
            }
        }
    }

    /// Fetches the answer of a finished call again. It was paid for; the owner answers it once more, free.
    async fn fetch_again(
        &self,
        order: Order,
        purchase: Purchase,
        deadline: Instant,
    ) -> Result<Bought, BuyError> {
        // What was bought stays bought: also of a service that was retired since.
        let service = self.0.catalog.service(order.service).await.ok();
        let request = CallRequest {
            call_id: order.call_id,
            service: order.service,
            listing_version: service.map_or(0, |service| service.listing().seq),
            method: order.method,
            path: order.path,
            params: order.params,
            headers: order.headers,
            body_bytes: order.body.len() as u64,
            price: purchase.price,
            deadline_ms: u64::try_from(self.0.settings.owner_deadline().as_millis()).unwrap_or(u64::MAX),
            payment: Payment::Free,
        };
        let request_hash = request.request_hash(&order.body);
        if request_hash != purchase.request_hash {
            return Err(BuyError::CallIdConflict);
        }
        let promise = Promise {
            request,
            body: order.body,
            request_hash,
            owner: purchase.owner,
            secret: purchase.secret,
            time_secs: purchase.promised_secs,
        };
        let mut attempt = attempt_of(promise);
        attempt.expected.channel = purchase.channel;
        let charged = purchase.charged;
        let sent = Instant::now();
        match self.exchange(&attempt, deadline).await {
            Ok(Exchanged::Response(response, body)) => {
                let receipt = answer::verify(&attempt.expected, self.0.signer.domain(), &response, &body)
                    .ok()
                    .filter(|receipt| receipt.charged == charged);
                let Some(receipt) = receipt else {
                    let reason = "the repeated answer contradicts the receipt of the first".to_owned();
                    return Err(BuyError::BadAnswer { reason, charged });
                };
                Ok(Bought {
                    call_id: purchase.call_id,
                    status: response.status,
                    headers: response.headers,
                    body,
                    price: purchase.price,
                    charged,
                    receipt: receipt.digest(self.0.signer.domain()),
                    timing: Timing { network: sent.elapsed(), ..Timing::default() },
                })
            }
            Ok(Exchanged::Gone(..)) => Err(BuyError::BodyGone { charged }),
            Ok(Exchanged::Refused(refusal)) => Err(BuyError::Refused(refusal)),
            Err(Failure::NeverStarted(reason) | Failure::Undecided(reason)) => {
                Err(BuyError::OwnerUnreachable(reason))
            }
        }
    }

    /// Takes up what an earlier run of this node left open. Called once, before the first call.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn recover(&self) -> Result<usize, LedgerError> {
        let open = self.0.ledger.unresolved()?;
        // Everything is counted before the first question: a receipt also counts what other open and forgotten
        // calls were charged, and would contradict books that do not know of them yet.
        for promise in &open {
            if let Some(reservation) = attempt_of(promise.clone()).reservation {
                self.0.channels.restore_in_flight(&reservation);
            }
            self.rehold(promise.day(), &promise.secret, promise.request.price);
        }
        self.compare_all_books();
        for promise in &open {
            let (consumer, call_id) = (self.clone(), promise.request.call_id);
            self.0.tasks.spawn(async move { consumer.resolve(call_id).await });
        }
        Ok(open.len())
    }

    /// Resolves an undecided call in the background.
    pub(super) fn resolve_later(&self, call_id: CallId, turn: Turn) {
        drop(turn);
        let consumer = self.clone();
        self.0.tasks.spawn(async move { consumer.resolve(call_id).await });
    }

    /// Asks the owner what became of a call until it is known, giving others their turn in between.
    async fn resolve(&self, call_id: CallId) {
        let mut pause = ASK_EVERY_FIRST;
        while !self.0.stopping.is_cancelled() {
            let turn = self.0.turns.take(call_id).await;
            let promise = match self.0.ledger.promise_of(call_id) {
                Ok(Some(promise)) => promise,
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%call_id, %error, "an undecided call cannot be read");
                    return;
                }
            };
            let attempt = attempt_of(promise);
            match self.ask(&attempt).await {
                Some(End::Charged(receipt)) => {
                    tracing::info!(%call_id, charged = %receipt.charged, "an undecided call was served");
                    if let Err(error) = self.acknowledge(&attempt, *receipt, 0, &Timing::default(), turn) {
                        tracing::error!(%call_id, %error, "the owner's books do not match");
                    }
                    return;
                }
                Some(End::NotCharged(reason)) => {
                    tracing::info!(%call_id, reason, "an undecided call was not charged");
                    self.release(&attempt, reason).await;
                    return;
                }
                None => drop(turn),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.0.stopping.cancelled() => return,
            }
            pause = (pause * 2).min(ASK_EVERY_MAX);
        }
    }

    /// One question; `None` when the end is still unknown.
    async fn ask(&self, attempt: &Attempt) -> Option<End> {
        let promise = &attempt.promise;
        self.compare_books(promise.owner).await.ok()?;
        let message = CallMessage::Status(attempt.call_id());
        let is_settled = clock::now_secs().saturating_sub(promise.time_secs) >= GRACE_SECS;
        let (receipt, signature) =
            match self.0.network.call(promise.owner, message, bytes::Bytes::new(), ASK_TIMEOUT).await {
                Ok((CallReply::Response(response), ..)) => (response.receipt, response.signature),
                Ok((CallReply::Status(CallStatus::Done { receipt, signature }), ..)) => (receipt, signature),
                Ok((CallReply::Status(CallStatus::Unknown), ..)) => {
                    return is_settled.then_some(End::NotCharged("never served"));
                }
                Ok((CallReply::Refused(refusal), ..)) if refusal.code == RefusalCode::MayHaveRun => {
                    return Some(End::NotCharged("interrupted at the owner's node; may have run"));
                }
                Ok(_) | Err(_) => return None,
            };
        match answer::verify_receipt(&attempt.expected, self.0.signer.domain(), receipt, signature) {
            // The word on an earlier, failed attempt says nothing of a copy that is still on its way.
            Ok(receipt) if receipt.charged.is_zero() && !is_settled => None,
            Ok(receipt) => Some(End::Charged(Box::new(receipt))),
            Err(mismatch) => {
                tracing::error!(call_id = %attempt.call_id(), %mismatch, "the owner's receipt is not acceptable");
                self.0.channels.stop(promise.owner);
                None
            }
        }
    }
}

/// The attempt behind a promise of an earlier moment.
fn attempt_of(promise: Promise) -> Attempt {
    let reservation = match promise.request.payment {
        Payment::Free => None,
        Payment::Channel { channel, cumulative, .. } => Some(Reservation {
            channel,
            owner: promise.owner,
            price: promise.request.price,
            cumulative,
            deposited: cumulative,
            seen_total: Usdc::ZERO,
        }),
    };
    let expected = Expected {
        owner: promise.owner,
        call_id: promise.request.call_id,
        channel: promise.channel(),
        request_hash: promise.request_hash,
        price: promise.request.price,
        // The widest policy: the listing of then may be gone, and the price bounds the charge anyway.
        charge_policy: ChargePolicy::Answered,
    };
    Attempt { promise, expected, reservation, funding: Duration::ZERO }
}

/// The request an order stands for, on the terms of an earlier one.
fn asked(order: &Order, terms: &CallRequest) -> CallRequest {
    CallRequest {
        service: order.service,
        method: order.method,
        path: order.path.clone(),
        params: order.params.clone(),
        headers: order.headers.clone(),
        body_bytes: order.body.len() as u64,
        ..terms.clone()
    }
}

/// How an undecided call ended.
enum End {
    Charged(Box<Verified<Receipt>>),
    NotCharged(&'static str),
}

/// Refusals of a repeat that end the first attempt as well: the owner never served the call.
fn is_final(code: RefusalCode) -> bool {
    !matches!(
        code,
        RefusalCode::Busy
            | RefusalCode::RateLimited
            | RefusalCode::Unavailable
            | RefusalCode::ChainStale
            | RefusalCode::CallIdConflict
            | RefusalCode::PriceChanged
            | RefusalCode::UnknownChannel
    )
}
