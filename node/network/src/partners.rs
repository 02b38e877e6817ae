//! The wallets with which channels are open. Everything that is scarce keeps a part for them.

use std::{collections::HashSet, sync::Arc};

use farthing_protocol::Address;
use parking_lot::RwLock;

/// The current set. A cheap handle.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partners(Arc<RwLock<HashSet<Address>>>);

impl Partners {
    /// Puts these in place of those named before.
    pub(crate) fn set(&self, wallets: HashSet<Address>) {
        *self.0.write() = wallets;
    }

    pub(crate) fn contains(&self, wallet: &Address) -> bool {
        self.0.read().contains(wallet)
    }
}
