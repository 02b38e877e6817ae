//! One history: orders, repeats and deaths while the network and the service fail, then rest, in which the books must agree.

use std::{collections::BTreeMap, time::Duration};

use farthing_ledger::day_of;
use farthing_os::clock;
use farthing_protocol::{Usdc, resolution::COPY_LIFETIME};
use tokio::time::{Instant, sleep};

use super::{
    changes::Changes,
    ground::{Ground, PER_DAY},
    parties::{ConsumerRun, OwnerRun},
    state::State,
};
use crate::{disk::Disk, world::sum};

/// Of a history that a seed makes.
pub const STEPS: usize = 32;
const SEVERAL: usize = 4;
/// More than one consumer orders in a history.
const NUMBERS: u64 = 1_000_000;
/// Longer than a call can be open once nothing fails any more, and than a forgotten one can still be charged.
const RESTS_WITHIN: Duration = Duration::from_secs(1_800);

/// Longer than the pauses between questions about the books grow in a history.
const COMPARED_WITHIN: Duration = Duration::from_secs(60);
/// Nothing that left before arrives or runs any more.
const PUT_BACK_WITHIN: Duration = Duration::from_secs(180);

/// A consumer in a history.
pub struct Buyer<'g> {
    pub ground: &'g Ground,
    pub run: ConsumerRun,
    runs: u64,
    /// The numbers of its calls are between these.
    first: u64,
    last: u64,
    /// Its ledger was put back to what it was.
    pub is_restored: bool,
}

pub struct History<'g> {
    pub(super) state: State,
    pub(super) buyers: Vec<Buyer<'g>>,
    pub(super) owner: OwnerRun,
    /// What changes besides, if something does.
    pub(super) changes: Option<Changes>,
    /// The most that each call may cost.
    pub(super) allowed: BTreeMap<u64, Usdc>,
}

impl<'g> History<'g> {
    /// Begins it, with a consumer on each of the grounds, which are of one owner.
    pub async fn begin(grounds: &'g [Ground], state: &State, changes: Option<Changes>) -> Self {
        let owner = OwnerRun::start(&grounds[0], state, OwnerRun::first_disk(grounds).await);
        let mut buyers = Vec::new();
        for (ground, n) in grounds.iter().zip(0_u64..) {
            let run = ConsumerRun::start(ground, state, 0, ConsumerRun::first_disk(ground).await).await;
            let first = n * NUMBERS;
            buyers.push(Buyer { ground, run, runs: 0, first, last: first, is_restored: false });
        }
        Self { state: state.clone(), buyers, owner, changes, allowed: BTreeMap::new() }
    }

