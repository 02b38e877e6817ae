//! Streams that carry one call after the other, with peers that keep to no rule: real libp2p, raw bytes.

mod first;
mod silent;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, CallRequest, Refusal, RefusalCode, SecretKey, ServiceId, Usdc,
    call::{CallStatus, Method, Payment},
    call_stream::{FrameHead, FrameKind},
    wire::{self, NetworkName},
};
use futures::{AsyncReadExt, AsyncWriteExt, StreamExt};
use libp2p::{
    Multiaddr, PeerId, StreamProtocol, SwarmBuilder, identify, noise, swarm::NetworkBehaviour, tcp, yamux,
};
use tokio::{
    sync::{Mutex, mpsc, oneshot},
    time::timeout,
};

use crate::{
    CallFailure, Inbound, Interrupted, Network, NetworkConfig, NetworkHandle, NetworkLimits, identity,
    line::Line,
    streams::{Opening, StreamsBehaviour},
    usage::Usage,
};

const PATIENCE: Duration = Duration::from_secs(30);

fn network() -> NetworkName {
    NetworkName::new("local-test").unwrap()
}

fn key(number: u8) -> SecretKey {
    SecretKey::from_bytes(&[number; 32]).unwrap()
}

fn config(number: u8) -> NetworkConfig {
    NetworkConfig {
        listen: vec!["/ip4/127.0.0.1/tcp/0".to_owned()],
        allow_private: true,
        gossip: false,
        ..NetworkConfig::new(key(number), network())
    }
}

#[derive(NetworkBehaviour)]
struct Behaviour {
    identify: identify::Behaviour,
    call: StreamsBehaviour,
}

/// A peer that opens and takes streams of `call/2`, and does with them what a test wants.
struct Stranger {
    wallet: Address,
    address: String,
    opened: Mutex<mpsc::Receiver<Line>>,
    openings: mpsc::Sender<(PeerId, Opening)>,
}

impl Stranger {
    async fn start(number: u8, dial: Option<&str>) -> Self {
        let keypair = identity::keypair(&key(number)).unwrap();
        let (line, opened) = mpsc::channel(1024);
        let (openings, mut asked) = mpsc::channel::<(PeerId, Opening)>(1024);
        let protocol = StreamProtocol::try_from_owned(network().call_stream_protocol()).unwrap();
        let accept = Arc::new(move |_, stream| drop(line.try_send(stream)));
        let behaviour = Behaviour {
            identify: identify::Behaviour::new(identify::Config::new(
                network().identify_version(),
                keypair.public(),
            )),
            call: StreamsBehaviour::new(protocol, accept, Usage::default()),
        };
        let mut swarm = SwarmBuilder::with_existing_identity(keypair)
            .with_tokio()
            .with_tcp(tcp::Config::new(), noise::Config::new, yamux::Config::default)
            .unwrap()
            .with_behaviour(|_| behaviour)
            .unwrap()
            .with_swarm_config(|config| {
                config
                    .with_substream_upgrade_protocol_override(libp2p::core::upgrade::Version::V1Lazy)
                    .with_idle_connection_timeout(PATIENCE)
            })
            .build();
        swarm.listen_on("/ip4/127.0.0.1/tcp/0".parse().unwrap()).unwrap();
        while swarm.listeners().next().is_none() {
            swarm.select_next_some().await;
        }
        let address = swarm.listeners().next().unwrap().to_string();
        if let Some(node) = dial {
            swarm.dial(node.parse::<Multiaddr>().unwrap()).unwrap();
            while swarm.connected_peers().next().is_none() {
                swarm.select_next_some().await;
            }
        }
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = swarm.select_next_some() => {}
                    opening = asked.recv() => match opening {
                        Some((peer, opening)) => swarm.behaviour_mut().call.open(peer, opening),
                        None => return,
                    },
                }
            }
        });
        Self { wallet: key(number).address(), address, opened: Mutex::new(opened), openings }
    }

    /// A stream that the node opened.
    async fn taken(&self) -> Line {
        timeout(PATIENCE, self.opened.lock().await.recv()).await.expect("a stream").unwrap()
    }

    /// A stream to the node of this key.
    async fn open(&self, number: u8) -> Line {
        let (reply, line) = oneshot::channel();
        let peer = identity::peer_id(&key(number).public_key());
        self.openings.send((peer, Opening(reply))).await.unwrap();
        line.await.unwrap().unwrap()
    }
}

