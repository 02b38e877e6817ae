//! Verdicts on listings that somebody offers, and where they came from.

use std::net::IpAddr;

use farthing_protocol::Address;

/// A neighbour that brings listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Neighbour {
    pub wallet: Address,
    /// The address range that it comes from, unless that is private.
    pub range: Option<IpAddr>,
}

/// The unit by which neighbours are counted: anybody can have any number of wallets, but not of address ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Bringer {
    Range(IpAddr),
    Wallet(Address),
}

impl Neighbour {
    pub(crate) fn bringer(&self) -> Bringer {
        self.range.map_or(Bringer::Wallet(self.wallet), Bringer::Range)
    }
}

/// One of which the address range is not known.
impl From<Address> for Neighbour {
    fn from(wallet: Address) -> Self {
        Self { wallet, range: None }
    }
}

/// The origin of a listing; decides how many may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// This node published it.
    Own,
    /// A neighbour sent it unasked: gossip, or an answer to a question about one service.
    Pushed(Neighbour),
    /// A neighbour gave it in a reconciliation it began, after this node said which it wants.
    Given(Neighbour),
    /// This node asked for it in a reconciliation it began.
    Fetched(Neighbour),
}

impl Source {
    pub(crate) fn bringer(&self) -> Option<Bringer> {
        match self {
            Self::Own => None,
            Self::Pushed(peer) | Self::Given(peer) | Self::Fetched(peer) => Some(peer.bringer()),
        }
    }
}

/// The decision on a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is new or newer, verified, and on disk.
    Stored,
    /// This exact version was here already.
    Known,
    Refused(Reason),
}

/// The reason that a listing is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("it is too large, cannot be read or breaks a rule: {0}")]
    Malformed(String),
    #[error("the signature is not the owner's")]
    BadSignature,
    #[error("it claims a service of another owner: {0}")]
    Stolen(String),
    #[error("it belongs to another network")]
    WrongNetwork,
    #[error("it was updated in the future; check both nodes' clocks")]
    FromTheFuture,
    #[error("a newer version is here")]
    Superseded,
    #[error("it was recently refused or replaced")]
    Refused,
    #[error("it was removed because its owner has been away for too long")]
    OwnerAway,
    #[error("it changes too often; the next version is accepted in {retry_secs} s")]
    TooOften { retry_secs: u64 },
    #[error("the neighbour sends more than its share; the listing comes later")]
    OverBudget,
    #[error("its owner already has the most listings that one owner may have")]
    OwnerFull,
    #[error("the catalog is full, and no owner in it has more than its share")]
    Full,
    #[error("its owner is in a shard that this node does not keep (catalog.shards)")]
    OtherShard,
    #[error("the catalog's storage failed; see the log")]
    Storage,
}

impl Reason {
    /// Returns whether no honest node would have passed it on: every node checks this before it keeps a listing.
    pub const fn is_hostile(&self) -> bool {
        matches!(self, Self::Malformed(_) | Self::BadSignature | Self::Stolen(_) | Self::WrongNetwork)
    }
}

impl Verdict {
    /// Returns whether the neighbour that sent it should be held to account.
    pub const fn is_hostile(&self) -> bool {
        matches!(self, Self::Refused(reason) if reason.is_hostile())
    }
}
