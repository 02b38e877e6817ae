//! The price of a call, and the terms on which it is sold now.

use std::sync::Arc;

use farthing_chain::ChainKind;
use farthing_protocol::{Refusal, RefusalCode, TokenDomain, Usdc};
use farthing_shared::{chain_view, gas::check_worth};
use farthing_x402::Terms;
use tokio::time::Instant;

use super::{
    DoorCall, X402Sales, away,
    offers::{Offer, TIMEOUT_SECS},
};
use crate::{admit::check_not_paused, registry::Registered};

/// An offered price is at least so many times the gas of its transaction, which may rise until that is sent.
pub(super) const GAS_FACTOR_MIN: u64 = 3;

impl X402Sales {
    /// The service of a call, and the terms on which it is sold now. No chain is asked as a rule: the token's domain is kept.
    pub(super) async fn due(&self, call: &DoorCall) -> Result<(Arc<Registered>, Terms), Refusal> {
        if self.0.ledger.closed().is_some() {
            return Err(Refusal::new(RefusalCode::Unavailable, "the owner's node cannot store new calls"));
        }
        let unknown = |detail| Refusal::new(RefusalCode::UnknownService, detail);
        let service = self.0.registry.get(call.service);
        let service = service.ok_or_else(|| unknown("this node does not offer the service"))?;
        check_not_paused(&service)?;
        let price = service.known().price_at(call.method, &call.path).ok_or_else(|| {
            Refusal::new(RefusalCode::UnknownOperation, "the service has no such path and method")
        })?;
        self.check_worth(price, GAS_FACTOR_MIN)?;
        self.check_claims()?;
        if let Some(offer) = offer(call, &service, price) {
            self.0.door.offers.make(offer, Instant::now());
        }
        let listing = service.listing();
        let description = match listing.summary.as_str() {
            "" => listing.name.clone(),
            summary => format!("{}: {summary}", listing.name),
        };
        let (pay_to, timeout_secs) = (self.0.signer.address(), TIMEOUT_SECS);
        let terms = Terms { price, pay_to, token: self.token().await?, timeout_secs, description };
        Ok((service, terms))
    }

    /// The price for a payer that has signed for `paid`: an offer of a short time ago holds, although the price has changed.
    pub(super) fn price_for(
        &self,
        call: &DoorCall,
        service: &Registered,
        (price, paid): (Usdc, Usdc),
    ) -> Usdc {
        let offered = offer(call, service, paid);
        let holds = offered.is_some_and(|offer| self.0.door.offers.holds(&offer, Instant::now()));
        if holds && self.check_worth(paid, GAS_FACTOR_MIN).is_ok() { paid } else { price }
    }

    /// Checks that the wallet's ETH pays for one payment more and then for the claims of what was served on channels: those who
    /// buy here, or have their gas paid, must not use up what brings in the earnings of others.
    pub(crate) fn check_claims(&self) -> Result<(), Refusal> {
        let payments = self.0.door.sales.under_way().saturating_add(1);
        if self.0.book.is_claimed_by(chain_view::means_after(&self.0.chain, payments)) {
            return Ok(());
        }
        let detail = "the owner's wallet keeps its ETH for claims";
        Err(Refusal::new(RefusalCode::OwnerCannotClaim, detail).retry_after_ms(60_000))
    }

    /// Checks that this wallet can take payments now, and that this one is worth so many times its gas.
    pub(super) fn check_worth(&self, price: Usdc, factor: u64) -> Result<(), Refusal> {
        let chain = &self.0.chain;
        if price.is_zero() {
            let detail = "this operation costs nothing, and this address sells for payments alone";
            return Err(Refusal::new(RefusalCode::SchemeUnsupported, detail));
        }
        if !chain_view::is_fresh(chain) {
            let detail = "the owner has not seen a new block for too long to take payments";
            return Err(Refusal::new(RefusalCode::ChainStale, detail).retry_after_ms(5_000));
        }
        if chain_view::means(chain).rows == 0 {
            let detail = "the owner's wallet has no ETH for the gas of a payment";
            return Err(Refusal::new(RefusalCode::OwnerCannotClaim, detail).retry_after_ms(60_000));
        }
        let gas = self.payment_gas();
        if check_worth(price, gas, factor).is_err() {
            let detail = format!(
                "the price of {price} USDC is less than {factor} times the gas of its payment, {gas} USDC; buy \
                 this call through a Farthing node, where one transaction pays many calls"
            );
            return Err(Refusal::new(RefusalCode::SchemeUnsupported, detail));
        }
        Ok(())
    }

    /// The gas of a payment, which has no price on a chain of one's own. A transfer by authorization takes as much as a claim of one
    /// channel.
    pub(super) fn payment_gas(&self) -> Usdc {
        let gas =
            chain_view::gas(&self.0.chain, u64::MAX).filter(|_| self.0.chain.spec().kind != ChainKind::Local);
        gas.map(|gas| gas.of(1)).unwrap_or_default()
    }

    /// The highest price of a call that is offered; `None` if no call costs anything.
    pub(super) fn highest_price(&self) -> Option<Usdc> {
        let offered = self.0.registry.all().into_iter().filter(|service| !service.listing().paused);
        let highest = |service: Arc<Registered>| service.known().operations().map(|(_, price)| price).max();
        offered.filter_map(highest).max().filter(|price| !price.is_zero())
    }

    pub(super) async fn token(&self) -> Result<TokenDomain, Refusal> {
        let read = self.0.chain.token_domain().await;
        self.0.door.notes.lock().read_token(read.as_ref().err().map(ToString::to_string));
        read.map_err(|error| away(&error))
    }
}

fn offer(call: &DoorCall, service: &Registered, price: Usdc) -> Option<Offer> {
    let operation = service.known().operation_at(call.method, &call.path)?;
    Some(Offer { service: call.service, operation, price })
}
