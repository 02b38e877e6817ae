//! Reasons why the owner's services stay as they are.

use farthing_bridge::document;
use farthing_discovery::KnownError;
use farthing_ledger::LedgerError;
use farthing_protocol::{ServiceId, call::Method, limits::LISTINGS_PER_OWNER_MAX, signed::DocumentError};

use crate::{new_service::NewServiceError, upstream::UpstreamError};

/// The reason that a service cannot be registered or changed.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    #[error("no service {0} is registered here; `farthing api list` shows them")]
    NotFound(ServiceId),
    #[error(
        "this wallet already offers {LISTINGS_PER_OWNER_MAX} services, the most that other nodes keep of one owner; \
         retire one with `farthing api remove`, or offer more operations in one service"
    )]
    TooMany,
    #[error(
        "`version` is {seen}, but the service is now at version {now} because somebody changed it. Look at the new \
         version, then make your change"
    )]
    Changed { seen: u64, now: u64 },
    #[error(transparent)]
    Service(#[from] NewServiceError),
    #[error("the service has no operation {method} {path}; `farthing api show` shows them")]
    NoSuchOperation { method: Method, path: String },
    #[error("the listing is not valid: {0}")]
    Listing(#[from] DocumentError),
    #[error("the operations are not valid: {0}")]
    Operations(#[from] KnownError),
    #[error("the operations are not valid: {0}")]
    Api(#[from] farthing_bridge::ApiError),
    #[error("the description is too large: {0}")]
    Document(#[from] document::DocumentError),
    #[error("upstream: {0}")]
    Upstream(#[from] UpstreamError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl RegistryError {
    /// Returns the step to take next.
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Ledger(error) => error.next_step(),
            _ => "Correct what is named and try again; nothing was changed.",
        }
    }
}
