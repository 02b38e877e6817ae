//! Buying one call: limits, channel, promise, exchange, proof.
//!
//! In order: the service is looked up and the call checked against its description; its price is held against
//! the limits; headroom is reserved on the channel with the owner and a voucher signed; the promise is put
//! into the ledger while the call travels; the answer's receipt is verified; the ledger is closed. A call
//! whose end is unknown stays reserved and is resolved by its call id, never bought twice.
//!
//! Invariants C1–C4 (`docs/ledger.md`).

use std::{
    collections::{BTreeMap, HashSet},
    ops::Deref,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use farthing_chain::ChainHandle;
use farthing_control::types::CancelStage;
use farthing_discovery::{Catalog, KnownService};
use farthing_ledger::{Ledger, LedgerError};
use farthing_network::NetworkHandle;
use farthing_os::clock;
use farthing_protocol::{Address, CallId, ServiceId, Usdc, call::Method, limits, resolution::Copies};
use farthing_shared::{
    call_ends::{BegunCall, CallEnds},
    keyed_mutex::KeyedMutex,
    tasks::Tasks,
};
use farthing_wallet::Signer;
use parking_lot::MutexGuard;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub mod accounts;
pub mod answer;
mod attempt;
pub mod awaited;
mod channel_payer;
pub mod channels;
pub mod close_promises;
pub mod compare;
pub mod conduct;
pub mod deposits;
mod ended;
mod ends;
mod error;
pub mod evidence;
mod exchange;
pub mod funding;
mod means;
mod observations;
pub mod open_verdict;
mod pauses;
mod places;
pub mod prepared;
pub mod prices;
mod reconcile;
mod recording;
mod refills;
mod repeats;
pub mod rest;
pub mod rest_sum;
pub mod rules;
pub mod shares;
pub mod spending;
pub mod terms;
pub mod trust;
mod unanswered;
pub mod undecided;

use accounts::{Accounts, Earlier};
use awaited::{AwaitedCall, AwaitedCalls};
use channel_payer::ChannelPayer;
use channels::PayerChannels;
use compare::BookComparison;
use conduct::Conduct;
use ends::{CallCloser, CallCloserParts};
pub use error::{
    AwaitedClose, AwaitedDeposit, BadPage, BooksError, BuyError, Cap, ForeignError, LastKnown, MissingFunds,
    NoAnswer, NoRoom, NotTold, PendingDeposit, Unseen,
};
use exchange::CallClient;
use funding::Funding;
use observations::Observer;
use places::OwnerPlaces;
use prices::Prices;
use reconcile::Reconciler;
use rules::Rules;
use shares::{ForNothing, Shares};
use spending::{Grant, Spending};
pub use unanswered::Unanswered;
use undecided::UndecidedSum;

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
    /// `None` while it is not known: an x402 server answered, and did not say that it took the payment.
    pub charged: Option<Usdc>,
    /// Digest of the owner's receipt. An x402 server signs none.
    pub receipt: Option<farthing_protocol::Hash>,
    pub timing: Timing,
    /// True if the call had been paid before, and its answer is given again.
    pub is_repeat: bool,
}

impl Bought {
    /// Returns whether it is known that the call cost something.
    pub fn is_charged(&self) -> bool {
        self.charged.is_some_and(|charged| !charged.is_zero())
    }
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

impl Timing {
    /// Lists the parts by name, none of which includes another.
    pub fn parts(&self) -> [(&'static str, Duration); 4] {
        [
            ("funding", self.funding),
            ("network", self.network.saturating_sub(self.owner)),
            ("owner", self.owner.saturating_sub(self.upstream)),
            ("upstream", self.upstream),
        ]
    }
}

/// Between the owner's deadline and the caller's.
const ANSWER_MARGIN: Duration = Duration::from_millis(limits::ANSWER_MARGIN_MS);

/// Settings for buying calls.
#[derive(Clone, Copy, Debug)]
pub struct PurchaseSettings {
    pub call_deadline: Duration,
    pub for_nothing: ForNothing,
    /// The most that may be undecided with one owner, but for dear calls.
    pub undecided_max: Usdc,
}

impl PurchaseSettings {
    /// Returns the time that the owner's node may take: what the listing says of the operation, or else so much less than
    /// the caller waits that its word on a slow upstream still arrives.
    fn owner_deadline(&self, time: Option<Duration>) -> Duration {
        let usual = || self.call_deadline.saturating_sub(ANSWER_MARGIN).max(self.call_deadline / 2);
        time.unwrap_or_else(usual)
    }

