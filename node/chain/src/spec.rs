//! The chain that a node settles on: the presets, and the shape of a custom entry.
//!
//! A spec is plain data. The token's own EIP-712 domain is asked of the chain (see [`crate::ChainStatus`]).

use farthing_values::{Address, Escrow, Usdc, limits::CLOSE_DELAY_SECS_DEFAULT};

use crate::contracts::pay_channels_address;

/// The kind of a chain: whether the money on it is real.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChainKind {
    /// Real USDC.
    Mainnet,
    /// A public chain whose coins are worth nothing.
    Testnet,
    /// A chain of one's own, on this machine or in a private network. Its blocks may rest and its clock may jump.
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
    /// A public site that shows transactions at `/tx/HASH`, for people; none for chains that no preset names.
    pub explorer: Option<String>,
    /// `PayChannels`. The same on every chain, see [`pay_channels_address`].
    pub contract: Address,
    /// The block from which this wallet's channels are looked for when the journal knows no better; `None`
    /// looks back a week, and [`LOOKBACK_BLOCKS`] at least.
    pub first_block: Option<u64>,
    /// The usual time between two blocks; that of most layer 2s where it is not known.
    pub block_ms: u64,
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
    /// The time after which a channel that this wallet fills, and that the contract never had, is followed no more: an
    /// endpoint told of it, and others do not.
    pub absent_forgotten_ms: u64,
}

impl ChainSpec {
    /// The place of the channels that are followed.
    pub const fn escrow(&self) -> Escrow {
        Escrow { chain_id: self.chain_id, contract: self.contract, token: self.token }
    }

    /// Counts the blocks of so long a time.
    pub(crate) fn blocks_in(&self, secs: u64) -> u64 {
        (secs * 1_000).div_ceil(self.block_ms.max(1))
    }
}

/// The least blocks that a node without records searches for its channels: a week of two-second blocks. Older channels
/// come back when their configuration is given to [`crate::ChainHandle::track`].
pub const LOOKBACK_BLOCKS: u64 = 302_400;

const GWEI: u128 = 1_000_000_000;

/// The preset chains, each as the words of its line.
fn presets() -> impl Iterator<Item = Vec<&'static str>> {
    let lines = include_str!("spec/presets.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_whitespace().collect())
}

/// The names that [`preset`] knows, the default first.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    presets().map(|words| words[0])
}

/// A public chain by its name; `None` for an unknown one.
pub fn preset(name: &str) -> Option<ChainSpec> {
    let words = presets().find(|words| words[0] == name)?;
    let &[_, chain_id, kind, layer, rpc_url, token, explorer, block_ms] = &*words else { return None };
    let kind =
        [ChainKind::Mainnet, ChainKind::Testnet].into_iter().find(|known| known.to_string() == kind)?;
    let spec = ChainSpec {
        explorer: Some(explorer.to_owned()),
        block_ms: block_ms.parse().ok()?,
        ..layer_2(name, chain_id.parse().ok()?, kind, rpc_url.to_owned(), token.parse().ok()?)
    };
    if layer == "2" {
        return Some(spec);
    }
    // Ethereum rarely reorders two blocks, and its own confirmations say what is safe.
    Some(ChainSpec {
        confirmations: 2,
        poll_interval_ms: 12_000,
        resend_after_ms: 90_000,
        gas_price_cap_wei: 200 * GWEI,
        is_l2: false,
        safe_tag: false,
        ..spec
    })
}

/// A public chain that is no preset, taken for a layer 2: what its endpoints show is believed as late as there.
pub fn custom(rpc_url: impl Into<String>, chain_id: u64, kind: ChainKind, token: Address) -> ChainSpec {
    layer_2("custom", chain_id, kind, rpc_url.into(), token)
}

/// A chain of one's own with a test token, polled often because a request costs nothing. Nobody lies there: what it shows
/// is believed at once, and it may rest.
pub fn local(rpc_url: impl Into<String>, chain_id: u64, token: Address) -> ChainSpec {
    ChainSpec {
        first_block: Some(0),
        poll_interval_ms: 200,
        resend_after_ms: 3_000,
        gas_price_cap_wei: 500 * GWEI,
        logs_range_blocks: 10_000,
        safe_tag: false,
        channel_min: Usdc::ZERO,
        ..layer_2("local", chain_id, ChainKind::Local, rpc_url.into(), token)
    }
}

/// A public layer 2; what differs elsewhere is said there.
fn layer_2(name: &str, chain_id: u64, kind: ChainKind, rpc_url: String, token: Address) -> ChainSpec {
    ChainSpec {
        name: name.to_owned(),
        chain_id,
        kind,
        rpc_urls: vec![rpc_url],
        token,
        explorer: None,
        contract: pay_channels_address(),
        first_block: None,
        block_ms: 2_000,
        // It has one sequencer, which does not reorder what it published.
        confirmations: 1,
        close_delay_secs: CLOSE_DELAY_SECS_DEFAULT,
        poll_interval_ms: 4_000,
        request_timeout_ms: 5_000,
        resend_after_ms: 30_000,
        receipt_patience_ms: 300_000,
        // Before those give up who ask a node for a transfer, which they do after ten minutes.
        transfer_told_within_ms: 540_000,
        // Far above what these chains cost on a busy day, far below what empties a wallet.
        gas_price_cap_wei: 5 * GWEI,
        logs_range_blocks: 5_000,
        // Two requests more in ten minutes.
        logs_again_ms: 600_000,
        is_l2: true,
        safe_tag: true,
        // A cent: filling the memory of a node with channels of as much takes a hundred USDC, locked.
        channel_min: Usdc::from_micros(10_000),
        // Some 600 bytes each.
        channels_max: 10_000,
        // As late as endpoints are known to tell of an event.
        absent_forgotten_ms: 3_600_000,
    }
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
            assert!(spec.explorer.is_some_and(|site| site.starts_with("https://") && !site.ends_with('/')));
            assert_eq!(spec.contract, pay_channels_address());
            assert!(spec.confirmations >= 1 && (spec.is_l2 || spec.confirmations == 2));
        }
        assert_eq!(names[0], "base", "the default network comes first");
        assert!(preset("unknown").is_none());
    }

    #[test]
    fn the_reference_has_the_addresses_of_contract_and_tokens() {
        let document = include_str!("../../../docs/contracts.md");
        assert!(
            document.contains(&format!("\n`{}`\n", pay_channels_address())),
            "{}",
            pay_channels_address()
        );
        for words in presets() {
            let &[name, chain_id, kind, _, _, token, explorer, ..] = &*words else { panic!("{words:?}") };
            let row = format!("\n| `{name}` | {chain_id} | {kind} | `{token}` | {explorer} |\n");
            assert!(document.contains(&row), "docs/contracts.md lacks {row}");
        }
    }

    #[test]
    fn an_hour_has_as_many_blocks_as_the_chain_makes_in_it() {
        for (name, blocks) in [("base", 1_800), ("arbitrum", 14_400), ("ethereum", 300)] {
            assert_eq!(preset(name).unwrap().blocks_in(3_600), blocks, "{name}");
        }
    }

    #[test]
    fn token_addresses_carry_a_correct_checksum() {
        for words in presets() {
            assert_eq!(words[5].parse::<Address>().unwrap().to_string(), words[5], "{words:?}");
        }
    }
}
