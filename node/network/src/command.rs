//! The commands that the rest of the crate gives to the task that owns the swarm, and what it answers.

use std::net::IpAddr;

use farthing_protocol::{Address, Hash, NodeRecord, Verified, reach::ReachResponse};
use libp2p::{PeerId, swarm::ConnectionId};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Neighbour, NetworkError, NotStarted, PeerInfo, Reachability, gossip::Subject, line::Line,
    publisher::Publication,
};

/// The protocol of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Call,
    Info,
    Sync,
    Reach,
}

/// The reason that there is no stream. In every case nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoStream {
    NotConnected,
    Refused(NotStarted),
}

/// A request of a handle to the task.
#[derive(Debug)]
pub(crate) enum Command {
    /// A stream to a connected peer.
    Open {
        owner: Address,
        protocol: Protocol,
        reply: oneshot::Sender<Result<Line, NoStream>>,
    },
    /// A connection to the node of a record, identified as of this network.
    Connect {
        record: Box<Verified<NodeRecord>>,
        reply: oneshot::Sender<Result<(), NotStarted>>,
    },
    /// The values that the directory holds under a wallet's key, as they come in.
    Lookup {
        owner: Address,
        found: mpsc::Sender<Vec<u8>>,
    },
    Publish {
        publication: Publication,
        reply: oneshot::Sender<Result<u64, NetworkError>>,
    },
    /// Tell neighbours; the reply says whether there were any.
    Gossip {
        subject: Subject,
        content: Vec<u8>,
        reply: oneshot::Sender<bool>,
    },
    Peers {
        reply: oneshot::Sender<Vec<PeerInfo>>,
    },
    Neighbours {
        reply: oneshot::Sender<Vec<Neighbour>>,
    },
    /// The identity of a connected peer, and the IPs of its connections.
    Asker {
        peer: Address,
        reply: oneshot::Sender<Option<Asker>>,
    },
    /// Peers that could dial on behalf of one that has written to nobody at their IPs: up to `count`, in random order.
    Strangers {
        not_at: Vec<IpAddr>,
        salt: Hash,
        count: usize,
        reply: oneshot::Sender<Vec<Address>>,
    },
    /// The answer of a peer that was asked to dial back.
    DialledBack {
        peer: Address,
        answer: Result<ReachResponse, String>,
    },
    /// Test now whether this node can be reached.
    TestReachability {
        reply: oneshot::Sender<Reachability>,
    },
    /// Look now whether somebody else publishes under this wallet; the reply says whether one is suspected.
    LookForTwin {
        reply: oneshot::Sender<bool>,
    },
    /// Nothing comes over this connection any more.
    GiveUp {
        connection: ConnectionId,
    },
    Shutdown {
        reply: oneshot::Sender<()>,
    },
}

/// A connected peer, with the IPs of its connections.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) id: PeerId,
    pub(crate) ips: Vec<IpAddr>,
}
