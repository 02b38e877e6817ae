//! The catalog's access to this node's own services, whoever keeps them: it gives them out beside what it learned.

use std::{fmt, sync::Arc};

use farthing_control::types::VersionNote;
use farthing_ledger::LedgerError;
use farthing_protocol::{Hash, Listing, ServiceId, Signed};

use super::KnownService;

pub trait OwnService: Send + Sync {
    fn known(&self) -> &KnownService;

    /// Every version, the newest last.
    fn versions(&self) -> Vec<VersionNote>;
}

/// All of them.
pub trait OwnServices: fmt::Debug + Send + Sync {
    fn service(&self, id: ServiceId) -> Option<Arc<dyn OwnService>>;

    /// Content that their listings pin.
    fn blob(&self, hash: &Hash) -> Option<Vec<u8>>;

    /// Their listings, and the last ones of retired services.
    fn listings(&self) -> Result<Vec<Signed<Listing>>, LedgerError>;
}
