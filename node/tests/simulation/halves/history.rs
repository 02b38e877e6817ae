//! One history: orders, repeats and deaths while the network and the service fail, then rest, in which the books must agree.

use std::{collections::BTreeMap, time::Duration};

use farthing_ledger::{Call, Purchase, ServedRow, Side, day_of};
use farthing_os::clock;
use farthing_protocol::{CallId, Usdc, resolution::COPY_LIFETIME};
use tokio::time::{Instant, sleep};

use super::{
    ground::{Ground, PER_DAY},
    parties::{ConsumerRun, OwnerRun},
    state::{State, call_id, number},
};
use crate::world::sum;

/// Of a history that a seed makes.
pub const STEPS: usize = 32;
const SEVERAL: usize = 4;
/// Longer than a call can be open once nothing fails any more, and than a forgotten one can still be charged.
const RESTS_WITHIN: Duration = Duration::from_secs(1_800);

/// Longer than the pauses between questions about the books grow in a history.
const COMPARED_WITHIN: Duration = Duration::from_secs(60);

pub struct History<'g> {
    pub(super) ground: &'g Ground,
    pub(super) state: State,
    pub(super) consumer: ConsumerRun,
    pub(super) owner: OwnerRun,
    consumer_runs: u64,
    last: u64,
}

impl<'g> History<'g> {
    pub async fn begin(ground: &'g Ground, state: &State) -> Self {
        let owner = OwnerRun::start(ground, state, OwnerRun::first_disk(ground).await);
        let consumer = ConsumerRun::start(ground, state, 0, ConsumerRun::first_disk(ground).await).await;
        Self { ground, state: state.clone(), consumer, owner, consumer_runs: 0, last: 0 }
    }

    /// Plays all steps, and comes to rest. What was charged.
    pub async fn play(mut self) -> Usdc {
        while self.state.begin_step() {
            let (pause, step) = {
                let mut shared = self.state.lock();
                (shared.millis(0, 1_400), shared.choices.below(100))
            };
            sleep(pause).await;
            match step {
                0..74 => self.order(),
                74..82 => self.order_several(),
                82..90 => self = self.restart_consumer().await,
                90..97 => self = self.restart_owner().await,
                _ => {}
            }
        }
        let hostile = self.state.lock().hostile.as_ref().map(|hostile| hostile.side);
        if let Some(side) = hostile {
            return self.judge_against(side).await;
        }
        self.come_to_rest().await;
        self.judge().await
    }

    /// A new call, or one that was ordered before.
    fn order(&mut self) {
        let again = {
            let mut shared = self.state.lock();
            (self.last > 0 && shared.choices.chance(25)).then(|| 1 + shared.choices.u64_below(self.last))
        };
        let number = again.unwrap_or(self.last + 1);
        self.last = self.last.max(number);
        self.consumer.order(self.ground, &self.state, number);
    }

    /// Several new calls at the same moment.
    fn order_several(&mut self) {
        for _ in 0..SEVERAL {
            self.last += 1;
            self.consumer.order(self.ground, &self.state, self.last);
        }
    }

    async fn restart_consumer(self) -> Self {
        let Self { ground, state, consumer, owner, consumer_runs, last } = self;
        let disk = consumer.die(&state);
        let pause = state.lock().millis(0, 800);
        sleep(pause).await;
        let consumer_runs = consumer_runs + 1;
        let consumer = ConsumerRun::start(ground, &state, consumer_runs, disk).await;
        Self { ground, state, consumer, owner, consumer_runs, last }
    }

    async fn restart_owner(self) -> Self {
        let Self { ground, state, consumer, owner, consumer_runs, last } = self;
        let disk = owner.die(&state);
        let pause = state.lock().millis(0, 2_000);
        sleep(pause).await;
        let owner = OwnerRun::start(ground, &state, disk);
        Self { ground, state, consumer, owner, consumer_runs, last }
    }

    /// Faults stop, and every call finds its end.
    async fn come_to_rest(&mut self) {
        {
            let mut shared = self.state.lock();
            shared.has_faults = false;
            shared.tell("rest");
        }
        // The books are compared again after a start, and once more when no copy of before can arrive.
        sleep(COMPARED_WITHIN).await;
        let until = Instant::now() + RESTS_WITHIN;
        while self.consumer.is_busy(self.ground) {
            assert!(
                Instant::now() < until,
                "C4: {:?} are open, or room is kept for others",
                self.consumer.open()
            );
            sleep(Duration::from_secs(5)).await;
        }
        // No copy can arrive any more, and nothing runs.
        sleep(COPY_LIFETIME * 3).await;
    }

