//! Nodes that speak the directory's protocols and answer with nothing, with garbage, or with lies.
//!
//! They are libp2p without our rules: identified as of the network, so that honest nodes put them into their
//! tables, they point those who ask only to each other, and acknowledge records without keeping them.

use std::{borrow::Cow, collections::HashMap, io, iter, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use farthing_protocol::{
    Address, NodeRecord, SecretKey, Signed,
    info::{InfoRequest, InfoResponse},
    limits, wire,
};
use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::{
    Multiaddr, PeerId, StreamProtocol, Swarm, SwarmBuilder, Transport,
    core::{transport::MemoryTransport, upgrade::Version},
    identify, identity, kad,
    kad::store::{Error as StoreError, RecordStore, Result as StoreResult},
    noise, request_response,
    swarm::{NetworkBehaviour, SwarmEvent},
    yamux,
};
use tokio::task::JoinHandle;

use super::{network_name, now_secs, population::key};

/// The wallets that are lied about, with their keys: old records are genuine, so they need true signatures.
pub type Victims = Arc<HashMap<Address, SecretKey>>;

/// How a node answers when it is asked for a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Knows nothing.
    Nothing,
    /// Bytes that are no record.
    Garbage,
    /// A record with the highest number there is, signed by the liar instead of the owner.
    Forged,
    /// A record that the owner signed earlier, with addresses of before.
    Old,
}

impl Lie {
    /// All of them, to be told in turns.
    pub const ALL: [Self; 4] = [Self::Nothing, Self::Garbage, Self::Forged, Self::Old];
}

/// Places in the directory, besides its own, around which a liar makes itself known.
const PLACES_VISITED: usize = 8;

/// Whom a liar lies about, and how.
#[derive(Debug, Clone)]
struct Liar {
    lie: Lie,
    key: SecretKey,
    victims: Victims,
}

impl Liar {
    fn record(&self, wallet: Address) -> Option<Signed<NodeRecord>> {
        let victim = self.victims.get(&wallet)?;
        let (signer, seq) = match self.lie {
            Lie::Nothing | Lie::Garbage => return None,
            Lie::Forged => (&self.key, u64::MAX - 1),
            Lie::Old => (victim, 1),
        };
        let now_secs = now_secs();
        let record = NodeRecord {
            network: network_name().as_str().to_owned(),
            public_key: victim.public_key(),
            net_key: None,
            seq,
            issued_secs: now_secs - 60,
            expires_secs: now_secs + limits::RECORD_LIFETIME_SECS_MAX / 2,
            flags: 0,
            protocol_min: 1,
            protocol_max: 1,
            addresses: Vec::new(),
            listings_count: 0,
            listings_root: [0; 32],
            agent: "liar".to_owned(),
        };
        Signed::sign(&record, signer).ok()
    }

    /// What the directory's protocol is answered with.
    fn value(&self, wallet: Address) -> Option<Vec<u8>> {
        match self.lie {
            Lie::Garbage => Some(vec![0xff; 300]),
            _ => self.record(wallet).map(|record| wire::encode(&record)),
        }
    }

    /// What a question is answered with, as a frame.
    fn answer(&self, question: &[u8]) -> Vec<u8> {
        let response = match wire::decode::<InfoRequest>(question) {
            Ok(InfoRequest::Records(wallets)) => {
                InfoResponse::Records(wallets.into_iter().filter_map(|wallet| self.record(wallet)).collect())
            }
            Ok(InfoRequest::Peers) => InfoResponse::Records(Vec::new()),
            _ => InfoResponse::Done,
        };
        let head = match self.lie {
            Lie::Garbage => vec![0xff; 300],
            _ => wire::encode(&response),
        };
        let length = u32::try_from(head.len()).unwrap_or(u32::MAX);
        [&length.to_be_bytes()[..], &head].concat()
    }
}

impl RecordStore for Liar {
    type RecordsIter<'a> = iter::Empty<Cow<'a, kad::Record>>;
    type ProvidedIter<'a> = iter::Empty<Cow<'a, kad::ProviderRecord>>;

    fn get(&self, key: &kad::RecordKey) -> Option<Cow<'_, kad::Record>> {
        let wallet = Address::from_bytes(key.as_ref().last_chunk().copied()?);
        Some(Cow::Owned(kad::Record::new(key.clone(), self.value(wallet)?)))
    }

    /// Says yes and forgets.
    fn put(&mut self, _: kad::Record) -> StoreResult<()> {
        Ok(())
    }

    fn remove(&mut self, _: &kad::RecordKey) {}

    fn records(&self) -> Self::RecordsIter<'_> {
        iter::empty()
    }

    fn add_provider(&mut self, _: kad::ProviderRecord) -> StoreResult<()> {
        Err(StoreError::MaxProvidedKeys)
    }

    fn providers(&self, _: &kad::RecordKey) -> Vec<kad::ProviderRecord> {
        Vec::new()
    }

    fn provided(&self) -> Self::ProvidedIter<'_> {
        iter::empty()
    }

    fn remove_provider(&mut self, _: &kad::RecordKey, _: &PeerId) {}
}

/// Frames as the info protocol has them: a length and so many bytes.
#[derive(Debug, Clone, Default)]
struct Frames;

impl request_response::Codec for Frames {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T>(&mut self, _: &StreamProtocol, io: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        let mut length = [0; 4];
        io.read_exact(&mut length).await?;
        let length = u32::from_be_bytes(length) as usize;
        if length > limits::INFO_REQUEST_BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut bytes = vec![0; length];
        io.read_exact(&mut bytes).await?;
        Ok(bytes)
    }

