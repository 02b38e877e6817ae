//! What the rest of the node holds of a chain.
//!
//! Views are read from memory. Operations are checked, queued to the writer, and answered when the chain's
//! state shows them done, with the views already up to date. Dropping the future of an operation does not
//! stop it: once its transaction is stored it is carried out, also after a restart.

use std::{fmt, sync::Arc};

use farthing_protocol::{Address, ChannelConfig, ChannelId, Domain, SecretKey, Usdc};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    error::ChainError,
    journal::Journal,
    reader::{At, Balances, ChannelState, Reader, Receipt},
    rpc::{Purpose, RequestCounts, Rpc, RpcError},
    spec::ChainSpec,
    store::Store,
    views::{BaseFee, ChainStatus, ChannelView, ChannelViews, Head, Role, Views},
    watcher::{self, Watcher},
    writer::{CLAIM_ROWS_MAX, ClaimRow, Intent, Outcome, Request, Writer},
};

/// Operations that may wait for the writer. More means that something repeats itself.
const REQUESTS_MAX: usize = 64;
const COMMANDS_MAX: usize = 64;

/// A transaction's hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TxHash(pub [u8; 32]);

impl fmt::Display for TxHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("0x")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TxHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A finished operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TxReport {
    /// `None` when the chain was already in the wanted state; the other fields are then zero.
    pub tx_hash: Option<TxHash>,
    pub block: u64,
    pub gas_used: u64,
    /// What the wallet paid for gas, an OP-stack chain's layer-1 part included.
    pub fee_wei: u128,
}

/// What a claim came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimReport {
    /// One for each [`CLAIM_ROWS_MAX`] rows; none where nothing was due.
    pub transactions: Vec<TxReport>,
    /// Each row's total claimed on chain afterwards.
    pub claimed: Vec<(ChannelId, Usdc)>,
    /// Rows the contract does not pay, and why.
    pub refused: Vec<(ChannelId, String)>,
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
        let rpc = Arc::new(Rpc::new(&spec).map_err(ChainError::Invalid)?);
        let spec = Arc::new(spec);
        let wallet = key.address();
        let store = Store::new(journal, spec.chain_id, wallet);
        let remembered = store.load().await?;
        let domain = Domain::new(spec.chain_id, spec.contract);
        let views = Arc::new(Views::new());
        let token = Arc::default();
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
                Arc::clone(&token),
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
            token,
            store,
            requests,
            watcher: watcher.clone(),
            stop: stop.clone(),
        };
        tasks.spawn(write.run(remembered.entries));
        tasks.close();
        let reader = reader(Purpose::OnDemand);
        Ok(ChainHandle(Arc::new(Inner { reader, wallet, domain, views, watcher, writer, stop, tasks })))
    }
}

