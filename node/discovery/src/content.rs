//! Details and samples by their hash: from this owner's registry, from disk, from the owner, from whoever has them.
//!
//! What was fetched is kept, so a service can be looked at while its owner is away.

use std::sync::Arc;

use farthing_bridge::{description::Operation, document::Bounds};
use farthing_network::CallFailure;
use farthing_protocol::{
    Address, Hash, Listing, Verified,
    info::{InfoRequest, InfoResponse},
    keccak256,
    listing::Pin,
};

use super::{ASK_TIMEOUT, Catalog, CatalogError, KnownError, KnownService, known::UnreadService};

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

    /// A service with its details, whatever they take: what was used longest ago makes room for it.
    pub(super) async fn read(&self, listing: Verified<Listing>) -> Result<KnownService, CatalogError> {
        let owner = listing.owner;
        let blob = self.content(pin_of(&listing), owner).await;
        let blob = blob.map_err(|reason| CatalogError::DetailsUnavailable { owner, reason })?;
        let catalog = self.clone();
        let make_room = move |bytes| {
            catalog.0.services.lock().make_room(bytes);

            catalog.0.unused.lock().make_room(bytes);
        };
        self.read_details(listing, blob, Bounds::ASKED_FOR, make_room).await
    }

    /// Reads a service, for whose text `make_room` makes room first.
    pub(super) async fn read_details(
        &self,
        listing: Verified<Listing>,
        blob: Vec<u8>,
        bounds: Bounds,
        make_room: impl FnOnce(usize) + Send + 'static,
    ) -> Result<KnownService, CatalogError> {
        let owner = listing.owner;
        let unavailable = |reason| CatalogError::DetailsUnavailable { owner, reason };
        let reading = self.0.reader.run(move || {
            let unread = UnreadService::open(listing, &blob, bounds)?;
            make_room(unread.values_bytes());
            unread.read()
        });
        let read = reading.await.ok_or_else(|| unavailable(ContentError::Failed))?;
        let known = read.map_err(|error| unavailable(ContentError::Unreadable(Arc::new(error))))?;
        self.index(&known).await;
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
