//! Buying calls from x402 servers, which are no nodes: each is paid by a transfer that the server brings to the chain.
//!
//! In order: the call is sent without a payment; an offer in the answer is held against the chain's own word on the token
//! (`asking`), the caller's `max_price` and the limits; its price is set aside; the payment is signed and stored with
//! the promise; only then it is sent. The server's word that it was taken ends the call, and else the chain's (`open`).
//!
//! Invariants: C2 and C4. One payment is signed for a call id, whatever comes back, and every copy of the call carries it.

use std::{sync::Arc, time::Duration};

use farthing_chain::ChainHandle;
use farthing_control::types::CancelStage;
use farthing_discovery::CatalogError;
use farthing_ledger::{Ledger, LedgerError, Promise, Purchase, TransferEnd, day_of};
use farthing_os::{clock, killpoint};
use farthing_owner::upstream::UpstreamOptions;
use farthing_protocol::{
    CallId, CallRequest, Hash, ServiceId, TokenDomain, TransferAuthorization, Usdc,
    call::{ChargePolicy, Payment},
    limits,
};
use farthing_shared::{call_ends::BegunCall, tasks::Tasks};
use farthing_wallet::Signer;
use farthing_x402::Offer;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

mod asking;
mod exchange;
mod followed;
mod open;
mod payments;
mod servers;
mod terms;
mod times;
mod unpack;

use self::{
    asking::Chosen,
    exchange::{Exchange, ForeignAnswer, PAYMENT_REQUIRED, target},
    followed::Followed,
    payments::{ForeignPayment, ForeignPayments},
    servers::ForeignServers,
    times::Dates,
};
pub use self::{
    servers::{ForeignServer, ForeignServerError},
    terms::{ForeignOffer, ForeignTerms},
};
use crate::consumer::{
    Bought, BuyError, Consumer, ForeignError, NoAnswer, Order, Timing,
    accounts::Earlier,
    awaited::{self, AwaitedCall},
    funding::Funding,
};

/// The longest that a payment is valid for, and its price set aside, whatever the server asks for.
const VALID_SECS_MAX: u64 = 600;
/// A payment is valid from a while ago on: clocks differ.
const VALID_SINCE_SECS: u64 = 600;
/// So much of a call's time is left for a payment that is signed, and for its answer. Else its price would be set aside for nothing.
const PAID_WITHIN_PART: u32 = 5;

/// The parts that buying from x402 servers works with.
#[derive(Debug)]
pub struct ForeignParts {
    pub consumer: Consumer,
    pub funding: Funding,
    pub signer: Signer,
    pub ledger: Ledger,
    pub chain: ChainHandle,
    pub upstream: UpstreamOptions,
    /// True if servers of this machine and of private networks are paid.
    pub allow_private: bool,
    pub call_deadline: Duration,
    /// Work that outlives its caller. Shutdown waits for it.
    pub tasks: Tasks,
    pub stopping: CancellationToken,
}

/// The calls of x402 servers. A cheap handle.
#[derive(Clone, Debug)]
pub struct ForeignCalls(Arc<ForeignInner>);

#[derive(Debug)]
struct ForeignInner {
    parts: ForeignParts,
    servers: ForeignServers,
    payments: ForeignPayments,
    /// Payments whose ends the chain is asked for.
    followed: Mutex<Followed>,
}

