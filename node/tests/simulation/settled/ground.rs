//! The ground of every history on a played chain: two wallets, and a service that one has published and the other knows. No channel.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bytes::Bytes;
use farthing_chain::ChainSpec;
use farthing_config::{Config, Sources, load};
use farthing_discovery::Catalog;
use farthing_node::{chain_spec::chain_spec, escrows::Escrows};
use farthing_protocol::{Address, ChannelConfig, ChannelId, SecretKey, ServiceId, Usdc, listing::Accept};
use farthing_wallet::{Signer, Wallet};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use crate::halves::ground::{accept, catalog, network, published};

/// The time at which every history begins: 15 January 2027, 08:00 UTC, since the Unix epoch.
pub const BEGAN: Duration = Duration::from_secs(1_800_000_000);
/// Of one call: twenty times the gas of its claim, so that an honest owner leaves nothing behind.
const PRICE: &str = "0.01";
/// Twenty calls, which many histories come to.
pub const PER_DAY: Usdc = Usdc::from_micros(200_000);
/// The shortest that the settings allow.
pub const CLOSE_DELAY_SECS: u64 = 3_600;
const CHAIN_ID: u64 = 31_337;
/// The settings of a public chain, whose endpoints are believed as late as those of any other.
pub const PUBLIC: &[&str] = &["chain.preset=custom", "chain.kind=testnet", "chain.poll_interval_ms=5000"];
/// No limit of uncharged calls holds up a history.
pub const UNLIMITED: &[&str] = &["limits.uncharged_per_minute=1000000", "limits.uncharged_in_all=1000000"];
/// The settings of a chain of one's own, asked as often as in `make demo`.
pub const LOCAL: &[&str] = &["chain.preset=local", "chain.poll_interval_ms=100"];
const TOKEN: Address = Address::from_bytes([0x7c; 20]);

/// One node's wallet.
#[derive(Debug)]
pub struct Party {
    pub key: SecretKey,
    pub signer: Signer,
    /// The number of the node, by which its endpoints are counted.
    pub node: usize,
}

impl Party {
    fn new(byte: u8, node: usize, spec: &ChainSpec) -> Self {
        let key = SecretKey::from_bytes(&[byte; 32]).unwrap();
        let signer = Wallet::from_key(key.clone()).signer(spec.escrow().domain());
        Self { key, signer, node }
    }

    pub fn wallet(&self) -> Address {
        self.key.address()
    }
}

/// What all histories have in common.
#[derive(Debug)]
pub struct Ground {
    pub config: Arc<Config>,
    pub spec: ChainSpec,
    pub consumer: Party,
    pub owner: Party,
    pub accept: Accept,
    /// The only channel that the consumer opens with its owner.
    pub channel: ChannelConfig,
    pub id: ChannelId,
    pub service: ServiceId,
    /// The service as the owner's ledger has it.
    pub document: (Bytes, Bytes),
    pub catalog: Catalog,
}

/// What has to stay as long as there are histories.
#[derive(Debug)]
pub struct Kept {
    _folder: TempDir,
    _runtime: Runtime,
}

impl Ground {
    /// Lays it for nodes with these settings, and a service that has so long for an answer.
    pub fn lay(settings: &[&str], timeout_secs: Option<u16>) -> (Self, Kept) {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = Arc::new(config(settings));
        let spec = chain_spec(&config).unwrap();
        let (consumer, owner) = (Party::new(21, 0, &spec), Party::new(22, 1, &spec));
        let accept = accept(&config, spec.escrow(), owner.wallet());
        let channel = ChannelConfig {
            payer: consumer.wallet(),
            payee: owner.wallet(),
            token: spec.token,
            signer: consumer.wallet(),
            close_delay_secs: config.chain.close_delay_secs,
            salt: [0; 32],
        };
        let id = channel.id(&spec.escrow().domain());
        let (document, known) = runtime.block_on(published(&owner.signer, &accept, PRICE, timeout_secs));
        let service = known.listing().service;
        let catalog = catalog(&consumer.key, &consumer.signer, &folder, Arc::new(known));
        let catalog = runtime.block_on(catalog);
        let ground = Self { config, spec, consumer, owner, accept, channel, id, service, document, catalog };
        (ground, Kept { _folder: folder, _runtime: runtime })
    }

    pub fn escrows(&self) -> Escrows {
        Escrows::new(self.spec.escrow(), &BTreeSet::new())
    }

    pub fn network(party: &Party) -> farthing_network::NetworkConfig {
        network(&party.key)
    }
}

/// The settings of a node. A deposit is worth ten calls, so that a history makes several; a few calls are worth a claim.
fn config(settings: &[&str]) -> Config {
    let common = [
        format!("chain.chain_id={CHAIN_ID}"),
        // Nobody is asked there.
        "chain.rpc_urls=http://127.0.0.1:9".to_owned(),
        format!("chain.token={TOKEN}"),
        format!("chain.close_delay_secs={CLOSE_DELAY_SECS}"),
        "spending.price_max=0.02".to_owned(),
        format!("spending.per_day={PER_DAY}"),
        format!("spending.per_secret_day={PER_DAY}"),
        "spending.deposit_prices=10".to_owned(),
        "spending.topup_prices=3".to_owned(),
        "settlement.interval_secs=20".to_owned(),
        "settlement.claim_min=0.04".to_owned(),
        "settlement.claim_gas_factor=1".to_owned(),
        "limits.call_total_ms=20000".to_owned(),
    ];
    let set = settings.iter().map(|setting| (*setting).to_owned()).chain(common).collect();
    let sources = Sources { data_dir: Some("/nowhere/farthing".into()), set, ..Sources::default() };
    load(&sources).unwrap().config
}
