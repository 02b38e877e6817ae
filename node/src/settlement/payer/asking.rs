//! Asking an owner to close a channel.

use std::time::Duration;

use farthing_network::CallFailure;
use farthing_protocol::{
    CallMessage, CallReply, ChannelId, CloseConsent, RefusalCode, SignedClose, Usdc, call::ChannelSync,
};
use tokio::time::Instant;

use super::Payer;
use crate::consumer::{channels::PayerChannel, evidence::newest_word};

const CLOSE_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// An owner that has just started is not found at once.
const FOUND_WITHIN: Duration = Duration::from_secs(5);
const ASK_BUSY_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// An owner's reply to a request to close.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CloseReply {
    Promised,
    /// It does not close at its own cost.
    Signed(SignedClose),
    /// It asks to wait, for that reason.
    Busy(String),
    Nothing,
}

impl CloseReply {
    /// The reply after one more question that brought no close. An owner that was not reached, or did not answer, may ask to wait
    /// still; one that answers otherwise does not.
    fn after(self, asked: Result<CallReply, CallFailure>) -> Self {
        match asked {
            Ok(CallReply::Refused(refusal)) if refusal.code == RefusalCode::Busy => {
                Self::Busy(refusal.detail)
            }
            Ok(_) => Self::Nothing,
            Err(_) => self,
        }
    }
}

impl Payer {
    /// Asks the owner, again while a call runs on the channel, by who has the turn with it. That it is asked is noted before the
    /// question leaves, and forgotten where it surely closes nothing for it. A signed close that takes more than this node owes is
    /// no answer.
    pub(super) async fn ask_to_close(&self, channel: &PayerChannel) -> CloseReply {
        let note = self.funding.asks_to_close(channel).await;
        let mut may_close = false;
        let reply = self.question(channel, &mut may_close).await;
        if let Some(note) = note.filter(|_| !may_close) {
            self.funding.never_asked(note).await;
        }
        reply
    }

    async fn question(&self, channel: &PayerChannel, may_close: &mut bool) -> CloseReply {
        let word = newest_word(&self.ledger, &self.signer, channel.id);
        let (question, owner) = (CallMessage::Close(channel.id, word), channel.config.payee);
        let began = Instant::now();
        let until = began + CLOSE_ANSWER_TIMEOUT;
        let mut last = CloseReply::Nothing;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let acknowledged = self.acknowledged(channel.id);
            let asked = self.network.call(owner, question.clone(), bytes::Bytes::new(), left).await;
            let asked = asked.map(|(reply, ..)| reply);
            *may_close |= may_be_closed_for(&asked);
            let is_worth_asking_again = match &asked {
                Ok(CallReply::Channel(books)) => match books.close {
                    None => return CloseReply::Promised,
                    Some(close) if self.is_fair(channel, books, &close).await => {
                        return CloseReply::Signed(close);
                    }
                    Some(close) if self.is_ahead(acknowledged, &close.consent) => true,
                    Some(close) => {
                        tracing::warn!(%owner, "an owner signed a close that is void, or takes more than it is owed");
                        self.is_behind(channel.id, &close.consent)
                    }
                },
                Ok(CallReply::Refused(refusal)) => {
                    refusal.code == RefusalCode::Busy && !self.has_ended(channel.id)
                }
                Ok(_) => false,
                // The way by the chain takes a day.
                Err(_) => began.elapsed() < FOUND_WITHIN,
            };
            last = last.after(asked);
            if !is_worth_asking_again || left <= ASK_BUSY_AGAIN_AFTER {
                return last;
            }
            tokio::time::sleep(ASK_BUSY_AGAIN_AFTER).await;
        }
    }

    /// Tells whether an owner signed with less of the chain before it than this node has read, as right after a deposit: it signs
    /// anew once it has read that.
    fn is_behind(&self, channel: ChannelId, consent: &CloseConsent) -> bool {
        let view = self.chain.channel(&channel);
        view.is_some_and(|view| (consent.round, consent.deposited) < (view.round, view.deposited))
    }

    /// Tells whether an owner signed for calls that this node promised, and whose receipts were on their way when it was asked:
    /// they are known soon.
    fn is_ahead(&self, acknowledged: Usdc, consent: &CloseConsent) -> bool {
        let signed = self.channels.get(consent.channel).map_or(Usdc::ZERO, |now| now.state.signed);
        acknowledged < consent.amount && consent.amount <= signed
    }

    fn acknowledged(&self, channel: ChannelId) -> Usdc {
        self.channels.get(channel).map_or(Usdc::ZERO, |now| now.state.acknowledged)
    }

    /// Tells whether a close takes no more than receipts explain, and beyond that what this wallet's own signature shows
    /// to be paid out: an endpoint says alone what was, and may say it for the owner.
    async fn is_fair(&self, channel: &PayerChannel, books: &ChannelSync, close: &SignedClose) -> bool {
        let SignedClose { consent, signature } = close;
        if self.accounts.prove_carried(channel.config.payee, channel.id, Some(books)).await.is_err() {
            return false;
        }
        let acknowledged = self.acknowledged(channel.id);
        let proven = self.accounts.proven(channel.id, books).unwrap_or_default();
        let owed = acknowledged.max(channel.claimed.min(proven));
        let signed = consent.verify(self.signer.domain(), *signature, channel.config.payee);
        // The contract takes the word for the channel as it is, and a void one closes nothing.
        let view = self.chain.channel(&channel.id);
        let is_of_now =
            view.is_some_and(|view| (view.deposited, view.round) == (consent.deposited, consent.round));
        let now_secs = self.chain.head().borrow().as_ref().map_or(0, |head| head.timestamp_secs);
        consent.channel == channel.id
            && consent.amount <= owed
            && is_of_now
            && now_secs <= consent.deadline_secs
            && signed.is_ok()
    }
}

