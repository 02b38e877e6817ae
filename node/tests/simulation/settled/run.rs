//! One run of a whole node: its halves, its settlement and its chain, from the start to the death. What lasts between two runs is its
//! disk, and what it has sent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use farthing_bounds::ByteBudget;
use farthing_chain::{Chain, ChainError, ChainHandle};
use farthing_ledger::{Ledger, Namespace};
use farthing_network::{NetworkHandle, Played};
use farthing_node::{
    consumer::{Order, spending::Grant},
    journal::LedgerJournal,
    node::halves::{HalfParts, Halves, HalvesParts},
};
use farthing_owner::{registry::Registry, upstream::PlayedServer};
use farthing_protocol::listing::Accept;
use farthing_shared::{call_ends::CallEnds, refused::RefusedCalls, tasks::Tasks};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    blocks::Blocks,
    ground::{Ground, Party},
    hostile::BEHIND,
};
use crate::{
    disk::{Disk, Survival},
    halves::{
        ground::NETWORK,
        line::carry,
        parties::upstream,
        state::{OwnerThere, State, call_id, method, number},
    },
    machine::kept,
};

const SECRET: &str = "laptop";
const BODIES_BYTES: usize = 64 * 1024 * 1024;
const INBOUND_MAX: usize = 64;
/// A commit has some thirty writes and syncs; the power goes in the first or the second of those to come.
const OPERATIONS: u64 = 48;
/// A node that stores nothing for so long dies between two steps.
const STORES_WITHIN: Duration = Duration::from_secs(10);

/// The way in which a node dies.
#[derive(Clone, Copy, Debug)]
pub enum Death {
    /// Between two steps of each of its tasks. Its disk has all that it stored.
    BetweenSteps,
    /// After so many further writes and syncs of its disk. Of what was not synced then, a part survives.
    Storing { operations: u64, survival: Survival },
}

impl Death {
    /// Chooses one. Once faults have stopped, no power goes any more.
    pub fn choose(state: &State) -> Self {
        let mut shared = state.lock();
        if !shared.has_faults || shared.choices.chance(60) {
            return Self::BetweenSteps;
        }
        let operations = shared.choices.u64_below(OPERATIONS);
        let survival = match shared.choices.below(4) {
            0 => Survival::None,
            1 => Survival::All,
            _ => Survival::Some(shared.choices.u64_below(65_536)),
        };
        Self::Storing { operations, survival }
    }
}

/// What a node sells, and where it is asked for. The consumer sells nothing.
struct Shop {
    accepts: Vec<Accept>,
    server: Option<PlayedServer>,
}

/// A running node.
pub struct NodeRun {
    disk: Disk,
    parts: HalfParts,
    pub halves: Halves,
    /// Whether its chain's endpoints still hear it.
    is_alive: Arc<AtomicBool>,
    /// Users who wait for calls, claims and closes.
    users: JoinSet<()>,
}

impl NodeRun {
    /// Starts the parts in the order in which a node does.
    async fn start(
        ground: &Ground,
        party: &Party,
        blocks: &Blocks,
        (disk, network, shop): (Disk, NetworkHandle, Shop),
    ) -> Self {
        let ledger = Ledger::without_thread(disk.clone()).unwrap();
        let is_alive = Arc::new(AtomicBool::new(true));
        let endpoints = blocks.endpoints(party.node, &is_alive);
        let journal = Arc::new(LedgerJournal(ledger.clone()));
        let chain = Chain::start_played(ground.spec.clone(), party.key.clone(), journal, endpoints);
        let parts = HalfParts {
            config: Arc::clone(&ground.config),
            signer: party.signer.clone(),
            ledger: ledger.clone(),
            chain: chain.await.unwrap(),
            network,
            ends: CallEnds::default(),
            tasks: Tasks::default(),
            stopping: CancellationToken::new(),
        };
        let registry = Registry::load(
            party.signer.clone(),
            ledger,
            NETWORK.to_owned(),
            shop.accepts,
            upstream(shop.server),
        );
        let (halves, settlement) = Halves::start(HalvesParts {
            half: parts.clone(),
            catalog: ground.catalog.clone(),
            escrows: ground.escrows(),
            registry: registry.unwrap(),
            budget: ByteBudget::new(BODIES_BYTES),
            refused: RefusedCalls::default(),
        })
        .await
        .unwrap();
        halves.consumer.consumer.recover().unwrap();
        parts.tasks.spawn(settlement);
        Self { disk, parts, halves, is_alive, users: JoinSet::new() }
    }

