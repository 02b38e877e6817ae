//! The on-chain side of calls: what the chain confirms comes in, claims and closes go out.
//!
//! One task. It brings every confirmed change of a channel into the ledger first and into memory second, so a
//! promise is never accepted on a deposit that a restart would not know; it asks [`policy`] whether to claim;
//! it carries out cooperative closes when the last call on the channel has ended. None of it is on the path
//! of a call.

use std::{collections::HashMap, sync::Arc, time::Duration};

use farthing_chain::{ChainError, ChainHandle, ChannelView, ClaimRow, TxReport};
use farthing_ledger::{Ledger, LedgerError, PayeeChannel, PayerChannel, SettlementRow, SettlementState};
use farthing_network::NetworkHandle;
use farthing_protocol::{Address, CallMessage, CallReply, ChannelConfig, ChannelId, Signature, Usdc};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    clock,
    consumer::channels::Channels,
    killpoint,
    owner::book::{Book, PayeeChannel as Entry},
};

pub mod policy;
mod promised;

use policy::{ClaimFacts, ClaimReason, Policy};
use promised::Promised;

/// Gas of a claim transaction: the base and each further channel (measured, `docs/contracts.md`).
const CLAIM_GAS_BASE: u128 = 65_000;
const CLAIM_GAS_PER_CHANNEL: u128 = 19_000;
/// The price of ETH that gas is weighed with against USDC. Being wrong by a factor of two moves a claim by a
/// few hours; asking someone would add a party to trust.
const MICROS_PER_ETH: u128 = 3_000_000_000;
const WEI_PER_ETH: u128 = 1_000_000_000_000_000_000;
/// Settlements among which interrupted ones are looked for: at most one is under way at a time.
const INTERRUPTED_LOOK_BACK: usize = 32;
/// Channels of one settlement.
const CLAIM_ROWS_MAX: usize = 100;
const CLOSE_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// What was claimed.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    pub amount: Usdc,
    pub channels: usize,
    pub transactions: Vec<TxReport>,
}

/// Why a settlement failed; it is tried again by itself.
#[derive(Debug, thiserror::Error)]
pub enum SettlementError {
    #[error(transparent)]
    Chain(#[from] ChainError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("no channel {0}; `farthing channel list` shows them")]
    NoSuchChannel(ChannelId),
    #[error("the node is shutting down")]
    ShuttingDown,
}

/// Requests of the user.
#[derive(Debug)]
enum Request {
    Claim(oneshot::Sender<Result<Claimed, SettlementError>>),
    Close(ChannelId, oneshot::Sender<Result<(), SettlementError>>),
}

/// What settlement works with.
#[derive(Debug)]
pub struct Parts {
    pub wallet: Address,
    pub chain: ChainHandle,
    pub ledger: Ledger,
    pub network: NetworkHandle,
    pub book: Book,
    pub channels: Arc<Channels>,
    pub policy: Policy,
    pub interval: Duration,
    pub closes: mpsc::Receiver<ChannelId>,
    pub stopping: CancellationToken,
}

/// A handle to the settlement task.
#[derive(Clone, Debug)]
pub struct Settlement {
    requests: mpsc::Sender<Request>,
    chain: ChainHandle,
    network: NetworkHandle,
    channels: Arc<Channels>,
    promised: Promised,
}

impl Settlement {
    /// The handle and the task behind it.
    pub fn new(parts: Parts) -> (Self, impl Future<Output = ()>) {
        let (requests, receiver) = mpsc::channel(8);
        let handle = Self {
            requests,
            chain: parts.chain.clone(),
            network: parts.network.clone(),
            channels: parts.channels.clone(),
            promised: Promised::default(),
        };
        (
            handle,
            Task { parts, closing: Vec::new(), applied: HashMap::new(), interrupted: Vec::new() }
                .run(receiver),
        )
    }

