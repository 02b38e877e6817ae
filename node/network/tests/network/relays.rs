//! Owners that nobody can connect to: reached through relays, which are bounded and replaced, and directly as soon as that
//! is possible.

use std::time::Duration;

use bytes::Bytes;
use farthing_network::{
    CallFailure, NetworkConfig, NotStarted, RELAYED_BODY_BYTES_MAX, ReachConfig, RelayConfig,
};
use farthing_protocol::{Address, CallReply, NodeRecord, Verified, record::FLAG_ACCEPTS_CALLS};
use libp2p::{identify, relay, swarm::NetworkBehaviour};

use crate::{
    proxy::Proxy,
    raw::{self, wallet_keypair},
    round_trips::port_of,
    support::{
        DEADLINE, Node, QUIC, config, network, new_key, pattern, request, reserved_port, status_question,
        until,
    },
};

/// Tests every few moments; nobody is too often asked, and what failed is tried again soon.
pub(crate) fn quick() -> NetworkConfig {
    let reach = ReachConfig {
        first: Duration::from_millis(500),
        interval: Duration::from_secs(2),
        retry: Duration::from_millis(200),
        debounce: Duration::from_millis(20),
        asker_interval: Duration::from_millis(1),
        ..ReachConfig::default()
    };
    NetworkConfig { reach, ..config() }
}

/// One that says where it is, as who is known to be reachable.
pub(crate) async fn relaying(bounds: RelayConfig, others: &[&Node]) -> Node {
    let (_reserved, port) = reserved_port();
    let address = format!("/ip4/127.0.0.1/tcp/{port}");
    let bootstrap = others.iter().map(|other| other.listening()).collect();
    let (listen, announce) = (vec![address.clone(), QUIC.to_owned()], vec![address]);
    Node::start(NetworkConfig { listen, announce, bootstrap, relay: bounds, ..quick() }).await
}

/// One that nobody can connect to, connected to these.
async fn hidden(others: &[&Node]) -> Node {
    let bootstrap = others.iter().map(|other| other.listening()).collect();
    let node = Node::start(NetworkConfig { listen: Vec::new(), bootstrap, ..quick() }).await;
    for other in others {
        node.connected_to(other.address).await;
    }
    node
}

/// The relays through which the node is reached, once there are so many.
async fn relays_of(node: &Node, count: usize) -> Vec<Address> {
    let mut status = node.handle.status();
    let enough = status.wait_for(|status| status.reachability.relays.through.len() == count);
    match tokio::time::timeout(Duration::from_secs(30), enough).await {
        Ok(status) => status.unwrap().reachability.relays.through.clone(),
        Err(_) => panic!("never {count} relays: {:#?}", node.handle.status().borrow().reachability),
    }
}

/// Sells, and waits until it is reached through so many relays and the others know of that.
pub(crate) async fn sells_through(owner: &Node, count: usize, others: &[&Node]) -> Vec<Address> {
    owner.handle.publish(FLAG_ACCEPTS_CALLS, 1, [0; 32]).await.unwrap();
    let through = relays_of(owner, count).await;
    for other in others {
        let of_owner = |record: &Verified<NodeRecord>| {
            record.signer() == owner.address && record.addresses.len() == count
        };
        until("others know the ways", async || other.handle.records().iter().any(of_owner)).await;
    }
    through
}

/// The ways over which `node` is connected to `other`.
async fn ways(node: &Node, other: Address) -> Vec<String> {
    let peers = node.handle.peers().await;
    peers.into_iter().find(|peer| peer.address == other).map_or_else(Vec::new, |peer| peer.addresses)
}

fn is_circuit(way: &str) -> bool {
    way.contains("/p2p-circuit")
}

pub(crate) async fn call(
    consumer: &Node,
    owner: Address,
    body: &Bytes,
) -> Result<(CallReply, Bytes), CallFailure> {
    let called = consumer.handle.call(owner, request(body.len()), body.clone(), DEADLINE).await;
    called.map(|(reply, body, _)| (reply, body))
}

