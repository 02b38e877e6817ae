//! An owner that counts more than this node does: the calls that explain it are found, or nothing more is promised.
//!
//! A call that ended as not charged, by the owner's word, may have been charged after all: a copy of it that was lost
//! arrived late. In order: the owner's total is asked for; every call that was released in doubt is asked about again,
//! until receipts explain the total; right after a start calls that a crash kept out of the ledger may explain it; what
//! stays unexplained stops the channel, which raises an alert. It has to last for that.

use std::{collections::HashMap, time::Duration};

use farthing_ledger::{PayerChannelFacts, PurchaseEnd};
use farthing_protocol::{Address, CallId, ChannelId, Usdc, resolution::Copies};
use farthing_shared::{blocking::run_blocking, chain_view::is_believed, keyed_mutex::KeyedGuard};
use parking_lot::MutexGuard;
use tokio::time::{Instant, timeout};

use super::Reconciler;
use crate::consumer::{
    BooksError, BuyError, Unseen,
    accounts::expected_of,
    answer,
    channels::PayerChannel,
    conduct::window::LostAnswer,
    exchange::{ASK_TIMEOUT, OwnerWord},
};

/// Two moments that are further apart are two lies, and not one that lasts.
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Looks at an owner that is accused, without a call: they last longer than what is believed has to.
const LOOKS: usize = 6;
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// Owners that are said to count what no call explains, by channel.
#[derive(Debug, Default)]
pub(super) struct Accusations(HashMap<ChannelId, Accusation>);

/// The first and the last time that it was said.
#[derive(Clone, Copy, Debug)]
struct Accusation {
    first: Instant,
    last: Instant,
    /// The owner said so itself, and not its chain alone.
    is_own_word: bool,
}

impl Accusations {
    /// Notes that a channel's owner is accused now, and returns for how long it was without a long pause.
    fn note(&mut self, id: ChannelId, is_own_word: bool, now: Instant) -> Duration {
        let fresh = Accusation { first: now, last: now, is_own_word };
        let accusation = self.0.entry(id).or_insert(fresh);
        if now - accusation.last > PAUSE_MAX {
            *accusation = fresh;
        }
        accusation.last = now;
        accusation.is_own_word |= is_own_word;
        now - accusation.first
    }

    /// Ends it: the books agree.
    fn end(&mut self, id: ChannelId) {
        self.0.remove(&id);
    }

    /// Ends one by the chain alone, which says so no more. An owner takes nothing back by saying nothing: one that did by
    /// turns would never be left.
    fn end_by_chain(&mut self, id: ChannelId) {
        self.0.retain(|channel, accusation| *channel != id || accusation.is_own_word);
    }
}

impl Reconciler {
    /// As [`Reconciler::heal`], before a call: an owner, or a chain's endpoint, that answers slowly holds up no caller beyond its
    /// deadline. What was begun goes on.
    ///
    /// # Errors
    /// As [`BuyError::before_promise`] says, while the books cannot be compared.
    pub async fn heal_for_a_call(&self, owner: Address, deadline: Instant) -> Result<(), BuyError> {
        let unseen = |why| BuyError::before_promise(BooksError::Unexplained(why));
        let left = deadline.saturating_duration_since(Instant::now());
        let patience = self.0.settings.owner_deadline(None).min(left);
        let Some(alone) = self.0.healing.try_take(owner) else {
            // Who heals does it for all that wait.
            let healed = timeout(patience, self.0.healing.take(owner)).await.is_ok();
            let is_explained = healed && self.0.channels.unexplained(owner).is_zero();
            return is_explained.then_some(()).ok_or_else(|| unseen(Unseen::UnderWay));
        };
        let reconciler = self.clone();
        let healing = self.0.tasks.spawn(async move { reconciler.heal_alone(owner, alone).await });
        match timeout(patience, healing).await {
            Ok(Ok(healed)) => healed.map_err(BuyError::before_promise),
            Ok(Err(_)) => Err(unseen(Unseen::Failed)),
            Err(_) => Err(unseen(Unseen::Slow)),
        }
    }

    /// Brings the books together with an owner's while this node runs.
    ///
    /// # Errors
    /// [`BooksError`] when the owner's ledger cannot be read; nothing may be promised to it then.
    pub async fn heal(&self, owner: Address) -> Result<(), BooksError> {
        let alone = self.0.healing.take(owner).await;
        self.heal_alone(owner, alone).await
    }

