//! The last look at every address before this node connects to it.
//!
//! Addresses come from strangers: out of their records, out of the directory's answers, which the library dials by
//! itself, and out of the name system, where whoever owns a name decides what it leads to. None of them may make this
//! node knock inside its own network, where the router, a database or the cloud's metadata service listens.
//!
//! A name is looked up once, here, and what came out of it is what is checked and dialled: no second look-up could
//! say something else. Where it led is noted, because the peer there can learn its own address only from this node.
//!
//! Invariant: where private addresses are not allowed, nothing is dialled but public IPs and the addresses that this
//! node's owner named, or found in the local network by choice.

use std::{
    collections::HashSet,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{FutureExt, TryFutureExt, future::BoxFuture};
use libp2p::{
    Multiaddr, PeerId, Transport, TransportError,
    core::{
        muxing::StreamMuxerBox,
        transport::{Boxed, DialOpts, ListenerId, TransportEvent},
    },
    dns,
};
use parking_lot::Mutex;

use crate::{addresses, names::Led};

/// The product of a transport: the peer at the other end, and the connection.
pub(crate) type Connected = (PeerId, StreamMuxerBox);

const INSIDE: &str = "this leads into a private network, but `network.allow_private` is off";

/// Addresses that may lead anywhere: those the owner configured, and those of the local network, if it is looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedAddresses {
    configured: Arc<HashSet<Multiaddr>>,
    nearby: Arc<Mutex<HashSet<Multiaddr>>>,
}

impl TrustedAddresses {
    pub(crate) fn new(configured: &[Multiaddr]) -> Self {
        let configured = configured.iter().map(addresses::without_peer).collect();
        Self { configured: Arc::new(configured), nearby: Arc::default() }
    }

    /// Puts these in place of the nodes of the local network that were known before.
    pub(crate) fn set_nearby(&self, nearby: HashSet<Multiaddr>) {
        *self.nearby.lock() = nearby;
    }

    /// The whole address counts: another port of the same machine is another address.
    fn includes(&self, address: &Multiaddr) -> bool {
        let address = addresses::without_peer(address);
        self.configured.contains(&address) || self.nearby.lock().contains(&address)
    }
}

/// `inner` behind the check, with names looked up in between.
///
/// # Errors
/// The system's resolver cannot be used.
pub(crate) fn guarded(
    inner: Boxed<Connected>,
    vouched: TrustedAddresses,
    led: Led,
    allow_private: bool,
) -> io::Result<Boxed<Connected>> {
    let inner = Arc::new(Mutex::new(inner));
    let exit = |public_only| Exit { inner: Arc::clone(&inner), public_only };
    let guard = Guard {
        vouched,
        led,
        allow_private,
        anywhere: dns::tokio::Transport::system(exit(false))?,
        public: dns::tokio::Transport::system(exit(true))?,
    };
    Ok(guard.boxed())
}

/// Chooses the way out for each address, before its name is looked up.
struct Guard {
    vouched: TrustedAddresses,
    led: Led,
    allow_private: bool,
    anywhere: dns::tokio::Transport<Exit>,
    public: dns::tokio::Transport<Exit>,
}

type Dns = dns::tokio::Transport<Exit>;

impl Transport for Guard {
    type Output = Connected;
    type Error = <Dns as Transport>::Error;
    type ListenerUpgrade = BoxFuture<'static, Result<Connected, Self::Error>>;
    type Dial = BoxFuture<'static, Result<Connected, Self::Error>>;

    fn listen_on(&mut self, id: ListenerId, address: Multiaddr) -> Result<(), TransportError<Self::Error>> {
        self.anywhere.listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.anywhere.remove_listener(id)
    }

    fn dial(
        &mut self,
        address: Multiaddr,
        options: DialOpts,
    ) -> Result<Self::Dial, TransportError<Self::Error>> {
        let named = address.clone();
        let dial = if self.allow_private || self.vouched.includes(&address) {
            self.anywhere.dial(address, options)
        } else if addresses::may_be_announced(&address, false) {
            self.public.dial(address, options)
        } else {
            // A stranger's address is not even looked up unless it is one name or IP and one port.
            Err(TransportError::Other(dns::Error::Transport(inside())))
        };
        let led = self.led.clone();
        let note = move |(connected, reached): DialedConnection| {
            if let Some(reached) = reached {
                led.note(connected.0, &named, &reached);
            }
            connected
        };
        Ok(dial?.map_ok(note).boxed())
    }

    fn poll(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, Self::Error>> {
        // Both lead to the same transport.
        let came = |upgrade: <Dns as Transport>::ListenerUpgrade| upgrade.map_ok(|(came, _)| came).boxed();
        Pin::new(&mut self.anywhere).poll(context).map(|event| event.map_upgrade(came))
    }
}

/// A connection and, of one that this node made, the address it leads to.
type DialedConnection = (Connected, Option<Multiaddr>);

/// Dials what names were looked up to.
struct Exit {
    inner: Arc<Mutex<Boxed<Connected>>>,
    public_only: bool,
}

impl Transport for Exit {
    type Output = DialedConnection;
    type Error = io::Error;
    type ListenerUpgrade = BoxFuture<'static, Result<DialedConnection, io::Error>>;
    type Dial = BoxFuture<'static, Result<DialedConnection, io::Error>>;

    fn listen_on(&mut self, id: ListenerId, address: Multiaddr) -> Result<(), TransportError<io::Error>> {
        self.inner.lock().listen_on(id, address)
    }

    fn remove_listener(&mut self, id: ListenerId) -> bool {
        self.inner.lock().remove_listener(id)
    }

    fn dial(
        &mut self,
        address: Multiaddr,
        options: DialOpts,
    ) -> Result<Self::Dial, TransportError<io::Error>> {
        if self.public_only && !addresses::is_dialable(&address, false) {
            tracing::debug!(%address, "an unknown peer's address leads into a private network; not dialled");
            return Err(TransportError::Other(inside()));
        }
        let dial = self.inner.lock().dial(address.clone(), options)?;
        Ok(dial.map_ok(|connected| (connected, Some(address))).boxed())
    }

    fn poll(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<TransportEvent<Self::ListenerUpgrade, io::Error>> {
        let came = |upgrade: <Boxed<Connected> as Transport>::ListenerUpgrade| {
            upgrade.map_ok(|connected| (connected, None)).boxed()
        };
        Pin::new(&mut *self.inner.lock()).poll(context).map(|event| event.map_upgrade(came))
    }
}

fn inside() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, INSIDE)
}
