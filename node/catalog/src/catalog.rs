//! The catalog everyone holds: opening it, offering listings to it, asking it.
//!
//! A listing is examined where it is offered, cheapest first: known, refused before, readable, of this network
//! and time, newer, within its owner's and its neighbour's share, of a shard that is kept, signed. Then the writer takes it.

use std::{
    collections::HashSet,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use farthing_protocol::{
    Address, Hash, Listing, ServiceId, Signed, Verified, shards::Shards, signed::DocumentError,
    sync::ItemName,
};
use tokio::{
    sync::{Semaphore, broadcast},
    task,
};

use crate::{
    content::Content,
    error::{CatalogError, Result},
    index::Index,
    listings::{LookAlike, NamedService, State},
    options::Options,
    picture::PictureCache,
    search::{self, Page, Query, WORDS_CHARS_MAX},
    shared::Shared,
    store::Store,
    verdict::{Reason, Source, Verdict},
    writer::{Job, Queue},
};

/// Batches examined at once: signatures fill a core each.
const EXAMINATIONS_MAX: usize = 2;
/// Text kept of a service's operations; some 200 operations with a line each.
const OPERATIONS_BYTES_MAX: usize = 16 * 1024;

/// The listings of the network, as this node keeps them. A cheap handle; the last one dropped closes the files.
#[derive(Clone, Debug)]
pub struct Catalog {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    // Dropped first: the writer finishes while everything else is there.
    queue: Queue,
    pub(crate) shared: Arc<Shared>,
    content: Content,
    examinations: Semaphore,
    /// The permit to work for sessions: what they take is done one after another.
    pub(crate) sessions: Semaphore,
    pub(crate) picture: PictureCache,
    /// The times at which a full catalog was compared as a whole last: in a session of its own, and of others.
    pub(crate) whole_secs: [AtomicU64; 2],
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenedCatalog {
    /// The damage that was found and what became of it, one sentence each, for a person.
    pub notices: Vec<String>,
    /// Listings that are being written to the search index anew; until then search misses some.
    pub indexing: usize,
}

/// The size of a catalog, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Listings, tombstones not included.
    pub listings: usize,
    pub tombstones: usize,
    /// Listings and tombstones of owners whose node record was never seen.
    pub strangers: usize,
    /// Owners of listings and tombstones.
    pub owners: usize,
    /// Versions remembered so that they are not fetched again.
    pub refused: usize,
    /// Versions taken since the catalog was opened.
    pub taken: u64,
}

/// The part of a catalog that fails, as on a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failing {
    /// New listings are not stored.
    Storage,
    /// Listings are stored, and searches do not find all of them.
    Index,
}

/// A listing with what the catalog knows about it.
#[derive(Clone, Debug)]
pub struct CatalogEntry {
    pub listing: Verified<Listing>,
    pub state: State,
    /// Seconds since the Unix epoch.
    pub first_seen_secs: u64,
    pub look_alike: Option<LookAlike>,
}

impl Catalog {
    /// Opens the catalog in the folder `dir`: `catalog.redb`, `content.redb` and `catalog-index`. What is missing
    /// is made, what is damaged is moved aside and made anew. Blocks while it reads all listings once.
    ///
    /// # Errors
    /// [`CatalogError`] when the folder cannot be used or another process has the files open.
    pub fn open(dir: &Path, options: Options) -> Result<(Self, OpenedCatalog)> {
        fs::create_dir_all(dir).map_err(CatalogError::folder(dir))?;
        let (store, listings, store_notice) = Store::open(&dir.join("catalog.redb"), &options)?;
        let index = Index::open(&dir.join("catalog-index"), store.epoch())?;
        let (content, content_notice) =
            Content::open(&dir.join("content.redb"), options.limits.content_bytes_max)?;
        let unindexed = match index.rebuild {
            true => listings.iter().map(|(slot, _)| slot).collect(),
            false => store.unindexed()?,
        };
        let opened = OpenedCatalog {
            notices: [store_notice, index.notice, content_notice].into_iter().flatten().collect(),
            indexing: unindexed.len(),
        };
        let shared = Arc::new(Shared::new(options, store, index.index, listings));
        let queue = Queue::start(Arc::clone(&shared), unindexed).map_err(CatalogError::folder(dir))?;
        let inner = Inner {
            queue,
            shared,
            content,
            examinations: Semaphore::new(EXAMINATIONS_MAX),
            sessions: Semaphore::new(1),
            picture: PictureCache::default(),
            whole_secs: Default::default(),
        };
        Ok((Self { inner: Arc::new(inner) }, opened))
    }

