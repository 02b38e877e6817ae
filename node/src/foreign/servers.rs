//! The x402 servers that this node buys from, each with an id that it has here alone.
//!
//! They are few, and all of them are in memory. An address follows the rules of upstreams; one of this machine or of a private
//! network is refused unless the node may reach such places (`network.allow_private`). Others need TLS: a server names the wallet that
//! is paid, and so could anybody on the way to it.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use farthing_ledger::{Ledger, LedgerError, Namespace};
use farthing_os::clock;
use farthing_owner::upstream::{self, AddressClass, UpstreamOptions};
use farthing_protocol::{ServiceId, Usdc, wire};
use minicbor::{Decode, Encode};
use parking_lot::RwLock;
use tokio::sync::Mutex;
use url::Url;
use uuid::Uuid;

use super::terms::ForeignTerms;
use crate::consumer::ForeignError;

/// More than anybody chooses by hand.
const SERVERS_MAX: usize = 200;
const ADDRESS_CHARS_MAX: usize = 2_048;
/// Servers that were removed are remembered, so that a call of one says so. The newest ones are enough.
const REMOVED_MAX: usize = 200;

/// An x402 server, as a service of this node alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignServer {
    pub id: ServiceId,
    /// Its paths are below this one.
    pub url: Url,
    /// Seconds since the Unix epoch.
    pub added_secs: u64,
    /// No call of it may cost more, whatever `max_price` the call has.
    pub max_price: Option<Usdc>,
}

impl ForeignServer {
    /// Its address without the scheme, which stands for a name: a server has no listing, and one host can have several.
    pub fn name(&self) -> String {
        self.url[url::Position::BeforeHost..].trim_end_matches('/').to_owned()
    }
}

#[derive(Encode, Decode)]
#[cbor(map)]
struct StoredServer {
    #[n(0)]
    url: String,
    #[n(1)]
    added_secs: u64,
    #[n(2)]
    max_price_micros: Option<u64>,
    /// Seconds since the Unix epoch; absent unless the user removed it.
    #[n(3)]
    removed_secs: Option<u64>,
}

/// The reason that a server is not added or removed.
#[derive(Debug, thiserror::Error)]
pub enum ForeignServerError {
    #[error(
        "the address of an x402 server must look like https://data.example/api, without user name and query"
    )]
    Malformed,
    #[error("an x402 server cannot be at this address: it is a port of this node, or no server can be there")]
    Forbidden,
    #[error("this address is on this machine or in a private network, which this node does not pay")]
    Private,
    #[error(
        "an x402 server on the internet needs an https address: without TLS, anyone on the way could take the payments"
    )]
    Plain,
    #[error("{SERVERS_MAX} servers are added already")]
    TooMany,
    #[error("there is no x402 server with this id")]
    NotFound,
    #[error("the x402 server does not answer: {0}")]
    Unreachable(String),
    #[error("the ledger could not be written, so nothing was changed")]
    NotStored(#[source] LedgerError),
}

impl ForeignServerError {
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Malformed | Self::Forbidden => "Correct the address.",
            Self::Private => "Set `network.allow_private` on a test network; elsewhere use a public address.",
            Self::Plain => "Use the https address of the server.",
            Self::TooMany => "Remove one with `farthing x402 remove ID`.",
            Self::NotFound => "`farthing x402 list` shows all ids.",
            Self::Unreachable(_) => "Check the address, or try again later. Nothing was paid.",
            Self::NotStored(error) => error.next_step(),
        }
    }
}

/// The servers that the ledger has.
#[derive(Debug)]
pub(super) struct ForeignServers {
    ledger: Ledger,
    /// Servers are added, changed and removed one at a time, so that what is known is what the ledger has.
    turn: Mutex<()>,
    known: RwLock<BTreeMap<ServiceId, ForeignServer>>,
    /// The times at which servers were removed.
    removed: RwLock<BTreeMap<ServiceId, u64>>,
    /// The last terms of servers that are known. Taken after `known` where both are.
    heard: RwLock<BTreeMap<ServiceId, ForeignTerms>>,
    upstream: UpstreamOptions,
    allow_private: bool,
}

