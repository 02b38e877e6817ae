//! A peer that speaks libp2p but not our rules: it sends whatever bytes a test wants.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use farthing_protocol::SecretKey;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::{
    Multiaddr, StreamProtocol, Swarm, SwarmBuilder, identify,
    identity::{Keypair, secp256k1},
    noise,
    request_response::{self, ProtocolSupport},
    swarm::NetworkBehaviour,
    tcp, yamux,
};

use tokio::sync::Notify;

use crate::support::network;

/// Sends raw bytes and collects what comes back until the stream ends.
#[derive(Clone, Default)]
pub(crate) struct RawCodec {
    /// What to answer a request with, whatever it says.
    pub(crate) answer: Vec<u8>,
}

/// Bytes to send. The sending side then ends, or stays silent until it is told to end, and reads nothing before.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    pub(crate) bytes: Vec<u8>,
    pub(crate) silent_until: Option<Arc<Notify>>,
    /// One byte at a time, with this pause after each.
    pub(crate) pause: Option<Duration>,
    /// Counts those that have begun.
    pub(crate) begun: Arc<AtomicUsize>,
}

impl From<Vec<u8>> for Sent {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, ..Self::default() }
    }
}

/// A head with its length before it, as a stream of `call/1` begins.
pub(crate) fn frame(head: &[u8]) -> Vec<u8> {
    [&u32::try_from(head.len()).unwrap().to_be_bytes()[..], head].concat()
}

impl request_response::Codec for RawCodec {
    type Protocol = StreamProtocol;
    type Request = Sent;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Sent>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut length = [0; 4];
        io.read_exact(&mut length).await?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        io.read_exact(&mut bytes).await?;
        Ok(bytes.into())
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut bytes = Vec::new();
        io.take(1 << 20).read_to_end(&mut bytes).await?;
        Ok(bytes)
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, sent: Sent) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        let at_once = if sent.pause.is_some() { 1 } else { sent.bytes.len().max(1) };
        for piece in sent.bytes.chunks(at_once) {
            io.write_all(piece).await?;
            io.flush().await?;
            sent.begun.fetch_add(usize::from(piece.as_ptr() == sent.bytes.as_ptr()), Ordering::Relaxed);
            tokio::time::sleep(sent.pause.unwrap_or_default()).await;
        }
        if let Some(end) = sent.silent_until {
            end.notified().await;
        }
        Ok(())
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, io: &mut T, _: Vec<u8>) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&self.answer).await
    }
}

#[derive(NetworkBehaviour)]
pub(crate) struct RawBehaviour {
    pub(crate) identify: identify::Behaviour,
    pub(crate) call: request_response::Behaviour<RawCodec>,
    pub(crate) info: request_response::Behaviour<RawCodec>,
    pub(crate) sync: request_response::Behaviour<RawCodec>,
    pub(crate) reach: request_response::Behaviour<RawCodec>,
}

pub(crate) fn wallet_keypair(key: &SecretKey) -> Keypair {
    let secret = secp256k1::SecretKey::try_from_bytes(key.to_bytes()).unwrap();
    secp256k1::Keypair::from(secret).into()
}

/// A peer with this key, of the network that `identify_version` names, that answers calls with `answer`.
pub(crate) fn raw_peer(keypair: Keypair, identify_version: String, answer: &[u8]) -> Swarm<RawBehaviour> {
    raw_peer_that_calls(network().call_protocol(), keypair, identify_version, answer)
}

/// The same on another protocol for calls.
pub(crate) fn raw_peer_that_calls(
    call_protocol: String,
    keypair: Keypair,
    identify_version: String,
    answer: &[u8],
) -> Swarm<RawBehaviour> {
    let exchange = |name: String| {
        let protocol = StreamProtocol::try_from_owned(name).unwrap();
        let config = request_response::Config::default().with_request_timeout(Duration::from_secs(60));
        let codec = RawCodec { answer: answer.to_vec() };
        request_response::Behaviour::with_codec(codec, [(protocol, ProtocolSupport::Full)], config)
    };
    swarm(keypair, identify_version, |identify| RawBehaviour {
        identify,
        call: exchange(call_protocol),
        info: exchange(network().info_protocol()),
        sync: exchange(network().sync_protocol()),
        reach: exchange(network().reach_protocol()),
    })
}