impl ForeignCalls {
    /// Reads the servers, and sets aside what may still be taken for calls of an earlier run, or was taken a moment ago.
    ///
    /// # Errors
    /// When the ledger cannot be read.
    pub fn restore(parts: ForeignParts) -> Result<Self, LedgerError> {
        let (ledger, upstream) = (parts.ledger.clone(), parts.upstream.clone());
        let payments = ForeignPayments(ledger.clone());
        let here = (parts.chain.spec().chain_id, parts.chain.spec().token);
        for promise in ledger.unresolved()?.iter().filter(|promise| promise.is_by_transfer()) {
            let call_id = promise.request.call_id;
            // What another token may take is no money of this one. A payment that cannot be read counts.
            if let Some(place) = payments.elsewhere(call_id, here) {
                tracing::warn!(%call_id, %place, "an open payment is in another token than the settings name");
            } else {
                let payment = payments.find(call_id).ok().flatten();
                let until_secs = payment.map(|payment| payment.transfer.authorization.valid_before_secs);
                parts.funding.pledge_again(call_id, promise.request.price, until_secs);
            }
        }
        let servers = ForeignServers::restore(ledger, upstream, parts.allow_private)?;
        let own = Self(Arc::new(ForeignInner { parts, servers, payments, followed: Mutex::default() }));
        for (call_id, payment) in own.charged_lately()? {
            let taken = payment.transfer.authorization;
            own.0.parts.funding.pledge_again(call_id, taken.value, Some(taken.valid_before_secs));
        }
        Ok(own)
    }

    /// Returns whether this id is that of an x402 server.
    pub fn has(&self, service: ServiceId) -> bool {
        self.0.servers.has(service)
    }

    /// Tells of a call that failed because its service is unknown if the service is an x402 server that the user removed, and of an
    /// open call of such a server if no chain of the settings can tell how its payment ends.
    pub fn explain(&self, call_id: CallId, error: BuyError) -> BuyError {
        let explained = match &error {
            BuyError::Service(CatalogError::Unknown(service) | CatalogError::NotKept { service, .. })
                if self.0.servers.was_removed(*service) =>
            {
                Some(ForeignError::Removed(*service))
            }
            BuyError::Undecided(NoAnswer::NotAsked(why))
                if matches!(**why, BuyError::Foreign(ForeignError::Removed(_))) =>
            {
                self.elsewhere(call_id)
            }
            _ => None,
        };
        explained.map_or(error, BuyError::from)
    }

    /// Lists the servers, by their ids.
    pub fn servers(&self) -> Vec<ForeignServer> {
        self.0.servers.all()
    }

    /// Returns what a server asked when it was asked last; `None` if it was not asked since the node started.
    pub fn terms(&self, id: ServiceId) -> Option<ForeignTerms> {
        self.0.servers.terms(id)
    }

    /// Adds a server, whose paths can be called under the id that it gets. None of its calls may cost more than `max_price`; a
    /// server that is there already takes it over. It is asked for its terms unless they are known.
    ///
    /// # Errors
    /// [`ForeignServerError`]; nothing is added then.
    pub async fn add(
        &self,
        address: &str,
        max_price: Option<Usdc>,
    ) -> Result<ForeignServer, ForeignServerError> {
        let server = self.0.servers.add(address, max_price).await?;
        // A server that is away now is added, too.
        if self.terms(server.id).is_none()
            && let Err(error) = self.ask(server.url.as_str()).await
        {
            tracing::debug!(server = %server.id, %error, "a server that was added does not say what it asks");
        }
        Ok(server)
    }

    /// Removes a server. Payments that are under way end as before.
    ///
    /// # Errors
    /// [`ForeignServerError`].
    pub async fn remove(&self, id: ServiceId) -> Result<ForeignServer, ForeignServerError> {
        self.0.servers.remove(id).await
    }

    /// Buys one call. It runs to its end even when the caller goes away or it is cancelled: what was promised must be resolved.
    ///
    /// # Errors
    /// [`BuyError`]; nothing was charged unless it says so.
    pub async fn buy(&self, order: Order) -> Result<Bought, BuyError> {
        let own = self.clone();
        let awaited = self.0.parts.consumer.awaited().begin(&order);
        let told = awaited.told();
        let task = self.0.parts.tasks.spawn(async move {
            let call = BegunCall::new(order.call_id, order.service, order.method, &order.path);
            let bought = own.buy_now(&order, &awaited).await;
            own.0.parts.consumer.note_end(&call, &bought);
            awaited.end(&bought);
            bought
        });
        awaited::end_of(task, told).await
    }

