//! The ordered checks between a call's arrival and its upstream. Wallets are free, so what costs next to nothing comes
//! first: whether the call is for sale at its price, and names a channel that is known. Only then it takes a place, and
//! what it asks is checked and hashed, off the threads that all calls share. The voucher comes last.
//!
//! [`Admitted`] and [`AdmittedAgain`] are made here alone, and theirs are the network's only ways to the upstream.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_bounds::HeldBytes;
use farthing_discovery::{CallPlan, Condition, PlanError};
use farthing_ledger::{CallRow, Ledger, LedgerError};
use farthing_os::{clock, killpoint};
use farthing_protocol::{
    Address, CallId, CallRequest, ChannelConfig, ChannelId, Hash, Refusal, RefusalCode, ServiceId, Signature,
    Usdc, Verified, Voucher,
    call::{ChargePolicy, Method, Payment},
    limits,
};
use farthing_shared::{blocking::start_blocking, chain_view};

use super::{
    Owner,
    book::{Reserved, Room},
    load::{Caller, WorkPlace},
    registry::Registered,
    running::RunningCall,
    unknown_channel,
    upstream::{CallName, Permit, Sealed, UpstreamAnswer, UpstreamRequest},
};

/// A body of this size is hashed in the time that handing it to another thread takes.
const HASHED_AT_ONCE_BYTES_MAX: usize = 16 * 1024;
/// Parameters and body of a call that is planned without a thread of its own: to wake one takes longer.
const PLANNED_AT_ONCE_BYTES_MAX: usize = 4 * 1024;

/// A call that may be served: known, well-formed, paid for, and within the owner's capacity.
#[derive(Debug)]
pub struct Admitted {
    payer: Address,
    request: CallRequest,
    request_hash: Hash,
    body: Bytes,
    service: Arc<Registered>,
    plan: CallPlan,
    /// `None` for a free call.
    reserved: Option<Reserved>,
    place: WorkPlace,
    is_relayed: bool,
}

/// A finished call whose service may be asked once more, when that is stored.
#[derive(Debug)]
pub struct AdmittedAgain {
    request: UpstreamRequest,
    service: Arc<Registered>,
    place: WorkPlace,
}

/// The one repeat of a finished call, which is stored.
#[derive(Debug)]
pub(super) struct Replay(AdmittedAgain);

impl Owner {
    /// Checks a call in order. Everything refused here is free and leaves no trace, but that a call which does not fit, or
    /// whose voucher its payer did not sign, counts as uncharged work of its payer: honest nodes check their calls before
    /// they send them, and to verify a signature takes as long as much of a call.
    ///
    /// # Errors
    /// The [`Refusal`] of the first check that fails.
    pub(super) async fn admit(
        &self,
        caller: Caller,
        request: CallRequest,
        body: Bytes,
        running: &RunningCall,
    ) -> Result<Admitted, Refusal> {
        let (parts, payer) = (&self.0, caller.wallet);
        if parts.ledger.closed().is_some() {
            return Err(Refusal::new(RefusalCode::Unavailable, "the owner's node cannot store new calls"));
        }
        let service = self.registered(&request)?;
        check_offer(&service, &request)?;
        let operation = service.known().operation_at(request.method, &request.path);
        let operation = operation.as_deref().map(|operation| (request.service, operation));
        parts.load.check_uncharged(payer, operation)?;
        let has_channel = self.check_means(payer, &request, request.price)?.is_some() || caller.has_channel;
        let bytes = service.upstream().large_bytes();
        let place = parts.load.enter(Caller { has_channel, ..caller }, request.service, bytes).await?;
        parts.load.begin_uncharged(payer, operation)?;
        let plan = planned(&service, &request, &body).await?;
        let plan = plan.inspect_err(|_| parts.load.count_end(payer, operation, false))?;
        check_price(&service, &request, Some(plan.price))?;
        let request_hash = hash_noted(running, &request, &body).await?;
        let reserved = match self.check_means(payer, &request, plan.price)? {
            None => None,
            Some(means) => {
                let voucher = self.verify(&means).inspect_err(|refusal| {
                    if refusal.code == RefusalCode::BadSignature {
                        parts.load.count_end(payer, operation, false);
                    }
                })?;
                let reserved = parts.book.admit(
                    means.channel,
                    voucher.as_ref(),
                    plan.price,
                    chain_view::means(&parts.chain),
                );
                Some(reserved.map_err(|code| self.payment_refusal(code, plan.price))?)
            }
        };
        let is_relayed = caller.is_relayed;
        let admitted =
            Admitted { payer, request, request_hash, body, service, plan, reserved, place, is_relayed };
        killpoint::reached("owner.after_reserve");
        if !admitted.method().is_safe() {
            self.accept(&admitted).await?;
        }
        Ok(admitted)
    }

