//! Repeats of a call id: of a call whose end is not known, and of one that was bought.
//!
//! A repeat asks the owner again under the same id, which costs nothing more.

use std::time::Duration;

use farthing_control::types::CancelStage;
use farthing_ledger::{Promise, Purchase};
use farthing_protocol::{ChannelId, Refusal, RefusalCode, ServiceId, Usdc, limits, resolution::Copies};
use tokio::time::Instant;

use crate::secret::file::DEFAULT_SECRET;

use super::{
    Bought, BuyError, Consumer, LastKnown, NoAnswer, NotTold, Order, Timing, Turn,
    accounts::{Attempt, Earlier},
    answer::{self, ExpectedAnswer, Mismatch},
    awaited::AwaitedCall,
    channels::Reservation,
    exchange::Exchanged,
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

    /// Tells how far a call with this past is before anything more is promised for it.
    pub(crate) const fn stage(&self) -> CancelStage {
        match self {
            Self::Nothing => CancelStage::Unpromised,
            Self::Open(_) | Self::Bought(_) | Self::InDoubt => CancelStage::Promised,
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
        awaited: &AwaitedCall,
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
        let has_failed = || false;
        let mut exchanged = self.0.client.exchange(&attempt, deadline, &mut turn, awaited, has_failed).await;
        let is_behind =
            matches!(&exchanged, Exchanged::Refused(refusal) if refusal.code == RefusalCode::BooksBehind);
        if is_behind && self.0.books.heal_for_a_call(attempt.expected.owner, deadline).await.is_ok() {
            exchanged = self.0.client.exchange(&attempt, deadline, &mut turn, awaited, has_failed).await;
        }
        let ExpectedAnswer { owner, call_id, .. } = attempt.expected;
        let unjudged = self.0.accounts.undecided().take_unjudged(owner, call_id);
        self.0.closer.conclude(&attempt, exchanged, sent.elapsed(), turn, unjudged).await
    }

    /// Fetches the answer of a finished call again. It was paid for; the owner answers it once more, free.
    pub(super) async fn fetch_again(
        &self,
        order: Order,
        purchase: Purchase,
        deadline: Instant,
        awaited: &AwaitedCall,
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
        let mut copies = Copies::default();
        match self.0.client.exchange(&attempt, deadline, &mut copies, awaited, || false).await {
            Exchanged::Response(response, body) => {
                let domain = self.0.closer.domain_of(&attempt, response.receipt, response.signature);
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
                    charged: Some(charged),
                    receipt: Some(receipt.digest(&domain)),
                    timing: Timing { network: sent.elapsed(), ..Timing::default() },
                    is_repeat: true,
                })
            }
            Exchanged::Gone { .. } | Exchanged::Unasked(..) => Err(BuyError::BodyGone { charged }),
            Exchanged::Refused(refusal) if refusal.code == RefusalCode::CallIdConflict => {
                Err(BuyError::Refused(refusal))
            }
            // It asks for money as for a new call, so it does not know this one: its ledger came from a backup.
            Exchanged::Refused(refusal)
                if matches!(refusal.code, RefusalCode::PriceChanged | RefusalCode::PaymentRequired) =>
            {
                Err(BuyError::BodyGone { charged })
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

    /// Checks that a receipt on a channel can be verified. Where it cannot, nobody is asked for one: it would look like a
    /// forgery, and the owner that gave it like a liar.
    fn check_signed_here(&self, channel: ChannelId) -> Result<(), NoAnswer> {
        if self.0.books.is_signed_elsewhere(channel) { Err(NoAnswer::Elsewhere(channel)) } else { Ok(()) }
    }
}
