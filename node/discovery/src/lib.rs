//! The services of the network, as this node knows them: found, verified, kept, searched.
//!
//! 1. Listings arrive by gossip and by comparing catalogs with neighbours ([`neighbours`]), and are kept by the
//!    store (`farthing-catalog`), which verifies and bounds them.
//! 2. A search asks the store, so it works without a connection; a node that keeps some of the network's shards asks nodes
//!    that keep all besides ([`searches`]).
//! 3. A call needs a service's details: [`content`] fetches them by hash, from the owner or whoever has them, and
//!    [`KnownService`] checks and indexes them. Nothing found here is believed without its owner's signature.

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use farthing_catalog as store;
use farthing_control::types::VersionNote;
use farthing_network::NetworkHandle;
use farthing_os::{clock, files};
use farthing_protocol::{
    Address, Listing, ServiceId, Signed, Verified,
    info::{InfoRequest, InfoResponse},
    shards::shard_of,
};
use farthing_shared::{blocking::start_blocking, keyed_mutex::KeyedMutex, keyed_semaphore::SharedPlaces};
use futures::{StreamExt, stream::FuturesUnordered};
use lru::LruCache;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc},
    time::Instant,
};

mod agenda;
mod ahead;
mod asker;
mod condition;
mod content;
pub mod documents;
mod error;
mod in_use;
mod index_nodes;
pub mod known;
mod liveness;
mod look_alikes;
mod memory;
mod neighbours;
mod newer;
mod own;
mod reader;
mod recent;
pub mod sdk;
mod searches;
mod versions;

pub use asker::{Asker, Queuer};
pub use condition::{Condition, NOT_MODIFIED};
pub use error::{CatalogError, ContentError, UNSTORED, UNSTORED_NEXT, cause_and_next};
pub use known::{
    CallPlan, KnownError, KnownService, PlanError, answers_html, kind_of, method_of, operation_name, time_of,
};
pub use neighbours::StorageHealth;
pub use own::{OwnService, OwnServices};
pub use searches::{AskedNodes, SearchAnswer, SearchScope};
pub use versions::{add_note, note_of, told};

use documents::Writer;
use in_use::{InUse, InUseBytes};
use memory::DescriptionMemory;
use reader::Reader;
use recent::{Displaced, Recent};
use searches::Elsewhere;

/// Look-ups at once. A peer that stays silent holds one for seconds, and anybody may ask for what nobody has.
const LOOKUPS_MAX: usize = 64;
/// Those of one asker.
const LOOKUPS_OF_ONE_MAX: usize = LOOKUPS_MAX / 2;
/// Peers asked about one service.
const PEERS_ASKED_MAX: usize = 16;
const ASK_TIMEOUT: Duration = Duration::from_secs(5);
/// Services kept in memory, ready to plan calls with; the store keeps the rest.
const SERVICES_IN_MEMORY_MAX: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not zero");
/// Versions among them that are not in use.
const UNUSED_IN_MEMORY_MAX: NonZeroUsize = NonZeroUsize::new(64).expect("it is not zero");

/// The time between two writes of what was seen of versions; what was seen since the last may be lost.
const REMEMBER_EVERY: Duration = Duration::from_secs(10);
/// News waiting to be passed on.
const NEWS_MAX: usize = 64;

/// The services of the network. A cheap handle.
#[derive(Clone, Debug)]
pub struct Catalog(Arc<CatalogInner>);

/// A version of a service that was read, with the outcome.
type ReadVersion = (Verified<Listing>, Result<Arc<KnownService>, CatalogError>);

#[derive(Debug)]
struct CatalogInner {
    store: store::Catalog,
    network: NetworkHandle,
    network_name: String,
    own: Arc<dyn OwnServices>,
    in_use: Mutex<InUse<ServiceId, Arc<KnownService>>>,
    /// A burst of first calls of one service with one secret makes one look-up.
    looking: KeyedMutex<(ServiceId, Queuer)>,
    lookups: SharedPlaces<Queuer>,
    reading: KeyedMutex<(ServiceId, Queuer), Option<ReadVersion>>,
    reader: Reader,
    elsewhere: Elsewhere,
    memory: DescriptionMemory,
    writer: Writer,
    /// Newer versions that were read and are not in use yet, say because they are dearer than what was accepted: reading
    /// one takes up to a second, and no call pays for that twice.
    unused: Mutex<Recent<ServiceId, Arc<KnownService>>>,
    /// The time at which a service's owner was last asked for a newer version.
    asked: Mutex<LruCache<ServiceId, Instant>>,
    seen: Arc<versions::SeenVersions>,
    news: mpsc::Sender<News>,
    /// Somebody told of a later version of an own service.
    overtaken: Notify,
    /// Own services whose newest version the store could not take.
    unstored: Mutex<BTreeSet<ServiceId>>,
    ways: Ways,
}

