//! Buying one call: limits, channel, promise, exchange, proof.
//!
//! In order: the service is looked up and the call checked against its description; its price is held against
//! the limits; headroom is reserved on the channel with the owner and a voucher signed; the promise is put
//! into the ledger while the call travels; the answer's receipt is verified; the ledger is closed. A call
//! whose end is unknown stays reserved and is resolved by its call id, never bought twice.
//!
//! Invariants C1–C4 (`docs/ledger.md`).

use std::{
    collections::BTreeMap,
    sync::{Arc, MutexGuard},
    time::{Duration, Instant},
};

use bytes::Bytes;
use farthing_chain::ChainHandle;
use farthing_ledger::Ledger;
use farthing_network::NetworkHandle;
use farthing_os::clock;
use farthing_protocol::{
    Address, CallId, ChannelId, Outcome, Refusal, ServiceId, Usdc,
    call::{Method, OutOfBounds},
    limits,
    resolution::Copies,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    call_times::{CallTimes, End},
    catalog::{Catalog, KnownService},
    keyed_mutex::KeyedMutex,
    wallet::Signer,
};

pub mod accounts;
pub mod answer;
mod attempt;
pub mod channels;
pub mod compare;
pub mod conduct;
pub mod deposits;
mod ends;
mod exchange;
pub mod funding;
pub(crate) mod heal;
mod observed;
pub mod prepared;
pub mod prices;
mod reconcile;
mod recovery;
pub mod rest;
pub mod rules;
pub mod shares;
pub mod shown;
pub mod spending;
pub mod terms;
pub mod trust;

use accounts::{Accounts, Earlier};
use channels::PayerChannels;
use conduct::Conduct;
use funding::Funding;
use prices::Prices;
use reconcile::ComparisonProgress;
use rules::{Rules, Stopped};
use shares::Shares;
use spending::{Grant, OverLimit, Spending};

/// A call as the gateway read it.
#[derive(Clone, Debug)]
pub struct Order {
    /// Of the consumer secret that ordered it.
    pub grant: Arc<Grant>,
    pub call_id: CallId,
    pub service: ServiceId,
    pub method: Method,
    pub path: String,
    pub params: BTreeMap<String, String>,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
    pub max_price: Option<Usdc>,
}

impl Order {
    /// Checks that the secret that ordered it may call this service.
    ///
    /// # Errors
    /// [`BuyError::NotScoped`].
    pub fn in_scope(&self) -> Result<(), BuyError> {
        if self.grant.covers(self.service) {
            return Ok(());
        }
        Err(BuyError::NotScoped { secret: self.grant.name.clone(), service: self.service })
    }
}

/// A bought answer, proven by its receipt.
#[derive(Clone, Debug)]
pub struct Bought {
    pub call_id: CallId,
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
    pub price: Usdc,
    pub charged: Usdc,
    /// Digest of the owner's receipt.
    pub receipt: farthing_protocol::Hash,
    pub timing: Timing,
}

/// The times that the parts of a call took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// Opening or topping up the channel, when that had to be waited for.
    pub funding: Duration,
    /// From sending to the answer, owner's time included.
    pub network: Duration,
    /// At the owner's node, its upstream included.
    pub owner: Duration,
    pub upstream: Duration,
}

