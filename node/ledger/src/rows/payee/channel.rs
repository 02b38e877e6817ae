//! A channel that this node is paid on, as told.

use farthing_values::{ChannelConfig, ChannelId, Signature, Usdc, channel::PayeeState};

/// The chain's view of a channel whose payee this node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayeeChannelFacts {
    pub id: ChannelId,
    pub config: ChannelConfig,
    /// Confirmed. It falls when the payer withdraws.
    pub deposited: Usdc,
    /// Paid out. It never falls.
    pub claimed: Usdc,
    /// The payer asked to close.
    pub closing: bool,
}

/// A channel with the ledger's own part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayeeChannelRow {
    pub id: ChannelId,
    pub config: ChannelConfig,
    pub deposited: Usdc,
    pub claimed: Usdc,
    pub closing: bool,
    /// The highest voucher, or what was paid out on a higher one that is not in this ledger.
    pub best: Usdc,
    /// The signature on `best`, where that is a voucher of this ledger.
    pub best_signature: Option<Signature>,
    /// Everything charged.
    pub spent: Usdc,
    /// The part of `spent` that no call of this ledger explains.
    pub opening: Usdc,
    /// The number of changes of `opening`: of two rows, the one with the higher number tells of the later one.
    pub opening_version: u64,
    pub ending: Ending,
    /// The amount that the payer withdrew although it was charged, as far as it is booked.
    pub lost: Usdc,
    /// The signed close that was brought, and whose words close the channel again where a block takes that back.
    pub brought: Option<Ending>,
}

/// The duty that this node has taken on towards the end of a channel. What one reading of the chain shows never ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    #[default]
    None,
    /// This node closes it in this round, as far as the chain was read when it took that on: what is filled later is no
    /// part of it. `None` in ledgers of before.
    Closes { round: Option<u32> },
    /// This node has signed a close of this round that counts until then, on the chain's clock, for whoever brings it.
    SignedAway { until_secs: u64, round: u32 },
}

impl PayeeChannelRow {
    /// The channel at rest, as the rules of acceptance see it.
    pub fn state(&self) -> PayeeState {
        PayeeState {
            deposited: self.deposited,
            claimed: self.claimed,
            best: self.best,
            spent: self.spent,
            reserved: Usdc::ZERO,
            closing: self.closing || self.ending != Ending::None,
        }
    }
}
