//! Dialling a peer back: one handshake from a fresh socket, under a key made for it.
//!
//! The swarm's own sockets will not do: a router that lets the asker out to us lets us back in to the same
//! port, forwarded or not. Each dial therefore has a transport of its own, and with it a port that the asker
//! never sent anything to.

use std::{future::poll_fn, io, task::Poll, time::Duration};

use farthing_protocol::SecretKey;
use libp2p::{
    Multiaddr, PeerId, Transport as _,
    core::{
        Endpoint,
        muxing::{StreamMuxerBox, StreamMuxerExt},
        transport::{Boxed, DialOpts, PortUse, TransportError},
        upgrade::Version,
    },
    identity::Keypair,
    noise, quic, tcp, yamux,
};
use tokio::time::timeout;

use crate::{BootstrapState, Transport, identity};

/// The longest time that a connection is kept after its handshake for the asker to close: it has seen it then.
const HOLD_MAX: Duration = Duration::from_secs(1);
/// Streams that the asker may open meanwhile; nothing is said on them.
const STREAMS_MAX: usize = 16;

/// Dials `address` under `key` and sees whether `expected` answers there. The error says why not.
pub(super) async fn dial_back(
    address: Multiaddr,
    expected: PeerId,
    key: &SecretKey,
    deadline: Duration,
) -> Result<(), String> {
    let kind = Transport::of(&address).ok_or_else(|| "this is neither TCP nor QUIC".to_owned())?.0;
    let keypair = identity::keypair(key).map_err(|error| error.to_string())?;
    let mut transport = transport(kind, &keypair)?;
    let options = DialOpts { role: Endpoint::Dialer, port_use: PortUse::New };
    let why = |error: TransportError<io::Error>| BootstrapState::of_address(&address, &error).to_string();
    let dial = transport.dial(address.clone(), options).map_err(why)?;
    let connected = timeout(deadline, dial)
        .await
        .map_err(|_| format!("no answer within {} s", deadline.as_secs_f32()))?;
    let (peer, connection) = connected.map_err(|error| why(TransportError::Other(error)))?;
    if peer != expected {
        return Err("another node answers there".to_owned());
    }
    // A connection that stays open was seen as well.
    let _ = timeout(HOLD_MAX, closed(connection)).await;
    Ok(())
}

fn transport(kind: Transport, keypair: &Keypair) -> Result<Boxed<(PeerId, StreamMuxerBox)>, String> {
    Ok(match kind {
        Transport::Tcp => tcp::tokio::Transport::new(tcp::Config::new())
            // Not the lazy version: our side is to be done only once theirs is.
            .upgrade(Version::V1)
            .authenticate(noise::Config::new(keypair).map_err(|error| error.to_string())?)
            .multiplex(yamux::Config::default())
            .boxed(),
        Transport::Quic => quic::tokio::Transport::new(quic::Config::new(keypair))
            .map(|(peer, connection), _| (peer, StreamMuxerBox::new(connection)))
            .boxed(),
    })
}

/// Waits until the other side closes the connection.
async fn closed(mut connection: StreamMuxerBox) {
    let mut streams = 0;
    poll_fn(|context| {
        while streams < STREAMS_MAX {
            match connection.poll_inbound_unpin(context) {
                Poll::Ready(Ok(_)) => streams += 1,
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        match connection.poll_unpin(context) {
            Poll::Ready(Err(_)) => Poll::Ready(()),
            _ if streams >= STREAMS_MAX => Poll::Ready(()),
            _ => Poll::Pending,
        }
    })
    .await;
}
