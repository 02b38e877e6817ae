//! A payment channel, from this node's side.

use farthing_os::clock;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AddressText, ChannelIdText, ChannelRole, UsdcText};

/// A payment channel, from this node's side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Channel {
    pub id: ChannelIdText,
    pub role: ChannelRole,
    /// The other side's wallet.
    pub peer: AddressText,
    pub state: ChannelState,
    /// Until when the owner has promised to close it, or from when on the rest can be withdrawn: seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_secs: Option<u64>,
    /// `true` if this node buys nothing from the owner, also after the channel was closed, until the user resumes the channel.
    #[serde(default)]
    pub stopped: bool,
    pub deposited: UsdcText,
    /// Charged so far.
    pub spent: UsdcText,
    /// Promised by the payer, or held by the owner.
    pub signed: UsdcText,
    /// Paid out on chain.
    pub claimed: UsdcText,
}

/// A payer's signed request to close a channel. Anybody can send it to the contract, and pays the gas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SignedCloseRequest {
    pub channel: ChannelIdText,
    pub chain_id: u64,
    /// The address that both transactions are sent to, without ETH.
    pub contract: AddressText,
    /// `data` of the transaction that starts the channel's delay, `0x…`.
    pub request_data: String,
    /// The last second, since the Unix epoch, in which the contract takes `request_data`. A channel that is emptied before does
    /// not take it either.
    pub deadline_secs: u64,
    /// The delay in which the owner may still claim.
    pub close_delay_secs: u64,
    /// `data` of the transaction that returns the rest to the payer after the delay, `0x…`.
    pub withdraw_data: String,
}

/// The state of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelState {
    Open,
    /// The owner's books contradict its receipts: nothing more is promised to it.
    Stopped,
    /// The payer takes back what is left.
    Closing,
    /// The owner has promised the payer to close it.
    ClosePromised,
    /// This node asked the chain; the rest comes back after a delay.
    CloseRequested,
    Closed,
    /// Closed just now: the delay was over.
    Withdrawn,
    /// Closed just now: this node brought its owner's signed close to the chain.
    CloseBrought,
}

impl ChannelState {
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Closed | Self::Withdrawn | Self::CloseBrought)
    }

    #[must_use]
    pub const fn is_closing(self) -> bool {
        matches!(self, Self::Closing | Self::ClosePromised | Self::CloseRequested)
    }
}

impl Channel {
    /// Its state for people.
    pub fn state_in_words(&self) -> String {
        let until = self.until_secs.map(clock::timestamp);
        match (self.state, until) {
            (ChannelState::Closed, _) if self.stopped => {
                "closed; to buy from the owner again, use `farthing channel resume`".to_owned()
            }
            (ChannelState::Open, _) => "open".to_owned(),
            (ChannelState::Stopped, _) => "stopped: the owner's ledger does not match".to_owned(),
            (ChannelState::Closing, _) => "closing".to_owned(),
            (ChannelState::ClosePromised, until) => format!(
                "closing: the owner promised to close it by {}; if not, this node closes it on the chain. To close it \
                 now, use `farthing channel close --force`",
                until.unwrap_or_default()
            ),
            (ChannelState::CloseRequested, until) => format!(
                "closing on the chain: the rest of the deposit comes back automatically after {}",
                until.as_deref().unwrap_or("the delay")
            ),
            (ChannelState::Closed, _) => "closed".to_owned(),
            (ChannelState::Withdrawn, _) => {
                "closed: the delay is over, and the rest of the deposit is in the wallet".to_owned()
            }
            (ChannelState::CloseBrought, _) => {
                "closed: the owner signed the close, and the rest of the deposit is in the wallet".to_owned()
            }
        }
    }
}
