//! Measures calls between two nodes of this process over loopback, 1 KiB each way, with one core for each
//! node: `cargo run --release -p farthing-network --example call_latency`.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_network::{Inbound, Network, NetworkConfig, NetworkHandle};
use farthing_protocol::{
    Address, CallId, CallMessage, CallReply, CallRequest, CallResponse, ChannelId, Outcome, Receipt,
    SecretKey, ServiceId, Signature, Usdc,
    call::{Method, Payment},
    wire::NetworkName,
};
use tokio::task::JoinSet;

const BODY_BYTES: usize = 1024;
const WARM_UP: usize = 500;
const SEQUENTIAL: usize = 5_000;
const CONCURRENT: usize = 64;
const PER_CALLER: usize = 300;
const DEADLINE: Duration = Duration::from_secs(30);

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    for listen in ["/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"] {
        let (owner, mut inbound) = start(1, listen, None).await;
        let bootstrap = owner.status().borrow().listening[0].clone();
        let (consumer, _consumer_inbound) = start(2, listen, Some(bootstrap)).await;
        tokio::spawn(async move {
            while let Some(call) = inbound.calls.recv().await {
                call.reply.send(response(call.body.len()), call.body);
            }
        });
        consumer.status().wait_for(|status| status.peers == 1).await.expect("the network runs");
        measure(listen, consumer, owner.own_address()).await;
    }
}

async fn start(n: u8, listen: &str, bootstrap: Option<String>) -> (NetworkHandle, Inbound) {
    let key = SecretKey::from_bytes(&[n; 32]).expect("a small number is a key");
    let network = NetworkName::new("local-bench").expect("a valid name");
    let config = NetworkConfig {
        listen: vec![listen.to_owned()],
        bootstrap: bootstrap.into_iter().collect(),
        allow_private: true,
        ..NetworkConfig::new(key, network)
    };
    Network::start(config).await.expect("a free port")
}

async fn measure(listen: &str, consumer: NetworkHandle, owner: Address) {
    let body = Bytes::from(vec![7; BODY_BYTES]);
    let mut times = Vec::with_capacity(SEQUENTIAL);
    for n in 0..WARM_UP + SEQUENTIAL {
        let started = Instant::now();
        consumer.call(owner, request(), body.clone(), DEADLINE).await.expect("an answer");
        if n >= WARM_UP {
            times.push(started.elapsed());
        }
    }
    times.sort();
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1000];
    println!("{listen}: one at a time: p50 {:?}, p99 {:?}, max {:?}", at(500), at(990), at(1000));

    let (consumer, started) = (Arc::new(consumer), Instant::now());
    let mut callers = JoinSet::new();
    for _ in 0..CONCURRENT {
        let (consumer, body) = (Arc::clone(&consumer), body.clone());
        callers.spawn(async move {
            for _ in 0..PER_CALLER {
                consumer.call(owner, request(), body.clone(), DEADLINE).await.expect("an answer");
            }
        });
    }
    callers.join_all().await;
    let per_second = (CONCURRENT * PER_CALLER) as f64 / started.elapsed().as_secs_f64();
    println!("{listen}: {CONCURRENT} at a time: {per_second:.0} calls/s");
}

fn request() -> CallMessage {
    CallMessage::Call(CallRequest {
        call_id: CallId::from_bytes([1; 16]),
        service: ServiceId::from_bytes([2; 16]),
        listing_version: 1,
        method: Method::Post,
        path: "/echo".to_owned(),
        params: BTreeMap::new(),
        headers: BTreeMap::new(),
        body_bytes: BODY_BYTES as u64,
        price: Usdc::ZERO,
        deadline_ms: 30_000,
        payment: Payment::Free,
    })
}

fn response(body_bytes: usize) -> CallReply {
    CallReply::Response(CallResponse {
        call_id: CallId::from_bytes([1; 16]),
        status: 200,
        headers: BTreeMap::new(),
        body_bytes: body_bytes as u64,
        receipt: Receipt {
            channel: ChannelId::NONE,
            call_id: CallId::from_bytes([1; 16]),
            request_hash: [0; 32],
            response_hash: [0; 32],
            outcome: Outcome::Answered.code(),
            charged: Usdc::ZERO,
            spent_total: Usdc::ZERO,
            time_secs: 0,
        },
        signature: Signature::from_bytes([0; 65]),
        outcome: Outcome::Answered,
        owner_us: 0,
        upstream_us: 0,
    })
}
