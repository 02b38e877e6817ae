//! One attempt to buy a call, from the price check to the end of its exchange ([`super::ends`]).

use std::{sync::Arc, time::Duration};

use farthing_bounds::wait_secs;
use farthing_control::types::CancelStage;
use farthing_discovery::{CallPlan, KnownService};
use farthing_ledger::{Promise, Uncharged};
use farthing_os::{clock, killpoint};
use farthing_protocol::{
    Address, CallRequest, ChannelId, Hash, Refusal, RefusalCode, Usdc,
    call::{ChargePolicy, Payment},
    limits,
};
use tokio::time::Instant;

use super::{
    Bought, BuyError, Cap, Consumer, Order, Turn,
    answer::ExpectedAnswer,
    awaited::AwaitedCall,
    exchange::Exchanged,
    open_verdict::{BoughtVersion, OpenVerdict},
    places::CallPlace,
    prepared::Prepared,
    prices::AcceptedPrice,
    recording::Recording,
    shares::CallShare,
    spending,
};

/// The longest that a call waits until an operation whose calls came to nothing lately is tried again: this call may be
/// the first that is paid for.
const TRIAL_PATIENCE: Duration = Duration::from_secs(5);
/// The most times that one call is sent again for it: each costs two commits.
const TRIALS_MAX: u32 = 4;
/// However soon the owner says.
const TRIAL_PAUSE_MIN: Duration = Duration::from_millis(50);

/// The terms that a call is held to, unless its order names a price.
struct CallTerms {
    price: Usdc,
    /// The operation was never called.
    is_first: bool,
    charge: ChargePolicy,
    /// No call of the service has cost anything yet.
    is_first_charge: bool,
}

impl Consumer {
    /// Buys a call whose id was not used before, or ended uncharged.
    pub(super) async fn first(
        &self,
        order: Order,
        deadline: Instant,
        mut turn: Turn,
        awaited: &AwaitedCall,
    ) -> Result<Bought, BuyError> {
        let (mut service, mut plan) = self.planned(&order).await?;
        let deadline = deadline + self.0.settings.longer(plan.time);
        let trial = self.0.observer.admitted(&order, &plan)?;
        let share = self.share(&order, service.listing().owner, &plan, deadline).await?;
        let mut place = self.place(&order, service.listing().owner, &plan).await?;
        let _under_way = self.0.ledger.under_way();
        let terms = self.terms(&order, &service, &plan)?;
        if order.max_price.is_none() {
            self.check_terms(&order, (&service, &plan), &terms)?;
        }
        // A second round accepts a price that fell, or rose within what was allowed, or follows after the books were
        // brought together. What is refused then as well is told as the owner told it.
        let (mut is_first_round, mut request_hash) = (true, None);
        let (trial_until, mut trials) = (deadline.min(Instant::now() + TRIAL_PATIENCE), 0);
        let (undecided, undecided_max) = (self.0.accounts.undecided(), self.0.settings.undecided_max);
        loop {
            // Money that is put into a channel for it now would be put there for nothing. What an earlier round promised is released.
            let may_have_arrived = turn.are_in_doubt();
            awaited.enter(if may_have_arrived { CancelStage::Promised } else { CancelStage::Unpromised })?;
            // With a place, so that no more than have one pass the limit together. A trial lasts for this round.
            let _tried = undecided.admit(service.listing().owner, plan.price, undecided_max)?;
            let prepared = self.prepare(&order, &service, &plan, request_hash, deadline).await?;
            self.note_paid(&prepared);
            request_hash = Some(prepared.promise().request_hash);
            self.begin_terms(&service, &plan, &terms).await?;
            killpoint::reached("consumer.after_reserve");
            awaited.enter(CancelStage::Promised)?;
            let mut recording = Recording::begin(&self.0.ledger, Arc::clone(prepared.promise())).await?;
            let attempt = prepared.promised();
            killpoint::reached("consumer.after_promise");
            let sent = Instant::now();
            let has_failed = || recording.has_failed();
            let exchanged = self.0.client.exchange(&attempt, deadline, &mut turn, awaited, has_failed).await;
            killpoint::reached("consumer.after_answer");
            // What was promised is durable before anyone hears of the answer. The owner may have served it.
            if let Err(error) = recording.stored().await {
                match self.0.closer.end_unstored(&attempt, &exchanged, error, &turn).await {
                    Ok(()) => {}
                    // The channel was emptied before the promise, and the next round fills it.
                    Err(BuyError::ChannelLow { .. }) if std::mem::take(&mut is_first_round) => continue,
                    Err(error) => return Err(error),
                }
            }
            if let Some(pause) = pause_before_trial(&exchanged, trial_until).filter(|_| trials < TRIALS_MAX) {
                trials += 1;
                self.0.accounts.release(&attempt, Uncharged::refused(RefusalCode::RateLimited), &turn).await;
                // Calls of other operations need not wait for this one.
                drop(place);
                tokio::time::sleep(pause).await;
                place = self.place(&order, service.listing().owner, &plan).await?;
                continue;
            }
            match exchanged {
                Exchanged::Refused(
                    refusal @ Refusal { code: RefusalCode::PriceChanged, listing: Some(_), .. },
                ) if is_first_round => {
                    self.0.accounts.release(&attempt, Uncharged::refused(refusal.code), &turn).await;
                    (service, plan) = self.followed(&order, &service, refusal).await?;
                    self.check_terms(&order, (&service, &plan), &terms)?;
                }
                // Between honest books every voucher is sufficient, and an owner that lost some of its own is shown
                // what it signed.
                Exchanged::Refused(refusal)
                    if is_first_round
                        && matches!(
                            refusal.code,
                            RefusalCode::InsufficientVoucher | RefusalCode::BooksBehind
                        ) =>
                {
                    self.0.accounts.release(&attempt, Uncharged::refused(refusal.code), &turn).await;
                    self.0.books.heal_for_a_call(attempt.expected.owner, deadline).await?;
                }
                exchanged => {
                    let bought = BoughtVersion::of(&service);
                    let unjudged =
                        share.is_some().then(|| OpenVerdict { bought, made: sent, was_taken: false, trial });
                    let bought =
                        self.0.closer.conclude(&attempt, exchanged, sent.elapsed(), turn, unjudged).await;
                    if let Some(share) = share {
                        match &bought {
                            Ok(bought) => share.count(bought.is_charged()),
                            Err(BuyError::UpstreamFailed { .. }) => share.count(false),
                            Err(_) => {}
                        }
                    }
                    return bought;
                }
            }
            is_first_round = false;
        }
    }

