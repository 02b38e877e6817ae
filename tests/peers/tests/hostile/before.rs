//! The network of a node of before, which speaks `call/1` alone: each call has a stream, and its head comes after its length.
//!
//! It is written by hand, after `docs/wire.md`, so that a change of what today's nodes read and write is noticed.

use std::io;

use anyhow::{Context, Result, bail};
use farthing_protocol::{
    CallMessage, CallReply, SecretKey,
    wire::{self, NetworkName},
};
use farthing_testnet::NodeProcess;
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::{
    Multiaddr, PeerId, StreamProtocol, Swarm, SwarmBuilder, identify, identity, noise,
    request_response::{self, Event, Message, ProtocolSupport},
    swarm::{NetworkBehaviour, SwarmEvent},
    tcp, yamux,
};

use crate::stranger::NETWORK;

/// Longer than any test looks at it.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(600);

/// Reads and writes one call and its answer, each with its body.
#[derive(Clone, Debug)]
pub struct Codec;

async fn read_bytes<T: AsyncRead + Unpin + Send>(io: &mut T, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
    io.read_exact(&mut bytes).await?;
    Ok(bytes)
}

async fn read_head<T: AsyncRead + Unpin + Send>(io: &mut T) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    io.read_exact(&mut length).await?;
    read_bytes(io, u32::from_be_bytes(length).into()).await
}

async fn write<T: AsyncWrite + Unpin + Send>(io: &mut T, head: &[u8], body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(head.len()).map_err(io::Error::other)?;
    io.write_all(&[&length.to_be_bytes()[..], head, body].concat()).await
}

impl request_response::Codec for Codec {
    type Protocol = StreamProtocol;
    type Request = (CallMessage, Vec<u8>);
    type Response = (CallReply, Vec<u8>);

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Self::Request>
    where
        T: AsyncRead + Unpin + Send,
    {
        let message: CallMessage = wire::decode(&read_head(io).await?).map_err(io::Error::other)?;
        let body = read_bytes(io, message.body_bytes()).await?;
        Ok((message, body))
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Self::Response>
    where
        T: AsyncRead + Unpin + Send,
    {
        let reply: CallReply = wire::decode(&read_head(io).await?).map_err(io::Error::other)?;
        let body = read_bytes(io, reply.body_bytes()).await?;
        Ok((reply, body))
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        (message, body): Self::Request,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write(io, &wire::encode(&message), &body).await
    }

    async fn write_response<T>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        (reply, body): Self::Response,
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        write(io, &wire::encode(&reply), &body).await
    }
}

#[derive(NetworkBehaviour)]
pub struct Behaviour {
    identify: identify::Behaviour,
    calls: request_response::Behaviour<Codec>,
}

/// A swarm with this key.
pub fn swarm(key: &SecretKey) -> Result<Swarm<Behaviour>> {
    let secret = identity::secp256k1::SecretKey::try_from_bytes(key.to_bytes())?;
    let keypair = identity::Keypair::from(identity::secp256k1::Keypair::from(secret));
    let network = NetworkName::new(NETWORK)?;
    let protocol = StreamProtocol::try_from_owned(network.call_protocol()).ok();
    let behaviour = Behaviour {
        identify: identify::Behaviour::new(identify::Config::new(
            network.identify_version(),
            keypair.public(),
        )),
        calls: request_response::Behaviour::with_codec(
            Codec,
            [(protocol.context("a protocol's name")?, ProtocolSupport::Full)],
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
pub async fn connect(swarm: &mut Swarm<Behaviour>, node: &NodeProcess) -> Result<PeerId> {
    swarm.dial(node.loopback_address().await?.parse::<Multiaddr>()?)?;
    loop {
        if let SwarmEvent::ConnectionEstablished { peer_id, .. } = swarm.select_next_some().await {
            return Ok(peer_id);
        }
    }
}

/// Answers calls without a body until it is aborted; where there is no word, the stream ends.
pub async fn serve(mut swarm: Swarm<Behaviour>, word: impl Fn(CallMessage) -> Option<CallReply>) {
    loop {
        if let SwarmEvent::Behaviour(BehaviourEvent::Calls(Event::Message {
            message: Message::Request { request: (message, _), channel, .. },
            ..
        })) = swarm.select_next_some().await
            && let Some(reply) = word(message)
        {
            // Whoever asked may have gone.
            let _ = swarm.behaviour_mut().calls.send_response(channel, (reply, Vec::new()));
        }
    }
}

/// Sends a call and waits for its answer.
pub async fn ask(
    swarm: &mut Swarm<Behaviour>,
    peer: PeerId,
    message: CallMessage,
    body: &[u8],
) -> Result<(CallReply, Vec<u8>)> {
    swarm.behaviour_mut().calls.send_request(&peer, (message, body.to_vec()));
    loop {
        match swarm.select_next_some().await {
            SwarmEvent::Behaviour(BehaviourEvent::Calls(Event::Message {
                message: Message::Response { response, .. },
                ..
            })) => return Ok(response),
            SwarmEvent::Behaviour(BehaviourEvent::Calls(Event::OutboundFailure { error, .. })) => {
                bail!("no answer: {error}")
            }
            _ => {}
        }
    }
}