    pub const fn ledger(&self) -> &Ledger {
        &self.parts.ledger
    }

    /// Whether a transaction of this wallet is under way, as far as the node knows.
    pub fn has_under_way(&self) -> bool {
        self.parts.chain.under_way().is_some()
    }

    /// Has a user wait for something.
    fn have_wait(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.users.spawn(work);
    }

    /// Whether a user still waits.
    fn is_awaited(&mut self) -> bool {
        while let Some(user) = self.users.try_join_next() {
            user.unwrap();
        }
        !self.users.is_empty()
    }

    /// The node's view of the chain, for transactions that it does not decide on.
    pub fn chain(&self) -> ChainHandle {
        self.parts.chain.clone()
    }

    /// Has somebody send a transaction of the node's wallet behind its back.
    pub fn send(
        &mut self,
        state: &State,
        what: &'static str,
        sending: impl Future<Output = Result<(), ChainError>> + Send + 'static,
    ) {
        state.tell(format!("{what}, {BEHIND}"));
        let state = state.clone();
        self.have_wait(async move {
            match sending.await {
                Ok(()) => state.tell(format!("done: {what}")),
                Err(error) => state.tell(format!("not done: {what}: {error}")),
            }
        });
    }

    /// Has a user of the owner claim all that is unclaimed.
    pub fn claim(&mut self, state: &State) {
        let (settlement, state) = (self.halves.settlement.clone(), state.clone());
        state.tell("the owner is told to claim");
        self.have_wait(async move {
            match settlement.claim().await {
                Ok(claimed) => state.tell(format!("claimed {}", claimed.amount)),
                Err(error) => state.tell(format!("not claimed: {error}")),
            }
        });
    }

    /// Has a user of the owner close the channel.
    pub fn close_as_payee(&mut self, ground: &Ground, state: &State) {
        let (settlement, state, id) = (self.halves.settlement.clone(), state.clone(), ground.id);
        state.tell("the owner is told to close");
        self.have_wait(async move {
            match settlement.close_as_payee(id).await {
                Ok(()) => state.tell("the owner has been told to close"),
                Err(error) => state.tell(format!("the owner does not close: {error}")),
            }
        });
    }

    /// Has a user of the consumer get the rest of the deposit back, with or without the owner.
    pub fn close_as_payer(&mut self, ground: &Ground, state: &State, is_forced: bool) {
        let (settlement, state, id) = (self.halves.settlement.clone(), state.clone(), ground.id);
        state.tell(format!("the consumer is told to close, forced: {is_forced}"));
        self.have_wait(async move {
            match settlement.close_as_payer(id, is_forced).await {
                Ok(closed) => state.tell(format!("the consumer closes: {closed:?}")),
                Err(error) => state.tell(format!("the consumer does not close: {error}")),
            }
        });
    }

    /// Dies. A copy of the disk, because a database writes when it is dropped.
    async fn die(mut self, death: Death) -> Disk {
        let kept = match death {
            Death::BetweenSteps => self.disk.bytes(),
            Death::Storing { operations, survival } => self.store_until(operations, survival).await,
        };
        self.users.abort_all();
        self.parts.tasks.abort_all();
        self.is_alive.store(false, Ordering::Relaxed);
        self.parts.chain.shutdown().await;
        Disk::new(kept)
    }

    /// Goes on until the disk has failed. What it has then.
    async fn store_until(&self, operations: u64, survival: Survival) -> Vec<u8> {
        let before = self.disk.bytes();
        self.disk.start_trace();
        self.disk.fail_after(operations);
        let until = Instant::now() + STORES_WITHIN;
        while self.ledger().closed().is_none() && Instant::now() < until {
            sleep(Duration::from_millis(1)).await;
        }
        kept(before, &self.disk.take_trace(), survival)
    }
}

/// A run of the node that buys.
pub struct ConsumerRun {
    pub node: NodeRun,
    pub line: Played,
}

