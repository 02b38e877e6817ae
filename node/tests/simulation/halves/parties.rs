//! One run of each half, from its start to its death. What lasts between two runs is its disk.

use std::sync::Arc;

use bytes::Bytes;
use farthing_bounds::ByteBudget;
use farthing_discovery::KnownService;
use farthing_ledger::{Ledger, Namespace, PayeeChannelFacts, PayerChannelFacts};
use farthing_network::{NetworkHandle, Played};
use farthing_node::{
    consumer::{Order, spending::Grant},
    node::halves::{ConsumerHalf, HalfParts, OwnerHalf},
};
use farthing_owner::{
    book::{self, View},
    registry::Registry,
    upstream::{PlayedServer, UpstreamOptions},
};
use farthing_protocol::Usdc;
use farthing_shared::{call_ends::CallEnds, refused::RefusedCalls, tasks::Tasks};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    ground::{DEPOSIT, Ground, NETWORK, Party, as_read},
    line::carry,
    state::{OwnerThere, SERVICE_WITHIN, State, call_id, method, number},
};
use crate::disk::Disk;

const SECRET: &str = "laptop";
const BODIES_BYTES: usize = 64 * 1024 * 1024;
const INBOUND_MAX: usize = 64;

/// What an owner expects of the server behind its service: it waits longer for it than its callers do.
pub fn upstream(played: Option<PlayedServer>) -> UpstreamOptions {
    UpstreamOptions {
        first_byte: SERVICE_WITHIN,
        total: SERVICE_WITHIN,
        played,
        ..UpstreamOptions::default()
    }
}

/// A half on a disk: everything that it has begun ends with it, and what its disk has then is found by the next one.
struct HalfRun {
    disk: Disk,
    parts: HalfParts,
}

impl HalfRun {
    fn begin(ground: &Ground, party: &Party, disk: Disk, network: NetworkHandle) -> Self {
        let parts = HalfParts {
            config: Arc::clone(&ground.config),
            signer: party.signer.clone(),
            ledger: Ledger::without_thread(disk.clone()).unwrap(),
            chain: party.chain.clone(),
            network,
            ends: CallEnds::default(),
            tasks: Tasks::default(),
            stopping: CancellationToken::new(),
        };
        Self { disk, parts }
    }

    /// Dies between two steps of each of its tasks. A copy of the disk, because a database writes when it is dropped.
    fn die(self) -> Disk {
        self.parts.tasks.abort_all();
        Disk::new(self.disk.bytes())
    }
}

/// The order of the call with this number, at the price that was accepted.
pub fn order(ground: &Ground, number: u64, body: Bytes) -> Order {
    Order {
        grant: Arc::new(Grant::unlimited(SECRET)),
        call_id: call_id(number),
        service: ground.service,
        method: method(number),
        path: "/quakes".to_owned(),
        params: [("n".to_owned(), number.to_string())].into(),
        headers: [].into(),
        body,
        max_price: None,
    }
}

/// A run of the half that buys, with the callers that wait for it.
pub struct ConsumerRun {
    run: HalfRun,
    pub half: ConsumerHalf,
    pub line: Played,
    callers: JoinSet<()>,
}

impl ConsumerRun {
    /// An empty disk with the channel's deposit in its ledger.
    pub async fn first_disk(ground: &Ground) -> Disk {
        let disk = Disk::default();
        let facts = PayerChannelFacts {
            id: ground.id,
            config: ground.channel,
            deposited: DEPOSIT,
            claimed: Usdc::ZERO,
            round: Some(0),
            stopped: false,
        };
        Ledger::without_thread(disk.clone()).unwrap().put_payer_channel(facts).await.unwrap();
        Disk::new(disk.bytes())
    }

    pub async fn start(ground: &Ground, state: &State, run: u64, disk: Disk) -> Self {
        let (network, line, messages) = NetworkHandle::played(&ground.consumer.network());
        line.connect_to([ground.owner.key.address()]);
        let run_of_half = HalfRun::begin(ground, &ground.consumer, disk, network);
        // The network goes on when the half dies: what has left, has left.
        tokio::spawn(carry(state.clone(), ground.consumer.key.address(), run, messages));
        let parts = run_of_half.parts.clone();
        let half = ConsumerHalf::start(parts, ground.catalog.clone(), ground.escrows()).await.unwrap();
        state.lock().consumers.insert(ground.consumer.key.address(), run_of_half.parts.ledger.clone());
        let open = half.consumer.recover().unwrap();
        state.tell(format!("the consumer starts, {open} open"));
        Self { run: run_of_half, half, line, callers: JoinSet::new() }
    }

    pub const fn ledger(&self) -> &Ledger {
        &self.run.parts.ledger
    }

    pub fn tasks_begun(&self) -> u64 {
        self.run.parts.tasks.begun()
    }

