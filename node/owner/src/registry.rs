//! The owner's own services: listing, details and upstream, kept in the ledger and held ready in memory.

mod error;
mod own;
mod relist;
mod stored;
mod turn;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use farthing_bridge::{Api, description::ApiDescription, document, report::Report};
use farthing_control::types::{ServiceFile, VersionNote};
use farthing_discovery::{KnownService, add_note, kind_of, method_of, note_of, told};
use farthing_ledger::{Document, Ledger, LedgerError, Namespace};
use farthing_os::clock;
use farthing_protocol::{
    Hash, Listing, ServiceId, ServiceNonce, Usdc, Verified,
    call::Method,
    keccak256,
    limits::LISTINGS_PER_OWNER_MAX,
    listing::{Accept, Details, OperationPrice, Pin},
    signed::DocumentError,
    wire,
};
use farthing_shared::keyed_mutex::KeyedMutex;
use farthing_wallet::Signer;
use parking_lot::RwLock;
use tokio::sync::Mutex;

use super::{
    new_service::{NewService, UpstreamSecrets, same_origin},
    samples,
    upstream::{Upstream, UpstreamOptions, check_base},
};

use self::stored::StoredService;
pub use self::{error::RegistryError, turn::PublishTurn};

/// A service of this owner, ready to serve.
#[derive(Debug)]
pub struct Registered {
    known: KnownService,
    upstream: Upstream,
    stored: StoredService,
}

impl Registered {
    pub fn listing(&self) -> &Verified<Listing> {
        self.known.listing()
    }

    pub const fn known(&self) -> &KnownService {
        &self.known
    }

    pub const fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    /// Base URL of the upstream, as registered.
    pub fn upstream_url(&self) -> &str {
        &self.stored.upstream
    }

    /// Names of what this node adds to every upstream request.
    pub fn secret_names(&self) -> impl Iterator<Item = &str> {
        self.stored.headers.keys().chain(self.stored.query.keys()).map(String::as_str)
    }

    /// Returns its file of registration, secrets left out; `None` for a service of an older version of this program.
    pub fn file(&self) -> Option<ServiceFile> {
        serde_json::from_str(&self.stored.file).ok()
    }

    /// Returns the report on its description at registration.
    pub fn report(&self) -> Report {
        serde_json::from_str(&self.stored.report).unwrap_or_default()
    }

    /// Lists the changes of each version, the newest last; nothing of versions before notes were taken.
    pub fn versions(&self) -> Vec<VersionNote> {
        serde_json::from_str(&self.stored.versions).unwrap_or_default()
    }

    /// The samples document; empty when there is none.
    pub fn samples(&self) -> &[u8] {
        &self.stored.samples
    }

    /// Returns the secrets that a new version of it is sent with when none are given.
    pub fn secrets(&self) -> UpstreamSecrets {
        UpstreamSecrets { headers: self.stored.headers.clone(), query: self.stored.query.clone() }
    }
}

/// The services of this owner. A cheap handle.
#[derive(Clone, Debug)]
pub struct Registry(Arc<RegistryInner>);

#[derive(Debug)]
struct RegistryInner {
    signer: Signer,
    ledger: Ledger,
    network: String,
    accepts: Vec<Accept>,
    options: UpstreamOptions,
    services: RwLock<HashMap<ServiceId, Arc<Registered>>>,
    /// Changes of one service are one after another.
    turns: KeyedMutex<ServiceId>,
    /// Held while a new service is added, so that its place is counted.
    adding: Mutex<()>,
}

