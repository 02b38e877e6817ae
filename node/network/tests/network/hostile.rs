//! Peers that break the rules are refused, and cost little.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_bounds::ByteBudget;
use farthing_network::{CallFailure, ClockSkew, Interrupted, NetworkConfig, NetworkLimits};
use farthing_protocol::{
    CallReply, RefusalCode, Signed,
    info::{InfoRequest, InfoResponse},
    limits, wire,
};
use futures::StreamExt;
use libp2p::{Swarm, identity::Keypair, swarm::SwarmEvent};
use tokio::sync::Notify;

use crate::{
    raw::{self, RawBehaviour, Sent, frame, raw_peer, raw_peer_that_calls, wallet_keypair},
    support::{
        DEADLINE, Node, config, network, new_key, record, request, response, status_answer, status_question,
        until,
    },
};

/// What the node answered, read as a reply without a body.
fn reply(answer: &[u8]) -> CallReply {
    wire::decode(&answer[4..]).unwrap()
}

fn refusal_code(answer: Option<Vec<u8>>) -> RefusalCode {
    match reply(&answer.expect("an answer, not a closed stream")) {
        CallReply::Refused(refusal) => refusal.code,
        other => panic!("{other:?}"),
    }
}

async fn node_with_stranger(limits: NetworkLimits) -> (Node, Swarm<RawBehaviour>) {
    let node = Node::start(NetworkConfig { limits, ..config() }).await;
    let mut stranger = raw_peer(wallet_keypair(&new_key()), network().identify_version(), &[]);
    raw::connect(&mut stranger, &node.listening()).await;
    (node, stranger)
}

#[tokio::test]
async fn what_cannot_be_read_is_refused_and_never_reaches_the_node() {
    let (mut node, mut stranger) = node_with_stranger(NetworkLimits::default()).await;
    let too_long = u32::try_from(limits::CALL_HEAD_BYTES_MAX + 1).unwrap().to_be_bytes().to_vec();
    assert_eq!(refusal_code(raw::say(&mut stranger, too_long).await), RefusalCode::TooLarge);
    let nonsense = frame(&[0xff; 100]);
    assert_eq!(refusal_code(raw::say(&mut stranger, nonsense).await), RefusalCode::Malformed);
    let huge_body = frame(&wire::encode(&request(limits::REQUEST_BODY_BYTES_MAX + 1)));
    assert_eq!(refusal_code(raw::say(&mut stranger, huge_body).await), RefusalCode::TooLarge);
    assert!(node.calls.try_recv().is_err());
}

/// Sends bytes and then nothing, for as long as the node has patience.
async fn say_and_fall_silent(
    node: &Node,
    stranger: &mut Swarm<RawBehaviour>,
    bytes: Vec<u8>,
) -> Option<Vec<u8>> {
    let end = Arc::new(Notify::new());
    let said = raw::say(stranger, Sent { silent_until: Some(Arc::clone(&end)), ..bytes.into() });
    let refused = async {
        until("the node gave up", async || node.handle.counters().requests_unread == 1).await;
        end.notify_one();
    };
    tokio::join!(said, refused).0
}

