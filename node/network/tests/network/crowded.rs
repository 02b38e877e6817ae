//! Slow peers take nobody's place: one byte a second in, or nothing out, while a peer with a channel keeps calling.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_bounds::ByteBudget;
use farthing_network::{NetworkConfig, NetworkHandle, NetworkLimits};
use farthing_protocol::{
    Address, CallReply, SecretKey,
    call_stream::{FrameHead, FrameKind},
    wire,
};
use futures::StreamExt;
use libp2p::{
    request_response::{Event, Message},
    swarm::SwarmEvent,
};
use tokio::sync::Notify;

use crate::{
    raw::{self, RawBehaviourEvent, Sent, frame, raw_peer_that_calls, wallet_keypair},
    support::{DEADLINE, Node, config, network, new_key, request, until},
};

/// Streams that each hostile wallet keeps open.
const STREAMS: usize = 64;
/// Calls of the honest peer, without and with the others.
const CALLS: usize = 400;

/// The same as the first request on a stream of `call/2`.
fn first_request(head: &[u8]) -> Vec<u8> {
    let head_bytes = u32::try_from(head.len()).unwrap();
    let beginning = FrameHead { kind: FrameKind::Request, is_last: false, number: 1, head_bytes };
    [&beginning.to_bytes()[..], head].concat()
}

/// What a hostile wallet says on each of its streams, and by which protocol.
type Says = (String, Sent);

/// A wallet that has so many streams at any time, and soon begins another one for each that ends.
async fn hostile(to: &str, key: SecretKey, (protocol, sent): Says) {
    let keypair = wallet_keypair(&key);
    let mut swarm = raw_peer_that_calls(protocol, keypair, network().identify_version(), &[]);
    raw::connect(&mut swarm, to).await;
    let peer = *swarm.connected_peers().next().unwrap();
    for _ in 0..STREAMS {
        swarm.behaviour_mut().call.send_request(&peer, sent.clone());
    }
    let (mut ended, mut soon) = (0, tokio::time::interval(Duration::from_millis(100)));
    loop {
        tokio::select! {
            event = swarm.select_next_some() => {
                if let SwarmEvent::Behaviour(RawBehaviourEvent::Call(
                    Event::Message { message: Message::Response { .. }, .. } | Event::OutboundFailure { .. },
                )) = event
                {
                    ended += 1;
                }
            }
            _ = soon.tick() => for _ in 0..std::mem::take(&mut ended) {
                swarm.behaviour_mut().call.send_request(&peer, sent.clone());
            }
        }
    }
}

/// Hostile wallets on a thread of their own, so that what they do themselves is not taken for what they do to others.
struct Crowd {
    end: Arc<Notify>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Crowd {
    fn of(to: &str, all_say: Vec<Says>) -> Self {
        Self::of_wallets(to, all_say.into_iter().map(|says| (new_key(), says)).collect())
    }

    fn of_wallets(to: &str, all_say: Vec<(SecretKey, Says)>) -> Self {
        let (to, end) = (to.to_owned(), Arc::new(Notify::new()));
        let ended = Arc::clone(&end);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let all = all_say.into_iter().map(|(key, says)| hostile(&to, key, says));
                tokio::select! {
                    _ = futures::future::join_all(all) => {}
                    () = ended.notified() => {}
                }
            });
        });
        Self { end, thread: Some(thread) }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.end.notify_one();
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// What the slowest of a hundred calls took: by the clock, and of this thread's time on a processor, which is that of both
/// honest nodes. The first depends on what else the machine does.
#[derive(Clone, Copy, Debug)]
struct P99 {
    clock: Duration,
    processor: Duration,
}

impl P99 {
    fn against(self, quiet: Self) -> String {
        let ratio = |one: Duration, other: Duration| one.as_secs_f64() / other.as_secs_f64();
        let (clock, processor) = (ratio(self.clock, quiet.clock), ratio(self.processor, quiet.processor));
        format!("{self:?}, {clock:.2} times by the clock, {processor:.2} on a processor")
    }
}

/// How long this thread has been on a processor; nothing where the system does not tell.
fn on_processor() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = told.split(' ').next().and_then(|nanos| nanos.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// Calls again and again; each call has to be served.
async fn p99(handle: &NetworkHandle, owner: Address) -> P99 {
    let (mut clock, mut processor) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let (began, used) = (Instant::now(), on_processor());
        let body = Bytes::from_static(b"honest");
        let (reply, answer, _) = handle.call(owner, request(body.len()), body, DEADLINE).await.unwrap();
        assert!(matches!(reply, CallReply::Response(_)), "not served: {reply:?}");
        assert_eq!(answer, "honest");
        clock.push(began.elapsed());
        processor.push(on_processor().saturating_sub(used));
    }
    let slow = |mut all: Vec<Duration>| {
        all.sort_unstable();
        all[CALLS * 99 / 100]
    };
    P99 { clock: slow(clock), processor: slow(processor) }
}

