//! The ground of every history of two halves: a chain with a contract, two wallets with a channel between them, a service that one
//! has published and the other knows.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use bytes::Bytes;
use farthing_chain::{Chain, ChainHandle, ChainStatus, MemoryJournal};
use farthing_config::{Config, Sources, load};
use farthing_control::types::ServiceFile;
use farthing_discovery::{Catalog, KnownService, OwnServices};
use farthing_ledger::{Ledger, Namespace};
use farthing_network::{NetworkConfig, NetworkHandle};
use farthing_node::escrows::Escrows;
use farthing_owner::{
    assemble::assemble,
    registry::{Registered, Registry},
    upstream::UpstreamOptions,
};
use farthing_protocol::{
    Address, ChannelConfig, ChannelId, Escrow, SecretKey, ServiceId, Usdc,
    listing::{Accept, SCHEME_CHANNEL},
    wire::NetworkName,
};
use farthing_testnet::{LocalChain, anvil::Anvil};
use farthing_wallet::{Signer, Wallet};
use redb::backends::InMemoryBackend;
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Of one call, and the most of a day: fourteen calls, fewer than a history orders.
const PRICE: &str = "0.001";
pub const PER_DAY: Usdc = Usdc::from_micros(14_000);
/// Never low: no deposit is made.
pub const DEPOSIT: Usdc = Usdc::from_micros(1_000_000);
pub const NETWORK: &str = "played";
/// Nobody is asked there.
const UPSTREAM: &str = "http://127.0.0.1:9";

/// One side's wallet, and its view of the chain.
#[derive(Clone, Debug)]
pub struct Party {
    pub key: SecretKey,
    pub signer: Signer,
    pub chain: ChainHandle,
}

impl Party {
    /// A node of this wallet without a swarm.
    pub fn network(&self) -> NetworkConfig {
        network(&self.key)
    }
}

/// What all histories have in common.
#[derive(Debug)]
pub struct Ground {
    pub config: Arc<Config>,
    pub consumer: Party,
    pub owner: Party,
    pub escrow: Escrow,
    pub accept: Accept,
    pub channel: ChannelConfig,
    pub id: ChannelId,
    pub service: ServiceId,
    /// The service as the owner's ledger has it.
    pub document: (Bytes, Bytes),
    pub catalog: Catalog,
}

/// What histories of two consumers need besides.
#[derive(Debug)]
pub struct Beside {
    consumer: Party,
    known: Arc<KnownService>,
}

/// What has to stay as long as there are histories: the chain, which goes on in real time, in a runtime of its own.
#[derive(Debug)]
pub struct Kept {
    pub beside: Beside,
    _folder: TempDir,
    _chain: LocalChain,
    _runtime: Runtime,
}

impl Ground {
    pub fn lay() -> (Self, Kept) {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let [payer, payee, beside] = [11, 12, 13].map(|n| SecretKey::from_bytes(&[n; 32]).unwrap());
        let local = runtime.block_on(LocalChain::start()).unwrap();
        let config = Arc::new(config(&local));
        let consumer = runtime.block_on(party(&local, payer));
        let owner = runtime.block_on(party(&local, payee));
        let beside = runtime.block_on(party(&local, beside));
        let escrow = owner.chain.spec().escrow();
        let accept = accept(&config, escrow, owner.key.address());
        let channel = channel(&config, &consumer, &owner, escrow);
        let (document, known) = runtime.block_on(published(&owner.signer, &accept, PRICE, None));
        let (service, known) = (known.listing().service, Arc::new(known));
        let catalog = catalog(&consumer.key, &consumer.signer, &folder, known.clone());
        let catalog = runtime.block_on(catalog);
        let id = channel.id(&escrow.domain());
        let ground =
            Self { config, consumer, owner, escrow, accept, channel, id, service, document, catalog };
        let beside = Beside { consumer: beside, known };
        (ground, Kept { beside, _folder: folder, _chain: local, _runtime: runtime })
    }

    /// The grounds of two consumers of one owner, each with a channel and a catalog of its own for one history: prices change in it.
    pub async fn of_two(&self, beside: &Beside) -> ([Self; 2], TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = [&self.consumer, &beside.consumer].map(|consumer| {
            let folder = folder.path().join(consumer.key.address().to_string());
            let known = beside.known.clone();
            async move {
                let catalog = catalog_in(&consumer.key, &consumer.signer, &folder, known).await;
                self.with(consumer.clone(), catalog)
            }
        });
        ([first.await, second.await], folder)
    }

    /// The same with another consumer.
    fn with(&self, consumer: Party, catalog: Catalog) -> Self {
        let channel = channel(&self.config, &consumer, &self.owner, self.escrow);
        Self {
            config: Arc::clone(&self.config),
            consumer,
            owner: self.owner.clone(),
            escrow: self.escrow,
            accept: self.accept.clone(),
            channel,
            id: channel.id(&self.escrow.domain()),
            service: self.service,
            document: self.document.clone(),
            catalog,
        }
    }