    /// Offers listings; what is new, newer and right is stored when this returns. One verdict for each, in
    /// order.
    pub async fn offer(&self, listings: Vec<Signed<Listing>>, source: Source, now_secs: u64) -> Vec<Verdict> {
        let count = listings.len();
        let _permit = self.inner.examinations.acquire().await;
        let this = Arc::clone(&self.inner);
        let examined = task::spawn_blocking(move || this.examine_and_put(listings, source, now_secs)).await;
        examined.unwrap_or_else(|_| vec![Verdict::Refused(Reason::Storage); count])
    }

    /// The listing of a service, tombstones included, verified once more.
    ///
    /// # Errors
    /// [`CatalogError`] when it is here and cannot be read.
    pub fn get(&self, service: ServiceId, now_secs: u64) -> Result<Option<CatalogEntry>> {
        let shared = &self.inner.shared;
        let (state, look_alike) = {
            let listings = shared.listings.read();
            let Some((slot, entry)) = listings.find(service) else { return Ok(None) };
            let owner = listings.owners.get(entry.owner);
            (
                owner.map_or(State::Dormant, |owner| listings.owners.state(owner, now_secs)),
                listings.look_alike(slot),
            )
        };
        let Some(row) = shared.store.row(service)? else { return Ok(None) };
        let first_seen_secs = row.first_seen_secs;
        let listing = row.signed.verify().map_err(|e| CatalogError::Damaged(e.to_string()))?;
        Ok(Some(CatalogEntry { listing, state, first_seen_secs, look_alike }))
    }

    /// The listing here of another owner that one from elsewhere may be taken for.
    pub fn look_alike_of(&self, elsewhere: &Listing) -> Option<LookAlike> {
        self.inner.shared.listings.read().look_alike_of(elsewhere)
    }

    /// The version of a service that is here, tombstones included, from memory alone.
    pub fn seq(&self, service: ServiceId) -> Option<u64> {
        self.inner.shared.listings.read().find(service).map(|(_, entry)| entry.seq)
    }

    /// The listing of a service as its owner signed it, to pass on.
    pub fn listing_signed(&self, service: ServiceId) -> Result<Option<Signed<Listing>>> {
        Ok(self.inner.shared.store.row(service)?.map(|row| row.signed))
    }

    /// Every listing and tombstone of an owner, as it signed them.
    pub fn by_owner(&self, owner: Address) -> Result<Vec<Signed<Listing>>> {
        let services: Vec<ServiceId> = {
            let listings = self.inner.shared.listings.read();
            let slots =
                listings.owners.find(owner).map(|(_, owner)| owner.slots.as_slice()).unwrap_or_default();
            slots.iter().filter_map(|&slot| listings.get(slot)).map(|entry| entry.service).collect()
        };
        let rows = self.inner.shared.store.rows(&services)?;
        Ok(rows.into_iter().flatten().map(|row| row.signed).collect())
    }

    /// Services of which a new or newer listing was stored, from now on. A listener that is far behind misses the
    /// oldest, and is told so.
    pub fn changes(&self) -> broadcast::Receiver<ServiceId> {
        self.inner.shared.changes.subscribe()
    }

    /// Returns whether this exact version is here.
    pub fn has(&self, content_hash: &Hash) -> bool {
        self.inner.shared.listings.read().find_item(&ItemName::of(content_hash)).is_some()
    }

    /// Returns the shards whose listings are kept.
    pub fn shards(&self) -> Shards {
        self.inner.shared.options.shards
    }

    /// Returns what could not be written lately, as on a full disk.
    pub fn failing(&self) -> Option<Failing> {
        let shared = &self.inner.shared;
        if shared.store.has_failed() {
            return Some(Failing::Storage);
        }
        shared.is_index_behind.load(Ordering::Relaxed).then_some(Failing::Index)
    }

    /// Returns whether all places are taken.
    pub fn is_full(&self) -> bool {
        self.inner.shared.listings.read().len() >= self.inner.shared.options.limits.listings_max
    }

