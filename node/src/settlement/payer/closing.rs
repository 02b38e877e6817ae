//! While the chain closes a channel its owner can still claim, so an owner that lost records meanwhile is shown what it
//! is owed.

use std::time::Duration;

use farthing_os::clock;
use farthing_protocol::{CallMessage, CallReply};

use super::Payer;
use crate::consumer::{channels::PayerChannel, evidence::newest_word};

const TIMEOUT: Duration = Duration::from_secs(10);
/// So often within the delay of a channel: every three minutes of a day.
const TIMES: u64 = 500;

impl Payer {
    /// Channels whose delay runs, and whose owners were not asked lately.
    pub(super) fn closing(&self) -> Vec<PayerChannel> {
        let now_secs = clock::now_secs();
        let mut asked = self.asked_secs.lock();
        let mut closing = self.channels.all();
        closing.retain(|channel| {
            let runs = channel.close_at_secs.is_some_and(|at| !self.is_over(at));
            let pause_secs = channel.config.close_delay_secs / TIMES;
            let is_due = asked.get(&channel.id).is_none_or(|at| now_secs.saturating_sub(*at) >= pause_secs);
            let is_shown = runs && is_due && channel.state.acknowledged > channel.claimed;
            if is_shown {
                asked.insert(channel.id, now_secs);
            }
            is_shown
        });
        closing
    }

    /// Shows the owner its newest receipt. One that counts as much already does nothing with it.
    pub(super) async fn show(&self, channel: PayerChannel) {
        let (id, owner) = (channel.id, channel.config.payee);
        let Some(word) = newest_word(&self.ledger, &self.signer, id) else { return };
        let promised = word.promised;
        let question = CallMessage::Sync(id, Some(word));
        match self.network.call(owner, question, bytes::Bytes::new(), TIMEOUT).await {
            Ok((CallReply::Channel(books), ..)) if books.spent >= promised => {}
            Ok((reply, ..)) => {
                tracing::debug!(%owner, %id, ?reply, "an owner has not accepted its receipt yet");
            }
            Err(error) => tracing::debug!(%owner, %id, %error, "an owner was not shown its receipt yet"),
        }
    }
}
