//! Gossip: the fast path by which new records and listings travel. Everything works without it.
//!
//! 1. A neighbour's message arrives, no sooner than the neighbours of its address range may send it ([`crate::pace`]); its id is
//!    the hash of its content, so one object is looked at once, however many neighbours send it.
//! 2. [`Judge`] verifies it on a task of its own and has it stored: records in the record store, listings by
//!    the node, which answers with a [`Verdict`].
//! 3. What was new is passed on, what was known is not, and what is forged, or no object at all, counts against the
//!    neighbour, as does far more than an honest one has to tell.
//!
//! Messages carry neither author nor sequence number: the objects in them are signed and sequenced.

mod behaviour;
mod judge;

use std::{net::IpAddr, time::Duration};

use farthing_protocol::{Address, Listing, Verified, keccak256, limits, wire::NetworkName};
use libp2p::{
    gossipsub::{
        self, ConfigBuilder, IdentTopic, IdentityTransform, MessageAuthenticity, MessageId, PeerScoreParams,
        PeerScoreThresholds, TopicHash, ValidationMode, Version, WhitelistSubscriptionFilter,
    },
    swarm::behaviour::toggle::Toggle,
};
use tokio::sync::oneshot;

pub(crate) use self::{
    behaviour::GossipBehaviour,
    judge::{GossipVerdict, JUDGED_MAX, Judge, Sender},
};
use crate::{NetworkConfig, NetworkError, records::RECORD_VALUE_BYTES_MAX};

/// Repairs the mesh and offers what was missed. New objects do not wait for it, so it is rare: a heartbeat
/// of an idle node costs no message, but a thousand simulated nodes all wake for theirs.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Neighbours that new objects are passed on to. Four keep a network of thousands in one piece, and every
/// one more costs every node one more copy of every object.
const MESH: usize = 4;
const MESH_MIN: usize = 3;
const MESH_MAX: usize = 8;
/// Heartbeats for which messages are kept to be asked for, and for which they are offered. The first must
/// be longer than a verdict may take.
const HISTORY: usize = 3;
const HISTORY_OFFERED: usize = 2;
/// Ids in one offer, of 34 bytes each; a control message of this size fits the frame limit.
const OFFERED_IDS_MAX: usize = 200;
const CONTROL_BYTES_MAX: usize = 8 * 1024;
/// One frame: an object or a control message. Also what a neighbour can make us hold of an unfinished one.
const FRAME_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a message besides its content: the topic's name and field headers.
const ENVELOPE_BYTES_MAX: usize = 128;
/// A listing as it travels: the document's bytes, signature and framing.
const LISTING_VALUE_BYTES_MAX: usize = limits::LISTING_BYTES_MAX + 128;
/// Objects in one frame: nodes send each by itself. What is counted in frames is thereby counted in objects.
const OBJECTS_IN_FRAME_MAX: usize = 1;
/// For how long the id of an object is known again, be it good or bad: until a mesh of neighbours has brought all of its
/// copies and offered it for the last time. What comes back later is told from news by its sequence number.
const KNOWN_AGAIN: Duration = Duration::from_secs(20);
/// The interval at which the library forgets those that have left.
const FORGOTTEN_EVERY: Duration = Duration::from_secs(60);
/// Messages waiting for one slow neighbour; more are dropped, reconciliation makes up for it.
const QUEUE_MAX: usize = 64;

/// The two things that are gossiped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Subject {
    Record,
    Listing,
}

/// The topics of one network.
#[derive(Clone, Debug)]
pub(crate) struct Topics {
    records: IdentTopic,
    listings: IdentTopic,
}

impl Topics {
    pub(crate) fn new(network: &NetworkName) -> Self {
        Self {
            records: IdentTopic::new(network.records_topic()),
            listings: IdentTopic::new(network.listings_topic()),
        }
    }

    pub(crate) fn of(&self, subject: Subject) -> TopicHash {
        match subject {
            Subject::Record => self.records.hash(),
            Subject::Listing => self.listings.hash(),
        }
    }

    pub(crate) fn subject(&self, topic: &TopicHash) -> Option<Subject> {
        [Subject::Record, Subject::Listing].into_iter().find(|subject| self.of(*subject) == *topic)
    }
}

/// A listing that a neighbour gossiped: signed by its owner and of this network. Whether it is newer than
/// what is known, and within its owner's limits, is the node's to say.
#[derive(Debug)]
pub struct InboundListing {
    pub listing: Verified<Listing>,
    /// The neighbour that passed it on, which is rarely its owner.
    pub from: Address,
    /// The address range of that neighbour, unless it is private.
    pub range: Option<IpAddr>,
    pub reply: ListingResponder,
}

/// The node's decision on a gossiped listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Taken; neighbours are told.
    New,
    /// Held already, or older than what is held, or beyond a limit: nobody is told, nobody is at fault.
    Known,
    /// A listing that no honest neighbour passes on. Counts against the one that did.
    Refused,
}

/// The way back for the verdict on one listing. Dropping it means [`Verdict::Known`].
#[derive(Debug)]
pub struct ListingResponder(oneshot::Sender<Verdict>);

