//! Details and samples by their hash: from this owner's registry, from disk, from the owner, from whoever has them.
//!
//! What was fetched is kept, so a service can be looked at while its owner is away.

use std::sync::{Arc, atomic::Ordering};

use farthing_bounds::HeldBytes;
use farthing_bridge::{description::Operation, document::Bounds};
use farthing_network::CallFailure;
use farthing_protocol::{
    Address, Hash, Listing, ServiceId, Verified,
    info::{InfoRequest, InfoResponse},
    keccak256,
    listing::Pin,
};
use farthing_shared::blocking::start_blocking;

use super::{
    ASK_TIMEOUT, Asker, Catalog, CatalogError, ContentError, KnownError, KnownService, Queuer,
    known::UnreadService, store,
};

/// Other peers asked for content that its owner does not give.
const OTHERS_ASKED_MAX: usize = 8;
/// Words of one operation that the index takes.
const OPERATION_CHARS_MAX: usize = 200;

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

pub(super) const fn pin_of(listing: &Listing) -> Pin {
    Pin { hash: listing.details_hash, bytes: listing.details_bytes }
}

impl Catalog {
    /// The samples document that the service's details pin, for the user; free, and never asked of its upstream.
    ///
    /// # Errors
    /// [`CatalogError::DetailsUnavailable`] when nobody reachable has it, [`CatalogError::Store`] when the own disk failed as well.
    pub async fn samples(&self, known: &KnownService) -> Result<Vec<u8>, CatalogError> {
        let Some(pin) = known.details().samples else { return Ok(Vec::new()) };
        self.content(pin, known.listing().owner, Queuer::User).await
    }

    /// Pinned content, or why it cannot be had. A place for look-ups is held while others are asked, and no longer.
    pub(super) async fn content(
        &self,
        pin: Pin,
        owner: Address,
        queuer: Queuer,
    ) -> Result<Vec<u8>, CatalogError> {
        let own_disk = match self.kept(&pin.hash) {
            Ok(Some(content)) => return Ok(content),
            Ok(None) => None,
            Err(error) => Some(error),
        };
        let _place = self.0.lookups.take(queuer).await;
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
        // What may have been here is not for others to keep.
        Err(own_disk.map_or(CatalogError::DetailsUnavailable { owner, reason: refused }, CatalogError::Store))
    }

    /// Without asking anybody.
    pub(super) fn at_hand(&self, hash: &Hash) -> Option<Vec<u8>> {
        self.kept(hash).ok().flatten()
    }

    fn kept(&self, hash: &Hash) -> Result<Option<Vec<u8>>, store::CatalogError> {
        if let Some(own) = self.0.own.blob(hash) {
            return Ok(Some(own));
        }
        self.0.store.blob(hash).inspect_err(|error| tracing::warn!(%error, "kept content cannot be read"))
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
        start_blocking(move || {
            if let Err(error) = store.put_blob(pin.hash, &kept) {
                tracing::warn!(%error, "content could not be stored");
            }
        });
        Ok(content)
    }

    /// A version with its details, kept in memory for the next call that asks for it.
    pub(super) async fn read_once(
        &self,
        listing: &Verified<Listing>,
        asker: &Asker,
    ) -> Result<Arc<KnownService>, CatalogError> {
        let read = self.version(listing, asker).await?;
        if self.this_in_memory(listing).is_none() {
            let displaced = self.0.unused.lock().put(listing.service, read.clone());
            drop(displaced);
        }
        Ok(read)
    }

    /// A version with its details, from memory or read for this caller alone, to judge what was bought with it. It is not put in
    /// use, and not kept.
    ///
    /// Calls of one secret that are refused together all bring it, and share what came of one reading; those of others do not
    /// wait for that, since theirs may come to its turn sooner.
    ///
    /// # Errors
    /// [`CatalogError::DetailsUnavailable`] when nobody reachable has its details any more, and whatever fails in this node.
    pub async fn version(
        &self,
        listing: &Verified<Listing>,
        asker: &Asker,
    ) -> Result<Arc<KnownService>, CatalogError> {
        let mut turn = self.0.reading.take((listing.service, asker.queuer())).await;
        if let Some((read, outcome)) = &*turn
            && **read == **listing
        {
            return outcome.clone();
        }
        let outcome = match self.this_in_memory(listing) {
            Some(read) => Ok(read),
            None => self.read(listing.clone(), asker).await,
        };
        *turn = Some((listing.clone(), outcome.clone()));
        outcome
    }

    /// This very version, in use or not.
    fn this_in_memory(&self, listing: &Listing) -> Option<Arc<KnownService>> {
        let is_this = |known: &Arc<KnownService>| **known.listing() == *listing;
        let in_use = self.in_memory(listing.service).filter(is_this);
        in_use.or_else(|| self.0.unused.lock().get(&listing.service).filter(is_this))
    }

