//! The directory's protocol on streams, and node records as the directory reads them. What is asked, of whom, and what is kept
//! for others is decided by `farthing_directory`.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::{Duration, Instant},
};

use farthing_directory::{
    Config, Contact, Directory, Failure, Key, Verifier,
    records::{Facts, Untrue},
    wire::{Filed, MESSAGE_BYTES_MAX, Malformed, Name, Request, Response},
};
use farthing_protocol::{
    Address, NodeRecord, PublicKey, Verified,
    wire::{self, NetworkName},
};
use futures::AsyncWriteExt;
use libp2p::{Multiaddr, PeerId};
use tokio::sync::{mpsc::WeakSender, oneshot};

use crate::{
    NetworkConfig, NotStarted,
    admission::{Admission, Shares, Visitor},
    command::{Command, NoStream},
    frame::{self, FrameError, MinimumPace},
    identity,
    line::Line,
    pace::Pace,
    partners::Partners,
    records::{self, Rejected, SharedRecords},
    report::{Reporter, Strike},
    status::Counters,
};

/// A request and its answer, on this side; whoever asks waits for less.
const REQUEST_WITHIN: Duration = Duration::from_secs(3);
const PACE: MinimumPace = MinimumPace::any(REQUEST_WITHIN);
/// Requests being answered, per peer and in all, half of them of peers with open channels alone.
const REQUESTS_PER_PEER_MAX: usize = 16;
const REQUESTS_MAX: usize = 128;
/// Bytes of a message's length, as a varint.
const LENGTH_BYTES_MAX: usize = 3;
/// Of the records kept for others, what one peer may bring that is not its own: a fifth.
const SOURCE_PART: usize = 5;

/// Reads and verifies records for the directory.
#[derive(Clone, Debug)]
pub(crate) struct Notary {
    records: SharedRecords,
    network: NetworkName,
}

impl Notary {
    pub(crate) fn new(records: SharedRecords, network: NetworkName) -> Self {
        Self { records, network }
    }

    /// The record that is known, if these are its bytes: its signature was verified when it came.
    fn known(&self, owner: Address, value: &[u8]) -> Option<Verified<NodeRecord>> {
        let held = self.records.get(owner)?;
        (wire::encode(&held.to_signed()) == value).then_some(held)
    }
}

impl Verifier for Notary {
    type Document = Verified<NodeRecord>;

    fn verify(&self, filed: &Filed) -> Result<(Facts, Verified<NodeRecord>), Untrue> {
        let owner = owner_of(&filed.name).ok_or(Untrue::Elsewhere)?;
        let record = match self.known(owner, &filed.value) {
            Some(known) => known,
            None => records::decode(&filed.value, Some(owner), &self.network).map_err(|why| untrue(&why))?,
        };
        let publisher = place(&identity::peer_id(&record.public_key));
        let (seq, issued_secs, expires_secs) = (record.seq, record.issued_secs, record.expires_secs);
        Ok((Facts { publisher, seq, issued_secs, expires_secs }, record))
    }

    fn is_peer(&self, id: &[u8]) -> bool {
        PublicKey::from_peer_id_bytes(id).is_ok()
    }
}

fn untrue(why: &Rejected) -> Untrue {
    match why {
        Rejected::Forged => Untrue::Forged,
        Rejected::WrongKey(_) | Rejected::OtherNetwork => Untrue::Elsewhere,
        _ => Untrue::Malformed,
    }
}

/// The directory of a node that has just started.
pub(crate) fn machine(config: &NetworkConfig, notary: Notary) -> Directory<Notary> {
    let limits = &config.limits;
    let records_max = limits.records_near_max.min(limits.records_max);
    let settings = Config {
        own_id: identity::peer_id(&config.key.public_key()).to_bytes(),
        seed: RandomState::new().hash_one(()),
        allow_private: config.allow_private,
        records_max,
        records_per_source_max: records_max.div_ceil(SOURCE_PART),
        // Of the handshakes a quarter stays for calls and company.
        dials_max: limits.connections_pending_max as usize * 3 / 4,
    };
    Directory::new(settings, notary)
}

/// The wallet whose record is filed under `name`.
pub(crate) fn owner_of(name: &[u8]) -> Option<Address> {
    let owner = Address::from_bytes(name.last_chunk().copied()?);
    (wire::record_key(owner) == name).then_some(owner)
}

