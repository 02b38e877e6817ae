//! Start and shutdown: the only place where the parts meet.
//!
//! Start, in order: data folder and its lock; wallet; ledger; chain; registry; network; the two halves and
//! settlement; then the ports. Shutdown is the reverse: the ports stop taking calls, running calls end, what
//! they promised is stored, the network says goodbye.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use farthing_bounds::ByteBudget;
use farthing_chain::Chain;
use farthing_ledger::Ledger;
use farthing_network::{Inbound, Network, NetworkConfig, NetworkHandle, ReachConfig};
use farthing_os::{clock, lock::DataFolder};
use farthing_protocol::{Address, Domain, wire::NetworkName};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    alerts::{self, Alerts},
    backup::{Automatic, Backups},
    call_ends::CallEnds,
    catalog::{Catalog, News},
    chain_view::chain_spec,
    commands::handles::Handles,
    config::Config,
    consumer::{
        self, Consumer,
        channels::PayerChannels,
        conduct::Conduct,
        funding::{self, Funding},
        rules::Rules,
    },
    gateway::auth::Secrets,
    home::{self, Home},
    journal::LedgerJournal,
    owner::{
        self, Owner,
        book::{self, Book},
        health::Health,
        late::ToldFree,
        load::Load,
        node_record,
        registry::Registry,
        running::Calls,
        told::{BooksLimiter, GivenAgain},
        upstream::OwnPorts,
    },
    settlement::{self, Settlement},
    status::Readiness,
    wallet::{Signer, Wallet},
};

mod settings;
mod upkeep;

use settings::{
    accept, deposits, flagging, load_limits, policy, purchases, rest_limits, spending_limits, terms,
    upstream_options,
};
use upkeep::{favour, hold_against_chain, keep_uses, prune, rise_above_others, used_before};

/// The longest time that shutdown waits for running calls.
const DRAIN_MAX: Duration = Duration::from_secs(20);
/// Cooperative closes waiting to be carried out.
const CLOSES_QUEUED_MAX: usize = 256;

/// A running node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Node {
    pub handles: Handles,
    tasks: TaskTracker,
    background: TaskTracker,
    stopping: CancellationToken,
    _lock: Arc<DataFolder>,
}

