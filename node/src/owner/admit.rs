//! The ordered checks between a call's arrival and its upstream. Cheap ones first, money last.
//!
//! [`Admitted`] and [`AdmittedAgain`] are made here alone, and theirs are the only ways to the upstream.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_protocol::{
    Address, CallId, CallRequest, ChannelId, Hash, Refusal, RefusalCode, Signature, Usdc, Verified, Voucher,
    call::{ChargePolicy, Method, Payment},
    limits,
};

use crate::{
    catalog::{Plan, PlanError},
    chain_view, killpoint,
};

use super::{
    Owner,
    book::{Reserved, Room},
    load::Place,
    registry::Registered,
    unknown_channel,
    upstream::{UpstreamAnswer, UpstreamRequest},
};

/// A call that may be served: known, well-formed, paid for, and within the owner's capacity.
#[derive(Debug)]
pub struct Admitted {
    payer: Address,
    request: CallRequest,
    request_hash: Hash,
    body: Bytes,
    service: Arc<Registered>,
    plan: Plan,
    /// `None` for a free call.
    reserved: Option<Reserved>,
    _place: Place,
}

/// A finished call whose service may be asked once more.
#[derive(Debug)]
pub struct AdmittedAgain {
    request: UpstreamRequest,
    service: Arc<Registered>,
    _place: Place,
}

impl Owner {
    /// Checks a call in order. Everything refused here is free and leaves no trace.
    ///
    /// # Errors
    /// The [`Refusal`] of the first check that fails.
    pub(super) async fn admit(
        &self,
        payer: Address,
        request: CallRequest,
        body: Bytes,
    ) -> Result<Admitted, Refusal> {
        let parts = &self.0;
        if parts.ledger.closed().is_some() {
            return Err(Refusal::new(RefusalCode::Unavailable, "the owner's node cannot store new calls"));
        }
        parts.load.check_failures(payer)?;
        let service = self.registered(&request)?;
        let plan = check_offer(&service, &request, &body)?;
        let place = parts.load.enter(payer, request.service).await?;
        let reserved = match (&request.payment, plan.price.is_zero()) {
            (_, true) => None,
            (Payment::Free, false) => {
                let detail = format!("this call costs {} USDC", plan.price);
                return Err(Refusal::new(RefusalCode::PaymentRequired, detail));
            }
            (Payment::Channel { channel, cumulative, signature }, false) => {
                if !chain_view::is_fresh(&parts.chain) {
                    let detail = "the owner's view of the chain is too old to take on new value";
                    return Err(Refusal::new(RefusalCode::ChainStale, detail).retry_after_ms(5_000));
                }
                let voucher = self.verify(payer, *channel, *cumulative, signature.as_ref())?;
                let means = chain_view::means(&parts.chain);
                let reserved = parts.book.admit(*channel, voucher.as_ref(), plan.price, means);
                Some(reserved.map_err(|code| self.payment_refusal(code, plan.price))?)
            }
        };
        let request_hash = request.request_hash(&body);
        let admitted =
            Admitted { payer, request, request_hash, body, service, plan, reserved, _place: place };
        killpoint::reached("owner.after_reserve");
        if !admitted.method().is_safe() {
            self.accept(&admitted).await?;
        }
        Ok(admitted)
    }

    /// Whether a finished call may reach its service once more: what is offered today still has it, at no higher
    /// price than `price`, which was paid. Capacity is checked as for any call; the payment is not, because it was
    /// made. `None` when it is not offered any more.
    ///
    /// # Errors
    /// A refusal that time mends: the service is paused, or the node is busy.
    pub(super) async fn admit_again(
        &self,
        payer: Address,
        request: &CallRequest,
        body: &Bytes,
        price: Usdc,
    ) -> Result<Option<AdmittedAgain>, Refusal> {
        self.0.load.check_failures(payer)?;
        let Ok(service) = self.registered(request) else { return Ok(None) };
        check_not_paused(&service)?;
        let Ok(plan) = plan(&service, request, body) else { return Ok(None) };
        if plan.price > price {
            return Ok(None);
        }
        let place = self.0.load.enter(payer, request.service).await?;
        self.0.load.count_failure(payer);
        Ok(Some(AdmittedAgain { request: upstream_request(&plan, request, body), service, _place: place }))
    }

    fn registered(&self, request: &CallRequest) -> Result<Arc<Registered>, Refusal> {
        let unknown = || Refusal::new(RefusalCode::UnknownService, "this node does not offer the service");
        self.0.registry.get(request.service).ok_or_else(unknown)
    }

    /// Why a channel that may well be on chain is not served.
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
                    "the chain may still take back what was deposited, and until it cannot this owner serves each \
                     payer for {most} USDC at most"
                );
                return Refusal::new(code, detail).retry_after_ms(30_000);
            }
            RefusalCode::OwnerCannotClaim => {
                let most = self.0.terms.without_gas_max;
                let detail = format!(
                    "the owner's wallet cannot pay the chain for the claims that are due, so nothing is served beyond \
                     {most} USDC unclaimed; it goes on once the wallet has ETH"
                );
                return Refusal::new(code, detail).retry_after_ms(60_000);
            }
            _ => return unknown_channel(),
        };
        Refusal::new(code, detail)
    }

    /// The voucher of a call, verified against the channel's signer; `None` when it brings nothing new.
    fn verify(
        &self,
        payer: Address,
        channel: ChannelId,
        cumulative: Usdc,
        signature: Option<&Signature>,
    ) -> Result<Option<Verified<Voucher>>, Refusal> {
        let Some((config, deposited, best)) = self.0.book.terms(channel) else {
            return Err(self.not_in_the_book(payer, channel));
        };
        if config.payer != payer {
            let detail = "the channel belongs to another payer";
            return Err(Refusal::new(RefusalCode::BadSignature, detail));
        }
        self.0.terms.check(&config, deposited)?;
        let Some(signature) = signature.filter(|_| cumulative > best) else { return Ok(None) };
        Voucher { channel, cumulative }
            .verify(self.0.signer.domain(), *signature, config.signer)
            .map(Some)
            .map_err(|e| Refusal::new(RefusalCode::BadSignature, e.to_string()))
    }
}

