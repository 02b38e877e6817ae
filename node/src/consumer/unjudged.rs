//! A paid call whose end does not count for or against its service yet.

use std::{sync::Weak, time::Instant};

use farthing_discovery::KnownService;

use super::conduct::TrialPermit;

/// The grounds on which a call's end is judged, kept until it is known. A call that an earlier run left open has none: an
/// owner that kept the rules may have nothing but the receipt by now.
#[derive(Debug)]
pub struct Unjudged {
    /// As it was when the call was made. It does not keep that in memory: an owner may list a new version before each call.
    pub service: Weak<KnownService>,
    pub made: Instant,
    /// Its owner said that it had the call, and had not ended it when the caller's time was up.
    pub was_taken: bool,
    /// It lasts until the end is known, an hour at most.
    pub trial: Option<TrialPermit>,
}
