//! The end of all dealings: faults have stopped, and each side can leave with what is its own.

use farthing_protocol::{Outcome, Usdc};

use super::{World, sum};
use crate::{disk::Survival, payer::request, wire::Brought};

/// No reply of the owner goes on this stream.
const NO_STREAM: u64 = 0;

impl World {
    /// Both start again with what their disks have, and leave. The channel is filled and used once more, and they leave again.
    pub(super) fn part(&mut self, earned: Usdc) {
        // A call that the consumer forgot runs no longer than its deadline, and nothing is charged for it then.
        for id in self.payee.serving() {
            self.finish(id, Outcome::ServerError);
        }
        self.payee.crash(Survival::All);
        self.is_closing = false;
        self.payee.see(&self.terms, &self.chain);
        self.payer.stop_and_start(self.now);
        self.payer.see(&self.chain);
        self.leave(earned);
        let price = self.buy_in_peace();
        self.leave(sum([earned, price]));
    }

    /// The owner claims, and the rest comes back to the consumer.
    fn leave(&mut self, earned: Usdc) {
        // The consumer asks for it, then the owner does it.
        self.close();
        self.close();
        self.payer.see(&self.chain);
        let claimed = self.chain.claimed;
        assert_eq!(claimed, earned, "the owner leaves with what it earned");
        assert_eq!(self.chain.deposited, claimed, "nothing is left on the channel");
        assert_eq!(
            sum([self.returned, earned]),
            self.paid_in,
            "the consumer leaves with what it did not spend"
        );
        let id = self.terms.channel;
        let channel = self.payer.channels.get(id).expect("the consumer knows the channel");
        assert!(!channel.holds_something(), "the consumer counts nothing on it any more: {channel:?}");
        assert_eq!(channel.state.acknowledged, earned, "M4");
        let is_overclaimed = self.payer.accounts.is_overclaimed(id, claimed).unwrap();
        assert!(!is_overclaimed && !channel.state.stopped, "an honest owner is distrusted");
        self.audit();
    }

    /// Fills the channel with the price of one call, and buys it. What it cost.
    fn buy_in_peace(&mut self) -> Usdc {
        self.last += 1;
        while request(self.last).price.is_zero() {
            self.last += 1;
        }
        let order = request(self.last);
        let (id, price) = (order.call_id, order.price);
        self.pay_in(price);
        self.payee.see(&self.terms, &self.chain);
        self.payer.see(&self.chain);
        self.payer.buy(&self.payee, order.clone(), self.now);
        if !self.payer.works.contains_key(&id) {
            // The last start made it keep room for calls that it forgot: none of them can be charged any more.
            self.payer.settle_forgotten(&self.payee);
            self.payer.buy(&self.payee, order, self.now);
        }
        self.payer.store_promises(usize::MAX);
        let work = self.payer.works.get(&id);
        let copy = work.expect("a deposit of its price is enough for a call").attempt.promise.request.clone();
        let refused = self.payee.call(NO_STREAM, copy);
        assert!(refused.is_none(), "the owner serves a call that is paid: {refused:?}");
        let served = self.payee.finish(id, Outcome::Answered);
        let (_, _, reply) = served.expect("the owner stores what it served");
        self.payer.hear(&self.payee, id, &Brought::Reply(reply), self.now);
        self.payer.store(&self.payee, 0, self.now);
        let purchase = self.payer.ledger.purchase(id).unwrap().expect("it is bought");
        assert_eq!(purchase.charged, price, "at its price");
        price
    }
}
