//! Strangers whose call streams carry a byte a second: the company in which an honest payer's calls are measured. Every second
//! wallet speaks `call/2`, the others `call/1`.
//!
//! A stream that the owner ends is soon followed by another one, and a wallet that it blocks by another wallet.

use std::{
    io, iter,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use anyhow::Result;
use farthing_protocol::{
    call_stream::{FrameHead, FrameKind},
    wire::NetworkName,
};
use futures::{AsyncWrite, AsyncWriteExt, FutureExt, StreamExt, future::BoxFuture};
use libp2p::{
    Multiaddr, PeerId,
    request_response::{Event, Message},
    swarm::SwarmEvent,
};

use crate::stranger::{BehaviourEvent, Strangers, Writes, stranger};

/// What each stream announces, and never gets to the end of.
const BYTES: u32 = 30_000;
const A_BYTE_EVERY: Duration = Duration::from_secs(1);
/// How soon another stream or wallet follows one that was ended.
const SOON: Duration = Duration::from_millis(100);

/// Who sends how slowly, and to whom.
#[derive(Debug, Clone)]
pub struct Slow {
    /// The owner's address.
    pub to: String,
    pub network: NetworkName,
    pub wallets: usize,
    /// Streams of each wallet at any time.
    pub streams: usize,
}

/// Streams of all wallets.
#[derive(Debug, Default)]
struct Counts {
    begun: AtomicUsize,
    open: AtomicUsize,
}

/// The wallets at work; they end when this is dropped.
#[derive(Debug)]
pub struct Crowd {
    counts: Arc<Counts>,
    _wallets: Strangers,
}

impl Crowd {
    pub fn start(slow: Slow) -> Result<Self> {
        let counts = Arc::<Counts>::default();
        let counted = Arc::clone(&counts);
        let wallets = Strangers::start("crowd", move || async move {
            let requests = requests(&slow.network);
            let all = requests.iter().cycle().take(slow.wallets);
            let all = all.map(|request| wallets(&slow, request, &counted));
            futures::future::join_all(all).await;
        })?;
        Ok(Self { counts, _wallets: wallets })
    }

    /// Streams that are open now, as the strangers see it.
    pub fn open(&self) -> usize {
        self.counts.open.load(Relaxed)
    }

    /// Streams that were begun until now.
    pub fn begun(&self) -> usize {
        self.counts.begun.load(Relaxed)
    }

    pub async fn wait_until_begun(&self, count: usize) -> Result<()> {
        farthing_tests::wait::eventually("the slow streams have begun", async || Ok(self.begun() >= count))
            .await
    }
}

/// How a request begins, and by which protocol.
struct Request {
    protocol: String,
    beginning: Vec<u8>,
}

/// One by each protocol.
fn requests(network: &NetworkName) -> [Request; 2] {
    let frame = FrameHead { kind: FrameKind::Request, is_last: false, number: 1, head_bytes: BYTES };
    [
        Request { protocol: network.call_protocol(), beginning: BYTES.to_be_bytes().to_vec() },
        Request { protocol: network.call_stream_protocol(), beginning: frame.to_bytes().to_vec() },
    ]
}

/// One wallet after another, for ever.
async fn wallets(slow: &Slow, request: &Request, counts: &Arc<Counts>) {
    loop {
        if let Err(error) = wallet(slow, request, counts).await {
            eprintln!("a stranger: {error:#}");
        }
        tokio::time::sleep(SOON).await;
    }
}

/// One wallet, for as long as it is connected.
async fn wallet(slow: &Slow, request: &Request, counts: &Arc<Counts>) -> Result<()> {
    let trickle = Trickle { beginning: request.beginning.clone(), counts: Arc::clone(counts) };
    let mut swarm = stranger(&slow.network, request.protocol.clone(), Arc::new(trickle))?;
    swarm.dial(slow.to.parse::<Multiaddr>()?)?;
    let mut owner: Option<PeerId> = None;
    let (mut missing, mut soon) = (slow.streams, tokio::time::interval(SOON));
    loop {
        tokio::select! {
            event = swarm.select_next_some() => match event {
                SwarmEvent::ConnectionEstablished { peer_id, .. } => owner = Some(peer_id),
                SwarmEvent::ConnectionClosed { .. } | SwarmEvent::OutgoingConnectionError { .. } => return Ok(()),
                SwarmEvent::Behaviour(BehaviourEvent::Streams(
                    Event::Message { message: Message::Response { .. }, .. } | Event::OutboundFailure { .. },
                )) => missing += 1,
                _ => {}
            },
            _ = soon.tick() => if let Some(owner) = &owner {
                for _ in 0..std::mem::take(&mut missing) {
                    swarm.behaviour_mut().streams.send_request(owner, ());
                }
            },
        }
    }
}

/// A request that is never complete.
#[derive(Debug)]
struct Trickle {
    beginning: Vec<u8>,
    counts: Arc<Counts>,
}

/// Counts a stream for as long as it is written to.
struct Open<'a>(&'a Counts);

impl<'a> Open<'a> {
    fn of(counts: &'a Counts) -> Self {
        counts.open.fetch_add(1, Relaxed);
        Self(counts)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

impl Trickle {
    async fn trickle(&self, stream: &mut (dyn AsyncWrite + Unpin + Send)) -> io::Result<()> {
        let _open = Open::of(&self.counts);
        for (number, byte) in self.beginning.iter().chain(iter::repeat(&0)).enumerate() {
            stream.write_all(&[*byte]).await?;
            stream.flush().await?;
            self.counts.begun.fetch_add(usize::from(number == 0), Relaxed);
            tokio::time::sleep(A_BYTE_EVERY).await;
        }
        Ok(())
    }
}

impl Writes for Trickle {
    fn write<'a>(&'a self, stream: &'a mut (dyn AsyncWrite + Unpin + Send)) -> BoxFuture<'a, io::Result<()>> {
        self.trickle(stream).boxed()
    }
}