    /// Returns how much longer than usual the caller waits for an operation of which the listing says the time.
    fn longer(&self, time: Option<Duration>) -> Duration {
        time.map_or(Duration::ZERO, |time| (time + ANSWER_MARGIN).saturating_sub(self.call_deadline))
    }
}

/// The right to work on one call id, with what is known of the call's copies: a repeat sees the first one's end.
pub(crate) type Turn = farthing_shared::keyed_mutex::KeyedGuard<Copies>;
type Slot = farthing_shared::keyed_mutex::KeyedSlot<Copies>;

/// The consumer half of the node. A cheap handle.
#[derive(Clone, Debug)]
pub struct Consumer(Arc<ConsumerInner>);

#[derive(Debug)]
struct ConsumerInner {
    parts: ConsumerParts,
    accounts: Arc<Accounts>,
    prices: Prices,
    shares: Arc<Shares>,
    places: Arc<OwnerPlaces>,
    turns: Arc<KeyedMutex<CallId, Copies>>,
    awaited: AwaitedCalls,
    client: CallClient,
    observer: Observer,
    books: Reconciler,
    payer: ChannelPayer,
    closer: CallCloser,
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
    /// Work that outlives its caller: acknowledgements and resolutions. Shutdown waits for it.
    pub tasks: Tasks,
    /// Ends what would wait without end.
    pub stopping: CancellationToken,
    pub ends: CallEnds,
}

impl Deref for ConsumerInner {
    type Target = ConsumerParts;

    fn deref(&self) -> &ConsumerParts {
        &self.parts
    }
}

impl Consumer {
    pub fn new(parts: ConsumerParts) -> Self {
        let who = (parts.signer.address(), *parts.signer.domain());
        let accounts = Arc::new(Accounts::new(parts.ledger.clone(), parts.channels.clone(), who));
        let prices = Prices::new(parts.ledger.clone());
        let shares = Arc::new(Shares::new(parts.settings.for_nothing));
        let client = CallClient::new(parts.network.clone(), parts.channels.clone());
        let observer = Observer {
            conduct: parts.conduct.clone(),
            catalog: parts.catalog.clone(),
            tasks: parts.tasks.clone(),
            stopping: parts.stopping.clone(),
        };
        let turns = Arc::<KeyedMutex<CallId, Copies>>::default();
        let books =
            Reconciler::new(&parts, accounts.clone(), turns.clone(), client.clone(), observer.clone());
        let payer = ChannelPayer {
            signer: parts.signer.clone(),
            network: parts.network.clone(),
            channels: parts.channels.clone(),
            funding: parts.funding.clone(),
            rules: parts.rules.clone(),
            accounts: accounts.clone(),
            books: books.clone(),
            tasks: parts.tasks.clone(),
            undecided_max: parts.settings.undecided_max,
        };
        let places = Arc::<OwnerPlaces>::default();
        let closer = CallCloser::new(CallCloserParts {
            signer: parts.signer.clone(),
            ledger: parts.ledger.clone(),
            catalog: parts.catalog.clone(),
            channels: parts.channels.clone(),
            funding: parts.funding.clone(),
            accounts: accounts.clone(),
            places: places.clone(),
            turns: turns.clone(),
            client: client.clone(),
            observer: observer.clone(),
            books: books.clone(),
            tasks: parts.tasks.clone(),
            stopping: parts.stopping.clone(),
        });
        let inner = ConsumerInner {
            parts,
            accounts,
            prices,
            shares,
            places,
            turns,
            awaited: AwaitedCalls::default(),
            client,
            observer,
            books,
            payer,
            closer,
        };
        Self(Arc::new(inner))
    }

    /// The books of what this node buys.
    pub fn accounts(&self) -> Arc<Accounts> {
        self.0.accounts.clone()
    }

    /// Compares every call bought from `owner`, and every channel with it, with what it says of them.
    ///
    /// # Errors
    /// [`BooksError`] when the owner's books or the own ones cannot be seen.
    pub async fn compare_books_with(&self, owner: Address) -> Result<BookComparison, BooksError> {
        self.0.books.compare_with(owner).await
    }

    /// A service, to look at before buying with a secret.
    ///
    /// # Errors
    /// [`BuyError`] when nobody reachable knows it, or its details cannot be had.
    pub async fn service(
        &self,
        id: ServiceId,
        grant: &Arc<Grant>,
        max_price: Option<Usdc>,
    ) -> Result<Arc<KnownService>, BuyError> {
        Ok(self.0.catalog.newest(id, &self.asker(grant, max_price)).await?)
    }