    async fn buy_now(&self, order: &Order, awaited: &AwaitedCall) -> Result<Bought, BuyError> {
        order.in_scope()?;
        let server = self.0.servers.get(order.service).ok_or(ForeignError::Removed(order.service))?;
        let url = target(&server.url, order)?;
        let exchange = Exchange {
            client: self.0.servers.client(&server.url).await?,
            url,
            order,
            budget: self.0.parts.upstream.budget.clone(),
            body_bytes_max: Some(limits::RESPONSE_BODY_BYTES_DEFAULT),
            deadline: Instant::now() + self.0.parts.call_deadline,
        };
        let turn = self.0.parts.consumer.turn(order.call_id).await;
        let bought = self.buy_in_turn(&exchange, awaited).await;
        drop(turn);
        bought
    }

    /// Goes on where the record of the call ends.
    async fn buy_in_turn(&self, exchange: &Exchange<'_>, awaited: &AwaitedCall) -> Result<Bought, BuyError> {
        let (order, consumer) = (exchange.order, &self.0.parts.consumer);
        let payment = self.0.payments.find(order.call_id).map_err(BuyError::Unread)?;
        let earlier = self.earlier(order.call_id, payment.as_ref()).await?;
        if !earlier.belongs_to(&order.grant) {
            return Err(BuyError::CallIdOfAnother);
        }
        consumer.may_buy().map_err(|error| earlier.tell(error))?;
        awaited.enter(earlier.stage())?;
        let request = request_of(order, self.0.parts.call_deadline);
        request.check_bounds()?;
        let request_hash = request.request_hash(&order.body);
        match (earlier, payment) {
            (Earlier::Open(promise), Some(payment)) if promise.request_hash == request_hash => {
                self.check_here(&payment)?;
                self.pay(exchange, &promise, &payment).await
            }
            (Earlier::Bought(purchase), payment)
                if purchase.is_by_transfer() && purchase.request_hash == request_hash =>
            {
                self.ask_again(exchange, &purchase, payment.as_ref()).await
            }
            (Earlier::Nothing, payment) => {
                // One without a promise was stored before a crash, and never sent.
                if payment.is_some() {
                    self.0.payments.forget(order.call_id).await?;
                }
                self.first(exchange, (request, request_hash), awaited).await
            }
            _ => Err(BuyError::CallIdConflict),
        }
    }

    /// Returns what is known of a call id. If its payment counts as not taken, the chain is asked once more, whatever the call asks for
    /// now.
    async fn earlier(&self, call_id: CallId, payment: Option<&ForeignPayment>) -> Result<Earlier, BuyError> {
        let ForeignParts { consumer, ledger, .. } = &self.0.parts;
        let known = consumer.accounts().earlier(call_id).map_err(BuyError::Unread)?;
        if !matches!(known, Earlier::Nothing) {
            return Ok(known);
        }
        let ended = ledger.purchase(call_id).map_err(BuyError::Unread)?;
        let Some(ended) = ended.filter(Purchase::is_by_transfer) else { return Ok(known) };
        // A payment is forgotten only after the chain was asked for a day.
        let paid = match payment {
            Some(payment) => self.taken_after_all(&ended, payment).await?,
            None => None,
        };
        paid.map(|paid| Earlier::Bought(Box::new(paid))).ok_or(ForeignError::Lapsed.into())
    }

