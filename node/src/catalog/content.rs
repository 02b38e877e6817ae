//! Details and samples by their hash: from this owner's registry, from disk, from the owner, from whoever has them.
//!
//! What was fetched is kept, so a service can be looked at while its owner is away. Small descriptions of new
//! services are fetched ahead, so that a search also finds words of their operations.

use std::time::Duration;

use farthing_bridge::{description::Operation, document::Bounds};
use farthing_protocol::{
    Address, Hash, Listing, ServiceId, Verified,
    info::{InfoRequest, InfoResponse},
    keccak256,
};
use tokio::{sync::broadcast, task::JoinSet};

use super::{ASK_TIMEOUT, Catalog, CatalogError, Known};
use crate::clock;

/// Other peers asked for content that its owner does not give.
const OTHERS_ASKED_MAX: usize = 8;
/// Details fetched ahead; most are a few KiB, and a network of thousands of services must not become a flood.
const AHEAD_BYTES_MAX: u32 = 64 * 1024;
const AHEAD_TOGETHER: usize = 4;
/// An owner that does not answer must not keep the others waiting.
const AHEAD_WITHIN: Duration = Duration::from_secs(10);
/// Words of one operation that the index takes.
const OPERATION_CHARS_MAX: usize = 200;

impl Catalog {
    /// The samples document that the service's details pin; free, and never asked of its upstream.
    ///
    /// # Errors
    /// [`CatalogError::DetailsUnavailable`] when nobody reachable has it.
    pub async fn samples(&self, known: &Known) -> Result<Vec<u8>, CatalogError> {
        let Some(pin) = known.details().samples else { return Ok(Vec::new()) };
        let owner = known.listing().owner;
        let unavailable = |reason| CatalogError::DetailsUnavailable { owner, reason };
        self.content(pin.hash, owner).await.map_err(unavailable)
    }

    /// Content by its hash, or why it cannot be had.
    pub(super) async fn content(&self, hash: Hash, owner: Address) -> Result<Vec<u8>, String> {
        if let Some(content) = self.at_hand(&hash) {
            return Ok(content);
        }
        let refused = match self.fetch(owner, hash).await {
            Ok(content) => return Ok(content),
            Err(refused) => refused,
        };
        let others = self.0.network.connected_peers().await;
        for peer in others.into_iter().filter(|peer| *peer != owner).take(OTHERS_ASKED_MAX) {
            if let Ok(content) = self.fetch(peer, hash).await {
                return Ok(content);
            }
        }
        Err(refused)
    }

    /// Without asking anybody.
    pub(super) fn at_hand(&self, hash: &Hash) -> Option<Vec<u8>> {
        let kept = || match self.0.store.blob(hash) {
            Ok(kept) => kept,
            Err(error) => {
                tracing::warn!(%error, "kept content cannot be read");
                None
            }
        };
        self.0.registry.blob(hash).or_else(kept)
    }

    async fn fetch(&self, peer: Address, hash: Hash) -> Result<Vec<u8>, String> {
        let question = self.0.network.ask(peer, InfoRequest::Blob(hash));
        let content = match tokio::time::timeout(ASK_TIMEOUT, question).await {
            Ok(Ok(InfoResponse::Blob(Some(content)))) => Vec::from(content),
            Ok(Ok(_)) => return Err("the owner no longer has them".to_owned()),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("the owner's node does not answer".to_owned()),
        };
        if keccak256(&[&content]) != hash {
            return Err("the owner sent other content than its listing names".to_owned());
        }
        let (store, kept) = (self.0.store.clone(), content.clone());
        // Not waited for: it is a cache.
        tokio::task::spawn_blocking(move || {
            if let Err(error) = store.put_blob(hash, &kept) {
                tracing::warn!(%error, "content is not kept");
            }
        });
        Ok(content)
    }

    /// Follows what changes in the store and fetches small details ahead, a few at a time. When many services come
    /// at once, as to a newcomer, some are passed over and fetched when somebody looks at them.
    ///
    /// A service that is in use keeps the version it is used with until a call takes a newer one: a dearer one is paid
    /// for only within the caller's `max_price`, or after the owner's refusal has said so to the caller.
    pub async fn follow_changes(&self) {
        let (mut changes, mut fetching) = (self.0.store.changes(), JoinSet::new());
        loop {
            let service = match changes.recv().await {
                Ok(service) => service,
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            };
            if fetching.len() >= AHEAD_TOGETHER {
                fetching.join_next().await;
            }
            let catalog = self.clone();
            fetching.spawn(async move {
                if let Err(error) = catalog.fetch_ahead(service).await {
                    tracing::debug!(%service, %error, "not fetched ahead");
                }
            });
        }
    }

    async fn fetch_ahead(&self, service: ServiceId) -> Result<(), CatalogError> {
        let Some(entry) = self.0.store.get(service, clock::now_secs())? else { return Ok(()) };
        if let Some(own) = self.0.registry.get(service) {
            self.index(own.known()).await;
            return Ok(());
        }
        if entry.listing.tombstone || entry.listing.details_bytes > AHEAD_BYTES_MAX {
            return Ok(());
        }
        let listing = entry.listing;
        let blob = self.content_soon(listing.details_hash, listing.owner).await?;
        // Its bounds limit the time; a limit on the waiting would leave the work behind, beyond those of its number.
        let known = self.read_details(listing, blob, Bounds::UNASKED).await?;
        if let Some(samples) = known.details().samples {
            self.content_soon(samples.hash, known.listing().owner).await?;
        }
        Ok(())
    }

    /// A service with its details, whatever they take.
    pub(super) async fn read(&self, listing: Verified<Listing>) -> Result<Known, CatalogError> {
        let owner = listing.owner;
        let blob = self.content(listing.details_hash, owner).await;
        let blob = blob.map_err(|reason| CatalogError::DetailsUnavailable { owner, reason })?;
        self.read_details(listing, blob, Bounds::ASKED_FOR).await
    }

    async fn read_details(
        &self,
        listing: Verified<Listing>,
        blob: Vec<u8>,
        bounds: Bounds,
    ) -> Result<Known, CatalogError> {
        let owner = listing.owner;
        let unavailable = |reason: String| CatalogError::DetailsUnavailable { owner, reason };
        // Unpacking and checking a large description would hold up the other calls.
        let reading = tokio::task::spawn_blocking(move || Known::within(listing, &blob, bounds));
        let known = reading
            .await
            .map_err(|_| unavailable("the node failed while it read them".to_owned()))?
            .map_err(|e| unavailable(e.to_string()))?;
        self.index(&known).await;
        Ok(known)
    }

    async fn content_soon(&self, hash: Hash, owner: Address) -> Result<Vec<u8>, CatalogError> {
        let content = tokio::time::timeout(AHEAD_WITHIN, self.content(hash, owner)).await;
        let content = content.unwrap_or_else(|_| Err("it did not come in time".to_owned()));
        content.map_err(|reason| CatalogError::DetailsUnavailable { owner, reason })
    }

    /// Lets searches find the words of a service's operations.
    pub(super) async fn index(&self, known: &Known) {
        let text = |operation: &Operation| {
            let words = format!("{} {} {}", operation.path, operation.id, operation.summary);
            words.chars().take(OPERATION_CHARS_MAX).collect::<String>()
        };
        let texts: Vec<String> = known.api().description().operations.iter().map(text).collect();
        if let Err(error) = self.0.store.index_operations(known.listing().service, &texts).await {
            tracing::warn!(%error, "the operations of a service cannot be searched");
        }
    }
}