    /// Buys one call. It runs to its end even when the caller goes away or it is cancelled: what was promised must be resolved.
    ///
    /// # Errors
    /// [`BuyError`]; nothing was charged unless it says so.
    pub async fn buy(&self, order: Order) -> Result<Bought, BuyError> {
        let consumer = self.clone();
        let awaited = self.0.awaited.begin(&order);
        let told = awaited.told();
        let task = self.0.tasks.spawn(async move {
            let call = BegunCall::new(order.call_id, order.service, order.method, &order.path);
            let bought = consumer.buy_now(order, &awaited).await;
            consumer.note_end(&call, &bought);
            awaited.end(&bought);
            bought
        });
        awaited::end_of(task, told).await
    }

    async fn buy_now(&self, order: Order, awaited: &AwaitedCall) -> Result<Bought, BuyError> {
        let deadline = Instant::now() + self.0.settings.call_deadline;
        order.in_scope()?;
        let mut turn = self.0.turns.take(order.call_id).await;
        let earlier = self.0.accounts.earlier(order.call_id).map_err(BuyError::Unread)?;
        if !earlier.belongs_to(&order.grant) {
            return Err(BuyError::CallIdOfAnother);
        }
        self.may_buy().map_err(|error| earlier.tell(error))?;
        awaited.enter(earlier.stage())?;
        match earlier.server() {
            // The user has removed it since. The chain tells how its payment ends, and no owner's word on it counts.
            Some(server) if server == order.service => {
                return Err(earlier.tell(ForeignError::Removed(server).into()));
            }
            Some(_) => return Err(BuyError::CallIdConflict),
            None => {}
        }
        let service = order.service;
        let bought = match earlier {
            Earlier::Bought(purchase) => return self.fetch_again(order, *purchase, deadline, awaited).await,
            Earlier::Open(promise) => self.finish(order, *promise, deadline, turn, awaited).await,
            Earlier::Nothing => self.first(order, deadline, turn, awaited).await,
            Earlier::InDoubt => {
                turn.doubt(self.0.client.uptime());
                self.first(order, deadline, turn, awaited).await
            }
        }?;
        if bought.is_charged() {
            self.0.catalog.completed(service).await;
        }
        Ok(bought)
    }

    /// Takes up what an earlier run of this node left open. Called once, before the first call.
    ///
    /// # Errors
    /// [`LedgerError`] when the ledger cannot be read.
    pub fn recover(&self) -> Result<usize, LedgerError> {
        self.0.closer.recover()
    }

    /// Waits for the right to work on a call id, which one order has at a time.
    pub(crate) async fn turn(&self, call_id: CallId) -> Turn {
        self.0.turns.take(call_id).await
    }

    /// The same right, if no order has it now.
    pub(crate) fn turn_now(&self, call_id: CallId) -> Option<Turn> {
        self.0.turns.try_take(call_id)
    }

    pub(crate) fn may_buy(&self) -> Result<(), BuyError> {
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
    pub fn rules(&self) -> &Rules {
        &self.0.rules
    }

    /// Returns the conduct of the services that this node pays.
    pub fn conduct(&self) -> &Conduct {
        &self.0.conduct
    }

    /// Returns the record of what calls of each service may cost.
    pub fn prices(&self) -> &Prices {
        &self.0.prices
    }

    /// Lists the owners that have not told how calls ended, with their sums and limits.
    pub fn undecided(&self) -> Vec<UndecidedSum> {
        self.0.accounts.undecided().all(self.0.settings.undecided_max)
    }

    /// Lists the calls that nobody waits for any more and whose owner has not told their end.
    pub fn undecided_calls(&self) -> HashSet<CallId> {
        self.0.accounts.undecided().ids()
    }

    /// Cancels a call that is under way, also one of an x402 server: whoever waits for it is told so. What was not sent is
    /// not sent any more, and what was sent is resolved as any call whose caller went away. Returns how far it was; `None` if nobody
    /// waits for such a call.
    pub async fn cancel(&self, call_id: CallId) -> Option<CancelStage> {
        self.0.awaited.cancel(call_id).await
    }

    /// The calls that somebody waits for now.
    pub fn awaited(&self) -> AwaitedCalls {
        self.0.awaited.clone()
    }

    /// Returns the sum that was spent and reserved today.
    pub fn spent_today(&self) -> Usdc {
        self.counted_today().map(|spending| spending.total(today())).unwrap_or_default()
    }

    /// Returns the sum that was spent and reserved today with one secret.
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