    /// Lets a finished call reach its service once more, if what is offered today still has it, at no higher price than
    /// was paid. Capacity is checked as for any call; the payment is not, because it was made. `None` when it is not
    /// offered any more.
    ///
    /// # Errors
    /// A refusal that time mends: the service is paused, or the node is busy.
    pub(super) async fn admit_again(
        &self,
        row: &CallRow,
        request: &CallRequest,
        body: &Bytes,
    ) -> Result<Option<AdmittedAgain>, Refusal> {
        let (payer, price) = (row.payer, row.call.price);
        let Ok(service) = self.registered(request) else { return Ok(None) };
        check_not_paused(&service)?;
        let operation = service.known().operation_at(request.method, &request.path);
        let operation = operation.as_deref().map(|operation| (request.service, operation));
        self.0.load.check_uncharged(payer, operation)?;
        let has_channel = !row.call.charged.is_zero();
        let caller = Caller { wallet: payer, has_channel, is_relayed: false };
        let place = self.0.load.enter(caller, request.service, service.upstream().large_bytes()).await?;
        let Ok(plan) = planned(&service, request, body).await? else { return Ok(None) };
        if plan.price > price {
            return Ok(None);
        }
        self.0.load.begin_uncharged(payer, operation)?;
        self.0.load.count_end(payer, operation, false);
        Ok(Some(AdmittedAgain { request: upstream_request(&plan, request, body), service, place }))
    }

    fn registered(&self, request: &CallRequest) -> Result<Arc<Registered>, Refusal> {
        let unknown = || Refusal::new(RefusalCode::UnknownService, "this node does not offer the service");
        self.0.registry.get(request.service).ok_or_else(unknown)
    }

    /// Returns the reason that a channel which may well be on chain is not served.
    fn not_in_the_book(&self, payer: Address, channel: ChannelId) -> Refusal {
        match self.0.chain.channel(&channel) {
            Some(view) if view.config.payer == payer && view.config.payee == self.0.signer.address() => {
                let left = view.deposited.saturating_sub(view.claimed);
                match self.0.terms.check(&view.config, view.deposited) {
                    Err(refusal) => refusal,
                    Ok(()) if self.0.book.room_for(channel, left) == Room::Full => no_room(),
                    Ok(()) => unknown_channel(),
                }
            }
            _ => unknown_channel(),
        }
    }

    fn payment_refusal(&self, code: RefusalCode, price: Usdc) -> Refusal {
        let detail = match code {
            RefusalCode::InsufficientVoucher => {
                format!("the voucher leaves less than {price} USDC of headroom")
            }
            RefusalCode::VoucherAboveDeposit => {
                "the voucher promises more than the confirmed deposit".to_owned()
            }
            RefusalCode::ChannelClosing => "a close of the channel is pending".to_owned(),
            RefusalCode::DepositNotSafe => {
                let most = self.0.terms.unsafe_max;
                let detail = format!(
                    "the chain may still take back the deposit; until it is safe, this owner serves each payer for at \
                     most {most} USDC"
                );
                return Refusal::new(code, detail).retry_after_ms(30_000);
            }
            RefusalCode::OwnerCannotClaim => {
                let most = self.0.terms.without_gas_max;
                let detail = format!(
                    "the owner cannot claim its earnings: its wallet lacks ETH, or the contract refuses. It serves no \
                     calls beyond {most} USDC of earnings that it cannot claim"
                );
                return Refusal::new(code, detail).retry_after_ms(60_000);
            }
            _ => return unknown_channel(),
        };
        Refusal::new(code, detail)
    }

