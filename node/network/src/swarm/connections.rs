//! Connections of the swarm's task: opening streams, dialling, identifying, pinging, losing.

use std::time::Instant;

use farthing_directory::Input;
use farthing_protocol::{
    Address, NodeRecord, Verified,
    info::{InfoRequest, InfoResponse},
    record::FLAG_CALL_STREAMS,
    wire::NetworkName,
};
use libp2p::{
    Multiaddr, PeerId,
    core::ConnectedPoint,
    identify, ping, relay,
    swarm::{
        ConnectionId, DialError, StreamUpgradeError,
        dial_opts::{DialOpts, PeerCondition},
    },
};
use tokio::sync::oneshot;

use super::{
    SwarmTask,
    dials::{DIALLED_ADDRESSES_MAX, is_own_limit},
    peers::PeerFacts,
    waiters::Waiter,
};
use crate::{
    BootstrapState, NotStarted,
    addresses::{self, circuit},
    command::{NoStream, Protocol},
    dial_scheduler::DialScheduler,
    directory, identity,
    info::{self, INFO_DEADLINE},
    innermost,
    line::Line,
    status::Counters,
    streams::Opening,
};

/// Ways through relays that are dialled beside a peer's addresses.
const DIALLED_CIRCUITS_MAX: usize = 2;
const LEARNED_ADDRESSES_MAX: usize = 8;
/// Addresses under which peers see this node that are shown.
const OBSERVED_MAX: usize = 16;

impl SwarmTask {
    /// Opens a stream to a peer that is connected and speaks the protocol.
    pub(super) fn open(
        &mut self,
        owner: Address,
        protocol: Protocol,
        reply: oneshot::Sender<Result<Line, NoStream>>,
    ) {
        let behaviour = self.parts.swarm.behaviour_mut();
        let Some((id, identified)) = self.peers.identity(owner) else {
            match self.peers.callable_by_record(owner).filter(|_| protocol == Protocol::Call) {
                Some(id) => behaviour.call_stream.open(id, Opening(reply)),
                None => drop(reply.send(Err(NoStream::NotConnected))),
            }
            return;
        };
        let (speaks, exchange) = match protocol {
            Protocol::Call if identified.speaks_call_stream => (true, &mut behaviour.call_stream),
            Protocol::Call => (identified.speaks_call, &mut behaviour.call),
            Protocol::Info => (identified.speaks_info, &mut behaviour.info),
            Protocol::Sync => (identified.speaks_sync[0], &mut behaviour.sync),
            Protocol::ShardSync => (identified.speaks_sync[1], &mut behaviour.shard_sync),
            Protocol::Records => (identified.speaks_records, &mut behaviour.agreement),
            Protocol::Reach => (identified.speaks_reach, &mut behaviour.reach),
        };
        if speaks {
            exchange.open(id, Opening(reply));
        } else {
            let _ = reply.send(Err(NoStream::Refused(NotStarted::Unsupported)));
        }
    }

    /// Connects to a record's node, unless it is connected, and replies once it is identified. Who is to be called need not
    /// be: its wallet, which the connection proves, has signed that it is of this network and takes calls.
    pub(super) fn connect(
        &mut self,
        record: &Verified<NodeRecord>,
        for_call: bool,
        reply: oneshot::Sender<Result<(), NotStarted>>,
    ) {
        let id = identity::peer_id(&record.public_key);
        let by_record = for_call && record.flags & FLAG_CALL_STREAMS != 0;
        if self.peers.is_identified(&id) || by_record && self.peers.call_by_record(&id) {
            let _ = reply.send(Ok(()));
            return;
        }
        self.peers.wait(id, Waiter { reply, by_record });
        if let Err(error) = self.dial_known(id, Some(record)) {
            self.give_up(id, &error);
        }
    }

