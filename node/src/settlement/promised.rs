//! Channels that their owners have taken on to close since the start, before the chain shows it.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use farthing_protocol::ChannelId;

/// A cheap handle. Whose owner does not keep its word is closed by the payer's own request later.
#[derive(Clone, Debug, Default)]
pub(super) struct Promised(Arc<Mutex<HashSet<ChannelId>>>);

impl Promised {
    pub(super) fn note(&self, channel: ChannelId) {
        // The set is changed by single operations, so a panic elsewhere leaves it whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(channel);
    }

    pub(super) fn has(&self, channel: ChannelId) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&channel)
    }
}
