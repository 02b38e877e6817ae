//! Reachability in the swarm's task: what the prober learns, whom it asks, and what becomes of its findings.

use std::{
    collections::HashSet,
    net::{IpAddr, UdpSocket},
    time::Instant,
};

use farthing_bounds::wait_secs;
use farthing_protocol::{Address, Hash, reach::ReachResponse};
use libp2p::{Multiaddr, PeerId, core::ConnectedPoint, identity::secp256k1, upnp};
use tokio::sync::oneshot;

use super::SwarmTask;
use crate::{
    Gateway, Reachability, Transport, addresses,
    command::{Command, NoStream, Protocol},
    reachability::{self, Ask},
};

/// Commands that wait for the end of one test; it takes seconds, so this is plenty.
const AWAITING_MAX: usize = 16;

impl SwarmTask {
    pub(super) fn probe_if_due(&mut self, now: Instant) {
        if self.parts.prober.end_if_decided(now, crate::now_secs()) {
            self.tell_of_test();
        } else if self.parts.prober.next_due().is_some_and(|due| due <= now) {
            self.probe(now);
        }
    }

    fn probe(&mut self, now: Instant) {
        let testers = self.peers.testers();
        let ips = testers.iter().flat_map(|tester| &tester.ips);
        let local_ip = ips.copied().find_map(interface_towards);
        self.parts.prober.set_local_ip(local_ip);
        let asks = self.parts.prober.begin(&testers, now, random);
        self.expect_dial_backs();
        self.status_is_stale = true;
        asks.into_iter().for_each(|ask| self.ask_to_dial_back(ask));
    }

    fn ask_to_dial_back(&mut self, Ask { peer, request }: Ask) {
        let (sender, stream) = oneshot::channel();
        self.open(peer, Protocol::Reach, sender);
        let (commands, deadline) = (self.parts.own_commands.clone(), self.parts.reach_deadline);
        tokio::spawn(async move {
            let answer = match stream.await {
                Ok(Ok(stream)) => reachability::exchange(stream, &request, deadline).await,
                Ok(Err(NoStream::Refused(why))) => Err(why.to_string()),
                Ok(Err(NoStream::NotConnected)) | Err(_) => Err("its connection was lost".to_owned()),
            };
            if let Some(commands) = commands.upgrade() {
                // An error means that the network has stopped, and nobody wants to know any more.
                let _ = commands.send(Command::DialledBack { peer, answer }).await;
            }
        });
    }

    pub(super) fn on_dialled_back(&mut self, peer: Address, answer: Result<ReachResponse, String>) {
        if self.parts.prober.answered(peer, answer, Instant::now(), crate::now_secs()) {
            self.tell_of_test();
        }
    }

    fn tell_of_test(&mut self) {
        self.status_is_stale = true;
        let report = self.reach_report();
        let (tcp, quic) = (report.state(Transport::Tcp), report.state(Transport::Quic));
        tracing::info!(?tcp, ?quic, peers = report.peers_asked, "tested whether others can connect");
        self.expect_dial_backs();
        self.publish_addresses();
        for waiter in self.awaiting_reach.drain(..) {
            let _ = waiter.send(report.clone());
        }
    }

    /// Notes a peer's dial-back, which has done its work by coming up; false if the new connection is none.
    pub(super) fn is_dial_back(&mut self, id: &PeerId, endpoint: &ConnectedPoint) -> bool {
        let ConnectedPoint::Listener { local_addr, send_back_addr } = endpoint else { return false };
        if self.came_through_relay(id, local_addr) {
            return true;
        }
        let peers = &self.peers;
        let ways = |peer| peers.remotes_of(peer);
        self.parts.prober.arrived(id, local_addr, send_back_addr, ways)
    }

    /// Dial-backs come in whoever else is connected, and so does this node itself through a relay.
    pub(super) fn expect_dial_backs(&mut self) {
        let own = self.parts.relays.expected();
        let expected: HashSet<PeerId> = self.parts.prober.expected().chain(own).collect();
        self.parts.swarm.behaviour_mut().gate.expect(expected);
    }

    pub(super) fn test_reachability(&mut self, reply: oneshot::Sender<Reachability>) {
        if !self.parts.prober.is_testing() {
            self.probe(Instant::now());
        }
        if self.parts.prober.is_testing() && self.awaiting_reach.len() < AWAITING_MAX {
            self.awaiting_reach.push(reply);
        } else {
            let _ = reply.send(self.latest());
        }
    }

