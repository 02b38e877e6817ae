//! The names that nodes have for wallets and channels, in the form that the chain has for them.

use alloy::primitives::{Address, B256};
use farthing_values::ChannelId;

/// The account of a wallet or a contract.
#[must_use]
pub fn account(address: farthing_values::Address) -> Address {
    Address::from(*address.as_bytes())
}

/// The name of a channel in the escrow.
#[must_use]
pub fn slot_id(channel: ChannelId) -> B256 {
    B256::from(*channel.as_bytes())
}