impl Registry {
    /// Loads every service of the ledger. One that cannot be loaded is left out with a warning: it must not
    /// keep the others from being served.
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
                    let service = hex::encode(key);
                    tracing::warn!(
                        service,
                        %error,
                        "a stored service cannot be loaded and is not offered; publish it again with `farthing api add`"
                    );
                }
            }
        }
        let inner = RegistryInner {
            signer,
            ledger,
            network,
            accepts,
            options,
            services: RwLock::new(services),
            turns: KeyedMutex::default(),
            adding: Mutex::default(),
        };
        Ok(Self(Arc::new(inner)))
    }

    pub fn get(&self, service: ServiceId) -> Option<Arc<Registered>> {
        self.0.services.read().get(&service).cloned()
    }

    /// The same where there has to be one.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`].
    pub fn find(&self, service: ServiceId) -> Result<Arc<Registered>, RegistryError> {
        self.get(service).ok_or(RegistryError::NotFound(service))
    }

    /// Every service, oldest first.
    pub fn all(&self) -> Vec<Arc<Registered>> {
        let mut all: Vec<_> = self.0.services.read().values().cloned().collect();
        all.sort_by_key(|service| (service.listing().created_secs, service.listing().service));
        all
    }

    /// Count and root hash of the listings, for the node record.
    pub fn root(&self) -> (u32, Hash) {
        let mut hashes: Vec<Hash> =
            self.all().iter().map(|service| service.listing().to_signed().content_hash()).collect();
        hashes.sort_unstable();
        let parts: Vec<&[u8]> = hashes.iter().map(Hash::as_slice).collect();
        (u32::try_from(hashes.len()).unwrap_or(u32::MAX), keccak256(&parts))
    }

    /// The turn to change a service, once everybody who came before has published.
    ///
    /// # Errors
    /// [`RegistryError::NotFound`], also when it was retired meanwhile.
    pub async fn turn(&self, service: ServiceId) -> Result<PublishTurn, RegistryError> {
        self.find(service)?;
        let alone = self.0.turns.take(service).await;
        Ok(PublishTurn { service: self.find(service)?, _alone: alone })
    }

    /// Publishes a new service, or what is to be in the place of an earlier one that it names.
    ///
    /// # Errors
    /// [`RegistryError`] naming what is wrong; nothing is published then.
    pub async fn add(&self, new: NewService) -> Result<Arc<Registered>, RegistryError> {
        if let Some(id) = new.id {
            let turn = self.turn(id).await?;
            return self.renew(turn, new).await;
        }
        let _counted = self.0.adding.lock().await;
        let stored = self.prepare(new, None)?;
        self.store(stored, None).await
    }

    /// Publishes the next version of a service, made of what it was when the turn began.
    ///
    /// # Errors
    /// [`RegistryError`] naming what is wrong; nothing is published then.
    pub async fn renew(&self, turn: PublishTurn, new: NewService) -> Result<Arc<Registered>, RegistryError> {
        let stored = self.prepare(new, Some(&turn))?;
        self.store(stored, Some(turn)).await
    }

    /// The service that [`Registry::add`] would publish, judged the same; nothing is stored or told.
    pub fn preview(&self, new: NewService) -> Result<Registered, RegistryError> {
        let earlier = new.id.map(|id| self.find(id)).transpose()?;
        open(&wire::encode(&self.prepare(new, earlier.as_deref())?), &self.0.options)
    }

    /// The keys with which the service would be published.
    pub fn secrets_of(&self, new: &NewService) -> UpstreamSecrets {
        let earlier = new.id.and_then(|id| self.get(id));
        secrets_of(new, earlier.as_deref())
    }

    fn prepare(&self, new: NewService, earlier: Option<&Registered>) -> Result<StoredService, RegistryError> {
        new.check()?;
        check_base(&new.upstream, &self.0.options)?;
        if earlier.is_none() && self.all().len() >= LISTINGS_PER_OWNER_MAX {
            return Err(RegistryError::TooMany);
        }
        let secrets = secrets_of(&new, earlier);
        let stays = |service: &&Registered| {
            !new.upstream_is_named && same_origin(service.upstream_url(), &new.upstream)
        };
        let class = earlier.filter(stays).and_then(|service| service.stored.class);
        let earlier = earlier.map(Registered::listing);
        // Judged as a stranger's would be, before anything is signed. The answer of a GraphQL server is read here.
        let packs_answers = new.api.graphql.is_none();
        let api = Api::new(ApiDescription { packs_answers, ..new.api })?;
        let samples = new.samples.unwrap_or_default();
        let details = Details {
            api: document::encode(api.description())?,
            prices: new.prices,
            samples: (!samples.is_empty()).then(|| pin(&samples)),
        };
        let (details, details_hash) = details.to_blob();
        let now_secs = clock::now_secs();
        let created_secs = earlier.map_or(now_secs, |listing| listing.created_secs.min(now_secs));
        let owner = self.0.signer.address();
        // Every version keeps the nonce, and with it the id.
        let nonce = earlier.map_or_else(new_nonce, |listing| listing.nonce);
        let listing = Listing {
            seq: earlier.map_or(1, |listing| listing.seq + 1),
            name: new.name,
            summary: new.summary,
            category: new.category,
            tags: new.tags,
            kind: kind_of(&api),
            price: new.price,
            charge_policy: new.charge_policy,
            accepts: self.0.accepts.clone(),
            operations_count: u32::try_from(api.description().operations.len()).unwrap_or(u32::MAX),
            details_hash,
            details_bytes: u32::try_from(details.len()).unwrap_or(u32::MAX),
            created_secs,
            // Whoever changes a paused service has not resumed it.
            paused: earlier.is_some_and(|listing| listing.paused),
            samples_count: samples_count(&samples),
            ..Listing::first(&self.0.network, owner, nonce, now_secs)
        };
        Ok(StoredService {
            listing: self.0.signer.sign_document(&listing)?,
            details,
            upstream: new.upstream,
            headers: secrets.headers,
            query: secrets.query,
            file: serde_json::to_string(&new.file).unwrap_or_default(),
            report: serde_json::to_string(&new.report).unwrap_or_default(),
            samples,
            versions: String::new(),
            history: Vec::new(),
            class,
        })
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
        let turn = self.turn(service).await?;
        let Some((method, path)) = operation else {
            return self.change(turn, |listing| listing.price = price).await;
        };
        let mut operations = turn.known.api().description().operations.iter();
        if !operations.any(|operation| method_of(operation) == method && operation.path == path) {
            return Err(RegistryError::NoSuchOperation { method, path });
        }
        let mut details = turn.known.details().clone();
        details.prices.retain(|own| own.method != method || own.path != path);
        details.prices.push(OperationPrice { method, path, price });
        let (blob, details_hash) = details.to_blob();
        let mut stored = self.next_version(&turn, |listing| {
            listing.details_hash = details_hash;
            listing.details_bytes = u32::try_from(blob.len()).unwrap_or(u32::MAX);
        })?;
        stored.details = blob;
        self.store(stored, Some(turn)).await
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
        let turn = self.turn(service).await?;
        self.change(turn, |listing| listing.paused = paused).await
    }

    /// Retires a service. Its last listing says so, and is kept to be told to everybody who knew it.
    ///
    /// # Errors
    /// [`RegistryError`]; the service stays then.
    pub async fn remove(&self, service: ServiceId) -> Result<(), RegistryError> {
        let turn = self.turn(service).await?;
        let last = self.next_version(&turn, |listing| listing.tombstone = true)?.listing;
        let key = Bytes::copy_from_slice(service.as_bytes());
        let gone = Document { namespace: Namespace::Services, key: key.clone(), value: None };
        let word = Document { namespace: Namespace::Retired, key, value: Some(wire::encode(&last).into()) };
        self.0.ledger.put_many(vec![gone, word]).await?;
        self.0.services.write().remove(&service);
        Ok(())
    }

    async fn change(
        &self,
        turn: PublishTurn,
        edit: impl FnOnce(&mut Listing),
    ) -> Result<Arc<Registered>, RegistryError> {
        let stored = self.next_version(&turn, edit)?;
        self.store(stored, Some(turn)).await
    }

    fn next_version(
        &self,
        turn: &PublishTurn,
        edit: impl FnOnce(&mut Listing),
    ) -> Result<StoredService, RegistryError> {
        let mut listing = turn.listing().clone().into_inner();
        edit(&mut listing);
        listing.seq += 1;
        date(&mut listing, clock::now_secs());
        Ok(StoredService { listing: self.0.signer.sign_document(&listing)?, ..turn.stored.clone() })
    }

    /// Stores, then serves: a service that is offered survives a restart. The turn ends when it is served.
    async fn store(
        &self,
        stored: StoredService,
        turn: Option<PublishTurn>,
    ) -> Result<Arc<Registered>, RegistryError> {
        let mut service = open(&wire::encode(&stored), &self.0.options)?;
        service.upstream.fix_class().await?;
        service.stored.class = service.upstream.class();
        let id = service.listing().service;
        let earlier = turn.as_deref();
        let mut versions = earlier.map(Registered::versions).unwrap_or_default();
        add_note(note_of(earlier.map(Registered::known), service.known()), &mut versions);
        service.stored.versions = serde_json::to_string(&versions).unwrap_or_default();
        let mut service = self.with_history(service, told(&versions))?;
        if let Some(earlier) = earlier {
            service.upstream.continue_from(&earlier.upstream);
        }
        let bytes = wire::encode(&service.stored);
        let service = Arc::new(service);
        self.0.ledger.put(Namespace::Services, id.as_bytes().to_vec(), bytes).await?;
        self.0.services.write().insert(id, service.clone());
        Ok(service)
    }

    /// The same with a listing that pins what was different in each version, this one among them.
    fn with_history(&self, service: Registered, history: Vec<u8>) -> Result<Registered, RegistryError> {
        let Registered { known, upstream, mut stored } = service;
        let listing = Listing { history: Some(pin(&history)), ..known.listing().clone().into_inner() };
        stored.listing = self.0.signer.sign_document(&listing)?;
        stored.history = history;
        let known = known.with_listing(stored.listing.clone().verify()?);
        Ok(Registered { known, upstream, stored })
    }
}

