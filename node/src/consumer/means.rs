//! The money of a caller, judged by a listing and the own books alone: before anything of the service is opened, and before
//! anything leaves memory for it.

use std::sync::Arc;

use farthing_discovery::Asker;
use farthing_protocol::{Listing, Usdc};

use super::{Consumer, prepared::Prepared, spending::Grant, today};

impl Consumer {
    /// The caller as one that looks for services.
    pub(super) fn asker(&self, grant: &Arc<Grant>, max_price: Option<Usdc>) -> Asker {
        let (consumer, grant) = (self.clone(), Arc::clone(grant));
        Asker::with_secret(grant.name.clone(), move |listing| consumer.can_pay(&grant, max_price, listing))
    }

    /// Tells whether this node would pay for a call of the service now, with this secret: within its limits, and from a channel or the
    /// wallet. One that costs nothing is paid for by nobody.
    fn can_pay(&self, grant: &Grant, max_price: Option<Usdc>, listing: &Listing) -> bool {
        let (price, owner) = (listing.price, listing.owner);
        if price.is_zero() || max_price.is_some_and(|max| price > max) || self.may_buy().is_err() {
            return false;
        }
        let (day, limits) = (today(), self.0.rules.limits());
        let spending = self.0.accounts.spending_of(day);
        if !spending.is_ok_and(|spending| spending.check(&limits, day, grant, price).is_ok()) {
            return false;
        }
        if self.0.channels.in_use(owner).is_some_and(|channel| channel.state.available() >= price) {
            return true;
        }
        let balances = *self.0.chain.balances().borrow();
        let fills = self.0.funding.choose(&listing.accepts, owner).is_ok_and(|accept| {
            let deposit = price.max(accept.min_deposit);
            self.0.funding.check_terms(accept).is_ok()
                && balances.is_some_and(|balances| balances.usdc >= deposit)
        });
        fills && !listing.paused
    }

    /// Keeps the service of a call that has its money in memory: from now on what others have read for nothing makes no room
    /// of it.
    pub(super) fn note_paid(&self, prepared: &Prepared) {
        if prepared.has_money() {
            self.0.catalog.note_paid(prepared.promise().request.service);
        }
    }
}
