//! The versions, and their names of chains: by number (CAIP-2) in version 2, and by words in version 1.

/// A version of x402.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

impl Version {
    /// The number in `x402Version`.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }

    /// Returns the name that a chain has in this version; `None` if it has none.
    #[must_use]
    pub fn network(self, chain_id: u64) -> Option<String> {
        match self {
            Self::One => by_word(chain_id).map(str::to_owned),
            Self::Two => Some(by_number(chain_id)),
        }
    }
}

/// The words of version 1, as its official packages know them. A chain without one is offered in version 2 alone.
const WORDS: [(u64, &str); 15] = [
    (1_328, "sei-testnet"),
    (1_329, "sei"),
    (1_514, "story"),
    (137, "polygon"),
    (2_741, "abstract"),
    (3_338, "peaq"),
    (4_689, "iotex"),
    (8_453, "base"),
    (11_124, "abstract-testnet"),
    (41_923, "educhain"),
    (43_113, "avalanche-fuji"),
    (43_114, "avalanche"),
    (80_002, "polygon-amoy"),
    (84_532, "base-sepolia"),
    (324_705_682, "skale-base-sepolia"),
];

/// The name in version 2.
pub(crate) fn by_number(chain_id: u64) -> String {
    format!("eip155:{chain_id}")
}

/// The name in version 1.
pub(crate) fn by_word(chain_id: u64) -> Option<&'static str> {
    WORDS.iter().find(|(id, _)| *id == chain_id).map(|(_, word)| *word)
}
