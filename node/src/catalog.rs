//! What this node knows of others' services: found by UUID, verified, kept for the next call.
//!
//! A service is looked for in memory, in the ledger, then among the connected peers; its details are fetched
//! by hash from the owner or whoever has them. Nothing found here is believed without its owner's signature.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_network::{InboundInfo, NetworkHandle};
use farthing_protocol::{
    Address, Hash, Listing, ServiceId, Signed, Verified,
    info::{InfoRequest, InfoResponse},
    keccak256, limits, wire,
};
use futures::{StreamExt, stream::FuturesUnordered};
use tokio::sync::mpsc;

use crate::owner::registry::Registry;

pub mod documents;
pub mod known;

pub use known::{Known, KnownError, Plan, PlanError, kind_of, method_of};

/// Peers asked about one service.
const PEERS_ASKED_MAX: usize = 16;
/// How often an owner is asked for a newer version of one service.
const REFRESH_EVERY: Duration = Duration::from_secs(2);
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// How often new peers are asked for their own listings.
const SYNC_INTERVAL: Duration = Duration::from_secs(5);
/// Services kept in memory; the ledger keeps the rest.
const SERVICES_IN_MEMORY_MAX: usize = 1024;
/// Packed details of the services in memory. Unpacked and indexed they take about thirty times as much.
const DETAILS_IN_MEMORY_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Look-ups at once. Calls of one service share a lock, so that a burst of first calls makes one look-up.
const LOOKUPS_MAX: usize = 64;
/// Listings remembered for others. Beyond it only what this node asks for itself is taken in.
const LISTINGS_MAX: usize = 10_000;

/// Why a service cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CatalogError {
    #[error("no connected node knows the service {0}")]
    Unknown(ServiceId),
    #[error("the details of the service cannot be had: {reason}")]
    DetailsUnavailable { owner: Address, reason: String },
}

/// The services of the network, as far as this node needed them. A cheap handle.
#[derive(Clone, Debug)]
pub struct Catalog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ledger: Ledger,
    network: NetworkHandle,
    network_name: String,
    registry: Registry,
    services: RwLock<HashMap<ServiceId, Arc<Known>>>,
    looking: [tokio::sync::Mutex<()>; LOOKUPS_MAX],
    /// When a service's owner was last asked for a newer version.
    asked: Mutex<HashMap<ServiceId, Instant>>,
    /// Listings of others in the ledger.
    remembered: AtomicUsize,
}

impl Catalog {
    /// # Errors
    /// [`LedgerError`] when the remembered listings cannot be read.
    pub fn new(
        ledger: Ledger,
        network: NetworkHandle,
        network_name: String,
        registry: Registry,
    ) -> Result<Self, LedgerError> {
        let remembered = AtomicUsize::new(ledger.list(Namespace::Listings)?.len());
        let services = RwLock::default();
        let asked = Mutex::default();
        let looking = std::array::from_fn(|_| tokio::sync::Mutex::default());
        Ok(Self(Arc::new(Inner {
            ledger,
            network,
            network_name,
            registry,
            services,
            looking,
            asked,
            remembered,
        })))
    }

    /// The service, ready to plan calls with.
    ///
    /// # Errors
    /// [`CatalogError`] when nobody reachable knows it, or its details cannot be had.
    pub async fn service(&self, id: ServiceId) -> Result<Arc<Known>, CatalogError> {
        if let Some(known) = self.in_memory(id) {
            return Ok(known);
        }
        let _looking = self.0.looking[usize::from(id.as_bytes()[0]) % LOOKUPS_MAX].lock().await;
        if let Some(known) = self.in_memory(id) {
            return Ok(known);
        }
        let listing = match self.in_ledger(id) {
            Some(listing) => listing,
            None => self.ask_peers(id).await.ok_or(CatalogError::Unknown(id))?,
        };
        self.open(listing).await
    }

    /// Takes over what an owner's refusal brought: a newer listing of the same service by the same owner. An
    /// owner that sends another's service is not listened to.
    ///
    /// # Errors
    /// [`CatalogError`] when it is something else, or its details cannot be had.
    pub async fn adopt(&self, known: &Known, listing: Signed<Listing>) -> Result<Arc<Known>, CatalogError> {
        let current = known.listing();
        let listing = self.accept(listing).filter(|listing| replaces(listing, current));
        let listing = listing.ok_or_else(|| CatalogError::DetailsUnavailable {
            owner: current.owner,
            reason: "it refused with a listing that is not a newer one of its own".to_owned(),
        })?;
        self.open(listing).await
    }