/// Calls until it succeeds: the record with the new ways has to arrive first.
pub(crate) async fn call_until_answered(consumer: &Node, owner: Address) {
    let body = pattern(1000);
    until("the owner answers", async || {
        call(consumer, owner, &body).await.is_ok_and(|(_, answer)| answer == body)
    })
    .await;
}

#[tokio::test]
async fn an_owner_that_nobody_can_connect_to_is_called_through_two_relays_that_were_tested() {
    let first = relaying(RelayConfig::default(), &[]).await;
    let second = relaying(RelayConfig::default(), &[&first]).await;
    let owner = hidden(&[&first, &second]).await;
    let mut through = sells_through(&owner, 2, &[&first, &second]).await;
    through.sort_unstable();
    let mut relays = [first.address, second.address];
    relays.sort_unstable();
    assert_eq!(through, relays);
    let status = owner.handle.status().borrow().clone();
    assert_eq!(status.external.iter().filter(|address| is_circuit(address)).count(), 2, "{status:?}");
    assert!(
        status.listening.is_empty() && status.ports.is_empty(),
        "a relay's port is not the node's: {status:?}"
    );

    let consumer = hidden(&[&first, &second]).await;
    let wallet = owner.address;
    let owner = owner.echo();
    call_until_answered(&consumer, wallet).await;
    let (sent, received) = (consumer.handle.counters(), owner.counters());
    assert!(sent.calls_sent_relayed > 0 && received.calls_received_relayed > 0, "{sent:?} {received:?}");
    assert_eq!((sent.calls_sent_directly, received.calls_received_directly), (0, 0));
    consumer.connected_to(wallet).await;
    let ways = ways(&consumer, wallet).await;
    assert!(!ways.is_empty() && ways.iter().all(|way| is_circuit(way)), "{ways:?}");
    let circuits = [&first, &second].map(|relay| relay.handle.counters().relay_circuits);
    assert!(circuits.iter().sum::<u64>() >= 3, "two tests and the consumer: {circuits:?}");
}

/// A relay can tell the owner's own test by where it comes from, and drop everybody else.
#[tokio::test]
async fn an_owner_asks_another_relay_when_nobody_who_paid_came_through_one() {
    let first = relaying(RelayConfig::default(), &[]).await;
    let second = relaying(RelayConfig::default(), &[&first]).await;
    let third = relaying(RelayConfig::default(), &[&first, &second]).await;
    let relays = [&first, &second, &third];
    let bootstrap = relays.iter().map(|relay| relay.listening()).collect();
    let relay = RelayConfig { unproven_max: Duration::from_secs(1), ..RelayConfig::default() };
    let owner = Node::start(NetworkConfig { listen: Vec::new(), bootstrap, relay, ..quick() }).await;
    for relay in relays {
        owner.connected_to(relay.address).await;
    }
    owner.handle.publish(FLAG_ACCEPTS_CALLS, 1, [0; 32]).await.unwrap();
    until("each gave a place", async || {
        relays.iter().all(|relay| relay.handle.counters().relay_reservations > 0)
    })
    .await;
}

#[tokio::test]
async fn whoever_only_buys_or_can_be_reached_takes_no_place() {
    let first = relaying(RelayConfig::default(), &[]).await;
    let second = relaying(RelayConfig::default(), &[&first]).await;
    let consumer = hidden(&[&first, &second]).await;
    let reachable = Node::start(NetworkConfig {
        bootstrap: vec![first.listening(), second.listening()],
        relay: RelayConfig { serves: false, ..RelayConfig::default() },
        ..quick()
    })
    .await;
    reachable.handle.publish(FLAG_ACCEPTS_CALLS, 1, [0; 32]).await.unwrap();
    let mut status = reachable.handle.status();
    status.wait_for(|status| status.reachability.is_reachable()).await.unwrap();
    // Long enough for somebody who wants a place to have one.
    let owner = hidden(&[&first, &second]).await;
    sells_through(&owner, 2, &[]).await;
    for node in [&consumer, &reachable] {
        assert!(!node.handle.status().borrow().reachability.relays.is_sought);
    }
    let places: u64 = [&first, &second].map(|relay| relay.handle.counters().relay_reservations).iter().sum();
    assert_eq!(places, 2, "the owner's");
}