impl ListingResponder {
    /// Returns whether the verdict was still waited for.
    pub fn send(self, verdict: Verdict) -> bool {
        self.0.send(verdict).is_ok()
    }
}

/// Builds the behaviour, subscribed to both topics; or nothing when gossip is off.
pub(crate) fn behaviour(
    config: &NetworkConfig,
    topics: &Topics,
) -> Result<Toggle<GossipBehaviour>, NetworkError> {
    if !config.gossip {
        return Ok(None.into());
    }
    // The network's name is all that differs between two configurations, so nothing else can be at fault.
    let refused = || NetworkError::Network(config.network.to_string());
    let all = [&topics.records, &topics.listings];
    let known = WhitelistSubscriptionFilter(all.map(IdentTopic::hash).into());
    let settings = settings(&config.network, topics).map_err(|_| refused())?;
    let gossip = gossipsub::Behaviour::<IdentityTransform, _>::new_with_subscription_filter(
        MessageAuthenticity::Anonymous,
        settings,
        known,
    );
    let mut gossip = gossip.map_err(|_| refused())?;
    for topic in all {
        gossip.subscribe(topic).map_err(|_| refused())?;
    }
    let (params, thresholds) = nobody_judged();
    gossip.with_peer_score(params, thresholds).map_err(|_| refused())?;
    Ok(Some(gossip.into()).into())
}

/// The library's own judgement of neighbours, with every weight at zero: [`Judge`] has better reasons. But only with it does
/// the library forget what neighbours offered and never brought, which it asks no other neighbour for meanwhile; without,
/// offers of nothing fill the memory for good.
fn nobody_judged() -> (PeerScoreParams, PeerScoreThresholds) {
    let params = PeerScoreParams {
        app_specific_weight: 0.0,
        ip_colocation_factor_weight: 0.0,
        behaviour_penalty_weight: 0.0,
        slow_peer_weight: 0.0,
        retain_score: Duration::ZERO,
        decay_interval: FORGOTTEN_EVERY,
        ..PeerScoreParams::default()
    };
    let thresholds =
        PeerScoreThresholds { opportunistic_graft_threshold: 0.0, ..PeerScoreThresholds::default() };
    (params, thresholds)
}

/// One protocol name, so that it is sent together with the first message; see [`crate::streams`].
fn settings(
    network: &NetworkName,
    topics: &Topics,
) -> Result<gossipsub::Config, gossipsub::ConfigBuilderError> {
    ConfigBuilder::default()
        .protocol_id(network.gossip_protocol(), Version::V1_1)
        .validation_mode(ValidationMode::Anonymous)
        .validate_messages()
        // With the topic, or whoever sends an object under the wrong one first would keep it from us.
        .message_id_fn(|m| MessageId::new(&keccak256(&[m.topic.as_str().as_bytes(), b"\0", &m.data])))
        .flood_publish(true)
        .heartbeat_interval(HEARTBEAT)
        .heartbeat_initial_delay(Duration::ZERO)
        .mesh_n(MESH)
        .mesh_n_low(MESH_MIN)
        .mesh_n_high(MESH_MAX)
        .mesh_outbound_min(1)
        .gossip_lazy(MESH_MIN)
        .gossip_factor(0.0)
        .history_length(HISTORY)
        .history_gossip(HISTORY_OFFERED)
        .duplicate_cache_time(KNOWN_AGAIN)
        .max_publish_messages(OBJECTS_IN_FRAME_MAX)
        .max_control_messages_sent(OFFERED_IDS_MAX)
        .max_control_message_size(CONTROL_BYTES_MAX)
        .max_transmit_size(FRAME_BYTES_MAX)
        .max_transmit_size_for_topic(RECORD_VALUE_BYTES_MAX + ENVELOPE_BYTES_MAX, topics.records.hash())
        .max_transmit_size_for_topic(LISTING_VALUE_BYTES_MAX + ENVELOPE_BYTES_MAX, topics.listings.hash())
        .connection_handler_queue_len(QUEUE_MAX)
        .build()
}

#[cfg(test)]
mod tests {
    use farthing_protocol::SecretKey;
    use libp2p::PeerId;

    use super::*;

    #[test]
    fn what_neighbours_offer_and_never_bring_is_forgotten_and_nobody_is_judged_by_it() {
        let network = NetworkName::new("local-test").unwrap();
        let config = NetworkConfig::new(SecretKey::from_bytes(&[1; 32]).unwrap(), network.clone());
        let gossip = behaviour(&config, &Topics::new(&network)).unwrap();
        let gossip = gossip.as_ref().expect("gossip is on");
        // The library looks for broken promises only where it keeps scores.
        assert_eq!(gossip.peer_score(&PeerId::random()), Some(0.0));
        let (params, thresholds) = nobody_judged();
        let weights = [
            params.app_specific_weight,
            params.ip_colocation_factor_weight,
            params.behaviour_penalty_weight,
            params.slow_peer_weight,
        ];
        assert!(weights.iter().all(|weight| weight.abs() < f64::EPSILON) && params.topics.is_empty());
        assert!(thresholds.opportunistic_graft_threshold.abs() < f64::EPSILON, "no graft for a low score");
    }
}