/// A cheap handle of a running chain. The tasks end with [`ChainHandle::shutdown`] or with the last handle.
#[derive(Clone, Debug)]
pub struct ChainHandle(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    reader: Reader,
    wallet: Address,
    domain: Domain,
    views: Arc<Views>,
    watcher: mpsc::Sender<watcher::Command>,
    writer: mpsc::Sender<Request>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Views: no request, no waiting.
impl ChainHandle {
    #[must_use]
    pub fn spec(&self) -> &ChainSpec {
        &self.0.reader.spec
    }

    #[must_use]
    pub fn wallet(&self) -> Address {
        self.0.wallet
    }

    /// In which channels and vouchers of this chain are signed.
    #[must_use]
    pub fn domain(&self) -> Domain {
        self.0.domain
    }

    #[must_use]
    pub fn status(&self) -> watch::Receiver<ChainStatus> {
        self.0.views.status.subscribe()
    }

    /// `None` until the chain was read for the first time.
    #[must_use]
    pub fn head(&self) -> watch::Receiver<Option<Head>> {
        self.0.views.head.subscribe()
    }

    #[must_use]
    pub fn channels(&self) -> watch::Receiver<ChannelViews> {
        self.0.views.channels.subscribe()
    }

    #[must_use]
    pub fn channel(&self, id: &ChannelId) -> Option<ChannelView> {
        self.0.views.channels.borrow().get(id).copied()
    }

    /// The wallet's, as of the last confirmed block that changed them or anything else.
    #[must_use]
    pub fn balances(&self) -> watch::Receiver<Option<Balances>> {
        self.0.views.balances.subscribe()
    }

    #[must_use]
    pub fn base_fee(&self) -> watch::Receiver<Option<BaseFee>> {
        self.0.views.base_fee.subscribe()
    }

    /// Requests made to the chain since the start.
    #[must_use]
    pub fn request_counts(&self) -> RequestCounts {
        self.0.reader.rpc.counts()
    }
}

/// Operations: each waits for the chain.
impl ChainHandle {
    /// Adds `amount` to what the channel is known to hold, opening it if need be, with an EIP-3009
    /// authorization signed by this wallet. The goal is fixed when this is called: two calls that start from
    /// the same view deposit the larger amount once, and a deposit left over from before a restart counts.
    ///
    /// # Errors
    /// See [`ChainError`]; with [`ChainError::InsufficientUsdc`] and [`ChainError::InsufficientEth`] nothing
    /// was sent.
    pub async fn open_or_top_up(&self, config: ChannelConfig, amount: Usdc) -> Result<TxReport, ChainError> {
        self.require(config.payer == self.0.wallet, "this wallet is not the channel's payer")?;
        self.require(config.token == self.spec().token, "the channel's token is not this chain's USDC")?;
        self.require(!amount.is_zero(), "a deposit of nothing")?;
        self.track(config).await?;
        let deposited = self.channel(&config.id(&self.0.domain)).map_or(Usdc::ZERO, |view| view.deposited);
        let target = deposited.checked_add(amount);
        let target = target.ok_or_else(|| ChainError::Invalid("the deposit is too large".to_owned()))?;
        self.operate(Intent::Deposit { config, target, terms: None }).await.map(|outcome| report(&outcome))
    }

    /// Claims many channels in as few transactions as possible. Rows that cannot pay are left out and named.
    ///
    /// # Errors
    /// See [`ChainError`]. Transactions before a failed one have been mined; the channels' views show it.
    pub async fn claim_many(&self, rows: Vec<ClaimRow>) -> Result<ClaimReport, ChainError> {
        for row in &rows {
            self.require_claimable(row)?;
        }
        let mut claim = ClaimReport::default();
        let ids: Vec<ChannelId> = rows.iter().map(|row| row.config.id(&self.0.domain)).collect();
        for part in rows.chunks(CLAIM_ROWS_MAX) {
            let outcome = self.operate(Intent::Claim { rows: part.to_vec() }).await?;
            claim.transactions.extend(outcome.receipt.map(|_| report(&outcome)));
            claim.refused.extend(outcome.refused);
        }
        let confirmed = At::Block(self.confirmed_block().await?);
        let states = self.0.reader.channels(&ids, confirmed).await.map_err(|error| self.unread(error))?;
        claim.claimed = ids.into_iter().zip(states.into_iter().map(|state| state.claimed)).collect();
        Ok(claim)
    }

    /// Final claim of the payee and immediate refund of the rest to the payer.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn close(&self, row: ClaimRow) -> Result<TxReport, ChainError> {
        self.require_claimable(&row)?;
        self.operate(Intent::Close { row }).await.map(|outcome| report(&outcome))
    }

    /// The payer's request to close; the channel's delay begins.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn request_close(&self, config: ChannelConfig) -> Result<TxReport, ChainError> {
        self.require_payer_or_signer(&config)?;
        self.operate(Intent::RequestClose { config }).await.map(|outcome| report(&outcome))
    }

    /// The refund after the delay.
    ///
    /// # Errors
    /// See [`ChainError`]; [`ChainError::Reverted`] while the delay is not over.
    pub async fn withdraw(&self, config: ChannelConfig) -> Result<TxReport, ChainError> {
        self.require_payer_or_signer(&config)?;
        self.operate(Intent::Withdraw { config }).await.map(|outcome| report(&outcome))
    }

    /// A plain transfer. Unlike the other operations it is not safe to ask for twice.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn send_usdc(&self, to: Address, amount: Usdc) -> Result<TxReport, ChainError> {
        self.require(!amount.is_zero(), "a transfer of nothing")?;
        self.require(to != Address::ZERO, "the zero address would burn the money")?;
        self.operate(Intent::SendUsdc { to, amount }).await.map(|outcome| report(&outcome))
    }

    /// A plain transfer of the chain's own coin. Not safe to ask for twice.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn send_eth(&self, to: Address, wei: u128) -> Result<TxReport, ChainError> {
        self.require(wei != 0, "a transfer of nothing")?;
        self.require(to != Address::ZERO, "the zero address would burn the money")?;
        let wei = wei.to_be_bytes();
        self.operate(Intent::SendEth { to, wei }).await.map(|outcome| report(&outcome))
    }

    /// Deploys `PayChannels` where [`ChainStatus::ContractMissing`] says there is none. Anyone may; the
    /// address and the code are the same whoever does.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn deploy_contract(&self) -> Result<TxReport, ChainError> {
        self.operate(Intent::DeployContract).await.map(|outcome| report(&outcome))
    }

    /// Follows a channel whose events this node may not find, say because its ledger is older than the
    /// look-back. Channels of other wallets or tokens are ignored.
    ///
    /// # Errors
    /// [`ChainError::Stopped`].
    pub async fn track(&self, config: ChannelConfig) -> Result<(), ChainError> {
        self.0.watcher.send(watcher::Command::Track(config)).await.map_err(|_| ChainError::Stopped)
    }

    /// Reads everything again now; returns when that was tried. For tests and for people who press a button.
    ///
    /// # Errors
    /// [`ChainError::Stopped`].
    pub async fn refresh(&self) -> Result<(), ChainError> {
        let (done, told) = oneshot::channel();
        let command = watcher::Command::Refresh(done);
        self.0.watcher.send(command).await.map_err(|_| ChainError::Stopped)?;
        told.await.map_err(|_| ChainError::Stopped)
    }

    /// What any wallet holds now, asked of the chain.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn balances_of(&self, wallet: Address) -> Result<Balances, ChainError> {
        self.0.reader.balances(wallet, At::Latest).await.map_err(|error| self.unread(error))
    }

    /// What the chain says of any channel now, as a view that is not remembered.
    ///
    /// # Errors
    /// See [`ChainError`].
    pub async fn read_channel(&self, config: ChannelConfig) -> Result<ChannelView, ChainError> {
        let id = config.id(&self.0.domain);
        let at = At::Block(self.confirmed_block().await?);
        let state = self.0.reader.channel(id, at).await.map_err(|error| self.unread(error))?;
        let ChannelState { deposited, claimed, close_at_secs } = state;
        let role = if config.payer == self.0.wallet { Role::Payer } else { Role::Payee };
        Ok(ChannelView { id, config, role, deposited, claimed, close_at_secs })
    }

    /// Ends both tasks. A transaction under way stays in the journal and is reconciled at the next start.
    pub async fn shutdown(&self) {
        self.0.stop.cancel();
        self.0.tasks.wait().await;
    }

    async fn operate(&self, intent: Intent) -> Result<Outcome, ChainError> {
        self.require_usable(&intent).await?;
        let (done, told) = oneshot::channel();
        self.0.writer.try_send(Request { intent, done }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => ChainError::Busy { waiting: REQUESTS_MAX },
            mpsc::error::TrySendError::Closed(_) => ChainError::Stopped,
        })?;
        told.await.map_err(|_| ChainError::Stopped)?
    }

    /// Waits for the first answer of the chain, and refuses at once when there is no using it.
    async fn require_usable(&self, intent: &Intent) -> Result<(), ChainError> {
        let mut status = self.status();
        let status = status.wait_for(|status| *status != ChainStatus::Connecting);
        let status = tokio::select! {
            status = status => status.map_err(|_| ChainError::Stopped)?.clone(),
            () = self.0.stop.cancelled() => return Err(ChainError::Stopped),
        };
        let chain = self.spec().name.clone();
        match status {
            ChainStatus::Connecting | ChainStatus::Ready => Ok(()),
            ChainStatus::ContractMissing { contract } => match intent {
                Intent::DeployContract | Intent::SendUsdc { .. } | Intent::SendEth { .. } => Ok(()),
                _ => Err(ChainError::ContractMissing { chain, contract }),
            },
            ChainStatus::Unreachable { reason, .. } => Err(ChainError::Unreachable { chain, reason }),
            ChainStatus::Refused { reason } => Err(ChainError::Refused { chain, reason }),
        }
    }

    async fn confirmed_block(&self) -> Result<u64, ChainError> {
        let head = self.0.reader.head().await.map_err(|error| self.unread(error))?;
        Ok(self.0.reader.confirmed(head.number()))
    }

    fn require_claimable(&self, row: &ClaimRow) -> Result<(), ChainError> {
        self.require(row.config.payee == self.0.wallet, "this wallet is not the channel's payee")?;
        self.require(row.config.token == self.spec().token, "the channel's token is not this chain's USDC")?;
        self.require(row.amount <= row.cumulative, "the claim is above its voucher")
    }

    fn require_payer_or_signer(&self, config: &ChannelConfig) -> Result<(), ChainError> {
        let may = [config.payer, config.signer].contains(&self.0.wallet);
        self.require(may, "this wallet is neither payer nor signer of the channel")
    }

    #[expect(clippy::unused_self, reason = "reads as what it is where it is called")]
    fn require(&self, condition: bool, otherwise: &str) -> Result<(), ChainError> {
        if condition { Ok(()) } else { Err(ChainError::Invalid(otherwise.to_owned())) }
    }

    fn unread(&self, error: RpcError) -> ChainError {
        let chain = self.spec().name.clone();
        match error {
            RpcError::WrongChain(reason) => ChainError::Refused { chain, reason },
            RpcError::Unreachable(reason) => ChainError::Unreachable { chain, reason },
            RpcError::Refused(refusal) => ChainError::Unreachable { chain, reason: refusal.reason() },
        }
    }
}

fn report(outcome: &Outcome) -> TxReport {
    let of = |receipt: &Receipt| TxReport {
        tx_hash: Some(TxHash(receipt.transaction_hash.0)),
        block: receipt.block(),
        gas_used: receipt.gas_used(),
        fee_wei: receipt.fee_wei(),
    };
    outcome.receipt.as_ref().map(of).unwrap_or_default()
}