#[tokio::test]
async fn a_relay_gives_no_more_places_than_it_has_and_none_when_it_is_off() {
    let one = RelayConfig { reservations_max: 1, ..RelayConfig::default() };
    let small = relaying(one, &[]).await;
    let off = relaying(RelayConfig { serves: false, ..RelayConfig::default() }, &[&small]).await;
    let first = hidden(&[&small, &off]).await;
    assert_eq!(sells_through(&first, 1, &[]).await, [small.address]);
    let second = hidden(&[&small, &off]).await;
    second.handle.publish(FLAG_ACCEPTS_CALLS, 1, [0; 32]).await.unwrap();
    let mut status = second.handle.status();
    status.wait_for(|status| status.reachability.relays.failed == 1).await.unwrap();
    let counters = small.handle.counters();
    assert_eq!(counters.relay_reservations, 1);
    assert!(counters.relay_refusals >= 1, "{counters:?}");
    assert_eq!(off.handle.counters().relay_reservations, 0);
    assert_eq!(
        first.handle.status().borrow().reachability.relays.through,
        [small.address],
        "it keeps its place"
    );
}

/// The owner's own test is the first that asks to be led to it.
#[tokio::test]
async fn a_relay_leads_nobody_to_a_guest_that_has_as_many_as_it_may() {
    let bounds = RelayConfig { circuits_per_guest_max: 0, ..RelayConfig::default() };
    let relay = relaying(bounds, &[]).await;
    let owner = hidden(&[&relay]).await;
    owner.handle.publish(FLAG_ACCEPTS_CALLS, 1, [0; 32]).await.unwrap();
    let mut status = owner.handle.status();
    let refused = status.wait_for(|status| status.reachability.relays.failed == 1);
    let refused =
        tokio::time::timeout(Duration::from_secs(30), refused).await.expect("never refused").unwrap();
    assert!(refused.reachability.relays.through.is_empty());
    let counters = relay.handle.counters();
    assert_eq!((counters.relay_reservations, counters.relay_circuits), (1, 0));
    assert!(counters.relay_refusals >= 1, "{counters:?}");
}

#[tokio::test]
async fn a_call_that_a_relay_cuts_off_is_undecided_and_the_next_one_gets_through() {
    // A call of the largest body is more than half of it, both ways together.
    let bounds = RelayConfig { circuit_bytes_max: 192 * 1024, ..RelayConfig::default() };
    let relay = relaying(bounds, &[]).await;
    let owner = hidden(&[&relay]).await;
    sells_through(&owner, 1, &[&relay]).await;
    let consumer = hidden(&[&relay]).await;
    let wallet = owner.address;
    let _owner = owner.echo();
    call_until_answered(&consumer, wallet).await;
    let body = pattern(RELAYED_BODY_BYTES_MAX);
    let mut ends = Vec::new();
    for _ in 0..6 {
        ends.push(call(&consumer, wallet, &body).await.map(|(_, answer)| answer.len()));
    }
    assert!(ends.contains(&Ok(RELAYED_BODY_BYTES_MAX)), "{ends:?}");
    assert!(ends.iter().any(|end| matches!(end, Err(CallFailure::Unknown(_)))), "{ends:?}");
    call_until_answered(&consumer, wallet).await;
}

