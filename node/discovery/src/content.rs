//! Details and samples by their hash: from this owner's registry, from disk, from the owner, from whoever has them.
//!
//! What was fetched is kept, so a service can be looked at while its owner is away.

use std::sync::Arc;

use farthing_bridge::{description::Operation, document::Bounds};
use farthing_network::CallFailure;
use farthing_protocol::{
    Address, Hash, Listing, ServiceId, Verified,
    info::{InfoRequest, InfoResponse},
    keccak256,
    listing::Pin,
};
use parking_lot::Mutex;

use super::{
    ASK_TIMEOUT, Catalog, CatalogError, KnownError, KnownService, known::UnreadService, recent::Recent,
};

/// Other peers asked for content that its owner does not give.
const OTHERS_ASKED_MAX: usize = 8;
/// Words of one operation that the index takes.
const OPERATION_CHARS_MAX: usize = 200;

/// The reason that pinned content cannot be had or read.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ContentError {
    #[error(transparent)]
    NotAnswered(#[from] CallFailure),
    #[error("the owner's node does not answer")]
    Silent,
    #[error("the owner no longer has them")]
    Gone,
    #[error("the owner sent other content than its listing names")]
    OtherContent,
    #[error(transparent)]
    Unreadable(Arc<KnownError>),
    /// A mistake in this program ended it.
    #[error("the node failed while it read them")]
    Failed,
}

/// The reason that a description was not read.
enum NotRead {
    NoMemory,
    Unreadable(Arc<KnownError>),
}

impl From<KnownError> for NotRead {
    fn from(error: KnownError) -> Self {
        Self::Unreadable(Arc::new(error))
    }
}

/// The details that a listing pins.
pub(super) const fn pin_of(listing: &Listing) -> Pin {
    Pin { hash: listing.details_hash, bytes: listing.details_bytes }
}

impl Catalog {
    /// The samples document that the service's details pin; free, and never asked of its upstream.
    ///
    /// # Errors
    /// [`CatalogError::DetailsUnavailable`] when nobody reachable has it.
    pub async fn samples(&self, known: &KnownService) -> Result<Vec<u8>, CatalogError> {
        let Some(pin) = known.details().samples else { return Ok(Vec::new()) };
        let owner = known.listing().owner;
        let unavailable = |reason| CatalogError::DetailsUnavailable { owner, reason };
        self.content(pin, owner).await.map_err(unavailable)
    }

