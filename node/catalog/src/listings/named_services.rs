//! Services by what a person calls them: their name, or the first digits of their id.
//!
//! Everybody chooses the names of one's own services, and by trying the beginnings of their ids. So all that fit are
//! told, up to a bound, and whoever asked decides only where there is one.

use farthing_protocol::{Address, ServiceId};

use super::{Entry, Listings};

/// A service that a text names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedService {
    pub service: ServiceId,
    pub name: String,
    pub owner: Address,
    /// True if its name is that of an older listing of another owner, or nearly.
    pub is_look_alike: bool,
}

/// The most that are told: more than a person compares.
pub const NAMED_MAX: usize = 20;
/// Fewer digits are soon the beginning of many ids.
const DIGITS_MIN: usize = 4;

impl Listings {
    /// The services whose name is `text`, in any case, or whose id is or begins with it: 20 at most.
    pub(crate) fn named(&self, text: &str) -> Vec<NamedService> {
        let wanted = text.trim().to_lowercase();
        let digits = wanted.replace('-', "");
        let is_id = digits.len() >= DIGITS_MIN && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        // Nobody's name is another's id.
        let is_whole_id = wanted.parse::<ServiceId>().is_ok();
        let fits = |entry: &Entry| {
            (!is_whole_id && entry.name.trim().to_lowercase() == wanted)
                || is_id && entry.service.to_string().replace('-', "").starts_with(&digits)
        };
        let here = self.iter().filter(|(_, entry)| !entry.tombstone && fits(entry));
        let named = here.map(|(slot, entry)| NamedService {
            service: entry.service,
            name: entry.name.to_string(),
            owner: self.owners.address(entry.owner),
            is_look_alike: self.look_alike(slot).is_some_and(|other| other.older),
        });
        // However many imitate a service, it stands before them.
        let mut named: Vec<NamedService> = named.collect();
        named.sort_by_key(|service| service.is_look_alike);
        named.truncate(NAMED_MAX);
        named
    }
}