    pub fn counts(&self) -> Counts {
        let refused = self.inner.shared.gate.lock().refused.len();
        let listings = self.inner.shared.listings.read();
        Counts {
            listings: listings.len() - listings.tombstones(),
            tombstones: listings.tombstones(),
            strangers: listings.strangers(),
            owners: listings.owners.with_listings(),
            refused,
            taken: self.inner.shared.taken.load(Ordering::Relaxed),
        }
    }

    /// A node record of `owner` is valid until `expires_secs`: its listings are live until then. The caller has
    /// verified the record.
    pub fn owner_seen(&self, owner: Address, expires_secs: u64) {
        self.inner.shared.listings.write().owner_seen(owner, expires_secs);
    }

    /// The owner said goodbye, or its record is known to have expired.
    pub fn owner_gone(&self, owner: Address, now_secs: u64) {
        self.inner.shared.listings.write().owners.gone(owner, now_secs);
    }

    /// Returns what is known of an owner, whether or not it has a listing here.
    pub fn state(&self, owner: Address, now_secs: u64) -> State {
        let listings = self.inner.shared.listings.read();
        let owner = listings.owners.find(owner);
        owner.map_or(State::Away, |(_, owner)| listings.owners.state(owner, now_secs))
    }

    /// This node has channels with these owners and no others: their listings never leave for others.
    pub fn set_partners(&self, owners: HashSet<Address>, now_secs: u64) {
        self.inner.shared.listings.write().set_partners(owners, now_secs);
        self.inner.shared.welcome_again();
    }

    /// This node paid for so many more calls of each of these services, and got them: what is used comes first where
    /// nothing else says what is sought. Not stored.
    pub fn completed(&self, calls: impl IntoIterator<Item = (ServiceId, u32)>) {
        let mut is_first = false;
        {
            let mut listings = self.inner.shared.listings.write();
            calls.into_iter().for_each(|(service, calls)| is_first |= listings.completed(service, calls));
        }
        if is_first {
            self.inner.shared.welcome_again();
        }
    }

    /// Owners whose listings are here and whose node record is not known or has expired, at most `owners_max`:
    /// worth asking a neighbour for.
    pub fn owners_missing(&self, now_secs: u64, owners_max: usize) -> Vec<Address> {
        let listings = self.inner.shared.listings.read();
        let owners = listings.owners.iter().map(|(_, owner)| owner);
        owners
            .filter(|owner| !owner.slots.is_empty() && listings.owners.state(owner, now_secs) != State::Live)
            .map(|owner| owner.address)
            .take(owners_max)
            .collect()
    }

    /// Removes the listings of owners that have been away too long, and stores who was seen since the last
    /// time. Due every few minutes. Returns how many listings left.
    pub async fn sweep(&self, now_secs: u64) -> Result<usize> {
        self.ask(move |answer| Job::Sweep { now_secs, answer }).await?
    }

    /// Makes a service findable by its operations: one text each, such as `GET /planets list planets`. They are
    /// known once somebody has fetched the details, and stay until they are told anew or the listing leaves.
    pub async fn index_operations(&self, service: ServiceId, operations: &[String]) -> Result<()> {
        let mut text = String::new();
        for operation in operations {
            if text.len() + operation.len() > OPERATIONS_BYTES_MAX {
                break;
            }
            text.push_str(operation);
            text.push('\n');
        }
        self.ask(move |answer| Job::Operations { service, text, answer }).await?
    }

    /// Waits until everything stored so far can be found by search.
    pub async fn settled(&self) -> Result<()> {
        self.ask(|answer| Job::Settle { answer }).await?
    }

    /// Searches what is here; works without any network.
    pub async fn search(&self, query: Query, now_secs: u64) -> Result<Page> {
        let this = Arc::clone(&self.inner);
        task::spawn_blocking(move || this.search(query, now_secs)).await.map_err(|_| CatalogError::Closed)?
    }

    /// The services that a text names: those of this name, and those whose id is or begins with it; 20 at most.
    ///
    /// # Errors
    /// [`CatalogError::Closed`] when the program ends.
    pub async fn named(&self, text: String) -> Result<Vec<NamedService>> {
        let shared = Arc::clone(&self.inner.shared);
        let named = task::spawn_blocking(move || shared.listings.read().named(&text)).await;
        named.map_err(|_| CatalogError::Closed)
    }

