//! Judges a gossiped object: verified, stored, and then passed on, dropped or held against its sender.

use std::{net::IpAddr, sync::Arc, time::Duration};

use farthing_directory::Intake;
use farthing_protocol::{
    Address, Listing, NodeRecord, Signed,
    signed::DocumentError,
    wire::{self, NetworkName},
};
use libp2p::{
    PeerId,
    gossipsub::{MessageAcceptance, MessageId},
};
use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};

use super::{InboundListing, ListingResponder, Subject, Verdict};
use crate::{
    admission::Admission,
    info::take_record,
    neighbour_origin::NeighbourOrigin,
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
/// Objects of each kind that are passed on in a minute, whoever they are from. What is more is found by reconciliation and
/// in the directory: nobody can make this node look like one that floods.
const PASSED_ON_PER_MINUTE_MAX: u32 = 200;
/// Objects that no honest neighbour has to tell in a minute: what it may pass on, and 200 of its own. A neighbour beyond
/// that gets a strike, and another one for every hundred more.
const FLOOD_PER_MINUTE: u32 = 600;
const FLOOD_STRIKE_EVERY: u32 = 100;
/// Objects being judged: of one neighbour as many as it may send in a minute, and in all.
const JUDGED_PER_PEER_MAX: usize = (LISTINGS_PER_MINUTE_MAX + RECORDS_PER_MINUTE_MAX) as usize;
pub(crate) const JUDGED_MAX: usize = 256;
/// The longest time that the node may think about a listing.
const VERDICT_DEADLINE: Duration = Duration::from_secs(5);

/// The neighbour that sent a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) wallet: Address,
    pub(crate) peer: PeerId,
    pub(crate) range: Option<IpAddr>,
}

/// The decision on one message.
#[derive(Debug)]
pub(crate) struct GossipVerdict {
    pub(crate) message: MessageId,
    pub(crate) from: PeerId,
    pub(crate) acceptance: MessageAcceptance,
}

/// The state that judging needs, shared by the tasks that do it.
#[derive(Debug)]
struct Court {
    records: SharedRecords,
    network: NetworkName,
    counters: Arc<Counters>,
    reporter: Reporter,
    listings: mpsc::Sender<InboundListing>,
    passed_on: Mutex<Intake<Subject>>,
}

/// Judges gossiped objects, within bounds.
#[derive(Debug)]
pub(crate) struct Judge {
    court: Arc<Court>,
    listings: Intake<NeighbourOrigin>,
    records: Intake<NeighbourOrigin>,
    /// Of both kinds, by wallet: strikes are for who sends, not for who is nearby.
    floods: Intake<Address>,
    admission: Arc<Admission>,
    judged: mpsc::Sender<GossipVerdict>,
}

impl Judge {
    /// `judged` has room for [`JUDGED_MAX`], so that no verdict waits for the swarm's task.
    pub(crate) fn new(
        records: SharedRecords,
        network: NetworkName,
        counters: Arc<Counters>,
        reporter: Reporter,
        listings: mpsc::Sender<InboundListing>,
        judged: mpsc::Sender<GossipVerdict>,
    ) -> Self {
        Self {
            court: Arc::new(Court {
                records,
                network,
                counters,
                reporter,
                listings,
                passed_on: Mutex::new(Intake::new(PASSED_ON_PER_MINUTE_MAX)),
            }),
            listings: Intake::new(LISTINGS_PER_MINUTE_MAX),
            records: Intake::new(RECORDS_PER_MINUTE_MAX),
            floods: Intake::new(FLOOD_PER_MINUTE),
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
        let (now_secs, court) = (crate::now_secs(), Arc::clone(&self.court));
        let told = self.floods.count(wallet, now_secs);
        if told >= FLOOD_PER_MINUTE && told.is_multiple_of(FLOOD_STRIKE_EVERY) {
            court.reporter.strike(wallet, Strike::Flood);
        }
        let intake = match subject {
            Subject::Record => &mut self.records,
            Subject::Listing => &mut self.listings,
        };
        let heard = intake.admits(NeighbourOrigin::of(wallet, sender.range), now_secs);
        let Some(permit) = heard.then(|| self.admission.admit(wallet)).flatten() else {
            Counters::add(&court.counters.gossip_dropped);
            return false;
        };
        let judged = self.judged.clone();
        tokio::spawn(async move {
            let acceptance = match subject {
                Subject::Record => court.record(sender, &content),
                Subject::Listing => court.listing(sender, &content).await,
            };
            let acceptance = court.if_passed_on(subject, acceptance);
            // An error means that the network has stopped.
            let _ = judged.send(GossipVerdict { message, from: sender.peer, acceptance }).await;
            drop(permit);
        });
        true
    }
}

impl Court {
    /// Turns `Accept` into `Ignore` once enough was passed on. What is good is kept all the same.
    fn if_passed_on(&self, subject: Subject, acceptance: MessageAcceptance) -> MessageAcceptance {
        let passed_on = || self.passed_on.lock();
        match acceptance {
            MessageAcceptance::Accept if !passed_on().admits(subject, crate::now_secs()) => {
                MessageAcceptance::Ignore
            }
            other => other,
        }
    }