impl ForeignServers {
    pub(super) fn restore(
        ledger: Ledger,
        upstream: UpstreamOptions,
        allow_private: bool,
    ) -> Result<Self, LedgerError> {
        let (mut known, mut removed) = (BTreeMap::new(), BTreeMap::new());
        for (key, bytes) in ledger.list(Namespace::Foreign)? {
            let id = <[u8; 16]>::try_from(&*key).ok().map(ServiceId::from_bytes);
            match id.and_then(|id| read(id, &bytes)) {
                Some((server, None)) => {
                    known.insert(server.id, server);
                }
                Some((server, Some(removed_secs))) => {
                    removed.insert(server.id, removed_secs);
                }
                None => {
                    tracing::warn!(
                        key = hex::encode(&key),
                        "a stored x402 server cannot be read and is left"
                    );
                }
            }
        }
        let (known, removed) = (RwLock::new(known), RwLock::new(removed));
        let (turn, heard) = (Mutex::default(), RwLock::default());
        Ok(Self { ledger, turn, known, removed, heard, upstream, allow_private })
    }

    pub(super) fn has(&self, id: ServiceId) -> bool {
        self.known.read().contains_key(&id)
    }

    /// Returns whether this id is that of a server that was removed, as far as it is remembered.
    pub(super) fn was_removed(&self, id: ServiceId) -> bool {
        self.removed.read().contains_key(&id)
    }

    pub(super) fn get(&self, id: ServiceId) -> Option<ForeignServer> {
        self.known.read().get(&id).cloned()
    }

    pub(super) fn all(&self) -> Vec<ForeignServer> {
        self.known.read().values().cloned().collect()
    }

    /// Returns what a server asked last; `None` until it was asked.
    pub(super) fn terms(&self, id: ServiceId) -> Option<ForeignTerms> {
        self.heard.read().get(&id).cloned()
    }

    /// Keeps the terms of a server, in place of those before.
    pub(super) fn hear(&self, id: ServiceId, terms: ForeignTerms) {
        let known = self.known.read();
        if known.contains_key(&id) {
            self.heard.write().insert(id, terms);
        }
    }