/// Listing version, operation, parameters and price: what the owner offers today.
fn check_offer(service: &Registered, request: &CallRequest, body: &[u8]) -> Result<Plan, Refusal> {
    check_not_paused(service)?;
    let listing = service.listing();
    let plan = plan(service, request, body)?;
    if request.listing_version != listing.seq || request.price != plan.price {
        let detail = format!("the price is {} USDC since version {}", plan.price, listing.seq);
        let mut refusal = Refusal::new(RefusalCode::PriceChanged, detail);
        refusal.listing = Some(listing.to_signed());
        return Err(refusal);
    }
    Ok(plan)
}

fn check_not_paused(service: &Registered) -> Result<(), Refusal> {
    if service.listing().paused {
        return Err(Refusal::new(RefusalCode::ServicePaused, "the owner has paused the service"));
    }
    Ok(())
}

fn plan(service: &Registered, request: &CallRequest, body: &[u8]) -> Result<Plan, Refusal> {
    let planned =
        service.known().plan(request.method, &request.path, &request.params, &request.headers, body);
    let plan = planned.map_err(|error| match error {
        PlanError::UnknownPath(detail) => Refusal::new(RefusalCode::UnknownOperation, detail),
        PlanError::MethodNotAllowed(detail) => Refusal::new(RefusalCode::MethodNotAllowed, detail),
        PlanError::BadParameter(detail) => Refusal::new(RefusalCode::BadParameter, detail),
    })?;
    if let Some(name) = service.upstream().secret_in(&plan.request, body) {
        let detail = format!("`{name}` is not a parameter of this operation");
        return Err(Refusal::new(RefusalCode::BadParameter, detail));
    }
    Ok(plan)
}

fn upstream_request(plan: &Plan, request: &CallRequest, body: &Bytes) -> UpstreamRequest {
    UpstreamRequest {
        request: plan.request.clone(),
        headers: plan.headers.clone(),
        body: body.clone(),
        deadline: Duration::from_millis(upstream_deadline_ms(request.method, request.deadline_ms)),
    }
}

/// How long the service may take. A call with effects has the owner's own limit, whatever its payer asks for: who
/// hangs up early would otherwise have the effect and not its price. A payer's deadline shortens the work for
/// calls without effects, down to what a service may need at least.
fn upstream_deadline_ms(method: Method, deadline_ms: u64) -> u64 {
    let (min, max) = (limits::CALL_DEADLINE_MS_MIN, limits::CALL_DEADLINE_MS_MAX);
    if method.is_safe() { deadline_ms.clamp(min, max) } else { max }
}

impl AdmittedAgain {
    /// Asks the upstream.
    pub async fn fetch(self) -> UpstreamAnswer {
        self.service.upstream().fetch(self.request).await
    }
}

impl Admitted {
    /// Asks the upstream.
    pub async fn fetch(&self) -> UpstreamAnswer {
        self.service.upstream().fetch(upstream_request(&self.plan, &self.request, &self.body)).await
    }

    /// Ends the reservation with what was charged.
    pub fn settle(self, charge: Usdc) {
        if let Some(reserved) = self.reserved {
            reserved.settle(charge);
        }
    }

    #[must_use]
    pub const fn payer(&self) -> Address {
        self.payer
    }

    #[must_use]
    pub const fn call_id(&self) -> CallId {
        self.request.call_id
    }

    #[must_use]
    pub const fn method(&self) -> Method {
        self.request.method
    }

    #[must_use]
    pub const fn request(&self) -> &CallRequest {
        &self.request
    }

    #[must_use]
    pub const fn request_hash(&self) -> Hash {
        self.request_hash
    }

    #[must_use]
    pub const fn price(&self) -> Usdc {
        self.plan.price
    }

    #[must_use]
    pub fn charge_policy(&self) -> ChargePolicy {
        self.service.listing().charge_policy
    }

    /// The reservation; `None` for a free call.
    #[must_use]
    pub const fn reserved(&self) -> Option<&Reserved> {
        self.reserved.as_ref()
    }
}

/// A channel that has its terms right and found no place all the same.
fn no_room() -> Refusal {
    let detail = "all places are taken by channels that hold more or have paid; deposit more";
    Refusal::new(RefusalCode::DepositTooSmall, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payers_deadline_shortens_no_call_with_effects_and_others_to_a_second_at_least() {
        let (min, max) = (limits::CALL_DEADLINE_MS_MIN, limits::CALL_DEADLINE_MS_MAX);
        for deadline_ms in [0, 1, min, max, u64::MAX] {
            for method in [Method::Post, Method::Put, Method::Patch, Method::Delete] {
                assert_eq!(upstream_deadline_ms(method, deadline_ms), max, "{method} {deadline_ms}");
            }
        }
        for (deadline_ms, used) in [(0, min), (min - 1, min), (min, min), (min + 1, min + 1), (u64::MAX, max)]
        {
            assert_eq!(upstream_deadline_ms(Method::Get, deadline_ms), used);
        }
    }
}