    /// The service and the order's plan. A newer version that this node's catalog has is used at once when the
    /// caller can have nothing against it. What would be refused here is checked against the owner's newest
    /// version first, because the remembered one may be old.
    async fn planned(&self, order: &Order) -> Result<(Arc<KnownService>, CallPlan), BuyError> {
        let asker = self.asker(&order.grant, order.max_price);
        let mut service = self.0.catalog.service(order.service, &asker).await?;
        let mut first = plan(&service, order);
        if let Some(newer) = self.0.catalog.newer(&service, &asker).await {
            let second = plan(&newer, order);
            let price = |plan: &Result<CallPlan, BuyError>| plan.as_ref().ok().map(|plan| plan.price);
            let agreed = price(&first).max(self.most_accepted(order, &service, &first)?);
            if spending::is_welcome(agreed, price(&second), order.max_price) {
                self.0.catalog.use_from_now(&newer).await;
                (service, first) = (newer, second);
            }
        }
        let accepted = self.most_accepted(order, &service, &first)?;
        let agreed = order.max_price.or(accepted).unwrap_or(Usdc::MAX);
        let price_max = self.0.rules.limits().price_max_of(&order.grant).min(agreed);
        let is_served = !service.listing().paused;
        if is_served && first.as_ref().is_ok_and(|plan| plan.price <= price_max) {
            return first.map(|plan| (service, plan));
        }
        match self.0.catalog.refresh(&service, &asker).await {
            Some(newer) => plan(&newer, order).map(|plan| (newer, plan)),
            None => first.map(|plan| (service, plan)),
        }
    }

    /// The version of a service that a refusal brought, and the order's plan by it.
    async fn followed(
        &self,
        order: &Order,
        service: &KnownService,
        mut refusal: Refusal,
    ) -> Result<(Arc<KnownService>, CallPlan), BuyError> {
        let asker = self.asker(&order.grant, order.max_price);
        let newer = match refusal.listing.take() {
            Some(listing) => self.0.catalog.adopt(service, listing, &asker).await?,
            None => None,
        };
        let service = newer.ok_or(BuyError::Refused(refusal))?;
        let plan = plan(&service, order)?;
        Ok((service, plan))
    }

    /// Waits for one of the places that the owner has for this wallet, as long as enough of the call's time is left.
    async fn place(&self, order: &Order, owner: Address, plan: &CallPlan) -> Result<CallPlace, BuyError> {
        let patience = self.0.settings.call_deadline / 3;
        self.0.places.of_call(owner, &order.grant.name, plan.price.is_zero(), patience).await
    }