    /// Asks what the call costs, and pays it.
    async fn first(
        &self,
        exchange: &Exchange<'_>,
        (request, request_hash): (CallRequest, Hash),
        awaited: &AwaitedCall,
    ) -> Result<Bought, BuyError> {
        let (order, started) = (exchange.order, Instant::now());
        let answer = exchange.send(None).await.map_err(ForeignError::Unreachable)?;
        if answer.status != PAYMENT_REQUIRED {
            let timing = Timing { network: started.elapsed(), ..Timing::default() };
            return Ok(bought(order.call_id, answer, Usdc::ZERO, Some(Usdc::ZERO), timing));
        }
        let (terms, chosen) = self.choose(&exchange.url, &answer).await;
        self.0.servers.hear(order.service, terms);
        let Chosen { offer, token } = chosen?;
        let (price, max_price) = (offer.price, order.max_price.ok_or(ForeignError::NoMaxPrice)?);
        if price > max_price {
            return Err(ForeignError::AboveMaxPrice { price, max_price }.into());
        }
        // While the server was asked, the user may have removed it, lowered its highest price, or stopped all spending.
        let server = self.0.servers.get(order.service).ok_or(ForeignError::Removed(order.service))?;
        let most = server.max_price.unwrap_or(Usdc::MAX);
        if price > most {
            return Err(ForeignError::AboveServerPrice { price, most }.into());
        }
        let ForeignParts { consumer, funding, ledger, .. } = &self.0.parts;
        consumer.may_spend()?;
        let time_secs = clock::now_secs();
        let limits = consumer.rules().limits();
        let hold = consumer.accounts().hold(day_of(time_secs), &order.grant, price, &limits)?;
        let pledge = funding.pledge(order.call_id, price)?;
        let left = exchange.deadline.saturating_duration_since(Instant::now());
        if left < self.0.parts.call_deadline / PAID_WITHIN_PART {
            return Err(ForeignError::Late.into());
        }
        let payment = self.signed(&offer, (&token, max_price.min(most)), time_secs)?;
        let promise = Promise {
            request: CallRequest { price, ..request },
            request_hash,
            owner: offer.pay_to,
            secret: order.grant.name.clone(),
            time_secs,
            limits: Some(hold.limits),
            seen_total: Usdc::ZERO,
            charge_policy: ChargePolicy::Answered,
        };
        awaited.enter(CancelStage::Promised)?;
        // The payment first: a promise of which nobody knows the payment could be paid a second time.
        self.0.payments.put(order.call_id, &payment).await?;
        ledger.promise(promise.clone()).await?.await?;
        hold.keep();
        pledge.keep(payment.transfer.authorization.valid_before_secs);
        self.pay(exchange, &promise, &payment).await
    }

    /// Signs the one payment of a call.
    fn signed(
        &self,
        offer: &Offer,
        (token, max_price): (&TokenDomain, Usdc),
        time_secs: u64,
    ) -> Result<ForeignPayment, BuyError> {
        let ForeignParts { signer, chain, .. } = &self.0.parts;
        let mut nonce = [0; 32];
        getrandom::fill(&mut nonce).map_err(|_| BuyError::Failed)?;
        let from_secs = times::signed_from(chain.spec().kind, self.newest_dates(), time_secs)?;
        let transfer = TransferAuthorization {
            from: signer.address(),
            to: offer.pay_to,
            value: offer.price,
            valid_after_secs: time_secs.saturating_sub(VALID_SINCE_SECS),
            valid_before_secs: from_secs.saturating_add(offer.timeout_secs.min(VALID_SECS_MAX)),
            nonce,
        };
        let transfer = signer.sign_transfer(transfer, token, max_price)?;
        let since_block = chain.head().borrow().as_ref().map_or(0, |head| head.number);
        Ok(ForeignPayment {
            chain_id: chain.spec().chain_id,
            transfer,
            header_name: offer.header_name().to_owned(),
            header: offer.payment(&transfer),
            since_block,
            time_secs,
            answered: None,
            token: Some(chain.spec().token),
        })
    }

    /// The date of the chain's newest block, and this machine's when it saw that block; `None` before the chain was read.
    fn newest_dates(&self) -> Option<Dates> {
        let head = (*self.0.parts.chain.head().borrow())?;
        let seen_secs = clock::now_secs().saturating_sub(head.seen_at.elapsed().as_secs());
        Some(Dates { block_secs: head.timestamp_secs, seen_secs })
    }