/// The name that the record of `owner` is filed under.
pub(crate) fn record_name(owner: Address) -> Name {
    wire::record_key(owner).into()
}

/// The record as the directory has it.
pub(crate) fn filed(record: &Verified<NodeRecord>) -> Filed {
    Filed { name: record_name(record.signer()), value: wire::encode(&record.to_signed()).into() }
}

/// The place of a peer in the directory.
pub(crate) fn place(peer: &PeerId) -> Key {
    Key::of(&peer.to_bytes())
}

/// The peer as the directory names it.
pub(crate) fn contact(peer: &PeerId, addresses: &[Multiaddr]) -> Option<Contact> {
    Contact::new(&peer.to_bytes(), addresses)
}

/// Asks on a stream that is being opened. Who asks has the patience.
pub(crate) async fn ask(
    stream: oneshot::Receiver<Result<Line, NoStream>>,
    request: Request,
) -> Result<Response, Failure> {
    let mut stream = match stream.await {
        Ok(Ok(stream)) => stream,
        Ok(Err(NoStream::Refused(NotStarted::LocalLimit))) => return Err(Failure::Denied),
        Ok(Err(_)) => return Err(Failure::Unreachable),
        // The connection was closed, as those are that nobody uses.
        Err(_) => return Err(Failure::TimedOut),
    };
    // Who closes the stream, because it has no place for a request or a record, is there all the same.
    write_message(&mut stream, &request.encode()).await.map_err(|_| Failure::TimedOut)?;
    let answer = read_message(&mut stream).await.map_err(|error| match error {
        FrameError::TooLarge { .. } => Failure::Malformed,
        _ => Failure::TimedOut,
    })?;
    Response::decode(&answer).map_err(|_| Failure::Malformed)
}

/// Reads a message after its length.
async fn read_message(stream: &mut Line) -> Result<Vec<u8>, FrameError> {
    let mut length = 0_usize;
    for place in 0..LENGTH_BYTES_MAX {
        let [byte] = frame::read_array(stream, PACE).await?;
        length |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 && length <= MESSAGE_BYTES_MAX {
            return frame::read_bounded(stream, length, PACE, |_| true).await;
        }
    }
    let (bytes, bytes_max) = (length as u64, MESSAGE_BYTES_MAX);
    Err(FrameError::TooLarge { part: "message", bytes, bytes_max })
}

/// Writes a message after its length.
async fn write_message(stream: &mut Line, message: &[u8]) -> std::io::Result<()> {
    let mut framed = Vec::with_capacity(LENGTH_BYTES_MAX + message.len());
    let mut length = message.len();
    while length > 0x7f {
        framed.push(length.to_le_bytes()[0] | 0x80);
        length >>= 7;
    }
    framed.push(length.to_le_bytes()[0]);
    framed.extend_from_slice(message);
    stream.write_all(&framed).await?;
    stream.flush().await
}

/// Answers what peers ask the directory.
#[derive(Debug)]
pub(crate) struct DirectoryServer {
    admission: Arc<Admission>,
    pace: Pace,
    partners: Partners,
    /// The swarm's task, which has the directory. Weak: it must end without us.
    commands: WeakSender<Command>,
    reporter: Reporter,
    counters: Arc<Counters>,
}

impl DirectoryServer {
    pub(crate) fn new(
        commands: WeakSender<Command>,
        partners: Partners,
        reporter: Reporter,
        counters: Arc<Counters>,
    ) -> Arc<Self> {
        let admission = Admission::shared(Shares::half_for_partners(REQUESTS_PER_PEER_MAX, REQUESTS_MAX));
        Arc::new(Self { admission, pace: Pace::default(), partners, commands, reporter, counters })
    }

    /// Takes a stream that `peer` opened. Runs on its own task from here.
    pub(crate) fn accept(self: &Arc<Self>, peer: Address, stream: Line) {
        let visitor = Visitor::of(peer, &stream, &self.partners);
        let Some(permit) = self.admission.admit_visitor(visitor) else {
            return Counters::add(&self.counters.streams_reset);
        };
        // Each takes the swarm's task for a moment.
        let wait = self.pace.spend(visitor.origin(), Instant::now());
        let server = Arc::clone(self);
        permit.spawn(REQUEST_WITHIN, async move {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            server.serve(peer, stream).await;
        });
    }