    async fn heal_alone(&self, owner: Address, _alone: KeyedGuard<()>) -> Result<(), BooksError> {
        let Some(channel) = self.0.channels.in_use(owner) else { return Ok(()) };
        let sync = match self.sync(owner, channel.id).await {
            Ok(sync) => sync,
            Err(silent) => return self.accuse_a_silent(owner, &channel, silent).await,
        };
        if let Some(sync) = &sync {
            self.0.accounts.book_forgotten(owner, channel.id, sync.spent).await;
        }
        // An owner without books of the channel counts nothing: what is seen is what the chain says now.
        let told = sync.as_ref().map_or(Usdc::ZERO, |sync| sync.spent);
        self.0.channels.hear(channel.id, told);
        if sync.is_some() && told < channel.seen_total {
            tracing::warn!(%owner, before = %channel.seen_total, now = %told, "an owner counts less than it did");
        }
        let unexplained = || self.0.channels.unexplained(owner);
        if unexplained().is_zero() {
            self.accused().end(channel.id);
            return Ok(());
        }
        tracing::warn!(%owner, unexplained = %unexplained(), "the owner counts more than this node; looking for the calls");
        let ledger = self.0.ledger.clone();
        let doubtful = run_blocking(move || ledger.released_in_doubt(channel.id)).await;
        let begun = Instant::now();
        for purchase in doubtful? {
            if unexplained().is_zero() {
                break;
            }
            self.take_late_receipt(purchase.call_id, begun).await;
        }
        if !unexplained().is_zero() {
            self.compare_again(owner, channel.id).await?;
        }
        if unexplained().is_zero() {
            tracing::warn!(%owner, "the ledgers agree again");
            self.accused().end(channel.id);
            return Ok(());
        }
        let is_unexplained = |total: Usdc| {
            let channel = self.0.channels.get(channel.id);
            channel.is_some_and(|channel| !channel.state.unexplained(total).is_zero())
        };
        let is_own_word = is_unexplained(told);
        let lasted = self.accused().note(channel.id, is_own_word, Instant::now());
        self.accuse(owner, channel.id, lasted, |claimed: Usdc| is_unexplained(claimed.max(told))).await
    }

    /// Stops the channel of an owner that counts what no call explains, once that has lasted and what the chain says then
    /// was paid is unexplained, too.
    async fn accuse(
        &self,
        owner: Address,
        id: ChannelId,
        lasted: Duration,
        is_unexplained: impl Fn(Usdc) -> bool + Send,
    ) -> Result<(), BooksError> {
        if !self.is_accusation_believed(id, lasted, is_unexplained).await {
            self.look_again(owner, id);
            return Err(BooksError::CallsNotMade);
        }
        let unexplained = self.0.channels.unexplained(owner);
        tracing::error!(%owner, %unexplained, "the owner counts what no call explains");
        self.stop_channel(id).await;
        Ok(())
    }

    /// An owner that says nothing is accused by the chain alone: it was paid more than all calls may have cost, and
    /// whoever waited for its word would wait for the deposit as well.
    async fn accuse_a_silent(
        &self,
        owner: Address,
        channel: &PayerChannel,
        silent: BooksError,
    ) -> Result<(), BooksError> {
        let is_overclaimed =
            |claimed| self.0.accounts.is_overclaimed(channel.id, claimed).unwrap_or_default();
        if channel.state.stopped || !is_overclaimed(channel.claimed) {
            self.accused().end_by_chain(channel.id);
            return Err(silent);
        }
        let lasted = self.accused().note(channel.id, false, Instant::now());
        self.accuse(owner, channel.id, lasted, is_overclaimed).await
    }

    /// Looks again while an owner is accused, so that whoever calls rarely learns as well whether it lasts: one task for each
    /// channel, however often its owner changes its word.
    fn look_again(&self, owner: Address, id: ChannelId) {
        let Some(alone) = self.0.looking_again.try_take(id) else { return };
        let reconciler = self.clone();
        self.until_stopped(async move {
            let _alone = alone;
            for _ in 0..LOOKS {
                tokio::time::sleep(LOOK_AGAIN_AFTER).await;
                if reconciler.heal(owner).await.is_ok() {
                    return;
                }
            }
        });
    }