impl Node {
    /// Brings the node up. It starts whether or not the chain answers.
    ///
    /// # Errors
    /// What is missing or broken, with what to do.
    pub async fn start(config: Config) -> anyhow::Result<Self> {
        let home = {
            let config = config.clone();
            tokio::task::spawn_blocking(move || Home::open(&config)).await??
        };
        let Home { lock, opened, ledger, secret_file, secrets } = home;
        let wallet = opened.wallet;
        let secrets = Arc::new(Secrets::new(secret_file, secrets, used_before(&ledger)?));

        let spec = chain_spec(&config)?;
        let terms = terms(&config);
        let signer = wallet.signer(Domain::new(spec.chain_id, spec.contract));
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
        let (network, inbound) = start_network(&config, &wallet, name, &learned, &ledger, &budget).await?;
        own_ports.follow(network.status());

        let tasks = TaskTracker::new();
        let background = TaskTracker::new();
        let stopping = CancellationToken::new();
        let channels = Arc::new(PayerChannels::default());
        let book = Book::new(terms.unsafe_max, terms.without_gas_max);
        restore(&ledger, &signer, &channels, &book)?;

        let store = open_catalog(&learned, &network_name, signer.address()).await?;
        let (catalog, news) =
            Catalog::new(store, network.clone(), network_name.clone(), Arc::new(registry.clone()));
        catalog.completed_before(&ledger)?;
        let funding = Funding::new(funding::FundingParts {
            wallet: signer.address(),
            chain: chain.clone(),
            ledger: ledger.clone(),
            channels: channels.clone(),
            policy: deposits(&config),
            close_delay_max_secs: config.spending.close_delay_max_secs,
            rest_limits: rest_limits(&config),
            tasks: tasks.clone(),
        });
        let rules = Rules::restore(ledger.clone(), spending_limits(&config), config.spending.enabled)?;
        let ends = CallEnds::default();
        let consumer = Consumer::new(consumer::ConsumerParts {
            signer: signer.clone(),
            ledger: ledger.clone(),
            network: network.clone(),
            chain: chain.clone(),
            catalog: catalog.clone(),
            channels: channels.clone(),
            funding: funding.clone(),
            rules,
            conduct: Conduct::restore(ledger.clone(), flagging(&config))?,
            settings: purchases(&config),
            tasks: tasks.clone(),
            stopping: stopping.clone(),
            ends: ends.clone(),
        });
        let (closes, closes_receiver) = mpsc::channel(CLOSES_QUEUED_MAX);
        let owner = Owner::new(owner::OwnerParts {
            signer: signer.clone(),
            ledger: ledger.clone(),
            chain: chain.clone(),
            registry: registry.clone(),
            book: book.clone(),
            calls: Calls::default(),
            told_free: ToldFree::default(),
            load: Load::new(load_limits(&config), budget.clone()),
            told: BooksLimiter::default(),
            given: GivenAgain::default(),
            closes,
            terms,
            tasks: tasks.clone(),
            ends: ends.clone(),
        });
        let (settlement, settlement_task) = Settlement::new(settlement::SettlementParts {
            signer: signer.clone(),
            chain: chain.clone(),
            ledger: ledger.clone(),
            network: network.clone(),
            book: book.clone(),
            channels: channels.clone(),
            accounts: consumer.accounts(),
            policy: policy(&config),
            terms,
            interval: config.settlement.interval,
            closes: closes_receiver,
            stopping: stopping.clone(),
        })?;

        let readiness = Readiness {
            ledger: ledger.clone(),
            chain: chain.clone(),
            network: network.clone(),
            registry: registry.clone(),
            catalog: catalog.clone(),
            signer: signer.clone(),
            budget: budget.clone(),
            ends,
            channels: channels.clone(),
            book: book.clone(),
            data_dir: config.node.data_dir.clone(),
            started_secs: clock::now_secs(),
        };
        let backups = Automatic::restore(
            config.node.data_dir.clone(),
            Backups::of(&config.node),
            ledger.clone(),
            signer.address().to_string(),
        )?;
        let health = Health::restore(registry.clone(), network.clone(), ledger.clone())?;
        let alerts = Alerts::restore(alerts::AlertsParts {
            wallet: signer.address(),
            network_name: network_name.clone(),
            ledger: ledger.clone(),
            readiness: readiness.clone(),
            consumer: consumer.clone(),
            channels: channels.clone(),
            book: book.clone(),
            terms,
            backups: backups.clone(),
            health: health.clone(),
            data_dir: config.node.data_dir.clone(),
            upstream: upstream.clone(),
        })?;
        let handles = Handles {
            config: Arc::new(config),
            wallet: signer.address(),
            peer_id: wallet.public_key().peer_id(),
            network_name,
            ledger,
            chain,
            network,
            registry,
            catalog,
            consumer,
            channels,
            funding,
            book,
            settlement,
            secrets,
            readiness,
            alerts,
            backups,
            health,
            started_secs: clock::now_secs(),
            budget,
            upstream,
            publishing: Arc::default(),
        };
        let node = Self { handles, tasks, background, stopping, _lock: Arc::new(lock) };
        node.serve_peers(inbound, owner);
        node.keep_listings(news, learned.join("versions.json"));
        node.keep_house();
        node.handles.publish().await;
        let open = node.handles.consumer.recover()?;
        // What the chain shows is judged by books that know of every call.
        node.background.spawn(settlement_task);
        if open > 0 {
            tracing::info!(open, "resolving calls whose end was not known at the last stop");
        }
        Ok(node)
    }

    /// Answers what other nodes ask.
    fn serve_peers(&self, inbound: Inbound, owner: Owner) {
        let Inbound { calls, info, syncs, listings } = inbound;
        self.spawn(async move { owner.run(calls).await });
        self.spawn_for_catalog(|catalog| async move { catalog.answer(info).await });
        self.spawn_for_catalog(|catalog| async move { catalog.hear(listings).await });
        self.spawn_for_catalog(|catalog| async move { catalog.be_compared(syncs).await });
    }

    /// Keeps this node's catalog like those of others, and its owners' presence in view.
    fn keep_listings(&self, news: mpsc::Receiver<News>, versions: PathBuf) {
        self.spawn_for_catalog(|catalog| async move { catalog.agree(news).await });
        self.spawn_for_catalog(|catalog| async move { catalog.watch_owners().await });
        self.spawn_for_catalog(|catalog| async move { catalog.follow_changes().await });
        self.spawn_for_catalog(|catalog| catalog.remember_versions(versions));
    }

