//! Which owners can be reached: what the network knows of their records decides what the catalog shows as online.

use std::{collections::HashMap, time::Duration};

use farthing_protocol::Address;

use super::Catalog;
use crate::clock;

/// How often the network's records are looked through. Reads memory only.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often what is too old is dropped.
const SWEEP_EVERY_LOOKS: u32 = 300;

impl Catalog {
    /// Tells the store who is there and who has left, until the node stops.
    pub async fn watch_owners(&self) {
        let mut known: HashMap<Address, u64> = HashMap::new();
        let mut looks: u32 = 0;
        loop {
            let now: HashMap<Address, u64> = self.0.network.expiries().into_iter().collect();
            for (owner, expires_secs) in now.iter().filter(|(owner, at)| known.get(*owner) != Some(at)) {
                self.0.store.owner_seen(*owner, *expires_secs);
            }
            for owner in known.keys().filter(|owner| !now.contains_key(*owner)) {
                self.0.store.owner_gone(*owner, clock::now_secs());
            }
            known = now;
            if looks.is_multiple_of(SWEEP_EVERY_LOOKS)
                && let Err(error) = self.0.store.sweep(clock::now_secs()).await
            {
                tracing::warn!(%error, "old listings were not removed");
            }
            looks = looks.wrapping_add(1);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