    /// Checks that a call at `price` names a channel that can pay for it, as far as that shows without arithmetic;
    /// `None` when it costs nothing.
    fn check_means<'a>(
        &self,
        payer: Address,
        request: &'a CallRequest,
        price: Usdc,
    ) -> Result<Option<PayingChannel<'a>>, Refusal> {
        if price.is_zero() {
            return Ok(None);
        }
        let Payment::Channel { channel, cumulative, signature, receipted } = &request.payment else {
            let detail = format!("this call costs {price} USDC");
            return Err(Refusal::new(RefusalCode::PaymentRequired, detail));
        };
        if !chain_view::is_fresh(&self.0.chain) {
            let detail = "the owner has not seen a new block for too long to serve paid calls";
            return Err(Refusal::new(RefusalCode::ChainStale, detail).retry_after_ms(5_000));
        }
        let Some((config, deposited, best)) = self.0.book.terms(*channel) else {
            return Err(self.not_in_the_book(payer, *channel));
        };
        if config.payer != payer {
            let detail = "the channel belongs to another payer";
            return Err(Refusal::new(RefusalCode::BadSignature, detail));
        }
        self.0.terms.check(&config, deposited)?;
        if *cumulative <= deposited && self.0.book.is_behind(*channel, receipted.unwrap_or_default()) {
            let detail =
                "the owner's ledger lacks calls for which you have its receipts; show it the newest receipt";
            return Err(Refusal::new(RefusalCode::BooksBehind, detail));
        }
        let signature = signature.as_ref().filter(|_| *cumulative > best);
        Ok(Some(PayingChannel { channel: *channel, config, cumulative: *cumulative, signature }))
    }

    /// The voucher of a call, verified against the channel's signer; `None` when it brings nothing new.
    fn verify(&self, means: &PayingChannel<'_>) -> Result<Option<Verified<Voucher>>, Refusal> {
        let Some(signature) = means.signature else { return Ok(None) };
        Voucher { channel: means.channel, cumulative: means.cumulative }
            .verify(self.0.signer.domain(), *signature, means.config.signer)
            .map(Some)
            .map_err(|error| {
                // A payer that did nothing wrong hears of no bad signature.
                let here = self.check_signs_on(means.channel);
                here.err().unwrap_or_else(|| Refusal::new(RefusalCode::BadSignature, error.to_string()))
            })
    }
}

/// The channel that a call is to be paid from.
struct PayingChannel<'a> {
    channel: ChannelId,
    config: ChannelConfig,
    cumulative: Usdc,
    /// Of a voucher that brings something new.
    signature: Option<&'a Signature>,
}

/// Listing version and price: whether the owner offers today what the call says. What it asks is not looked at yet.
fn check_offer(service: &Registered, request: &CallRequest) -> Result<(), Refusal> {
    check_not_paused(service)?;
    // An operation that does not exist has no price; the plan says what is wrong.
    check_price(service, request, service.known().price_at(request.method, &request.path))
}

fn check_price(service: &Registered, request: &CallRequest, price: Option<Usdc>) -> Result<(), Refusal> {
    let listing = service.listing();
    if request.listing_version == listing.seq && price.is_none_or(|price| price == request.price) {
        return Ok(());
    }
    let detail = match price {
        Some(price) => format!("the price is {price} USDC since version {}", listing.seq),
        None => format!("the service has changed since version {}", listing.seq),
    };
    let mut refusal = Refusal::new(RefusalCode::PriceChanged, detail);
    refusal.listing = Some(listing.to_signed());
    Err(refusal)
}

pub(super) fn check_not_paused(service: &Registered) -> Result<(), Refusal> {
    if service.listing().paused {
        return Err(Refusal::new(RefusalCode::ServicePaused, "the owner has paused the service"));
    }
    Ok(())
}

fn plan(service: &Registered, request: &CallRequest, body: &[u8]) -> Result<CallPlan, Refusal> {
    let planned =
        service.known().plan(request.method, &request.path, &request.params, &request.headers, body);
    let plan = planned.map_err(misfit)?;
    if let Some(name) = service.upstream().secret_in(&plan.request, body) {
        let detail = format!("`{name}` is not a parameter of this operation");
        return Err(Refusal::new(RefusalCode::BadParameter, detail));
    }
    Ok(plan)
}

/// Tells a caller why its call does not fit.
pub(super) fn misfit(error: PlanError) -> Refusal {
    match error {
        PlanError::UnknownPath(detail) => Refusal::new(RefusalCode::UnknownOperation, detail),
        PlanError::MethodNotAllowed(detail) => Refusal::new(RefusalCode::MethodNotAllowed, detail),
        PlanError::BadParameter(detail) => Refusal::new(RefusalCode::BadParameter, detail),
    }
}

/// Works out what a call asks of its service, or why it does not fit; takes as long as its owner's description lets it.
///
/// # Errors
/// A refusal when this node failed.
pub(super) async fn planned(
    service: &Arc<Registered>,
    request: &CallRequest,
    body: &Bytes,
) -> Result<Result<CallPlan, Refusal>, Refusal> {
    // To say what may have been meant takes a while, too.
    let is_known = || service.known().api().operation_at(request.method.as_str(), &request.path).is_some();
    let params = request.params.iter().map(|(name, value)| name.len() + value.len());
    if params.sum::<usize>() + body.len() <= PLANNED_AT_ONCE_BYTES_MAX && is_known() {
        return Ok(plan(service, request, body));
    }
    let (service, request, body) = (service.clone(), request.clone(), body.clone());
    run_blocking(move || plan(&service, &request, &body)).await
}

/// See [`CallRequest::request_hash`].
///
/// # Errors
/// A refusal when this node failed.
pub(super) async fn request_hash(request: &CallRequest, body: &Bytes) -> Result<Hash, Refusal> {
    if body.len() <= HASHED_AT_ONCE_BYTES_MAX {
        return Ok(request.request_hash(body));
    }
    let (request, body) = (request.clone(), body.clone());
    run_blocking(move || request.request_hash(&body)).await
}

