//! An owner that keeps to no rule on the frames of `call/2`: it answers out of turn, in part or not at all.

use std::io;

use farthing_protocol::{
    call_stream::{FrameHead, FrameKind},
    wire::{self, NetworkName},
};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt, future::try_join_all};
use libp2p::{
    StreamProtocol, Swarm,
    request_response::{self, Event, Message, ProtocolSupport},
    swarm::SwarmEvent,
};

use super::{unanswered::BROKEN_OFF, *};
use crate::bare::{self, Behaviour, BehaviourEvent};

/// Calls at once, each on a stream of its own.
const AT_ONCE: u64 = 8;

/// What comes in the place of an answer; `refusal` says that the call was not served, and is not to be believed.
type Lie = fn(number: u32, refusal: &[u8]) -> Vec<u8>;

const LIES: [(&str, Lie); 7] = [
    ("the stream ends as the call is written", |_, _| Vec::new()),
    ("half of a frame's beginning", |number, refusal| {
        frame(FrameKind::Reply, number, refusal)[..FrameHead::BYTES / 2].to_vec()
    }),
    ("a frame without its last byte", |number, refusal| {
        let whole = frame(FrameKind::Reply, number, refusal);
        whole[..whole.len() - 1].to_vec()
    }),
    ("the answer to the call before", |number, refusal| frame(FrameKind::Reply, number - 1, refusal)),
    ("the answer to the call after", |number, refusal| frame(FrameKind::Reply, number + 1, refusal)),
    ("a piece of an answer that flows", |number, refusal| frame(FrameKind::Data, number, refusal)),
    ("a request", |number, refusal| frame(FrameKind::Request, number, refusal)),
];

/// A frame after which its stream ends.
fn frame(kind: FrameKind, number: u32, head: &[u8]) -> Vec<u8> {
    let head_bytes = u32::try_from(head.len()).unwrap();
    let is_last = kind == FrameKind::Reply;
    [&FrameHead { kind, is_last, number, head_bytes }.to_bytes(), head].concat()
}

/// Reads one request, and writes whatever there is to write.
#[derive(Clone, Debug)]
struct Codec;

impl request_response::Codec for Codec {
    type Protocol = StreamProtocol;
    type Request = (u32, CallMessage);
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<(u32, CallMessage)>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut beginning = [0; FrameHead::BYTES];
        io.read_exact(&mut beginning).await?;
        let beginning = FrameHead::from_bytes(beginning).map_err(io::Error::other)?;
        let mut head = vec![0; beginning.head_bytes as usize];
        io.read_exact(&mut head).await?;
        Ok((beginning.number, wire::decode(&head).map_err(io::Error::other)?))
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn write_request<T>(
        &mut self,
        _: &StreamProtocol,
        _: &mut T,
        _: (u32, CallMessage),
    ) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        Err(io::ErrorKind::Unsupported.into())
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, io: &mut T, bytes: Vec<u8>) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&bytes).await
    }
}

/// Answers what its owner has an answer for, and the first copy of each call by the next lie.
async fn serve(owner: Arc<Owner>, mut swarm: Swarm<Behaviour<Codec>>) {
    let refusal = CallReply::Refused(Refusal::new(RefusalCode::ServicePaused, "nothing was served"));
    let refusal = wire::encode(&refusal);
    let mut lies = LIES.iter().cycle();
    loop {
        let SwarmEvent::Behaviour(BehaviourEvent::Calls(Event::Message {
            message: Message::Request { request: (number, message), channel, .. },
            ..
        })) = swarm.select_next_some().await
        else {
            continue;
        };
        let bytes = match owner.word(message) {
            Some(reply) => frame(FrameKind::Reply, number, &wire::encode(&reply)),
            None => lies.next().map_or_else(Vec::new, |(_, lie)| lie(number, &refusal)),
        };
        // Whoever asked may have gone.
        let _ = swarm.behaviour_mut().calls.send_response(channel, bytes);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_answered_out_of_turn_in_part_or_not_at_all_is_resolved_and_paid_once() -> Result<()> {
    let mut world = World::start().await?;
    world.buy(1).await?;
    let (owner, _wallet) = Owner::takes_over(&mut world, BROKEN_OFF).await?;
    // The real one's books end with the first call.
    world.expect_differences(&["X1: "]);
    owner.state.lock().keeps_answers = true;
    owner.tell();
    let protocol = NetworkName::call_stream_protocol;
    let mut swarm = bare::swarm(&owner.key, protocol, ProtocolSupport::Inbound, Codec)?;
    bare::connect(&mut swarm, &world.consumer).await?;
    tokio::spawn(serve(Arc::clone(&owner), swarm));
    eventually("the consumer has met the other owner", async || {
        let peers = world.consumer.control().ask(endpoint::Peers).await?;
        Ok(peers.iter().any(|peer| peer.wallet.0 == world.owner_wallet))
    })
    .await?;

    let mut calls = 1;
    for (what, _) in &LIES {
        expect_served(&world.get("/ok").await?).context(*what)?;
        world.wait_until_decided().await?;
        calls += 1;
        let paid = spent(&world).await?;
        ensure!(paid == cost(calls), "{what}: {paid} for {calls} calls");
    }
    for answer in try_join_all((0..AT_ONCE).map(|_| world.get("/ok"))).await? {
        expect_served(&answer)?;
    }
    world.wait_until_decided().await?;
    calls += AT_ONCE;
    assert_eq!(spent(&world).await?, cost(calls));
    let came = owner.state.lock().calls.len() as u64;
    ensure!(came == calls - 1, "{came} calls came, {calls} were bought");
    Ok(())
}
