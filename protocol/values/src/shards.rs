//! Shards: the network's listings in sixteen parts, by hash of their owner. A node that cannot keep all keeps some of them.

use std::str::FromStr;

use crate::{Address, keccak256};

/// Returns the shard that the listings of this owner are in: the first four bits of its address's Keccak-256.
pub fn shard_of(owner: Address) -> u8 {
    keccak256(&[owner.as_bytes()])[0] >> 4
}

/// Some of the sixteen shards, a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shards(u16);

impl Shards {
    /// All sixteen.
    pub const ALL: Self = Self(u16::MAX);

    /// The shards that the node of `wallet` keeps: its own, and those that follow it, round the end. So all are kept alike.
    pub fn of_node(wallet: Address, count: ShardCount) -> Self {
        Self(Self::first(count).0.rotate_left(shard_of(wallet).into()))
    }

    const fn first(count: ShardCount) -> Self {
        Self(u16::MAX >> (ShardCount::ALL.0 - count.0))
    }

    /// Takes them as they travel: the lowest bit stands for shard 0.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Returns them as they travel.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns how many they are.
    pub const fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns whether `shard`, below sixteen, is among them.
    pub const fn has(self, shard: u8) -> bool {
        (self.0.rotate_right(shard as u32) & 1) == 1
    }

    /// The shards that both have.
    #[must_use]
    pub const fn common(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// A number of shards, from 1 to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardCount(u8);

impl ShardCount {
    /// All sixteen.
    pub const ALL: Self = Self(16);
}

/// The text says neither `all` nor a number from 1 to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected `all`, or a number of shards from 1 to 16")]
pub struct BadShardCount;

impl FromStr for ShardCount {
    type Err = BadShardCount;

    fn from_str(text: &str) -> Result<Self, BadShardCount> {
        if text == "all" {
            return Ok(Self::ALL);
        }
        let count = text.parse().ok().filter(|count| (1..=Self::ALL.0).contains(count));
        count.map(Self).ok_or(BadShardCount)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> ShardCount {
        text.parse().unwrap()
    }

    #[test]
    fn a_node_keeps_its_own_shard_and_those_that_follow() {
        for byte in 0..=255 {
            let wallet = Address::from_bytes([byte; 20]);
            let own = shard_of(wallet);
            let three = Shards::of_node(wallet, count("3"));
            let kept: Vec<u8> = (0..16).filter(|shard| three.has(*shard)).collect();
            let mut expected = [own, (own + 1) % 16, (own + 2) % 16];
            expected.sort_unstable();
            assert_eq!(kept, expected);
            assert_eq!(Shards::of_node(wallet, count("16")), Shards::ALL);
            assert_eq!(Shards::of_node(wallet, count("all")), Shards::ALL);
        }
    }

    #[test]
    fn owners_are_in_all_shards() {
        let owners = (0..=255).map(|byte| Address::from_bytes([byte; 20]));
        let shards: std::collections::BTreeSet<u8> = owners.map(shard_of).collect();
        assert!(shards.into_iter().eq(0..16));
    }

    #[test]
    fn no_node_keeps_no_shard() {
        for wrong in ["0", "17", "-1", "", "none", "1.5"] {
            assert_eq!(wrong.parse::<ShardCount>(), Err(BadShardCount), "{wrong}");
        }
    }

    #[test]
    fn two_nodes_compare_what_both_keep() {
        let [one, other] = [Shards::from_bits(0b0110), Shards::from_bits(0b1100)];
        assert_eq!(one.common(other).bits(), 0b0100);
        assert_eq!(one.common(Shards::ALL), one);
    }
}