    async fn serve(&self, peer: Address, mut stream: Line) {
        let request = match read_message(&mut stream).await {
            Ok(bytes) => Request::decode(&bytes),
            Err(FrameError::TooLarge { .. }) => return self.reporter.strike(peer, Strike::TooLarge),
            Err(_) => return,
        };
        let request = match request {
            Ok(request) => request,
            // Others of this protocol also provide and ping.
            Err(Malformed::Type(_)) => return,
            Err(_) => return self.reporter.strike(peer, Strike::Malformed),
        };
        let Some(response) = self.answer(peer, request).await else { return };
        if write_message(&mut stream, &response.encode()).await.is_ok() {
            // The peer may have what it wants, and be gone.
            let _ = stream.close().await;
        }
    }

    async fn answer(&self, peer: Address, request: Request) -> Option<Response> {
        let (reply, answer) = oneshot::channel();
        self.commands.upgrade()?.send(Command::AskDirectory { peer, request, reply }).await.ok()?;
        answer.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{SecretKey, Signed};

    use super::*;
    use crate::records::{
        Records,
        testing::{key, record},
    };

    fn of_network(network: &str) -> Vec<u8> {
        let record = NodeRecord { network: network.to_owned(), ..record(1, 7, 1_000_000, 3600) };
        wire::encode(&Signed::sign(&record, &key(1)).unwrap())
    }

    #[test]
    fn a_record_is_true_of_its_own_wallet_and_network_alone() {
        let (key, other) = (key(1), key(2));
        let records = SharedRecords::new(Records::new(other.address(), 10, Partners::default()));
        let notary = Notary::new(records, NetworkName::new("local-test").unwrap());
        let check = |owner: &SecretKey, value: Vec<u8>| {
            let filed = Filed { name: record_name(owner.address()), value: value.into() };
            notary.verify(&filed).map(|(facts, record)| (facts.seq, facts.publisher, record.signer()))
        };
        let good = of_network("local-test");
        let publisher = Key::of(&key.public_key().peer_id_bytes());
        assert_eq!(check(&key, good.clone()), Ok((7, publisher, key.address())));
        assert_eq!(check(&other, good.clone()), Err(Untrue::Elsewhere));
        assert_eq!(check(&key, of_network("local-other")), Err(Untrue::Elsewhere));
        assert_eq!(check(&key, vec![0xff; 100]), Err(Untrue::Malformed));
        assert_eq!(check(&key, vec![0; 10_000]), Err(Untrue::Malformed));
        let mut forged = good;
        let last = forged.len() - 2;
        forged[last] ^= 1;
        assert_eq!(check(&key, forged), Err(Untrue::Forged));
        let unnamed = Filed { name: b"no record".as_slice().into(), value: b"".as_slice().into() };
        assert_eq!(notary.verify(&unnamed).map(|(facts, _)| facts), Err(Untrue::Elsewhere));
    }

    #[tokio::test]
    async fn a_question_that_our_own_limits_kept_back_is_denied_and_no_silence_of_the_peer() {
        for (why, failure) in [
            (Some(NoStream::Refused(NotStarted::LocalLimit)), Failure::Denied),
            (Some(NoStream::NotConnected), Failure::Unreachable),
            (None, Failure::TimedOut),
        ] {
            let (opened, stream) = oneshot::channel();
            match why {
                Some(why) => opened.send(Err(why)).unwrap(),
                None => drop(opened),
            }
            let request = Request::FindNode { name: b"anybody".as_slice().into() };
            assert_eq!(ask(stream, request).await, Err(failure));
        }
    }

    #[test]
    fn wallets_alone_are_peers() {
        let key = key(1);
        let records = SharedRecords::new(Records::new(key.address(), 10, Partners::default()));
        let notary = Notary::new(records, NetworkName::new("local-test").unwrap());
        assert!(notary.is_peer(&identity::peer_id(&key.public_key()).to_bytes()));
        assert!(!notary.is_peer(&PeerId::random().to_bytes()));
        assert!(!notary.is_peer(&[]));
    }
}