/// Tells whether an owner may close the channel for a question that ended like this. One that is busy has not taken it on.
fn may_be_closed_for(asked: &Result<CallReply, CallFailure>) -> bool {
    match asked {
        Ok(CallReply::Refused(refusal)) => refusal.code != RefusalCode::Busy,
        Ok(_) | Err(CallFailure::Unknown(_)) => true,
        Err(CallFailure::NeverStarted(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use farthing_network::{Interrupted, NotStarted};
    use farthing_protocol::Refusal;

    use super::*;

    #[test]
    fn an_owner_that_is_busy_or_was_not_reached_closes_nothing_for_whoever_asked() {
        let refused = |code| Ok(CallReply::Refused(Refusal::new(code, "")));
        for (asked, may_close) in [
            (refused(RefusalCode::Busy), false),
            (Err(CallFailure::NeverStarted(NotStarted::LocalLimit)), false),
            (refused(RefusalCode::Unavailable), true),
            (Err(CallFailure::Unknown(Interrupted::Deadline)), true),
        ] {
            assert_eq!(may_be_closed_for(&asked), may_close, "{asked:?}");
        }
    }

    #[test]
    fn an_owner_that_refuses_for_another_reason_does_not_ask_to_wait_any_more() {
        let refused = |code, why: &str| Ok(CallReply::Refused(Refusal::new(code, why)));
        let busy = |why: &str| CloseReply::Busy(why.to_owned());
        let first = CloseReply::Nothing.after(refused(RefusalCode::Busy, "a call runs"));
        assert_eq!(first, busy("a call runs"));
        let second = first.after(refused(RefusalCode::Busy, "many wait"));
        assert_eq!(second, busy("many wait"));
        let lost = second.after(Err(CallFailure::Unknown(Interrupted::Deadline)));
        assert_eq!(lost, busy("many wait"), "the last question has little time");
        assert_eq!(lost.after(refused(RefusalCode::UnknownChannel, "")), CloseReply::Nothing);
    }
}
