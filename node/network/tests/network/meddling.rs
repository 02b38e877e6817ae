//! A relay that reads and changes what it carries. Both ends of a circuit encrypt what passes, so it learns how much that is and
//! nothing else, and can end calls, and make none say something else.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use farthing_network::{CallFailure, NetworkConfig, RelayConfig};
use futures::{AsyncRead, AsyncWrite};
use libp2p::{
    Swarm, Transport as _,
    core::{
        muxing::{StreamMuxer, StreamMuxerBox, StreamMuxerEvent, StreamMuxerExt as _, SubstreamBox},
        upgrade::Version,
    },
    identify, noise, relay,
    swarm::{self, NetworkBehaviour},
    tcp, yamux,
};

use crate::{
    raw::{self, wallet_keypair},
    relays::{call, call_until_answered, quick, relaying, sells_through},
    support::{Node, network, new_key, pattern, response, until},
};

/// Pieces of so many bytes are of calls: all else that passes here is shorter.
const LARGE_BYTES: usize = 2 * 1024;
/// A body that passes in several of them.
const BODY_BYTES: usize = 32 * 1024;

/// While it is on, a bit of each large piece that the relay passes on is another one.
#[derive(Clone, Default)]
struct Meddling {
    is_on: Arc<AtomicBool>,
    changed: Arc<AtomicUsize>,
    /// All that it passed on while it was off, as the relay reads it.
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Meddling {
    fn set(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::SeqCst);
    }

    fn changed(&self) -> usize {
        self.changed.load(Ordering::SeqCst)
    }
}

struct MeddledMuxer {
    inner: StreamMuxerBox,
    meddling: Meddling,
}

impl MeddledMuxer {
    fn meddled(&self, opened: Poll<io::Result<SubstreamBox>>) -> Poll<io::Result<MeddledStream>> {
        opened.map_ok(|inner| MeddledStream { inner, meddling: self.meddling.clone() })
    }
}

impl StreamMuxer for MeddledMuxer {
    type Substream = MeddledStream;
    type Error = io::Error;

    fn poll_inbound(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<MeddledStream>> {
        let opened = self.inner.poll_inbound_unpin(context);
        self.meddled(opened)
    }

    fn poll_outbound(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<MeddledStream>> {
        let opened = self.inner.poll_outbound_unpin(context);
        self.meddled(opened)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_close_unpin(context)
    }

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<StreamMuxerEvent>> {
        self.inner.poll_unpin(context)
    }
}

struct MeddledStream {
    inner: SubstreamBox,
    meddling: Meddling,
}

impl AsyncRead for MeddledStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_read(context, bytes)
    }
}

impl AsyncWrite for MeddledStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.len() < LARGE_BYTES || !self.meddling.is_on.load(Ordering::SeqCst) {
            let written = Pin::new(&mut self.inner).poll_write(context, bytes);
            if let Poll::Ready(Ok(count)) = &written {
                self.meddling.seen.lock().unwrap().extend(&bytes[..*count]);
            }
            return written;
        }
        let (mut other, at) = (bytes.to_vec(), bytes.len() / 2);
        other[at] ^= 1;
        let written = Pin::new(&mut self.inner).poll_write(context, &other);
        if matches!(written, Poll::Ready(Ok(count)) if count > at) {
            self.meddling.changed.fetch_add(1, Ordering::SeqCst);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_close(context)
    }
}

/// The library's relay, over streams that are meddled with.
#[derive(NetworkBehaviour)]
struct MeddlingRelay {
    identify: identify::Behaviour,
    relay: relay::Behaviour,
}