    /// Returns the server at this address, or the one that the address is a path of: of several, the one with the longest path.
    pub(super) fn at(&self, url: &Url) -> Option<ServiceId> {
        let is_below = |server: &&ForeignServer| {
            let rest = url.path().strip_prefix(server.url.path().trim_end_matches('/'));
            server.url.origin() == url.origin()
                && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let known = self.known.read();
        let nearest = known.values().filter(is_below).max_by_key(|server| server.url.path().len());
        nearest.map(|server| server.id)
    }

    /// Adds a server under a new id. One that is there already keeps its own, and takes over the highest price if there is one.
    pub(super) async fn add(
        &self,
        address: &str,
        max_price: Option<Usdc>,
    ) -> Result<ForeignServer, ForeignServerError> {
        let url = self.checked(address).await?;
        let _turn = self.turn.lock().await;
        let known = self.known.read().values().find(|server| server.url == url).cloned();
        let server = match known {
            Some(known) if max_price.is_none() || known.max_price == max_price => return Ok(known),
            Some(known) => ForeignServer { max_price, ..known },
            None if self.known.read().len() >= SERVERS_MAX => return Err(ForeignServerError::TooMany),
            None => {
                let id = ServiceId::from_bytes(Uuid::new_v4().into_bytes());
                ForeignServer { id, url, added_secs: clock::now_secs(), max_price }
            }
        };
        self.store(&server, None).await?;
        self.known.write().insert(server.id, server.clone());
        Ok(server)
    }

    /// Removes a server; calls that were paid keep their records, and its id is remembered for a while.
    pub(super) async fn remove(&self, id: ServiceId) -> Result<ForeignServer, ForeignServerError> {
        let _turn = self.turn.lock().await;
        let server = self.get(id).ok_or(ForeignServerError::NotFound)?;
        let removed_secs = clock::now_secs();
        self.store(&server, Some(removed_secs)).await?;
        self.known.write().remove(&id);
        self.heard.write().remove(&id);
        self.removed.write().insert(id, removed_secs);
        self.forget_oldest().await;
        Ok(server)
    }

    async fn store(
        &self,
        server: &ForeignServer,
        removed_secs: Option<u64>,
    ) -> Result<(), ForeignServerError> {
        let stored = StoredServer {
            url: server.url.to_string(),
            added_secs: server.added_secs,
            max_price_micros: server.max_price.map(Usdc::micros),
            removed_secs,
        };
        let put = self.ledger.put(Namespace::Foreign, key(server.id), wire::encode(&stored)).await;
        put.map_err(ForeignServerError::NotStored)
    }

    /// Forgets the server that was removed first, if too many are remembered.
    async fn forget_oldest(&self) {
        let Some(id) = oldest(&self.removed.read()) else { return };
        self.removed.write().remove(&id);
        if let Err(error) = self.ledger.delete(Namespace::Foreign, key(id)).await {
            tracing::warn!(server = %id, %error, "an x402 server that was removed is not forgotten");
        }
    }

    /// A client that follows nothing and connects only where a server may be now.
    pub(super) async fn client(&self, url: &Url) -> Result<reqwest::Client, ForeignError> {
        let refused = |why: &str| ForeignError::Unreachable(why.to_owned());
        let literal = upstream::literal_class(url);
        let class = if self.allow_private { literal } else { Some(AddressClass::Public) };
        if literal.is_some() && literal != class {
            return Err(refused("its address is in a private network, which this node does not pay"));
        }
        upstream::check_base(url.as_str(), &self.upstream)
            .map_err(|_| refused("its address leads to this node"))?;
        let class = Arc::new(class.map_or_else(OnceLock::new, OnceLock::from));
        // One that was added before this was refused, or whose name leads elsewhere now.
        if url.scheme() == "http" {
            let fixed = upstream::fix_class(url, &class, &self.upstream).await;
            fixed.map_err(|_| refused("no server can be at its address"))?;
            if class.get() == Some(&AddressClass::Public) {
                return Err(ForeignError::Plain);
            }
        }
        upstream::client(url, &class, &self.upstream)
            .ok_or_else(|| refused("the HTTPS client could not be created"))
    }

    /// Reads the address of a server, or of a path of one, and checks that a server may be there.
    pub(super) async fn checked(&self, address: &str) -> Result<Url, ForeignServerError> {
        let address = address.trim();
        if address.len() > ADDRESS_CHARS_MAX || Url::parse(address).is_err() {
            return Err(ForeignServerError::Malformed);
        }
        let url = upstream::check_base(address, &self.upstream).map_err(|error| match error {
            upstream::UpstreamError::ForbiddenAddress(_) | upstream::UpstreamError::OwnPort(_) => {
                ForeignServerError::Forbidden
            }
            _ => ForeignServerError::Malformed,
        })?;
        let class = upstream::literal_class(&url).map_or_else(OnceLock::new, OnceLock::from);
        let class = Arc::new(class);
        let fixed = upstream::fix_class(&url, &class, &self.upstream).await;
        fixed.map_err(|_| ForeignServerError::Forbidden)?;
        let is_public = class.get() == Some(&AddressClass::Public);
        if is_public && url.scheme() == "http" {
            return Err(ForeignServerError::Plain);
        }
        if self.allow_private || is_public {
            return Ok(url);
        }
        Err(ForeignServerError::Private)
    }
}

fn key(id: ServiceId) -> Bytes {
    Bytes::copy_from_slice(id.as_bytes())
}

/// The server that was removed first, if there are more than are remembered.
fn oldest(removed: &BTreeMap<ServiceId, u64>) -> Option<ServiceId> {
    let first = removed.iter().min_by_key(|(_, removed_secs)| **removed_secs);
    first.map(|(id, _)| *id).filter(|_| removed.len() > REMOVED_MAX)
}

/// A server as it is stored, and the time at which it was removed, if it was.
fn read(id: ServiceId, bytes: &[u8]) -> Option<(ForeignServer, Option<u64>)> {
    let stored: StoredServer = minicbor::decode(bytes).ok()?;
    let server = ForeignServer {
        id,
        url: Url::parse(&stored.url).ok()?,
        added_secs: stored.added_secs,
        max_price: stored.max_price_micros.map(Usdc::from_micros),
    };
    Some((server, stored.removed_secs))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use farthing_owner::upstream::OwnPorts;
    use redb::backends::InMemoryBackend;

    use super::*;

    fn servers(ledger: &Ledger, allow_private: bool) -> ForeignServers {
        let own_ports = OwnPorts::new([3000]);
        let options = UpstreamOptions { own_ports, ..UpstreamOptions::default() };
        ForeignServers::restore(ledger.clone(), options, allow_private).unwrap()
    }

    #[tokio::test]
    async fn a_server_has_one_id_which_is_known_again_after_a_restart_until_it_is_removed() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let first = servers(&ledger, true);
        let added = first.add(" http://127.0.0.1:8080/api ", None).await.unwrap();
        assert_eq!(first.add("http://127.0.0.1:8080/api", None).await.unwrap(), added, "it keeps its id");
        let again = servers(&ledger, true);
        assert_eq!((again.get(added.id), again.all()), (Some(added.clone()), vec![added.clone()]));
        assert_eq!(again.remove(added.id).await.unwrap(), added);
        assert!(matches!(again.remove(added.id).await, Err(ForeignServerError::NotFound)));
        assert!(servers(&ledger, true).all().is_empty());
    }

