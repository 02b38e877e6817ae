//! Strangers that write gossip as fast as they may: frames of their own making, on a stream that claims to be gossip.
//!
//! A wallet that is turned away does not come again.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use anyhow::Result;
use farthing_protocol::wire::NetworkName;
use futures::{AsyncWrite, AsyncWriteExt, FutureExt, StreamExt, future::BoxFuture};
use libp2p::{Multiaddr, swarm::SwarmEvent};

use crate::stranger::{Strangers, Writes, stranger};

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
    written: Arc<AtomicU64>,
    _wallets: Strangers,
}

impl Flood {
    pub fn start(to: String, network: NetworkName, sorts: Vec<Sort>) -> Result<Self> {
        let written = Arc::<AtomicU64>::default();
        let counted = Arc::clone(&written);
        let wallets = Strangers::start("flood", move || async move {
            let all = sorts.into_iter().map(|sort| wallet(&to, &network, sort, &counted));
            let ended = futures::future::join_all(all).await;
            ended.into_iter().filter_map(Result::err).for_each(|error| eprintln!("a stranger: {error:#}"));
        })?;
        Ok(Self { written, _wallets: wallets })
    }

    /// Bytes that the node's lines took until now.
    pub fn written(&self) -> u64 {
        self.written.load(Relaxed)
    }
}

/// One wallet, for as long as it is connected.
async fn wallet(to: &str, network: &NetworkName, sort: Sort, written: &Arc<AtomicU64>) -> Result<()> {
    let frames = Frames { topic: network.listings_topic(), sort, written: Arc::clone(written) };
    let mut swarm = stranger(network, network.gossip_protocol(), Arc::new(frames))?;
    swarm.dial(to.parse::<Multiaddr>()?)?;
    loop {
        match swarm.select_next_some().await {
            SwarmEvent::ConnectionEstablished { peer_id, .. } => {
                swarm.behaviour_mut().streams.send_request(&peer_id, ());
            }
            SwarmEvent::ConnectionClosed { .. } | SwarmEvent::OutgoingConnectionError { .. } => return Ok(()),
            _ => {}
        }
    }
}

/// Frames without an end.
#[derive(Debug)]
struct Frames {
    topic: String,
    sort: Sort,
    written: Arc<AtomicU64>,
}

impl Frames {
    async fn pour(&self, stream: &mut (dyn AsyncWrite + Unpin + Send)) -> io::Result<()> {
        for number in 0.. {
            let frame = self.frame(number);
            stream.write_all(&frame).await?;
            self.written.fetch_add(frame.len() as u64, Relaxed);
        }
        Ok(())
    }

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

impl Writes for Frames {
    fn write<'a>(&'a self, stream: &'a mut (dyn AsyncWrite + Unpin + Send)) -> BoxFuture<'a, io::Result<()>> {
        self.pour(stream).boxed()
    }
}