/// Serves until the test ends: where it listens, and what it does to the bytes.
async fn meddling_relay() -> (String, Meddling) {
    let (keypair, meddling) = (wallet_keypair(&new_key()), Meddling::default());
    let (own, version, meddles) =
        (keypair.public().to_peer_id(), network().identify_version(), meddling.clone());
    let transport = tcp::tokio::Transport::new(tcp::Config::new())
        .upgrade(Version::V1)
        .authenticate(noise::Config::new(&keypair).unwrap())
        .multiplex(yamux::Config::default())
        .boxed()
        .map(move |(peer, inner), _| (peer, StreamMuxerBox::new(MeddledMuxer { inner, meddling: meddles })))
        .boxed();
    let behaviour = MeddlingRelay {
        identify: identify::Behaviour::new(identify::Config::new(version, keypair.public())),
        relay: relay::Behaviour::new(own, relay::Config::default()),
    };
    let settings = swarm::Config::with_tokio_executor().with_idle_connection_timeout(Duration::from_secs(60));
    let mut swarm = Swarm::new(transport, behaviour, own, settings);
    let address = raw::listen(&mut swarm).await;
    swarm.add_external_address(address.parse().unwrap());
    tokio::spawn(raw::drive(swarm));
    (address, meddling)
}

/// A consumer and an owner that reach each other through the relay alone, a node at which they find each other, and what the
/// relay does to the bytes.
async fn apart() -> (Node, Node, Node, Meddling) {
    let (relay, meddling) = meddling_relay().await;
    let meeting = relaying(RelayConfig { serves: false, ..RelayConfig::default() }, &[]).await;
    let bootstrap = vec![relay, meeting.listening()];
    let hidden = || NetworkConfig { listen: Vec::new(), bootstrap: bootstrap.clone(), ..quick() };
    let owner = Node::start(hidden()).await;
    sells_through(&owner, 1, &[&meeting]).await;
    let consumer = Node::start(hidden()).await;
    until("the owner is reached", async || consumer.handle.connect(owner.address).await.is_ok()).await;
    (consumer, owner, meeting, meddling)
}

/// Calls get through again once the relay meddles no more.
async fn is_well_again(consumer: &Node, owner: Node, meddling: &Meddling) {
    meddling.set(false);
    let wallet = owner.address;
    let _owner = owner.echo();
    call_until_answered(consumer, wallet).await;
}

#[tokio::test]
async fn a_request_that_a_relay_changes_reaches_no_owner() {
    let (consumer, mut owner, _meeting, meddling) = apart().await;
    meddling.set(true);
    let end = call(&consumer, owner.address, &pattern(BODY_BYTES)).await;
    assert!(end.is_err(), "an answer to what was changed");
    assert!(meddling.changed() > 0, "nothing was changed: {end:?}");
    assert!(owner.calls.try_recv().is_err(), "the owner took it");
    is_well_again(&consumer, owner, &meddling).await;
}

#[tokio::test]
async fn an_answer_that_a_relay_changes_leaves_the_call_undecided_and_it_was_sent_once() {
    let (consumer, mut owner, _meeting, meddling) = apart().await;
    let sent = pattern(BODY_BYTES);
    let calling = call(&consumer, owner.address, &sent);
    let answering = async {
        let inbound = owner.calls.recv().await.unwrap();
        assert_eq!(inbound.body, sent);
        meddling.set(true);
        inbound.reply.send(response(BODY_BYTES), sent.clone());
    };
    let (end, ()) = tokio::join!(calling, answering);
    assert!(matches!(end, Err(CallFailure::Unknown(_))), "{end:?}");
    assert!(meddling.changed() > 0, "nothing was changed");
    assert!(owner.calls.try_recv().is_err(), "it was sent once");
    is_well_again(&consumer, owner, &meddling).await;
}

#[tokio::test]
async fn a_relay_learns_how_much_passes_and_nothing_of_what_it_says() {
    const WORD_BYTES: usize = 16;
    let (consumer, owner, _meeting, meddling) = apart().await;
    let (wallet, sent) = (owner.address, pattern(BODY_BYTES));
    let _owner = owner.echo();
    meddling.seen.lock().unwrap().clear();
    call_until_answered(&consumer, wallet).await;
    assert_eq!(call(&consumer, wallet, &sent).await.unwrap().1, sent);
    let seen = meddling.seen.lock().unwrap();
    assert!(seen.len() > 2 * BODY_BYTES, "{} bytes passed another way", seen.len());
    let is_said = |word: &[u8]| seen.windows(WORD_BYTES).any(|passed| passed == word);
    assert!(sent.chunks_exact(WORD_BYTES).take(16).all(|word| !is_said(word)), "the relay reads the body");
}