    #[tokio::test]
    async fn the_newest_servers_that_were_removed_are_known_as_such_after_a_restart() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let first = servers(&ledger, true);
        let mut ids = Vec::new();
        for _ in 0..=REMOVED_MAX {
            let id = first.add("http://127.0.0.1:8080", None).await.unwrap().id;
            assert!(!first.was_removed(id));
            first.remove(id).await.unwrap();
            ids.push(id);
        }
        let again = servers(&ledger, true);
        assert!(again.all().is_empty());
        for all in [&first, &again] {
            assert_eq!(ids.iter().filter(|id| all.was_removed(**id)).count(), REMOVED_MAX);
        }
    }

    #[test]
    fn the_server_that_was_removed_first_is_forgotten_first() {
        let id = |number: usize| ServiceId::from_bytes((number as u128).to_be_bytes());
        let mut removed: BTreeMap<_, _> = (0..REMOVED_MAX).map(|number| (id(number), 7)).collect();
        assert_eq!(oldest(&removed), None);
        removed.insert(id(REMOVED_MAX), 6);
        assert_eq!(oldest(&removed), Some(id(REMOVED_MAX)));
    }

    /// A server as programs stored it that knew no highest price.
    #[derive(Encode)]
    #[cbor(map)]
    struct StoredBefore {
        #[n(0)]
        url: String,
        #[n(1)]
        added_secs: u64,
    }

    #[tokio::test]
    async fn a_highest_price_is_kept_over_a_restart_and_replaced_by_another_one_alone() {
        const ADDRESS: &str = "http://127.0.0.1:8080/api";
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let (first, most) = (servers(&ledger, true), Some(Usdc::from_micros(10_000)));
        let added = first.add(ADDRESS, most).await.unwrap();
        assert_eq!((added.max_price, added.name().as_str()), (most, "127.0.0.1:8080/api"));
        assert_eq!(first.add(ADDRESS, None).await.unwrap(), added, "nothing is said of it");
        let other = Some(Usdc::from_micros(20_000));
        let changed = first.add(ADDRESS, other).await.unwrap();
        assert_eq!((changed.id, changed.max_price), (added.id, other));
        assert_eq!(servers(&ledger, true).all(), [changed]);
        let earlier = wire::encode(&StoredBefore { url: ADDRESS.to_owned(), added_secs: 7 });
        let (read, removed_secs) = read(added.id, &earlier).unwrap();
        assert_eq!((read.added_secs, read.max_price, removed_secs), (7, None, None));
    }

    #[tokio::test]
    async fn terms_are_those_of_a_server_that_is_known_and_of_paths_below_it() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let all = servers(&ledger, true);
        let id = all.add("http://127.0.0.1:8080/api", None).await.unwrap().id;
        for (address, found) in [
            ("http://127.0.0.1:8080/api", true),
            ("http://127.0.0.1:8080/api/v1?q=1", true),
            ("http://127.0.0.1:8080/apis", false),
            ("http://127.0.0.1:8081/api", false),
            ("https://127.0.0.1:8080/api", false),
        ] {
            assert_eq!(all.at(&Url::parse(address).unwrap()), found.then_some(id), "{address}");
        }
        let terms = ForeignTerms::answered(&Url::parse("http://127.0.0.1:8080/api/v1?q=1").unwrap(), 402);
        assert_eq!(terms.url.as_str(), "http://127.0.0.1:8080/api/v1");
        all.hear(id, terms.clone());
        assert_eq!(all.terms(id), Some(terms.clone()));
        all.remove(id).await.unwrap();
        all.hear(id, terms);
        assert_eq!(all.terms(id), None, "a server that is not known asks nothing");
    }

    #[tokio::test]
    async fn terms_of_a_path_are_those_of_the_nearest_server_above_it() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let all = servers(&ledger, true);
        let mut address = "http://127.0.0.1:8080/0".to_owned();
        let mut nested = Vec::new();
        // Ids are random, so the nearest one is seldom found by chance.
        for depth in 1..=8 {
            nested.push((address.clone(), all.add(&address, None).await.unwrap().id));
            address = format!("{address}/{depth}");
        }
        for (address, id) in nested {
            assert_eq!(all.at(&Url::parse(&format!("{address}/x")).unwrap()), Some(id), "{address}");
        }
    }

    #[tokio::test]
    async fn servers_that_are_added_at_once_are_each_added_once_and_no_more_than_there_may_be() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let all = servers(&ledger, true);
        let twice = (0..2 * SERVERS_MAX).map(|number| format!("http://127.0.0.1:8080/{}", number / 2));
        let adding = twice.map(|address| {
            let all = &all;
            async move { all.add(&address, None).await.unwrap().id }
        });
        let ids: BTreeSet<_> = futures::future::join_all(adding).await.into_iter().collect();
        assert_eq!((ids.len(), all.all().len()), (SERVERS_MAX, SERVERS_MAX));
        let more = all.add("http://127.0.0.1:8081", None).await;
        assert!(matches!(more, Err(ForeignServerError::TooMany)), "{more:?}");
        assert_eq!(servers(&ledger, true).all(), all.all(), "as the ledger has them");
        all.remove(all.all()[0].id).await.unwrap();
        all.add("http://127.0.0.1:8081", None).await.unwrap();
    }

    #[tokio::test]
    async fn places_where_no_server_of_others_is_are_not_added_and_not_connected_to() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        let (open, closed) = (servers(&ledger, true), servers(&ledger, false));
        for address in ["http://127.0.0.1:8080", "http://10.1.2.3", "http://[::1]:9", "http://localhost"] {
            assert!(matches!(closed.add(address, None).await, Err(ForeignServerError::Private)), "{address}");
        }
        for address in ["http://169.254.169.254", "http://127.0.0.1:3000/x", "http://0.0.0.0"] {
            assert!(matches!(open.add(address, None).await, Err(ForeignServerError::Forbidden)), "{address}");
        }
        for address in ["", "data.example", "ftp://a.example", "https://u:p@a.example", "https://a.example?b"]
        {
            assert!(matches!(open.add(address, None).await, Err(ForeignServerError::Malformed)), "{address}");
        }
        // One that was added while the node might reach such places.
        let added = open.add("http://127.0.0.1:8080", None).await.unwrap();
        assert!(open.client(&added.url).await.is_ok());
        assert!(matches!(closed.client(&added.url).await, Err(ForeignError::Unreachable(_))));
    }

    #[tokio::test]
    async fn a_server_on_the_internet_is_paid_over_tls_alone() {
        let ledger = Ledger::with_backend(InMemoryBackend::new()).unwrap();
        for all in [servers(&ledger, true), servers(&ledger, false)] {
            for host in ["1.1.1.1", "1.1.1.1:8080", "[2606:4700::1]"] {
                let [plain, secure] = ["http", "https"].map(|scheme| format!("{scheme}://{host}/api"));
                assert!(matches!(all.checked(&plain).await, Err(ForeignServerError::Plain)), "{plain}");
                assert!(all.checked(&secure).await.is_ok(), "{secure}");
                // One that was added by a version that took such addresses.
                let [plain, secure] = [plain, secure].map(|address| Url::parse(&address).unwrap());
                assert!(matches!(all.client(&plain).await, Err(ForeignError::Plain)), "{plain}");
                assert!(!matches!(all.client(&secure).await, Err(ForeignError::Plain)), "{secure}");
            }
        }
        let open = servers(&ledger, true);
        for near in ["http://127.0.0.1:8080", "http://192.168.1.9/api", "http://localhost:8080"] {
            assert!(open.client(&open.checked(near).await.unwrap()).await.is_ok(), "{near}");
        }
    }
}