    /// A share of what the owner does for nothing, of a call that costs something. Beyond its share, a call waits a moment
    /// for the next trial.
    async fn share(
        &self,
        order: &Order,
        owner: Address,
        plan: &CallPlan,
        deadline: Instant,
    ) -> Result<Option<CallShare>, BuyError> {
        if plan.price.is_zero() {
            return Ok(None);
        }
        let until = deadline.min(Instant::now() + TRIAL_PATIENCE);
        loop {
            match self.0.shares.enter(owner, (order.service, &plan.operation), &order.grant.name) {
                Ok(share) => return Ok(Some(share)),
                Err(wait) if Instant::now() + wait < until => tokio::time::sleep(wait).await,
                Err(wait) => {
                    let secret = order.grant.name.clone();
                    return Err(BuyError::ShareUsed { secret, wait_secs: wait_secs(wait) });
                }
            }
        }
    }

    /// Returns the price that was accepted for the operation before this call.
    fn accepted(
        &self,
        order: &Order,
        service: &KnownService,
        plan: &CallPlan,
    ) -> Result<AcceptedPrice, BuyError> {
        let operation = (&*plan.operation, &*order.path);
        Ok(self.0.prices.accepted(order.service, operation, || service.price_list())?)
    }

    fn most_accepted(
        &self,
        order: &Order,
        service: &KnownService,
        plan: &Result<CallPlan, BuyError>,
    ) -> Result<Option<Usdc>, BuyError> {
        plan.as_ref().map_or(Ok(None), |plan| Ok(self.accepted(order, service, plan)?.most))
    }

    /// Returns the terms that a call is held to. What the first call was planned with is what its user agreed to.
    fn terms(&self, order: &Order, service: &KnownService, plan: &CallPlan) -> Result<CallTerms, BuyError> {
        let accepted = self.accepted(order, service, plan)?;
        let charge = self.0.prices.charge(order.service)?;
        Ok(CallTerms {
            price: accepted.most.unwrap_or(plan.price),
            is_first: accepted.is_first,
            charge: charge.unwrap_or(service.listing().charge_policy),
            is_first_charge: charge.is_none(),
        })
    }

    /// Accepts the price of an operation's first call, which is within the limits, and which answers are charged with the first
    /// call that costs something. A call that names more than what was accepted pays it for itself alone.
    async fn begin_terms(
        &self,
        service: &KnownService,
        plan: &CallPlan,
        terms: &CallTerms,
    ) -> Result<(), BuyError> {
        let (listing, prices) = (service.listing(), &self.0.prices);
        if terms.is_first && plan.price <= terms.price {
            prices.begin(listing.service, &plan.operation, plan.price, service.price_list()).await?;
        }
        if terms.is_first_charge && !plan.price.is_zero() {
            prices.begin_charge(listing.service, listing.charge_policy).await?;
        }
        Ok(())
    }

    /// Checks a call against what its order names or, where that is nothing, what was accepted before it.
    fn check_terms(
        &self,
        order: &Order,
        (service, plan): (&KnownService, &CallPlan),
        terms: &CallTerms,
    ) -> Result<(), BuyError> {
        if plan.price > order.max_price.unwrap_or(terms.price) {
            return Err(self.price_changed(order, terms.price, plan.price));
        }
        let was_free = terms.charge == ChargePolicy::Success;
        let is_charged = service.listing().charge_policy == ChargePolicy::Answered && !plan.price.is_zero();
        if was_free && is_charged && order.max_price.is_none() {
            return Err(BuyError::DeclinedCharged { price: plan.price });
        }
        Ok(())
    }

    /// Builds the error that tells the caller of a price above what was accepted.
    fn price_changed(&self, order: &Order, before: Usdc, now: Usdc) -> BuyError {
        let over_limit = || {
            let day = farthing_ledger::day_of(clock::now_secs());
            let spending = self.0.accounts.spending_of(day).ok()?;
            spending.check(&self.0.rules.limits(), day, &order.grant, now).err().map(Cap::Limit)
        };
        let cap = order.max_price.map(Cap::MaxPrice).or_else(over_limit);
        BuyError::PriceChanged { before, now, cap }
    }

