//! Brings back what is left of this node's deposits: unused channels are closed, promises of owners are held to
//! their term, and what may be withdrawn is withdrawn.
//!
//! Owners are asked a few at a time and apart from everything that needs only the chain, so that those that do not
//! answer hold up nothing.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use farthing_chain::{ChainError, ChainHandle, ClaimRow};
use farthing_ledger::Ledger;
use farthing_network::NetworkHandle;
use farthing_os::{clock, killpoint};
use farthing_protocol::{ChannelId, SignedClose, Usdc, Voucher};
use farthing_shared::{at_once::each, chain_view};
use farthing_wallet::Signer;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::{SettlementError, policy::Policy, shown};
use crate::{
    consumer::{
        accounts::Accounts,
        channels::{PayerChannel, PayerChannels},
        close_promises::{self, CloseWord},
        funding::Funding,
    },
    status,
};

mod asking;
mod closing;
mod signed;
mod used;

use asking::CloseReply;
use used::keep_what_is_used;

/// An owner that was asked to close an unused channel is asked again after that.
const ASK_AGAIN_SECS: u64 = 3600;
/// The longest that a close which the chain has may be on its way into the books.
const SHOWN_WITHIN: Duration = Duration::from_secs(10);

/// The outcome of a request to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    Already,
    /// The delay was over, and the rest is back.
    Withdrawn,
    /// The owner has signed the close, and this node has brought it to the chain: the rest is back.
    Brought,
    /// The owner has taken it on, and is trusted to do so until then.
    Promised {
        until_secs: u64,
    },
    /// The chain has the request; the rest can be withdrawn from then on.
    Requested {
        withdrawable_secs: Option<u64>,
    },
}

/// The payer's half of settlement. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Payer {
    pub chain: ChainHandle,
    pub network: NetworkHandle,
    pub signer: Signer,
    pub ledger: Ledger,
    pub channels: Arc<PayerChannels>,
    pub funding: Funding,
    pub accounts: Arc<Accounts>,
    pub policy: Policy,
    /// The times when owners were last asked about a channel that is not used any more.
    pub asked_secs: Arc<Mutex<HashMap<ChannelId, u64>>>,
}