/// Every way a purchase can fail. Unless the text says otherwise nothing was charged.
#[derive(Debug, thiserror::Error)]
pub enum BuyError {
    #[error("no connected node knows the service {0}")]
    UnknownService(ServiceId),
    /// `on_secs` is by the owner's clock.
    #[error("the service {service} was retired by its owner {owner} on {}", clock::date(*.on_secs))]
    Retired { service: ServiceId, owner: Address, on_secs: u64 },
    #[error("the owner {owner} of this service does not answer: {reason}")]
    DetailsUnavailable { owner: Address, reason: String },
    #[error("the secret `{secret}` is not made for the service {service}")]
    NotScoped { secret: String, service: ServiceId },
    #[error("{0}")]
    UnknownPath(String),
    #[error("{0}")]
    MethodNotAllowed(String),
    #[error("{0}")]
    BadParameter(String),
    #[error(transparent)]
    OutOfBounds(#[from] OutOfBounds),
    #[error("this call costs {price} USDC and `max_price` is {max_price} USDC")]
    AboveMaxPrice { price: Usdc, max_price: Usdc },
    #[error(transparent)]
    OverLimit(#[from] OverLimit),
    #[error("the owner accepts {offered}; this node pays on chain {chain} with channels")]
    NoCommonScheme { offered: String, chain: String },
    #[error("this node does not buy from this owner: {0}")]
    TermsRefused(#[from] terms::Unfit),
    #[error("{0}")]
    Unfunded(funding::Missing),
    #[error("{available} USDC are left on the channel with {owner} and the call costs {price} USDC")]
    ChannelLow { owner: Address, available: Usdc, price: Usdc },
    #[error("{}", flagged(*.service, .refused))]
    Flagged { service: ServiceId, refused: conduct::ServiceRefusal },
    #[error("a close of the channel with this owner is pending")]
    ChannelClosing,
    #[error(
        "the channel {channel} with this owner can be withdrawn from {has_secs} s after a request to close, and the \
         owner lists {asks_secs} s: `farthing channel close {channel}` ends it, and the next call opens one that the \
         owner serves"
    )]
    DelayTooShort { channel: ChannelId, has_secs: u64, asks_secs: u64 },
    #[error("an earlier receipt of this owner did not match what was bought")]
    OwnerDistrusted,
    #[error("{0}")]
    ChainNotReady(String),
    #[error("{0}")]
    OpenFailed(String),
    #[error("{0}")]
    LedgerClosed(String),
    /// The call was sent, and what it promised could not be stored.
    #[error("{0}; whether the call was served is learned after a restart")]
    NotStored(String),
    #[error("{}", spending_stopped(*.0))]
    SpendingStopped(Stopped),
    #[error("the node is shutting down")]
    ShuttingDown,
    /// A mistake in this program ended the purchase; what it promised is resolved by the call id.
    #[error("the node failed while it bought the call")]
    Failed,
    #[error("this call costs {now} USDC now, and {before} USDC is accepted{}", above(.cap.as_ref()))]
    PriceChanged {
        before: Usdc,
        now: Usdc,
        /// The limit that keeps the caller from simply accepting the new price.
        cap: Option<Cap>,
    },
    #[error("the call id was used with another service, path, parameters or body")]
    CallIdConflict,
    #[error("the owner's node was not reached: {0}")]
    OwnerUnreachable(String),
    #[error("the call was not sent: {0}")]
    Busy(String),
    #[error(
        "the call was not sent: too many calls of this operation that the secret `{secret}` made came to nothing within a \
         minute, and its owner does no more than a few of these for nothing"
    )]
    ShareUsed { secret: String, wait_secs: u64 },
    #[error("the owner's node refused the call ({}): {}", .0.code.name(), .0.detail)]
    Refused(Refusal),
    #[error("{}", upstream_failure(*.outcome, *.status))]
    UpstreamFailed { outcome: Outcome, status: u16 },
    #[error("{reason}")]
    BadAnswer {
        reason: String,
        /// `None` while it is not known.
        charged: Option<Usdc>,
    },
    #[error("the call was finished earlier, charged {charged} USDC, and its answer is no longer kept")]
    BodyGone { charged: Usdc },
    #[error("the call was charged {charged} USDC before, and its answer is not to be had now: {reason}")]
    NotRepeated { charged: Usdc, reason: String },
    #[error("whether the call was charged is not known yet ({0}); this node goes on asking")]
    Undecided(String),
}

impl BuyError {
    /// Until a secret that used up its share may call again.
    #[must_use]
    pub const fn share_wait_ms(&self) -> Option<u64> {
        if let Self::ShareUsed { wait_secs, .. } = self {
            Some(wait_secs.saturating_mul(1_000))
        } else {
            None
        }
    }
}

/// The limit that a changed price passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cap {
    /// The call's own.
    MaxPrice(Usdc),
    /// The node's.
    Limit(OverLimit),
}

fn above(cap: Option<&Cap>) -> String {
    match cap {
        None => String::new(),
        Some(Cap::MaxPrice(max_price)) => format!("; `max_price` is {max_price} USDC"),
        Some(Cap::Limit(limit)) => format!("; {limit}"),
    }
}

