//! An owner whose channel was stopped is trusted again: by this node's user alone, and once nothing lies in the channel.
//!
//! What it was paid beyond every call is booked as an adjustment by then, so this accepts the loss and hides none.

use farthing_ledger::LedgerError;
use farthing_protocol::ChannelId;

use super::Consumer;

/// The reason that a channel stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum NotResumed {
    #[error("this node does not pay on a channel {0}")]
    NoSuchChannel(ChannelId),
    #[error("the channel {0} is not stopped, so there is nothing to resume")]
    NotStopped(ChannelId),
    #[error(
        "the channel {0} is not stopped, so there is nothing to resume, but it is being closed or was closed a moment ago"
    )]
    Closing(ChannelId),
    #[error("the channel {0} still holds a deposit; take it back first with `farthing channel close`")]
    NotEmpty(ChannelId),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl NotResumed {
    /// Returns the step to take next.
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::NoSuchChannel(_) => "`farthing channel list` shows them.",
            Self::NotStopped(_) => {
                "Nothing was changed. Buy from its owner as usual: the next call uses the channel, or fills it again."
            }
            Self::Closing(_) => {
                "Nothing was changed. Calls to its owner are refused until the close is over, and each refusal says when to \
                 try again; `farthing channel list` shows the state."
            }
            Self::NotEmpty(_) => {
                "Nothing was changed. `farthing channel list` says `closed` once the deposit is back."
            }
            Self::Ledger(error) => error.next_step(),
        }
    }
}

impl Consumer {
    /// Lets the next call fill a stopped channel anew.
    ///
    /// # Errors
    /// [`NotResumed`]; nothing is changed then.
    pub async fn trust_again(&self, id: ChannelId) -> Result<(), NotResumed> {
        let (channels, ledger) = (&self.0.channels, &self.0.ledger);
        let channel = channels.get(id).ok_or(NotResumed::NoSuchChannel(id))?;
        if !channel.state.stopped {
            let closes = channel.close_at_secs.is_some() || self.0.funding.awaited_close(id).is_some();
            return Err(if closes { NotResumed::Closing(id) } else { NotResumed::NotStopped(id) });
        }
        if channel.holds_deposit() {
            return Err(NotResumed::NotEmpty(id));
        }
        ledger.resume_payer_channel(id).await?;
        channels.resume(id);
        tracing::warn!(owner = %channel.config.payee, channel = %id, "an owner is trusted again");
        Ok(())
    }
}