impl Payer {
    /// Does what needs only the chain: withdrawals, and closes that owners promised and did not carry out.
    pub(super) async fn follow(self, interval: Duration) {
        let mut tick = tokio::time::interval(interval);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut views = self.chain.channels();
        let mut kept = HashSet::new();
        loop {
            tokio::select! {
                changed = views.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    views.mark_unchanged();
                    self.enforce_promises().await;
                }
                _ = tick.tick() => {
                    keep_what_is_used(&self.chain, &self.ledger, &mut kept).await;
                    self.enforce_promises().await;
                    self.withdraw_due().await;
                }
            }
        }
    }

    /// Does what may need owners: closes channels that this node no longer uses, asks again for closes whose answers were lost,
    /// and shows an owner what it is owed on one that the chain closes.
    pub(super) async fn ask(self, interval: Duration) {
        let mut tick = tokio::time::interval(interval);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            each(self.unused(), |(channel, way)| self.get_back(channel, way)).await;
            each(self.funding.take_lost_answers(), |channel| self.get_back(channel, Way::Owner)).await;
            each(self.closing(), |channel| self.show(channel)).await;
        }
    }

    /// Gets the rest of a deposit back: cooperatively when the owner answers, else by starting the delay. An owner that asks
    /// to wait, or signs a close that this node cannot bring now, is there, so the delay is not started. What is being deposited
    /// or closed with the owner is waited for. With `force` the owner is not asked, and nothing waited for.
    pub(super) async fn close(&self, id: ChannelId, force: bool) -> Result<Closed, SettlementError> {
        let find = || self.channels.get(id).ok_or(SettlementError::NoSuchChannel(id));
        let _turn = match force {
            true => None,
            false => Some(self.funding.turn(find()?.config.payee).await),
        };
        let channel = find()?;
        if !channel.holds_something() {
            return Ok(Closed::Already);
        }
        match channel.close_at_secs {
            Some(at) if self.is_over(at) => {
                self.withdraw(&channel).await?;
                return Ok(Closed::Withdrawn);
            }
            Some(at) => return Ok(Closed::Requested { withdrawable_secs: Some(at) }),
            None => {}
        }
        let promised = self.promised_until(channel.id);
        let lasts = |until| close_promises::lasts(until, clock::now_secs(), self.policy.close_promise_secs);
        let is_broken = promised.is_some_and(|until| !lasts(until));
        if !force && !is_broken {
            // An owner that does not answer any more may still keep its word within the term.
            match self.ask_to_close(&channel).await {
                CloseReply::Promised => {
                    return Ok(Closed::Promised { until_secs: self.note_promise(channel.id).await });
                }
                CloseReply::Signed(close) => match self.bring_or_ask(&channel, close).await {
                    Ok(closed) => return Ok(closed),
                    Err(SettlementError::Chain(why)) if !is_void(&why) => {
                        let owner = channel.config.payee;
                        return Err(SettlementError::NotBrought { owner, why: Box::new(why) });
                    }
                    // The owner closed it itself meanwhile.
                    Err(_) if self.has_ended(id) => return Ok(Closed::Already),
                    Err(error) => {
                        tracing::warn!(channel = %id, %error, "a signed close was not sent to the chain");
                    }
                },
                CloseReply::Busy(_) if self.has_ended(id) => return Ok(Closed::Already),
                CloseReply::Busy(why) if promised.is_none() => {
                    return Err(SettlementError::OwnerBusy { owner: channel.config.payee, why });
                }
                CloseReply::Busy(_) | CloseReply::Nothing => {}
            }
            // A word that was void is taken back.
            if let Some(until_secs) = self.promised_until(channel.id) {
                return Ok(Closed::Promised { until_secs });
            }
        }
        self.request_close(&channel).await
    }

    /// The second until which the owner's word to close a channel, as the chain shows it, is trusted: its promise, or a close that
    /// it signed and that the chain does not show yet.
    pub(super) fn promised_until(&self, channel: ChannelId) -> Option<u64> {
        self.funding.promised().closing_until(channel, self.round(channel))
    }

    /// Tells whether nothing is left to get back, as this node has read by now: its owner has been paid all of it meanwhile.
    fn has_ended(&self, channel: ChannelId) -> bool {
        self.channels.get(channel).is_none_or(|channel| !channel.holds_something())
    }

    fn round(&self, channel: ChannelId) -> Option<u32> {
        self.chain.channel(&channel).map(|view| view.round)
    }

    /// Brings the owner's signed close to the chain. What it takes is acknowledged, so the voucher promises nothing new. That it is
    /// brought is noted first: a node that dies meanwhile deposits nothing into what its owner does not serve. What cannot be
    /// sent now stays noted, because the owner serves nothing all the same: the owner is asked again, which sends its own close
    /// once that earns its gas, and signs the same one until then. Trying again prolongs no term.
    async fn bring(&self, channel: &PayerChannel, close: SignedClose) -> Result<Closed, SettlementError> {
        let SignedClose { consent, signature } = close;
        let (config, amount) = (channel.config, consent.amount);
        let voucher = Voucher { channel: channel.id, cumulative: amount };
        let promise = self.signer.sign_voucher(&voucher, consent.deposited)?;
        let row = ClaimRow { config, cumulative: amount, amount, signature: promise };
        let _closing = self.funding.begin_close(channel.id);
        killpoint::reached("settlement.before_bring");
        let before = self.funding.promised().word(channel.id);
        self.note(channel.id, Some(consent.round), true).await;
        killpoint::reached("settlement.before_relay");
        if let Err(why) = self.chain.relay_close(row, consent, signature).await {
            let is_known = before.is_some_and(|word| word.is_signed && word.round == Some(consent.round));
            if is_void(&why) || is_known {
                self.funding.promised().take_back(channel.id, before).await;
            }
            return Err(why.into());
        }
        killpoint::reached("settlement.after_relay");
        self.funding.closed_for_us(config, consent.round).await;
        // Until then calls would be promised on what the channel held before.
        let shown = self.channels.until(channel.id, |channel| channel.round > consent.round);
        if timeout(SHOWN_WITHIN, shown).await.is_err() {
            tracing::warn!(channel = %channel.id, "the ledger does not show yet that the channel is closed");
        }
        Ok(Closed::Brought)
    }

    /// Brings a signed close or, without ETH for that, has the owner bring this wallet's own request.
    async fn bring_or_ask(
        &self,
        channel: &PayerChannel,
        close: SignedClose,
    ) -> Result<Closed, SettlementError> {
        if self.funding.lacks_eth() {
            match self.request_close(channel).await {
                Ok(closed) => return Ok(closed),
                Err(error) => {
                    tracing::info!(channel = %channel.id, %error, "the signed close is tried instead");
                }
            }
        }
        self.bring(channel, close).await
    }

    async fn note(&self, channel: ChannelId, round: Option<u32>, is_signed: bool) -> u64 {
        let until_secs = clock::now_secs().saturating_add(self.policy.close_promise_secs);
        self.funding
            .promised()
            .note(channel, CloseWord { until_secs, round, is_signed, done_secs: None })
            .await
    }

    async fn note_promise(&self, channel: ChannelId) -> u64 {
        self.note(channel, self.round(channel), false).await
    }

    /// Starts the delay on the chain, at the owner's cost where this wallet has no ETH.
    async fn request_close(&self, channel: &PayerChannel) -> Result<Closed, SettlementError> {
        if self.funding.lacks_eth() {
            let asked = self.funding.request_close_sponsored(channel).await;
            asked.map_err(|why| not_sponsored(channel, why))?;
        } else {
            self.funding.request_close(channel).await?;
        }
        self.funding.promised().forget(channel.id).await;
        let withdrawable_secs = self.chain.channel(&channel.id).and_then(|view| view.close_at_secs);
        Ok(Closed::Requested { withdrawable_secs })
    }

    async fn enforce_promises(&self) {
        each(self.funding.promised().all(), |(id, word)| self.enforce(id, word)).await;
    }

    /// Forgets a promise that the chain shows kept, and has for a while; in place of a broken one the chain is asked.
    async fn enforce(&self, id: ChannelId, word: CloseWord) {
        let Some(channel) = self.channels.get(id) else {
            return self.funding.promised().forget(id).await;
        };
        // The word is kept for when the settings lead there again.
        if channel.is_elsewhere {
            return;
        }
        // The owner said so, and the chain as well.
        if let Some(round) = word.round.filter(|round| self.round(id) > Some(*round)) {
            self.funding.closed_for_us(channel.config, round).await;
        }
        let is_kept =
            self.funding.promised().look(&self.chain, channel.config, channel.holds_deposit(), word);
        if is_kept.await
            || close_promises::lasts(word.until_secs, clock::now_secs(), self.policy.close_promise_secs)
        {
            return;
        }
        let owner = channel.config.payee;
        match self.request_close(&channel).await {
            Ok(_) => tracing::warn!(%owner, "an owner did not close as promised; the chain was asked"),
            Err(error) => tracing::warn!(%owner, %error, "a promised close was not requested yet"),
        }
    }

    /// Tells whether a delay that ends `at` is over, by this machine's clock or the chain's: the chain alone decides.
    fn is_over(&self, at: u64) -> bool {
        at <= clock::now_secs() || chain_view::time_secs(&self.chain).is_some_and(|now_secs| at <= now_secs)
    }

    /// Takes a deposit back whose delay is over, at the owner's cost where this wallet has no ETH.
    async fn withdraw(&self, channel: &PayerChannel) -> Result<(), SettlementError> {
        if self.funding.lacks_eth() {
            let asked = self.funding.withdraw_sponsored(channel).await;
            return asked.map_err(|why| not_sponsored(channel, why));
        }
        self.chain.withdraw(channel.config).await?;
        Ok(())
    }

    /// Takes deposits back whose delay is over.
    async fn withdraw_due(&self) {
        let mut due = self.channels.all();
        due.retain(|channel| channel.close_at_secs.is_some_and(|at| self.is_over(at)));
        each(due, |channel| self.try_to_withdraw(channel)).await;
    }

    async fn try_to_withdraw(&self, channel: PayerChannel) {
        if let Err(error) = self.withdraw(&channel).await {
            tracing::warn!(owner = %channel.config.payee, %error, "a deposit was not withdrawn yet");
        }
    }

    /// Channels whose rest is to be had back now, each with the way. What nobody but the chain is left to ask for is
    /// asked for each time, until the chain shows the request.
    fn unused(&self) -> Vec<(PayerChannel, Way)> {
        let block_secs = chain_view::time_secs(&self.chain).filter(|_| status::has_public_head(&self.chain));
        let now_secs = shown::sure_secs(clock::now_secs(), block_secs);
        let Some(gas) = chain_view::gas(&self.chain, self.policy.gas_price_factor_max) else {
            return Vec::new();
        };
        let mut asked = self.asked_secs.lock();
        let mut unused = Vec::new();
        for channel in self.channels.all() {
            let way = way_back(&channel, &self.policy, gas.of(1), now_secs);
            let promised = self.funding.promised().until(channel.id, self.round(channel.id));
            let Some(way) = way.filter(|_| promised.is_none()) else { continue };
            let is_due =
                asked.get(&channel.id).is_none_or(|at| now_secs.saturating_sub(*at) >= ASK_AGAIN_SECS);
            if way == Way::Owner && !is_due {
                continue;
            }
            asked.insert(channel.id, now_secs);
            unused.push((channel, way));
        }
        unused
    }

    async fn get_back(&self, channel: PayerChannel, way: Way) {
        let turn = self.funding.try_turn(channel.config.payee);
        if turn.is_none() && way != Way::Chain {
            // Somebody fills a channel with the owner, or asks for a close already.
            self.asked_secs.lock().remove(&channel.id);
            return;
        }
        let word = if way == Way::Chain { CloseReply::Nothing } else { self.ask_to_close(&channel).await };
        let done = match word {
            CloseReply::Promised => {
                self.note_promise(channel.id).await;
                Ok(())
            }
            CloseReply::Signed(close) => match self.bring_or_ask(&channel, close).await {
                Err(_) if way == Way::OwnerThenChain => self.request_close(&channel).await.map(drop),
                brought => brought.map(drop),
            },
            CloseReply::Busy(_) | CloseReply::Nothing if way == Way::Owner => Ok(()),
            CloseReply::Busy(_) | CloseReply::Nothing => self.request_close(&channel).await.map(drop),
        };
        if let Err(error) = done {
            tracing::warn!(owner = %channel.config.payee, %error, "a channel was not closed yet");
        }
    }
}

