//! The rendezvous, as it is told: when this node was there, and what came of it.

/// A report on the public DHT in which nodes that know nobody find each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RendezvousReport {
    /// False where it is off.
    pub is_on: bool,
    /// True while others are asked for there, because too few are connected.
    pub is_needed: bool,
    /// The last time that this node asked there for others.
    pub asked: Option<RendezvousVisit>,
    /// The last time that this node was listed there, or was to be.
    pub listed: Option<RendezvousVisit>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RendezvousVisit {
    /// In seconds since the Unix epoch.
    pub ended_secs: u64,
    pub end: RendezvousEnd,
}

/// The end of a visit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RendezvousEnd {
    /// So many other nodes were named there; those of them that are dialled have yet to show who they are.
    Found { nodes: usize },
    /// The DHT keeps this node's addresses for others.
    Listed,
    /// It could not be entered. One line.
    NoEntrance { reason: String },
    /// It was entered, and nobody in it answered the question in time.
    NoAnswer,
}

impl RendezvousEnd {
    /// Returns whether the DHT did what it was asked for.
    #[must_use]
    pub const fn is_good(&self) -> bool {
        matches!(self, Self::Found { .. } | Self::Listed)
    }
}
