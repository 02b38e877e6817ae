//! Strangers that write gossip as fast as they may: frames of their own making, on a stream that claims to be gossip.
//!
//! As [`crate::crowd`], they are libp2p without our rules, on a thread of their own. A wallet that is turned away does not
//! come again.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use farthing_protocol::wire::NetworkName;
use futures::{AsyncRead, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::{
    Multiaddr, StreamProtocol, Swarm, SwarmBuilder, identify, identity, noise,
    request_response::{self, ProtocolSupport},
    swarm::{NetworkBehaviour, SwarmEvent},
    tcp, yamux,
};
use tokio::sync::Notify;

/// What an object of a flood weighs, as listings do.
const OBJECT_BYTES: u16 = 1_000;
/// Objects in a frame of [`Sort::Crammed`].
const CRAMMED: u32 = 6;

/// What a flood consists of. Each object is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Objects that could be a newer version's: nobody is struck for them.
    News,
    /// The same, several in each frame.
    Crammed,
    /// Objects with a signature of gossip, which messages of this network have not. The library refuses them by itself.
    Signed,
}

/// Wallets that flood, one for each sort; they end when this is dropped.
#[derive(Debug)]
pub struct Flood {
    end: Arc<Notify>,
    written: Arc<AtomicU64>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Flood {
    /// # Errors
    /// When the system gives no thread.
    pub fn start(to: String, network: NetworkName, sorts: Vec<Sort>) -> Result<Self> {
        let (end, written) = (Arc::<Notify>::default(), Arc::<AtomicU64>::default());
        let (told, counted) = (Arc::clone(&end), Arc::clone(&written));
        let thread = thread::Builder::new().name("flood".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let all = sorts.into_iter().map(|sort| wallet(&to, &network, sort, &counted));
                tokio::select! {
                    ended = futures::future::join_all(all) => {
                        ended.into_iter().filter_map(Result::err).for_each(|error| eprintln!("a stranger: {error:#}"));
                    }
                    () = told.notified() => {}
                }
            });
        })?;
        Ok(Self { end, written, thread: Some(thread) })
    }

    /// Bytes that the node's lines took until now.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.end.notify_one();
        // What it was doing is of no interest any more.
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// One wallet, for as long as it is connected.
async fn wallet(to: &str, network: &NetworkName, sort: Sort, written: &Arc<AtomicU64>) -> Result<()> {
    let mut swarm = stranger(network, sort, written)?;
    swarm.dial(to.parse::<Multiaddr>()?)?;
    loop {
        match swarm.select_next_some().await {
            SwarmEvent::ConnectionEstablished { peer_id, .. } => {
                swarm.behaviour_mut().gossip.send_request(&peer_id, ());
            }
            SwarmEvent::ConnectionClosed { .. } | SwarmEvent::OutgoingConnectionError { .. } => return Ok(()),
            _ => {}
        }
    }
}

#[derive(NetworkBehaviour)]
struct Behaviour {
    identify: identify::Behaviour,
    gossip: request_response::Behaviour<Frames>,
}

fn stranger(network: &NetworkName, sort: Sort, written: &Arc<AtomicU64>) -> Result<Swarm<Behaviour>> {
    let keypair = identity::Keypair::from(identity::secp256k1::Keypair::generate());
    let protocol =
        StreamProtocol::try_from_owned(network.gossip_protocol()).ok().context("a protocol's name")?;
    let config = request_response::Config::default().with_request_timeout(Duration::from_secs(600));
    let codec = Frames { topic: network.listings_topic(), sort, written: Arc::clone(written) };
    let behaviour = Behaviour {
        identify: identify::Behaviour::new(identify::Config::new(
            network.identify_version(),
            keypair.public(),
        )),
        gossip: request_response::Behaviour::with_codec(
            codec,
            [(protocol, ProtocolSupport::Outbound)],
            config,
        ),
    };
    Ok(SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)?
        .with_behaviour(|_| behaviour)?
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(600)))
        .build())
}

/// Frames without an end.
#[derive(Debug, Clone)]
struct Frames {
    topic: String,
    sort: Sort,
    written: Arc<AtomicU64>,
}

impl Frames {
    fn frame(&self, number: u32) -> Vec<u8> {
        let objects = if self.sort == Sort::Crammed { CRAMMED } else { 1 };
        let first = number * objects;
        let frame: Vec<u8> = (first..first + objects).flat_map(|number| self.message(number)).collect();
        [varint(frame.len()), frame].concat()
    }

    fn message(&self, number: u32) -> Vec<u8> {
        let signature = (self.sort == Sort::Signed).then(|| field(5, b"none"));
        let parts =
            [field(2, &object(number)), field(4, self.topic.as_bytes()), signature.unwrap_or_default()];
        field(2, &parts.concat())
    }
}

/// A signed document that says one thing, which nobody can read.
fn object(number: u32) -> Vec<u8> {
    let said = [&[0xa1, 0x1a][..], &number.to_be_bytes(), &[0x59], &OBJECT_BYTES.to_be_bytes()].concat();
    let said = [said, vec![0; usize::from(OBJECT_BYTES)]].concat();
    let length = u16::try_from(said.len()).unwrap_or(u16::MAX);
    [&[0xa2, 0x00, 0x59][..], &length.to_be_bytes(), &said, &[0x01, 0x58, 65], &[0; 65]].concat()
}

/// A field of a message in the encoding of gossip, which is that of protocol buffers.
fn field(number: usize, content: &[u8]) -> Vec<u8> {
    [varint((number << 3) | 2), varint(content.len()), content.to_vec()].concat()
}

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low & 0x7f);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

impl request_response::Codec for Frames {
    type Protocol = StreamProtocol;
    type Request = ();
    type Response = ();

    async fn read_request<T>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<()>
    where
        T: AsyncRead + Unpin + Send,
    {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<()>
    where
        T: AsyncRead + Unpin + Send,
    {
        Ok(())
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, (): ()) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        for number in 0.. {
            let frame = self.frame(number);
            io.write_all(&frame).await?;
            self.written.fetch_add(frame.len() as u64, Relaxed);
        }
        Ok(())
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, _: &mut T, (): ()) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        Err(io::ErrorKind::Unsupported.into())
    }
}