    /// The service's newest version, asked of its owner, when that differs from `known`: before a call is
    /// refused here, the owner may have changed its offer. A service is asked for at most every two seconds.
    pub async fn refresh(&self, known: &Known) -> Option<Arc<Known>> {
        let (id, owner) = (known.listing().service, known.listing().owner);
        if !self.may_ask_again(id) {
            return None;
        }
        let question = self.0.network.ask(owner, InfoRequest::Services(vec![id]));
        let answer = tokio::time::timeout(ASK_TIMEOUT, question).await.ok()?.ok()?;
        let InfoResponse::Listings(listings) = answer else { return None };
        let listing = listings.into_iter().next().and_then(|listing| self.accept(listing))?;
        if !replaces(&listing, known.listing()) {
            return None;
        }
        self.open(listing).await.ok()
    }

    fn may_ask_again(&self, id: ServiceId) -> bool {
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.get(&id).is_some_and(|last| last.elapsed() < REFRESH_EVERY) {
            return false;
        }
        if asked.len() >= SERVICES_IN_MEMORY_MAX {
            asked.clear();
        }
        asked.insert(id, Instant::now());
        true
    }

    /// Answers other nodes' questions until the network ends.
    pub async fn answer(&self, mut inbound: mpsc::Receiver<InboundInfo>) {
        while let Some(question) = inbound.recv().await {
            let answer = match &question.request {
                InfoRequest::Services(ids) => InfoResponse::Listings(
                    ids.iter()
                        .take(limits::INFO_ITEMS_MAX)
                        .filter_map(|id| self.signed_listing(*id))
                        .collect(),
                ),
                InfoRequest::OwnListings => InfoResponse::Listings(
                    self.0
                        .registry
                        .all()
                        .iter()
                        .take(limits::INFO_ITEMS_MAX)
                        .map(|service| service.listing().to_signed())
                        .collect(),
                ),
                InfoRequest::Blob(hash) => InfoResponse::Blob(self.blob(hash).map(Into::into)),
                InfoRequest::Records(_) | InfoRequest::Push(_) | InfoRequest::Peers => {
                    InfoResponse::Refused("answered by the network itself".to_owned())
                }
            };
            question.reply.send(answer);
        }
    }

    /// Asks every newly connected peer for its own listings, and everyone again now and then, so that a
    /// service is found at nodes that are connected to its owner.
    pub async fn sync(&self) {
        let mut asked: HashMap<Address, u32> = HashMap::new();
        let mut round: u32 = 0;
        loop {
            tokio::time::sleep(SYNC_INTERVAL).await;
            round = round.wrapping_add(1);
            let peers = self.0.network.connected_peers().await;
            asked.retain(|peer, _| peers.contains(peer));
            for peer in peers {
                if asked.get(&peer).is_some_and(|last| round.wrapping_sub(*last) < 12) {
                    continue;
                }
                asked.insert(peer, round);
                if let Ok(InfoResponse::Listings(listings)) =
                    self.0.network.ask(peer, InfoRequest::OwnListings).await
                {
                    for listing in listings.into_iter().take(limits::LISTINGS_PER_OWNER_MAX) {
                        self.remember(listing, peer).await;
                    }
                }
            }
        }
    }

    /// Stores a listing that its owner sent, when it is newer than what is known.
    async fn remember(&self, listing: Signed<Listing>, owner: Address) {
        let Some(listing) = self.accept(listing).filter(|listing| listing.owner == owner) else { return };
        let stored = self.in_ledger(listing.service);
        let is_newer = stored.as_ref().is_none_or(|stored| replaces(&listing, stored));
        let has_room = stored.is_some() || self.0.remembered.load(Ordering::Relaxed) < LISTINGS_MAX;
        if is_newer && has_room {
            self.write(&listing).await;
            if stored.is_none() {
                self.0.remembered.fetch_add(1, Ordering::Relaxed);
            }
            self.0.services.write().unwrap_or_else(PoisonError::into_inner).remove(&listing.service);
        }
    }

    async fn open(&self, listing: Verified<Listing>) -> Result<Arc<Known>, CatalogError> {
        let owner = listing.owner;
        let unavailable = |reason: String| CatalogError::DetailsUnavailable { owner, reason };
        let blob = match self.blob(&listing.details_hash) {
            Some(blob) => blob,
            None => self.fetch_details(&listing).await.map_err(unavailable)?,
        };
        // Unpacking and checking a large description would hold up the other calls.
        let reading = tokio::task::spawn_blocking(move || Known::new(listing, &blob));
        let known = reading
            .await
            .map_err(|_| unavailable("the node failed while it read them".to_owned()))?
            .map_err(|e| unavailable(e.to_string()))?;
        self.write(known.listing()).await;
        let known = Arc::new(known);
        let mut services = self.0.services.write().unwrap_or_else(PoisonError::into_inner);
        let details_bytes = |known: &Arc<Known>| u64::from(known.listing().details_bytes);
        let held: u64 = services.values().map(details_bytes).sum();
        if services.len() >= SERVICES_IN_MEMORY_MAX
            || held + details_bytes(&known) > DETAILS_IN_MEMORY_BYTES_MAX
        {
            services.clear();
        }
        services.insert(known.listing().service, known.clone());
        Ok(known)
    }

