//! Promises whose end is not known.
//!
//! A promise left open by a lost connection or a crash is asked for until the owner answers: charged with a receipt, or
//! never served (invariant C4). One on a channel of another contract or chain than the settings name waits until they
//! are set back.

use farthing_ledger::{LedgerError, Uncharged};
use farthing_protocol::{Address, CallId, resolution::End};

use super::{CallCloser, DEARER_BEFORE};
use crate::consumer::{
    Slot, Timing, Turn,
    accounts::Attempt,
    answer::{self, ExpectedAnswer},
    exchange::{ASK_TIMEOUT, OwnerWord},
    open_verdict::OpenVerdict,
    pauses::{ASK_EVERY_FIRST, ASK_EVERY_MAX},
};

impl CallCloser {
    /// Takes up what an earlier run left open, and starts to compare the books of every channel.
    pub fn recover(&self) -> Result<usize, LedgerError> {
        let mut open = self.0.ledger.unresolved()?;
        // No owner knows of a transfer; the chain is asked.
        open.retain(|promise| !promise.is_by_transfer());
        self.0.accounts.restore(&open)?;
        self.0.books.compare_all_books();
        for promise in open.iter().filter(|promise| !self.0.books.is_signed_elsewhere(promise.channel())) {
            let call_id = promise.request.call_id;
            self.resolve_at(promise.owner, call_id, self.0.turns.slot(call_id));
        }
        Ok(open.len())
    }

    /// Resolves an undecided call in the background. It counts as one before anybody else may learn its end.
    pub(super) fn resolve_later(&self, attempt: &Attempt, turn: Turn, unjudged: Option<OpenVerdict>) {
        let ExpectedAnswer { owner, call_id, price, .. } = attempt.expected;
        self.0.accounts.undecided().note(owner, call_id, price, unjudged);
        let slot = Turn::mutex(&turn).clone();
        drop(turn);
        self.resolve_at(owner, call_id, slot);
    }

    fn resolve_at(&self, owner: Address, call_id: CallId, slot: Slot) {
        let closer = self.clone();
        self.0.tasks.spawn(async move { closer.resolve(owner, call_id, slot).await });
    }

    /// Asks the owner what became of a call until it is known, giving others their turn in between.
    async fn resolve(&self, owner: Address, call_id: CallId, slot: Slot) {
        let mut pause = ASK_EVERY_FIRST;
        while !self.0.stopping.is_cancelled() {
            let place = tokio::select! {
                place = self.0.places.of_question(owner) => place,
                () = self.0.stopping.cancelled() => return,
            };
            let mut turn = slot.clone().lock_owned().await;
            turn.doubt(self.0.client.uptime());
            let promise = match self.0.ledger.promise_of(call_id) {
                Ok(Some(promise)) => promise,
                Ok(None) => return,
                Err(error) => {
                    tracing::error!(%call_id, %error, "an undecided call cannot be read");
                    return;
                }
            };
            let Some(turn) = self.resolve_once(Attempt::of(promise), turn).await else { return };
            drop((turn, place));
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.0.stopping.cancelled() => return,
            }
            pause = (pause * 2).min(ASK_EVERY_MAX);
        }
    }

    /// One question. The turn comes back when the end is still unknown.
    async fn resolve_once(&self, attempt: Attempt, turn: Turn) -> Option<Turn> {
        let (owner, call_id) = (attempt.expected.owner, attempt.call_id());
        if self.0.books.compare_books_of(&attempt).await.is_err() {
            return Some(turn);
        }
        let (receipt, signature, brought) = match self.0.client.ask(owner, call_id, &turn, ASK_TIMEOUT).await
        {
            (End::Receipt, OwnerWord::Response(response, body)) => {
                (response.receipt, response.signature, Some((response, body)))
            }
            (End::Receipt, OwnerWord::Receipt(receipt, signature)) => (receipt, signature, None),
            (End::NotCharged, word) => {
                let uncharged = match &word {
                    OwnerWord::Refused(refusal) => Uncharged::refused(refusal.code),
                    word => word.last_known().to_string().into(),
                };
                tracing::info!(%call_id, reason = uncharged.reason, "an undecided call was not charged");
                if let Some(unjudged) = self.0.accounts.undecided().take_unjudged(owner, call_id) {
                    self.0.observer.observe_uncharged(&attempt.promise, unjudged);
                }
                self.release(&attempt, uncharged, &turn).await;
                return None;
            }
            (End::Open | End::Receipt, _) => return Some(turn),
        };
        let domain = self.domain_of(&attempt, receipt, signature);
        match answer::verify_receipt(&attempt.expected, &domain, receipt, signature) {
            Ok(receipt) => {
                tracing::info!(%call_id, charged = %receipt.charged, "an undecided call has its receipt");
                if let Some(unjudged) = self.0.accounts.undecided().take_unjudged(owner, call_id) {
                    let answer = brought.filter(|(response, body)| {
                        answer::verify(&attempt.expected, &domain, response, body).is_ok()
                    });
                    self.0.observer.observe_late(&attempt.promise, &receipt, answer, unjudged);
                }
                if let Err(error) = self.acknowledge(&attempt, receipt, 0, &Timing::default(), turn) {
                    tracing::error!(%call_id, %error, "the owner's books do not match");
                }
                None
            }
            Err(mismatch) if self.is_of_dearer_promise(&attempt, &mismatch, &receipt) => {
                tracing::warn!(%call_id, charged = %receipt.charged, DEARER_BEFORE);
                self.release(&attempt, DEARER_BEFORE, &turn).await;
                None
            }
            Err(mismatch) => {
                tracing::error!(%call_id, %mismatch, "the owner's receipt is not acceptable");
                // Once: the owner is asked again, and may say the same each time.
                if let Some(channel) = self.channel_of(&attempt).filter(|channel| !channel.state.stopped) {
                    self.0.books.stop_channel(channel.id).await;
                }
                Some(turn)
            }
        }
    }
}