    /// Tells whether what no call explains counts against an owner. It may be what its endpoint told it, or this node's told
    /// of it, also where this wallet signed as much for calls that cost nothing: it counts when it lasts. Nothing is
    /// promised until then, so that nothing is lost by it.
    async fn is_accusation_believed(
        &self,
        id: ChannelId,
        lasted: Duration,
        is_unexplained: impl Fn(Usdc) -> bool + Send,
    ) -> bool {
        let Some(channel) = self.0.channels.get(id) else { return false };
        if !is_believed(&self.0.chain, lasted) {
            return false;
        }
        let Ok(now) = self.0.chain.read_channel(channel.config).await else { return false };
        is_unexplained(now.claimed)
    }

    /// Promises nothing more on a channel, from now on and over restarts, and asks the chain for the deposit back.
    pub async fn stop_channel(&self, id: ChannelId) {
        self.0.channels.stop(id);
        let Some(channel) = self.0.channels.get(id) else { return };
        let owner = channel.config.payee;
        let stopped = PayerChannelFacts {
            id: channel.id,
            config: channel.config,
            deposited: channel.state.deposited,
            claimed: channel.claimed,
            round: None,
            stopped: true,
        };
        if let Err(error) = self.0.accounts.observe(stopped, channel.close_at_secs).await {
            tracing::error!(%owner, %error, "a stopped channel was not stored");
        }
        tracing::error!(%owner, channel = %channel.id, "the channel is stopped; this node is asking for its close");
        let funding = self.0.funding.clone();
        self.0.tasks.spawn(async move {
            if let Err(error) = funding.request_close(&channel).await {
                tracing::warn!(%error, "the close was not requested; `farthing channel close` tries again");
            }
        });
    }

    fn accused(&self) -> MutexGuard<'_, Accusations> {
        self.0.accused.lock()
    }

    /// Asks about a call that was released in doubt, books it when it was charged, and counts that against its service.
    async fn take_late_receipt(&self, call_id: CallId, begun: Instant) {
        // Who works on the call now learns its end by itself.
        let Some(_turn) = self.0.turns.try_take(call_id) else { return };
        let Ok(Some(purchase)) = self.0.ledger.purchase(call_id) else { return };
        if !matches!(purchase.end, PurchaseEnd::Released { in_doubt: true, .. }) {
            return;
        }
        let (_, word) = self.0.client.ask(purchase.owner, call_id, &Copies::default(), ASK_TIMEOUT).await;
        let (receipt, signature) = match word {
            OwnerWord::Response(response, _) => (response.receipt, response.signature),
            OwnerWord::Receipt(receipt, signature) => (receipt, signature),
            OwnerWord::Refused(_) | OwnerWord::Nothing(_) => return,
        };
        let domain = self.0.signer.domain();
        let verified = answer::verify_receipt(&expected_of(&purchase), domain, receipt, signature);
        let Ok(receipt) = verified else { return };
        let lost = LostAnswer { made: begun, known: Instant::now() };
        if !receipt.charged.is_zero() && self.0.accounts.book_late(&purchase, receipt).await {
            self.0.observer.observe_charge_after_all(&purchase, lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ChannelId = ChannelId::from_bytes([1; 32]);

    #[test]
    fn an_owner_takes_back_what_it_said_by_no_silence_and_a_chain_by_the_truth() {
        let (begun, mut accusations) = (Instant::now(), Accusations::default());
        let said = |accusations: &mut Accusations, is_own_word: bool, secs: u64| {
            accusations.note(ID, is_own_word, begun + Duration::from_secs(secs)).as_secs()
        };
        assert_eq!(said(&mut accusations, true, 0), 0);
        accusations.end_by_chain(ID);
        assert_eq!(said(&mut accusations, false, 130), 130, "it said nothing in between");
        accusations.end_by_chain(ID);
        assert_eq!(said(&mut accusations, true, 200), 200);
        accusations.end(ID);
        assert_eq!(said(&mut accusations, false, 210), 0, "the books agreed in between");
        accusations.end_by_chain(ID);
        assert_eq!(said(&mut accusations, false, 400), 0, "the chain told the truth in between");
        assert_eq!(said(&mut accusations, false, 700), 300);
        assert_eq!(said(&mut accusations, true, 1_001), 0, "after a long pause it is another lie");
    }
}