    async fn judge(&self) -> Usdc {
        let (ground, broken) = (self.ground, std::mem::take(&mut self.state.lock().broken));
        assert!(broken.is_empty(), "{broken:?}");
        let wallet = ground.owner.key.address();
        let compared = self.consumer.half.consumer.compare_books_with(wallet).await.unwrap();
        assert_eq!(compared.differences, Vec::<String>::new(), "X1, as the consumer asks its owner");
        assert_eq!((compared.undecided, compared.adjusted), (0, Usdc::ZERO), "C4, X1");
        let charged = self.compare_calls();
        let (bought, sold) =
            (self.consumer.half.channels.get(ground.id), self.owner.half.book.get(ground.id));
        let (bought, sold) = (bought.unwrap().state, sold.unwrap().state);
        assert_eq!((sold.spent, sold.reserved), (charged, Usdc::ZERO), "O2");
        assert_eq!((bought.acknowledged, bought.in_flight), (charged, Usdc::ZERO), "M4, C4");
        assert!(!bought.stopped, "an honest owner is distrusted");
        assert!(self.consumer.line.accused().is_empty(), "an honest owner is accused");
        self.check_caps();
        for ledger in [self.consumer.ledger(), self.owner.ledger()] {
            let audit = ledger.audit(Some(&ground.escrow.domain())).unwrap();
            assert!(audit.violations.is_empty(), "{:?}", audit.violations);
        }
        charged
    }

    /// Compares both ledgers call by call. The sum of what was charged.
    fn compare_calls(&self) -> Usdc {
        let (sold, bought) = (self.sold(), self.bought());
        for (id, call) in &sold {
            let here = bought.get(id).map_or(Usdc::ZERO, |purchase| purchase.charged);
            assert_eq!(here, call.charged, "X1: the owner charged {} for {}", call.charged, number(*id));
            let is_answered = self.state.lock().is_answered(number(*id));
            assert!(call.charged.is_zero() || is_answered, "{} is charged, and never answered", number(*id));
        }
        for (id, purchase) in &bought {
            let is_sold = sold.contains_key(id) || purchase.charged.is_zero();
            assert!(is_sold, "X1: {} was never served", number(*id));
        }
        for number in self.state.lock().answered() {
            let is_charged = sold.get(&call_id(number)).is_some_and(|call| !call.charged.is_zero());
            assert!(is_charged, "{number} is served, and its owner gets nothing for it");
        }
        for number in self.state.lock().ended() {
            assert!(
                sold.contains_key(&call_id(number)),
                "O4: {number} has ended, and its owner has not stored it"
            );
        }
        for (number, told) in self.state.lock().told() {
            let charged = bought.get(&call_id(number)).map_or(Usdc::ZERO, |purchase| purchase.charged);
            assert_eq!(charged, told, "{number} costs something else than its caller was told");
        }
        for (ledger, side, peer) in [
            (self.consumer.ledger(), Side::Payer, self.ground.owner.key.address()),
            (self.owner.ledger(), Side::Payee, self.ground.consumer.key.address()),
        ] {
            assert_eq!(ledger.adjusted_with(side, peer).unwrap(), Usdc::ZERO, "X1: nothing is unexplained");
        }
        sum(sold.values().map(|call| call.charged))
    }

    pub(super) fn sold(&self) -> BTreeMap<CallId, Call> {
        let payer = self.ground.consumer.key.address();
        let rows = self.owner.ledger().calls_of(payer, None, usize::MAX, usize::MAX, |row| match row {
            ServedRow::Accepted(_) => None,
            ServedRow::Done(row) => Some((row.call.call_id, row.call)),
        });
        rows.unwrap().0.into_iter().collect()
    }

    pub(super) fn bought(&self) -> BTreeMap<CallId, Purchase> {
        let purchases = self.consumer.ledger().purchases(usize::MAX).unwrap();
        purchases.into_iter().map(|purchase| (purchase.call_id, purchase)).collect()
    }

    /// C2: no day cost more than it may. Midnight may have passed meanwhile.
    fn check_caps(&self) {
        let today = day_of(clock::now_secs());
        for day in [today - 1, today] {
            let totals = self.consumer.ledger().day_totals(day).unwrap();
            let total = sum(totals.into_iter().map(|(_, total)| total));
            assert!(total <= PER_DAY, "C2: {total} of at most {PER_DAY}");
        }
    }
}
