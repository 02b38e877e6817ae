//! Ends of channels: closes that this node asks for, and what is known of owners that close of their own accord.
//!
//! That this node asks is noted before its word leaves, so that no crash and no lost answer makes an owner that did as it was
//! asked look like one that was not. One note excuses one close: it is about one round of one channel. Alone it frees no place
//! among the money at rest.

use std::collections::BTreeSet;

use farthing_chain::{ChainError, TxReport};
use farthing_ledger::LedgerError;
use farthing_protocol::{Address, ChannelConfig, ChannelId, CloseRequest, Signature};
use farthing_shared::keyed_mutex::KeyedGuard;

use super::{Funding, FundingInner};
use crate::consumer::{channels::PayerChannel, refills::AskNote, rest::RestingPlace, rest_sum::RestSum};

/// The time for which a signed request to close counts.
const REQUEST_SECS: u64 = 24 * 3_600;

/// This wallet's request to close a channel, for anybody to bring to the chain.
#[derive(Clone, Copy, Debug)]
pub struct SignedRequest {
    pub config: ChannelConfig,
    pub request: CloseRequest,
    pub signature: Signature,
}

/// An owner that closed a channel although this node did not ask, and whose deposits of the last day count yet.
#[derive(Clone, Copy, Debug)]
pub struct ClosedUnasked {
    pub owner: Address,
    /// The sums that count with the owner.
    pub resting: RestSum,
}

/// A signed close on its way to the chain. Dropped, it no longer is.
#[derive(Debug)]
#[must_use]
pub struct BeingClosed<'f> {
    funding: &'f FundingInner,
    channel: ChannelId,
}

impl Drop for BeingClosed<'_> {
    fn drop(&mut self) {
        self.funding.being_closed.lock().remove(&self.channel);
    }
}

impl Funding {
    /// Waits until no deposit into a channel with an owner is being made, and no other close of one is asked for or brought. None
    /// begins until the turn is over: what an owner signs is void once more is deposited.
    pub async fn turn(&self, owner: Address) -> KeyedGuard {
        self.0.one_at_a_time.take(owner).await
    }

    /// Takes the same turn where it is free.
    pub fn try_turn(&self, owner: Address) -> Option<KeyedGuard> {
        self.0.one_at_a_time.try_take(owner)
    }

