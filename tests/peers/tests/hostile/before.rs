//! The network of a node of before, which speaks `call/1` alone: each call has a stream, and its head comes after its length.
//!
//! It is written by hand, after `docs/wire.md`, so that a change of what today's nodes read and write is noticed.

use std::io;

use anyhow::{Result, bail};
use farthing_protocol::{
    CallMessage, CallReply, SecretKey,
    wire::{self, NetworkName},
};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::{
    PeerId, StreamProtocol, Swarm,
    request_response::{self, Event, Message, ProtocolSupport},
    swarm::SwarmEvent,
};

use crate::bare::{self, Behaviour, BehaviourEvent};

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

/// A swarm with this key.
pub fn swarm(key: &SecretKey) -> Result<Swarm<Behaviour<Codec>>> {
    bare::swarm(key, NetworkName::call_protocol, ProtocolSupport::Full, Codec)
}

/// Answers calls without a body until it is aborted; where there is no word, the stream ends.
pub async fn serve(mut swarm: Swarm<Behaviour<Codec>>, word: impl Fn(CallMessage) -> Option<CallReply>) {
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
    swarm: &mut Swarm<Behaviour<Codec>>,
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
