//! The background task that keeps this node's view of the chain.
//!
//! In order: restore what the journal knows; connect, which proves the token's EIP-712 domain; then at every
//! poll read the head, and when it moved the channels that events touched, the balances and the presence of
//! the contract. The head is published last, so a fresh head means everything was read. Events are found by a
//! task of its own, `finder`, and nothing here waits for it, but for a moment at the start.
//!
//! Nothing here fails for good: an unreachable chain is tried again after a growing, jittered delay.

use std::{sync::Arc, time::Duration};

use farthing_values::{Address, ChannelConfig, ChannelId};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    backoff::Backoff,
    fees::{Tips, bid},
    reader::{At, Header, Reader},
    rpc::RpcError,
    spec::ChainKind,
    store::{Remembered, Store},
    verify::{self, ContractCode, Unfit},
    views::{BaseFee, ChainStatus, Head, L1Fee, Views},
};

mod channels;
mod fees;
mod finder;
mod step;

use channels::{Channels, Scope};
use fees::FeeHistory;
use finder::{Finder, Found};
pub(crate) use finder::{address_in, channel_of};
use step::{STUCK_AFTER, Step, step};

/// A request of others to the watcher.
#[derive(Debug)]
pub(crate) enum Command {
    /// Read everything again now; answered when it was tried.
    Refresh(oneshot::Sender<()>),
    /// Follow a channel that logs may not show, because they are too old.
    Track(ChannelConfig),
    /// Read a channel that is followed once more.
    Reread(ChannelId),
}

/// The interval at which everything is read again without an event to ask for it: a lagging endpoint may hide one.
const REREAD_EVERY: Duration = Duration::from_secs(60);
/// The same while events cannot be read at all.
const REREAD_WITHOUT_EVENTS_EVERY: Duration = Duration::from_secs(10);
/// Parts of what events named that wait to be read; the finder waits with more.
const FOUND_WAITING_MAX: usize = 4;
/// Channels that events named and the state has not confirmed, at which a start waits for no more of them.
const CANDIDATES_MAX: usize = 2_000;
/// An endpoint that shows a head but not its state this often in a row does not catch up by itself.
const REFUSALS_MAX: u32 = 5;

pub(crate) struct Watcher {
    reader: Reader,
    wallet: Address,
    views: Arc<Views>,
    commands: mpsc::Receiver<Command>,
    found: mpsc::Receiver<Found>,
    finder: Option<Finder>,
    stop: CancellationToken,
    channels: Channels,
    fees: FeeHistory,
    l1: L1Fee,
    /// As the endpoint told it last.
    tip_wei: Option<u128>,
    last: Option<Header>,
    seen_at: Instant,
    reread_at: Instant,
    /// The last read of all channels, empty ones as well.
    all_at: Instant,
    contract_checked: bool,
    /// The channels that the next poll reads, kept until a poll has read them.
    scope: Scope,
    /// Polls in a row that found a head but could not read its state.
    refusals: u32,
    reorganisations: u64,
}

/// The reason that a round of following ended.
enum Interrupted {
    Unreachable(String),
    Refused(String),
    Stopped,
}

