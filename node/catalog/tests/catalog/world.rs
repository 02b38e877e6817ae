//! A catalog in a folder of its own, owners with keys, and listings they sign.

use farthing_catalog::{
    Catalog, Initiator, Limits, OpenedCatalog, Options, Query, Source, Step, Summary, SyncError, Verdict,
};
use farthing_protocol::{
    Address, Listing, SecretKey, ServiceId, ServiceNonce, Signed, Usdc, keccak256, shards::Shards,
    signed::Document, sync::SyncMessage, wire,
};
use tempfile::TempDir;

/// 2026-01-02T03:04:05Z.
pub const NOW_SECS: u64 = 1_767_323_045;
pub const NETWORK: &str = "local-test";
/// Far ahead of every test's clock.
pub const FOREVER_SECS: u64 = NOW_SECS + 365 * 24 * 3600;

pub struct World {
    pub folder: TempDir,
    /// Those that are kept from the next opening on.
    pub shards: Shards,
    limits: Limits,
    pub catalog: Catalog,
}

impl World {
    pub fn new() -> Self {
        Self::with(Limits::default())
    }

    pub fn with(limits: Limits) -> Self {
        Self::keeping(Shards::ALL, limits)
    }

    pub fn keeping(shards: Shards, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, opened) = Catalog::open(folder.path(), options(shards, &limits)).unwrap();
        assert_eq!(opened, OpenedCatalog::default());
        Self { folder, shards, limits, catalog }
    }

    /// Closes the catalog, changes its files by `meanwhile`, and opens it again.
    pub fn reopen(self, meanwhile: impl FnOnce(&std::path::Path)) -> (Self, OpenedCatalog) {
        let Self { folder, shards, limits, catalog } = self;
        drop(catalog);
        meanwhile(folder.path());
        let (catalog, opened) = Catalog::open(folder.path(), options(shards, &limits)).unwrap();
        (Self { folder, shards, limits, catalog }, opened)
    }

    pub async fn offer(&self, listing: &Signed<Listing>, source: Source) -> Verdict {
        self.offer_at(listing, source, NOW_SECS).await
    }

    pub async fn offer_at(&self, listing: &Signed<Listing>, source: Source, now_secs: u64) -> Verdict {
        self.catalog.offer(vec![listing.clone()], source, now_secs).await.remove(0)
    }

    /// Names of what is found, in order.
    pub async fn names(&self, query: Query) -> Vec<String> {
        let page = self.catalog.search(query, NOW_SECS).await.unwrap();
        page.hits.into_iter().map(|hit| hit.listing.name).collect()
    }
}

fn options(shards: Shards, limits: &Limits) -> Options {
    Options { shards, limits: limits.clone(), ..Options::new(NETWORK, own().address()) }
}

/// This node's key.
pub fn own() -> SecretKey {
    key(0)
}

pub fn key(number: u64) -> SecretKey {
    let mut bytes = [0x11; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    SecretKey::from_bytes(&bytes).unwrap()
}

pub fn peer(number: u8) -> Address {
    Address::from_bytes([number; 20])
}

pub fn pushed() -> Source {
    Source::Pushed(peer(1).into())
}

pub fn fetched() -> Source {
    Source::Fetched(peer(1).into())
}

/// The service `number` of the owner with the same number.
pub fn service(number: u64) -> ServiceId {
    ServiceId::derive(key(number).address(), nonce(number))
}

pub fn nonce(number: u64) -> ServiceNonce {
    let mut bytes = [0x5e; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    ServiceNonce::from_bytes(bytes)
}

/// Listing of the service `number` by `owner`; tests change what matters to them.
pub fn listing(number: u64, owner: &SecretKey) -> Listing {
    Listing {
        name: format!("Service {number}"),
        summary: "Answers questions".to_owned(),
        category: "science".to_owned(),
        tags: vec!["test".to_owned()],
        price: Usdc::from_micros(1_000),
        operations_count: 1,
        details_hash: [7; 32],
        details_bytes: 100,
        ..Listing::first(NETWORK, owner.address(), nonce(number), NOW_SECS - 1_000)
    }
}

pub fn sign(listing: &Listing, key: &SecretKey) -> Signed<Listing> {
    Signed::sign(listing, key).unwrap()
}

/// The same as a patched node signs it: none of the listing's own rules are checked.
pub fn forge(listing: &Listing, key: &SecretKey) -> Signed<Listing> {
    let document = wire::encode(listing);
    let parts: [&[u8]; 4] =
        [b"\x19Farthing signed document:\0", Listing::DOMAIN.as_bytes(), b"\0", &document];
    as_it_travels(&document, &wire::encode(&key.sign(&keccak256(&parts))))
}

/// A document with a signature, both encoded.
pub fn as_it_travels(document: &[u8], signature: &[u8]) -> Signed<Listing> {
    let mut bytes = Vec::new();
    let mut encoder = minicbor::Encoder::new(&mut bytes);
    encoder.map(2).unwrap().u8(0).unwrap().bytes(document).unwrap().u8(1).unwrap();
    bytes.extend(signature);
    wire::decode(&bytes).unwrap()
}

/// Listing `number` by owner `owner`, changed and signed.
pub fn signed(number: u64, owner: u64, change: impl FnOnce(&mut Listing)) -> Signed<Listing> {
    let key = key(owner);
    let mut listing = listing(number, &key);
    change(&mut listing);
    sign(&listing, &key)
}

pub fn words(words: &str) -> Query {
    Query { words: words.to_owned(), ..Query::default() }
}

/// What a reconciliation cost.
#[derive(Debug, Default, Clone, Copy)]
pub struct Cost {
    pub messages: usize,
    pub bytes: usize,
}

/// Reconciles `from` with `with`, message by message, as the network would carry them.
pub async fn reconcile(from: &Catalog, with: &Catalog) -> Result<(Summary, Cost), SyncError> {
    exchange(from.initiator(peer(2), false, NOW_SECS).await?, with).await
}

/// The same between two that know of shards.
pub async fn reconcile_shards(from: &Catalog, with: &Catalog) -> Result<(Summary, Cost), SyncError> {
    exchange(from.initiator(peer(2), true, NOW_SECS).await?, with).await
}

async fn exchange(
    (mut initiator, mut message): (Initiator, SyncMessage),
    with: &Catalog,
) -> Result<(Summary, Cost), SyncError> {
    let mut cost = Cost::default();
    let mut responder = with.responder(peer(1), NOW_SECS);
    loop {
        let answer = responder.on(carry(&message, &mut cost), NOW_SECS).await?;
        match initiator.on(carry(&answer, &mut cost), NOW_SECS).await? {
            Step::Send(next) => message = next,
            Step::Done(summary) => return Ok((summary, cost)),
        }
    }
}

fn carry(message: &SyncMessage, cost: &mut Cost) -> SyncMessage {
    let bytes = wire::encode(message);
    assert!(bytes.len() <= farthing_protocol::limits::SYNC_FRAME_BYTES_MAX, "{} bytes", bytes.len());
    cost.messages += 1;
    cost.bytes += bytes.len();
    wire::decode(&bytes).unwrap()
}
