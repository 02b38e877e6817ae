//! The task that owns the swarm: it alone dials, listens, publishes and knows who is connected.
//!
//! It waits for seven things, and treats each with one function that does not wait: a command from a handle,
//! an event of the swarm, a report about a peer, a judgement of what was gossiped, an answer to the directory, the end of a
//! visit to the rendezvous, and the moment when something is due.

mod agreement;
mod connections;
mod dial_scheduler;
mod dials;
mod directory;
mod gossip;
mod peers;
mod publishing;
mod reachability;
mod relays;
mod rendezvous;
mod waiters;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use farthing_bounds::{ByteBudget, LineLimiter};
use farthing_protocol::{Address, wire::NetworkName};
use futures::StreamExt;
use libp2p::{
    Multiaddr, PeerId,
    swarm::{ListenError, SwarmEvent},
};
use tokio::sync::{mpsc, oneshot, watch};

use self::{dials::Dials, peers::Peers};
pub(crate) use self::{directory::DirectoryDriver, rendezvous::Errands};
use crate::{
    DirectoryMode, NetworkStatus, Reachability, addresses,
    admission::Admission,
    agreement::Agreement,
    behaviour::{NodeBehaviourEvent, NodeSwarm},
    bootstrap::Bootstrap,
    call::KeptStreams,
    command::Command,
    dial_scheduler::DialScheduler,
    gossip::{GossipVerdict, Judge, Topics},
    outbound::TrustedAddresses,
    publisher::Publisher,
    reachability::Prober,
    records::SharedRecords,
    relay::Relays,
    report::{Strike, Strikes},
    saved::{Saved, SharedBook},
    status::Counters,
    twin::Twin,
    usage::Usage,
    yield_budget::YieldBudget,
};

/// Commands waiting for the task; a full queue makes handles wait.
pub(crate) const COMMANDS_MAX: usize = 256;
/// The interval at which the task looks around without being asked.
const TICK: Duration = Duration::from_secs(1);
/// The number of these that pass until the status is made anew although nothing seems to have changed.
const STATUS_EVERY_TICKS: usize = 10;
/// The longest time that a goodbye may take to reach the directory.
const GOODBYE_DEADLINE: Duration = Duration::from_millis(1500);

/// Lines about peers that were blocked.
const BLOCKS_TOLD_PER_MINUTE_MAX: u32 = 10;

/// The parts that the task is made of.
pub(crate) struct Parts {
    pub(crate) swarm: NodeSwarm,
    pub(crate) directory: DirectoryDriver,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) reports: mpsc::Receiver<(Address, Strike)>,
    pub(crate) status: watch::Sender<NetworkStatus>,
    pub(crate) records: SharedRecords,
    pub(crate) publisher: Publisher,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) book: SharedBook,
    /// Writes the book and the records down until it is dropped.
    pub(crate) saved: Option<Saved>,
    pub(crate) topics: Topics,
    pub(crate) judge: Judge,
    pub(crate) judged: mpsc::Receiver<GossipVerdict>,
    pub(crate) prober: Prober,
    pub(crate) agreement: Agreement,
    /// Nothing where the rendezvous is off.
    pub(crate) errands: Option<Errands>,
    pub(crate) relays: Relays,
    pub(crate) uses_relays: bool,
    /// This task's own queue, for the tasks it starts. Weak: nobody else holding it ends the task.
    pub(crate) own_commands: mpsc::WeakSender<Command>,
    pub(crate) reach_deadline: Duration,
    /// Calls being served and calls being made, to wait for in a shutdown.
    pub(crate) under_way: [Arc<Admission>; 2],
    pub(crate) kept: Arc<KeptStreams>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) own: Address,
    pub(crate) network: NetworkName,
    /// That the node was told to listen on.
    pub(crate) named_ports: BTreeSet<u16>,
    /// For the answers that are read.
    pub(crate) budget: ByteBudget,
    pub(crate) allow_private: bool,
    pub(crate) vouched: TrustedAddresses,
    pub(crate) usage: Usage,
    pub(crate) connections_per_peer_max: usize,
    pub(crate) drain_deadline: Duration,
}

