//! Reasons that a service cannot be used, each with the step to take next.

use std::sync::Arc;

use farthing_catalog as store;
use farthing_network::CallFailure;
use farthing_os::clock;
use farthing_protocol::{Address, ServiceId};

use super::KnownError;

/// The reason that pinned content cannot be had from its owner, or is none. What fails here is never told as that.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ContentError {
    #[error(transparent)]
    NotAnswered(#[from] CallFailure),
    #[error("the owner's node does not answer")]
    Silent,
    #[error("the owner no longer has them")]
    Gone,
    #[error("the owner sent other content than its listing names")]
    OtherContent,
    #[error(transparent)]
    Unreadable(Arc<KnownError>),
}

/// The reason that a service cannot be used.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CatalogError {
    #[error("the service {0} is not in the catalog, and no connected node knows it")]
    Unknown(ServiceId),
    #[error("the service {service} exists, but its listing is not kept here: {reason}")]
    NotKept { service: ServiceId, reason: store::Reason },
    /// `on_secs` is by the owner's clock.
    #[error("the service {service} was retired by its owner {owner} on {}", clock::date(*.on_secs))]
    Retired { service: ServiceId, owner: Address, on_secs: u64 },
    #[error("the details of the service cannot be had: {reason}")]
    DetailsUnavailable {
        owner: Address,
        #[source]
        reason: ContentError,
    },
    #[error(
        "calls and pages under way, and services that were paid for, fill the memory that this node has for large descriptions, \
         and the one of the service {0} found no room"
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

    /// Returns the step to take next.
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Unknown(_) => "Search for it with `farthing catalog search WORDS`.",
            Self::NotKept { .. } => "Its owner has to mend that; `farthing call` works without the catalog.",
            Self::Retired { .. } => "Look for another one with `farthing catalog search`.",
            Self::DetailsUnavailable {
                reason: ContentError::OtherContent | ContentError::Unreadable(_),
                ..
            } => "Its owner has to publish the service again.",
            Self::DetailsUnavailable { .. } => {
                "Try again when the owner's node or one that knows it is connected."
            }
            Self::NoMemory(_) => "Try again in a moment, when fewer are under way.",
            Self::NotRead(_) => "The node's log says more; restart the node, and please report it.",
            Self::Store(_) => "`farthing doctor` checks the data folder.",
        }
    }
}