/// Counts of the ways in which listings and descriptions came here since the start.
#[derive(Debug, Default)]
struct Ways {
    gossiped: AtomicU64,
    comparisons: AtomicU64,
    comparisons_fruitful: AtomicU64,
    descriptions_read: AtomicU64,
}

/// The same at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WayCounts {
    /// Listings that were new when a neighbour told of them unasked.
    pub gossiped: u64,
    /// Comparisons of catalogs with neighbours that came to their end, whoever began them.
    pub comparisons: u64,
    /// Those of them that brought something new.
    pub comparisons_fruitful: u64,
    /// Descriptions that were read because somebody asked for the service, and memory did not have it.
    pub descriptions_read: u64,
}

/// Something new that neighbours should hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// This node's own listings changed.
    Own,
    /// A neighbour brought something in a session that it opened.
    From(Address),
    /// An owner offers a version of its own service below one that is known here.
    Behind(Address),
}

impl Catalog {
    /// With what [`Catalog::agree`] is to be started with.
    pub fn new(
        store: store::Catalog,
        network: NetworkHandle,
        network_name: String,
        own: Arc<dyn OwnServices>,
    ) -> (Self, mpsc::Receiver<News>) {
        let (news, heard) = mpsc::channel(NEWS_MAX);
        let bytes_of = |known: &Arc<KnownService>| known.memory_bytes();
        let in_use = InUseBytes { paid_max: memory::PAID_BYTES_MAX, guests_max: memory::UNPAID_BYTES_MAX };
        let inner = CatalogInner {
            store,
            network,
            network_name,
            own,
            in_use: Mutex::new(InUse::new(SERVICES_IN_MEMORY_MAX, bytes_of, in_use)),
            looking: KeyedMutex::default(),
            lookups: SharedPlaces::new(LOOKUPS_MAX, LOOKUPS_OF_ONE_MAX),
            reading: KeyedMutex::default(),
            reader: Reader::start(),
            elsewhere: Elsewhere::new(),
            memory: DescriptionMemory::new(),
            writer: Writer::default(),
            unused: Mutex::new(Recent::new(UNUSED_IN_MEMORY_MAX, bytes_of, memory::UNPAID_BYTES_MAX)),
            asked: Mutex::new(LruCache::new(SERVICES_IN_MEMORY_MAX)),
            seen: Arc::default(),
            news,
            overtaken: Notify::new(),
            unstored: Mutex::default(),
            ways: Ways::default(),
        };
        (Self(Arc::new(inner)), heard)
    }

    /// Queues news for the neighbours; when many wait, they hear of this one with them.
    fn tell(&self, news: News) {
        let _ = self.0.news.try_send(news);
    }

    /// Returns how much of the network this node knows.
    pub fn counts(&self) -> store::Counts {
        self.0.store.counts()
    }

    /// Returns how listings and descriptions came here since the start.
    pub fn ways(&self) -> WayCounts {
        let Ways { gossiped, comparisons, comparisons_fruitful, descriptions_read } = &self.0.ways;
        let counts = [gossiped, comparisons, comparisons_fruitful, descriptions_read];
        let [gossiped, comparisons, comparisons_fruitful, descriptions_read] =
            counts.map(|count| count.load(Ordering::Relaxed));
        WayCounts { gossiped, comparisons, comparisons_fruitful, descriptions_read }
    }

    /// Returns the name that a service gives itself, as far as this node knows without asking anybody.
    pub fn name(&self, id: ServiceId) -> Option<String> {
        let known = self.0.store.get(id, clock::now_secs()).ok().flatten()?;
        Some(known.listing.name.clone())
    }

    /// Finds the services that a text names, among all listings this node has: by name, or by the beginning of an id. Where
    /// this node does not keep all, index nodes are asked for others of this name: a name is nobody's own, and whoever
    /// imitates a service can have a wallet in any shard.
    ///
    /// # Errors
    /// [`CatalogError::Store`] when the program ends.
    pub async fn named(&self, text: String) -> Result<Vec<store::NamedService>, CatalogError> {
        let mut named = self.0.store.named(text.clone()).await?;
        named.extend(self.named_elsewhere(&text).await);
        named.sort_by_key(|service| service.is_look_alike);
        named.truncate(store::NAMED_MAX);
        Ok(named)
    }

