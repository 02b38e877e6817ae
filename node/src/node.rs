//! Start and shutdown: the only place where the parts meet.
//!
//! Start, in order: data folder and its lock; wallet; ledger; chain; registry; network; the two halves and
//! settlement; then the ports. Shutdown is the reverse: the ports stop taking calls, running calls end, what
//! they promised is stored, the network says goodbye.

use std::{path::PathBuf, sync::Arc, time::Duration};

use farthing_config::Config;
use farthing_discovery::{Catalog, News};
use farthing_network::Inbound;
use farthing_os::{clock, lock::DataFolder};
use farthing_owner::{Owner, previews::Previews};
use farthing_shared::{
    blocking::{run_blocking, start_blocking},
    tasks::Tasks,
};
use tokio::sync::mpsc;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    agent_calls::AgentCalls,
    alerts::Alerts,
    approvals::Approvals,
    backup::staged,
    foreign::ForeignCalls,
    handles::Handles,
    history::{tally::Tally, traffic::TrafficKept},
    home::{Home, LockedHome},
    petnames::Petnames,
    saved::SavedRequests,
    secrets::Secrets,
    starred::Starred,
};

mod foundation;
pub mod halves;
mod refused;
mod settings;
mod upkeep;

use foundation::Foundation;
use halves::Halves;
use refused::RefusedFile;
use settings::spending_limits;
use upkeep::{
    favour, hold_against_chain, keep_uses, prune, publish_unstored, rise_above_others, used_before,
};

/// The longest time that a node which is told to end waits for running calls.
pub const DRAIN_MAX: Duration = Duration::from_secs(20);

/// A running node. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Node {
    pub handles: Handles,
    tasks: Tasks,
    background: TaskTracker,
    stopping: CancellationToken,
    refused: RefusedFile,
    _lock: Arc<DataFolder>,
}

impl Node {
    /// Brings the node up on its folder. It starts whether or not the chain answers.
    ///
    /// # Errors
    /// What is missing or broken, with what to do.
    pub async fn start(config: Config, locked: LockedHome) -> anyhow::Result<Self> {
        let home = {
            let config = config.clone();
            start_blocking(move || Home::open(&config, locked)).await??
        };
        let Home { lock, opened, ledger, secret_file, secrets } = home;
        let secrets = Arc::new(Secrets::new(secret_file, secrets, used_before(&ledger)?));
        let (foundation, inbound, news) = Foundation::lay(config, &opened.wallet, ledger).await?;

        let (halves, settlement_task) = Halves::start(foundation.halves()).await?;
        let readiness = foundation.readiness(&halves);
        let foreign = ForeignCalls::restore(foundation.foreign(&halves.consumer))?;
        let backups = foundation.backups()?;
        let health = foundation.health()?;
        let approvals = Approvals::default();
        let alerts = foundation.alerts(&readiness, &halves, &backups, (&health, &approvals));
        let alerts = Alerts::restore(alerts)?;
        let saved = SavedRequests::restore(foundation.ledger.clone())?;
        let petnames = Petnames::restore(foundation.ledger.clone())?;
        let starred = Starred::restore(foundation.ledger.clone())?;
        let agent_calls = AgentCalls::restore(foundation.ledger.clone())?;
        let traffic = TrafficKept::restore(foundation.ledger.clone())?;
        let versions = foundation.learned.join("versions.json");
        let refused = RefusedFile::new(&foundation.learned, foundation.refused.clone());
        let Halves { consumer, owner, settlement } = halves;
        let handles = Handles {
            config: foundation.config,
            wallet: foundation.signer.address(),
            peer_id: opened.wallet.public_key().peer_id(),
            network_name: foundation.network_name,
            ledger: foundation.ledger,
            chain: foundation.chain,
            network: foundation.network,
            registry: foundation.registry,
            previews: Previews::default(),
            catalog: foundation.catalog,
            consumer: consumer.consumer,
            foreign,
            channels: consumer.channels,
            funding: consumer.funding,
            book: owner.book,
            owner: owner.owner.clone(),
            settlement,
            saved,
            petnames,
            starred,
            secrets,
            approvals,
            agent_calls,
            readiness,
            alerts,
            backups,
            health,
            tally: Tally::default(),
            traffic,
            refused: foundation.refused,
            started_secs: clock::now_secs(),
            budget: foundation.budget,
            upstream: foundation.upstream,
            publishing: Arc::default(),
        };
        let background = TaskTracker::new();
        let (tasks, stopping) = (foundation.tasks, foundation.stopping);
        let node = Self { handles, tasks, background, stopping, refused, _lock: Arc::new(lock) };
        node.serve_peers(inbound, owner.owner);
        node.keep_listings(news, versions);
        node.keep_house();
        node.handles.publish().await;
        let open = node.handles.consumer.recover()? + node.handles.foreign.recover()?;
        // What the chain shows is judged by books that know of every call.
        node.background.spawn(settlement_task);
        if open > 0 {
            tracing::info!(open, "resolving calls that were undecided at the last stop");
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
        self.spawn(publish_unstored(self.handles.clone()));
        self.spawn(prune(ledger.clone(), chain.clone()));
        self.spawn(hold_against_chain(ledger.clone(), chain.clone()));
        self.spawn(keep_uses(ledger.clone(), secrets.clone()));
        self.spawn(self.handles.traffic.clone().run(network.clone()));
        self.spawn(favour(network.clone(), catalog.clone(), channels.clone(), book.clone()));
        self.spawn(self.refused.clone().keep());
        let x402 = self.handles.owner.x402().clone();
        self.spawn(async move { x402.tend_sales().await });
        self.spawn(self.handles.foreign.clone().tend());
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
    /// have stopped taking calls before. What is not done `within` this time is resolved at the next start.
    pub async fn shutdown(&self, within: Duration) {
        self.end_promises().await;
        self.tasks.close();
        self.stopping.cancel();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_err() {
            tracing::warn!("some calls did not end in time; they are resolved at the next start");
        }
        self.handles.health.store().await;
        self.refused.store().await;
        self.handles.traffic.keep(&self.handles.network).await;
        self.handles.network.shutdown().await;
        self.background.close();
        if tokio::time::timeout(Duration::from_secs(5), self.background.wait()).await.is_err() {
            tracing::warn!("background work did not end in time");
        }
        self.note_what_is_left().await;
        self.handles.chain.shutdown().await;
    }

    /// Notes the wallet's money for a backup that takes its place. Until now calls went on, and nothing changes it any more.
    async fn note_what_is_left(&self) {
        let (config, own) = (self.handles.config.clone(), self.handles.money_at_end());
        if let Err(error) = run_blocking(move || staged::note_left(&config.node.data_dir, own)).await {
            tracing::warn!(%error, "the wallet's money is recorded as it was when the backup was prepared");
        }
    }

    /// Promises nothing more. From then on whatever ends this process is no crash to the books.
    pub async fn end_promises(&self) {
        if let Err(error) = self.handles.ledger.end_promises().await {
            tracing::warn!(%error, "the next start compares ledgers as after a crash");
        }
    }
}