/// Dates a version. Nothing was made after it was changed: such a date is of a clock that was wrong then.
fn date(listing: &mut Listing, now_secs: u64) {
    listing.created_secs = listing.created_secs.min(now_secs);
    listing.updated_secs = now_secs;
}

fn open(bytes: &[u8], options: &UpstreamOptions) -> Result<Registered, RegistryError> {
    let stored: StoredService =
        wire::decode(bytes).map_err(|e| DocumentError::Malformed(format!("stored service: {e}")))?;
    let known = KnownService::new(stored.listing.clone().verify()?, &stored.details)?;
    let secrets = UpstreamSecrets { headers: stored.headers.clone(), query: stored.query.clone() };
    let response_headers = stored.response_headers();
    let options = UpstreamOptions { class: stored.class, response_headers, ..options.clone() };
    let upstream = Upstream::new(&stored.upstream, secrets, options)?;
    Ok(Registered { known, upstream, stored })
}

/// A new version keeps the keys unless it brings its own, or another server would get them.
fn secrets_of(new: &NewService, earlier: Option<&Registered>) -> UpstreamSecrets {
    match earlier {
        Some(service) if new.secrets.is_empty() && !new.secrets_are_all => {
            service.secrets().kept_for(service.upstream_url(), &new.upstream)
        }
        _ => new.secrets.clone(),
    }
}

fn new_nonce() -> ServiceNonce {
    ServiceNonce::from_bytes(uuid::Uuid::new_v4().into_bytes())
}

fn samples_count(document: &[u8]) -> u32 {
    u32::try_from(samples::read(document).len()).unwrap_or(u32::MAX)
}

fn pin(content: &[u8]) -> Pin {
    Pin { hash: keccak256(&[content]), bytes: u32::try_from(content.len()).unwrap_or(u32::MAX) }
}