    /// Returns the store's entry of a service, for the user, and asks neighbours when it has none.
    ///
    /// # Errors
    /// [`CatalogError`] when nobody reachable knows it, or its owner retired it.
    pub async fn entry(&self, id: ServiceId) -> Result<store::CatalogEntry, CatalogError> {
        let now_secs = clock::now_secs();
        let entry = match self.0.store.get(id, now_secs)? {
            Some(entry) => entry,
            None => {
                let listing = self.listing(id, Queuer::User).await?;
                match self.0.store.get(id, now_secs)? {
                    Some(entry) => entry,
                    None if self.keeps(listing.owner) => return Err(self.why_not_kept(&listing).await),
                    None => store::CatalogEntry {
                        state: self.0.store.state(listing.owner, now_secs),
                        look_alike: self.0.store.look_alike_of(&listing),
                        listing,
                        first_seen_secs: now_secs,
                    },
                }
            }
        };
        unless_retired(&entry.listing)?;
        Ok(entry)
    }

    /// The service, ready to plan calls with, in the version that is in use: a newer one that arrived since may be
    /// dearer, and is left to [`Catalog::newer`].
    ///
    /// # Errors
    /// [`CatalogError`] when nobody reachable knows it, its owner retired it, or its details cannot be had.
    pub async fn service(&self, id: ServiceId, asker: &Asker) -> Result<Arc<KnownService>, CatalogError> {
        if let Some(known) = self.in_use(id)? {
            return Ok(known);
        }
        let _alone = self.0.looking.take((id, asker.queuer())).await;
        if let Some(known) = self.in_use(id)? {
            return Ok(known);
        }
        let listing = self.listing(id, asker.queuer()).await?;
        self.open(&listing, asker).await
    }

    /// The service as calls of it were planned last, when it is still in memory.
    pub fn in_memory(&self, id: ServiceId) -> Option<Arc<KnownService>> {
        self.0.in_use.lock().get(&id)
    }

    /// Takes note of a call of the service that has its money: no other one pushes it out of memory from now on that has none.
    pub fn note_paid(&self, id: ServiceId) {
        let given_up = self.0.in_use.lock().note_paid(id);
        if !given_up.is_empty() {
            // What is large takes a while to be dropped, and its call waits for none of it.
            start_blocking(move || drop(given_up));
        }
    }

    /// The versions of a service, for the user, the newest last: as its owner tells them, and what this node saw beyond
    /// that. What the owner tells is left out when nobody reachable has it.
    pub async fn versions(&self, listing: &Listing) -> Vec<VersionNote> {
        let id = listing.service;
        if let Some(service) = self.0.own.service(id) {
            return service.versions();
        }
        let told = match listing.history {
            Some(pin) => {
                let content = self.content(pin, listing.owner, Queuer::User);
                tokio::time::timeout(ASK_TIMEOUT, content).await.ok().and_then(Result::ok)
            }
            None => None,
        };
        versions::joined(versions::read_told(&told.unwrap_or_default(), listing.seq), self.0.seen.of(id))
    }

    /// Keeps what was seen of strangers' versions in `file`, until it is dropped.
    pub async fn remember_versions(self, file: PathBuf) {
        if let Ok(stored) = tokio::fs::read(&file).await {
            self.0.seen.restore(&stored);
        }
        loop {
            tokio::time::sleep(REMEMBER_EVERY).await;
            let Some(bytes) = self.0.seen.to_store() else { continue };
            let file = file.clone();
            let stored = start_blocking(move || files::replace_private(&file, &bytes)).await;
            if let Ok(Err(error)) = stored {
                tracing::warn!(%error, "the versions seen of services could not be stored");
            }
        }
    }

    /// The newest listing this node or a connected one has.
    async fn listing(&self, id: ServiceId, queuer: Queuer) -> Result<Verified<Listing>, CatalogError> {
        // A call must not fail because the catalog's disk does; somebody else knows the service too.
        let stored = self.0.store.get(id, clock::now_secs()).unwrap_or_else(|error| {
            tracing::warn!(%error, "the catalog cannot be read");
            None
        });
        let listing = match stored.map(|entry| entry.listing).or_else(|| self.found_before(id)) {
            Some(listing) => listing,
            None => {
                let _place = self.0.lookups.take(queuer).await;
                self.ask_peers(id).await.ok_or(CatalogError::Unknown(id))?
            }
        };
        unless_retired(&listing)?;
        Ok(listing)
    }

    /// A service with its details, kept in memory for the next call.
    async fn open(
        &self,
        listing: &Verified<Listing>,
        asker: &Asker,
    ) -> Result<Arc<KnownService>, CatalogError> {
        unless_retired(listing)?;
        let known = self.read_once(listing, asker).await?;
        self.use_from_now(&known).await;
        Ok(known)
    }