/// The task's state.
pub(crate) struct SwarmTask {
    parts: Parts,
    peers: Peers,
    dials: Dials,
    /// The newest own record that neighbours were told of.
    gossiped_seq: u64,
    dial_scheduler: DialScheduler,
    /// Nodes of the local network, which change too often to be written down.
    nearby: HashMap<PeerId, Vec<Multiaddr>>,
    twin: Twin,
    /// The time at which this run began.
    started: Instant,
    started_secs: u64,
    /// The next time that a peer is asked for our own record, and how many were.
    own_record_due: Instant,
    own_record_asked: usize,
    /// The next session about records; nothing while one is under way.
    agreement_due: Option<Instant>,
    /// Those that ended early since the last that did not.
    agreements_failed: u32,
    strikes: Strikes,
    blocks_told: LineLimiter,
    /// The addresses under which peers see this node, and how many said so.
    observed: BTreeMap<Multiaddr, u32>,
    /// Those who wait for the end of a test of reachability.
    awaiting_reach: Vec<oneshot::Sender<Reachability>>,
    tick_due: Instant,
    /// Counts ticks, so that everybody gets a turn at being dialled.
    ticks: usize,
    /// Something the status shows may have changed.
    status_is_stale: bool,
    /// Records, peers of the book, and whether there is a twin, as they were at the last tick.
    unseen: (usize, usize, bool),
}

impl SwarmTask {
    pub(crate) fn new(parts: Parts) -> Self {
        let dial_scheduler = DialScheduler::new(parts.own);
        let mut task = Self {
            parts,
            peers: Peers::default(),
            dials: Dials::default(),
            gossiped_seq: 0,
            dial_scheduler,
            nearby: HashMap::new(),
            twin: Twin::default(),
            started: Instant::now(),
            started_secs: crate::now_secs(),
            own_record_due: Instant::now(),
            own_record_asked: 0,
            agreement_due: Some(Instant::now()),
            agreements_failed: 0,
            strikes: Strikes::default(),
            blocks_told: LineLimiter::new(BLOCKS_TOLD_PER_MINUTE_MAX),
            observed: BTreeMap::new(),
            awaiting_reach: Vec::new(),
            tick_due: Instant::now(),
            ticks: 0,
            status_is_stale: true,
            unseen: (0, 0, false),
        };
        task.addresses_changed();
        // Whoever starts the network reads its addresses at once.
        task.show_status_if_stale();
        task
    }

    /// Runs until a shutdown, or until nobody holds a handle any more.
    /// `early` is what the swarm said before.
    pub(crate) async fn run(mut self, early: Vec<SwarmEvent<NodeBehaviourEvent>>) {
        early.into_iter().for_each(|event| self.on_event(event));
        let mut turns = YieldBudget::default();
        loop {
            self.do_what_is_due();
            self.show_status_if_stale();
            let due = self.next_due();
            tokio::select! {
                command = self.parts.commands.recv() => match command {
                    Some(Command::Shutdown { reply }) => {
                        self.shut_down().await;
                        // Whoever asked may not care to wait.
                        let _ = reply.send(());
                        return;
                    }
                    Some(command) => self.on_command(command),
                    None => return self.shut_down().await,
                },
                event = self.parts.swarm.select_next_some() => {
                    self.on_event(event);
                    turns.took_one().await;
                }
                Some((peer, strike)) = self.parts.reports.recv() => self.on_strike(peer, strike),
                Some(judged) = self.parts.judged.recv() => self.on_judged(&judged),
                Some(answered) = self.parts.directory.questions.join_next() => self.on_answered(answered),
                Some(outcome) = Errands::ended(&mut self.parts.errands) => self.on_errand_ended(outcome),
                () = tokio::time::sleep_until(due.into()) => turns.waited(),
            }
        }
    }

    fn on_command(&mut self, command: Command) {
        self.status_is_stale |= matches!(
            command,
            Command::Publish { .. } | Command::DialledBack { .. } | Command::LookForTwin { .. }
        );
        match command {
            Command::Open { owner, protocol, reply } => self.open(owner, protocol, reply),
            Command::Connect { record, for_call, reply } => self.connect(&record, for_call, reply),
            Command::Lookup { owner, found, ended } => self.look_up(owner, found, ended),
            Command::AskDirectory { peer, request, reply } => self.on_request(peer, request, reply),
            Command::Publish { publication, reply } => self.publish(publication, reply),
            Command::Gossip { subject, content, reply } => drop(reply.send(self.gossip(subject, content))),
            Command::Peers { reply } => drop(reply.send(self.peers.list())),
            Command::Neighbours { reply } => drop(reply.send(self.peers.neighbours())),
            Command::Closest { owner, count, reply } => drop(reply.send(self.peers.closest(owner, count))),
            Command::Asker { peer, reply } => drop(reply.send(self.peers.asker(peer))),
            Command::Strangers { not_at, salt, count, reply } => {
                let _ = reply.send(self.peers.strangers(&not_at, &salt, count));
            }
            Command::DialledBack { peer, answer } => self.on_dialled_back(peer, answer),
            Command::TestReachability { reply } => self.test_reachability(reply),
            Command::LookForTwin { reply } => {
                let now = Instant::now();
                self.rise_above_others(now);
                let _ = reply.send(self.twin.is_suspected(now));
            }
            Command::Agreed { agreed } => self.on_agreed(agreed, Instant::now()),
            // It may have gone already.
            Command::GiveUp { connection } => drop(self.parts.swarm.close_connection(connection)),
            Command::Shutdown { .. } => unreachable!("the loop takes this one itself"),
        }
    }

