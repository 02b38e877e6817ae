//! A connection of this node to itself through a relay, as a stranger would make it: under a key made for it, from a socket
//! and with a connection to the relay of its own.

use std::time::Duration;

use farthing_protocol::{SecretKey, wire::NetworkName};
use futures::StreamExt as _;
use libp2p::{
    Multiaddr, PeerId, Swarm, Transport as _,
    core::{muxing::StreamMuxerBox, upgrade::Version},
    identify, noise, quic,
    swarm::{self, NetworkBehaviour, SwarmEvent, dial_opts::DialOpts},
    tcp, yamux,
};
use tokio::time::timeout;

use super::client::{self, RelayClientBehaviour};
use crate::{identity, names::Led};

/// The longest time that the connection is kept for this node to see it come in.
const HOLD_MAX: Duration = Duration::from_secs(1);

/// A relay keeps nobody who does not say which network it is of.
#[derive(NetworkBehaviour)]
struct StrangerBehaviour {
    relay: RelayClientBehaviour,
    identify: identify::Behaviour,
}

/// Connects to `own` at `circuit` under `key`. The error says why that failed.
pub(crate) async fn connect_through(
    circuit: Multiaddr,
    own: PeerId,
    key: &SecretKey,
    network: &NetworkName,
    deadline: Duration,
) -> Result<(), String> {
    let mut swarm = stranger(key, network)?;
    let options = DialOpts::peer_id(own).addresses(vec![circuit]).build();
    swarm.dial(options).map_err(|error| error.to_string())?;
    let connected = async {
        loop {
            match swarm.select_next_some().await {
                SwarmEvent::ConnectionEstablished { peer_id, .. } if peer_id == own => return Ok(()),
                SwarmEvent::OutgoingConnectionError { error, .. } => return Err(error.to_string()),
                _ => {}
            }
        }
    };
    timeout(deadline, connected).await.unwrap_or_else(|_| Err("it did not answer".to_owned()))?;
    let closed =
        async { while !matches!(swarm.select_next_some().await, SwarmEvent::ConnectionClosed { .. }) {} };
    // A connection that stays open was seen as well.
    let _ = timeout(HOLD_MAX, closed).await;
    Ok(())
}

fn stranger(key: &SecretKey, network: &NetworkName) -> Result<Swarm<StrangerBehaviour>, String> {
    let keypair = identity::keypair(key).map_err(|error| error.to_string())?;
    let noise = noise::Config::new(&keypair).map_err(|error| error.to_string())?;
    let (circuits, relay) = client::circuits(&keypair, yamux::Config::default(), Led::default())
        .map_err(|error| error.to_string())?;
    let tcp = tcp::tokio::Transport::new(tcp::Config::new())
        .upgrade(Version::V1Lazy)
        .authenticate(noise)
        .multiplex(yamux::Config::default())
        .boxed();
    let quic = quic::tokio::Transport::new(quic::Config::new(&keypair))
        .map(|(peer, connection), _| (peer, StreamMuxerBox::new(connection)));
    let sockets = quic.or_transport(tcp).map(|either, _| either.into_inner()).boxed();
    let transport = circuits.or_transport(sockets).map(|either, _| either.into_inner()).boxed();
    let named = identify::Config::new(network.identify_version(), keypair.public());
    let behaviour = StrangerBehaviour { relay, identify: identify::Behaviour::new(named) };
    let config = swarm::Config::with_tokio_executor();
    Ok(Swarm::new(transport, behaviour, keypair.public().to_peer_id(), config))
}
