//! Reasons that a service cannot be used, each with the step to take next.

use std::sync::Arc;

use farthing_catalog as store;
use farthing_network::CallFailure;
use farthing_os::clock;
use farthing_protocol::{Address, ServiceId};

use super::KnownError;

/// The effect of a catalog that stores nothing, and what to do about it.
const NOT_STORED: &str = "new listings cannot be stored, so this node finds no new services and tells no other node of \
                          changes to its own; its calls and its sales go on";
const NOT_STORED_NEXT: &str = "free disk space or check the disk; the node tries again with the next listing. If that \
                               fails, restart the node";

/// The effect of a search index that cannot be written, and what to do about it.
const INDEX_BEHIND: &str = "the search index cannot be written, so searches of this node do not find all services; other nodes \
                            find its services, and its calls and its sales go on";
const INDEX_BEHIND_NEXT: &str = "free disk space or check the disk; the node tries again every minute";

/// The reason that other nodes lack a version of a service of this node, and what to do about it.
pub const UNSTORED: &str = "this node's catalog could not store its listing";
pub const UNSTORED_NEXT: &str =
    "free disk space or check the disk; the node tries again every minute at least, and then publishes it";

/// Returns the effect of a catalog of which a part fails, and what to do about it.
pub const fn cause_and_next(failing: store::Failing) -> (&'static str, &'static str) {
    match failing {
        store::Failing::Storage => (NOT_STORED, NOT_STORED_NEXT),
        store::Failing::Index => (INDEX_BEHIND, INDEX_BEHIND_NEXT),
    }
}

/// The reason that pinned content cannot be had from its owner, or is none. What fails here is never told as that.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ContentError {
    #[error(transparent)]
    NotAnswered(#[from] CallFailure),
    #[error("the owner's node does not answer")]
    Silent,
    #[error("the owner no longer has them")]
    Gone,
    #[error("the owner sent content that does not match its listing")]
    OtherContent,
    #[error(transparent)]
    Unreadable(Arc<KnownError>),
}

/// The reason that a service cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CatalogError {
    #[error("the service {0} is not in the catalog, and no connected node knows it")]
    Unknown(ServiceId),
    #[error("the service {service} exists, but this node does not keep its listing: {reason}")]
    NotKept { service: ServiceId, reason: store::Reason },
    /// `on_secs` is by the owner's clock.
    #[error("the service {service} was retired by its owner {owner} on {}", clock::date(*.on_secs))]
    Retired { service: ServiceId, owner: Address, on_secs: u64 },
    #[error("the details of the service are not available: {reason}")]
    DetailsUnavailable {
        owner: Address,
        #[source]
        reason: ContentError,
    },
    #[error(
        "the memory for large descriptions is full, so the description of the service {0} could not be read"
    )]
    NoMemory(ServiceId),
    /// A mistake in this program ended it, or it has no thread to read with.
    #[error("this node failed while it read the description of the service {0}")]
    NotRead(ServiceId),
    #[error("the catalog failed: {0}")]
    Store(#[from] store::CatalogError),
}

impl CatalogError {
    /// Tells whether others are the reason, the service's owner and whoever could know it, and not this node.
    pub const fn is_of_others(&self) -> bool {
        match self {
            Self::Unknown(_) | Self::Retired { .. } | Self::DetailsUnavailable { .. } => true,
            Self::NotKept { .. } | Self::NoMemory(_) | Self::NotRead(_) | Self::Store(_) => false,
        }
    }

    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "Search for it with `farthing catalog search WORDS`.",
            Self::NotKept { .. } => "The owner must correct that; `farthing call` works without the catalog.",
            Self::Retired { .. } => "Find another service with `farthing catalog search`.",
            Self::DetailsUnavailable {
                reason: ContentError::OtherContent | ContentError::Unreadable(_),
                ..
            } => "The owner must publish the service again.",
            Self::DetailsUnavailable { .. } => {
                "Try again when the owner's node, or a node that knows it, is connected."
            }
            Self::NoMemory(_) => "Try again in a moment.",
            Self::NotRead(_) => "Read the node's log, restart the node, and please report it.",
            Self::Store(_) => "`farthing doctor` checks the data folder.",
        }
    }
}