#[tokio::test]
async fn a_slow_head_is_given_up() {
    let limits = NetworkLimits { head_deadline: Duration::from_millis(50), ..NetworkLimits::default() };
    let (node, mut stranger) = node_with_stranger(limits).await;
    let half = frame(&wire::encode(&status_question()))[..6].to_vec();
    let answer = say_and_fall_silent(&node, &mut stranger, half).await;
    assert_eq!(refusal_code(answer), RefusalCode::Malformed);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_given_up() {
    let limits = NetworkLimits { body_idle_max: Duration::from_millis(50), ..NetworkLimits::default() };
    let (mut node, mut stranger) = node_with_stranger(limits).await;
    let lying = frame(&wire::encode(&request(limits::REQUEST_BODY_BYTES_MAX)));
    let answer = say_and_fall_silent(&node, &mut stranger, lying).await;
    assert_eq!(refusal_code(answer), RefusalCode::Malformed);
    assert!(node.calls.try_recv().is_err());
}

#[tokio::test]
async fn a_body_without_room_gets_busy() {
    // A quarter of it is for the requests of strangers.
    let budget = ByteBudget::new(256 * 1024);
    let node = Node::start(NetworkConfig { budget: budget.clone(), ..config() }).await;
    let mut stranger = raw_peer(wallet_keypair(&new_key()), network().identify_version(), &[]);
    raw::connect(&mut stranger, &node.listening()).await;
    let mut large = frame(&wire::encode(&request(256 * 1024)));
    large.resize(large.len() + 128 * 1024, 7);
    assert_eq!(refusal_code(raw::say(&mut stranger, large).await), RefusalCode::Busy);
    until("what it had sent is given back", async || budget.held() == 0).await;
}

#[tokio::test]
async fn five_bad_frames_block_a_peer() {
    let (node, mut stranger) = node_with_stranger(NetworkLimits::default()).await;
    for _ in 0..5 {
        raw::say(&mut stranger, frame(&[0xff; 10])).await;
    }
    while stranger.connected_peers().next().is_some() {
        stranger.select_next_some().await;
    }
    assert_eq!(node.handle.counters().peers_blocked, 1);
    // It is let in no more.
    stranger.dial(node.listening().parse::<libp2p::Multiaddr>().unwrap()).unwrap();
    loop {
        match stranger.select_next_some().await {
            SwarmEvent::ConnectionClosed { .. } | SwarmEvent::OutgoingConnectionError { .. } => break,
            _ => {}
        }
    }
    assert_eq!(node.handle.status().borrow().peers, 0);
}

/// Calls a stranger that speaks `call/1` alone, and answers with these bytes.
async fn call_answered_with(answer: Vec<u8>, limits: NetworkLimits) -> Result<CallReply, CallFailure> {
    let key = new_key();
    let mut stranger = raw_peer(wallet_keypair(&key), network().identify_version(), &answer);
    let address = raw::listen(&mut stranger).await;
    let driving = tokio::spawn(async move {
        loop {
            if let SwarmEvent::Behaviour(raw::RawBehaviourEvent::Call(
                libp2p::request_response::Event::Message {
                    message: libp2p::request_response::Message::Request { channel, .. },
                    ..
                },
            )) = stranger.select_next_some().await
            {
                let _ = stranger.behaviour_mut().call.send_response(channel, Vec::new());
            }
        }
    });
    let consumer = Node::start(NetworkConfig { bootstrap: vec![address], limits, ..config() }).await;
    consumer.connected_to(key.address()).await;
    let answer = consumer.handle.call(key.address(), status_question(), Bytes::new(), DEADLINE).await;
    driving.abort();
    answer.map(|(reply, ..)| reply)
}

#[tokio::test]
async fn a_node_of_before_is_asked_and_answered_as_before() {
    let answer = frame(&wire::encode(&status_answer()));
    assert_eq!(call_answered_with(answer, NetworkLimits::default()).await, Ok(status_answer()));

    let (mut node, mut consumer) = node_with_stranger(NetworkLimits::default()).await;
    let serving = async {
        let call = node.calls.recv().await.unwrap();
        assert_eq!(call.message, status_question());
        call.reply.send(status_answer(), Bytes::new());
    };
    let asked = raw::say(&mut consumer, frame(&wire::encode(&status_question())));
    let (answer, ()) = tokio::join!(asked, serving);
    assert_eq!(reply(&answer.unwrap()), status_answer());
}

#[tokio::test]
async fn an_answer_that_breaks_the_rules_leaves_the_call_unknown() {
    let limits = NetworkLimits { response_body_bytes_max: 1000, ..NetworkLimits::default() };
    let too_long = u32::try_from(limits::CALL_HEAD_BYTES_MAX + 1).unwrap().to_be_bytes().to_vec();
    for (what, bytes) in [
        ("oversize head", too_long),
        ("nonsense", frame(&[0xff; 20])),
        ("oversize body", frame(&wire::encode(&response(1001)))),
    ] {
        let failure = call_answered_with(bytes, limits.clone()).await.unwrap_err();
        assert!(matches!(failure, CallFailure::Unknown(Interrupted::BadAnswer(_))), "{what}: {failure:?}");
    }
    let cut = call_answered_with(frame(&wire::encode(&response(1000))), limits).await.unwrap_err();
    assert!(matches!(cut, CallFailure::Unknown(Interrupted::ConnectionLost(_))), "{cut:?}");
}

#[tokio::test]
async fn a_peer_without_a_wallet_key_is_refused() {
    let node = Node::start(config()).await;
    let mut stranger = raw_peer(Keypair::generate_ed25519(), network().identify_version(), &[]);
    stranger.dial(node.listening().parse::<libp2p::Multiaddr>().unwrap()).unwrap();
    loop {
        match stranger.select_next_some().await {
            SwarmEvent::ConnectionClosed { .. } | SwarmEvent::OutgoingConnectionError { .. } => break,
            _ => {}
        }
    }
    assert_eq!(node.handle.counters().connections_opened, 0);
}

#[tokio::test]
async fn a_peer_of_another_network_is_turned_away() {
    let node = Node::start(config()).await;
    let mut stranger = raw_peer(wallet_keypair(&new_key()), "farthing/other/1".to_owned(), &[]);
    raw::connect(&mut stranger, &node.listening()).await;
    while stranger.connected_peers().next().is_some() {
        stranger.select_next_some().await;
    }
    assert_eq!(node.handle.counters().peers_of_other_networks, 1);
    assert_eq!(node.handle.status().borrow().peers, 0);
    assert!(node.handle.connected_peers().await.is_empty());
}

#[tokio::test]
async fn forged_expired_and_older_records_are_not_kept() {
    let (node, neighbour) = Node::pair().await;
    let push =
        async |record| neighbour.handle.ask(node.address, InfoRequest::Push(vec![record])).await.unwrap();
    let held = async |owner| match neighbour
        .handle
        .ask(node.address, InfoRequest::Records(vec![owner]))
        .await
        .unwrap()
    {
        InfoResponse::Records(records) => {
            records.into_iter().map(|record| record.verify().unwrap().seq).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };

    let key = new_key();
    let owner = key.address();
    let mut expired = record(&key, 5, &[]);
    (expired.issued_secs, expired.expires_secs) = (expired.issued_secs - 100, expired.issued_secs - 1);
    push(Signed::sign(&expired, &key).unwrap()).await;
    assert_eq!(held(owner).await, [], "expired");

    push(Signed::sign(&record(&key, 7, &[]), &key).unwrap()).await;
    assert_eq!(held(owner).await, [7]);
    push(Signed::sign(&record(&key, 6, &[]), &key).unwrap()).await;
    assert_eq!(held(owner).await, [7], "older");

    let mut foreign = record(&key, 8, &[]);
    foreign.network = "other".to_owned();
    push(Signed::sign(&foreign, &key).unwrap()).await;
    assert_eq!(held(owner).await, [7], "another network");

    let mut bytes = wire::encode(&Signed::sign(&record(&key, 9, &[]), &key).unwrap());
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    let answer = push(wire::decode(&bytes).unwrap()).await;
    assert!(matches!(answer, InfoResponse::Refused { .. }), "{answer:?}");
    assert_eq!(held(owner).await, [7], "forged");
}

#[tokio::test]
async fn a_peer_whose_own_record_is_dated_ahead_is_told_by_how_much() {
    let node = Node::start(config()).await;
    let key = new_key();
    let mut stranger = raw_peer(wallet_keypair(&key), network().identify_version(), &[]);
    raw::connect(&mut stranger, &node.listening()).await;
    let mut ahead = record(&key, 1, &[]);
    (ahead.issued_secs, ahead.expires_secs) = (ahead.issued_secs + 7_200, ahead.expires_secs + 7_200);
    let push = InfoRequest::Push(vec![Signed::sign(&ahead, &key).unwrap()]);
    let answer = raw::ask(&mut stranger, frame(&wire::encode(&push))).await.unwrap();
    match wire::decode(&answer[4..]).unwrap() {
        InfoResponse::Refused { words, ahead_secs: Some(secs @ 7_000..=7_200) } => {
            assert!(
                words.starts_with(&format!("the record is dated {secs} s")),
                "for nodes of before: {words}"
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_peer_that_refuses_a_record_for_its_date_shows_that_the_clock_is_ahead() {
    let node = Node::start(config()).await;
    node.handle.publish(0, 0, [0; 32]).await.unwrap();
    let refusal = InfoResponse::Refused { words: String::new(), ahead_secs: Some(7_200) };
    let refusal = frame(&wire::encode(&refusal));
    let mut peer = raw_peer(wallet_keypair(&new_key()), network().identify_version(), &refusal);
    raw::connect(&mut peer, &node.listening()).await;
    let serving = tokio::spawn(raw::serve(peer));
    let status = node.handle.status();
    until("the peer shows something", async || status.borrow().clock.is_some()).await;
    assert_eq!(status.borrow().clock, Some(ClockSkew { ahead_secs: 7_200, peers: 1 }));
    serving.abort();
}

#[tokio::test]
async fn nonsense_on_an_info_stream_is_refused() {
    let (_node, mut stranger) = node_with_stranger(NetworkLimits::default()).await;
    let answer = raw::ask(&mut stranger, frame(&[0xff; 10])).await.unwrap();
    assert!(matches!(wire::decode(&answer[4..]).unwrap(), InfoResponse::Refused { .. }));
    let too_many = InfoRequest::Records(vec![Default::default(); limits::INFO_ITEMS_MAX + 1]);
    let answer = raw::ask(&mut stranger, frame(&wire::encode(&too_many))).await.unwrap();
    assert!(matches!(wire::decode(&answer[4..]).unwrap(), InfoResponse::Refused { .. }));
    let just_enough = InfoRequest::Records(vec![Default::default(); limits::INFO_ITEMS_MAX]);
    let answer = raw::ask(&mut stranger, frame(&wire::encode(&just_enough))).await.unwrap();
    assert_eq!(wire::decode::<InfoResponse>(&answer[4..]).unwrap(), InfoResponse::Records(Vec::new()));
}

/// So many at once, and so many further ones at 16 a second. A slow machine takes two seconds for all of them without a pace, so
/// that fewer would show nothing.
const AT_ONCE: usize = 256;
const FURTHER: usize = 128;
const FURTHER_TAKE: Duration = Duration::from_millis(7_900);

#[tokio::test]
async fn a_stranger_that_asks_without_end_is_answered_at_a_steady_pace() {
    let (_node, mut stranger) = node_with_stranger(NetworkLimits::default()).await;
    let nothing = frame(&wire::encode(&InfoRequest::Records(Vec::new())));
    let begun = Instant::now();
    for _ in 0..AT_ONCE + FURTHER {
        assert!(raw::ask(&mut stranger, nothing.clone()).await.is_some());
    }
    assert!(begun.elapsed() >= FURTHER_TAKE, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_stranger_that_asks_the_directory_without_end_is_answered_at_a_steady_pace() {
    let node = Node::start(config()).await;
    let (protocol, keypair) = (network().kad_protocol(), wallet_keypair(&new_key()));
    let mut stranger = raw_peer_that_calls(protocol, keypair, network().identify_version(), &[]);
    raw::connect(&mut stranger, &node.listening()).await;
    // The length of a message, its type, and the key whose nearest nodes are asked for.
    let find_node = [7, 0x08, 4, 0x12, 3, b'k', b'e', b'y'];
    let begun = Instant::now();
    for _ in 0..AT_ONCE + FURTHER {
        let answer = raw::say(&mut stranger, find_node.to_vec()).await;
        assert!(answer.is_some_and(|answer| !answer.is_empty()));
    }
    assert!(begun.elapsed() >= FURTHER_TAKE, "{:?}", begun.elapsed());
}