    /// Pinned content, or why it cannot be had.
    pub(super) async fn content(&self, pin: Pin, owner: Address) -> Result<Vec<u8>, ContentError> {
        if let Some(content) = self.at_hand(&pin.hash) {
            return Ok(content);
        }
        let refused = match self.fetch(owner, pin).await {
            Ok(content) => return Ok(content),
            Err(refused) => refused,
        };
        let others = self.0.network.connected_peers().await;
        for peer in others.into_iter().filter(|peer| *peer != owner).take(OTHERS_ASKED_MAX) {
            if let Ok(content) = self.fetch_from_connected(peer, pin).await {
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
        self.0.own.blob(hash).or_else(kept)
    }

    /// From `peer`, which is dialled for it.
    async fn fetch(&self, peer: Address, pin: Pin) -> Result<Vec<u8>, ContentError> {
        self.take(self.0.network.ask(peer, InfoRequest::Blob(pin.hash)), pin).await
    }

    pub(super) async fn fetch_from_connected(
        &self,
        peer: Address,
        pin: Pin,
    ) -> Result<Vec<u8>, ContentError> {
        self.take(self.0.network.ask_connected(peer, InfoRequest::Blob(pin.hash)), pin).await
    }

    async fn take(
        &self,
        question: impl Future<Output = Result<InfoResponse, CallFailure>>,
        pin: Pin,
    ) -> Result<Vec<u8>, ContentError> {
        let content = match tokio::time::timeout(ASK_TIMEOUT, question).await {
            Ok(Ok(InfoResponse::Blob(Some(content)))) => Vec::from(content),
            Ok(Ok(_)) => return Err(ContentError::Gone),
            Ok(Err(failure)) => return Err(failure.into()),
            Err(_) => return Err(ContentError::Silent),
        };
        // Before anything of it is kept: what is fetched unasked is bounded by the size that is told.
        let is_named_size = usize::try_from(pin.bytes).is_ok_and(|named| named == content.len());
        if !is_named_size || keccak256(&[&content]) != pin.hash {
            return Err(ContentError::OtherContent);
        }
        let (store, kept) = (self.0.store.clone(), content.clone());
        // Not waited for: it is a cache.
        tokio::task::spawn_blocking(move || {
            if let Err(error) = store.put_blob(pin.hash, &kept) {
                tracing::warn!(%error, "content is not kept");
            }
        });
        Ok(content)
    }

    /// A version with its details. Calls that are refused together all bring it, and share what came of one reading.
    pub(super) async fn read_once(
        &self,
        listing: Verified<Listing>,
    ) -> Result<Arc<KnownService>, CatalogError> {
        let mut turn = self.0.reading.take(listing.service).await;
        if let Some((read, outcome)) = &*turn
            && **read == *listing
        {
            return outcome.clone();
        }
        let this_in = |known: &Mutex<Recent<ServiceId, Arc<KnownService>>>| {
            let known = known.lock().get(&listing.service);
            known.filter(|known| **known.listing() == *listing)
        };
        let outcome = match this_in(&self.0.services).or_else(|| this_in(&self.0.unused)) {
            Some(read) => Ok(read),
            None => self.read(listing.clone()).await.map(Arc::new).inspect(|read| {
                let displaced = self.0.unused.lock().put(listing.service, read.clone());
                drop(displaced);
            }),
        };
        *turn = Some((listing, outcome.clone()));
        outcome
    }

    /// A service with its details, whatever they take: what was used longest ago makes room for it. It keeps the room that
    /// it takes for as long as anybody holds it.
    async fn read(&self, listing: Verified<Listing>) -> Result<KnownService, CatalogError> {
        let (service, owner) = (listing.service, listing.owner);
        let blob = self.content(pin_of(&listing), owner).await;
        let blob = blob.map_err(|reason| CatalogError::DetailsUnavailable { owner, reason })?;
        let catalog = self.clone();
        let reading = move || -> Result<KnownService, NotRead> {
            let room_for = |bytes| catalog.0.memory.take(bytes).ok_or(NotRead::NoMemory);
            let unread = UnreadService::open(listing, &blob, Bounds::ASKED_FOR)?;
            catalog.make_room(unread.values_bytes());
            let room = room_for(unread.values_bytes())?;
            let known = unread.read()?;
            // With its paths. Nobody else takes any meanwhile: one thread reads.
            drop(room);
            let room = room_for(known.memory_bytes())?;
            Ok(known.keeping(room))
        };
        let read = self.0.reader.run(reading).await;
        self.indexed(read, (service, owner)).await
    }

    /// Reads a service that nobody asked for, within the bounds of that. It is not kept, so it takes no room.
    pub(super) async fn read_ahead(
        &self,
        listing: Verified<Listing>,
        blob: Vec<u8>,
    ) -> Result<KnownService, CatalogError> {
        let of = (listing.service, listing.owner);
        let reading = move || -> Result<KnownService, NotRead> {
            Ok(UnreadService::open(listing, &blob, Bounds::UNASKED)?.read()?)
        };
        let read = self.0.reader.run(reading).await;
        self.indexed(read, of).await
    }

    /// Gives up what both stores have no room for beside something of this size.
    fn make_room(&self, bytes: usize) {
        for store in [&self.0.services, &self.0.unused] {
            let given_up = store.lock().make_room(bytes);
            drop(given_up);
        }
    }

    /// The service that came of a reading, found by words of its operations when there is no newer version.
    async fn indexed(
        &self,
        read: Option<Result<KnownService, NotRead>>,
        (service, owner): (ServiceId, Address),
    ) -> Result<KnownService, CatalogError> {
        let unavailable = |reason| CatalogError::DetailsUnavailable { owner, reason };
        let known = match read {
            Some(Ok(known)) => known,
            Some(Err(NotRead::NoMemory)) => return Err(CatalogError::NoMemory(service)),
            Some(Err(NotRead::Unreadable(error))) => {
                return Err(unavailable(ContentError::Unreadable(error)));
            }
            None => return Err(unavailable(ContentError::Failed)),
        };
        if self.newer_listing(&known).is_none() {
            self.index(&known).await;
        }
        Ok(known)
    }

    /// Lets searches find the words of a service's operations.
    pub(super) async fn index(&self, known: &KnownService) {
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

#[cfg(test)]
mod tests {
    use farthing_protocol::listing::DetailsError;

    use super::*;

    #[test]
    fn nobody_is_told_to_try_again_what_the_owner_has_to_mend() {
        let next = |reason| CatalogError::DetailsUnavailable { owner: Address::ZERO, reason }.next_step();
        let unreadable = ContentError::Unreadable(Arc::new(DetailsError::OutOfBounds.into()));
        assert_eq!(next(unreadable), next(ContentError::OtherContent));
        assert_ne!(next(ContentError::OtherContent), next(ContentError::Gone));
    }
}
