//! The chain that a node settles on: the presets, and the shape of a custom entry.
//!
//! A spec is plain data. What it claims about the token's EIP-712 name is only a hint for messages: the
//! chain's own answers decide (see [`crate::ChainStatus`]).

use farthing_protocol::{Address, Usdc, limits::CLOSE_DELAY_SECS_DEFAULT};

use crate::contracts;

/// The kind of a chain: whether the money on it is real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainKind {
    /// Real USDC.
    Mainnet,
    /// A public chain whose coins are worth nothing.
    Testnet,
    /// A chain on this machine. Its blocks may rest and its clock may jump.
    Local,
}

/// In words, for people: "mainnet", "testnet", "local".
impl std::fmt::Display for ChainKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Mainnet => "mainnet",
            Self::Testnet => "testnet",
            Self::Local => "local",
        })
    }
}

/// Everything this crate needs to know about a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSpec {
    /// Short lower-case name, such as `base`.
    pub name: String,
    /// EIP-155. An endpoint that answers another id is never used.
    pub chain_id: u64,
    pub kind: ChainKind,
    /// JSON-RPC endpoints over HTTP(S) in order of preference. They may contain access keys, so they are
    /// shown by host only.
    pub rpc_urls: Vec<String>,
    /// The USDC contract.
    pub token: Address,
    /// The expected EIP-712 name of the token. A hint: the chain decides.
    pub token_name_hint: String,
    /// `PayChannels`. The same on every chain, see [`pay_channels_address`].
    pub contract: Address,
    /// The block from which this wallet's channels are looked for when the journal knows no better; `None`
    /// looks back [`LOOKBACK_BLOCKS`].
    pub first_block: Option<u64>,
    /// Blocks that must hold a fact before it counts; 1 is the newest block alone.
    pub confirmations: u64,
    /// The delay of channels this node opens.
    pub close_delay_secs: u64,
    pub poll_interval_ms: u64,
    /// One request to one endpoint; after that the next endpoint is asked.
    pub request_timeout_ms: u64,
    /// A transaction that is not mined after this time is sent again with a higher fee.
    pub resend_after_ms: u64,
    /// The longest time that the receipt of a transfer is looked for once its nonce is used: nothing else tells whether
    /// it was made, and endpoints may know nonces long before receipts.
    pub receipt_patience_ms: u64,
    /// The time after which whoever asked for a transfer not yet mined is told its hash, while it is pursued further.
    pub transfer_told_within_ms: u64,
    /// The most this node pays per unit of gas, tip included.
    pub gas_price_cap_wei: u128,
    /// Blocks in one log query; public endpoints refuse wide ranges.
    pub logs_range_blocks: u64,
    /// The interval at which events of the last hour or so are asked for again: an endpoint may have indexed them late.
    pub logs_again_ms: u64,
    pub is_l2: bool,
    /// True if a deposit counts as safe only once the chain's block tag `safe` has reached it. Set for public
    /// layer 2s, whose sequencer may take back what Ethereum does not hold yet. Elsewhere what is confirmed is
    /// safe: Ethereum's own confirmations say so, and a local chain has nobody to distrust.
    pub safe_tag: bool,
    /// Channels that pay this wallet and hold less are not followed: a stranger's dust must cost it nothing.
    pub channel_min: Usdc,
    /// Channels that are followed: strangers must not fill this node's memory.
    pub channels_max: usize,
}

/// The blocks that a node without records searches for its channels: a week of two-second blocks. Older channels
/// come back when their configuration is given to [`crate::ChainHandle::track`].
pub const LOOKBACK_BLOCKS: u64 = 302_400;

/// A cent: filling the memory of a node with channels of as much takes a hundred USDC, locked.
const CHANNEL_MIN: Usdc = Usdc::from_micros(10_000);
/// Some 600 bytes each.
const CHANNELS_MAX: usize = 10_000;
/// Before those give up who ask a node for a transfer, which they do after ten minutes.
const TRANSFER_TOLD_WITHIN_MS: u64 = 540_000;
/// Two requests more in ten minutes.
const LOGS_AGAIN_MS: u64 = 600_000;
const GWEI: u128 = 1_000_000_000;