    async fn read_response<T>(&mut self, _: &StreamProtocol, _: &mut T) -> io::Result<Vec<u8>>
    where
        T: AsyncRead + Unpin + Send,
    {
        Ok(Vec::new())
    }

    async fn write_request<T>(&mut self, _: &StreamProtocol, _: &mut T, _: Vec<u8>) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        Ok(())
    }

    async fn write_response<T>(&mut self, _: &StreamProtocol, io: &mut T, bytes: Vec<u8>) -> io::Result<()>
    where
        T: AsyncWrite + Unpin + Send,
    {
        io.write_all(&bytes).await
    }
}

#[derive(NetworkBehaviour)]
struct Behaviour {
    identify: identify::Behaviour,
    kad: kad::Behaviour<Liar>,
    info: request_response::Behaviour<Frames>,
}

/// Hostile nodes; they end when this is dropped.
#[derive(Debug, Default)]
pub struct Hostiles {
    listening: Vec<(PeerId, Multiaddr)>,
    tasks: Vec<JoinHandle<()>>,
}

impl Hostiles {
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Adds one that joins through `introducers`, knows the hostile ones before it, and lies about `victims`.
    pub async fn join(&mut self, introducers: &[String], victims: &Victims) -> Result<()> {
        let number = self.len();
        let lie = Lie::ALL[number % Lie::ALL.len()];
        let liar = Liar { lie, key: key("hostile", number), victims: Arc::clone(victims) };
        let mut swarm = swarm(liar)?;
        swarm.listen_on("/memory/0".parse()?)?;
        let listening = loop {
            if let SwarmEvent::NewListenAddr { address, .. } = swarm.select_next_some().await {
                break address;
            }
        };
        for (peer, address) in &self.listening {
            swarm.behaviour_mut().kad.add_address(peer, address.clone());
        }
        for introducer in introducers {
            swarm.dial(introducer.parse::<Multiaddr>()?)?;
        }
        self.listening.push((*swarm.local_peer_id(), listening));
        self.tasks.push(tokio::spawn(run(swarm, introducers.len())));
        Ok(())
    }
}

impl Drop for Hostiles {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Answers for ever. Having met those who introduce it, it makes itself known around its own place in the
/// directory, as an honest newcomer does, and around some others; then it forgets every honest node.
async fn run(mut swarm: Swarm<Behaviour>, introducers: usize) {
    let mut met = Vec::new();
    loop {
        match swarm.select_next_some().await {
            SwarmEvent::Behaviour(BehaviourEvent::Identify(identify::Event::Received {
                peer_id,
                info,
                ..
            })) if met.len() < introducers => {
                met.push(peer_id);
                for address in info.listen_addrs {
                    swarm.behaviour_mut().kad.add_address(&peer_id, address);
                }
                if met.len() == introducers {
                    let own = *swarm.local_peer_id();
                    let places = iter::repeat_with(PeerId::random).take(PLACES_VISITED);
                    for place in iter::once(own).chain(places) {
                        swarm.behaviour_mut().kad.get_closest_peers(place);
                    }
                }
            }
            SwarmEvent::Behaviour(BehaviourEvent::Kad(kad::Event::OutboundQueryProgressed {
                step, ..
            })) if step.last => {
                for introducer in &met {
                    swarm.behaviour_mut().kad.remove_peer(introducer);
                }
            }
            SwarmEvent::Behaviour(BehaviourEvent::Info(request_response::Event::Message {
                message: request_response::Message::Request { request, channel, .. },
                ..
            })) => {
                let answer = swarm.behaviour_mut().kad.store_mut().answer(&request);
                // Whoever asked may have gone.
                let _ = swarm.behaviour_mut().info.send_response(channel, answer);
            }
            _ => {}
        }
    }
}

fn swarm(liar: Liar) -> Result<Swarm<Behaviour>> {
    let secret = identity::secp256k1::SecretKey::try_from_bytes(liar.key.to_bytes())?;
    let keypair = identity::Keypair::from(identity::secp256k1::Keypair::from(secret));
    let name = |name: String| StreamProtocol::try_from_owned(name).ok().context("not a protocol's name");
    let mut directory = kad::Config::new(name(network_name().kad_protocol())?);
    directory
        .set_kbucket_inserts(kad::BucketInserts::Manual)
        .set_record_filtering(kad::StoreInserts::FilterBoth)
        .set_periodic_bootstrap_interval(None);
    let own = keypair.public().to_peer_id();
    let mut kad = kad::Behaviour::with_config(own, liar, directory);
    kad.set_mode(Some(kad::Mode::Server));
    let behaviour = Behaviour {
        identify: identify::Behaviour::new(identify::Config::new(
            network_name().identify_version(),
            keypair.public(),
        )),
        kad,
        info: request_response::Behaviour::with_codec(
            Frames,
            [(name(network_name().info_protocol())?, request_response::ProtocolSupport::Full)],
            request_response::Config::default().with_request_timeout(Duration::from_secs(10)),
        ),
    };
    Ok(SwarmBuilder::with_existing_identity(keypair)
        .with_tokio()
        .with_other_transport(|keypair| {
            let queues = MemoryTransport::new().upgrade(Version::V1Lazy);
            Ok(queues.authenticate(noise::Config::new(keypair)?).multiplex(yamux::Config::default()))
        })?
        .with_behaviour(|_| behaviour)?
        .with_swarm_config(|config| config.with_idle_connection_timeout(Duration::from_secs(600)))
        .build())
}