fn flagged(service: ServiceId, refused: &conduct::ServiceRefusal) -> String {
    let conduct::ServiceRefusal { flag, wait_secs } = refused;
    format!(
        "this node buys nothing from the service {service} for now: {flag}. It is tried again by the first call in \
         {wait_secs} s"
    )
}

fn spending_stopped(stopped: Stopped) -> String {
    match stopped {
        Stopped::ByConfiguration => "`spending.enabled` is false in this node's configuration".to_owned(),
        Stopped::Since(secs) => format!("all spending was stopped on this node on {}", clock::date(secs)),
    }
}

fn upstream_failure(outcome: Outcome, status: u16) -> String {
    match outcome {
        Outcome::Unreachable => "the owner's node could not connect to the service".to_owned(),
        Outcome::TimedOut => "the service did not answer the owner's node in time".to_owned(),
        Outcome::ServerError => format!("the service answered with status {status}"),
        Outcome::Oversize => {
            "the service's answer is larger than its owner passes on; ask for less, where it has a limit"
                .to_owned()
        }
        Outcome::BadAnswer => {
            "the service's answer is broken, a redirect, or has errors instead of data".to_owned()
        }
        Outcome::Answered | Outcome::Declined => "the service answered".to_owned(),
    }
}

/// Between the owner's deadline and the caller's.
const ANSWER_MARGIN: Duration = Duration::from_secs(2);

/// Settings for buying calls.
#[derive(Clone, Copy, Debug)]
pub struct PurchaseSettings {
    pub call_deadline: Duration,
}

impl PurchaseSettings {
    /// Returns the time that the owner's node may take: so much less than the caller waits that its word on a slow
    /// upstream still arrives.
    fn owner_deadline(&self) -> Duration {
        self.call_deadline.saturating_sub(ANSWER_MARGIN).max(self.call_deadline / 2)
    }
}

impl Default for PurchaseSettings {
    fn default() -> Self {
        Self { call_deadline: Duration::from_millis(limits::CALL_DEADLINE_MS_DEFAULT) }
    }
}

/// The right to work on one call id, with what is known of the call's copies: a repeat sees the first one's end.
type Turn = crate::keyed_mutex::KeyedGuard<Copies>;
type Slot = crate::keyed_mutex::KeyedSlot<Copies>;

/// The consumer half of the node. A cheap handle.
#[derive(Clone, Debug)]
pub struct Consumer(Arc<ConsumerInner>);

#[derive(Debug)]
struct ConsumerInner {
    signer: Signer,
    ledger: Ledger,
    network: NetworkHandle,
    chain: ChainHandle,
    catalog: Catalog,
    channels: Arc<PayerChannels>,
    funding: Funding,
    accounts: Arc<Accounts>,
    rules: Rules,
    prices: Prices,
    conduct: Conduct,
    shares: Arc<Shares>,
    settings: PurchaseSettings,
    turns: KeyedMutex<CallId, Copies>,
    books: ComparisonProgress,
    /// Differences with one owner are looked into by one at a time.
    healing: KeyedMutex<Address>,
    /// Work that outlives its caller: acknowledgements and resolutions. Shutdown waits for it.
    tasks: TaskTracker,
    /// Ends what would wait without end.
    stopping: CancellationToken,
    times: CallTimes,
}

/// The parts that the consumer is made of.
#[derive(Debug)]
pub struct ConsumerParts {
    pub signer: Signer,
    pub ledger: Ledger,
    pub network: NetworkHandle,
    pub chain: ChainHandle,
    pub catalog: Catalog,
    pub channels: Arc<PayerChannels>,
    pub funding: Funding,
    pub rules: Rules,
    pub conduct: Conduct,
    pub settings: PurchaseSettings,
    pub tasks: TaskTracker,
    pub stopping: CancellationToken,
    pub times: CallTimes,
}

