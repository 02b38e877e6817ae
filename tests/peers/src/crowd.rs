//! Strangers whose call streams carry a byte a second: the company in which an honest payer's calls are measured.
//!
//! They are libp2p without our rules, on a thread of their own, so that what they do themselves is not taken for what
//! they do to others. A stream that the owner ends is soon followed by another one, and a wallet that it blocks by
//! another wallet.

use std::{
    io, iter,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use anyhow::{Context, Result};
use farthing_protocol::wire::NetworkName;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::{
    Multiaddr, PeerId, StreamProtocol, Swarm, SwarmBuilder, identify, identity, noise,
    request_response::{self, Event, Message, ProtocolSupport},
    swarm::{NetworkBehaviour, SwarmEvent},
    tcp, yamux,
};
use tokio::sync::Notify;

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
    end: Arc<Notify>,
    counts: Arc<Counts>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Crowd {
    /// # Errors
    /// When the system gives no thread.
    pub fn start(slow: Slow) -> Result<Self> {
        let (end, counts) = (Arc::<Notify>::default(), Arc::<Counts>::default());
        let (told, counted) = (Arc::clone(&end), Arc::clone(&counts));
        let thread = thread::Builder::new().name("crowd".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let all = iter::repeat_with(|| wallets(&slow, &counted)).take(slow.wallets);
                tokio::select! {
                    _ = futures::future::join_all(all) => {}
                    () = told.notified() => {}
                }
            });
        })?;
        Ok(Self { end, counts, thread: Some(thread) })
    }

    /// Streams that are open now, as the strangers see it.
    pub fn open(&self) -> usize {
        self.counts.open.load(Relaxed)
    }

    /// Streams that were begun until now.
    pub fn begun(&self) -> usize {
        self.counts.begun.load(Relaxed)
    }

    /// # Errors
    /// When the strangers cannot open that many.
    pub async fn wait_until_begun(&self, count: usize) -> Result<()> {
        farthing_tests::wait::eventually("the slow streams have begun", async || Ok(self.begun() >= count))
            .await
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.end.notify_one();
        // What it was doing is of no interest any more.
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// One wallet after another, for ever.
async fn wallets(slow: &Slow, counts: &Arc<Counts>) {
    loop {
        if let Err(error) = wallet(slow, counts).await {
            eprintln!("a stranger: {error:#}");
        }
        tokio::time::sleep(SOON).await;
    }
}

/// One wallet, for as long as it is connected.
async fn wallet(slow: &Slow, counts: &Arc<Counts>) -> Result<()> {
    let mut swarm = stranger(&slow.network, counts)?;
    swarm.dial(slow.to.parse::<Multiaddr>()?)?;
    let mut owner: Option<PeerId> = None;
    let (mut missing, mut soon) = (slow.streams, tokio::time::interval(SOON));
    loop {
        tokio::select! {
            event = swarm.select_next_some() => match event {
                SwarmEvent::ConnectionEstablished { peer_id, .. } => owner = Some(peer_id),
                SwarmEvent::ConnectionClosed { .. } | SwarmEvent::OutgoingConnectionError { .. } => return Ok(()),
                SwarmEvent::Behaviour(BehaviourEvent::Call(
                    Event::Message { message: Message::Response { .. }, .. } | Event::OutboundFailure { .. },
                )) => missing += 1,
                _ => {}
            },
            _ = soon.tick() => if let Some(owner) = &owner {
                for _ in 0..std::mem::take(&mut missing) {
                    swarm.behaviour_mut().call.send_request(owner, ());
                }
            },
        }
    }
}

#[derive(NetworkBehaviour)]
struct Behaviour {
    identify: identify::Behaviour,
    call: request_response::Behaviour<Trickle>,
}

fn stranger(network: &NetworkName, counts: &Arc<Counts>) -> Result<Swarm<Behaviour>> {
    let keypair = identity::Keypair::from(identity::secp256k1::Keypair::generate());
    let protocol =
        StreamProtocol::try_from_owned(network.call_protocol()).ok().context("a protocol's name")?;
    let config = request_response::Config::default().with_request_timeout(Duration::from_secs(600));
    let codec = Trickle { counts: Arc::clone(counts) };
    let behaviour = Behaviour {
        identify: identify::Behaviour::new(identify::Config::new(
            network.identify_version(),
            keypair.public(),
        )),
        call: request_response::Behaviour::with_codec(codec, [(protocol, ProtocolSupport::Outbound)], config),
    };
    Ok(SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)?
        .with_behaviour(|_| behaviour)?
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(60)))
        .build())
}

/// A request that is never complete.
#[derive(Debug, Clone)]
struct Trickle {
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

impl request_response::Codec for Trickle {
    type Protocol = StreamProtocol;
    type Request = ();
    type Response = ();

    async fn read_request<T>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<()>
    where
        T: AsyncRead + Unpin + Send,
    {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<()>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut answer = Vec::new();
        io.take(64 * 1024).read_to_end(&mut answer).await.map(drop)
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, io: &mut T, (): ()) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        let _open = Open::of(&self.counts);
        let announced = BYTES.to_be_bytes();
        for (number, byte) in announced.into_iter().chain(iter::repeat(0)).enumerate() {
            io.write_all(&[byte]).await?;
            io.flush().await?;
            self.counts.begun.fetch_add(usize::from(number == 0), Relaxed);
            tokio::time::sleep(A_BYTE_EVERY).await;
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
