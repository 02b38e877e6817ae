//! One history: orders, claims, closes, forks, hours, deaths and a cut line while network, service and endpoints fail. Then nothing
//! fails any more, every call finds its end, and both leave.

use std::time::Duration;

use farthing_protocol::{Usdc, resolution::COPY_LIFETIME};
use tokio::time::{Instant, sleep};

use super::{
    blocks::{Blocks, FORK_DEPTH_MAX},
    ground::{CLOSE_DELAY_SECS, Ground},
    run::{ConsumerRun, Death, OwnerRun},
};
use crate::{
    disk::Disk,
    halves::{hostile::Side, state::State},
};

/// Of a history that a seed makes.
pub const STEPS: usize = 40;
const SEVERAL: usize = 4;
/// Longer than a call can be open once nothing fails any more, and than a forgotten one can still be charged.
const RESTS_WITHIN: Duration = Duration::from_secs(1_800);
/// Longer than the pauses between questions about the books grow in a history.
const COMPARED_WITHIN: Duration = Duration::from_secs(60);
/// The delay of a channel, before it the hour for which an owner's word to close it is trusted, and the transactions of both.
const LEFT_WITHIN: Duration = Duration::from_secs(2 * CLOSE_DELAY_SECS + 1_200);
/// A user who wants the rest back looks for it so often, and asks again.
const ASKED_EVERY: Duration = Duration::from_secs(120);
/// Longer than anything that the chain shows has to stand until it is acted on.
const BELIEVED_WITHIN: Duration = Duration::from_secs(600);

pub struct History<'g> {
    pub(super) ground: &'g Ground,
    pub(super) state: State,
    pub(super) blocks: Blocks,
    pub(super) consumer: ConsumerRun,
    pub(super) owner: OwnerRun,
    /// The side that breaks the rules on the chain, if one does.
    hostile: Option<Side>,
    consumer_runs: u64,
    last: u64,
}

impl<'g> History<'g> {
    pub async fn begin(ground: &'g Ground, state: &State, hostile: Option<Side>) -> Self {
        let blocks = Blocks::begin(ground, state);
        let owner = OwnerRun::start(ground, &blocks, state, OwnerRun::first_disk(ground).await).await;
        let consumer = ConsumerRun::start(ground, &blocks, state, 0, Disk::default()).await;
        Self { ground, state: state.clone(), blocks, consumer, owner, hostile, consumer_runs: 0, last: 0 }
    }

