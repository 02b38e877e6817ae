//! Newer versions of a service in use: looked for, brought by a refusal, asked of the owner.

use std::{sync::Arc, time::Duration};

use farthing_os::clock;
use farthing_protocol::{
    Listing, ServiceId, Signed, Verified,
    info::{InfoRequest, InfoResponse},
};
use tokio::time::Instant;

use super::{ASK_TIMEOUT, Asker, Catalog, CatalogError, KnownService, News, replaces};

/// The time after which an owner is asked again for a newer version of one service.
const REFRESH_EVERY: Duration = Duration::from_secs(2);

impl Catalog {
    /// A newer version of a service in use, when one has arrived. It is not in use before
    /// [`Catalog::use_from_now`].
    pub async fn newer(&self, known: &KnownService, asker: &Asker) -> Option<Arc<KnownService>> {
        let listing = self.newer_listing(known)?;
        self.read_once(&listing, asker).await.ok()
    }

    /// The newest version that this node has, to look at: no call is planned with it.
    pub async fn newest(&self, id: ServiceId, asker: &Asker) -> Result<Arc<KnownService>, CatalogError> {
        let known = self.service(id, asker).await?;
        let Some(newer) = self.newer(&known, asker).await else { return Ok(known) };
        self.0.seen.note(Some(known), newer.clone()).await;
        Ok(newer)
    }

    /// Takes over what an owner's refusal brought: a newer listing of the same service by the same owner. `None`
    /// when it is something else, to which nobody listens.
    ///
    /// # Errors
    /// [`CatalogError`] when its details cannot be had.
    pub async fn adopt(
        &self,
        known: &KnownService,
        listing: Signed<Listing>,
        asker: &Asker,
    ) -> Result<Option<Arc<KnownService>>, CatalogError> {
        let current = known.listing();
        let Some(listing) = self.accept(listing, current.owner) else { return Ok(None) };
        if !replaces(&listing, current) {
            if listing.service == current.service && listing.seq < current.seq {
                // Its disk was put back. Until it has heard of the later version, nobody takes what it offers.
                self.tell(News::Behind(current.owner));
            }
            return Ok(None);
        }
        self.keep(&listing, current.owner).await;
        self.open(&listing, asker).await.map(Some)
    }

    /// The service's newest version, asked of its owner, when that differs from `known`: before a call is
    /// refused here, the owner may have changed its offer. A service is asked for at most every two seconds.
    pub async fn refresh(&self, known: &KnownService, asker: &Asker) -> Option<Arc<KnownService>> {
        let (id, owner) = (known.listing().service, known.listing().owner);
        if !self.may_ask_again(id) {
            return None;
        }
        let question = self.0.network.ask(owner, InfoRequest::Services(vec![id]));
        let answer = tokio::time::timeout(ASK_TIMEOUT, question).await.ok()?.ok()?;
        let InfoResponse::Listings(listings) = answer else { return None };
        let listing = listings.into_iter().next().and_then(|listing| self.accept(listing, owner))?;
        if !replaces(&listing, known.listing()) {
            return None;
        }
        self.keep(&listing, owner).await;
        self.open(&listing, asker).await.ok()
    }

    fn may_ask_again(&self, id: ServiceId) -> bool {
        let mut asked = self.0.asked.lock();
        if asked.get(&id).is_some_and(|last| last.elapsed() < REFRESH_EVERY) {
            return false;
        }
        asked.put(id, Instant::now());
        true
    }

    /// Returns the store's newer listing of a service in use. Mostly there is none, which costs a look into memory.
    pub(super) fn newer_listing(&self, known: &KnownService) -> Option<Verified<Listing>> {
        let current = known.listing();
        if self.0.store.seq(current.service)? <= current.seq {
            return None;
        }
        let stored = self.0.store.get(current.service, clock::now_secs()).ok()??;
        Some(stored.listing).filter(|listing| replaces(listing, current))
    }
}