/// A node that knows the stranger and is connected to it, and knows nothing of any call.
async fn node_beside(number: u8, stranger: &Stranger) -> NetworkHandle {
    let bootstrap = vec![stranger.address.clone()];
    let (node, mut inbound) = Network::start(NetworkConfig { bootstrap, ..config(number) }).await.unwrap();
    let met = async {
        while !node.connected_peers().await.contains(&stranger.wallet) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, met).await.expect("they meet");
    tokio::spawn(async move {
        while let Some(call) = inbound.calls.recv().await {
            call.reply.send(CallReply::Status(CallStatus::Unknown), Bytes::new());
        }
    });
    node
}

fn request(call: u8, body: &[u8]) -> CallMessage {
    CallMessage::Call(CallRequest {
        call_id: CallId::from_bytes([call; 16]),
        service: ServiceId::from_bytes([2; 16]),
        listing_version: 1,
        method: Method::Post,
        path: "/echo".to_owned(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body_bytes: body.len() as u64,
        price: Usdc::ZERO,
        deadline_ms: 20_000,
        payment: Payment::Free,
    })
}

fn question(call: u8) -> CallMessage {
    CallMessage::Status(CallId::from_bytes([call; 16]))
}

fn frame(kind: FrameKind, is_last: bool, number: u32, head: &[u8], body: &[u8]) -> Vec<u8> {
    let head_bytes = u32::try_from(head.len()).unwrap();
    [&FrameHead { kind, is_last, number, head_bytes }.to_bytes(), head, body].concat()
}

fn reply(number: u32, is_last: bool) -> Vec<u8> {
    frame(FrameKind::Reply, is_last, number, &wire::encode(&CallReply::Status(CallStatus::Unknown)), &[])
}

async fn send(line: &mut Line, bytes: &[u8]) {
    line.write_all(bytes).await.unwrap();
    line.flush().await.unwrap();
}

/// Reads one frame that has no body: where it begins, and its head.
async fn read_frame(line: &mut Line) -> Option<(FrameHead, Vec<u8>)> {
    let mut beginning = [0; FrameHead::BYTES];
    line.read_exact(&mut beginning).await.ok()?;
    let beginning = FrameHead::from_bytes(beginning).unwrap();
    let mut head = vec![0; beginning.head_bytes as usize];
    line.read_exact(&mut head).await.ok()?;
    Some((beginning, head))
}

async fn read_reply(line: &mut Line) -> Option<(FrameHead, CallReply)> {
    let (beginning, head) = read_frame(line).await?;
    Some((beginning, wire::decode(&head).unwrap()))
}

async fn ask(node: &NetworkHandle, owner: &Stranger) -> Result<CallReply, CallFailure> {
    let asked = node.call(owner.wallet, question(1), Bytes::new(), PATIENCE).await;
    asked.map(|(reply, ..)| reply)
}

/// Answers the first question on a new stream as it should, so that the stream rests.
async fn answer_one(owner: &Stranger) -> Line {
    let mut line = owner.taken().await;
    assert_eq!(read_frame(&mut line).await.unwrap().0.number, 1);
    send(&mut line, &reply(1, false)).await;
    line
}

async fn after_one_call(node: &NetworkHandle, owner: &Stranger) -> Line {
    let (answer, line) = tokio::join!(ask(node, owner), answer_one(owner));
    answer.unwrap();
    line
}

/// Waits until all that the stranger sent has come to the node of this key: an exchange over the same connection comes
/// after it.
async fn has_come(stranger: &Stranger, number: u8) {
    let mut line = stranger.open(number).await;
    send(&mut line, &frame(FrameKind::Request, false, 1, &wire::encode(&question(1)), &[])).await;
    read_reply(&mut line).await.unwrap();
}

#[tokio::test]
async fn an_answer_that_is_cut_at_any_byte_is_none_and_the_next_call_takes_another_stream() {
    let owner = Stranger::start(1, None).await;
    let node = node_beside(2, &owner).await;
    let whole = reply(2, false);
    for bytes in 0..=whole.len() {
        let mut line = after_one_call(&node, &owner).await;
        let cut = async {
            assert_eq!(read_frame(&mut line).await.unwrap().0.number, 2, "on the same stream");
            line.write_all(&whole[..bytes]).await.unwrap();
            line.close().await.unwrap();
        };
        let (answer, ()) = tokio::join!(ask(&node, &owner), cut);
        match answer {
            Ok(_) => assert_eq!(bytes, whole.len()),
            Err(CallFailure::Unknown(Interrupted::NoAnswer)) => assert!(bytes < FrameHead::BYTES, "{bytes}"),
            Err(CallFailure::Unknown(_)) => assert!(bytes < whole.len(), "{bytes}"),
            Err(never) => panic!("{bytes}: {never}"),
        }
    }
}

#[tokio::test]
async fn a_request_that_is_cut_at_any_byte_is_not_served() {
    const OWNER: u8 = 3;
    let (node, Inbound { mut calls, .. }) = Network::start(config(OWNER)).await.unwrap();
    let address = node.status().borrow().listening[0].clone();
    let consumer = Stranger::start(4, Some(&address)).await;
    let (seen, mut served) = mpsc::channel(4);
    tokio::spawn(async move {
        while let Some(call) = calls.recv().await {
            if let CallMessage::Call(request) = &call.message {
                seen.try_send((request.call_id, call.body.clone())).unwrap();
            }
            call.reply.send(CallReply::Status(CallStatus::Unknown), Bytes::new());
        }
    });
    let body = b"body";
    let whole = frame(FrameKind::Request, false, 2, &wire::encode(&request(7, body)), body);
    for bytes in 0..=whole.len() {
        let mut line = consumer.open(OWNER).await;
        let first = frame(FrameKind::Request, false, 1, &wire::encode(&question(9)), &[]);
        send(&mut line, &first).await;
        let (beginning, _) = read_reply(&mut line).await.unwrap();
        assert_eq!((beginning.number, beginning.is_last), (1, false));
        line.write_all(&whole[..bytes]).await.unwrap();
        line.close().await.unwrap();
        let answer = read_reply(&mut line).await;
        assert_eq!(answer.is_some(), bytes == whole.len(), "{bytes}: {answer:?}");
    }
    assert_eq!(served.recv().await.unwrap(), (CallId::from_bytes([7; 16]), Bytes::from_static(body)));
    assert!(served.try_recv().is_err(), "the whole one alone");
}

#[tokio::test]
async fn replies_that_nobody_waits_for_are_believed_by_no_later_call() {
    let owner = Stranger::start(5, None).await;
    let node = node_beside(6, &owner).await;
    let refusal = wire::encode(&CallReply::Refused(Refusal::new(RefusalCode::Busy, "no")));
    // What comes while the stream rests makes it useless, also when it is numbered for the next call.
    for stray in [reply(1, false), frame(FrameKind::Reply, false, 2, &refusal, &[]), vec![0]] {
        let mut line = after_one_call(&node, &owner).await;
        send(&mut line, &stray).await;
        has_come(&owner, 6).await;
        let (answer, line) = tokio::join!(ask(&node, &owner), answer_one(&owner));
        assert_eq!(answer.unwrap(), CallReply::Status(CallStatus::Unknown));
        drop(line);
        has_come(&owner, 6).await;
    }
}

#[tokio::test]
async fn an_answer_to_another_request_or_of_another_kind_leaves_the_call_in_doubt() {
    let owner = Stranger::start(7, None).await;
    let node = node_beside(8, &owner).await;
    let head = wire::encode(&CallReply::Status(CallStatus::Unknown));
    for answer in [
        reply(1, false),
        reply(3, false),
        frame(FrameKind::Request, false, 2, &head, &[]),
        frame(FrameKind::Data, false, 2, &head, &[]),
        frame(FrameKind::End, true, 2, &head, &[]),
        [&[0, 9], &reply(2, false)[2..]].concat(),
    ] {
        let mut line = after_one_call(&node, &owner).await;
        let lie = async {
            read_frame(&mut line).await.unwrap();
            send(&mut line, &answer).await;
            // The node gives the stream up.
            assert!(read_frame(&mut line).await.is_none());
        };
        let (answered, ()) = tokio::join!(ask(&node, &owner), lie);
        let Err(CallFailure::Unknown(Interrupted::BadAnswer(_))) = answered else {
            panic!("{answer:?} brought {answered:?}");
        };
    }
}

#[tokio::test]
async fn a_stream_whose_owner_takes_no_more_or_has_ended_it_carries_no_other_call() {
    let owner = Stranger::start(9, None).await;
    let node = node_beside(10, &owner).await;
    let last = async {
        let mut line = owner.taken().await;
        read_frame(&mut line).await.unwrap();
        send(&mut line, &reply(1, true)).await;
        line
    };
    // The stream stays open, and the next call takes another one all the same.
    let (answer, _line) = tokio::join!(ask(&node, &owner), last);
    answer.unwrap();
    let mut line = after_one_call(&node, &owner).await;
    line.close().await.unwrap();
    drop(line);
    has_come(&owner, 10).await;
    let _line = after_one_call(&node, &owner).await;
    assert_eq!(node.counters().calls_unknown, 0);
    assert_eq!(node.counters().call_streams_opened, 3);
}

#[tokio::test]
async fn after_an_answer_that_was_lost_no_stream_of_before_is_taken() {
    let owner = Stranger::start(17, None).await;
    let node = node_beside(18, &owner).await;
    // Two streams rest.
    let [first, second] = [(); 2].map(|()| ask(&node, &owner));
    let both = async {
        let (mut one, mut other) = (owner.taken().await, owner.taken().await);
        for line in [&mut one, &mut other] {
            read_frame(line).await.unwrap();
            send(line, &reply(1, false)).await;
        }
        [one, other]
    };
    let (first, second, mut lines) = tokio::join!(first, second, both);
    first.and(second).unwrap();
    let lost = async {
        let [one, other] = &mut lines;
        tokio::select! {
            _ = read_frame(one) => one.close().await.unwrap(),
            _ = read_frame(other) => other.close().await.unwrap(),
        }
    };
    let (answer, ()) = tokio::join!(ask(&node, &owner), lost);
    assert!(matches!(answer, Err(CallFailure::Unknown(Interrupted::NoAnswer))), "{answer:?}");
    let (answer, _line) = tokio::join!(ask(&node, &owner), answer_one(&owner));
    answer.unwrap();
    assert_eq!(node.counters().call_streams_opened, 3);
}

#[tokio::test]
async fn a_stream_is_not_taken_after_half_of_the_rest_that_owners_allow() {
    let owner = Stranger::start(11, None).await;
    let node = node_beside(12, &owner).await;
    let _line = after_one_call(&node, &owner).await;
    let (kept, now) = (&node.0.kept, std::time::Instant::now());
    let half = NetworkLimits::default().stream_rest_max / 2;
    let mut taken = kept.take(owner.wallet, now + half / 2).expect("a stream that rested for a while");
    taken.line_mut().rest();
    kept.keep(owner.wallet, taken, now);
    assert!(kept.take(owner.wallet, now + half).is_none());
    assert!(kept.take(owner.wallet, now).is_none(), "it was dropped");
    let _line = after_one_call(&node, &owner).await;
    kept.sweep(std::time::Instant::now() + half);
    assert!(kept.take(owner.wallet, std::time::Instant::now()).is_none(), "and without being asked for");
}

#[tokio::test]
async fn requests_that_come_ahead_are_answered_in_order_and_one_at_a_time() {
    const OWNER: u8 = 13;
    let (node, Inbound { mut calls, .. }) = Network::start(config(OWNER)).await.unwrap();
    let address = node.status().borrow().listening[0].clone();
    let consumer = Stranger::start(14, Some(&address)).await;
    let mut line = consumer.open(OWNER).await;
    for number in 1..=3_u8 {
        let ahead = frame(FrameKind::Request, false, number.into(), &wire::encode(&question(number)), &[]);
        line.write_all(&ahead).await.unwrap();
    }
    line.flush().await.unwrap();
    for number in 1..=3_u8 {
        let call = timeout(PATIENCE, calls.recv()).await.unwrap().unwrap();
        assert_eq!(call.message, question(number));
        assert!(calls.try_recv().is_err(), "the next one waits");
        call.reply.send(CallReply::Status(CallStatus::Running), Bytes::new());
        assert_eq!(read_reply(&mut line).await.unwrap().0.number, u32::from(number));
    }
    // A number that was used, one that is skipped, and a frame that is reserved end the stream.
    for wrong in [
        frame(FrameKind::Request, false, 1, &wire::encode(&question(1)), &[]),
        frame(FrameKind::Request, false, 3, &wire::encode(&question(3)), &[]),
        frame(FrameKind::Voucher, false, 2, &[], &[]),
    ] {
        let mut line = consumer.open(OWNER).await;
        let first = frame(FrameKind::Request, false, 1, &wire::encode(&question(1)), &[]);
        send(&mut line, &[first, wrong].concat()).await;
        let call = timeout(PATIENCE, calls.recv()).await.unwrap().unwrap();
        call.reply.send(CallReply::Status(CallStatus::Running), Bytes::new());
        assert!(!read_reply(&mut line).await.unwrap().0.is_last);
        if let Some((beginning, refused)) = read_reply(&mut line).await {
            assert!(
                beginning.is_last
                    && matches!(&refused, CallReply::Refused(why) if why.code == RefusalCode::Malformed)
            );
            assert!(read_reply(&mut line).await.is_none());
        }
        assert!(calls.try_recv().is_err());
    }
}

#[tokio::test]
async fn streams_at_rest_take_no_place_of_calls_and_hold_up_no_shutdown() {
    const OWNER: u8 = 15;
    let limits = NetworkLimits {
        inbound_streams_max: 8,
        inbound_streams_per_peer_max: 8,
        drain_deadline: 10 * PATIENCE,
        ..NetworkLimits::default()
    };
    let (node, Inbound { mut calls, .. }) =
        Network::start(NetworkConfig { limits, ..config(OWNER) }).await.unwrap();
    tokio::spawn(async move {
        while let Some(call) = calls.recv().await {
            call.reply.send(CallReply::Status(CallStatus::Running), Bytes::new());
        }
    });
    let address = node.status().borrow().listening[0].clone();
    let mut silent = Vec::new();
    for (number, streams) in [(20, 8), (21, 8), (22, 8), (23, super::inbound::RESTING_PER_PEER_MAX + 2)] {
        let stranger = Stranger::start(number, Some(&address)).await;
        for n in 0..streams {
            let mut line = stranger.open(OWNER).await;
            let first = frame(FrameKind::Request, false, 1, &wire::encode(&question(1)), &[]);
            send(&mut line, &first).await;
            let (beginning, answer) = read_reply(&mut line).await.unwrap();
            assert_eq!(answer, CallReply::Status(CallStatus::Running), "stream {} of {number}", silent.len());
            assert_eq!(
                beginning.is_last,
                n >= super::inbound::RESTING_PER_PEER_MAX,
                "a place for {n} to rest"
            );
            silent.push(line);
        }
        // It stays connected.
        std::mem::forget(stranger.openings.clone());
    }
    timeout(PATIENCE, node.shutdown()).await.expect("nothing is under way");
}