impl ConsumerRun {
    pub async fn start(ground: &Ground, blocks: &Blocks, state: &State, run: u64, disk: Disk) -> Self {
        let (network, line, messages) = NetworkHandle::played(&Ground::network(&ground.consumer));
        line.connect_to([ground.owner.wallet()]);
        // The network goes on when the node dies: what has left, has left.
        tokio::spawn(carry(state.clone(), ground.consumer.wallet(), run, messages));
        let shop = Shop { accepts: Vec::new(), server: None };
        let node = Box::pin(NodeRun::start(ground, &ground.consumer, blocks, (disk, network, shop))).await;
        state.lock().consumers.insert(ground.consumer.wallet(), node.ledger().clone());
        let this = Self { node, line };
        state.tell(format!("the consumer starts, with {:?} open", this.open()));
        this
    }

    /// Has a caller order a call and wait for its end.
    pub fn order(&mut self, ground: &Ground, state: &State, number: u64) {
        let order = Order {
            grant: Arc::new(Grant::unlimited(SECRET)),
            call_id: call_id(number),
            service: ground.service,
            method: method(number),
            path: "/quakes".to_owned(),
            params: [("n".to_owned(), number.to_string())].into(),
            headers: [].into(),
            body: bytes::Bytes::new(),
            max_price: None,
        };
        let (consumer, state) = (self.node.halves.consumer.consumer.clone(), state.clone());
        state.ordered(number);
        self.node.have_wait(async move {
            state.ended(number, &consumer.buy(order).await);
        });
    }

    /// Whether somebody waits, a call has no end yet, or room is kept for calls that a death may have made it forget.
    pub fn is_busy(&mut self, ground: &Ground) -> bool {
        let channel = self.node.halves.consumer.channels.get(ground.id);
        let forgets = channel.is_some_and(|channel| channel.holds_deposit() && !channel.forgotten.is_zero());
        forgets || self.node.is_awaited() || !self.node.ledger().unresolved().unwrap().is_empty()
    }

    /// The calls that have no end yet, by number.
    pub fn open(&self) -> Vec<u64> {
        let open = self.node.ledger().unresolved().unwrap();
        open.iter().map(|promise| number(promise.request.call_id)).collect()
    }

    pub async fn die(self, state: &State, death: Death) -> Disk {
        let has_sent = if self.node.has_under_way() { "a transaction" } else { "nothing" };
        let open = self.open();
        state.tell(format!("the consumer dies: {death:?}, with {open:?} open and {has_sent} under way"));
        self.node.die(death).await
    }
}

/// A run of the node that sells.
pub struct OwnerRun {
    pub node: NodeRun,
}

impl OwnerRun {
    /// An empty disk with the service in its ledger.
    pub async fn first_disk(ground: &Ground) -> Disk {
        let disk = Disk::default();
        let ledger = Ledger::without_thread(disk.clone()).unwrap();
        let (key, value) = ground.document.clone();
        ledger.put(Namespace::Services, key, value).await.unwrap();
        drop(ledger);
        Disk::new(disk.bytes())
    }

    pub async fn start(ground: &Ground, blocks: &Blocks, state: &State, disk: Disk) -> Self {
        let (network, _, _) = NetworkHandle::played(&Ground::network(&ground.owner));
        let server = Some(state.server());
        let shop = Shop { accepts: vec![ground.accept.clone()], server };
        let node = Box::pin(NodeRun::start(ground, &ground.owner, blocks, (disk, network, shop))).await;
        let (calls, inbound) = mpsc::channel(INBOUND_MAX);
        let owner = node.halves.owner.owner.clone();
        node.parts.tasks.spawn(async move { owner.run(inbound).await });
        let mut shared = state.lock();
        let (ledger, book) = (node.ledger().clone(), node.halves.owner.book.clone());
        shared.owner = Some(OwnerThere { calls, ledger, book });
        shared.reconnect();
        shared.tell("the owner starts");
        drop(shared);
        Self { node }
    }

    /// Whether somebody waits for a claim or a close.
    pub fn is_busy(&mut self) -> bool {
        self.node.is_awaited()
    }

    /// Nothing that is on its way arrives at the next run.
    pub async fn die(self, state: &State, death: Death) -> Disk {
        let has_sent = if self.node.has_under_way() { "a transaction" } else { "nothing" };
        state.tell(format!("the owner dies: {death:?}, with {has_sent} under way"));
        let began = Instant::now();
        let disk = self.node.die(death).await;
        let mut shared = state.lock();
        shared.owner = None;
        shared.lose_answers_since(began);
        shared.run += 1;
        shared.reconnect();
        drop(shared);
        disk
    }
}
