//! Tracks which owners can be reached, and what this node has to do: what the network hears of their records decides
//! what the catalog shows as online, channels what it never drops, calls what it shows first.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use farthing_ledger::{Ledger, LedgerError};
use farthing_os::clock;
use farthing_protocol::{Address, ServiceId, Usdc};

use super::Catalog;

/// The time between two looks through the network's records. A look reads memory only.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// The number of looks after which what is too old is dropped.
const SWEEP_EVERY_LOOKS: u32 = 300;
/// Purchases before the start that say what this node uses.
const PURCHASES_MAX: usize = 10_000;

impl Catalog {
    /// Tells the store who is there and who has left, until the node stops.
    pub async fn watch_owners(&self) {
        let mut looks: u32 = 0;
        loop {
            let now_secs = clock::now_secs();
            for (owner, expires_secs) in self.0.network.heard() {
                // Who is not heard of leaves when its record expires. That others crowd the record out of the
                // directory means nothing.
                if expires_secs > now_secs {
                    self.0.store.owner_seen(owner, expires_secs);
                } else {
                    self.0.store.owner_gone(owner, now_secs);
                }
            }
            if looks.is_multiple_of(SWEEP_EVERY_LOOKS)
                && let Err(error) = self.0.store.sweep(clock::now_secs()).await
            {
                tracing::warn!(%error, "old listings were not removed");
            }
            looks = looks.wrapping_add(1);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// A call of the service was paid for and answered. From now on its listing is kept, also where those of its owner's
    /// shard are not.
    pub async fn completed(&self, service: ServiceId) {
        self.0.store.completed([(service, 1)]);
        let Some(known) = self.in_memory(service) else { return };
        let listing = known.listing();
        if !self.keeps(listing.owner) && self.0.store.seq(service).is_none() {
            self.keep(listing, listing.owner).await;
        }
    }

    /// The same for what was bought before the start.
    pub fn completed_before(&self, ledger: &Ledger) -> Result<(), LedgerError> {
        let mut calls: HashMap<ServiceId, u32> = HashMap::new();
        let bought =
            ledger.purchases(PURCHASES_MAX)?.into_iter().filter(|bought| bought.charged > Usdc::ZERO);
        bought.for_each(|bought| *calls.entry(bought.service).or_default() += 1);
        self.0.store.completed(calls);
        Ok(())
    }

    /// The listings of these owners, with whom this node has channels, make room for no others.
    pub fn keep_listings_of(&self, owners: &BTreeSet<Address>) {
        let owners: HashSet<Address> = owners.iter().copied().collect();
        self.0.store.set_partners(owners, clock::now_secs());
    }
}