    fn on_event(&mut self, event: SwarmEvent<NodeBehaviourEvent>) {
        // Streams make no events, so a busy node does not come here for every call.
        self.status_is_stale |= may_change_status(&event);
        match event {
            SwarmEvent::Behaviour(NodeBehaviourEvent::Identify(event)) => self.on_identify(event),
            SwarmEvent::Behaviour(NodeBehaviourEvent::Ping(event)) => self.on_ping(&event),
            SwarmEvent::Behaviour(NodeBehaviourEvent::Gossip(event)) => self.on_gossip(event),
            SwarmEvent::Behaviour(NodeBehaviourEvent::Mdns(event)) => self.on_nearby(event),
            SwarmEvent::Behaviour(
                NodeBehaviourEvent::Limits(never)
                | NodeBehaviourEvent::Memory(never)
                | NodeBehaviourEvent::Gate(never)
                | NodeBehaviourEvent::Keep(never)
                | NodeBehaviourEvent::Directory(never)
                | NodeBehaviourEvent::Call(never)
                | NodeBehaviourEvent::Info(never)
                | NodeBehaviourEvent::Sync(never)
                | NodeBehaviourEvent::Agreement(never)
                | NodeBehaviourEvent::Reach(never),
            ) => match never {},
            SwarmEvent::Behaviour(NodeBehaviourEvent::Portmap(event)) => self.on_portmap(event),
            // Counted where it happens.
            SwarmEvent::Behaviour(NodeBehaviourEvent::Relay(_)) => {}
            SwarmEvent::Behaviour(NodeBehaviourEvent::RelayClient(event)) => self.on_relay(&event),
            SwarmEvent::Behaviour(NodeBehaviourEvent::Punch(event)) => self.on_punched(&event),
            SwarmEvent::ConnectionEstablished { peer_id, connection_id, endpoint, .. } => {
                self.on_connected(peer_id, connection_id, &endpoint);
            }
            SwarmEvent::ConnectionClosed { peer_id, connection_id, num_established, cause, .. } => {
                let reason = cause.map_or_else(|| "it was closed".to_owned(), |cause| cause.to_string());
                self.on_closed(peer_id, connection_id, num_established, &reason);
            }
            SwarmEvent::OutgoingConnectionError { connection_id, peer_id, error } => {
                self.on_dial_failed(connection_id, peer_id, &error);
            }
            SwarmEvent::Dialing { .. } => self.twin.dial_began(Instant::now()),
            SwarmEvent::IncomingConnection { .. } => self.twin.arrival_began(Instant::now()),
            SwarmEvent::IncomingConnectionError { error, send_back_addr, .. } => {
                if matches!(error, ListenError::LocalPeerId { .. }) {
                    self.twin.dialled_by_own_key(Instant::now());
                }
                tracing::debug!(%send_back_addr, %error, "an incoming connection failed");
            }
            SwarmEvent::NewListenAddr { .. } | SwarmEvent::ExpiredListenAddr { .. } => {
                self.addresses_changed();
            }
            SwarmEvent::ListenerClosed { listener_id, reason, .. } => {
                self.on_listener_closed(listener_id, reason);
                self.addresses_changed();
            }
            SwarmEvent::ListenerError { error, .. } => tracing::warn!(%error, "a listener reports an error"),
            _ => {}
        }
    }

    /// The earliest moment at which [`Self::do_what_is_due`] has something to do.
    fn next_due(&self) -> Instant {
        let swarm = &self.parts.swarm;
        let bootstrap = self.parts.bootstrap.next_due(|peer| swarm.is_connected(peer));
        let put = self.parts.publisher.next_due().filter(|_| !self.parts.directory.is_putting());
        let (reach, directory) = (self.parts.prober.next_due(), self.parts.directory.wakes_at());
        [bootstrap, put, reach, directory].into_iter().flatten().fold(self.tick_due, Instant::min)
    }

    fn do_what_is_due(&mut self) {
        let now = Instant::now();
        self.dial_bootstrap(now);
        self.put_if_due(now);
        self.probe_if_due(now);
        self.wake_directory(now);
        if self.tick_due <= now {
            self.tick_due = now + TICK;
            self.ticks = self.ticks.wrapping_add(1);
            self.tend_directory(now);
            self.parts.kept.sweep(now);
            self.watch_clock(now);
            self.watch_own_record(now);
            self.agree_if_due(now);
            self.keep_company(now);
            self.visit_rendezvous(now);
            self.keep_relays(now);
            self.close_overtaken(now);
            self.status_is_stale |= self.has_changed_unseen(now);
        }
    }

