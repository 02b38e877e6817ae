//! Gossip in the swarm's task: telling neighbours what is new, and doing with their news as it is judged.

use std::time::Instant;

use farthing_protocol::{NodeRecord, Verified, wire};
use libp2p::gossipsub::{Event, MessageAcceptance, PublishError};

use super::SwarmTask;
use crate::{
    gossip::{GossipVerdict, Sender, Subject},
    identity,
    status::Counters,
};

impl SwarmTask {
    /// Tells every neighbour that takes part in gossip. False when there was none.
    pub(super) fn gossip(&mut self, subject: Subject, content: Vec<u8>) -> bool {
        let topic = self.parts.topics.of(subject);
        let Some(gossip) = self.parts.swarm.behaviour_mut().gossip.as_mut() else { return false };
        match gossip.publish(topic, content) {
            Ok(_) => {
                Counters::add(&self.parts.counters.gossip_sent);
                true
            }
            // It was told a moment ago.
            Err(PublishError::Duplicate) => true,
            Err(error) => {
                tracing::debug!(%error, ?subject, "no peer was reached");
                false
            }
        }
    }

    /// Tells neighbours of the own record, once for each version; new neighbours are given it anyway.
    pub(super) fn gossip_record(&mut self, record: &Verified<NodeRecord>) {
        let is_news = record.seq > self.gossiped_seq;
        if is_news && self.gossip(Subject::Record, wire::encode(&record.to_signed())) {
            self.gossiped_seq = record.seq;
        }
    }

    pub(super) fn on_gossip(&mut self, event: Event) {
        let Event::Message { propagation_source: from, message_id, message } = event else { return };
        for connection in self.peers.connections_of(&from) {
            self.parts.usage.note(connection, Instant::now());
        }
        let considered = match (identity::wallet(&from), self.parts.topics.subject(&message.topic)) {
            (Some(wallet), Some(subject)) => {
                let sender = Sender { wallet, peer: from, range: self.peers.range_of(&from) };
                self.parts.judge.consider(sender, subject, message.data, message_id.clone())
            }
            _ => false,
        };
        if !considered {
            self.on_judged(&GossipVerdict {
                message: message_id,
                from,
                acceptance: MessageAcceptance::Ignore,
            });
        }
    }

    pub(super) fn on_judged(&mut self, judged: &GossipVerdict) {
        let Some(gossip) = self.parts.swarm.behaviour_mut().gossip.as_mut() else { return };
        gossip.report_message_validation_result(&judged.message, &judged.from, judged.acceptance);
    }
}
