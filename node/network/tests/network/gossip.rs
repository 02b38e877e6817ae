//! New records and listings travel at once, from neighbour to neighbour, and only good ones.

use std::time::{Duration, Instant};

use farthing_network::{NetworkConfig, NetworkLimits, Verdict};
use farthing_protocol::{Listing, SecretKey, Signed, record::FLAG_ACCEPTS_CALLS, wire};
use futures::StreamExt;
use libp2p::{
    Multiaddr, Swarm, gossipsub, identify,
    swarm::{NetworkBehaviour, SwarmEvent},
};

use crate::{
    raw::{self, wallet_keypair},
    support::{Node, config, listing, network, new_key, record, signed_listing, until},
};

/// A node that nobody can dial, so that it has only the neighbours it chose.
async fn leaf(neighbour: &Node) -> Node {
    let bootstrap = vec![neighbour.listening()];
    Node::start(NetworkConfig { listen: Vec::new(), bootstrap, ..config() }).await
}

/// Two leaves and the node between them, connected and subscribed.
async fn line() -> [Node; 3] {
    let middle = Node::start(config()).await;
    let (first, last) = (leaf(&middle).await, leaf(&middle).await);
    for leaf in [&first, &last] {
        leaf.connected_to(middle.address).await;
        middle.connected_to(leaf.address).await;
    }
    [first, middle, last]
}

/// Gossips a listing until somebody was there to hear it: subscriptions follow connections by a moment.
async fn tell(node: &Node, listing: &Signed<Listing>) {
    until("a neighbour takes part in gossip", async || node.handle.gossip_listing(listing).await).await;
}

#[tokio::test]
async fn a_listing_is_passed_on_where_it_is_new_and_only_there() {
    let [first, mut middle, mut last] = line().await;
    let key = new_key();
    let (known, news) = (signed_listing(&key, 1), signed_listing(&key, 2));

    // The last must have told the middle that it listens, or it would miss the news for another reason.
    tell(&last, &signed_listing(&key, 0)).await;
    middle.listings.recv().await.unwrap().reply.send(Verdict::Known);

    tell(&first, &known).await;
    let heard = middle.listings.recv().await.unwrap();
    assert_eq!(heard.from, first.address);
    assert_eq!(heard.listing.signer(), key.address());
    heard.reply.send(Verdict::Known);

    tell(&first, &news).await;
    let heard = middle.listings.recv().await.unwrap();
    assert_eq!(heard.listing.to_signed(), news);
    assert!(last.listings.try_recv().is_err(), "nothing is passed on before it is judged");
    heard.reply.send(Verdict::New);
    let passed_on = last.listings.recv().await.unwrap();
    assert_eq!((passed_on.from, passed_on.listing.to_signed()), (middle.address, news));
}

#[tokio::test]
async fn a_record_reaches_nodes_that_never_met_its_owner() {
    let [owner, _middle, reader] = line().await;
    // Twice, because the first may be told before the neighbours listen; look-ups would find either.
    owner.handle.publish(FLAG_ACCEPTS_CALLS, 1, [1; 32]).await.unwrap();
    until("the record arrived by itself", async || {
        let held = reader.handle.records().into_iter().find(|record| record.signer() == owner.address);
        let arrived = held.is_some_and(|record| record.listings_root == [1; 32]);
        if !arrived {
            owner.handle.publish(FLAG_ACCEPTS_CALLS, 1, [1; 32]).await.unwrap();
        }
        arrived
    })
    .await;
    assert_eq!(reader.handle.counters().lookups, 0);
}

#[tokio::test]
async fn a_node_without_gossip_is_a_full_member_otherwise() {
    let plain = Node::start(NetworkConfig { gossip: false, ..config() }).await;
    let gossiping = Node::joined(&plain).await;
    plain.connected_to(gossiping.address).await;
    gossiping.handle.publish(FLAG_ACCEPTS_CALLS, 0, [0; 32]).await.unwrap();
    assert!(plain.handle.find(gossiping.address).await.is_ok());
    assert!(!plain.handle.gossip_listing(&signed_listing(&new_key(), 1)).await);
    assert!(!gossiping.handle.gossip_listing(&signed_listing(&new_key(), 1)).await);
    assert!(plain.handle.ping(gossiping.address).await.is_ok());
}

#[tokio::test]
async fn a_neighbour_that_floods_is_not_always_listened_to() {
    let mut node = Node::start(config()).await;
    let flooder = leaf(&node).await;
    flooder.connected_to(node.address).await;
    let key = new_key();
    for n in 0..200 {
        let before = node.handle.counters().gossip_received;
        tell(&flooder, &signed_listing(&key, n)).await;
        until("it arrived", async || node.handle.counters().gossip_received > before).await;
        while let Ok(heard) = node.listings.try_recv() {
            heard.reply.send(Verdict::Known);
        }
    }
    // At most fifty in each of, at most, two calendar minutes; more when the machine takes longer than one.
    assert!(node.handle.counters().gossip_dropped >= 50, "{:?}", node.handle.counters());
    assert_eq!(node.handle.counters().peers_blocked, 0, "zeal is no crime");
}

#[derive(NetworkBehaviour)]
struct Gossiper {
    identify: identify::Behaviour,
    gossip: gossipsub::Behaviour,
}