    /// Claims everything that is unclaimed, now.
    ///
    /// # Errors
    /// [`SettlementError`]; what was not claimed stays claimable.
    pub async fn claim(&self) -> Result<Claimed, SettlementError> {
        let (answer, result) = oneshot::channel();
        self.requests.send(Request::Claim(answer)).await.map_err(|_| SettlementError::ShuttingDown)?;
        result.await.map_err(|_| SettlementError::ShuttingDown)?
    }

    /// Closes a channel this node is paid on: final claim, and the rest goes back to the payer.
    ///
    /// # Errors
    /// [`SettlementError`]; it is tried again by itself.
    pub async fn close_as_payee(&self, channel: ChannelId) -> Result<(), SettlementError> {
        let (answer, result) = oneshot::channel();
        let request = Request::Close(channel, answer);
        self.requests.send(request).await.map_err(|_| SettlementError::ShuttingDown)?;
        result.await.map_err(|_| SettlementError::ShuttingDown)?
    }

    /// Gets the rest of a deposit back: cooperatively when the owner answers, else by starting the delay.
    /// Returns what was done, in words.
    ///
    /// # Errors
    /// [`SettlementError`] when neither way works.
    pub async fn close_as_payer(&self, owner: Address) -> Result<&'static str, SettlementError> {
        let channel = self.channels.get(owner).ok_or(SettlementError::NoSuchChannel(ChannelId::NONE))?;
        if !channel.holds_something() {
            return Ok("closed already");
        }
        if channel.close_at_secs.is_some_and(|at| at <= clock::now_secs()) {
            self.chain.withdraw(channel.config).await?;
            return Ok("withdrawn: the delay was over");
        }
        let question = CallMessage::Close(channel.id);
        let asked = self.network.call(owner, question, bytes::Bytes::new(), CLOSE_ANSWER_TIMEOUT).await;
        if matches!(asked, Ok((CallReply::Channel(_), ..))) {
            self.promised.note(channel.id);
            return Ok("the owner closes it now and the rest of the deposit comes back with that");
        }
        if channel.close_at_secs.is_none() {
            self.chain.request_close(channel.config).await?;
        }
        Ok("the owner does not answer; the deposit can be withdrawn when the delay is over")
    }

    /// Whether the owner has taken on to close the channel, which the chain may not show yet.
    #[must_use]
    pub fn is_promised(&self, channel: ChannelId) -> bool {
        self.promised.has(channel)
    }
}

struct Task {
    parts: Parts,
    /// Channels to close as soon as no call runs on them.
    closing: Vec<ChannelId>,
    /// What the ledger has taken over from the chain.
    applied: HashMap<ChannelId, ChannelView>,
    /// Claims that were under way at the last stop.
    interrupted: Vec<farthing_ledger::Settlement>,
}

