//! A start without being told of anybody: the public IPFS DHT, which thousands of hosts run, as the place where nodes of a
//! network find each other.
//!
//! In the order things happen:
//! 1. `agenda` decides, without touching anything, when to go there, and what for.
//! 2. A `visit` opens a second swarm as a `client` of the DHT, enters through the addresses of the setting, and has this node
//!    listed under the network's `key`, or asks who is. Then the swarm is closed.
//! 3. Of those who are named there, `choice` takes a few, and the node's own swarm dials them as it dials configured peers.
//!    Who they are shows in its handshake.
//!
//! An entry is a peer id with addresses, and the DHT's nodes keep only what the named peer brings itself. So a node is listed
//! under its own key: under any other, those who dial its addresses would meet somebody else there than the entry says. Who
//! asks needs no name, and asks under a key that is thrown away.
//!
//! Architecture invariant: the DHT's peers, streams and routing stay in the second swarm, which ends with its visit. Nothing
//! that is said there is believed but that somebody may be dialled, once, and within bounds.

mod agenda;
mod choice;
mod client;
mod glimpses;
mod key;
mod visit;

use std::net::IpAddr;

use farthing_protocol::{Address, wire::NetworkName};
use libp2p::{Multiaddr, identity::Keypair, kad::RecordKey};

use self::visit::RendezvousAnswers;
pub(crate) use self::{
    agenda::{Agenda, COMPANY_ENOUGH, Circumstances},
    choice::RendezvousNode,
};
use crate::{RendezvousEnd, status::Counters};

/// The purpose of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Ask who is listed. The round changes the lot by which some of them are chosen.
    Ask { round: u32 },
    /// Have this node listed with these addresses.
    List { addresses: Vec<Multiaddr> },
}

impl Errand {
    /// The outcome of a visit that failed without saying why.
    pub(crate) fn without_end(&self) -> ErrandOutcome {
        let end = RendezvousEnd::NoAnswer;
        match self {
            Self::Ask { .. } => ErrandOutcome::Asked { end, introduced: Vec::new(), seen: Vec::new() },
            Self::List { .. } => ErrandOutcome::Listed { end },
        }
    }
}

/// The product of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ErrandOutcome {
    Asked {
        end: RendezvousEnd,
        /// Those to be dialled.
        introduced: Vec<RendezvousNode>,
        /// The public addresses under which nodes of the DHT in distinct networks see this one.
        seen: Vec<IpAddr>,
    },
    Listed {
        end: RendezvousEnd,
    },
}

impl ErrandOutcome {
    /// Counts the visit, and those that are to be dialled.
    pub(crate) fn count(&self, counters: &Counters) {
        Counters::add(match self {
            Self::Asked { end, .. } => match end {
                RendezvousEnd::Found { nodes: 0 } => &counters.rendezvous_nobody,
                RendezvousEnd::Found { .. } => &counters.rendezvous_found,
                RendezvousEnd::NoEntrance { .. } => &counters.rendezvous_ask_no_entrance,
                RendezvousEnd::NoAnswer | RendezvousEnd::Listed => &counters.rendezvous_ask_no_answer,
            },
            Self::Listed { end } => match end {
                RendezvousEnd::Listed => &counters.rendezvous_listed,
                RendezvousEnd::NoEntrance { .. } => &counters.rendezvous_list_no_entrance,
                RendezvousEnd::NoAnswer | RendezvousEnd::Found { .. } => &counters.rendezvous_list_no_answer,
            },
        });
        if let Self::Asked { introduced, .. } = self {
            Counters::add_many(&counters.rendezvous_nodes, introduced.len());
        }
    }
}

/// The way into the DHT, and what this node is there. Cheap to clone beside a visit.
#[derive(Clone)]
pub(crate) struct Rendezvous {
    entrance: Vec<Multiaddr>,
    key: RecordKey,
    /// The node's own.
    keypair: Keypair,
    own: Address,
    allow_private: bool,
}

impl Rendezvous {
    pub(crate) fn new(
        entrance: Vec<Multiaddr>,
        network: &NetworkName,
        keypair: Keypair,
        own: Address,
        allow_private: bool,
    ) -> Self {
        Self { entrance, key: key::of(network), keypair, own, allow_private }
    }

    /// Goes there once. Takes minutes at most, and always ends.
    pub(crate) async fn visit(self, errand: Errand) -> ErrandOutcome {
        match errand {
            Errand::List { addresses } => ErrandOutcome::Listed { end: visit::list(&self, addresses).await },
            Errand::Ask { round } => match visit::ask(&self).await {
                Ok(RendezvousAnswers { named, seen }) => {
                    let introduced = choice::chosen(named, self.own, round, self.allow_private);
                    let end = RendezvousEnd::Found { nodes: introduced.len() };
                    ErrandOutcome::Asked { end, introduced, seen }
                }
                Err(end) => ErrandOutcome::Asked { end, introduced: Vec::new(), seen: Vec::new() },
            },
        }
    }
}