/// A peer with this key, of the network that `identify_version` names, that behaves as is said here.
pub(crate) fn swarm<B: NetworkBehaviour>(
    keypair: Keypair,
    identify_version: String,
    behaviour: impl FnOnce(identify::Behaviour) -> B,
) -> Swarm<B> {
    let identify = identify::Behaviour::new(identify::Config::new(identify_version, keypair.public()));
    SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)
        .unwrap()
        .with_behaviour(|_| behaviour(identify))
        .unwrap()
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(60)))
        .build()
}

/// Dials a node and waits until the peer is connected.
pub(crate) async fn connect<B: NetworkBehaviour>(swarm: &mut Swarm<B>, to: &str) {
    swarm.dial(to.parse::<Multiaddr>().unwrap()).unwrap();
    while swarm.connected_peers().next().is_none() {
        swarm.select_next_some().await;
    }
}

/// Listens on loopback and says where.
pub(crate) async fn listen<B: NetworkBehaviour>(swarm: &mut Swarm<B>) -> String {
    swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
    while swarm.listeners().next().is_none() {
        swarm.select_next_some().await;
    }
    swarm.listeners().next().unwrap().to_string()
}

/// Sends bytes on a new call stream and returns what the node said before it closed the stream.
pub(crate) async fn say(swarm: &mut Swarm<RawBehaviour>, sent: impl Into<Sent>) -> Option<Vec<u8>> {
    let peer = *swarm.connected_peers().next()?;
    swarm.behaviour_mut().call.send_request(&peer, sent.into());
    answer(swarm).await
}

/// The same on an info stream.
pub(crate) async fn ask(swarm: &mut Swarm<RawBehaviour>, bytes: Vec<u8>) -> Option<Vec<u8>> {
    let peer = *swarm.connected_peers().next()?;
    swarm.behaviour_mut().info.send_request(&peer, bytes.into());
    answer(swarm).await
}

/// The same on a session of the catalog.
pub(crate) async fn synchronise(swarm: &mut Swarm<RawBehaviour>, bytes: Vec<u8>) -> Option<Vec<u8>> {
    let peer = *swarm.connected_peers().next()?;
    swarm.behaviour_mut().sync.send_request(&peer, bytes.into());
    answer(swarm).await
}

/// The same on a reach stream.
pub(crate) async fn ask_reach(swarm: &mut Swarm<RawBehaviour>, bytes: Vec<u8>) -> Option<Vec<u8>> {
    let peer = *swarm.connected_peers().next()?;
    swarm.behaviour_mut().reach.send_request(&peer, bytes.into());
    answer(swarm).await
}

/// Takes whatever comes, and answers nothing, until it is aborted.
pub(crate) async fn drive<B: NetworkBehaviour>(mut swarm: Swarm<B>) {
    loop {
        swarm.select_next_some().await;
    }
}

/// Answers every request until it is aborted.
pub(crate) async fn serve(mut swarm: Swarm<RawBehaviour>) {
    use libp2p::{
        request_response::{Event, Message},
        swarm::SwarmEvent,
    };
    loop {
        if let SwarmEvent::Behaviour(
            RawBehaviourEvent::Call(event)
            | RawBehaviourEvent::Info(event)
            | RawBehaviourEvent::Sync(event)
            | RawBehaviourEvent::Reach(event),
        ) = swarm.select_next_some().await
            && let Event::Message { message: Message::Request { channel, .. }, .. } = event
        {
            // Every behaviour sends answers by the channel alone.
            let _ = swarm.behaviour_mut().call.send_response(channel, Vec::new());
        }
    }
}

async fn answer(swarm: &mut Swarm<RawBehaviour>) -> Option<Vec<u8>> {
    use libp2p::{
        request_response::{Event, Message},
        swarm::SwarmEvent,
    };
    loop {
        match swarm.select_next_some().await {
            SwarmEvent::Behaviour(
                RawBehaviourEvent::Call(event)
                | RawBehaviourEvent::Info(event)
                | RawBehaviourEvent::Sync(event)
                | RawBehaviourEvent::Reach(event),
            ) => match event {
                Event::Message { message: Message::Response { response, .. }, .. } => {
                    return Some(response);
                }
                Event::OutboundFailure { .. } => return None,
                Event::Message { message: Message::Request { channel, .. }, .. } => {
                    let _ = swarm.behaviour_mut().call.send_response(channel, Vec::new());
                }
                _ => {}
            },
            SwarmEvent::ConnectionClosed { .. } => return None,
            _ => {}
        }
    }
}