    /// Does what is due now and then: alerts, backups, the health of services, old rows, connections worth keeping.
    fn keep_house(&self) {
        let Handles { network, catalog, channels, book, ledger, chain, secrets, .. } = &self.handles;
        self.spawn(self.handles.alerts.clone().watch());
        self.spawn(self.handles.backups.clone().run());
        self.spawn(self.handles.health.clone().run());
        self.spawn(rise_above_others(self.handles.clone()));
        self.spawn(prune(ledger.clone(), chain.clone()));
        self.spawn(hold_against_chain(ledger.clone(), chain.clone()));
        self.spawn(keep_uses(ledger.clone(), secrets.clone()));
        self.spawn(favour(network.clone(), catalog.clone(), channels.clone(), book.clone()));
    }

    fn spawn_for_catalog<F: Future<Output = ()> + Send + 'static>(&self, task: impl FnOnce(Catalog) -> F) {
        self.spawn(task(self.handles.catalog.clone()));
    }

    /// Runs a task until shutdown.
    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.background.spawn(async move {
            tokio::select! {
                () = stopping.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Takes over what holds at once of settings that were read again.
    pub fn take_over(&self, config: &Config) {
        self.handles.consumer.rules().configure(spending_limits(config), config.spending.enabled);
    }

    /// Ends the node: running calls finish, what they promised is stored, the network says goodbye. The ports
    /// have stopped taking calls before.
    pub async fn shutdown(&self) {
        self.end_promises().await;
        self.tasks.close();
        self.stopping.cancel();
        if tokio::time::timeout(DRAIN_MAX, self.tasks.wait()).await.is_err() {
            tracing::warn!("some calls did not end in time; they are resolved at the next start");
        }
        self.handles.health.store().await;
        self.handles.network.shutdown().await;
        self.background.close();
        if tokio::time::timeout(Duration::from_secs(5), self.background.wait()).await.is_err() {
            tracing::warn!("background work did not end in time");
        }
        self.handles.chain.shutdown().await;
    }

    /// Promises nothing more. From then on whatever ends this process is no crash to the books.
    pub async fn end_promises(&self) {
        if let Err(error) = self.handles.ledger.end_promises().await {
            tracing::warn!(%error, "the next start compares books as after a crash");
        }
    }
}

/// The ports that are this node's own, which no upstream may be at.
fn own_ports(config: &Config) -> OwnPorts {
    let Config { gateway, panel, .. } = config;
    let listens = [Some(gateway.listen), Some(panel.listen), gateway.plain];
    OwnPorts::new(listens.into_iter().flatten().map(|address| address.port()))
}

/// Opens the listings of the network. Whatever is wrong with them, the network has them too.
async fn open_catalog(
    folder: &Path,
    network: &str,
    own: Address,
) -> anyhow::Result<farthing_catalog::Catalog> {
    let (folder, options) = (folder.to_owned(), farthing_catalog::Options::new(network, own));
    let opening = tokio::task::spawn_blocking(move || farthing_catalog::Catalog::open(&folder, options));
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
    network.budget = budget.clone();
    network.state_dir = Some(learned.to_owned());
    network.reach = ReachConfig {
        upnp: config.network.upnp,
        first: config.network.reach_first,
        interval: config.network.reach_interval,
        asker_interval: config.network.reach_peer_interval,
        ..ReachConfig::default()
    };
    let last = node_record::last_seq(ledger)?;
    // The clock keeps the sequence rising even when the ledger was lost.
    network.record_seq_start = (last + 1).max(clock::now_secs());
    Ok(Network::start(network).await?)
}

/// Brings the ledger's channels into memory. Calls that were in progress were neither charged nor answered.
fn restore(ledger: &Ledger, signer: &Signer, channels: &PayerChannels, book: &Book) -> anyhow::Result<()> {
    for row in ledger.payer_channels()? {
        channels.apply(&row, None);
    }
    for row in ledger.payee_channels()? {
        book.restore(&row, book::proof(&row, signer.domain()));
    }
    for settlement in ledger.settlements_under_way()? {
        tracing::info!(
            id = settlement.id,
            "a claim was under way at the last stop; the chain decides its end"
        );
    }
    Ok(())
}