impl Task {
    async fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        self.closing = self.parts.book.closing();
        self.interrupted = self.interrupted_claims();
        let mut views = self.parts.chain.channels();
        // The chain may have been read before this task began to listen, and say nothing new for a long time.
        views.mark_changed();
        let mut tick = tokio::time::interval(self.parts.interval);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut retry_closes = tokio::time::interval(Duration::from_millis(500));
        retry_closes.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let stopping = self.parts.stopping.clone();
        loop {
            tokio::select! {
                () = stopping.cancelled() => return,
                changed = views.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let seen = views.borrow_and_update().clone();
                    for view in seen.values() {
                        // A commit for every channel on every block would wear out a small board's card.
                        if self.applied.get(&view.id) == Some(view) {
                            continue;
                        }
                        match self.apply(view).await {
                            Ok(()) => drop(self.applied.insert(view.id, *view)),
                            Err(error) => {
                                tracing::error!(channel = %view.id, %error, "a channel's state was not stored");
                            }
                        }
                    }
                    self.conclude_paid().await;
                }
                Some(channel) = self.parts.closes.recv() => self.start_closing(channel).await,
                Some(request) = requests.recv() => self.carry_out(request).await,
                _ = tick.tick() => self.settle_by_policy().await,
                _ = retry_closes.tick(), if !self.closing.is_empty() => self.close_idle().await,
            }
        }
    }

    /// Whoever asked may have gone away; what was asked is done all the same.
    async fn carry_out(&mut self, request: Request) {
        match request {
            Request::Claim(answer) => {
                let _ = answer.send(self.claim_all(ClaimReason::Requested).await);
            }
            Request::Close(channel, answer) => {
                self.start_closing(channel).await;
                self.close_idle().await;
                let _ = answer.send(Ok(()));
            }
        }
    }

    /// Ledger first, memory second.
    async fn apply(&self, view: &ChannelView) -> Result<(), LedgerError> {
        let closing = view.close_at_secs.is_some();
        if view.config.payee == self.parts.wallet {
            let facts = PayeeChannel {
                id: view.id,
                config: view.config,
                deposited: view.deposited,
                claimed: view.claimed,
                closing,
            };
            let row = self.parts.ledger.put_payee_channel(facts).await?;
            self.parts.book.apply(&row, view.close_at_secs, None);
        }
        if view.config.payer == self.parts.wallet {
            let facts = PayerChannel {
                id: view.id,
                config: view.config,
                deposited: view.deposited,
                claimed: view.claimed,
                stopped: false,
            };
            let row = self.parts.ledger.put_payer_channel(facts).await?;
            self.parts.channels.apply(&row, view.close_at_secs);
        }
        Ok(())
    }

    fn interrupted_claims(&self) -> Vec<farthing_ledger::Settlement> {
        let mut settlements = self.parts.ledger.settlements(INTERRUPTED_LOOK_BACK).unwrap_or_else(|error| {
            tracing::error!(%error, "earlier claims cannot be read");
            Vec::new()
        });
        settlements.retain(|settlement| settlement.state == SettlementState::Pending);
        settlements
    }

    /// An interrupted claim is done when the chain shows all of it paid.
    async fn conclude_paid(&mut self) {
        let is_paid =
            |row: &SettlementRow| self.applied.get(&row.channel).is_some_and(|view| view.claimed >= row.to);
        let (paid, unpaid) =
            self.interrupted.drain(..).partition(|settlement| settlement.rows.iter().all(is_paid));
        self.interrupted = unpaid;
        self.conclude(paid, SettlementState::Confirmed).await;
    }

    async fn conclude(&self, settlements: Vec<farthing_ledger::Settlement>, state: SettlementState) {
        for mut settlement in settlements {
            (settlement.state, settlement.time_secs) = (state, clock::now_secs());
            if let Err(error) = self.parts.ledger.record_claim(settlement).await {
                tracing::warn!(%error, "the end of an interrupted claim was not stored");
            }
        }
    }

    async fn settle_by_policy(&mut self) {
        if let Some(reason) = self.parts.policy.claim(&self.facts()) {
            match self.claim_all(reason).await {
                Ok(claimed) => {
                    tracing::info!(?reason, amount = %claimed.amount, channels = claimed.channels, "claimed");
                }
                Err(error) => tracing::warn!(?reason, %error, "the claim failed and is tried again"),
            }
        }
        self.close_unused().await;
        self.withdraw_due().await;
    }

    fn facts(&self) -> ClaimFacts {
        let channels = self.parts.book.all();
        let now_secs = clock::now_secs();
        let claimable = channels.iter().filter(|(_, channel)| !channel.state.unclaimed().is_zero());
        let count = claimable.clone().count();
        let gas = CLAIM_GAS_BASE + CLAIM_GAS_PER_CHANNEL * count as u128;
        let base_fee = *self.parts.chain.base_fee().borrow();
        let wei = gas.saturating_mul(base_fee.map_or(0, |fee| fee.current_wei));
        ClaimFacts {
            unclaimed: claimable
                .clone()
                .fold(Usdc::ZERO, |sum, (_, channel)| sum.saturating_add(channel.state.unclaimed())),
            oldest_secs: claimable
                .clone()
                .filter_map(|(_, channel)| channel.unclaimed_since_secs)
                .map(|since| now_secs.saturating_sub(since))
                .max()
                .unwrap_or(0),
            deposit_used_percent: claimable
                .clone()
                .map(|(_, channel)| {
                    let (spent, deposited) = (channel.state.spent.micros(), channel.state.deposited.micros());
                    spent.saturating_mul(100).checked_div(deposited).unwrap_or(100)
                })
                .max()
                .unwrap_or(0),
            gas_cost: micros_of(wei),
            gas_is_dear: base_fee.is_some_and(|fee| {
                fee.current_wei
                    > fee.median_wei.saturating_mul(u128::from(self.parts.policy.gas_price_factor_max))
            }),
            close_pending: claimable.clone().any(|(_, channel)| channel.close_pending),
            requested: false,
        }
    }

    /// Claims every channel with something unclaimed, a batch at a time. The ledger knows of a claim before the
    /// chain does, and the books have its result before anyone is told.
    async fn claim_all(&mut self, reason: ClaimReason) -> Result<Claimed, SettlementError> {
        let mut entries: Vec<(ChannelId, Entry)> = self.parts.book.all();
        entries.retain(|(_, entry)| !entry.state.unclaimed().is_zero() && entry.best_voucher.is_some());
        entries.sort_by_key(|(id, _)| *id);
        tracing::debug!(?reason, channels = entries.len(), "claiming");
        // What an interrupted claim may still pay is counted by this one, so that it is counted once.
        let interrupted = std::mem::take(&mut self.interrupted);
        self.conclude(interrupted, SettlementState::Failed).await;
        let mut claimed = Claimed::default();
        for batch in entries.chunks(CLAIM_ROWS_MAX) {
            let rows = batch
                .iter()
                .map(|(id, entry)| SettlementRow {
                    channel: *id,
                    from: entry.state.claimed,
                    to: entry.state.spent,
                })
                .collect();
            let mut settlement = self.parts.ledger.open_settlement(rows, clock::now_secs()).await?;
            killpoint::reached("settlement.before_claim");
            let report =
                self.parts.chain.claim_many(batch.iter().map(|(_, entry)| claim_row(entry)).collect()).await;
            killpoint::reached("settlement.after_claim");
            settlement.time_secs = clock::now_secs();
            let report = match report {
                Ok(report) => report,
                Err(error) => {
                    settlement.state = SettlementState::Failed;
                    self.parts.ledger.record_claim(settlement).await?;
                    return Err(error.into());
                }
            };
            for (channel, reason) in &report.refused {
                tracing::warn!(%channel, reason, "the contract does not pay a claim");
            }
            settlement.state = SettlementState::Confirmed;
            settlement.transaction = report.transactions.iter().find_map(|tx| tx.tx_hash).map(|hash| hash.0);
            for row in &mut settlement.rows {
                let total = report.claimed.iter().find(|(channel, _)| *channel == row.channel);
                row.to = total.map_or(row.from, |(_, total)| (*total).min(row.to));
                claimed.amount = claimed.amount.saturating_add(row.to.saturating_sub(row.from));
                claimed.channels += 1;
            }
            self.parts.ledger.record_claim(settlement).await?;
            claimed.transactions.extend(report.transactions);
            for (_, entry) in batch {
                self.take_over(&entry.config).await?;
            }
        }
        Ok(claimed)
    }

    /// Brings what the chain now says of a channel into the books.
    async fn take_over(&self, config: &ChannelConfig) -> Result<(), LedgerError> {
        match self.parts.chain.channel(&config.id(&self.parts.chain.domain())) {
            Some(view) => self.apply(&view).await,
            None => Ok(()),
        }
    }

    async fn start_closing(&mut self, channel: ChannelId) {
        if !self.parts.book.set_closing(channel) {
            return;
        }
        let Some(entry) = self.parts.book.get(channel) else { return };
        let facts = PayeeChannel {
            id: channel,
            config: entry.config,
            deposited: entry.state.deposited,
            claimed: entry.state.claimed,
            closing: true,
        };
        if let Err(error) = self.parts.ledger.put_payee_channel(facts).await {
            tracing::error!(%channel, %error, "a requested close was not stored");
        }
        if !self.closing.contains(&channel) {
            self.closing.push(channel);
        }
    }

    /// Closes what was asked to be closed and has no call in progress.
    async fn close_idle(&mut self) {
        for channel in std::mem::take(&mut self.closing) {
            let Some(entry) = self.parts.book.get(channel) else { continue };
            if entry.state.deposited <= entry.state.claimed {
                continue;
            }
            let busy = !entry.state.reserved.is_zero();
            let closed = if busy { Ok(false) } else { self.close_now(&entry).await.map(|()| true) };
            match closed {
                Ok(true) => tracing::info!(%channel, "the channel is closed"),
                Ok(false) => self.closing.push(channel),
                Err(error) => {
                    tracing::warn!(%channel, %error, "the close failed and is tried again");
                    self.closing.push(channel);
                    break;
                }
            }
        }
    }

    async fn close_now(&self, entry: &Entry) -> Result<(), SettlementError> {
        killpoint::reached("settlement.before_close");
        self.parts.chain.close(claim_row(entry)).await?;
        killpoint::reached("settlement.after_close");
        Ok(self.take_over(&entry.config).await?)
    }

    /// Asks owners of channels that this node no longer uses to close them.
    async fn close_unused(&self) {
        let now_secs = clock::now_secs();
        for channel in self.parts.channels.all() {
            let idle = now_secs.saturating_sub(channel.last_used_secs) >= self.parts.policy.idle_close_secs;
            let has_deposit = channel.state.deposited > channel.state.acknowledged;
            if !idle || !has_deposit || channel.close_at_secs.is_some() || !channel.state.in_flight.is_zero()
            {
                continue;
            }
            let question = CallMessage::Close(channel.id);
            let owner = channel.config.payee;
            let asked =
                self.parts.network.call(owner, question, bytes::Bytes::new(), CLOSE_ANSWER_TIMEOUT).await;
            if asked.is_err()
                && now_secs.saturating_sub(channel.last_used_secs)
                    >= self.parts.policy.idle_close_secs + self.parts.policy.close_answer_secs
                && let Err(error) = self.parts.chain.request_close(channel.config).await
            {
                tracing::warn!(%owner, %error, "an unused channel was not closed");
            }
        }
    }

    /// Takes deposits back whose delay is over.
    async fn withdraw_due(&self) {
        for channel in self.parts.channels.all() {
            let due = channel.close_at_secs.is_some_and(|at| at <= clock::now_secs());
            if due && let Err(error) = self.parts.chain.withdraw(channel.config).await {
                tracing::warn!(owner = %channel.config.payee, %error, "a deposit was not withdrawn yet");
            }
        }
    }
}

/// The claim of everything charged. Without a voucher nothing was, and the contract asks for no signature.
fn claim_row(entry: &Entry) -> ClaimRow {
    let voucher = entry.best_voucher.as_ref();
    ClaimRow {
        config: entry.config,
        cumulative: voucher.map_or(Usdc::ZERO, |voucher| voucher.cumulative),
        amount: voucher.map_or(Usdc::ZERO, |_| entry.state.spent),
        signature: voucher.map_or(Signature::from_bytes([0; 65]), |voucher| *voucher.signature()),
    }
}

/// Gas in USDC.
fn micros_of(wei: u128) -> Usdc {
    let micros = wei.saturating_mul(MICROS_PER_ETH) / WEI_PER_ETH;
    Usdc::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}