    /// The last test, for somebody who asked for one when none could be made: peers dial back once a minute.
    fn latest(&self) -> Reachability {
        let wait = self.parts.prober.next_due().map(|due| due.saturating_duration_since(Instant::now()));
        Reachability { again_secs: wait.map(wait_secs), ..self.reach_report() }
    }

    /// The findings on addresses, and beside them the relays and who keeps the record. That nobody does is no news while
    /// nobody is connected.
    pub(super) fn reach_report(&self) -> Reachability {
        let is_alone = self.peers.identified_count() == 0;
        let record_holders = self.parts.publisher.holders().filter(|_| !is_alone);
        Reachability { relays: self.parts.relays.report(), record_holders, ..self.parts.prober.report() }
    }

    /// The addresses that the node listens on by itself, and not at a relay.
    pub(super) fn listening(&self) -> Vec<Multiaddr> {
        self.parts.swarm.listeners().cloned().collect()
    }

    /// Notes how a peer sees this node, which is worth as much as where it looks from.
    pub(super) fn take_view_of(&mut self, id: PeerId, own: &Multiaddr) {
        let observer = self.peers.remote_of(&id).and_then(addresses::ip);
        if let (Some(peer), Some(own), Some(observer)) =
            (self.peers.address_of(&id), addresses::ip(own), observer)
        {
            self.parts.prober.observed(peer, own, observer, Instant::now());
            self.publish_addresses();
        }
    }

    pub(super) fn forget_view_of(&mut self, id: &PeerId, remaining: u32) {
        if remaining == 0
            && let Some(peer) = self.peers.address_of(id)
        {
            self.parts.prober.forget(peer, Instant::now());
            self.publish_addresses();
        }
    }

    pub(super) fn on_portmap(&mut self, event: upnp::Event) {
        let prober = &mut self.parts.prober;
        match event {
            upnp::Event::NewExternalAddr { external_addr, .. } => {
                tracing::info!(address = %external_addr, "the router says that it forwards a port");
                prober.mapped(external_addr, Instant::now());
            }
            upnp::Event::ExpiredExternalAddr { external_addr, .. } => {
                tracing::info!(address = %external_addr, "the router no longer forwards a port");
                prober.unmapped(&external_addr, Instant::now());
            }
            upnp::Event::GatewayNotFound => prober.set_gateway(Gateway::Absent),
            upnp::Event::NonRoutableGateway => prober.set_gateway(Gateway::Private),
        }
        self.publish_addresses();
    }

    /// Carries what the prober believes into the swarm, whose external addresses decide the part in the directory and
    /// whether others are relayed, and into the node's record, together with the ways through relays.
    pub(super) fn publish_addresses(&mut self) {
        let believed = self.parts.prober.believed();
        let swarm = &mut self.parts.swarm;
        let stated: Vec<Multiaddr> = swarm.external_addresses().cloned().collect();
        for gone in stated.iter().filter(|address| !believed.contains(address)) {
            swarm.remove_external_address(gone);
        }
        for new in believed.iter().filter(|address| !stated.contains(address)) {
            swarm.add_external_address(new.clone());
        }
        // Who can be asked serves the directory.
        let serves = self.parts.allow_private || swarm.external_addresses().next().is_some();
        swarm.behaviour_mut().directory.serve(serves);
        let known = [believed, self.parts.relays.published()].concat();
        let published = addresses::to_publish(&known, &self.listening(), self.parts.allow_private);
        let untested = published.iter().filter(|address| !known.contains(address)).cloned().collect();
        self.parts.prober.set_untested(untested);
        self.parts.publisher.set_addresses(published, self.parts.prober.flags(), Instant::now());
    }
}

/// The address of the interface through which `ip` is reached: connecting a UDP socket asks the routing table
/// and sends nothing.
fn interface_towards(ip: IpAddr) -> Option<IpAddr> {
    /// Any port will do.
    const DISCARD_PORT: u16 = 9;
    let any: IpAddr = match ip {
        IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect((ip, DISCARD_PORT)).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

/// 32 bytes that nobody can guess; a fresh key has as many.
pub(super) fn random() -> Hash {
    secp256k1::SecretKey::generate().to_bytes()
}
