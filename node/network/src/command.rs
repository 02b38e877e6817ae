//! The commands that the rest of the crate gives to the task that owns the swarm, and what it answers.

use std::net::IpAddr;

use farthing_protocol::{Address, Hash, NodeRecord, Verified, reach::ReachResponse};
use libp2p::{PeerId, swarm::ConnectionId};
use tokio::sync::{mpsc, oneshot};

use crate::{
    Neighbour, NetworkError, NotStarted, PeerInfo, Reachability, gossip::Subject, line::Line,
    publisher::Publication,
};

/// Which protocol a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Call,
    Info,
    Sync,
    Reach,
}

/// Why there is no stream. In every case nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoStream {
    NotConnected,
    Refused(NotStarted),
}

/// What handles ask of the task.
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
    /// Where a connected peer comes from.
    Asker {
        peer: Address,
        reply: oneshot::Sender<Option<Asker>>,
    },
    /// Who could dial on behalf of a peer that has written to nobody at their IPs: up to so many, in random order.
    Strangers {
        not_at: Vec<IpAddr>,
        salt: Hash,
        count: usize,
        reply: oneshot::Sender<Vec<Address>>,
    },
    /// What a peer that was asked to dial back says.
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

/// Who a connected peer is, and where its connections come from.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) id: PeerId,
    pub(crate) ips: Vec<IpAddr>,
}