    /// Dials a peer where it was met or says it is, best history first, and is not being dialled yet.
    pub(super) fn dial_known(
        &mut self,
        id: PeerId,
        record: Option<&Verified<NodeRecord>>,
    ) -> Result<(), DialError> {
        let announced = record.map_or_else(Vec::new, |r| addresses::of_record(r, self.parts.allow_private));
        let nearby = self.nearby.get(&id).into_iter().flatten().cloned();
        let (circuits, announced): (Vec<Multiaddr>, Vec<_>) =
            nearby.chain(announced).partition(circuit::is_circuit);
        let mut known = self.parts.book.lock().best_first(&id, &announced);
        known.truncate(DIALLED_ADDRESSES_MAX);
        // Beside where it was met: it may have moved behind a router since.
        known.extend(circuits.into_iter().take(DIALLED_CIRCUITS_MAX));
        let known = self.dials.untried(&id, known);
        if known.is_empty() && self.dials.is_dialled(&id) {
            return Ok(());
        }
        let options =
            DialOpts::peer_id(id).condition(PeerCondition::Disconnected).addresses(known.clone()).build();
        let connection = options.connection_id();
        self.parts.swarm.behaviour_mut().keep.wants(connection);
        match self.parts.swarm.dial(options) {
            Ok(()) => self.dials.began(connection, id, known),
            // It is connected, and about to be identified.
            Err(DialError::DialPeerConditionFalse(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(super) fn dial_bootstrap(&mut self, now: Instant) {
        loop {
            let swarm = &self.parts.swarm;
            let Some(address) = self.parts.bootstrap.due(now, |peer| swarm.is_connected(peer)) else {
                return;
            };
            // The library does not dial where it listens, and would say only that there is nothing to dial.
            if swarm.listeners().any(|own| *own == addresses::without_peer(&address)) {
                self.parts.bootstrap.is_own(&address);
                continue;
            }
            let options = match addresses::peer(&address) {
                Some(peer) => {
                    DialOpts::peer_id(peer).addresses(vec![addresses::without_peer(&address)]).build()
                }
                None => DialOpts::unknown_peer_id().address(address.clone()).build(),
            };
            let connection = options.connection_id();
            self.parts.bootstrap.dialing(&address, connection);
            self.parts.swarm.behaviour_mut().keep.wants(connection);
            if let Err(error) = self.parts.swarm.dial(options) {
                self.on_dial_failed(connection, None, &error);
            }
        }
    }

    pub(super) fn on_connected(&mut self, id: PeerId, connection: ConnectionId, endpoint: &ConnectedPoint) {
        if self.is_dial_back(&id, endpoint) {
            self.parts.swarm.close_connection(connection);
            return;
        }
        Counters::add(&self.parts.counters.connections_opened);
        self.dials.ended(connection);
        self.parts.bootstrap.connected(connection, id);
        let is_wanted = self.parts.swarm.behaviour().keep.was_wanted(connection);
        let led = self.parts.swarm.behaviour().identify.led();
        let reached = led.reached(&id, circuit::way(endpoint));
        self.peers.connected(id, connection, endpoint, reached, is_wanted);
        self.ask_now(id);
        for surplus in self.peers.surplus(&id, self.parts.connections_per_peer_max) {
            // An error would mean that it has gone already.
            let _ = self.parts.swarm.close_connection(surplus);
        }
    }

    pub(super) fn on_closed(&mut self, id: PeerId, connection: ConnectionId, remaining: u32, reason: &str) {
        tracing::debug!(peer = ?self.peers.address_of(&id), reason, "a connection closed");
        self.forget_view_of(&id, remaining);
        self.peers.closed(id, connection, reason);
        if remaining == 0 {
            self.parts.bootstrap.lost(&id, Instant::now());
            self.drive(Input::Disconnected(directory::place(&id)));
        }
    }

    pub(super) fn on_dial_failed(&mut self, connection: ConnectionId, id: Option<PeerId>, error: &DialError) {
        Counters::add(&self.parts.counters.dials_failed);
        if matches!(error, DialError::LocalPeerId { .. }) {
            self.twin.dialled_own_key(Instant::now());
        }
        self.note_failure(id, error);
        self.dials.ended(connection);
        if let Some(id) = id {
            self.on_question_not_asked(id, connection, error);
        }
        self.parts.bootstrap.failed(connection, id, error, Instant::now());
        if let Some(id) = id.filter(|id| self.peers.is_identified(id)) {
            self.parts.bootstrap.confirmed(&id);
        }
        tracing::debug!(peer = ?id.as_ref().and_then(identity::wallet), error = %brief(error), "a dial failed");
        if let Some(id) = id
            && !self.parts.swarm.is_connected(&id)
            && !self.dials.is_dialled(&id)
        {
            self.give_up(id, error);
        }
    }

    fn give_up(&mut self, id: PeerId, error: &DialError) {
        if is_own_limit(error) {
            self.peers.give_up(id, &NotStarted::LocalLimit);
        } else if let Some(peer) = identity::wallet(&id) {
            self.peers.give_up(id, &NotStarted::Unreachable { peer, reason: brief(error) });
        }
    }

    pub(super) fn on_identify(&mut self, event: identify::Event) {
        match event {
            identify::Event::Received { connection_id, peer_id, info } => {
                self.on_identified(peer_id, connection_id, &info);
            }
            identify::Event::Error { peer_id, error, .. } => {
                tracing::debug!(peer = ?self.peers.address_of(&peer_id), %error, "a peer was not identified");
                if !self.peers.is_identified(&peer_id) {
                    if matches!(error, StreamUpgradeError::NegotiationFailed) {
                        self.parts.bootstrap.is_foreign(&peer_id, None);
                    }
                    self.turn_away(peer_id, &NotStarted::Unsupported);
                }
            }
            identify::Event::Sent { .. } | identify::Event::Pushed { .. } => {}
        }
    }

    fn on_identified(&mut self, id: PeerId, connection: ConnectionId, info: &identify::Info) {
        if info.protocol_version != self.parts.network.identify_version() {
            Counters::add(&self.parts.counters.peers_of_other_networks);
            let network = NetworkName::of_identify_version(&info.protocol_version);
            self.parts.bootstrap.is_foreign(&id, network.as_ref().map(NetworkName::as_str));
            return self.turn_away(id, &NotStarted::OtherNetwork);
        }
        if !self.peers.listens_to(&id, connection, Instant::now()) {
            return;
        }
        let speaks = |name: String| info.protocols.iter().any(|protocol| protocol.as_ref() == name);
        let network = &self.parts.network;
        let in_directory = speaks(network.kad_protocol());
        let is_relayed = self.peers.is_relayed(&id, connection);
        let identified = PeerFacts {
            agent: info.agent_version.clone(),
            speaks_call: speaks(network.call_protocol()),
            speaks_call_stream: speaks(network.call_stream_protocol()),
            speaks_info: speaks(network.info_protocol()),
            speaks_sync: [network.sync_protocol(), network.shard_sync_protocol()].map(speaks),
            speaks_records: speaks(network.agreement_protocol()),
            speaks_reach: speaks(network.reach_protocol()),
            // Through a relay nobody offers to be one.
            relays: info.protocols.contains(&relay::HOP_PROTOCOL_NAME)
                || is_relayed && self.peers.offers_places(&id),
        };
        // Through a relay a peer sees the relay.
        if is_relayed {
            self.connect_back(id, connection, &info.listen_addrs);
        } else {
            self.take_view_of(id, &info.observed_addr);
            if self.peers.heeds(&id, connection) {
                self.observe(&info.observed_addr);
                self.expect_punches_at(id, connection, &info.observed_addr);
            }
        }
        if in_directory {
            self.learn_addresses(id, &info.listen_addrs);
        }
        self.parts.bootstrap.confirmed(&id);
        self.dial_scheduler.met(&id);
        self.note_meeting(id);
        if self.peers.identified(id, identified) {
            self.greet(id);
        }
    }

    fn turn_away(&mut self, id: PeerId, why: &NotStarted) {
        self.peers.give_up(id, why);
        // An error would mean that it has gone already.
        let _ = self.parts.swarm.disconnect_peer_id(id);
    }

    /// Tells the directory of a peer, with the address it was reached at and those it listens on. A peer's loopback
    /// addresses mean something only to a peer on the same machine.
    fn learn_addresses(&mut self, id: PeerId, listening: &[Multiaddr]) {
        let is_loopback = |address: &Multiaddr| addresses::ip(address).is_some_and(|ip| ip.is_loopback());
        let local = self.peers.remote_of(&id).is_some_and(is_loopback);
        let usable = listening
            .iter()
            .filter(|address| addresses::is_dialable(address, self.parts.allow_private))
            .filter(|address| local || !is_loopback(address))
            .take(LEARNED_ADDRESSES_MAX);
        let (now_secs, mut current) = (crate::now_secs(), Vec::new());
        for address in usable {
            self.parts.book.lock().listens(id, address, now_secs);
            current.push(addresses::without_peer(address));
        }
        if current.is_empty() {
            return;
        }
        let reached = self.peers.reached_at(&id);
        if let Some(reached) = reached.filter(|at| addresses::is_dialable(at, self.parts.allow_private)) {
            current.insert(0, reached);
        }
        if let Some(contact) = directory::contact(&id, &current) {
            self.drive(Input::Connected(contact));
        }
    }

    /// Notes how a peer sees this node, to show. The map forgets the rarest when it is full.
    fn observe(&mut self, address: &Multiaddr) {
        *self.observed.entry(addresses::without_peer(address)).or_default() += 1;
        if self.observed.len() > OBSERVED_MAX
            && let Some(rarest) =
                self.observed.iter().min_by_key(|(_, count)| **count).map(|(a, _)| a.clone())
        {
            self.observed.remove(&rarest);
        }
    }

    /// Gives a new peer our record: if its place in the directory is among those that keep it, it has it by that, and
    /// the others need not be told again. A newcomer also asks for some it knows, to find its way at once, and
    /// tells the directory of itself, which it may have missed while it was alone.
    fn greet(&mut self, id: PeerId) {
        let Some(peer) = self.peers.address_of(&id) else { return };
        let own = self.parts.publisher.record().map(|record| InfoRequest::Push(vec![record.to_signed()]));
        let is_newcomer = DialScheduler::wanted(&self.peers.networks()) > 0;
        if is_newcomer {
            self.parts.publisher.put_soon(Instant::now());
        }
        let questions = own.into_iter().chain(is_newcomer.then_some(InfoRequest::Peers));
        questions.for_each(|question| self.ask_for_records(peer, question));
    }

    /// Asks a connected peer, and takes the records it answers with.
    pub(super) fn ask_for_records(&mut self, peer: Address, question: InfoRequest) {
        let (sender, stream) = oneshot::channel();
        self.open(peer, Protocol::Info, sender);
        let (records, network) = (self.parts.records.clone(), self.parts.network.clone());
        let counters = std::sync::Arc::clone(&self.parts.counters);
        let budget = self.parts.budget.clone();
        let source = (peer, self.peers.id_of(peer).and_then(|id| self.peers.range_of(&id)));
        tokio::spawn(async move {
            let Ok(Ok(stream)) = stream.await else { return };
            let answer =
                tokio::time::timeout(INFO_DEADLINE, info::exchange(stream, &question, &budget)).await;
            let answer = match (answer, &question) {
                (Ok(Ok(InfoResponse::Records(answer))), _) => answer,
                // Our own record went first, or alone.
                (Ok(Ok(InfoResponse::Done)), InfoRequest::Push(_)) => {
                    return records.lock().clocks.took(peer);
                }
                (
                    Ok(Ok(InfoResponse::Refused { ahead_secs: Some(ahead_secs), .. })),
                    InfoRequest::Push(_),
                ) => {
                    return records.lock().clocks.refused(peer, ahead_secs);
                }
                _ => return,
            };
            for record in answer.into_iter().take(farthing_protocol::limits::INFO_ITEMS_MAX) {
                // Counted where it happens; one bad record does not spoil the others.
                let _ = info::take_record(&records, &network, &counters, record, source);
            }
        });
    }

    /// A first failed ping is silent (libp2p-ping's handler), so one that is told of is the second in a row: the
    /// line is dead, and has been for at most 50 s.
    pub(super) fn on_ping(&mut self, event: &ping::Event) {
        match event.result {
            Ok(rtt) => self.peers.pinged(event.peer, rtt),
            Err(ping::Failure::Unsupported) => {}
            Err(_) => drop(self.parts.swarm.close_connection(event.connection)),
        }
    }
}

/// A dial's failure in a line: libp2p lists every address with its error, over several lines.
fn brief(error: &DialError) -> String {
    match error {
        DialError::NoAddresses => "its record has no address that can be dialled".to_owned(),
        DialError::Transport(errors) => {
            let tried = errors
                .iter()
                .map(|(address, error)| format!("{address} {}", BootstrapState::of_address(address, error)));
            tried.collect::<Vec<_>>().join("; ")
        }
        DialError::Denied { cause } => innermost(cause),
        DialError::LocalPeerId { .. } => {
            "this is your own node; test your own service with `farthing api test`".to_owned()
        }
        DialError::WrongPeerId { address, .. } => format!("another node answers at {address}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use libp2p::TransportError;

    use super::*;

    #[test]
    fn why_a_dial_failed_is_told_in_one_kind_of_words() {
        let of = |address: &str, error: io::Error| (address.parse().unwrap(), TransportError::Other(error));
        let failed = DialError::Transport(vec![
            of("/ip4/9.9.9.9/tcp/1", io::Error::other("Timeout has been reached")),
            of("/ip4/9.9.9.9/udp/1/quic-v1", io::Error::other("Handshake with the remote timed out.")),
            of("/ip4/9.9.9.9/tcp/2", io::ErrorKind::ConnectionRefused.into()),
        ]);
        assert_eq!(
            brief(&failed),
            "/ip4/9.9.9.9/tcp/1 does not answer; /ip4/9.9.9.9/udp/1/quic-v1 does not answer; \
             /ip4/9.9.9.9/tcp/2 refuses the connection"
        );
        let own = DialError::LocalPeerId { address: Multiaddr::empty() };
        assert_eq!(brief(&own), "this is your own node; test your own service with `farthing api test`");
    }
}