    /// Sends the payment of a call, and books the server's word on it.
    async fn pay(
        &self,
        exchange: &Exchange<'_>,
        promise: &Promise,
        payment: &ForeignPayment,
    ) -> Result<Bought, BuyError> {
        let (call_id, price, started) = (promise.request.call_id, promise.request.price, Instant::now());
        killpoint::reached("foreign.before_send");
        let answer = exchange.send(Some(payment)).await;
        killpoint::reached("foreign.after_answer");
        let timing = Timing { network: started.elapsed(), ..Timing::default() };
        let heard = answer.as_ref().ok().and_then(|answer| answer.heard.clone());
        let taken = heard.as_ref().filter(|heard| heard.success);
        if let (Some(taken), Ok(answer)) = (taken, &answer) {
            let end = TransferEnd {
                transaction: taken.transaction,
                status: answer.status,
                total_us: clock::micros(timing.network),
                time_secs: clock::now_secs(),
                is_seen: false,
            };
            self.taken(promise, end).await;
        } else if let Ok(answer) = &answer
            && answer.status != PAYMENT_REQUIRED
        {
            self.note_answer(call_id, payment, answer.status).await;
        }
        // Also one that the server says it took: until a block has it, the balance contains its price.
        self.follow(call_id);
        let why = match answer {
            Ok(answer) if answer.status != PAYMENT_REQUIRED => {
                // While the server does not say that it took the payment, it may yet: the chain tells what the call cost.
                return Ok(bought(call_id, answer, price, taken.map(|_| price), timing));
            }
            Ok(_) if taken.is_some() => {
                let why = "asks for another one, which this node does not make".to_owned();
                return Err(ForeignError::Withheld { charged: price, why }.into());
            }
            Ok(_) => match heard.and_then(|heard| heard.error) {
                Some(reason) => format!("refuses it ({reason})"),
                None => "asks for another one, which this node does not make".to_owned(),
            },
            Err(why) => format!("gave no answer: {why}"),
        };
        let until = clock::timestamp(payment.transfer.authorization.valid_before_secs);
        Err(ForeignError::Open { why, until }.into())
    }

    /// Keeps the status of an answer until the chain tells whether it was paid.
    async fn note_answer(&self, call_id: CallId, payment: &ForeignPayment, status: u16) {
        let answered = ForeignPayment { answered: Some(status), ..payment.clone() };
        if let Err(error) = self.0.payments.put(call_id, &answered).await {
            tracing::warn!(%call_id, %error, "the status of an answer is not stored");
        }
    }

    /// Asks for the answer of a call that is paid, with its payment.
    async fn ask_again(
        &self,
        exchange: &Exchange<'_>,
        purchase: &Purchase,
        payment: Option<&ForeignPayment>,
    ) -> Result<Bought, BuyError> {
        let charged = purchase.charged;
        let Some(payment) = payment else { return Err(BuyError::BodyGone { charged }) };
        let started = Instant::now();
        let withheld = |why: String| ForeignError::Withheld { charged, why };
        let answer = exchange.send(Some(payment)).await;
        let answer = answer.map_err(|why| withheld(format!("does not repeat its answer: {why}")))?;
        if answer.status == PAYMENT_REQUIRED {
            return Err(withheld("does not repeat its answer".to_owned()).into());
        }
        let timing = Timing { network: started.elapsed(), ..Timing::default() };
        Ok(Bought { is_repeat: true, ..bought(purchase.call_id, answer, charged, Some(charged), timing) })
    }
}

/// The order as a promise has it; its price is not known yet.
fn request_of(order: &Order, deadline: Duration) -> CallRequest {
    CallRequest {
        call_id: order.call_id,
        service: order.service,
        listing_version: 0,
        method: order.method,
        path: order.path.clone(),
        params: order.params.clone(),
        headers: order.headers.clone(),
        body_bytes: order.body.len() as u64,
        price: Usdc::ZERO,
        deadline_ms: u64::try_from(deadline.as_millis()).unwrap_or(limits::CALL_DEADLINE_MS_DEFAULT),
        payment: Payment::Free,
    }
}

/// An answer as its caller gets it. What is paid is exactly the price, and the server's word on its transaction is no receipt.
fn bought(
    call_id: CallId,
    answer: ForeignAnswer,
    price: Usdc,
    charged: Option<Usdc>,
    timing: Timing,
) -> Bought {
    let ForeignAnswer { status, headers, body, .. } = answer;
    Bought { call_id, status, headers, body, price, charged, receipt: None, timing, is_repeat: false }
}