fn not_sponsored(channel: &PayerChannel, why: String) -> SettlementError {
    SettlementError::NotSponsored { owner: channel.config.payee, why }
}

/// Tells whether a signed close that was not brought closes nothing. What else keeps it from the chain keeps any request from it.
const fn is_void(error: &ChainError) -> bool {
    matches!(error, ChainError::Reverted { .. } | ChainError::Failed { .. } | ChainError::Invalid(_))
}

/// The way to get the rest of a deposit back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The owner is asked, and nothing is done when it does not answer.
    Owner,
    /// The owner is asked, and when it does not answer the chain.
    OwnerThenChain,
    /// The owner is not believed any more.
    Chain,
}

/// The way to the rest of a deposit that is not used any more, if that is worth the gas. A call that stays undecided
/// keeps the owner from being asked for a while, and no longer: the delay of the channel is there for it to claim.
fn way_back(channel: &PayerChannel, policy: &Policy, gas: Usdc, now_secs: u64) -> Option<Way> {
    let paid = channel.state.acknowledged.max(channel.claimed);
    let left = channel.state.deposited.saturating_sub(paid);
    if left <= gas || channel.close_at_secs.is_some() || channel.is_elsewhere {
        return None;
    }
    let idle_secs = now_secs.saturating_sub(channel.last_used_secs);
    match () {
        () if channel.state.stopped => Some(Way::Chain),
        () if idle_secs >= policy.idle_close_secs.saturating_add(policy.close_answer_secs) => {
            Some(Way::OwnerThenChain)
        }
        () if idle_secs >= policy.idle_close_secs && channel.state.in_flight.is_zero() => Some(Way::Owner),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use farthing_ledger::Cause;
    use farthing_protocol::{Address, ChannelConfig, channel::PayerState};

    use super::*;

    const fn usdc(micros: u64) -> Usdc {
        Usdc::from_micros(micros)
    }

    fn unused(deposited: u64, acknowledged: u64) -> PayerChannel {
        PayerChannel {
            id: ChannelId::NONE,
            config: ChannelConfig {
                payer: Address::ZERO,
                payee: Address::ZERO,
                token: Address::ZERO,
                signer: Address::ZERO,
                close_delay_secs: 0,
                salt: [0; 32],
            },
            is_elsewhere: false,
            state: PayerState {
                deposited: usdc(deposited),
                acknowledged: usdc(acknowledged),
                ..PayerState::default()
            },
            forgotten: Usdc::ZERO,
            forgettable: Usdc::ZERO,
            signed_before: Usdc::ZERO,
            forgotten_cause: Cause::Crash,
            open_at_start: HashSet::new(),
            is_settled: false,
            is_compared: true,
            seen_total: Usdc::ZERO,
            receipted: Usdc::ZERO,
            claimed: Usdc::ZERO,
            round: 0,
            close_at_secs: None,
            last_deposit: Usdc::ZERO,
            filled_at: None,
            last_used_secs: 1_000,
        }
    }

    #[test]
    fn the_rest_of_a_deposit_comes_back_by_the_owner_then_by_the_chain_whatever_stays_undecided() {
        let policy = Policy { idle_close_secs: 10, close_answer_secs: 5, ..Policy::default() };
        let way = |channel: &PayerChannel, idle: u64| way_back(channel, &policy, usdc(3), 1_000 + idle);
        let idle = unused(10, 2);
        let mut undecided = unused(10, 2);
        undecided.state.in_flight = usdc(2);
        let mut stopped = undecided.clone();
        stopped.state.stopped = true;
        for (secs, of_idle, of_undecided) in [
            (0, None, None),
            (9, None, None),
            (10, Some(Way::Owner), None),
            (14, Some(Way::Owner), None),
            (15, Some(Way::OwnerThenChain), Some(Way::OwnerThenChain)),
            (1_000_000, Some(Way::OwnerThenChain), Some(Way::OwnerThenChain)),
        ] {
            assert_eq!((way(&idle, secs), way(&undecided, secs)), (of_idle, of_undecided), "{secs} s");
            assert_eq!(way(&stopped, secs), Some(Way::Chain), "{secs} s");
        }
        // Nothing that the chain shows as asked for or over, nothing below its gas, and nothing elsewhere is asked for.
        for channel in [&idle, &undecided, &stopped] {
            let closing = PayerChannel { close_at_secs: Some(1), ..channel.clone() };
            assert_eq!(way(&closing, 100), None);
            assert_eq!(way(&PayerChannel { is_elsewhere: true, ..channel.clone() }, 100), None);
            let mut claimed = PayerChannel { claimed: usdc(7), ..channel.clone() };
            assert_eq!(way(&claimed, 100), None, "3 are left");
            claimed.claimed = usdc(6);
            assert!(way(&claimed, 100).is_some(), "4 are left");
        }
    }
}