    /// Plays all steps, comes to rest, and lets both leave. What was charged.
    pub async fn play(mut self) -> Usdc {
        while self.state.begin_step() {
            let (pause, step) = {
                let mut shared = self.state.lock();
                (shared.millis(0, 4_000), shared.choices.below(100))
            };
            sleep(pause).await;
            match step {
                0..46 => self.order(),
                46..51 => self.order_several(),
                51..58 => self = self.restart_consumer().await,
                58..64 => self = self.restart_owner().await,
                64..68 => self.blocks.mine(),
                68..70 => self.blocks.lose_waiting(),
                70..76 => self.fork(),
                76..84 => self.blocks.disturb(),
                84..88 => self.owner.node.claim(&self.state),
                88..92 => self.close_as_payer(),
                92..94 => self.owner.node.close_as_payee(self.ground, &self.state),
                94..98 => self.let_time_pass().await,
                _ => self.part_ways().await,
            }
            if let Some(side) = self.hostile {
                self.break_rules(side);
            }
            self.blocks.check_money();
            if self.hostile != Some(Side::Owner) {
                self.check_claims();
                self.check_adjustments();
            }
        }
        self = self.come_to_rest().await;
        self.leave().await;
        if self.hostile == Some(Side::Owner) { self.judge_consumer() } else { self.judge().await }
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

    fn fork(&self) {
        let depth = 1 + self.state.lock().choices.below(FORK_DEPTH_MAX);
        self.blocks.fork(depth);
    }

    fn close_as_payer(&mut self) {
        let is_forced = self.state.lock().choices.chance(50);
        self.consumer.node.close_as_payer(self.ground, &self.state, is_forced);
    }

    /// Minutes, or more than the delay of a channel.
    async fn let_time_pass(&self) {
        let (is_long, minutes) = {
            let mut shared = self.state.lock();
            (shared.choices.chance(40), 1 + shared.choices.u64_below(9))
        };
        let least_secs = if is_long { CLOSE_DELAY_SECS } else { 0 };
        self.blocks.wait(Duration::from_secs(least_secs + 60 * minutes)).await;
    }

    /// The line is cut for minutes while calls are on their way, and the owner closes the channel: the consumer sees on the chain
    /// what it was charged before it hears for which calls.
    async fn part_ways(&mut self) {
        self.blocks.heal();
        self.order_several();
        let (served_for, cut_for) = {
            let mut shared = self.state.lock();
            (shared.millis(50, 1_000), Duration::from_secs(60 + shared.choices.u64_below(180)))
        };
        sleep(served_for).await;
        self.state.lock().cut(true);
        self.owner.node.close_as_payee(self.ground, &self.state);
        sleep(cut_for).await;
        if self.hostile != Some(Side::Owner) {
            self.check_adjustments();
        }
        self.state.lock().cut(false);
    }

    async fn restart_consumer(self) -> Self {
        let Self { ground, state, blocks, consumer, owner, hostile, consumer_runs, last } = self;
        let death = Death::choose(&state);
        let disk = consumer.die(&state, death).await;
        let pause = state.lock().millis(0, 8_000);
        sleep(pause).await;
        let consumer_runs = consumer_runs + 1;
        let consumer = ConsumerRun::start(ground, &blocks, &state, consumer_runs, disk).await;
        Self { ground, state, blocks, consumer, owner, hostile, consumer_runs, last }
    }

    async fn restart_owner(self) -> Self {
        let Self { ground, state, blocks, consumer, owner, hostile, consumer_runs, last } = self;
        let death = Death::choose(&state);
        let disk = owner.die(&state, death).await;
        let pause = state.lock().millis(0, 8_000);
        sleep(pause).await;
        let owner = OwnerRun::start(ground, &blocks, &state, disk).await;
        Self { ground, state, blocks, consumer, owner, hostile, consumer_runs, last }
    }

    /// Faults stop, both start again, and every call finds its end.
    async fn come_to_rest(self) -> Self {
        self.blocks.heal();
        {
            let mut shared = self.state.lock();
            shared.has_faults = false;
            shared.tell("rest");
        }
        let mut this = self.restart_owner().await.restart_consumer().await;
        // The books are compared again after a start, and once more when no copy of before can arrive.
        sleep(COMPARED_WITHIN).await;
        let until = Instant::now() + RESTS_WITHIN;
        while this.consumer.is_busy(this.ground) || this.owner.is_busy() {
            let open = this.consumer.open();
            assert!(Instant::now() < until, "C4: {open:?} are open, or somebody waits");
            sleep(Duration::from_secs(5)).await;
        }
        // No copy can arrive any more, and nothing runs.
        sleep(COPY_LIFETIME * 3).await;
        this
    }

    /// The consumer gets the rest of its deposit back, and the owner what it earned, with the other's help or without it.
    async fn leave(&mut self) {
        let is_forced = self.state.lock().choices.chance(50);
        let until = Instant::now() + LEFT_WITHIN;
        while !self.has_left() {
            assert!(Instant::now() < until, "the channel cannot be left: {:?}", self.views());
            if !self.consumer.is_busy(self.ground) {
                self.consumer.node.close_as_payer(self.ground, &self.state, is_forced);
            }
            self.blocks.wait(ASKED_EVERY).await;
        }
        self.blocks.wait(BELIEVED_WITHIN).await;
        assert!(self.has_left(), "the channel was left before: {:?}", self.views());
    }

    /// Whether nothing is left in the channel and on its way there, and the books of both say so.
    fn has_left(&self) -> bool {
        let (slot, paid_in, sold_on) = self.views();
        let knows = |books: Option<(Usdc, Usdc)>| books.is_none_or(|books| books == slot);
        let nodes = [&self.consumer.node, &self.owner.node];
        let is_under_way = self.blocks.has_waiting() || nodes.iter().any(|node| node.has_under_way());
        slot.0 == slot.1 && knows(paid_in) && knows(sold_on) && !is_under_way
    }

    /// What is deposited in the channel and what of it is paid out, as the chain, the payer and the payee have it.
    fn views(&self) -> Views {
        let id = self.ground.id;
        let paid_in = self.consumer.node.ledger().payer_channels().unwrap();
        let paid_in = paid_in.iter().find(|row| row.id == id).map(|row| (row.deposited, row.claimed));
        let sold_on = self.owner.node.ledger().payee_channel(id).unwrap();
        (self.blocks.slot(id), paid_in, sold_on.map(|row| (row.deposited, row.claimed)))
    }
}

/// The escrow's record, and those of both ledgers, if they have one.
type Views = ((Usdc, Usdc), Option<(Usdc, Usdc)>, Option<(Usdc, Usdc)>);