    /// A service with its details, whatever they take. It keeps the room that it takes for as long as anybody holds it.
    async fn read(
        &self,
        listing: Verified<Listing>,
        asker: &Asker,
    ) -> Result<Arc<KnownService>, CatalogError> {
        let (service, owner) = (listing.service, listing.owner);
        let blob = self.content(pin_of(&listing), owner, asker.queuer()).await?;
        // Before anything of it is opened.
        let may_displace = asker.may_displace(&listing);
        let catalog = self.clone();
        let reading = move || -> Result<Arc<KnownService>, NotRead> {
            // Another caller's turn may have come first.
            if let Some(read) = catalog.this_in_memory(&listing) {
                return Ok(read);
            }
            catalog.0.ways.descriptions_read.fetch_add(1, Ordering::Relaxed);
            let unread = UnreadService::open(listing, &blob, Bounds::ASKED_FOR)?;
            let room = catalog.room_for(unread.values_bytes(), may_displace);
            let mut room = room.ok_or(NotRead::NoMemory)?;
            let known = unread.read()?;
            // With its paths.
            if !catalog.0.memory.enlarge(&mut room, known.memory_bytes()) {
                return Err(NotRead::NoMemory);
            }
            Ok(Arc::new(known.keeping(room)))
        };
        let read = self.0.reader.run(asker.queuer(), reading).await;
        self.indexed(read, (service, owner)).await
    }

    /// Reads a service that nobody asked for, within the bounds of that. It is not kept, so it takes no room.
    pub(super) async fn read_ahead(
        &self,
        listing: Verified<Listing>,
        blob: Vec<u8>,
    ) -> Result<Arc<KnownService>, CatalogError> {
        let of = (listing.service, listing.owner);
        let reading = move || -> Result<Arc<KnownService>, NotRead> {
            Ok(Arc::new(UnreadService::open(listing, &blob, Bounds::UNASKED)?.read()?))
        };
        let read = self.0.reader.run(Queuer::Node, reading).await;
        self.indexed(read, of).await
    }

    /// Room for a description: what nobody pays for makes room for it. What was paid for does as well where that is not enough, if
    /// this one can be paid for.
    fn room_for(&self, bytes: usize, may_displace: bool) -> Option<HeldBytes> {
        let given_up = (self.0.in_use.lock().make_room(bytes), self.0.unused.lock().make_room(bytes));
        drop(given_up);
        let room = self.0.memory.take(bytes);
        if room.is_some() || !may_displace {
            return room;
        }
        let given_up = self.0.in_use.lock().make_room_for_payer(bytes);
        drop(given_up);
        self.0.memory.take(bytes)
    }

    /// The service that came of a reading, found by words of its operations when there is no newer version.
    async fn indexed(
        &self,
        read: Option<Result<Arc<KnownService>, NotRead>>,
        (service, owner): (ServiceId, Address),
    ) -> Result<Arc<KnownService>, CatalogError> {
        let known = came_of(read, (service, owner))?;
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

/// The outcome of a reading: what is wrong with the details is their owner's doing, and all else this node's.
fn came_of<T>(
    read: Option<Result<T, NotRead>>,
    (service, owner): (ServiceId, Address),
) -> Result<T, CatalogError> {
    match read {
        Some(Ok(known)) => Ok(known),
        Some(Err(NotRead::Unreadable(error))) => {
            Err(CatalogError::DetailsUnavailable { owner, reason: ContentError::Unreadable(error) })
        }
        Some(Err(NotRead::NoMemory)) => Err(CatalogError::NoMemory(service)),
        None => Err(CatalogError::NotRead(service)),
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::listing::DetailsError;

    use super::*;

    #[test]
    fn what_fails_in_this_node_is_no_word_about_the_owner() {
        let of = (ServiceId::from_bytes([1; 16]), Address::from_bytes([7; 20]));
        let unreadable = NotRead::Unreadable(Arc::new(DetailsError::OutOfBounds.into()));
        for (read, is_of_owner) in
            [(Some(Err(unreadable)), true), (Some(Err(NotRead::NoMemory)), false), (None, false)]
        {
            let error = came_of::<()>(read, of).unwrap_err();
            assert_eq!(error.is_of_others(), is_of_owner, "{error}");
            let told = format!("{error}. {}", error.next_step());
            assert_eq!(told.to_lowercase().contains("owner"), is_of_owner, "{told}");
        }
        assert!(!CatalogError::Store(store::CatalogError::InUse).is_of_others());
    }

    #[test]
    fn nobody_is_told_to_try_again_what_the_owner_has_to_mend() {
        let next = |reason| CatalogError::DetailsUnavailable { owner: Address::ZERO, reason }.next_step();
        let unreadable = ContentError::Unreadable(Arc::new(DetailsError::OutOfBounds.into()));
        assert_eq!(next(unreadable), next(ContentError::OtherContent));
        assert_ne!(next(ContentError::OtherContent), next(ContentError::Gone));
    }
}
