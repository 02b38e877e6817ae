//! The parts that everything else in the node stands on, and what the halves and the rest are made of.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use farthing_bounds::ByteBudget;
use farthing_chain::{Chain, ChainHandle};
use farthing_config::{Config, Rendezvous};
use farthing_discovery::{Catalog, News};
use farthing_ledger::{Ledger, LedgerError};
use farthing_network::{Inbound, Network, NetworkConfig, NetworkHandle, ReachConfig, RendezvousConfig};
use farthing_os::clock;
use farthing_owner::{
    health::Health,
    node_record,
    registry::Registry,
    terms::Terms,
    upstream::{OwnPorts, UpstreamOptions},
};
use farthing_protocol::wire::NetworkName;
use farthing_shared::{blocking::start_blocking, call_ends::CallEnds, refused::RefusedCalls, tasks::Tasks};
use farthing_wallet::{Signer, Wallet};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    alerts::{AlertsParts, MoneyElsewhere, MoneyLeft},
    approvals::Approvals,
    backup::{Automatic, Backups},
    chain_spec::chain_spec,
    escrows::Escrows,
    foreign::ForeignParts,
    home,
    journal::LedgerJournal,
    status::Readiness,
};

use super::{
    halves::{ConsumerHalf, HalfParts, Halves, HalvesParts},
    refused,
    settings::{accept, catalog_options, terms, upstream_options},
};

/// Settings and wallet, the adapters, and the owner's services.
pub(super) struct Foundation {
    pub(super) config: Arc<Config>,
    pub(super) signer: Signer,
    pub(super) ledger: Ledger,
    pub(super) chain: ChainHandle,
    pub(super) network: NetworkHandle,
    pub(super) network_name: String,
    /// The folder of what was learned of this network.
    pub(super) learned: PathBuf,
    pub(super) registry: Registry,
    pub(super) catalog: Catalog,
    pub(super) budget: ByteBudget,
    pub(super) upstream: UpstreamOptions,
    terms: Terms,
    escrows: Escrows,
    elsewhere: Vec<MoneyElsewhere>,
    ends: CallEnds,
    pub(super) refused: RefusedCalls,
    pub(super) tasks: Tasks,
    pub(super) stopping: CancellationToken,
}

impl Foundation {
    /// Starts chain, network and catalog, and brings services into memory.
    pub(super) async fn lay(
        config: Config,
        wallet: &Wallet,
        ledger: Ledger,
    ) -> anyhow::Result<(Self, Inbound, mpsc::Receiver<News>)> {
        let spec = chain_spec(&config)?;
        let terms = terms(&config);
        let signer = wallet.signer(spec.escrow().domain());
        let journal = Arc::new(LedgerJournal(ledger.clone()));
        let chain = Chain::start(spec.clone(), wallet.secret_for_chain(), journal).await?;

        let name = NetworkName::on_chain(config.network.name.as_deref(), spec.chain_id)?;
        let network_name = name.as_str().to_owned();
        let learned = home::network_folder(&config.node.data_dir, &name);
        let budget = ByteBudget::new(config.limits.bodies_bytes_max);
        let own_ports = own_ports(&config);
        let upstream = upstream_options(&config, &budget, &own_ports);
        let registry = Registry::load(
            signer.clone(),
            ledger.clone(),
            network_name.clone(),
            vec![accept(&spec, signer.address(), terms)],
            upstream.clone(),
        )?;
        registry.relist().await?;
        let (network, inbound) = start_network(&config, wallet, name, &learned, &ledger, &budget).await?;
        own_ports.follow(network.status());
        let refused = refused::read(&learned).await;

        let escrows = Escrows::note(&ledger, spec.escrow(), &home::chains(&config.node.data_dir)).await?;
        let elsewhere = MoneyElsewhere::read(&ledger, &escrows)?;

        let store = open_catalog(&learned, catalog_options(&config, &network_name, signer.address())).await?;
        let (catalog, news) =
            Catalog::new(store, network.clone(), network_name.clone(), Arc::new(registry.clone()));
        catalog.completed_before(&ledger)?;
        let foundation = Self {
            config: Arc::new(config),
            signer,
            ledger,
            chain,
            network,
            network_name,
            learned,
            registry,
            catalog,
            budget,
            upstream,
            terms,
            escrows,
            elsewhere,
            ends: CallEnds::default(),
            refused,
            tasks: Tasks::default(),
            stopping: CancellationToken::new(),
        };
        Ok((foundation, inbound, news))
    }

    /// The parts from which both halves are started.
    pub(super) fn halves(&self) -> HalvesParts {
        let half = HalfParts {
            config: self.config.clone(),
            signer: self.signer.clone(),
            ledger: self.ledger.clone(),
            chain: self.chain.clone(),
            network: self.network.clone(),
            ends: self.ends.clone(),
            tasks: self.tasks.clone(),
            stopping: self.stopping.clone(),
        };
        HalvesParts {
            half,
            catalog: self.catalog.clone(),
            escrows: self.escrows.clone(),
            registry: self.registry.clone(),
            budget: self.budget.clone(),
            refused: self.refused.clone(),
        }
    }

