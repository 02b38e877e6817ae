//! The end of a history: faults stop, every call finds its end, and both ledgers agree.

use std::time::Duration;

use farthing_ledger::Side;
use farthing_protocol::{Outcome, Usdc, resolution::COPY_LIFETIME};

use super::{World, short, sum};

impl World {
    /// Everything that is under way arrives or is lost, every call finds its end. What was charged.
    pub(super) fn come_to_rest(&mut self) -> u64 {
        self.tell(|| "rest".to_owned());
        self.compare();
        for _ in 0..10_000 {
            if self.payer.works.is_empty() {
                break;
            }
            self.now += Duration::from_millis(100);
            self.wire.sweep(self.now);
            self.arrive();
            for id in self.payee.serving() {
                self.finish(id, Outcome::Answered);
            }
            self.bring();
            self.lose_dead();
            self.act();
            self.give_up();
            self.payer.store(&self.payee, 0, self.now);
        }
        self.now += COPY_LIFETIME;
        self.compare();
        while self.payer.has_stores() {
            self.payer.store(&self.payee, 0, self.now);
        }
        self.payer.heal(&self.payee, self.now);
        self.payer.settle_forgotten(&self.payee);
        self.claim();
        self.payer.see(&self.chain);
        self.payee.see(&self.terms, &self.chain);
        let charges = self.check_rest();
        self.part(charges);
        charges.micros()
    }

    /// Streams on which nothing will come are noticed to be broken.
    fn lose_dead(&mut self) {
        let waiting = self.payee.waiting();
        let dead = self.wire.streams.iter().filter(|stream| {
            stream.has_arrived
                && stream.reply.is_none()
                && !stream.is_given_up
                && !waiting.contains(&stream.number)
        });
        let dead: Vec<u64> = dead.map(|stream| stream.number).collect();
        dead.into_iter().for_each(|number| self.lose(number));
    }

    fn check_rest(&self) -> Usdc {
        let owner = self.terms.config.payee;
        assert!(self.payer.works.is_empty(), "C4: every call has its end: {:?}", self.payer.works);
        let served = self.payee.recorded_calls();
        let (mut charges, mut lacking) = (Usdc::ZERO, Usdc::ZERO);
        for (id, call) in &served {
            charges = sum([charges, call.charged]);
            let is_served = self.payee.service.has_executed(*id);
            assert!(call.charged.is_zero() || is_served, "{} is charged, and was never executed", short(*id));
            match self.payer.ledger.purchase(*id).unwrap() {
                // Ordered again after a crash, and refused before the owner was asked: of the copy of before, which was
                // served, nothing is known but what it cost.
                Some(purchase) if purchase.charged.is_zero() && self.payer.forgotten.contains(id) => {
                    lacking = sum([lacking, call.charged]);
                }
                Some(purchase) => assert_eq!(
                    purchase.charged,
                    call.charged,
                    "X1: the owner charged {} for {}",
                    call.charged,
                    short(*id)
                ),
                None => {
                    assert!(self.payer.forgotten.contains(id), "X1: {} is in one ledger alone", short(*id));
                    lacking = sum([lacking, call.charged]);
                }
            }
        }
        for purchase in self.payer.ledger.purchases(usize::MAX).unwrap() {
            let is_served = served.contains_key(&purchase.call_id);
            assert!(
                is_served || purchase.charged.is_zero(),
                "X1: {} was never served",
                short(purchase.call_id)
            );
        }
        let (Some(bought), Some(sold)) =
            (self.payer.channels.get(self.terms.channel), self.payee.book.get(self.terms.channel))
        else {
            panic!("both know the channel")
        };
        assert_eq!(sold.state.spent, charges, "O2");
        assert_eq!(bought.state.acknowledged, charges, "M4: what one side paid the other earned");
        assert_eq!(bought.state.in_flight, Usdc::ZERO, "C4");
        assert!(!bought.state.stopped, "an honest owner is distrusted");
        let stored = self.payer.ledger.payer_channels().unwrap()[0];
        assert_eq!(stored.acknowledged, charges, "the ledger counts as the memory does");
        let adjusted = self.payer.ledger.adjusted_with(Side::Payer, owner).unwrap();
        assert_eq!(adjusted, lacking, "X1: adjustments are the calls that a crash kept out");
        self.audit();
        self.payer.check_limits();
        charges
    }

    pub(super) fn audit(&self) {
        for ledger in [&self.payer.ledger, &self.payee.ledger] {
            let audit = ledger.audit(Some(&self.terms.domain)).unwrap();
            assert!(audit.violations.is_empty(), "{:?}", audit.violations);
        }
    }
}