/// A peer that gossips whatever a test wants.
async fn gossiper(key: &SecretKey, to: &Node) -> Swarm<Gossiper> {
    let settings = gossipsub::ConfigBuilder::default()
        .protocol_id(network().gossip_protocol(), gossipsub::Version::V1_1)
        .validation_mode(gossipsub::ValidationMode::Anonymous)
        .message_id_fn(|message| gossipsub::MessageId::new(&message.data))
        .build()
        .unwrap();
    let gossip = gossipsub::Behaviour::new(gossipsub::MessageAuthenticity::Anonymous, settings).unwrap();
    let version = network().identify_version();
    let mut swarm = raw::swarm(wallet_keypair(key), version, |identify| Gossiper { identify, gossip });
    swarm.dial(to.listening().parse::<Multiaddr>().unwrap()).unwrap();
    // Both topics of the node must be known before anything is sent.
    let mut subscriptions = 0;
    while subscriptions < 2 {
        if let SwarmEvent::Behaviour(GossiperEvent::Gossip(gossipsub::Event::Subscribed { .. })) =
            swarm.select_next_some().await
        {
            subscriptions += 1;
        }
    }
    swarm
}

fn with_a_flipped_bit(mut bytes: Vec<u8>) -> Vec<u8> {
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    bytes
}

#[tokio::test]
async fn forged_objects_are_not_kept_and_cost_their_sender_the_connection() {
    let mut node = Node::start(config()).await;
    let (key, victim) = (new_key(), new_key());
    let mut stranger = gossiper(&key, &node).await;
    for n in 0..5 {
        let (topic, bytes) = if n % 2 == 0 {
            (
                network().records_topic(),
                wire::encode(&Signed::sign(&record(&victim, n, &[]), &victim).unwrap()),
            )
        } else {
            let n = u32::try_from(n).unwrap();
            (network().listings_topic(), wire::encode(&signed_listing(&victim, n)))
        };
        let topic = gossipsub::IdentTopic::new(topic);
        stranger.behaviour_mut().gossip.publish(topic, with_a_flipped_bit(bytes)).unwrap();
    }
    while stranger.connected_peers().next().is_some() {
        stranger.select_next_some().await;
    }
    assert_eq!(node.handle.counters().peers_blocked, 1);
    assert!(node.listings.try_recv().is_err());
    assert!(node.handle.records().is_empty());
}

#[tokio::test]
async fn a_flood_waits_in_its_own_line_while_an_honest_neighbour_is_heard() {
    let mut node = Node::start(config()).await;
    let honest = leaf(&node).await;
    honest.connected_to(node.address).await;
    let owner = new_key();
    let foreign = |n| {
        let foreign = Listing { network: "other".to_owned(), ..listing(&owner, n) };
        wire::encode(&Signed::sign(&foreign, &owner).unwrap())
    };
    // No more than anybody may tell in a minute. Of these, 256 may come at once, and then sixteen a second.
    let flood: Vec<_> = (0..590).map(foreign).collect();
    let mut flooder = gossiper(&new_key(), &node).await;
    let begun = Instant::now();
    let topic = gossipsub::IdentTopic::new(network().listings_topic());
    for content in flood {
        flooder.behaviour_mut().gossip.publish(topic.clone(), content).unwrap();
    }
    let driving = tokio::spawn(raw::drive(flooder));
    let received = || node.handle.counters().gossip_received;
    until("the flood is under way", async || received() >= 256).await;
    let news = signed_listing(&owner, 1);
    tell(&honest, &news).await;
    let heard = node.listings.recv().await.unwrap();
    assert_eq!((heard.from, heard.listing.to_signed()), (honest.address, news));
    let (received, seconds) = (node.handle.counters().gossip_received, begun.elapsed().as_secs());
    assert!(received <= 256 + 16 * (seconds + 1) + 8, "{received} in {seconds} s");
    driving.abort();
}

#[tokio::test]
async fn what_belongs_to_another_network_or_breaks_the_rules_goes_no_further() {
    let mut node = Node::start(config()).await;
    let (key, owner) = (new_key(), new_key());
    let mut stranger = gossiper(&key, &node).await;
    let topic = || gossipsub::IdentTopic::new(network().listings_topic());
    let mut foreign = listing(&owner, 1);
    foreign.network = "other".to_owned();
    let good = signed_listing(&owner, 2);
    for bytes in [
        wire::encode(&Signed::sign(&foreign, &owner).unwrap()),
        b"nonsense".to_vec(),
        vec![0; 5000],
        wire::encode(&Signed::sign(&record(&owner, 1, &[]), &owner).unwrap()),
        wire::encode(&good),
    ] {
        stranger.behaviour_mut().gossip.publish(topic(), bytes).unwrap();
    }
    let driving = tokio::spawn(raw::drive(stranger));
    let heard = node.listings.recv().await.unwrap();
    assert_eq!(heard.listing.to_signed(), good, "the only one that is any good");
    assert!(node.listings.try_recv().is_err());
    driving.abort();
}

#[tokio::test]
async fn gossip_keeps_a_connection_to_a_neighbour_and_to_nobody_else() {
    let limits = NetworkLimits {
        contact_idle_max: Duration::from_secs(3),
        connection_kept: Duration::ZERO,
        ..NetworkLimits::default()
    };
    let node = Node::start(NetworkConfig { limits, ..config() }).await;
    let neighbour = leaf(&node).await;
    neighbour.connected_to(node.address).await;
    node.connected_to(neighbour.address).await;
    let begun = neighbour.handle.peers().await[0].since;
    // It has streams for gossip, as everybody has, and listens to no topic.
    let mut stranger = gossiper(&new_key(), &node).await;
    while stranger.connected_peers().next().is_some() {
        stranger.select_next_some().await;
    }
    assert_eq!(neighbour.handle.peers().await.first().map(|peer| peer.since), Some(begun));
}