#[tokio::test]
async fn slow_streams_of_strangers_take_no_place_from_a_peer_with_a_channel() {
    // As many as two wallets have.
    let limits = NetworkLimits { inbound_streams_max: 2 * STREAMS, ..NetworkLimits::default() };
    let owner = Node::start(NetworkConfig { limits, ..config() }).await;
    let (address, to) = (owner.address, owner.listening());
    let payer = Node::joining(&[&owner]).await;
    payer.connected_to(address).await;
    owner.handle.favour([payer.address]);
    let _owner = owner.echo();
    let quiet = p99(&payer.handle, address).await;

    let begun = Arc::new(AtomicUsize::new(0));
    let head = wire::encode(&request(1000));
    let trickle = |bytes: Vec<u8>| Sent {
        pause: Some(Duration::from_secs(1)),
        begun: Arc::clone(&begun),
        ..bytes.into()
    };
    let by_each_protocol = vec![
        (network().call_protocol(), trickle(frame(&head))),
        (network().call_stream_protocol(), trickle(first_request(&head))),
    ];
    let never_reads = Sent {
        silent_until: Some(Arc::new(Notify::new())),
        begun: Arc::clone(&begun),
        ..[frame(&wire::encode(&request(400_000))), vec![7; 400_000]].concat().into()
    };
    let slow = Crowd::of(&to, by_each_protocol);
    until("all of them have begun", async || begun.load(Ordering::Relaxed) >= 2 * STREAMS).await;
    let crowded = p99(&payer.handle, address).await;
    let during = begun.load(Ordering::Relaxed) - 2 * STREAMS;
    eprintln!("p99 of {CALLS} calls: quiet {quiet:?}");
    eprintln!(
        "  beside {STREAMS} slow streams of each of two wallets: {}; {during} ended",
        crowded.against(quiet)
    );
    let before = begun.load(Ordering::Relaxed);
    let silent = Crowd::of(&to, vec![(network().call_protocol(), never_reads)]);
    until("all of them have begun", async || begun.load(Ordering::Relaxed) >= before + STREAMS).await;
    let crowded = p99(&payer.handle, address).await;
    eprintln!(
        "  and beside a third one that sends 400 kB on each and reads nothing: {}",
        crowded.against(quiet)
    );
    drop((slow, silent));
}

#[tokio::test]
async fn a_peer_with_a_channel_that_reads_nothing_leaves_memory_for_the_requests_of_others() {
    const MIB: usize = 1024 * 1024;
    // Half of it is for requests.
    let budget = ByteBudget::new(16 * MIB);
    let owner = Node::start(NetworkConfig { budget: budget.clone(), ..config() }).await;
    let (address, to, key) = (owner.address, owner.listening(), new_key());
    let payer = Node::joining(&[&owner]).await;
    payer.connected_to(address).await;
    owner.handle.favour([payer.address, key.address()]);
    // An answer is the request's own memory.
    let _owner = owner.echo();
    let never_reads = Sent {
        silent_until: Some(Arc::new(Notify::new())),
        ..[frame(&wire::encode(&request(MIB))), vec![7; MIB]].concat().into()
    };
    let silent = Crowd::of_wallets(&to, vec![(key, (network().call_protocol(), never_reads))]);
    until("it holds what it may", async || budget.held() >= 3 * MIB).await;
    for _ in 0..20 {
        let body = Bytes::from(vec![3; 2 * MIB]);
        let (reply, answer, _) =
            payer.handle.call(address, request(body.len()), body, DEADLINE).await.unwrap();
        assert!(matches!(reply, CallReply::Response(_)), "not served: {reply:?}");
        assert_eq!(answer.len(), 2 * MIB);
    }
    drop(silent);
}

#[tokio::test]
async fn half_a_request_takes_no_place_among_the_calls() {
    // Two of the places are for strangers.
    let limits = NetworkLimits { inbound_calls_max: 4, ..NetworkLimits::default() };
    let owner = Node::start(NetworkConfig { limits, ..config() }).await;
    let (address, to) = (owner.address, owner.listening());
    let stranger = Node::joining(&[&owner]).await;
    stranger.connected_to(address).await;
    let _owner = owner.echo();
    let begun = Arc::new(AtomicUsize::new(0));
    let halves = Sent {
        pause: Some(Duration::from_secs(1)),
        begun: Arc::clone(&begun),
        ..frame(&wire::encode(&request(1000))).into()
    };
    let slow = Crowd::of(&to, vec![(network().call_protocol(), halves)]);
    until("all of them have begun", async || begun.load(Ordering::Relaxed) >= STREAMS).await;
    p99(&stranger.handle, address).await;
    drop(slow);
}
