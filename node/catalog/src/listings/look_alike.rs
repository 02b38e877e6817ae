//! The warning that a listing may be taken for an older one of another owner.
//!
//! It is looked up when a listing is shown, so it is always about what is here now.

use farthing_protocol::{Address, ServiceId};

use super::{Entry, Listings, Slot, names};

/// A name that an older listing of another owner has, or nearly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookAlike {
    /// The other listing.
    pub service: ServiceId,
    pub name: String,
    pub owner: Address,
    /// True if this node knew the other one at least a day earlier. If not, both carry the warning: the dates
    /// in listings are their owners' word.
    pub older: bool,
}

/// Seen this much earlier, a listing is the older one. Within it, a node may have learned both in any order.
const OLDER_BY_SECS: u64 = 24 * 3600;
/// Look-alikes compared for one listing: many alike are one warning.
const CANDIDATES_MAX: usize = 32;

impl Listings {
    /// The older listing of another owner that this one may be taken for.
    pub(crate) fn look_alike(&self, slot: Slot) -> Option<LookAlike> {
        let entry = self.get(slot)?;
        let age = |other: &Entry| (other.first_seen_secs, other.created_secs, other.service);
        let mut others: Vec<&Entry> = self
            .names
            .candidates(&entry.name)
            .into_iter()
            .filter_map(|slot| self.get(slot))
            .filter(|other| other.owner != entry.owner)
            .filter(|other| other.first_seen_secs < entry.first_seen_secs.saturating_add(OLDER_BY_SECS))
            .collect();
        others.sort_unstable_by_key(|other| age(other));
        let mut others = others.into_iter().take(CANDIDATES_MAX);
        let other = others.find(|other| names::alike(&other.name, &entry.name))?;
        Some(LookAlike {
            service: other.service,
            name: other.name.to_string(),
            owner: self.owners.address(other.owner),
            older: other.first_seen_secs.saturating_add(OLDER_BY_SECS) <= entry.first_seen_secs,
        })
    }
}
