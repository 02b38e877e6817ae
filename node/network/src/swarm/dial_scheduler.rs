//! Keeping enough connections in the swarm's task: who is known, who is dialled next, and what came of it.

use std::time::Instant;

use libp2p::{Multiaddr, PeerId, mdns, swarm::DialError};

use super::{SwarmTask, dials::is_own_limit};
use crate::{
    addresses::{self, circuit},
    dial_scheduler::{DialCandidate, DialScheduler},
    identity,
};

/// Records looked at for somebody to dial, others each time: a full store would take a moment to read.
const RECORDS_LOOKED_AT: usize = 256;
/// Nodes of the local network that are remembered, with so many addresses each.
const NEARBY_MAX: usize = 64;
const NEARBY_ADDRESSES_MAX: usize = 6;

impl SwarmTask {
    /// Dials somebody known while there are too few connections.
    pub(super) fn keep_company(&mut self, now: Instant) {
        let connected = self.peers.networks();
        for _ in 0..DialScheduler::wanted(&connected) {
            let candidates = self.candidates().into_iter();
            let Some(peer) = self.dial_scheduler.choose(&connected, candidates, now) else { return };
            let record = identity::wallet(&peer).and_then(|wallet| self.parts.records.get_alive(wallet));
            if let Err(error) = self.dial_known(peer, record.as_ref()) {
                tracing::trace!(%peer, %error, "not dialled");
                if is_own_limit(&error) {
                    return;
                }
            }
            self.dial_scheduler.tried(peer, now);
        }
    }

    /// Everybody who could be dialled: the peers of the book, those nearby, and some of those with a record.
    fn candidates(&self) -> Vec<DialCandidate> {
        let stranger = |peer: PeerId, address: &Multiaddr| DialCandidate {
            peer,
            network: addresses::public_network(address),
            failures: 0,
            successes: 0,
        };
        let book = self.parts.book.lock();
        let met = book.peers().map(|(peer, best)| DialCandidate {
            failures: best.failures,
            successes: best.successes,
            ..stranger(*peer, &best.address)
        });
        let nearby = self.nearby.iter().filter_map(|(peer, all)| Some(stranger(*peer, all.first()?)));
        let records = self.parts.records.lock();
        let turns = records.len().div_ceil(RECORDS_LOOKED_AT);
        let turn = self.ticks.checked_rem(turns).unwrap_or(0) * RECORDS_LOOKED_AT;
        let announced = records.part_alive(turn, RECORDS_LOOKED_AT, crate::now_secs());
        let announced = announced.filter(|record| record.signer() != self.parts.own).filter_map(|record| {
            // Whom a relay leads to is no company.
            let all = addresses::of_record(&record, self.parts.allow_private);
            let address = all.into_iter().find(|address| !circuit::is_circuit(address))?;
            Some(stranger(identity::peer_id(&record.public_key), &address))
        });
        met.chain(nearby)
            .chain(announced)
            .filter(|candidate| !self.parts.swarm.is_connected(&candidate.peer))
            .collect()
    }

    /// Writes down where a peer was reached.
    pub(super) fn note_meeting(&mut self, id: PeerId) {
        let now_secs = crate::now_secs();
        for address in self.peers.dialled(&id) {
            self.parts.book.lock().reached(id, &address, now_secs);
        }
    }

    /// Writes down where a peer was not reached.
    pub(super) fn note_failure(&mut self, id: Option<PeerId>, error: &DialError) {
        let Some(id) = id else { return };
        let mut book = self.parts.book.lock();
        match error {
            DialError::Transport(errors) => {
                errors.iter().for_each(|(address, _)| book.failed(id, address));
            }
            DialError::WrongPeerId { address, .. } => book.failed(id, address),
            _ => {}
        }
    }

    /// Remembers nodes of the local network. Whether they are of ours shows when they are dialled.
    pub(super) fn on_nearby(&mut self, event: mdns::Event) {
        match event {
            mdns::Event::Discovered(found) => {
                for (peer, address) in found {
                    let is_new = !self.nearby.contains_key(&peer);
                    if is_new && self.nearby.len() >= NEARBY_MAX || !addresses::is_dialable(&address, true) {
                        continue;
                    }
                    let all = self.nearby.entry(peer).or_default();
                    let address = addresses::without_peer(&address);
                    if all.len() < NEARBY_ADDRESSES_MAX && !all.contains(&address) {
                        all.push(address);
                    }
                }
            }
            mdns::Event::Expired(gone) => {
                for (peer, address) in gone {
                    let Some(all) = self.nearby.get_mut(&peer) else { continue };
                    let address = addresses::without_peer(&address);
                    all.retain(|known| *known != address);
                    if all.is_empty() {
                        self.nearby.remove(&peer);
                    }
                }
            }
        }
        self.parts.vouched.set_nearby(self.nearby.values().flatten().cloned().collect());
    }
}