impl Consumer {
    #[must_use]
    pub fn new(parts: ConsumerParts) -> Self {
        let (ledger, channels) = (parts.ledger.clone(), parts.channels.clone());
        let who = (parts.signer.address(), *parts.signer.domain());
        Self(Arc::new(ConsumerInner {
            accounts: Arc::new(Accounts::new(ledger, channels, who)),
            prices: Prices::new(parts.ledger.clone()),
            signer: parts.signer,
            ledger: parts.ledger,
            network: parts.network,
            chain: parts.chain,
            catalog: parts.catalog,
            channels: parts.channels,
            funding: parts.funding,
            rules: parts.rules,
            conduct: parts.conduct,
            shares: Arc::default(),
            settings: parts.settings,
            turns: KeyedMutex::default(),
            books: ComparisonProgress::default(),
            healing: KeyedMutex::default(),
            tasks: parts.tasks,
            stopping: parts.stopping,
            times: parts.times,
        }))
    }

    /// The books of what this node buys.
    #[must_use]
    pub fn accounts(&self) -> Arc<Accounts> {
        self.0.accounts.clone()
    }

    /// A service, to look at before buying.
    ///
    /// # Errors
    /// [`BuyError`] when nobody reachable knows it, or its details cannot be had.
    pub async fn service(&self, id: ServiceId) -> Result<Arc<KnownService>, BuyError> {
        Ok(self.0.catalog.newest(id).await?)
    }

    /// Buys one call. It runs to its end even when the caller goes away: what was promised must be resolved.
    ///
    /// # Errors
    /// [`BuyError`]; nothing was charged unless it says so.
    pub async fn buy(&self, order: Order) -> Result<Bought, BuyError> {
        let consumer = self.clone();
        let task = self.0.tasks.spawn(async move {
            let began = Instant::now();
            let bought = consumer.buy_now(order).await;
            let end = match &bought {
                Ok(bought) if bought.charged.is_zero() => End::Free,
                Ok(_) => End::Charged,
                Err(_) => End::Failed,
            };
            consumer.0.times.bought(end, began.elapsed());
            bought
        });
        task.await.unwrap_or(Err(BuyError::Failed))
    }

    async fn buy_now(&self, order: Order) -> Result<Bought, BuyError> {
        let deadline = Instant::now() + self.0.settings.call_deadline;
        order.in_scope()?;
        let mut turn = self.0.turns.take(order.call_id).await;
        let earlier =
            self.0.accounts.earlier(order.call_id).map_err(|error| BuyError::NotStored(error.to_string()))?;
        if !earlier.belongs_to(&order.grant) {
            return Err(BuyError::CallIdConflict);
        }
        self.may_buy().map_err(|error| earlier.tell(error))?;
        let service = order.service;
        let bought = match earlier {
            Earlier::Bought(purchase) => return self.fetch_again(order, *purchase, deadline).await,
            Earlier::Open(promise) => self.finish(order, *promise, deadline, turn).await,
            Earlier::Nothing => self.first(order, deadline, turn).await,
            Earlier::InDoubt => {
                turn.doubt(clock::uptime());
                self.first(order, deadline, turn).await
            }
        }?;
        if bought.charged > Usdc::ZERO {
            self.0.catalog.completed(service);
        }
        Ok(bought)
    }

    fn may_buy(&self) -> Result<(), BuyError> {
        self.may_spend()?;
        if self.0.tasks.is_closed() { Err(BuyError::ShuttingDown) } else { Ok(()) }
    }

    /// Checks that this node may promise money at all.
    ///
    /// # Errors
    /// [`BuyError::SpendingStopped`].
    pub fn may_spend(&self) -> Result<(), BuyError> {
        self.0.rules.stopped().map_or(Ok(()), |stopped| Err(BuyError::SpendingStopped(stopped)))
    }

    /// The switch and the limits.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.0.rules
    }

    /// Returns the record of what calls of each service may cost.
    #[must_use]
    pub fn prices(&self) -> &Prices {
        &self.0.prices
    }

    /// Returns the sum that was spent and reserved today.
    #[must_use]
    pub fn spent_today(&self) -> Usdc {
        self.counted_today().map(|spending| spending.total(today())).unwrap_or_default()
    }

    /// Returns the sum that was spent and reserved today with one secret.
    #[must_use]
    pub fn spent_today_by(&self, secret: &str) -> Usdc {
        self.counted_today().map(|spending| spending.total_of(today(), secret)).unwrap_or_default()
    }

    fn counted_today(&self) -> Option<MutexGuard<'_, Spending>> {
        self.0.accounts.spending_of(today()).ok()
    }
}

fn today() -> u32 {
    farthing_ledger::day_of(clock::now_secs())
}