    /// Plans calls of the service with this version, unless it or a newer one is in use already.
    pub async fn use_from_now(&self, known: &Arc<KnownService>) {
        let id = known.listing().service;
        let Displaced { before, gone } = {
            let mut in_use = self.0.in_use.lock();
            // The same version is not put there again: what was paid for stays that.
            if in_use.get(&id).is_some_and(|used| used.listing().seq >= known.listing().seq) {
                return;
            }
            in_use.put(id, known.clone())
        };
        drop(gone);
        {
            let mut unused = self.0.unused.lock();
            if unused.get(&id).is_some_and(|kept| Arc::ptr_eq(&kept, known)) {
                drop(unused.remove(&id));
            }
        }
        self.0.seen.note(before, known.clone()).await;
    }

    fn in_use(&self, id: ServiceId) -> Result<Option<Arc<KnownService>>, CatalogError> {
        let known = self.in_memory(id);
        if let Some(newer) = known.as_deref().and_then(|known| self.newer_listing(known)) {
            unless_retired(&newer)?;
        }
        Ok(known)
    }

    /// Gives the store what this node came by itself. A listing the store has no place for serves all the same.
    async fn keep(&self, listing: &Verified<Listing>, from: Address) -> Option<store::Verdict> {
        let offered = vec![listing.to_signed()];
        self.0.store.offer(offered, store::Source::Pushed(from.into()), clock::now_secs()).await.pop()
    }

    /// Returns whether this owner's listings are kept, whether or not this node has to do with it.
    fn keeps(&self, owner: Address) -> bool {
        self.shards().has(shard_of(owner))
    }

    async fn why_not_kept(&self, listing: &Verified<Listing>) -> CatalogError {
        match self.keep(listing, listing.owner).await {
            Some(store::Verdict::Refused(reason)) => {
                CatalogError::NotKept { service: listing.service, reason }
            }
            _ => CatalogError::Unknown(listing.service),
        }
    }

    /// The newest listing any connected peer has. Waits for all who answer in time, because one of them may
    /// hold an old version.
    async fn ask_peers(&self, id: ServiceId) -> Option<Verified<Listing>> {
        let mut peers = self.index_nodes().await;
        let mut connected = self.0.network.connected_peers().await;
        connected.retain(|peer| !peers.contains(peer));
        peers.append(&mut connected);
        let questions: FuturesUnordered<_> = peers
            .into_iter()
            .take(PEERS_ASKED_MAX)
            .map(|peer| {
                let question = self.0.network.ask(peer, InfoRequest::Services(vec![id]));
                async move { (peer, tokio::time::timeout(ASK_TIMEOUT, question).await) }
            })
            .collect();
        let answers: Vec<_> = questions.collect().await;
        let newest = answers
            .into_iter()
            .filter_map(|(peer, answer)| match answer {
                Ok(Ok(InfoResponse::Listings(listings))) => Some((peer, listings.into_iter().next()?)),
                _ => None,
            })
            .filter_map(|(peer, listing)| Some((peer, self.accept(listing, peer)?)))
            .filter(|(_, listing)| listing.service == id)
            .reduce(|best, other| if replaces(&other.1, &best.1) { other } else { best });
        let (peer, listing) = newest?;
        self.keep(&listing, peer).await;
        Some(listing)
    }

    /// A listing with a good signature, of this network. A forged one is held against `from`, who sent it.
    fn accept(&self, listing: Signed<Listing>, from: Address) -> Option<Verified<Listing>> {
        match listing.verify() {
            Ok(listing) => Some(listing).filter(|listing| listing.network == self.0.network_name),
            Err(error) => {
                tracing::debug!(peer = %from, %error, "a listing is refused");
                if error.is_forgery() {
                    self.0.network.accuse(from);
                }
                None
            }
        }
    }
}

fn unless_retired(listing: &Listing) -> Result<(), CatalogError> {
    let &Listing { service, owner, updated_secs: on_secs, tombstone, .. } = listing;
    if tombstone { Err(CatalogError::Retired { service, owner, on_secs }) } else { Ok(()) }
}

/// Of two listings of one service the higher version counts. Both are of one owner, as the id follows from it.
fn replaces(candidate: &Listing, stored: &Listing) -> bool {
    candidate.service == stored.service && candidate.owner == stored.owner && candidate.seq > stored.seq
}

#[cfg(test)]
mod tests {
    use farthing_protocol::ServiceNonce;

    use super::*;

    fn listing(service: u8, owner: u8, seq: u64) -> Listing {
        Listing {
            service: ServiceId::from_bytes([service; 16]),
            seq,
            name: "Earthquakes".to_owned(),
            ..Listing::first(
                "local",
                Address::from_bytes([owner; 20]),
                ServiceNonce::from_bytes([service; 16]),
                0,
            )
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
