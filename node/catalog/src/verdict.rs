//! What becomes of a listing that somebody offers, and where it came from.

use farthing_protocol::Address;

/// Where a listing came from; decides how many may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// This node published it.
    Own,
    /// A neighbour sent it unasked: gossip, or an answer to a question about one service.
    Pushed(Address),
    /// A neighbour gave it in a reconciliation it began, after this node said which it wants.
    Given(Address),
    /// This node asked for it in a reconciliation it began.
    Fetched(Address),
}

impl Source {
    /// The neighbour.
    #[must_use]
    pub const fn peer(&self) -> Option<Address> {
        match self {
            Self::Own => None,
            Self::Pushed(peer) | Self::Given(peer) | Self::Fetched(peer) => Some(*peer),
        }
    }
}

/// What became of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is new or newer, verified, and on disk.
    Stored,
    /// This exact version was here already.
    Known,
    Refused(Reason),
}

/// Why a listing is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("it is too large, cannot be read or breaks a rule: {0}")]
    Malformed(String),
    #[error("its signature is not its owner's")]
    BadSignature,
    #[error("it claims a service of another owner: {0}")]
    Stolen(String),
    #[error("it belongs to another network")]
    WrongNetwork,
    #[error("it was updated in the future; check both nodes' clocks")]
    FromTheFuture,
    #[error("a newer version is here")]
    Superseded,
    #[error("it was refused or replaced a while ago")]
    Refused,
    #[error("it was here, and its owner has been away for too long")]
    OwnerAway,
    #[error("it changes too often; the next version is taken in {retry_secs} s")]
    TooOften { retry_secs: u64 },
    #[error("the neighbour sends more than its share; reconciliation brings it later")]
    OverBudget,
    #[error("its owner has as many listings as one may have")]
    OwnerFull,
    #[error("the catalog is full")]
    Full,
    #[error("the catalog's storage failed; see the log")]
    Storage,
}

impl Reason {
    /// Whether no honest node would have passed it on: every node checks this before it keeps a listing.
    #[must_use]
    pub const fn is_hostile(&self) -> bool {
        matches!(self, Self::Malformed(_) | Self::BadSignature | Self::Stolen(_) | Self::WrongNetwork)
    }
}

impl Verdict {
    /// Whether the neighbour that sent it should be held to account.
    #[must_use]
    pub const fn is_hostile(&self) -> bool {
        matches!(self, Self::Refused(reason) if reason.is_hostile())
    }
}
