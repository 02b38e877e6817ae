//! Slow peers take nobody's place: one byte a second in, or nothing out, while a peer with a channel keeps calling.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_network::NetworkHandle;
use farthing_protocol::{Address, CallReply, wire};
use futures::StreamExt;
use libp2p::{
    request_response::{Event, Message},
    swarm::SwarmEvent,
};
use tokio::{sync::Notify, task::JoinHandle};

use crate::{
    raw::{self, RawBehaviourEvent, Sent, raw_peer, wallet_keypair},
    support::{DEADLINE, Node, config, network, new_key, request, until},
};

/// Streams that each hostile wallet keeps open.
const STREAMS: usize = 64;
/// Calls of the honest peer, without and with the others.
const CALLS: usize = 400;

fn frame(head: &[u8]) -> Vec<u8> {
    [&u32::try_from(head.len()).unwrap().to_be_bytes()[..], head].concat()
}

/// A wallet that has so many streams at any time, and begins another one for each that ends.
async fn hostile(to: &str, sent: Sent) -> JoinHandle<()> {
    let mut swarm = raw_peer(wallet_keypair(&new_key()), network().identify_version(), &[]);
    raw::connect(&mut swarm, to).await;
    let peer = *swarm.connected_peers().next().unwrap();
    tokio::spawn(async move {
        for _ in 0..STREAMS {
            swarm.behaviour_mut().call.send_request(&peer, sent.clone());
        }
        loop {
            if let SwarmEvent::Behaviour(RawBehaviourEvent::Call(
                Event::Message { message: Message::Response { .. }, .. } | Event::OutboundFailure { .. },
            )) = swarm.select_next_some().await
            {
                swarm.behaviour_mut().call.send_request(&peer, sent.clone());
            }
        }
    })
}

/// Calls again and again; each call has to be served. Returns what the slowest of a hundred took.
async fn p99(handle: &NetworkHandle, owner: Address) -> Duration {
    let mut took = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        let body = Bytes::from_static(b"honest");
        let (reply, answer, _) = handle.call(owner, request(body.len()), body, DEADLINE).await.unwrap();
        assert!(matches!(reply, CallReply::Response(_)), "not served: {reply:?}");
        assert_eq!(answer, "honest");
        took.push(began.elapsed());
    }
    took.sort_unstable();
    took[CALLS * 99 / 100]
}

#[tokio::test]
async fn slow_streams_of_strangers_take_no_place_from_a_peer_with_a_channel() {
    let owner = Node::start(config()).await;
    let (address, to) = (owner.address, owner.listening());
    let payer = Node::joining(&[&owner]).await;
    payer.connected_to(address).await;
    owner.handle.favour([payer.address]);
    let _owner = owner.echo();
    let quiet = p99(&payer.handle, address).await;

    let begun = Arc::new(AtomicUsize::new(0));
    let trickle = Sent {
        pause: Some(Duration::from_secs(1)),
        begun: Arc::clone(&begun),
        ..frame(&wire::encode(&request(1000))).into()
    };
    let never_reads = Sent {
        silent_until: Some(Arc::new(Notify::new())),
        begun: Arc::clone(&begun),
        ..[frame(&wire::encode(&request(400_000))), vec![7; 400_000]].concat().into()
    };
    let mut crowd = Vec::new();
    for sent in [trickle.clone(), trickle, never_reads] {
        crowd.push(hostile(&to, sent).await);
    }
    until("all of them have begun", async || begun.load(Ordering::Relaxed) >= 3 * STREAMS).await;
    let crowded = p99(&payer.handle, address).await;
    eprintln!(
        "p99 of {CALLS} calls: quiet {quiet:?}, crowded {crowded:?}, ratio {:.2}",
        crowded.as_secs_f64() / quiet.as_secs_f64()
    );
    crowd.iter().for_each(JoinHandle::abort);
}