    /// Content by its Keccak-256, if it is here.
    pub fn blob(&self, hash: &Hash) -> Result<Option<Vec<u8>>> {
        self.inner.content.get(hash)
    }

    /// Keeps content; the content used longest ago leaves for it. Returns false, and keeps nothing, when the
    /// bytes are not what `hash` names or too large. Blocks for one commit.
    pub fn put_blob(&self, hash: Hash, bytes: &[u8]) -> Result<bool> {
        self.inner.content.put(hash, bytes)
    }

    async fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(std::sync::mpsc::SyncSender<T>) -> Job + Send + 'static,
    ) -> Result<T> {
        let this = Arc::clone(&self.inner);
        task::spawn_blocking(move || this.queue.ask(job)).await.map_err(|_| CatalogError::Closed)?
    }
}

impl Inner {
    fn examine_and_put(&self, listings: Vec<Signed<Listing>>, source: Source, now_secs: u64) -> Vec<Verdict> {
        let mut good = Vec::new();
        let examined: Vec<Option<Verdict>> = listings
            .into_iter()
            .map(|listing| match self.examine(listing, source, now_secs) {
                Ok(verified) => {
                    good.push(verified);
                    None
                }
                Err(verdict) => Some(verdict),
            })
            .collect();
        let stored = match good.is_empty() {
            true => Ok(Vec::new()),
            false => self.queue.ask(|answer| Job::Put { listings: good, source, now_secs, answer }),
        };
        let mut stored = stored.unwrap_or_default().into_iter();
        let verdict = |examined: Option<Verdict>| {
            examined.unwrap_or_else(|| stored.next().unwrap_or(Verdict::Refused(Reason::Storage)))
        };
        examined.into_iter().map(verdict).collect()
    }

    /// Everything that can be decided without writing, cheapest first.
    fn examine(
        &self,
        listing: Signed<Listing>,
        source: Source,
        now_secs: u64,
    ) -> Result<(Verified<Listing>, ItemName), Verdict> {
        let item = ItemName::of(&listing.content_hash());
        if self.shared.listings.read().find_item(&item).is_some() {
            return Err(Verdict::Known);
        }
        let own = source == Source::Own;
        if !own && self.shared.gate.lock().refused.contains(&item, now_secs) {
            return Err(Verdict::Refused(Reason::Refused));
        }
        let verified = self.verify(listing, item, source, now_secs);
        verified.map(|listing| (listing, item)).map_err(|reason| {
            self.shared.remember(item, &reason, now_secs);
            Verdict::Refused(reason)
        })
    }

    fn verify(
        &self,
        listing: Signed<Listing>,
        item: ItemName,
        source: Source,
        now_secs: u64,
    ) -> Result<Verified<Listing>, Reason> {
        let claimed = listing.claimed().map_err(reason)?;
        let is_kept = {
            let listings = self.shared.listings.read();
            listings.check(&claimed, item, now_secs)?;
            listings.keeps(&claimed)
        };
        if !self.shared.gate.lock().sources.take(source, now_secs) {
            return Err(Reason::OverBudget);
        }
        if !is_kept {
            return Err(Reason::OtherShard);
        }
        listing.verify().map_err(reason)
    }

    fn search(&self, mut query: Query, now_secs: u64) -> Result<Page> {
        query.words = query.words.chars().take(WORDS_CHARS_MAX).collect();
        let matches = self.shared.index.find(&query.words, query.sort == search::Sort::Relevance)?;
        let found = search::select(&self.shared.listings.read(), &query, matches, now_secs);
        let services: Vec<ServiceId> = found.hits.iter().map(|(service, ..)| *service).collect();
        let rows = self.shared.store.rows(&services)?;
        let listings = rows.into_iter().map(|row| row.and_then(|row| row.signed.claimed().ok()));
        Ok(search::page(found, listings.collect()))
    }
}

fn reason(error: DocumentError) -> Reason {
    match error {
        DocumentError::Signature(_) => Reason::BadSignature,
        DocumentError::Invalid(stolen) if stolen.is_forged => Reason::Stolen(stolen.problem),
        other => Reason::Malformed(other.to_string()),
    }
}
