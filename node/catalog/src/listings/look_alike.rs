//! The warning that a listing may be taken for an older one of another owner.
//!
//! It is looked up when a listing is shown, so it is always about what is here now.

use farthing_protocol::{Address, Listing, ServiceId};

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
        let others = self
            .named_like(&entry.name)
            .filter(|other| other.owner != entry.owner)
            .filter(|other| other.first_seen_secs < entry.first_seen_secs.saturating_add(OLDER_BY_SECS));
        let other = oldest_alike(&entry.name, others)?;
        let older = other.first_seen_secs.saturating_add(OLDER_BY_SECS) <= entry.first_seen_secs;
        Some(self.warning(other, older))
    }

    /// The listing here of another owner that one from elsewhere may be taken for. How long that one is known says nothing,
    /// because this node does not keep it, so the warning never says that the other is older.
    pub(crate) fn look_alike_of(&self, elsewhere: &Listing) -> Option<LookAlike> {
        let is_of_another = |other: &&Entry| self.owners.address(other.owner) != elsewhere.owner;
        let others = self.named_like(&elsewhere.name).filter(is_of_another);
        oldest_alike(&elsewhere.name, others).map(|other| self.warning(other, false))
    }

    fn named_like(&self, name: &str) -> impl Iterator<Item = &Entry> {
        self.names.candidates(name).into_iter().filter_map(move |slot| self.get(slot))
    }

    fn warning(&self, other: &Entry, older: bool) -> LookAlike {
        LookAlike {
            service: other.service,
            name: other.name.to_string(),
            owner: self.owners.address(other.owner),
            older,
        }
    }
}

/// The first of some listings here that has nearly this name.
fn oldest_alike<'a>(name: &str, others: impl Iterator<Item = &'a Entry>) -> Option<&'a Entry> {
    let mut others: Vec<&Entry> = others.collect();
    others.sort_unstable_by_key(|other| (other.first_seen_secs, other.created_secs, other.service));
    others.into_iter().take(CANDIDATES_MAX).find(|other| names::alike(&other.name, name))
}
