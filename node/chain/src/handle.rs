//! The handle by which the rest of the node holds a chain.
//!
//! Views are read from memory. Operations are checked, queued to the writer, and answered when the chain's
//! state shows them done, with the views already up to date. Dropping the future of an operation does not
//! stop it: once its transaction is stored it is carried out, also after a restart.

use std::sync::Arc;

use farthing_values::{Address, ChannelId, Domain, SecretKey, Usdc};
use tokio::sync::{mpsc, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    error::ChainError,
    journal::{Journal, TxHash},
    reader::{Balances, ChannelState, Reader},
    rpc::{Purpose, RequestCounts, Rpc},
    spec::ChainSpec,
    store::Store,
    views::{BaseFee, ChainStatus, ChannelView, ChannelViews, Head, LogsView, UnderWay, Views},
    watcher::{self, Watcher},
    writer::{DepositUnderWay, Forms, Request, Writer},
};

mod deployment;
mod domain;
mod operations;
mod payments;
mod sponsored;

use domain::KeptDomain;

pub use deployment::{ContractFound, DeploymentCost};
pub use payments::{PaymentState, TransferState};
pub use sponsored::SponsorTrial;

/// Operations that may wait for the writer. More means that something repeats itself.
const REQUESTS_MAX: usize = 64;
const COMMANDS_MAX: usize = 64;

/// A finished operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxReport {
    /// `None` when the chain was already in the wanted state; the other fields are then zero.
    pub tx_hash: Option<TxHash>,
    pub block: u64,
    pub gas_used: u64,
    /// The fee that the wallet paid for gas, an OP-stack chain's layer-1 part included.
    pub fee_wei: u128,
}

/// The result of a claim.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimReport {
    /// One for each [`crate::CLAIM_ROWS_MAX`] rows; none where nothing was due.
    pub transactions: Vec<TxReport>,
    /// Each row's total claimed on chain afterwards.
    pub claimed: Vec<(ChannelId, Usdc)>,
    /// Rows the contract does not pay, and why.
    pub refused: Vec<(ChannelId, String)>,
    /// The reason that the last rows were not brought to the chain, after others were.
    pub failed: Option<ChainError>,
}

/// The block and the result of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    pub block: u64,
    pub fee_wei: u128,
    pub succeeded: bool,
}

/// The contract's USDC and its state of channels, in one confirmed block and in the newest one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContractBooks {
    /// The newest block, and the newest that counts.
    pub head: u64,
    pub block: u64,
    /// USDC of the contract in that block, of every channel there is.
    pub escrow: Usdc,
    /// In the order they were asked for.
    pub confirmed: Vec<ChannelState>,
    pub newest: Vec<ChannelState>,
}

/// Starts the tasks of one chain and one wallet.
#[derive(Debug)]
pub struct Chain;

impl Chain {
    /// Starts watching `spec` for the wallet of `key`. The chain need not answer, now or ever: the handle's
    /// status tells. Transactions that the journal holds are reconciled before new ones are sent.
    ///
    /// # Errors
    /// [`ChainError::Invalid`] for unusable settings, [`ChainError::Journal`] when the journal cannot be read.
    pub async fn start(
        spec: ChainSpec,
        key: SecretKey,
        journal: Arc<dyn Journal>,
    ) -> Result<ChainHandle, ChainError> {
        let rpc = Rpc::new(&spec).map_err(ChainError::Invalid)?;
        Self::start_asking(rpc, spec, key, journal).await
    }

    /// The same with endpoints that a test plays; those of `spec` are not asked.
    ///
    /// # Errors
    /// See [`Chain::start`].
    #[cfg(feature = "played")]
    pub async fn start_played(
        spec: ChainSpec,
        key: SecretKey,
        journal: Arc<dyn Journal>,
        endpoints: Vec<crate::played::PlayedEndpoint>,
    ) -> Result<ChainHandle, ChainError> {
        let rpc = Rpc::played(&spec, endpoints).map_err(ChainError::Invalid)?;
        Self::start_asking(rpc, spec, key, journal).await
    }