/// A call has arrived at its owner through a relay when the relay's line to the consumer `fails`.
async fn is_undecided_when_the_relay(fails: impl FnOnce(&Proxy)) {
    let relay = relaying(RelayConfig::default(), &[]).await;
    let mut owner = hidden(&[&relay]).await;
    sells_through(&owner, 1, &[&relay]).await;
    let listening = relay.handle.status().borrow().listening.clone();
    let proxy = Proxy::start(port_of(listening.iter().find(|way| way.contains("/tcp/")).unwrap())).await;
    let (listen, bootstrap) = (Vec::new(), vec![proxy.address()]);
    let consumer = Node::start(NetworkConfig { listen, bootstrap, ..quick() }).await;
    consumer.connected_to(relay.address).await;
    until("the owner is reached", async || consumer.handle.connect(owner.address).await.is_ok()).await;
    assert!(ways(&consumer, owner.address).await.iter().all(|way| is_circuit(way)));

    let deadline = Duration::from_secs(300);
    let call = consumer.handle.call(owner.address, status_question(), Bytes::new(), deadline);
    let failing = async {
        let inbound = owner.calls.recv().await.unwrap();
        fails(&proxy);
        inbound
    };
    let (result, _inbound) = tokio::join!(call, failing);
    let failure = result.unwrap_err();
    assert!(matches!(failure, CallFailure::Unknown(_)), "{failure:?}");
    assert!(owner.calls.try_recv().is_err(), "it was sent once");
}

#[tokio::test]
async fn a_call_whose_relay_dies_under_way_is_undecided_and_was_sent_once() {
    is_undecided_when_the_relay(Proxy::cut).await;
}

#[tokio::test]
async fn a_call_whose_relay_stalls_is_undecided_long_before_its_deadline_and_was_sent_once() {
    is_undecided_when_the_relay(Proxy::go_dead).await;
}

#[tokio::test]
async fn what_is_too_large_for_a_relay_is_not_sent_and_said_so() {
    let relay = relaying(RelayConfig::default(), &[]).await;
    let owner = hidden(&[&relay]).await;
    sells_through(&owner, 1, &[&relay]).await;
    let consumer = hidden(&[&relay]).await;
    let wallet = owner.address;
    let _owner = owner.echo();
    call_until_answered(&consumer, wallet).await;
    let largest = pattern(RELAYED_BODY_BYTES_MAX);
    assert_eq!(call(&consumer, wallet, &largest).await.unwrap().1, largest);
    let bytes = RELAYED_BODY_BYTES_MAX + 1;
    let refused = call(&consumer, wallet, &pattern(bytes)).await.unwrap_err();
    assert_eq!(refused, CallFailure::NeverStarted(NotStarted::Relayed { peer: wallet, bytes }));
    let words = refused.to_string();
    assert!(
        words.contains("carries bodies of at most 65536 bytes") && words.contains("forward port"),
        "{words}"
    );
}

#[tokio::test]
async fn catalogs_are_not_compared_through_a_relay() {
    let relay = relaying(RelayConfig::default(), &[]).await;
    let mut owner = hidden(&[&relay]).await;
    sells_through(&owner, 1, &[&relay]).await;
    let consumer = hidden(&[&relay]).await;
    let wallet = owner.address;
    until("the consumer is connected", async || consumer.handle.sync(wallet).await.is_ok()).await;
    assert!(ways(&consumer, wallet).await.iter().all(|way| is_circuit(way)));
    let mut session = consumer.handle.sync(wallet).await.unwrap();
    assert_eq!(session.recv().await, None);
    assert!(owner.syncs.try_recv().is_err(), "the owner was asked");
}

#[tokio::test]
async fn a_relay_that_dies_is_replaced_and_callers_come_through_the_others() {
    let first = relaying(RelayConfig::default(), &[]).await;
    let second = relaying(RelayConfig::default(), &[&first]).await;
    let third = relaying(RelayConfig::default(), &[&first, &second]).await;
    let owner = hidden(&[&first, &second, &third]).await;
    let before = sells_through(&owner, 2, &[&first, &second, &third]).await;
    let relays = [first, second, third];
    let dying = relays.iter().find(|relay| relay.address == before[0]).unwrap();
    dying.handle.shutdown().await;
    let dead = dying.address;
    let mut status = owner.handle.status();
    let replaced = status.wait_for(|status| {
        let through = &status.reachability.relays.through;
        through.len() == 2 && !through.contains(&dead)
    });
    tokio::time::timeout(Duration::from_secs(30), replaced).await.expect("never replaced").unwrap();
    let alive: Vec<&Node> = relays.iter().filter(|relay| relay.address != dead).collect();
    let consumer = hidden(&alive).await;
    let wallet = owner.address;
    let _owner = owner.echo();
    call_until_answered(&consumer, wallet).await;
}