impl Watcher {
    pub(crate) fn new(
        reader: Reader,
        wallet: Address,
        store: Store,
        remembered: &Remembered,
        views: Arc<Views>,
        commands: mpsc::Receiver<Command>,
        stop: CancellationToken,
    ) -> Self {
        let channels = Channels::new(reader.clone(), wallet, store.clone(), remembered);
        let (sender, found) = mpsc::channel(FOUND_WAITING_MAX);
        let (to_views, cursor) = (Arc::clone(&views), remembered.cursor);
        let finder = Some(Finder::new(reader.clone(), wallet, store, to_views, sender, cursor));
        let now = Instant::now();
        Self {
            reader,
            wallet,
            views,
            commands,
            found,
            finder,
            stop,
            channels,
            fees: FeeHistory::default(),
            l1: L1Fee::default(),
            tip_wei: None,
            last: None,
            seen_at: now,
            reread_at: now,
            all_at: now,
            contract_checked: false,
            scope: Scope::All,
            refusals: 0,
            reorganisations: 0,
        }
    }

    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        // Dropping the work at any await is safe: the journal is ahead of memory, never behind.
        let finder = self.finder.take();
        let find = async move {
            if let Some(finder) = finder {
                finder.run().await;
            }
            std::future::pending::<()>().await;
        };
        // One task, two futures: the finder ends with the watcher.
        let both = async {
            tokio::select! { () = self.watch() => {}, () = find => {} }
        };
        stop.run_until_cancelled(both).await;
    }

    async fn watch(&mut self) {
        let mut backoff = Backoff::default();
        loop {
            let interrupted = match self.connect().await {
                Ok(()) => self.follow(&mut backoff).await,
                Err(interrupted) => interrupted,
            };
            match interrupted {
                Interrupted::Unreachable(reason) => {
                    tracing::warn!(chain = self.reader.spec.name, reason, "the chain is unreachable");
                    self.reader.rpc.turn_to_next();
                    self.views.set_status(ChainStatus::Unreachable { reason });
                }
                Interrupted::Refused(reason) => {
                    tracing::error!(chain = self.reader.spec.name, reason, "the chain cannot be used");
                    self.views.set_status(ChainStatus::Refused { reason });
                }
                Interrupted::Stopped => return,
            }
            self.wait_out(backoff.next_delay()).await;
        }
    }

    async fn connect(&mut self) -> Result<(), Interrupted> {
        match verify::token(&self.reader).await {
            Ok(domain) => {
                tracing::info!(chain = self.reader.spec.name, token = domain.name(), "connected");
                Ok(())
            }
            Err(Unfit::Unreachable(reason)) => Err(Interrupted::Unreachable(reason)),
            Err(Unfit::Wrong(reason)) => Err(Interrupted::Refused(reason)),
        }
    }

    /// Polls until the chain cannot be reached or is not what it should be.
    async fn follow(&mut self, backoff: &mut Backoff) -> Interrupted {
        let poll_interval = Duration::from_millis(self.reader.spec.poll_interval_ms);
        self.scope = Scope::All;
        let mut waiting: Vec<oneshot::Sender<()>> = Vec::new();
        let mut due_at = Instant::now();
        loop {
            // Strangers cause events. What they name is looked at without delay once in each interval, and no more often.
            let is_prompt = Instant::now() < due_at;
            if !is_prompt {
                due_at = Instant::now() + poll_interval;
            }
            match self.poll().await {
                Ok(()) => backoff.reset(),
                Err(Unfit::Unreachable(reason)) => return Interrupted::Unreachable(reason),
                Err(Unfit::Wrong(reason)) => return Interrupted::Refused(reason),
            }
            for done in waiting.drain(..) {
                // Whoever asked may have given up.
                let _ = done.send(());
            }
            tokio::select! {
                () = tokio::time::sleep_until(due_at) => {}
                command = self.commands.recv() => match command {
                    Some(Command::Refresh(done)) => {
                        self.scope = Scope::All;
                        waiting.push(done);
                    }
                    Some(Command::Track(config)) => self.channels.track(config).await,
                    Some(Command::Reread(id)) => self.channels.touch(id),
                    None => return Interrupted::Stopped,
                },
                Some(found) = self.found.recv(), if !is_prompt => {
                    self.channels.consider(found);
                    self.consider_what_waits();
                }
            }
        }
    }

    /// At the start, gives the events a moment to name what the journal forgot. They may take longer.
    async fn await_first_events(&mut self) {
        let mut logs = self.views.logs.subscribe();
        let moment = Duration::from_millis(self.reader.spec.request_timeout_ms);
        let until = Instant::now() + moment;
        // What a liar names without end is read, and forgotten, like that of any other poll.
        while !logs.borrow_and_update().tried && self.channels.candidates() < CANDIDATES_MAX {
            tokio::select! {
                Some(found) = self.found.recv() => self.channels.consider(found),
                changed = logs.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(until) => return,
            }
        }
        self.consider_what_waits();
    }

    fn consider_what_waits(&mut self) {
        while self.channels.candidates() < CANDIDATES_MAX
            && let Ok(found) = self.found.try_recv()
        {
            self.channels.consider(found);
        }
    }

    async fn poll(&mut self) -> Result<(), Unfit> {
        let head = self.reader.head().await?;
        let step = self.step_to(&head).await?.after(self.seen_at.elapsed());
        if step == Step::Behind {
            self.reader.rpc.turn_to_next();
            return Ok(());
        }
        let moved = matches!(step, Step::Advanced | Step::Reorganised);
        if step == Step::Reorganised {
            tracing::info!(block = head.number(), "the chain reorganised; reading all channels again");
            self.channels.reorganised(self.reader.confirmed(head.number()));
            self.reorganisations += 1;
        }
        let ages = [self.all_at.elapsed(), self.reread_at.elapsed()];
        self.scope = self.scope.max(Scope::due(step == Step::Reorganised, ages, self.reread_every()));
        if moved || self.scope != Scope::Touched || self.channels.has_news() {
            match self.read(&head, self.scope).await {
                Ok(()) => {}
                // One endpoint has this head and the next not yet: usually the next poll finds them agreed.
                Err(RpcError::Refused(refusal)) if self.refusals < REFUSALS_MAX => {
                    tracing::debug!(%refusal, "the head's state cannot be read yet");
                    self.refusals += 1;
                    // What was read of this head may be of a block that is already gone.
                    self.scope = Scope::All;
                    self.reader.rpc.turn_to_next();
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
            self.refusals = 0;
            self.scope = Scope::Touched;
        }
        self.publish(head, moved);
        Ok(())
    }

    fn reread_every(&self) -> Duration {
        let failing = self.views.logs.borrow().failing.is_some();
        if failing { REREAD_WITHOUT_EVENTS_EVERY } else { REREAD_EVERY }
    }

    /// Tells how the new head relates to the last one; asks the chain when blocks lie between.
    async fn step_to(&self, head: &Header) -> Result<Step, RpcError> {
        let Some(last) = &self.last else { return Ok(Step::Advanced) };
        let decided = step(last, head, self.reader.spec.kind);
        if decided != Step::Unclear {
            return Ok(decided);
        }
        let same = self.reader.header(last.number()).await?.is_some_and(|block| block.hash == last.hash);
        Ok(if same { Step::Advanced } else { Step::Reorganised })
    }

    async fn read(&mut self, head: &Header, scope: Scope) -> Result<(), RpcError> {
        if !self.contract_checked || scope == Scope::All {
            match verify::contract(&self.reader).await? {
                ContractCode::Right => self.contract_checked = true,
                ContractCode::Missing => {
                    self.contract_checked = false;
                    self.views
                        .balances
                        .send_replace(Some(self.reader.balances(self.wallet, At::Latest).await?));
                    return Ok(());
                }
                ContractCode::Other => {
                    let contract = self.reader.spec.contract;
                    return Err(RpcError::WrongChain(verify::other_code(contract)));
                }
            }
        }
        if self.last.is_none() {
            self.await_first_events().await;
        }
        let channels = self.channels.read(head.number(), scope).await?;
        let confirmed = At::Block(self.reader.confirmed(head.number()));
        let balances = self.reader.balances(self.wallet, confirmed).await?;
        if let Some(channels) = channels {
            self.views.channels.send_replace(channels);
        }
        self.views.balances.send_if_modified(|current| {
            let changed = *current != Some(balances);
            *current = Some(balances);
            changed
        });
        if scope != Scope::Touched {
            self.l1 = fees::l1(&self.reader, head.base_fee_wei(), self.usual_tip_wei()).await?;
            self.tip_wei = self.reader.tip_wei().await?;
            self.reread_at = Instant::now();
        }
        if scope == Scope::All {
            self.all_at = Instant::now();
        }
        Ok(())
    }

    fn usual_tip_wei(&self) -> u128 {
        Tips::of(self.reader.spec.is_l2).usual_wei
    }

    fn base_fee(&mut self, current_wei: u128, now: Instant) -> BaseFee {
        let spec = &self.reader.spec;
        let bid_wei =
            bid(spec, current_wei, self.tip_wei).map_or(spec.gas_price_cap_wei, |fees| fees.max_wei);
        let median_wei = self.fees.observe(current_wei, now);
        BaseFee { current_wei, median_wei, tip_wei: self.usual_tip_wei(), bid_wei, l1: self.l1 }
    }

    fn publish(&mut self, head: Header, moved: bool) {
        let kind = self.reader.spec.kind;
        let now = Instant::now();
        if moved || kind == ChainKind::Local {
            self.seen_at = now;
        } else if self.seen_at.elapsed() >= STUCK_AFTER {
            self.reader.rpc.turn_to_next();
        }
        if moved {
            let fee = self.base_fee(head.base_fee_wei(), now);
            self.views.base_fee.send_replace(Some(fee));
        }
        self.last = Some(head);
        self.views.head.send_replace(Some(Head {
            number: head.number(),
            confirmed: self.reader.confirmed(head.number()),
            timestamp_secs: head.timestamp_secs(),
            base_fee_wei: head.base_fee_wei(),
            seen_at: self.seen_at,
            kind,
            reorganisations: self.reorganisations,
        }));
        let contract = self.reader.spec.contract;
        let missing = ChainStatus::ContractMissing { contract };
        self.views.set_status(if self.contract_checked { ChainStatus::Ready } else { missing });
    }

    /// Waits before the next attempt. Whoever asks for a refresh meanwhile is told at once.
    async fn wait_out(&mut self, delay: Duration) {
        let until = Instant::now() + delay;
        loop {
            tokio::select! {
                () = tokio::time::sleep_until(until) => return,
                command = self.commands.recv() => match command {
                    Some(Command::Refresh(done)) => {
                        let _ = done.send(());
                    }
                    Some(Command::Track(config)) => self.channels.track(config).await,
                    Some(Command::Reread(id)) => self.channels.touch(id),
                    None => return,
                },
            }
        }
    }
}