    async fn start_asking(
        rpc: Rpc,
        spec: ChainSpec,
        key: SecretKey,
        journal: Arc<dyn Journal>,
    ) -> Result<ChainHandle, ChainError> {
        let (rpc, spec) = (Arc::new(rpc), Arc::new(spec));
        let wallet = key.address();
        let store = Store::new(journal, spec.chain_id, wallet);
        let remembered = store.load().await?;
        let domain = Domain::new(spec.chain_id, spec.contract);
        let views = Arc::new(Views::new());
        let stop = CancellationToken::new();
        let (watcher, commands) = mpsc::channel(COMMANDS_MAX);
        let (writer, requests) = mpsc::channel(REQUESTS_MAX);
        let reader = |purpose| Reader { rpc: Arc::clone(&rpc), spec: Arc::clone(&spec), purpose };
        let tasks = TaskTracker::new();
        tasks.spawn(
            Watcher::new(
                reader(Purpose::Watch),
                wallet,
                store.clone(),
                &remembered,
                Arc::clone(&views),
                commands,
                stop.clone(),
            )
            .run(),
        );
        let write = Writer {
            reader: reader(Purpose::Write),
            wallet,
            key,
            domain,
            store,
            requests,
            watcher: watcher.clone(),
            views: Arc::clone(&views),
            forms: Forms::default(),
            stop: stop.clone(),
        };
        let deposits =
            remembered.entries.iter().filter_map(|entry| DepositUnderWay::of(entry, &domain)).collect();
        tasks.spawn(write.run(remembered.entries));
        tasks.close();
        let (reader, background) = (reader(Purpose::OnDemand), reader(Purpose::Watch));
        let let_go = CancellationToken::new();
        let inner = Inner {
            reader,
            background,
            wallet,
            domain,
            token: KeptDomain::default(),
            views,
            watcher,
            writer,
            deposits,
            stop,
            let_go,
            tasks,
        };
        Ok(ChainHandle(Arc::new(inner)))
    }
}

/// A cheap handle of a running chain. The tasks end with [`ChainHandle::shutdown`] or with the last handle.
#[derive(Clone, Debug)]
pub struct ChainHandle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    reader: Reader,
    /// For upkeep, which nobody waits for.
    background: Reader,
    wallet: Address,
    domain: Domain,
    token: KeptDomain,
    views: Arc<Views>,
    watcher: mpsc::Sender<watcher::Command>,
    writer: mpsc::Sender<Request>,
    /// Of the journal at the start.
    deposits: Vec<DepositUnderWay>,
    stop: CancellationToken,
    /// Nobody waits for the chain any more.
    let_go: CancellationToken,
    tasks: TaskTracker,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Views: no request, no waiting.
impl ChainHandle {
    pub fn spec(&self) -> &ChainSpec {
        &self.0.reader.spec
    }

    pub fn wallet(&self) -> Address {
        self.0.wallet
    }

    /// In which channels and vouchers of this chain are signed.
    pub fn domain(&self) -> Domain {
        self.0.domain
    }

    pub fn status(&self) -> watch::Receiver<ChainStatus> {
        self.0.views.status.subscribe()
    }

    /// `None` until the chain was read for the first time.
    pub fn head(&self) -> watch::Receiver<Option<Head>> {
        self.0.views.head.subscribe()
    }

    pub fn channels(&self) -> watch::Receiver<ChannelViews> {
        self.0.views.channels.subscribe()
    }

    pub fn channel(&self, id: &ChannelId) -> Option<ChannelView> {
        self.0.views.channels.borrow().get(id).copied()
    }

    /// The wallet's, as of the last confirmed block that changed them or anything else.
    pub fn balances(&self) -> watch::Receiver<Option<Balances>> {
        self.0.views.balances.subscribe()
    }

    pub fn base_fee(&self) -> watch::Receiver<Option<BaseFee>> {
        self.0.views.base_fee.subscribe()
    }

    /// Watches how far events were read; only the discovery of new channels depends on it.
    pub fn logs(&self) -> watch::Receiver<LogsView> {
        self.0.views.logs.subscribe()
    }

    /// The transaction that everything else of this wallet waits for.
    pub fn under_way(&self) -> Option<UnderWay> {
        *self.0.views.under_way.borrow()
    }

    /// Requests made to the chain since the start.
    pub fn request_counts(&self) -> RequestCounts {
        self.0.reader.rpc.counts()
    }
}
