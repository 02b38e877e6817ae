//! A chain with the contracts on it, two funded wallets, and what tests ask of them.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    time::Duration,
};

use farthing_chain::{
    Chain, ChainError, ChainHandle, ChainSpec, ChainStatus, ClaimRow, Journal, MemoryJournal, TxReport,
    deploy::{Deployer, dev_account},
    local,
};
use farthing_values::{Address, ChannelConfig, ChannelId, SecretKey, Usdc, Voucher};
use serde_json::json;
use tokio::{sync::watch, task::JoinHandle};

use crate::{
    anvil::Anvil,
    proxy::{Mode, Proxy},
};

pub(crate) const CHAIN_ID: u64 = 31_337;
pub(crate) const ETH: u128 = 1_000_000_000_000_000_000;
/// Longer than anything here takes on a busy machine; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct World {
    pub anvil: Anvil,
    pub token: Address,
    pub payer: SecretKey,
    pub payee: SecretKey,
}

impl World {
    /// Payer and payee have 1 ETH each, the payer 100 USDC.
    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    /// The same, and the payer's chain.
    pub(crate) async fn with_payer() -> (Self, ChainHandle) {
        let world = Self::new().await;
        let payer = world.payer_chain().await;
        (world, payer)
    }

    /// The same, and the chains of payer and payee.
    pub(crate) async fn with_both() -> (Self, ChainHandle, ChainHandle) {
        let (world, payer) = Self::with_payer().await;
        let payee = world.payee_chain().await;
        (world, payer, payee)
    }

    /// The same, and a proxy before the chain.
    pub(crate) async fn behind(mode: Mode) -> (Self, Proxy) {
        let world = Self::new().await;
        let proxy = Proxy::to(world.anvil.port(), mode).await;
        (world, proxy)
    }

    pub(crate) async fn with(arguments: &[&str]) -> Self {
        let anvil = Anvil::start(arguments);
        let deployer = deployer(&anvil, 0).await;
        deployer.pay_channels().await.expect("PayChannels is deployed");
        let token = deployer.test_usdc("USDC", deployer.address()).await.expect("the token is deployed");
        let (payer, payee) = (new_key(), new_key());
        for key in [&payer, &payee] {
            deployer.fund_eth(key.address(), ETH).await.expect("ETH arrives");
        }
        deployer.mint(token, payer.address(), usdc(100_000_000)).await.expect("USDC arrives");
        Self { anvil, token, payer, payee }
    }

    pub(crate) fn spec(&self) -> ChainSpec {
        self.spec_at(&[self.anvil.url()])
    }

    pub(crate) fn spec_at(&self, urls: &[String]) -> ChainSpec {
        let mut spec = local("http://127.0.0.1:1", CHAIN_ID, self.token);
        spec.rpc_urls = urls.to_vec();
        spec.poll_interval_ms = 50;
        spec.resend_after_ms = 1_000;
        spec
    }

    pub(crate) async fn payer_chain(&self) -> ChainHandle {
        self.payer_at(self.spec()).await
    }

    pub(crate) async fn payee_chain(&self) -> ChainHandle {
        self.payee_at(self.spec()).await
    }

    pub(crate) async fn payer_at(&self, spec: ChainSpec) -> ChainHandle {
        start_ready(spec, &self.payer, Arc::new(MemoryJournal::default())).await
    }

    pub(crate) async fn payee_at(&self, spec: ChainSpec) -> ChainHandle {
        start_ready(spec, &self.payee, Arc::new(MemoryJournal::default())).await
    }

    /// Terms between payer and payee; each salt is another channel.
    pub(crate) fn terms(&self, salt: u8) -> ChannelConfig {
        ChannelConfig {
            payer: self.payer.address(),
            payee: self.payee.address(),
            token: self.token,
            signer: self.payer.address(),
            close_delay_secs: 3_600,
            salt: [salt; 32],
        }
    }

    /// A claim of everything a voucher for `micros` promises.
    pub(crate) fn row(&self, chain: &ChainHandle, config: ChannelConfig, micros: u64) -> ClaimRow {
        let domain = chain.domain();
        let voucher = Voucher { channel: config.id(&domain), cumulative: usdc(micros) };
        let signature = voucher.sign(&domain, &self.payer);
        ClaimRow { config, cumulative: usdc(micros), amount: usdc(micros), signature }
    }

