//! The owner's own services: listing, details and upstream, kept in the ledger and held ready in memory.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock},
};

use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_protocol::{
    Hash, Listing, ServiceId, Signed, Usdc, Verified,
    call::Method,
    keccak256,
    listing::{Accept, ServiceKind},
    signed::DocumentError,
    wire,
};
use minicbor::{Decode, Encode};

use crate::{
    catalog::{Known, KnownError},
    clock,
    wallet::Signer,
};

use super::{
    new_service::{NewService, NewServiceError},
    upstream::{Upstream, UpstreamError, UpstreamOptions},
};

/// A service of this owner, ready to serve.
#[derive(Debug)]
pub struct Registered {
    known: Known,
    upstream: Upstream,
    stored: Stored,
}

impl Registered {
    #[must_use]
    pub fn listing(&self) -> &Verified<Listing> {
        self.known.listing()
    }

    #[must_use]
    pub const fn known(&self) -> &Known {
        &self.known
    }

    #[must_use]
    pub const fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Base URL of the upstream, as registered.
    #[must_use]
    pub fn upstream_url(&self) -> &str {
        &self.stored.upstream
    }
}

/// The stored form.
#[derive(Clone, Encode, Decode)]
#[cbor(map)]
struct Stored {
    #[n(0)]
    listing: Signed<Listing>,
    #[cbor(n(1), with = "minicbor::bytes")]
    details: Vec<u8>,
    #[n(2)]
    upstream: String,
    /// The owner's own secrets: added to every upstream request.
    #[n(3)]
    headers: BTreeMap<String, String>,
}