    /// The parts of calls to x402 servers.
    pub(super) fn foreign(&self, half: &ConsumerHalf) -> ForeignParts {
        ForeignParts {
            consumer: half.consumer.clone(),
            funding: half.funding.clone(),
            signer: self.signer.clone(),
            ledger: self.ledger.clone(),
            chain: self.chain.clone(),
            upstream: self.upstream.clone(),
            allow_private: self.config.network.allow_private,
            call_deadline: self.config.limits.call_total,
            tasks: self.tasks.clone(),
            stopping: self.stopping.clone(),
        }
    }

    pub(super) fn readiness(&self, halves: &Halves) -> Readiness {
        Readiness {
            ledger: self.ledger.clone(),
            chain: self.chain.clone(),
            network: self.network.clone(),
            registry: self.registry.clone(),
            catalog: self.catalog.clone(),
            signer: self.signer.clone(),
            budget: self.budget.clone(),
            ends: self.ends.clone(),
            channels: halves.consumer.channels.clone(),
            book: halves.owner.book.clone(),
            data_dir: self.config.node.data_dir.clone(),
            started_secs: clock::now_secs(),
        }
    }

    pub(super) fn backups(&self) -> Result<Automatic, LedgerError> {
        let node = &self.config.node;
        let wallet = self.signer.address().to_string();
        Automatic::restore(node.data_dir.clone(), Backups::of(node), self.ledger.clone(), wallet)
    }

    pub(super) fn health(&self) -> Result<Health, LedgerError> {
        let (registry, catalog) = (self.registry.clone(), self.catalog.clone());
        Health::restore(registry, catalog, self.network.clone(), self.ledger.clone())
    }

    pub(super) fn alerts(
        &self,
        readiness: &Readiness,
        halves: &Halves,
        backups: &Automatic,
        (health, approvals): (&Health, &Approvals),
    ) -> AlertsParts {
        AlertsParts {
            wallet: self.signer.address(),
            network_name: self.network_name.clone(),
            ledger: self.ledger.clone(),
            readiness: readiness.clone(),
            consumer: halves.consumer.consumer.clone(),
            funding: halves.consumer.funding.clone(),
            channels: halves.consumer.channels.clone(),
            book: halves.owner.book.clone(),
            terms: self.terms,
            owner: self.config.x402.listen.map(|_| halves.owner.owner.clone()),
            approvals: approvals.clone(),
            elsewhere: self.elsewhere.clone(),
            left: MoneyLeft::read(&self.config.node.data_dir, self.signer.address()),
            backups: backups.clone(),
            health: health.clone(),
            data_dir: self.config.node.data_dir.clone(),
            upstream: self.upstream.clone(),
        }
    }
}

/// The ports that are this node's own, which no upstream may be at.
fn own_ports(config: &Config) -> OwnPorts {
    let Config { gateway, panel, x402, .. } = config;
    let listens = [Some(gateway.listen), Some(panel.listen), gateway.plain, x402.listen];
    OwnPorts::new(listens.into_iter().flatten().map(|address| address.port()))
}

/// Opens the listings of the network. Whatever is wrong with them, the network has them too.
async fn open_catalog(
    folder: &Path,
    options: farthing_catalog::Options,
) -> anyhow::Result<farthing_catalog::Catalog> {
    let folder = folder.to_owned();
    let opening = start_blocking(move || farthing_catalog::Catalog::open(&folder, options));
    let (catalog, opened) = opening.await?.context("the catalog in the data folder cannot be opened")?;
    for notice in &opened.notices {
        tracing::warn!("{notice}");
    }
    Ok(catalog)
}

async fn start_network(
    config: &Config,
    wallet: &Wallet,
    name: NetworkName,
    learned: &Path,
    ledger: &Ledger,
    budget: &ByteBudget,
) -> anyhow::Result<(NetworkHandle, Inbound)> {
    let mut network = NetworkConfig::new(wallet.secret_for_network(), name);
    network.listen.clone_from(&config.network.listen);
    network.announce.clone_from(&config.network.announce);
    network.bootstrap.clone_from(&config.network.bootstrap);
    network.allow_private = config.network.allow_private;
    network.gossip = config.network.gossip;
    network.mdns = config.network.mdns;
    network.rendezvous = (config.network.rendezvous == Rendezvous::Ipfs)
        .then(|| RendezvousConfig::new(config.network.rendezvous_entrance.clone()));
    network.budget = budget.clone();
    network.state_dir = Some(learned.to_owned());
    network.reach = ReachConfig {
        upnp: config.network.upnp,
        first: config.network.reach_first,
        interval: config.network.reach_interval,
        asker_interval: config.network.reach_peer_interval,
        ..ReachConfig::default()
    };
    network.relay.serves = config.network.relay;
    network.relay.used = config.network.use_relays;
    let last = node_record::last_seq(ledger)?;
    // The clock keeps the sequence rising even when the ledger was lost.
    network.record_seq_start = (last + 1).max(clock::now_secs());
    Ok(Network::start(network).await?)
}