    fn record(&self, sender: Sender, content: &[u8]) -> MessageAcceptance {
        let Sender { wallet: from, range, .. } = sender;
        let Ok(record) = wire::decode::<Signed<NodeRecord>>(content) else {
            return self.refuse(from, Strike::Malformed);
        };
        if !record.has_form() {
            return self.refuse(from, Strike::Malformed);
        }
        match take_record(&self.records, &self.network, &self.counters, record, (from, range)) {
            Ok(()) => MessageAcceptance::Accept,
            Err(Rejected::Forged) => self.refuse(from, Strike::BadSignature),
            Err(Rejected::TooLarge(_)) => self.refuse(from, Strike::TooLarge),
            Err(Rejected::Malformed(_) | Rejected::WrongKey(_) | Rejected::OtherNetwork) => {
                MessageAcceptance::Reject
            }
            // Known, or no room, or clocks that differ: nobody is at fault.
            Err(Rejected::NotNewer { .. } | Rejected::Time(_) | Rejected::TooMany | Rejected::StoreFull) => {
                MessageAcceptance::Ignore
            }
        }
    }

    async fn listing(&self, sender: Sender, content: &[u8]) -> MessageAcceptance {
        let Sender { wallet: from, range, .. } = sender;
        let Ok(listing) = wire::decode::<Signed<Listing>>(content) else {
            return self.refuse(from, Strike::Malformed);
        };
        if !listing.has_form() {
            return self.refuse(from, Strike::Malformed);
        }
        let listing = match listing.verify() {
            Ok(listing) if listing.network == self.network.as_str() => listing,
            Err(error) if error.is_forgery() => return self.refuse(from, Strike::BadSignature),
            Err(DocumentError::TooLarge { .. }) => return self.refuse(from, Strike::TooLarge),
            // A rule we have and the neighbour's version has not is no reason to block it, nor are fields that only a newer
            // one can read.
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

    /// A judge with what is reported to the swarm's task; nobody takes listings.
    fn judge() -> (Judge, mpsc::Receiver<(Address, Strike)>, mpsc::Receiver<GossipVerdict>) {
        let own = SecretKey::from_bytes(&[1; 32]).unwrap().address();
        let (reporter, reports) = Reporter::new();
        let (sender, judged) = mpsc::channel(JUDGED_MAX);
        let judge = Judge::new(
            SharedRecords::new(Records::new(own, 10, Partners::default())),
            NetworkName::new("local-test").unwrap(),
            Arc::default(),
            reporter,
            mpsc::channel(1).0,
            sender,
        );
        (judge, reports, judged)
    }

    fn strikes(reports: &mut mpsc::Receiver<(Address, Strike)>) -> Vec<(Address, Strike)> {
        std::iter::from_fn(|| reports.try_recv().ok()).collect()
    }

    #[tokio::test]
    async fn who_tells_far_more_than_anybody_has_to_tell_is_struck_and_no_neighbour_of_it() {
        let (mut judge, mut reports, _judged) = judge();
        let mut tell = |wallet: u8, n: u32| {
            let range = Some([9, 9, 9, 0].into());
            let sender = Sender { wallet: Address::from_bytes([wallet; 20]), peer: PeerId::random(), range };
            judge.consider(sender, Subject::Listing, Vec::new(), MessageId::new(&n.to_be_bytes()));
        };
        (0..FLOOD_PER_MINUTE - 1).for_each(|n| tell(1, n));
        assert!(strikes(&mut reports).is_empty());
        // Of two calendar minutes, one has the half of them.
        (0..2 * (FLOOD_PER_MINUTE + 4 * FLOOD_STRIKE_EVERY)).for_each(|n| tell(2, n));
        let struck = strikes(&mut reports);
        assert!(struck.len() >= 5, "{struck:?}");
        let flooder = (Address::from_bytes([2; 20]), Strike::Flood);
        assert!(struck.iter().all(|strike| *strike == flooder), "{struck:?}");
    }

    #[tokio::test]
    async fn what_is_no_object_at_all_is_held_against_its_sender_and_what_a_newer_version_says_is_not() {
        let (judge, mut reports, _judged) = judge();
        let sender = Sender { wallet: NEIGHBOUR, peer: PeerId::random(), range: None };
        // As `Signed` travels: a map of the document's bytes and of a signature, which nobody looks at here.
        let signed = |document: &[u8]| {
            let length = u8::try_from(document.len()).unwrap();
            [&[0xa2, 0x00, 0x58, length][..], document, &[0x01, 0x58, 65], &[0; 65]].concat()
        };
        let newer = wire::encode(&std::collections::BTreeMap::from([(1_u8, "a name"), (77, "what is new")]));
        assert!(matches!(judge.court.listing(sender, &signed(&newer)).await, MessageAcceptance::Reject));
        assert!(matches!(judge.court.record(sender, &signed(&newer)), MessageAcceptance::Reject));
        assert!(strikes(&mut reports).is_empty());
        assert!(matches!(judge.court.listing(sender, &signed(&[7; 8])).await, MessageAcceptance::Reject));
        assert!(matches!(judge.court.record(sender, &signed(&[7; 8])), MessageAcceptance::Reject));
        assert_eq!(strikes(&mut reports), [(NEIGHBOUR, Strike::Malformed); 2]);
    }

    #[tokio::test]
    async fn no_more_is_passed_on_than_an_honest_neighbour_has_to_tell() {
        let (judge, _reports, _judged) = judge();
        let passes = |subject| {
            let acceptance = judge.court.if_passed_on(subject, MessageAcceptance::Accept);
            matches!(acceptance, MessageAcceptance::Accept)
        };
        let passed = (0..1_000).filter(|_| passes(Subject::Listing)).count();
        assert!((200..=400).contains(&passed), "{passed} in at most two calendar minutes");
        assert!(passes(Subject::Record), "the other kind is not affected");
    }

    #[tokio::test]
    async fn many_wallets_of_one_address_range_are_heard_as_one() {
        let (mut judge, _reports, _judged) = judge();
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
            let (mut judge, _reports, _judged) = judge();
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
