//! What a gossiped object is worth: verified, stored, and then passed on, dropped or held against its sender.

use std::{net::IpAddr, sync::Arc, time::Duration};

use farthing_protocol::{
    Address, Listing, Signed,
    signed::DocumentError,
    wire::{self, NetworkName},
};
use libp2p::{
    PeerId,
    gossipsub::{MessageAcceptance, MessageId},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{InboundListing, ListingResponder, Subject, Verdict};
use crate::{
    admission::Admission,
    info::take_record,
    intake::{Intake, Origin},
    records::{Rejected, SharedRecords},
    report::{Reporter, Strike},
    status::Counters,
};

/// Listings of one neighbour that are looked at in a minute, as many as a network of a million services that
/// change once a fortnight makes. What is more comes by reconciliation.
const LISTINGS_PER_MINUTE_MAX: u32 = 50;
/// The same for records, counted apart: many newcomers at once must not keep listings from spreading. What is
/// more is found in the directory.
const RECORDS_PER_MINUTE_MAX: u32 = 50;
/// Objects being judged: of one neighbour as many as it may send in a minute, and in all.
const JUDGED_PER_PEER_MAX: usize = (LISTINGS_PER_MINUTE_MAX + RECORDS_PER_MINUTE_MAX) as usize;
pub(crate) const JUDGED_MAX: usize = 256;
/// How long the node may think about a listing.
const VERDICT_DEADLINE: Duration = Duration::from_secs(5);

/// The neighbour that sent a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) wallet: Address,
    pub(crate) peer: PeerId,
    pub(crate) range: Option<IpAddr>,
}

/// What is to be done with one message.
#[derive(Debug)]
pub(crate) struct Judged {
    pub(crate) message: MessageId,
    pub(crate) from: PeerId,
    pub(crate) acceptance: MessageAcceptance,
}

/// What judging needs, shared by the tasks that do it.
#[derive(Debug)]
struct Court {
    records: SharedRecords,
    network: NetworkName,
    counters: Arc<Counters>,
    reporter: Reporter,
    listings: mpsc::Sender<InboundListing>,
}

/// Judges gossiped objects, within bounds.
#[derive(Debug)]
pub(crate) struct Judge {
    court: Arc<Court>,
    listings: Intake<Origin>,
    records: Intake<Origin>,
    admission: Arc<Admission>,
    judged: mpsc::Sender<Judged>,
}

impl Judge {
    /// `judged` has room for [`JUDGED_MAX`], so that no verdict waits for the swarm's task.
    pub(crate) fn new(
        records: SharedRecords,
        network: NetworkName,
        counters: Arc<Counters>,
        reporter: Reporter,
        listings: mpsc::Sender<InboundListing>,
        judged: mpsc::Sender<Judged>,
    ) -> Self {
        Self {
            court: Arc::new(Court { records, network, counters, reporter, listings }),
            listings: Intake::new(LISTINGS_PER_MINUTE_MAX),
            records: Intake::new(RECORDS_PER_MINUTE_MAX),
            admission: Admission::new(JUDGED_PER_PEER_MAX, JUDGED_MAX),
            judged,
        }
    }

    /// Judges `content`, which a neighbour sent, on a task of its own. False when there are too
    /// many to be looked at: then nothing will come.
    pub(crate) fn consider(
        &mut self,
        sender: Sender,
        subject: Subject,
        content: Vec<u8>,
        message: MessageId,
    ) -> bool {
        let wallet = sender.wallet;
        Counters::add(&self.court.counters.gossip_received);
        let intake = match subject {
            Subject::Record => &mut self.records,
            Subject::Listing => &mut self.listings,
        };
        let heard = intake.admits(Origin::of(wallet, sender.range), crate::now_secs());
        let Some(permit) = heard.then(|| self.admission.admit(wallet)).flatten() else {
            Counters::add(&self.court.counters.gossip_dropped);
            return false;
        };
        let (court, judged) = (Arc::clone(&self.court), self.judged.clone());
        tokio::spawn(async move {
            let acceptance = match subject {
                Subject::Record => court.record(wallet, &content),
                Subject::Listing => court.listing(sender, &content).await,
            };
            // An error means that the network has stopped.
            let _ = judged.send(Judged { message, from: sender.peer, acceptance }).await;
            drop(permit);
        });
        true
    }
}