    /// Has calls and deposits wait for a signed close until the guard is dropped: the chain shows the channel as emptied before
    /// whoever brings the close has noted that its owner serves nothing there yet.
    pub fn begin_close(&self, channel: ChannelId) -> BeingClosed<'_> {
        self.0.being_closed.lock().insert(channel);
        BeingClosed { funding: &self.0, channel }
    }

    /// Takes note that this node asks for a close of a channel as it is now: that close does not count to its owner. `None`
    /// when that is noted already, or nothing is left to close.
    pub async fn asks_to_close(&self, channel: &PayerChannel) -> Option<AskNote> {
        let (owner, round) = (channel.config.payee, self.round(channel.id));
        if self.0.chain.channel(&channel.id).is_some_and(|view| view.deposited <= view.claimed) {
            return None;
        }
        self.0.refills.ask(owner, channel.id, round).await.unwrap_or_else(|error| {
            tracing::warn!(%owner, %error, "the request to an owner to close could not be stored");
            None
        })
    }

    /// Takes a note back whose question never left: an owner that closes now was not asked.
    pub async fn never_asked(&self, note: AskNote) {
        if let Err(error) = self.0.refills.unask(note).await {
            tracing::warn!(%error, "the failed request to an owner to close could not be stored");
        }
    }

    /// Takes note that an owner refuses a call because the channel is being closed. Where that is open, and this node asked for
    /// the close and knows no answer, the answer was lost.
    pub fn refused_as_closing(&self, id: ChannelId) {
        if self.with_lost_answer(id).is_some() {
            self.0.lost_answers.lock().insert(id);
        }
    }

    /// Returns the channels whose owners are to be asked again to close them: once each, or until the chain shows a close that the
    /// owner signed. A node that died may not have brought it.
    pub fn take_lost_answers(&self) -> Vec<PayerChannel> {
        let mut lost = std::mem::take(&mut *self.0.lost_answers.lock());
        let signed = self.0.promised.all().into_iter().filter(|(_, word)| word.is_signed);
        lost.extend(signed.map(|(id, _)| id));
        lost.into_iter().filter_map(|id| self.with_lost_answer(id)).collect()
    }

    pub(super) fn with_lost_answer(&self, id: ChannelId) -> Option<PayerChannel> {
        let channel = self.0.channels.get(id)?;
        let round = self.round(id);
        let is_open = channel.holds_deposit() && channel.close_at_secs.is_none();
        let is_lost = is_open
            && self.0.promised.until(id, Some(round)).is_none()
            && self.0.refills.is_asked(channel.config.payee, id, round).unwrap_or_default();
        is_lost.then_some(channel)
    }

    /// Asks the chain for the deposit back.
    ///
    /// # Errors
    /// When the chain does not take the request, or [`ChainError::Invalid`] where the settings do not lead to the channel.
    pub async fn request_close(&self, channel: &PayerChannel) -> Result<TxReport, ChainError> {
        self.require_here(channel)?;
        self.asks_to_close(channel).await;
        self.0.chain.request_close(channel.config).await
    }

    /// Signs the request to close a channel. It counts for a day, and until the channel is emptied.
    ///
    /// # Errors
    /// [`ChainError::Invalid`] where the settings do not lead to the channel.
    pub async fn sign_request(&self, channel: &PayerChannel) -> Result<SignedRequest, ChainError> {
        self.require_here(channel)?;
        self.asks_to_close(channel).await;
        let request = CloseRequest {
            channel: channel.id,
            round: self.round(channel.id),
            deadline_secs: self.time_secs().saturating_add(REQUEST_SECS),
        };
        let signature = self.0.signer.sign_close_request(&request);
        Ok(SignedRequest { config: channel.config, request, signature })
    }

    fn require_here(&self, channel: &PayerChannel) -> Result<(), ChainError> {
        // In this contract the same terms are another channel, which the next call may need.
        if channel.is_elsewhere {
            let place = self.0.escrows.find(channel.id, &channel.config);
            let back = self.0.escrows.back_to(place, channel.config.token);
            return Err(ChainError::Invalid(format!(
                "the channel is of another chain, contract or token than the settings name: set {back}, restart the node, \
                 and close it then"
            )));
        }
        Ok(())
    }

    /// Lists the owners that closed a channel within a day of a deposit, although this node did not ask.
    pub fn closed_unasked(&self) -> Result<Vec<ClosedUnasked>, LedgerError> {
        let mut owners = BTreeSet::new();
        for (RestingPlace { owner, channel }, held) in self.0.at_rest.returned() {
            if !self.0.refills.is_asked(owner, channel, held.round)? {
                owners.insert(owner);
            }
        }
        let with_owners = self.0.at_rest.with_owners();
        let resting = |owner: Address| with_owners.get(&owner).copied().unwrap_or_default();
        Ok(owners.into_iter().map(|owner| ClosedUnasked { owner, resting: resting(owner) }).collect())
    }

    /// Frees the places of deposits up to a round of a channel that its owner closed because this node asked for it, as the
    /// chain shows: of those that the token has taken. Others can be brought yet. An endpoint alone makes no node ask.
    pub async fn closed_for_us(&self, config: ChannelConfig, round: u32) {
        let at = RestingPlace { owner: config.payee, channel: config.id(&self.0.chain.domain()) };
        let mut is_freed = false;
        for held in self.0.at_rest.up_to(at, round) {
            let decided = (held.round, held.deposited);
            if self.0.chain.is_deposit_taken(config, decided).await.unwrap_or_default() {
                self.0.at_rest.settle(at, held);
                is_freed = true;
            }
        }
        if is_freed {
            self.store_again(at).await;
        }
    }
}