    /// Limits, channel, voucher: nothing is promised to anyone yet.
    async fn prepare(
        &self,
        order: &Order,
        service: &KnownService,
        plan: &CallPlan,
        request_hash: Option<Hash>,
        deadline: Instant,
    ) -> Result<Prepared, BuyError> {
        let (listing, price) = (service.listing(), plan.price);
        if let Some(max_price) = order.max_price.filter(|max| price > *max) {
            return Err(BuyError::AboveMaxPrice { price, max_price });
        }
        let mut request = self.request(order, listing.seq, price, plan.time);
        // Before anything is held for it, and with room for whatever it will pay.
        request.payment = Payment::LARGEST;
        request.check_bounds()?;
        let now_secs = clock::now_secs();
        let day = farthing_ledger::day_of(now_secs);
        let accept = if price.is_zero() {
            None
        } else {
            Some(self.0.funding.choose(&listing.accepts, listing.owner)?)
        };
        let hold = self.0.accounts.hold(day, &order.grant, price, &self.0.rules.limits())?;
        let started = Instant::now();
        let headroom = match accept {
            None => None,
            Some(accept) => Some(self.0.payer.reserve(accept, price, listing.paused, deadline).await?),
        };
        let funding = started.elapsed();
        // Nobody waits for it any more: what is sent now would be paid, and have its effect, for nothing.
        if Instant::now() >= deadline {
            let deposit = accept.and_then(|accept| self.0.funding.awaited(accept.pay_to, started));
            return Err(BuyError::TimeUp(deposit));
        }
        let reservation = headroom.as_ref().map(|headroom| headroom.reservation);
        request.payment = reservation.as_ref().map_or(Ok(Payment::Free), |held| self.0.payer.pay(held))?;
        // The same in each round: price, version and payment are no part of it.
        let request_hash = request_hash.unwrap_or_else(|| request.request_hash(&order.body));
        let expected = ExpectedAnswer {
            owner: listing.owner,
            call_id: order.call_id,
            channel: reservation.map_or(ChannelId::NONE, |r| r.channel),
            request_hash,
            price,
            charge_policy: listing.charge_policy,
        };
        let promise = Promise {
            request,
            request_hash,
            owner: listing.owner,
            secret: order.grant.name.clone(),
            time_secs: now_secs,
            limits: Some(hold.limits),
            seen_total: reservation.map_or(Usdc::ZERO, |reservation| reservation.seen_total),
            charge_policy: listing.charge_policy,
        };
        Ok(Prepared::new((promise, expected), order.body.clone(), funding, hold, headroom))
    }

    /// The request that an order stands for, which promises nothing yet.
    pub(super) fn request(
        &self,
        order: &Order,
        listing_version: u64,
        price: Usdc,
        time: Option<Duration>,
    ) -> CallRequest {
        CallRequest {
            call_id: order.call_id,
            service: order.service,
            listing_version,
            method: order.method,
            path: order.path.clone(),
            params: order.params.clone(),
            headers: order.headers.clone(),
            body_bytes: order.body.len() as u64,
            price,
            deadline_ms: u64::try_from(self.0.settings.owner_deadline(time).as_millis())
                .unwrap_or(limits::CALL_DEADLINE_MS_DEFAULT),
            payment: Payment::Free,
        }
    }
}

/// Returns the time until the owner tries the operation again, when it refuses only because its calls came to nothing
/// lately; `None` when that is not soon.
fn pause_before_trial(exchanged: &Exchanged, until: Instant) -> Option<Duration> {
    let Exchanged::Refused(refusal) = exchanged else { return None };
    let wait = Duration::from_millis(refusal.retry_after_ms?).max(TRIAL_PAUSE_MIN);
    let is_soon = wait < until.saturating_duration_since(Instant::now());
    (refusal.code == RefusalCode::RateLimited && is_soon).then_some(wait)
}

/// Checks an order against the service's description: operation, parameters, price.
fn plan(service: &Arc<KnownService>, order: &Order) -> Result<CallPlan, BuyError> {
    service.plan(order.method, &order.path, &order.params, &order.headers, &order.body).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_waits_for_the_owners_next_trial_when_that_is_soon() {
        let until = Instant::now() + TRIAL_PATIENCE;
        let after = |code, wait_ms| {
            let refusal = Refusal::new(code, "").retry_after_ms(wait_ms);
            pause_before_trial(&Exchanged::Refused(refusal), until)
        };
        let limited = RefusalCode::RateLimited;
        assert_eq!(after(limited, 1_000), Some(Duration::from_secs(1)));
        assert_eq!(after(limited, 0), Some(TRIAL_PAUSE_MIN), "however soon it says");
        assert_eq!([after(limited, 5_000), after(limited, u64::MAX)], [None; 2]);
        assert_eq!(after(RefusalCode::Busy, 1_000), None);
        let refusal = Refusal::new(limited, "");
        assert_eq!(pause_before_trial(&Exchanged::Refused(refusal), until), None);
    }
}