impl Court {
    fn record(&self, from: Address, content: &[u8]) -> MessageAcceptance {
        let Ok(record) = wire::decode(content) else { return self.refuse(from, Strike::Malformed) };
        match take_record(&self.records, &self.network, &self.counters, record, from) {
            Ok(()) => MessageAcceptance::Accept,
            Err(Rejected::Forged) => self.refuse(from, Strike::BadSignature),
            Err(Rejected::TooLarge(_)) => self.refuse(from, Strike::TooLarge),
            Err(Rejected::Malformed(_) | Rejected::WrongKey(_) | Rejected::OtherNetwork) => {
                MessageAcceptance::Reject
            }
            // Known, or no room, or clocks that differ: nobody is at fault.
            Err(
                Rejected::NotNewer { .. }
                | Rejected::Time(_)
                | Rejected::TooMany
                | Rejected::SourceFull
                | Rejected::StoreFull,
            ) => MessageAcceptance::Ignore,
        }
    }

    async fn listing(&self, sender: Sender, content: &[u8]) -> MessageAcceptance {
        let Sender { wallet: from, range, .. } = sender;
        let Ok(listing) = wire::decode::<Signed<Listing>>(content) else {
            return self.refuse(from, Strike::Malformed);
        };
        let listing = match listing.verify() {
            Ok(listing) if listing.network == self.network.as_str() => listing,
            Err(error) if error.is_forgery() => return self.refuse(from, Strike::BadSignature),
            Err(DocumentError::TooLarge { .. }) => return self.refuse(from, Strike::TooLarge),
            // A rule we have and the neighbour's version has not is no reason to block it.
            Ok(_) | Err(_) => return MessageAcceptance::Reject,
        };
        let (reply, verdict) = oneshot::channel();
        let inbound = InboundListing { listing, from, range, reply: ListingResponder(reply) };
        if self.listings.try_send(inbound).is_err() {
            Counters::add(&self.counters.gossip_dropped);
            return MessageAcceptance::Ignore;
        }
        match timeout(VERDICT_DEADLINE, verdict).await {
            Ok(Ok(Verdict::New)) => MessageAcceptance::Accept,
            Ok(Ok(Verdict::Refused)) => self.refuse(from, Strike::Malformed),
            Ok(Ok(Verdict::Known) | Err(_)) | Err(_) => MessageAcceptance::Ignore,
        }
    }

    fn refuse(&self, from: Address, strike: Strike) -> MessageAcceptance {
        self.reporter.strike(from, strike);
        MessageAcceptance::Reject
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::SecretKey;

    use super::*;
    use crate::{partners::Partners, records::Records};

    const NEIGHBOUR: Address = Address::from_bytes([1; 20]);

    #[tokio::test]
    async fn many_wallets_of_one_address_range_are_heard_as_one() {
        let own = SecretKey::from_bytes(&[1; 32]).unwrap().public_key();
        let (listings, _listings) = mpsc::channel(1);
        let (judged, _judged) = mpsc::channel(JUDGED_MAX);
        let mut judge = Judge::new(
            SharedRecords::new(Records::new(&own, 10, 10, Partners::default())),
            NetworkName::new("local-test").unwrap(),
            Arc::default(),
            Reporter::new().0,
            listings,
            judged,
        );
        let mut heard = |wallet: u8, range: u8| {
            let sender = Sender {
                wallet: Address::from_bytes([wallet; 20]),
                peer: PeerId::random(),
                range: Some([9, 9, range, 0].into()),
            };
            judge.consider(sender, Subject::Listing, Vec::new(), MessageId::new(&[wallet, range]))
        };
        let of_flood = (0..200).filter(|wallet| heard(*wallet, 66)).count();
        assert!((50..=100).contains(&of_flood), "{of_flood} in at most two calendar minutes");
        assert!(heard(1, 1));
    }

    #[tokio::test]
    async fn a_flood_of_records_leaves_room_for_listings_and_the_other_way_round() {
        for (flood, other) in [(Subject::Record, Subject::Listing), (Subject::Listing, Subject::Record)] {
            let own = SecretKey::from_bytes(&[1; 32]).unwrap().public_key();
            let (listings, _listings) = mpsc::channel(1);
            let (judged, _judged) = mpsc::channel(JUDGED_MAX);
            let mut judge = Judge::new(
                SharedRecords::new(Records::new(&own, 10, 10, Partners::default())),
                NetworkName::new("local-test").unwrap(),
                Arc::default(),
                Reporter::new().0,
                listings,
                judged,
            );
            let mut heard = |subject, n: u32| {
                let id = MessageId::new(&n.to_be_bytes());
                let sender = Sender { wallet: NEIGHBOUR, peer: PeerId::random(), range: None };
                judge.consider(sender, subject, Vec::new(), id)
            };
            let of_flood = (0..60).filter(|n| heard(flood, *n)).count();
            assert!(of_flood >= 50, "{flood:?}: {of_flood}");
            assert!(heard(other, 60), "{other:?}");
        }
    }
}