/// A relay that gives places to everybody, and leads nobody to them.
#[derive(NetworkBehaviour)]
struct LyingRelay {
    identify: identify::Behaviour,
    relay: relay::Behaviour,
}

/// Serves until its task is aborted. Where it listens.
async fn lie() -> String {
    let keypair = wallet_keypair(&new_key());
    let bounds = relay::Config { max_circuits: 0, ..relay::Config::default() };
    let relay = relay::Behaviour::new(keypair.public().to_peer_id(), bounds);
    let version = network().identify_version();
    let mut swarm = raw::swarm(keypair, version, |identify| LyingRelay { identify, relay });
    let address = raw::listen(&mut swarm).await;
    swarm.add_external_address(address.parse().unwrap());
    tokio::spawn(raw::drive(swarm));
    address
}

#[tokio::test]
async fn a_relay_that_lies_is_never_published_and_another_one_is_used() {
    let liar = lie().await;
    let honest = relaying(RelayConfig::default(), &[]).await;
    let bootstrap = vec![liar.clone(), honest.listening()];
    let owner = Node::start(NetworkConfig { listen: Vec::new(), bootstrap, ..quick() }).await;
    let mut status = owner.handle.status();
    owner.handle.publish(FLAG_ACCEPTS_CALLS, 1, [0; 32]).await.unwrap();
    let found_out = status.wait_for(|status| {
        let relays = &status.reachability.relays;
        assert!(!status.external.iter().any(|address| address.starts_with(&liar)), "{status:?}");
        relays.failed == 1 && relays.through == [honest.address]
    });
    tokio::time::timeout(Duration::from_secs(60), found_out).await.expect("never found out").unwrap();
}

/// The consumer can be connected to, and tells nobody but the relay where.
#[tokio::test]
async fn a_direct_connection_takes_the_place_of_the_one_through_a_relay() {
    let relay = relaying(RelayConfig::default(), &[]).await;
    let owner = hidden(&[&relay]).await;
    sells_through(&owner, 1, &[&relay]).await;
    let tests = relay.handle.counters().relay_circuits;
    let quic =
        relay.handle.status().borrow().listening.iter().find(|way| way.contains("quic")).cloned().unwrap();
    let consumer = NetworkConfig { listen: vec![QUIC.to_owned()], bootstrap: vec![quic], ..quick() };
    let consumer = Node::start(consumer).await;
    consumer.connected_to(relay.address).await;
    let wallet = owner.address;
    let owner = owner.echo();
    call_until_answered(&consumer, wallet).await;
    until("a direct connection was made", async || {
        ways(&consumer, wallet).await.iter().any(|way| !is_circuit(way))
    })
    .await;
    assert!(relay.handle.counters().relay_circuits > tests, "it began through the relay");
    until("both sides connected past their routers, had there been any", async || {
        owner.counters().punched + consumer.handle.counters().punched > 0
    })
    .await;
    let large = pattern(4 * RELAYED_BODY_BYTES_MAX);
    assert_eq!(call(&consumer, wallet, &large).await.unwrap().1, large, "calls use it while both are there");
    until("the other one is closed", async || {
        let ways = ways(&consumer, wallet).await;
        !ways.is_empty() && !ways.iter().any(|way| is_circuit(way))
    })
    .await;
    assert_eq!(call(&consumer, wallet, &large).await.unwrap().1, large);
    assert!(consumer.handle.counters().calls_sent_directly >= 2, "both calls with a large body");
    until("the relay carries nothing any more", async || {
        let counted = relay.handle.counters();
        counted.relay_circuits == counted.relay_circuits_ended
    })
    .await;
}