/// The hash of what a call asks for, worked out once: whoever sends something else under its id hears of it from then on.
///
/// # Errors
/// A refusal when this node failed.
pub(super) async fn hash_noted(
    running: &RunningCall,
    request: &CallRequest,
    body: &Bytes,
) -> Result<Hash, Refusal> {
    if let Some(noted) = running.request_hash() {
        return Ok(noted);
    }
    let worked_out = request_hash(request, body).await?;
    running.asks_for(worked_out);
    Ok(worked_out)
}

/// Does work that would hold up other calls.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Refusal> {
    let done = start_blocking(work).await;
    done.map_err(|_| Refusal::new(RefusalCode::Unavailable, "the owner's node failed while it read the call"))
}

pub(super) fn upstream_request(plan: &CallPlan, request: &CallRequest, body: &Bytes) -> UpstreamRequest {
    UpstreamRequest {
        request: plan.request.clone(),
        headers: plan.headers.clone(),
        body: body.clone(),
        deadline: Duration::from_millis(upstream_deadline_ms(request.method, request.deadline_ms)),
        time: plan.time,
        call: Some(CallName {
            call_id: request.call_id,
            service: request.service,
            operation: plan.operation.clone(),
        }),
        html: plan.html,
    }
}

/// Computes the time that the service may take. A call with effects has the owner's own limit, whatever its payer asks
/// for: a payer that hangs up early would otherwise have the effect and not its price. A payer's deadline shortens the
/// work for calls without effects, down to what a service may need at least.
fn upstream_deadline_ms(method: Method, deadline_ms: u64) -> u64 {
    let (min, max) = (limits::CALL_DEADLINE_MS_MIN, limits::CALL_DEADLINE_MS_MAX);
    if method.is_safe() { deadline_ms.clamp(min, max) } else { max }
}

impl AdmittedAgain {
    /// Stores that the call is repeated; `None` when it was before: one charge never buys a third execution.
    pub(super) async fn record(self, ledger: &Ledger, row: &CallRow) -> Result<Option<Replay>, LedgerError> {
        let is_first = ledger.repeat(row.payer, row.call.call_id, clock::now_secs()).await?;
        Ok(is_first.then_some(Replay(self)))
    }
}

impl Replay {
    /// Asks the upstream.
    pub(super) async fn fetch(self) -> UpstreamAnswer {
        self.0.service.upstream().fetch(&self).await
    }
}

impl Sealed for Replay {}

impl Permit for Replay {
    fn request(&self) -> UpstreamRequest {
        self.0.request.clone()
    }

    fn room(&self) -> Option<HeldBytes> {
        Some(self.0.place.room())
    }
}

impl Sealed for Admitted {}

impl Permit for Admitted {
    fn request(&self) -> UpstreamRequest {
        upstream_request(&self.plan, &self.request, &self.body)
    }

    fn room(&self) -> Option<HeldBytes> {
        Some(self.place.room())
    }

    fn is_relayed(&self) -> bool {
        self.is_relayed
    }
}

impl Admitted {
    /// Asks the upstream.
    pub async fn fetch(&self) -> UpstreamAnswer {
        self.service.upstream().fetch(self).await
    }

    /// Ends the reservation with what was charged.
    pub fn settle(self, charge: Usdc) {
        if let Some(reserved) = self.reserved {
            reserved.settle(charge);
        }
    }

    pub const fn payer(&self) -> Address {
        self.payer
    }

    pub fn operation(&self) -> (ServiceId, &str) {
        (self.request.service, &self.plan.operation)
    }

    pub const fn call_id(&self) -> CallId {
        self.request.call_id
    }

    pub const fn method(&self) -> Method {
        self.request.method
    }

    pub const fn request(&self) -> &CallRequest {
        &self.request
    }

    pub const fn request_hash(&self) -> Hash {
        self.request_hash
    }

    pub const fn price(&self) -> Usdc {
        self.plan.price
    }

    /// The one thing that its caller says it has.
    pub const fn condition(&self) -> Option<&Condition> {
        self.plan.condition.as_ref()
    }

    pub fn charge_policy(&self) -> ChargePolicy {
        self.service.listing().charge_policy
    }

    /// The reservation; `None` for a free call.
    pub const fn reserved(&self) -> Option<&Reserved> {
        self.reserved.as_ref()
    }
}

/// A channel that has its terms right and found no place all the same.
fn no_room() -> Refusal {
    let detail = "the owner has no room for a channel with so small a deposit; deposit more";
    Refusal::new(RefusalCode::DepositTooSmall, detail)
}

#[cfg(test)]
mod tests;
