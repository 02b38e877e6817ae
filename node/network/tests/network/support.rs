//! Nodes for tests: loopback only, port 0, a key from a number; and waiting for conditions.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use bytes::Bytes;
use farthing_network::{
    Inbound, InboundCall, InboundInfo, InboundListing, InboundSync, Network, NetworkConfig, NetworkHandle,
};
use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, CallRequest, CallResponse, ChannelId, Listing, NodeRecord,
    Outcome, Receipt, SecretKey, ServiceId, ServiceNonce, Signature, Signed, Usdc,
    call::{CallStatus, Method, Payment},
    wire::NetworkName,
};
use tokio::sync::mpsc;

/// No condition takes this long; a test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);
pub(crate) const TCP: &str = "/ip4/127.0.0.1/tcp/0";
pub(crate) const QUIC: &str = "/ip4/127.0.0.1/udp/0/quic-v1";

pub(crate) fn network() -> NetworkName {
    NetworkName::new("local-test").unwrap()
}

/// A key that no other node of this process has.
pub(crate) fn new_key() -> SecretKey {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let mut bytes = [0x42; 32];
    bytes[..4].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    SecretKey::from_bytes(&bytes).unwrap()
}

pub(crate) fn config() -> NetworkConfig {
    NetworkConfig {
        listen: vec![TCP.to_owned()],
        allow_private: true,
        ..NetworkConfig::new(new_key(), network())
    }
}

/// A running node and what it was started with.
pub(crate) struct Node {
    pub(crate) handle: NetworkHandle,
    pub(crate) address: Address,
    pub(crate) calls: mpsc::Receiver<InboundCall>,
    pub(crate) info: mpsc::Receiver<InboundInfo>,
    pub(crate) syncs: mpsc::Receiver<InboundSync>,
    pub(crate) listings: mpsc::Receiver<InboundListing>,
}

impl Node {
    pub(crate) async fn start(config: NetworkConfig) -> Self {
        let (handle, Inbound { calls, info, syncs, listings }) = Network::start(config).await.unwrap();
        Self { address: handle.own_address(), handle, calls, info, syncs, listings }
    }

    /// A node that knows `others`.
    pub(crate) async fn joining(others: &[&Self]) -> Self {
        let bootstrap = others.iter().map(|other| other.listening()).collect();
        Self::start(NetworkConfig { bootstrap, ..config() }).await
    }

    /// A node that is connected to another.
    pub(crate) async fn joined(other: &Self) -> Self {
        let node = Self::joining(&[other]).await;
        node.connected_to(other.address).await;
        node
    }

    /// Two nodes, of which the second has joined the first.
    pub(crate) async fn pair() -> (Self, Self) {
        let first = Self::start(config()).await;
        let second = Self::joined(&first).await;
        (first, second)
    }

    /// The first address it listens on.
    pub(crate) fn listening(&self) -> String {
        self.handle.status().borrow().listening[0].clone()
    }

    pub(crate) async fn connected_to(&self, other: Address) {
        until("the peer is connected", async || self.handle.connected_peers().await.contains(&other)).await;
    }

    /// Answers every call with its own body.
    pub(crate) fn echo(self) -> NetworkHandle {
        let Self { handle, mut calls, .. } = self;
        tokio::spawn(async move {
            while let Some(call) = calls.recv().await {
                let reply = response(call.body.len());
                call.reply.send(reply, call.body);
            }
        });
        handle
    }
}

/// Waits for a condition, however long it takes within reason.
pub(crate) async fn until<F: Future<Output = bool>>(what: &str, condition: impl Fn() -> F) {
    let waiting = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "never: {what}");
}

pub(crate) fn request(body_bytes: usize) -> CallMessage {
    CallMessage::Call(CallRequest {
        call_id: CallId::from_bytes([1; 16]),
        service: ServiceId::from_bytes([2; 16]),
        listing_version: 1,
        method: Method::Post,
        path: "/echo".to_owned(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body_bytes: body_bytes as u64,
        price: Usdc::ZERO,
        deadline_ms: 20_000,
        payment: Payment::Free,
    })
}

pub(crate) fn response(body_bytes: usize) -> CallReply {
    let receipt = Receipt {
        channel: ChannelId::NONE,
        call_id: CallId::from_bytes([1; 16]),
        request_hash: [0; 32],
        response_hash: [0; 32],
        outcome: Outcome::Answered.code(),
        charged: Usdc::ZERO,
        spent_total: Usdc::ZERO,
        time_secs: 0,
    };
    CallReply::Response(CallResponse {
        call_id: CallId::from_bytes([1; 16]),
        status: 200,
        headers: BTreeMap::new(),
        body_bytes: body_bytes as u64,
        receipt,
        signature: Signature::from_bytes([0; 65]),
        outcome: Outcome::Answered,
        owner_us: 0,
        upstream_us: 0,
    })
}

/// A question without a body, and the shortest answer.
pub(crate) fn status_question() -> CallMessage {
    CallMessage::Status(CallId::from_bytes([9; 16]))
}

pub(crate) fn status_answer() -> CallReply {
    CallReply::Status(CallStatus::Unknown)
}

pub(crate) fn pattern(bytes: usize) -> Bytes {
    (0..bytes).map(|i| (i * 31 % 251).to_le_bytes()[0]).collect::<Vec<_>>().into()
}

/// A record as `key`'s node would publish it.
pub(crate) fn record(key: &SecretKey, seq: u64, addresses: &[&str]) -> NodeRecord {
    let now_secs = now_secs();
    NodeRecord {
        network: network().as_str().to_owned(),
        public_key: key.public_key(),
        net_key: None,
        seq,
        issued_secs: now_secs,
        expires_secs: now_secs + 3600,
        flags: 0,
        protocol_min: 1,
        protocol_max: 1,
        addresses: addresses
            .iter()
            .map(|text| text.parse::<libp2p::Multiaddr>().unwrap().to_vec().into())
            .collect(),
        listings_count: 0,
        listings_root: [0; 32],
        agent: "test".to_owned(),
    }
}

/// A listing as `key`'s node would publish it; different for every `n`.
pub(crate) fn listing(key: &SecretKey, n: u32) -> Listing {
    let mut nonce = [3; 16];
    nonce[..4].copy_from_slice(&n.to_be_bytes());
    let nonce = ServiceNonce::from_bytes(nonce);
    Listing {
        name: format!("Service {n}"),
        category: "test".to_owned(),
        operations_count: 1,
        details_bytes: 1,
        ..Listing::first(network().as_str(), key.address(), nonce, now_secs())
    }
}

pub(crate) fn signed_listing(key: &SecretKey, n: u32) -> Signed<Listing> {
    Signed::sign(&listing(key, n), key).unwrap()
}

pub(crate) fn now_secs() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

/// A port that nobody listens on and nobody else is given while the socket lives; a node may still bind it.
pub(crate) fn reserved_port() -> (tokio::net::TcpSocket, u16) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.set_reuseport(true).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}
