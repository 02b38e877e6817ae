//! A peer from bare libp2p: it identifies itself, and speaks one protocol of calls by a codec of the test.

use std::time::Duration;

use anyhow::{Context, Result};
use farthing_protocol::{SecretKey, wire::NetworkName};
use farthing_testnet::NodeProcess;
use futures::StreamExt;
use libp2p::{
    Multiaddr, PeerId, StreamProtocol, Swarm, SwarmBuilder, identify, identity, noise,
    request_response::{self, Codec, ProtocolSupport},
    swarm::{NetworkBehaviour, SwarmEvent},
    tcp, yamux,
};

use crate::stranger::NETWORK;

/// Longer than any test looks at it.
const PATIENCE: Duration = Duration::from_secs(600);

#[derive(NetworkBehaviour)]
pub struct Behaviour<C: Codec + Clone + Send + 'static> {
    identify: identify::Behaviour,
    pub calls: request_response::Behaviour<C>,
}

/// A swarm with this key and the network's protocol of this name.
pub fn swarm<C>(
    key: &SecretKey,
    protocol: fn(&NetworkName) -> String,
    support: ProtocolSupport,
    codec: C,
) -> Result<Swarm<Behaviour<C>>>
where
    C: Codec<Protocol = StreamProtocol> + Clone + Send + 'static,
{
    let secret = identity::secp256k1::SecretKey::try_from_bytes(key.to_bytes())?;
    let keypair = identity::Keypair::from(identity::secp256k1::Keypair::from(secret));
    let network = NetworkName::new(NETWORK)?;
    let protocol = StreamProtocol::try_from_owned(protocol(&network)).ok();
    let behaviour = Behaviour {
        identify: identify::Behaviour::new(identify::Config::new(
            network.identify_version(),
            keypair.public(),
        )),
        calls: request_response::Behaviour::with_codec(
            codec,
            [(protocol.context("a protocol's name")?, support)],
            request_response::Config::default().with_request_timeout(PATIENCE),
        ),
    };
    Ok(SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)?
        .with_behaviour(|_| behaviour)?
        .with_swarm_config(|config| config.with_idle_connection_timeout(PATIENCE))
        .build())
}

/// Connects to a node.
pub async fn connect<C>(swarm: &mut Swarm<Behaviour<C>>, node: &NodeProcess) -> Result<PeerId>
where
    C: Codec + Clone + Send + 'static,
{
    swarm.dial(node.loopback_address().await?.parse::<Multiaddr>()?)?;
    loop {
        if let SwarmEvent::ConnectionEstablished { peer_id, .. } = swarm.select_next_some().await {
            return Ok(peer_id);
        }
    }
}