    /// Plays all steps, and comes to rest. What was charged.
    pub async fn play(mut self) -> Usdc {
        if self.changes.is_some() {
            self.accept_prices().await;
        }
        while self.state.begin_step() {
            let (pause, step) = {
                let mut shared = self.state.lock();
                (shared.millis(0, 1_400), shared.choices.below(100))
            };
            sleep(pause).await;
            if self.changes.is_some() {
                self = self.change().await;
            }
            match step {
                0..74 => self.order(),
                74..82 => self.order_several(),
                82..90 => {
                    let at = self.pick();
                    self.restart_consumer(at, None).await;
                }
                90..97 => self = self.restart_owner(None).await,
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

    /// One of the consumers.
    pub(super) fn pick(&self) -> usize {
        let count = self.buyers.len();
        if count == 1 { 0 } else { self.state.lock().choices.below(count) }
    }

    /// A new call, or one that was ordered before.
    fn order(&mut self) {
        let at = self.pick();
        let Buyer { first, last, .. } = self.buyers[at];
        let again = {
            let mut shared = self.state.lock();
            (last > first && shared.choices.chance(25))
                .then(|| first + 1 + shared.choices.u64_below(last - first))
        };
        self.order_of(at, again);
    }

    /// Several new calls at the same moment.
    fn order_several(&mut self) {
        let at = self.pick();
        for _ in 0..SEVERAL {
            self.order_of(at, None);
        }
    }

    /// A call with this number, or a new one.
    pub(super) fn order_of(&mut self, at: usize, number: Option<u64>) {
        let max_price = self.price_named();
        let buyer = &mut self.buyers[at];
        let number = number.unwrap_or(buyer.last + 1);
        buyer.last = buyer.last.max(number);
        buyer.run.order(buyer.ground, &self.state, number, max_price);
        self.allow(number, max_price);
    }

    /// Lets a consumer die and start again, with its disk as it is or with one of before. Who puts a ledger back takes a while.
    pub(super) async fn restart_consumer(&mut self, at: usize, earlier: Option<Disk>) {
        let mut buyer = self.buyers.remove(at);
        let disk = buyer.run.die(&self.state);
        let pause = self.state.lock().millis(0, 800);
        sleep(if earlier.is_some() { PUT_BACK_WITHIN } else { pause }).await;
        buyer.is_restored |= earlier.is_some();
        buyer.runs += 1;
        buyer.run = ConsumerRun::start(buyer.ground, &self.state, buyer.runs, earlier.unwrap_or(disk)).await;
        self.buyers.insert(at, buyer);
    }

    /// The same of the owner.
    pub(super) async fn restart_owner(self, earlier: Option<Disk>) -> Self {
        let Self { state, buyers, owner, changes, allowed } = self;
        let disk = owner.die(&state);
        let pause = state.lock().millis(0, 2_000);
        sleep(pause).await;
        let owner = OwnerRun::start(buyers[0].ground, &state, earlier.unwrap_or(disk));
        Self { state, buyers, owner, changes, allowed }
    }

    /// Whether a consumer waits for something.
    pub(super) fn is_busy(&mut self) -> bool {
        self.buyers.iter_mut().any(|buyer| buyer.run.is_busy(buyer.ground))
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
        while self.is_busy() {
            let open: Vec<u64> = self.buyers.iter().flat_map(|buyer| buyer.run.open()).collect();
            assert!(Instant::now() < until, "C4: {open:?} are open, or room is kept for others");
            sleep(Duration::from_secs(5)).await;
        }
        // No copy can arrive any more, and nothing runs.
        sleep(COPY_LIFETIME * 3).await;
    }

    /// Judges each pair by its books. What was charged.
    async fn judge(&self) -> Usdc {
        let broken = std::mem::take(&mut self.state.lock().broken);
        assert!(broken.is_empty(), "{broken:?}");
        let mut charged = Usdc::ZERO;
        for buyer in &self.buyers {
            charged = sum([charged, self.judge_pair(buyer).await]);
            assert!(buyer.run.line.accused().is_empty(), "an honest owner is accused");
            // What was spent after the backup counts on top of what its books let it spend.
            if !buyer.is_restored {
                check_caps(buyer);
            }
        }
        self.check_ended();
        let ledgers = self.buyers.iter().map(|buyer| buyer.run.ledger());
        for ledger in ledgers.chain([self.owner.ledger()]) {
            let audit = ledger.audit(Some(&self.buyers[0].ground.escrow.domain())).unwrap();
            assert!(audit.violations.is_empty(), "{:?}", audit.violations);
        }
        charged
    }
}

impl Buyer<'_> {
    /// Whether a call is one of its own.
    pub fn has_ordered(&self, number: u64) -> bool {
        (self.first + 1..=self.last).contains(&number)
    }
}

/// C2: no day cost more than it may. Midnight may have passed meanwhile.
fn check_caps(buyer: &Buyer<'_>) {
    let today = day_of(clock::now_secs());
    for day in [today - 1, today] {
        let totals = buyer.run.ledger().day_totals(day).unwrap();
        let total = sum(totals.into_iter().map(|(_, total)| total));
        assert!(total <= PER_DAY, "C2: {total} of at most {PER_DAY}");
    }
}