/// The preset chains: name, id, kind, endpoint, USDC, its EIP-712 name, whether it is a layer 2.
///
/// Token addresses are Circle's (developers.circle.com, "USDC contract addresses").
const PRESETS: [(&str, u64, ChainKind, &str, &str, &str, bool); 7] = [
    (
        "base",
        8453,
        ChainKind::Mainnet,
        "https://mainnet.base.org",
        "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
        "USD Coin",
        true,
    ),
    (
        "base-sepolia",
        84532,
        ChainKind::Testnet,
        "https://sepolia.base.org",
        "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
        "USDC",
        true,
    ),
    (
        "arbitrum",
        42161,
        ChainKind::Mainnet,
        "https://arb1.arbitrum.io/rpc",
        "0xaf88d065e77c8cC2239327C5EDb3A432268e5831",
        "USD Coin",
        true,
    ),
    (
        "arbitrum-sepolia",
        421_614,
        ChainKind::Testnet,
        "https://sepolia-rollup.arbitrum.io/rpc",
        "0x75faf114eafb1BDbe2F0316DF893fd58CE46AA4d",
        "USD Coin",
        true,
    ),
    (
        "optimism",
        10,
        ChainKind::Mainnet,
        "https://mainnet.optimism.io",
        "0x0b2C639c533813f4Aa9D7837CAf62653d097Ff85",
        "USD Coin",
        true,
    ),
    (
        "ethereum",
        1,
        ChainKind::Mainnet,
        "https://ethereum-rpc.publicnode.com",
        "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
        "USD Coin",
        false,
    ),
    (
        "sepolia",
        11_155_111,
        ChainKind::Testnet,
        "https://ethereum-sepolia-rpc.publicnode.com",
        "0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238",
        "USDC",
        false,
    ),
];

/// The names that [`preset`] knows, the default first.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|row| row.0)
}

/// A public chain by its name; `None` for an unknown one.
#[must_use]
pub fn preset(name: &str) -> Option<ChainSpec> {
    let &(name, chain_id, kind, rpc_url, token, token_name, is_l2) =
        PRESETS.iter().find(|row| row.0 == name)?;
    Some(ChainSpec {
        name: name.to_owned(),
        chain_id,
        kind,
        rpc_urls: vec![rpc_url.to_owned()],
        token: token.parse().ok()?,
        token_name_hint: token_name.to_owned(),
        contract: pay_channels_address(),
        first_block: None,
        // A layer 2 has one sequencer that does not reorder what it published; Ethereum rarely reorders two.
        confirmations: if is_l2 { 1 } else { 2 },
        close_delay_secs: CLOSE_DELAY_SECS_DEFAULT,
        poll_interval_ms: if is_l2 { 4_000 } else { 12_000 },
        request_timeout_ms: 5_000,
        resend_after_ms: if is_l2 { 30_000 } else { 90_000 },
        receipt_patience_ms: 300_000,
        transfer_told_within_ms: TRANSFER_TOLD_WITHIN_MS,
        // Far above what these chains cost on a busy day, far below what empties a wallet.
        gas_price_cap_wei: if is_l2 { 5 * GWEI } else { 200 * GWEI },
        logs_range_blocks: 5_000,
        logs_again_ms: LOGS_AGAIN_MS,
        is_l2,
        safe_tag: is_l2,
        channel_min: CHANNEL_MIN,
        channels_max: CHANNELS_MAX,
    })
}

/// A chain on this machine with a test token, polled often because a request costs nothing.
#[must_use]
pub fn local(rpc_url: impl Into<String>, chain_id: u64, token: Address) -> ChainSpec {
    ChainSpec {
        name: "local".to_owned(),
        chain_id,
        kind: ChainKind::Local,
        rpc_urls: vec![rpc_url.into()],
        token,
        token_name_hint: "USDC".to_owned(),
        contract: pay_channels_address(),
        first_block: Some(0),
        confirmations: 1,
        close_delay_secs: CLOSE_DELAY_SECS_DEFAULT,
        poll_interval_ms: 200,
        request_timeout_ms: 5_000,
        resend_after_ms: 3_000,
        receipt_patience_ms: 300_000,
        transfer_told_within_ms: TRANSFER_TOLD_WITHIN_MS,
        gas_price_cap_wei: 500 * GWEI,
        logs_range_blocks: 10_000,
        logs_again_ms: LOGS_AGAIN_MS,
        is_l2: true,
        safe_tag: false,
        channel_min: Usdc::ZERO,
        channels_max: CHANNELS_MAX,
    }
}

/// Returns the address of `PayChannels` on every chain: decided by its init code, the salt zero and the CREATE2 proxy.
#[must_use]
pub fn pay_channels_address() -> Address {
    contracts::pay_channels_address()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_whole_and_named_once() {
        let names: Vec<_> = preset_names().collect();
        assert_eq!(names.len(), 7);
        for name in &names {
            let spec = preset(name).unwrap();
            assert_eq!(names.iter().filter(|other| *other == name).count(), 1);
            assert!(spec.rpc_urls[0].starts_with("https://"));
            assert_eq!(spec.contract, pay_channels_address());
            assert!(spec.confirmations >= 1 && (spec.is_l2 || spec.confirmations == 2));
        }
        assert_eq!(names[0], "base", "the default network comes first");
        assert!(preset("unknown").is_none());
    }

    #[test]
    fn token_addresses_carry_a_correct_checksum() {
        for (name, _, _, _, token, _, _) in PRESETS {
            assert_eq!(token.parse::<Address>().unwrap().to_string(), token, "{name}");
        }
    }
}