    /// Has a caller order a call, at a price that it may name, and wait for its end.
    pub fn order(&mut self, ground: &Ground, state: &State, number: u64, max_price: Option<Usdc>) {
        let order = Order { max_price, ..order(ground, number, Bytes::new()) };
        let (consumer, state) = (self.half.consumer.clone(), state.clone());
        state.ordered(number);
        self.callers.spawn(async move {
            state.ended(number, &consumer.buy(order).await);
        });
    }

    /// Whether somebody waits, a call has no end yet, or room is kept for calls that a death may have made it forget.
    pub fn is_busy(&mut self, ground: &Ground) -> bool {
        while let Some(caller) = self.callers.try_join_next() {
            caller.unwrap();
        }
        let forgets = self.half.channels.get(ground.id).is_some_and(|channel| !channel.forgotten.is_zero());
        forgets || !self.callers.is_empty() || !self.ledger().unresolved().unwrap().is_empty()
    }

    /// The calls that have no end yet, by number.
    pub fn open(&self) -> Vec<u64> {
        let open = self.ledger().unresolved().unwrap();
        open.iter().map(|promise| number(promise.request.call_id)).collect()
    }

    /// What its disk has now.
    pub fn backup(&self) -> Disk {
        Disk::new(self.run.disk.bytes())
    }

    pub fn die(mut self, state: &State) -> Disk {
        self.callers.abort_all();
        state.tell(format!("the consumer dies, with {:?} open", self.open()));
        self.run.die()
    }
}

/// A run of the half that sells.
pub struct OwnerRun {
    run: HalfRun,
    pub half: OwnerHalf,
    registry: Registry,
}

impl OwnerRun {
    /// An empty disk with the channels of its consumers and the service in its ledger.
    pub async fn first_disk(grounds: &[Ground]) -> Disk {
        let disk = Disk::default();
        let ledger = Ledger::without_thread(disk.clone()).unwrap();
        for ground in grounds {
            let facts = PayeeChannelFacts {
                id: ground.id,
                config: ground.channel,
                deposited: DEPOSIT,
                claimed: Usdc::ZERO,
                closing: false,
            };
            ledger.put_payee_channel(facts).await.unwrap();
        }
        let (key, value) = grounds[0].document.clone();
        ledger.put(Namespace::Services, key, value).await.unwrap();
        drop(ledger);
        Disk::new(disk.bytes())
    }

    /// Starts it, and shows it the chain.
    pub fn start(ground: &Ground, state: &State, disk: Disk) -> Self {
        let (network, _, _) = NetworkHandle::played(&ground.owner.network());
        let run = HalfRun::begin(ground, &ground.owner, disk, network);
        let ledger = run.parts.ledger.clone();
        let registry = Registry::load(
            ground.owner.signer.clone(),
            ledger.clone(),
            NETWORK.to_owned(),
            vec![ground.accept.clone()],
            upstream(Some(state.server())),
        )
        .unwrap();
        let (closes, _) = mpsc::channel(1);
        let half = OwnerHalf::start(
            run.parts.clone(),
            registry.clone(),
            ByteBudget::new(BODIES_BYTES),
            RefusedCalls::default(),
            closes,
        );
        let half = half.unwrap();
        for row in ledger.payee_channels().unwrap() {
            let view = View { safe_deposited: row.deposited, close_at_secs: None, round: 0, safe_round: 0 };
            half.book.apply(&row, book::proof(&row, ground.owner.signer.domain()), view);
        }
        let (calls, inbound) = mpsc::channel(INBOUND_MAX);
        let owner = half.owner.clone();
        run.parts.tasks.spawn(async move { owner.run(inbound).await });
        let mut shared = state.lock();
        shared.owner = Some(OwnerThere { calls, ledger, book: half.book.clone() });
        shared.reconnect();
        shared.tell("the owner starts");
        drop(shared);
        Self { run, half, registry }
    }

    pub const fn ledger(&self) -> &Ledger {
        &self.run.parts.ledger
    }

    pub fn tasks_begun(&self) -> u64 {
        self.run.parts.tasks.begun()
    }

    /// Changes the price of the service. As others read it then.
    pub async fn publish(&self, ground: &Ground, price: Usdc) -> KnownService {
        let registered = self.registry.set_price(ground.service, None, price).await.unwrap();
        as_read(&self.registry, &registered)
    }

    /// What its disk has now.
    pub fn backup(&self) -> Disk {
        Disk::new(self.run.disk.bytes())
    }

    /// Nothing that is on its way arrives at the next run.
    pub fn die(self, state: &State) -> Disk {
        let mut shared = state.lock();
        shared.owner = None;
        shared.lose_answers_since(Instant::now());
        shared.run += 1;
        shared.reconnect();
        shared.tell("the owner dies");
        drop(shared);
        self.run.die()
    }
}