    /// Returns whether the status has to show a change that came about without an event: other tasks take records, the
    /// book is written when peers are met, and suspicions pass. Once in a while it is made anew whatever happened.
    fn has_changed_unseen(&mut self, now: Instant) -> bool {
        let records = self.parts.records.lock().len();
        let unseen = (records, self.parts.book.lock().len(), self.twin.is_suspected(now));
        std::mem::replace(&mut self.unseen, unseen) != unseen || self.ticks.is_multiple_of(STATUS_EVERY_TICKS)
    }

    fn on_strike(&mut self, peer: Address, strike: Strike) {
        tracing::debug!(%peer, ?strike, "a peer broke the protocol");
        if let Some(duration) = self.strikes.note(peer, Instant::now()) {
            self.block(peer, duration);
        }
    }

    /// Blocks a peer, connected or not: one that leaves in time must find the door shut as well.
    fn block(&mut self, peer: Address, duration: Duration) {
        let minutes = duration.as_secs() / 60;
        // Wallets are free, so a stranger can have as many of these as it likes.
        if let Some(left_out) = self.blocks_told.admits(Instant::now()) {
            tracing::warn!(%peer, minutes, left_out, "blocked a peer for bad frames");
        }
        Counters::add(&self.parts.counters.peers_blocked);
        self.parts.swarm.behaviour_mut().gate.block(peer, duration);
        if let Some(id) = self.peers.id_of(peer) {
            // An error would mean that it has gone already.
            let _ = self.parts.swarm.disconnect_peer_id(id);
        }
    }

    fn show_status_if_stale(&mut self) {
        if !std::mem::take(&mut self.status_is_stale) {
            return;
        }
        // Before the status is put together: there the records are locked until it is.
        let clock = self.parts.records.lock().clocks.skew(self.peers.identified_count());
        let (listening, circuits) = (self.listening(), self.parts.relays.published());
        let reachability = self.reach_report();
        let swarm = &self.parts.swarm;
        let connections = swarm.network_info().connection_counters().num_established() as usize;
        let serves = swarm.behaviour().directory.serves();
        let status = NetworkStatus {
            listening: listening.iter().map(ToString::to_string).collect(),
            ports: addresses::ports(&self.parts.named_ports, listening.iter()),
            external: swarm.external_addresses().chain(&circuits).map(ToString::to_string).collect(),
            observed: self.observed.keys().map(ToString::to_string).collect(),
            connections,
            peers: self.peers.identified_count(),
            directory: if serves { DirectoryMode::Server } else { DirectoryMode::Client },
            directory_peers: self.parts.directory.peers(),
            records: self.parts.records.lock().len(),
            reachability,
            peers_known: self.parts.book.lock().len(),
            clock,
            duplicate_identity: self.twin.is_suspected(Instant::now()),
            bootstrap: self.parts.bootstrap.report(),
            rendezvous: self.parts.errands.as_ref().map(Errands::report).unwrap_or_default(),
        };
        self.parts.status.send_if_modified(|shown| {
            let changed = *shown != status;
            *shown = status;
            changed
        });
    }

    /// Takes and makes no more calls, says goodbye, waits for the calls under way, and writes down who is known.
    async fn shut_down(&mut self) {
        self.parts.under_way.iter().for_each(|calls| calls.close());
        self.parts.commands.close();
        self.parts.errands = None;
        self.say_goodbye();
        self.drain().await;
        if let Some(saved) = self.parts.saved.take() {
            // An error would mean that writing ended badly, which is no reason not to end.
            let _ = tokio::task::spawn_blocking(move || drop(saved)).await;
        }
    }

    async fn drain(&mut self) {
        let started = Instant::now();
        loop {
            self.wake_directory(Instant::now());
            let goodbye_over = !self.parts.directory.is_putting() || started.elapsed() >= GOODBYE_DEADLINE;
            let idle = self.parts.under_way.iter().all(|calls| calls.in_flight() == 0);
            if goodbye_over && (idle || started.elapsed() >= self.parts.drain_deadline) {
                return;
            }
            tokio::select! {
                event = self.parts.swarm.select_next_some() => self.on_event(event),
                Some(answered) = self.parts.directory.questions.join_next() => self.on_answered(answered),
                () = tokio::time::sleep(Duration::from_millis(20)) => {}
            }
        }
    }
}

/// Returns whether this event may change the status. What an idle node hears all day, pings and gossip, changes nothing in
/// it; making it anew for each was a good part of what an idle node did.
fn may_change_status(event: &SwarmEvent<NodeBehaviourEvent>) -> bool {
    !matches!(
        event,
        SwarmEvent::Behaviour(NodeBehaviourEvent::Ping(_) | NodeBehaviourEvent::Gossip(_))
            | SwarmEvent::Dialing { .. }
            | SwarmEvent::IncomingConnection { .. }
    )
}