    /// How many transactions of the wallet were mined.
    pub(crate) async fn nonce(&self, wallet: &SecretKey) -> u64 {
        let params = json!([wallet.address().to_string(), "latest"]);
        self.anvil.rpc_u64("eth_getTransactionCount", params).await
    }

    pub(crate) async fn waiting_transactions(&self) -> u64 {
        let status = self.anvil.rpc("txpool_status", json!([])).await;
        let digits = status["pending"].as_str().and_then(|text| text.strip_prefix("0x")).expect("a number");
        u64::from_str_radix(digits, 16).expect("a number")
    }
}

/// Deposits on top of what a channel's view says, as a node that decides by its view makes them.
pub(crate) trait Deposits {
    /// Adds `amount` to the channel, opening it if need be.
    async fn open_or_top_up(&self, config: ChannelConfig, amount: Usdc) -> Result<TxReport, ChainError>;
}

impl Deposits for ChainHandle {
    async fn open_or_top_up(&self, config: ChannelConfig, amount: Usdc) -> Result<TxReport, ChainError> {
        let mut status = self.status();
        let known = status.wait_for(|status| *status != ChainStatus::Connecting).await;
        let is_ready = known.is_ok_and(|status| *status == ChainStatus::Ready);
        let id = config.id(&self.domain());
        if is_ready && self.channel(&id).is_none() {
            self.track(config).await?;
            self.refresh().await?;
        }
        let before = self.channel(&id).map_or((0, Usdc::ZERO), |view| (view.round, view.deposited));
        self.deposit_onto(config, before, amount).await
    }
}

/// A transfer of 7 that is made beside the test.
pub(crate) fn sending(chain: &ChainHandle, to: Address) -> JoinHandle<Result<TxReport, ChainError>> {
    let chain = chain.clone();
    tokio::spawn(async move { chain.send_usdc(to, usdc(7)).await })
}

/// A deposit of 250,000 that is made beside the test.
pub(crate) fn opening(
    chain: &ChainHandle,
    config: ChannelConfig,
) -> JoinHandle<Result<TxReport, ChainError>> {
    let chain = chain.clone();
    tokio::spawn(async move { chain.open_or_top_up(config, usdc(250_000)).await })
}

pub(crate) async fn deployer(anvil: &Anvil, account: u32) -> Deployer {
    let key = dev_account(account).expect("a development account");
    Deployer::connect(&anvil.url(), CHAIN_ID, key).await.expect("anvil answers")
}

pub(crate) async fn start(spec: ChainSpec, key: &SecretKey, journal: Arc<dyn Journal>) -> ChainHandle {
    Chain::start(spec, key.clone(), journal).await.expect("a chain starts whether or not it answers")
}

pub(crate) async fn start_ready(spec: ChainSpec, key: &SecretKey, journal: Arc<dyn Journal>) -> ChainHandle {
    let chain = start(spec, key, journal).await;
    until(chain.status(), |status| *status == ChainStatus::Ready).await;
    chain
}

/// Waits until a view is as wanted.
pub(crate) async fn until<T: Clone + std::fmt::Debug>(
    mut view: watch::Receiver<T>,
    wanted: impl FnMut(&T) -> bool,
) -> T {
    let found =
        tokio::time::timeout(PATIENCE, view.wait_for(wanted)).await.map(|value| value.map(|v| v.clone()));
    match found {
        Ok(value) => value.expect("the watcher runs"),
        Err(_) => panic!("it never came; the last value was {:?}", view.borrow()),
    }
}

pub(crate) async fn until_true<F: Future<Output = bool>>(mut wanted: impl FnMut() -> F) {
    let looking = async {
        while !wanted().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.expect("it never became true");
}

pub(crate) async fn until_deposited(chain: &ChainHandle, id: ChannelId, micros: u64) {
    until(chain.channels(), |views| views.get(&id).map_or(0, |view| view.deposited.micros()) == micros).await;
}

pub(crate) const fn usdc(micros: u64) -> Usdc {
    Usdc::from_micros(micros)
}

/// A key of its own for each wallet of each test.
pub(crate) fn new_key() -> SecretKey {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let mut bytes = [0x5a; 32];
    bytes[28..].copy_from_slice(&NEXT.fetch_add(1, Relaxed).to_be_bytes());
    SecretKey::from_bytes(&bytes).expect("below the group order")
}