    pub fn escrows(&self) -> Escrows {
        Escrows::new(self.escrow, &BTreeSet::new())
    }
}

/// The channel between two parties.
fn channel(config: &Config, consumer: &Party, owner: &Party, escrow: Escrow) -> ChannelConfig {
    ChannelConfig {
        payer: consumer.key.address(),
        payee: owner.key.address(),
        token: escrow.token,
        signer: consumer.key.address(),
        close_delay_secs: config.chain.close_delay_secs,
        salt: [0; 32],
    }
}

/// The one way to pay an owner.
pub fn accept(config: &Config, escrow: Escrow, owner: Address) -> Accept {
    Accept {
        scheme: SCHEME_CHANNEL.to_owned(),
        chain_id: escrow.chain_id,
        asset: escrow.token,
        pay_to: owner,
        contract: escrow.contract,
        min_deposit: config.settlement.channel_min,
        close_delay_secs: config.chain.close_delay_secs,
    }
}

/// A node of this wallet without a swarm.
pub fn network(key: &SecretKey) -> NetworkConfig {
    NetworkConfig::new(key.clone(), NetworkName::new(NETWORK).unwrap())
}

/// The settings of a node, with a day's limit that a history comes to.
fn config(local: &LocalChain) -> Config {
    let set = [
        "chain.preset=local".to_owned(),
        format!("chain.rpc_urls={}", local.rpc_url()),
        format!("chain.token={}", local.token),
        format!("spending.per_day={PER_DAY}"),
        format!("spending.per_secret_day={PER_DAY}"),
        "limits.call_total_ms=12000".to_owned(),
        "limits.uncharged_per_minute=1000000".to_owned(),
        "limits.uncharged_in_all=1000000".to_owned(),
    ];
    let sources =
        Sources { data_dir: Some("/nowhere/farthing".into()), set: set.into(), ..Sources::default() };
    load(&sources).unwrap().config
}

async fn party(local: &LocalChain, key: SecretKey) -> Party {
    let spec = farthing_chain::local(local.rpc_url(), Anvil::CHAIN_ID, local.token);
    let signer = Wallet::from_key(key.clone()).signer(spec.escrow().domain());
    let chain = Chain::start(spec, key.clone(), Arc::new(MemoryJournal::default())).await.unwrap();
    chain.head().wait_for(Option::is_some).await.unwrap();
    chain.status().wait_for(|status| *status == ChainStatus::Ready).await.unwrap();
    Party { key, signer, chain }
}

fn empty_ledger() -> Ledger {
    Ledger::with_backend(InMemoryBackend::new()).unwrap()
}

/// Publishes the service at a price, and with as long a time for each answer. As the owner's ledger has it, and as others read it.
pub async fn published(
    owner: &Signer,
    accept: &Accept,
    price: &str,
    timeout_secs: Option<u16>,
) -> ((Bytes, Bytes), KnownService) {
    let ledger = empty_ledger();
    let registry = Registry::load(
        owner.clone(),
        ledger.clone(),
        NETWORK.to_owned(),
        vec![accept.clone()],
        UpstreamOptions::default(),
    );
    let registry = registry.unwrap();
    let number = json!([{ "name": "n", "required": true }]);
    let file: ServiceFile = serde_json::from_value(json!({
        "name": "Earthquakes",
        "category": "test",
        "upstream": UPSTREAM,
        "price": price,
        "timeout_secs": timeout_secs,
        "operations": [
            { "method": "GET", "path": "/quakes", "parameters": number },
            { "method": "POST", "path": "/quakes", "parameters": number, "body": true },
        ],
    }))
    .unwrap();
    let registered = registry.add(assemble(file, None).unwrap()).await.unwrap();
    let document = ledger.list(Namespace::Services).unwrap().remove(0);
    (document, as_read(&registry, &registered))
}

/// A service as others read it.
pub fn as_read(registry: &Registry, registered: &Registered) -> KnownService {
    let listing = registered.listing().clone();
    let details = registry.blob(&listing.details_hash).unwrap();
    KnownService::new(listing, &details).unwrap()
}

/// The catalog of a consumer that knows the service and finds nothing else.
pub async fn catalog(
    key: &SecretKey,
    signer: &Signer,
    folder: &TempDir,
    known: Arc<KnownService>,
) -> Catalog {
    catalog_in(key, signer, folder.path(), known).await
}

async fn catalog_in(key: &SecretKey, signer: &Signer, folder: &Path, known: Arc<KnownService>) -> Catalog {
    let options = farthing_catalog::Options::new(NETWORK, key.address());
    let (store, _) = farthing_catalog::Catalog::open(folder, options).unwrap();
    let own = Registry::load(
        signer.clone(),
        empty_ledger(),
        NETWORK.to_owned(),
        Vec::new(),
        UpstreamOptions::default(),
    );
    let (handle, _, _) = NetworkHandle::played(&network(key));
    let (catalog, _) = Catalog::new(store, handle, NETWORK.to_owned(), Arc::new(own.unwrap()));
    catalog.use_from_now(&known).await;
    catalog
}
