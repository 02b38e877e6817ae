//! A paid call whose end does not count for or against its service yet.

use std::sync::{Arc, Weak};

use farthing_discovery::KnownService;
use farthing_protocol::{Listing, Verified};
use tokio::time::Instant;

use super::conduct::TrialPermit;

/// The grounds on which a call's end is judged, kept until it is known. A call that an earlier run left open has none: an
/// owner that kept the rules may have nothing but the receipt by now.
#[derive(Debug)]
pub struct OpenVerdict {
    pub bought: BoughtVersion,
    pub made: Instant,
    /// Its owner said that it had the call, and had not ended it when the caller's time was up.
    pub was_taken: bool,
    /// It lasts until the end is known, an hour at most.
    pub trial: Option<TrialPermit>,
}

/// The version of a service that a call was bought with. It does not keep the description in memory, since an owner may list
/// a new one before each call: the listing pins it by its hash, and it is read again where memory has given it up.
#[derive(Clone, Debug)]
pub struct BoughtVersion {
    /// If somebody has it in memory still.
    pub known: Weak<KnownService>,
    pub listing: Arc<Verified<Listing>>,
}

impl BoughtVersion {
    pub fn of(service: &Arc<KnownService>) -> Self {
        Self { known: Arc::downgrade(service), listing: service.version() }
    }
}
