//! Relays in the swarm's task: places that are asked for, tests of them, and connections that take their turn.

use std::{
    io,
    time::{Duration, Instant},
};

use farthing_protocol::SecretKey;
use libp2p::{
    Multiaddr, PeerId,
    core::transport::ListenerId,
    dcutr, relay,
    swarm::{
        ConnectionId,
        dial_opts::{DialOpts, PeerCondition},
    },
};

use super::{SwarmTask, reachability::random};
use crate::{
    addresses, identity,
    relay::{RelayCandidate, connect_through},
    status::Counters,
};

/// From the beginning of a direct connection to the end of the one through a relay: what is under way there may end, and
/// both sides have seen the new one.
const OVERTAKEN_FOR: Duration = Duration::from_secs(5);
/// Addresses that are told to peers although one peer alone saw this node there: of two transports and families.
const SEEN_AT_MAX: usize = 4;
/// Addresses at which a peer is connected back to.
const CONNECTED_BACK_MAX: usize = 4;
/// One test of a relay.
const TEST_DEADLINE: Duration = Duration::from_secs(10);

impl SwarmTask {
    /// Keeps places at relays while this node sells and nobody can connect to it.
    pub(super) fn keep_relays(&mut self, now: Instant) {
        if !self.parts.uses_relays {
            return;
        }
        if !self.parts.publisher.accepts_calls() || !self.parts.prober.is_unreachable() {
            return self.leave_relays();
        }
        for (relay, listener) in self.parts.relays.drop_overdue(now) {
            tracing::info!(
                relay = %shown(&relay),
                "a relay did not accept this node in time, or did not work; asking another"
            );
            self.parts.swarm.remove_listener(listener);
            self.relays_changed();
        }
        let candidates = self.peers.relays();
        if let Some((relay, listener)) = self.parts.relays.leave_unproven(&candidates, now) {
            tracing::info!(relay = %shown(&relay), "no customer connected through a relay for hours; asking another");
            self.parts.swarm.remove_listener(listener);
            self.relays_changed();
        }
        if let Some(relay) = self.parts.relays.choose(candidates, &random(), now) {
            self.ask_for_place(relay, now);
        }
        for relay in self.parts.relays.to_test(now) {
            self.test_relay(&relay, now);
        }
    }

    fn leave_relays(&mut self) {
        let listeners = self.parts.relays.drop_all();
        if !listeners.is_empty() {
            for listener in listeners {
                self.parts.swarm.remove_listener(listener);
            }
            self.relays_changed();
        }
    }

    fn ask_for_place(&mut self, relay: RelayCandidate, now: Instant) {
        match self.parts.swarm.listen_on(relay.circuit()) {
            Ok(listener) => self.parts.relays.asked(relay, listener, now),
            Err(error) => {
                tracing::debug!(relay = %shown(&relay), %error, "a relay cannot be asked");
            }
        }
        self.status_is_stale = true;
    }

    /// Connects to this node itself, as a stranger would. Only what arrives counts.
    fn test_relay(&mut self, relay: &RelayCandidate, now: Instant) {
        let Ok(key) = SecretKey::from_bytes(&random()) else { return };
        self.parts.relays.tested(&relay.peer, identity::peer_id(&key.public_key()), now);
        self.expect_dial_backs();
        let (way, own) = (relay.circuit(), *self.parts.swarm.local_peer_id());
        let (network, relay) = (self.parts.network.clone(), shown(relay));
        tokio::spawn(async move {
            if let Err(error) = connect_through(way, own, &key, &network, TEST_DEADLINE).await {
                tracing::info!(%relay, error, "this node does not reach itself through a relay");
            }
        });
    }