impl std::fmt::Debug for Stored {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stored").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}

/// Why a service cannot be registered or changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("no service {0} is registered here; `farthing api list` shows them")]
    NotFound(ServiceId),
    #[error(transparent)]
    Service(#[from] NewServiceError),
    #[error("the service has no operation {method} {path}; `farthing api list` shows them")]
    NoSuchOperation { method: Method, path: String },
    #[error("the listing is not valid: {0}")]
    Listing(#[from] DocumentError),
    #[error("the operations are not valid: {0}")]
    Operations(#[from] KnownError),
    #[error("upstream: {0}")]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

/// The services of this owner. A cheap handle.
#[derive(Clone, Debug)]
pub struct Registry(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    signer: Signer,
    ledger: Ledger,
    network: String,
    accepts: Vec<Accept>,
    options: UpstreamOptions,
    services: RwLock<HashMap<ServiceId, Arc<Registered>>>,
}

impl Registry {
    /// Loads every service of the ledger. One that cannot be loaded is left out with a warning: it must not
    /// keep the others from being served.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger cannot be read.
    pub fn load(
        signer: Signer,
        ledger: Ledger,
        network: String,
        accepts: Vec<Accept>,
        options: UpstreamOptions,
    ) -> Result<Self, LedgerError> {
        let mut services = HashMap::new();
        for (key, bytes) in ledger.list(Namespace::Services)? {
            match open(&bytes, &options) {
                Ok(service) => {
                    services.insert(service.listing().service, Arc::new(service));
                }
                Err(error) => {
                    tracing::warn!(key = %hex::encode(key), %error, "a stored service cannot be loaded");
                }
            }
        }
        let inner = Inner { signer, ledger, network, accepts, options, services: RwLock::new(services) };
        Ok(Self(Arc::new(inner)))
    }

    #[must_use]
    pub fn get(&self, service: ServiceId) -> Option<Arc<Registered>> {
        self.0.services.read().unwrap_or_else(PoisonError::into_inner).get(&service).cloned()
    }

    /// Every service, oldest first.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Registered>> {
        let mut all: Vec<_> =
            self.0.services.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
        all.sort_by_key(|service| (service.listing().created_secs, service.listing().service));
        all
    }

    /// Count and root hash of the listings, for the node record.
    #[must_use]
    pub fn root(&self) -> (u32, Hash) {
        let mut hashes: Vec<Hash> =
            self.all().iter().map(|service| service.listing().to_signed().content_hash()).collect();
        hashes.sort_unstable();
        let parts: Vec<&[u8]> = hashes.iter().map(Hash::as_slice).collect();
        (u32::try_from(hashes.len()).unwrap_or(u32::MAX), keccak256(&parts))
    }

    /// Content that this owner's listings pin.
    #[must_use]
    pub fn blob(&self, hash: &Hash) -> Option<Vec<u8>> {
        let services = self.0.services.read().unwrap_or_else(PoisonError::into_inner);
        services
            .values()
            .find(|service| service.listing().details_hash == *hash)
            .map(|service| service.stored.details.clone())
    }

    /// Publishes a service, or a new version of one.
    ///
    /// # Errors
    /// [`RegistryError`] naming what is wrong; nothing is published then.
    pub async fn add(&self, new: NewService) -> Result<Arc<Registered>, RegistryError> {
        new.check()?;
        let earlier = match new.id {
            Some(id) => Some(self.get(id).ok_or(RegistryError::NotFound(id))?),
            None => None,
        };
        let earlier = earlier.as_ref().map(|service| service.listing());
        let (details, details_hash) = new.details.to_blob();
        let now_secs = clock::now_secs();
        let created_secs = earlier.map_or(now_secs, |listing| listing.created_secs);
        let listing = Listing {
            network: self.0.network.clone(),
            service: new.id.unwrap_or_else(|| ServiceId::from_bytes(uuid::Uuid::new_v4().into_bytes())),
            owner: self.0.signer.address(),
            seq: earlier.map_or(1, |listing| listing.seq + 1),
            name: new.name,
            summary: new.summary,
            category: new.category,
            tags: new.tags,
            kind: ServiceKind::Rest,
            price: new.price,
            charge_policy: new.charge_policy,
            accepts: self.0.accepts.clone(),
            operations_count: u32::try_from(new.details.operations.len()).unwrap_or(u32::MAX),
            details_hash,
            details_bytes: u32::try_from(details.len()).unwrap_or(u32::MAX),
            created_secs,
            updated_secs: now_secs.max(created_secs),
            tombstone: false,
            paused: false,
        };
        let stored = Stored {
            listing: self.0.signer.sign_document(&listing)?,
            details,
            upstream: new.upstream,
            headers: new.upstream_headers,
        };
        self.store(stored).await
    }

    /// Sets the price of one operation, or the default price, from the next call on.
    ///
    /// # Errors
    /// [`RegistryError`]; the old price stays then.
    pub async fn set_price(
        &self,
        service: ServiceId,
        operation: Option<(Method, String)>,
        price: Usdc,
    ) -> Result<Arc<Registered>, RegistryError> {
        let registered = self.get(service).ok_or(RegistryError::NotFound(service))?;
        let Some((method, path)) = operation else {
            return self.change(&registered, |listing| listing.price = price).await;
        };
        let mut details = registered.known.details().clone();
        let found = details.operations.iter_mut().find(|o| o.method == method && o.path == path);
        let found = found.ok_or(RegistryError::NoSuchOperation { method, path })?;
        found.price = Some(price);
        let (blob, details_hash) = details.to_blob();
        let mut stored = self.next_version(&registered, |listing| {
            listing.details_hash = details_hash;
            listing.details_bytes = u32::try_from(blob.len()).unwrap_or(u32::MAX);
        })?;
        stored.details = blob;
        self.store(stored).await
    }

    /// Pauses or resumes a service.
    ///
    /// # Errors
    /// [`RegistryError`]; nothing changes then.
    pub async fn set_paused(
        &self,
        service: ServiceId,
        paused: bool,
    ) -> Result<Arc<Registered>, RegistryError> {
        let registered = self.get(service).ok_or(RegistryError::NotFound(service))?;
        self.change(&registered, |listing| listing.paused = paused).await
    }

    /// Retires a service.
    ///
    /// # Errors
    /// [`RegistryError`]; the service stays then.
    pub async fn remove(&self, service: ServiceId) -> Result<(), RegistryError> {
        self.get(service).ok_or(RegistryError::NotFound(service))?;
        self.0.ledger.delete(Namespace::Services, service.as_bytes().to_vec()).await?;
        self.0.services.write().unwrap_or_else(PoisonError::into_inner).remove(&service);
        Ok(())
    }

    async fn change(
        &self,
        registered: &Registered,
        edit: impl FnOnce(&mut Listing),
    ) -> Result<Arc<Registered>, RegistryError> {
        let stored = self.next_version(registered, edit)?;
        self.store(stored).await
    }

    fn next_version(
        &self,
        registered: &Registered,
        edit: impl FnOnce(&mut Listing),
    ) -> Result<Stored, RegistryError> {
        let mut listing = registered.listing().clone().into_inner();
        edit(&mut listing);
        listing.seq += 1;
        listing.updated_secs = clock::now_secs().max(listing.created_secs);
        Ok(Stored { listing: self.0.signer.sign_document(&listing)?, ..registered.stored.clone() })
    }

    /// Stores, then serves: a service that is offered survives a restart.
    async fn store(&self, stored: Stored) -> Result<Arc<Registered>, RegistryError> {
        let bytes = wire::encode(&stored);
        let service = Arc::new(open(&bytes, &self.0.options)?);
        let id = service.listing().service;
        self.0.ledger.put(Namespace::Services, id.as_bytes().to_vec(), bytes).await?;
        self.0.services.write().unwrap_or_else(PoisonError::into_inner).insert(id, service.clone());
        Ok(service)
    }
}

fn open(bytes: &[u8], options: &UpstreamOptions) -> Result<Registered, RegistryError> {
    let stored: Stored =
        wire::decode(bytes).map_err(|e| DocumentError::Malformed(format!("stored service: {e}")))?;
    let known = Known::new(stored.listing.clone().verify()?, &stored.details)?;
    let upstream = Upstream::new(&stored.upstream, stored.headers.clone(), options.clone())?;
    Ok(Registered { known, upstream, stored })
}
