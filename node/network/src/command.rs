//! The commands that the rest of the crate gives to the task that owns the swarm, and what it answers.

use std::net::IpAddr;

use farthing_directory::wire::{Request, Response};
use farthing_protocol::{Address, Hash, NodeRecord, Verified, reach::ReachResponse};
use libp2p::{PeerId, swarm::ConnectionId};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Neighbour, NetworkError, NotStarted, PeerInfo, Reachability, agreement::Agreed, gossip::Subject,
    line::Line, publisher::Publication,
};

/// The protocol of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Call,
    Info,
    Sync,
    /// The same between nodes that know of shards.
    ShardSync,
    Records,
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
    /// A connection to the node of a record, identified as of this network; for a call, its record's word for that is enough.
    Connect {
        record: Box<Verified<NodeRecord>>,
        for_call: bool,
        reply: oneshot::Sender<Result<(), NotStarted>>,
    },
    /// The records of a wallet that the directory holds, each newer than the one before, and at the end who took part.
    Lookup {
        owner: Address,
        found: mpsc::Sender<Verified<NodeRecord>>,
        ended: oneshot::Sender<Turnout>,
    },
    /// A peer asks the directory; no reply is none.
    AskDirectory {
        peer: Address,
        request: Request,
        reply: oneshot::Sender<Response>,
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
    /// Connected peers, up to `count`: those whose place in the directory is closest to the wallet's first.
    Closest {
        owner: Address,
        count: usize,
        reply: oneshot::Sender<Vec<Address>>,
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
    /// A session about records is over, with what came of it if it did not end early.
    Agreed {
        agreed: Option<Agreed>,
    },
    /// Nothing comes over this connection any more.
    GiveUp {
        connection: ConnectionId,
    },
    Shutdown {
        reply: oneshot::Sender<()>,
    },
}

/// The number of those asked who have answered, and of those who have said nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turnout {
    pub(crate) answered: usize,
    pub(crate) silent: usize,
}

/// A connected peer, with the IPs of its connections.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) id: PeerId,
    pub(crate) ips: Vec<IpAddr>,
}