    /// Notes that this node came to itself through a relay; false if somebody else came.
    pub(super) fn came_through_relay(&mut self, key: &PeerId, way: &Multiaddr) -> bool {
        let before = self.parts.relays.published().len();
        let now = Instant::now();
        if !self.parts.relays.arrived(key, way, now) {
            self.parts.relays.brought(key, way, now);
            return false;
        }
        if self.parts.relays.published().len() != before {
            tracing::info!(way = %addresses::without_peer(way), "callers reach this node through a relay");
            self.relays_changed();
        }
        self.expect_dial_backs();
        true
    }

    pub(super) fn on_relay(&mut self, event: &relay::client::Event) {
        if let relay::client::Event::ReservationReqAccepted { relay_peer_id, .. } = event {
            self.parts.relays.given(relay_peer_id, Instant::now());
        }
    }

    /// Notes the end of a place at a relay, which may be the relay's.
    pub(super) fn on_listener_closed(&mut self, listener: ListenerId, reason: io::Result<()>) {
        if let Some(relay) = self.parts.relays.ended(listener, Instant::now()) {
            let reason =
                reason.map_or_else(|error| error.to_string(), |()| "its connection ended".to_owned());
            tracing::info!(relay = %shown(&relay), reason, "a relay no longer works; asking another");
            self.relays_changed();
        }
    }

    fn relays_changed(&mut self) {
        self.publish_addresses();
        self.status_is_stale = true;
    }

    /// Tells the upgrade of relayed connections of an address that a router made of the port this node listens on. Where
    /// every peer sees another one, hardly any is of use.
    pub(super) fn expect_punches_at(&mut self, id: PeerId, connection: ConnectionId, own: &Multiaddr) {
        let own = addresses::without_peer(own);
        let is_usual = self.observed.len() <= SEEN_AT_MAX || self.observed.get(&own).is_some_and(|n| *n > 1);
        if is_usual
            && self.peers.is_dialled_directly(&id, connection)
            && addresses::is_dialable(&own, self.parts.allow_private)
        {
            self.parts.swarm.behaviour_mut().punch.seen_at(&own);
        }
    }

    /// Connects to a peer that came through a relay where it says that others reach it: then no router has to be got past.
    pub(super) fn connect_back(&mut self, id: PeerId, connection: ConnectionId, reached_at: &[Multiaddr]) {
        if !self.peers.came_relayed_alone(&id, connection) {
            return;
        }
        let usable = reached_at.iter().filter(|at| addresses::is_dialable(at, self.parts.allow_private));
        let usable: Vec<Multiaddr> = usable.map(addresses::without_peer).take(CONNECTED_BACK_MAX).collect();
        // It may name somebody else's, and name others again and again.
        if usable.is_empty() || !self.peers.heeds(&id, connection) {
            return;
        }
        let options = DialOpts::peer_id(id).condition(PeerCondition::Always).addresses(usable).build();
        if let Err(error) = self.parts.swarm.dial(options) {
            tracing::debug!(peer = ?identity::wallet(&id), %error, "a peer is not connected to directly");
        }
    }

    pub(super) fn on_punched(&mut self, event: &dcutr::Event) {
        let peer = identity::wallet(&event.remote_peer_id);
        match &event.result {
            Ok(_) => {
                tracing::debug!(?peer, "a peer is connected directly, no longer through a relay alone");
                Counters::add(&self.parts.counters.punched);
            }
            Err(error) => {
                tracing::debug!(?peer, %error, "a peer stays connected through a relay");
                Counters::add(&self.parts.counters.punches_failed);
            }
        }
    }

    /// Closes connections through relays beside which there is a direct one, once nothing is under way on them.
    pub(super) fn close_overtaken(&mut self, now: Instant) {
        for connection in self.peers.outdated(OVERTAKEN_FOR, now) {
            if !self.parts.usage.quiet_for(connection, now).is_zero() {
                // An error would mean that it has gone already.
                let _ = self.parts.swarm.close_connection(connection);
            }
        }
    }
}

/// A relay as it is told of: by its wallet.
fn shown(relay: &RelayCandidate) -> String {
    identity::wallet(&relay.peer).map_or_else(|| relay.peer.to_string(), |wallet| wallet.to_string())
}