    fn in_memory(&self, id: ServiceId) -> Option<Arc<Known>> {
        self.0.services.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    fn in_ledger(&self, id: ServiceId) -> Option<Verified<Listing>> {
        let bytes = self.0.ledger.get(Namespace::Listings, id.as_bytes()).ok()??;
        wire::decode::<Signed<Listing>>(&bytes).ok()?.verify().ok()
    }

    async fn write(&self, listing: &Verified<Listing>) {
        let (key, value) = (listing.service.as_bytes().to_vec(), wire::encode(&listing.to_signed()));
        if let Err(error) = self.0.ledger.put(Namespace::Listings, key, value).await {
            tracing::warn!(%error, "a listing is not remembered");
        }
    }

    /// The newest listing any connected peer has. Waits for all who answer in time, because one of them may
    /// hold an old version.
    async fn ask_peers(&self, id: ServiceId) -> Option<Verified<Listing>> {
        let peers = self.0.network.connected_peers().await;
        let questions: FuturesUnordered<_> = peers
            .into_iter()
            .take(PEERS_ASKED_MAX)
            .map(|peer| {
                let question = self.0.network.ask(peer, InfoRequest::Services(vec![id]));
                tokio::time::timeout(ASK_TIMEOUT, question)
            })
            .collect();
        let answers: Vec<_> = questions.collect().await;
        answers
            .into_iter()
            .filter_map(|answer| match answer {
                Ok(Ok(InfoResponse::Listings(listings))) => Some(listings),
                _ => None,
            })
            .flatten()
            .take(PEERS_ASKED_MAX)
            .filter_map(|listing| self.accept(listing))
            .filter(|listing| listing.service == id)
            .reduce(|best, other| if replaces(&other, &best) { other } else { best })
    }

    async fn fetch_details(&self, listing: &Verified<Listing>) -> Result<Vec<u8>, String> {
        let question = InfoRequest::Blob(listing.details_hash);
        let blob = match self.0.network.ask(listing.owner, question).await {
            Ok(InfoResponse::Blob(Some(blob))) => Vec::from(blob),
            Ok(_) => return Err("the owner no longer has them".to_owned()),
            Err(error) => return Err(error.to_string()),
        };
        if keccak256(&[&blob]) != listing.details_hash {
            return Err("the owner sent other content than its listing names".to_owned());
        }
        let (key, value) = (listing.details_hash.to_vec(), blob.clone());
        if let Err(error) = self.0.ledger.put(Namespace::Blobs, key, value).await {
            tracing::warn!(%error, "details are not remembered");
        }
        Ok(blob)
    }

    fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        let stored = || Some(self.0.ledger.get(Namespace::Blobs, hash).ok()??.to_vec());
        self.0.registry.blob(hash).or_else(stored)
    }

    fn signed_listing(&self, id: ServiceId) -> Option<Signed<Listing>> {
        match self.0.registry.get(id) {
            Some(own) => Some(own.listing().to_signed()),
            None => self.in_ledger(id).map(|listing| listing.to_signed()),
        }
    }

    /// A listing with a good signature, of this network.
    fn accept(&self, listing: Signed<Listing>) -> Option<Verified<Listing>> {
        listing.verify().ok().filter(|listing| listing.network == self.0.network_name)
    }
}

/// Of two listings of one service, the owner's first claim to it counts, then the higher version. Another
/// owner cannot take over a service by publishing the same id.
fn replaces(candidate: &Listing, stored: &Listing) -> bool {
    candidate.service == stored.service && candidate.owner == stored.owner && candidate.seq > stored.seq
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{Usdc, call::ChargePolicy, listing::ServiceKind};

    use super::*;

    fn listing(service: u8, owner: u8, seq: u64) -> Listing {
        Listing {
            network: "local".to_owned(),
            service: ServiceId::from_bytes([service; 16]),
            owner: Address::from_bytes([owner; 20]),
            seq,
            name: "Earthquakes".to_owned(),
            summary: String::new(),
            category: String::new(),
            tags: Vec::new(),
            kind: ServiceKind::Rest,
            price: Usdc::ZERO,
            charge_policy: ChargePolicy::Success,
            accepts: Vec::new(),
            operations_count: 0,
            details_hash: [0; 32],
            details_bytes: 0,
            created_secs: 0,
            updated_secs: 0,
            tombstone: false,
            paused: false,
        }
    }

    #[test]
    fn nobody_takes_over_the_service_of_another_owner() {
        let known = listing(1, 1, 5);
        assert!(replaces(&listing(1, 1, 6), &known));
        assert!(!replaces(&listing(1, 1, 5), &known), "no newer version");
        assert!(!replaces(&listing(1, 2, 6), &known), "another owner");
        assert!(!replaces(&listing(2, 1, 6), &known), "another service");
    }
}
