//! Options of a catalog that is opened: whose it is, and every bound with its reason.

use farthing_protocol::{Address, limits, shards::Shards};

/// Listings of a catalog, unless its owner wants more of them.
const LISTINGS_MAX: usize = 200_000;

/// The setup of a catalog.
#[derive(Clone, Debug)]
pub struct Options {
    /// The network's name; listings of others are refused.
    pub network: String,
    /// This node's wallet: its listings are always live and never leave.
    pub own: Address,
    /// Listings of owners in others leave, unless this node has to do with them.
    pub shards: Shards,
    pub limits: Limits,
}

impl Options {
    /// Of all shards, with the limits of the network.
    pub fn new(network: impl Into<String>, own: Address) -> Self {
        Self { network: network.into(), own, shards: Shards::ALL, limits: Limits::default() }
    }
}

/// Bounds of a catalog. The defaults are the network's; tests set small ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Listings kept in all: twice what the network is laid out for, about 250 bytes of memory each.
    pub listings_max: usize,
    /// Of these, listings of owners whose node record was never seen: a fifth, so that invented owners cannot
    /// fill a catalog.
    pub strangers_max: usize,
    /// After which an owner whose listings are here is no newcomer any more: longer than a flood is paid attention
    /// to, shorter than a business takes to be known.
    pub settled_secs: u64,
    /// Listings of one owner, and as many tombstones.
    pub per_owner_max: usize,
    /// Owners remembered without a listing, because their record may arrive first.
    pub owners_without_listings_max: usize,
    /// Versions of one listing that may arrive in a row: an owner that prepares its offer changes it often.
    pub updates_burst: u32,
    /// After which one more is taken each time this passes.
    pub update_every_secs: u64,
    /// New objects a minute that one neighbour may send unasked, and the burst it starts with.
    pub pushed_per_minute: u32,
    /// New objects a neighbour may give after this node said which it wants, at once; a sixtieth of it is
    /// added each minute. Checking 10,000 signatures takes two seconds of one core.
    pub given_burst: u32,
    /// New objects this node takes from one neighbour it asked, at once; a sixtieth of it is added each minute.
    /// A newcomer learns a whole network this way.
    pub fetched_burst: u32,
    /// The most that a neighbour's sessions may make this node compare at once, in units of 16 KiB; a session's first
    /// comparison counts as eight at least, and a sixteenth is added each minute. Two catalogs of 200,000 listings
    /// without one in common take a quarter of it.
    pub compared_burst: u32,
    /// The most that they may make it read and pack at once, in the same units; a thirty-second part is added each
    /// minute. As much as 200,000 listings of 1,300 bytes are.
    pub packed_burst: u32,
    /// Neighbours whose budgets are remembered; four times the connections of a node.
    pub sources_max: usize,
    /// Refused and superseded versions remembered so that they are not fetched again: about 4 MB.
    pub refused_max: usize,
    /// The time that a listing is still shown after its owner's record expired.
    pub greyed_secs: u64,
    /// The time that it is kept after its owner's record expired.
    pub kept_secs: u64,
    /// Content kept on disk.
    pub content_bytes_max: u64,
}

impl Limits {
    /// For so many listings: what neighbours may bring and ask for goes with them.
    pub fn for_listings(listings_max: usize) -> Self {
        let defaults = Self::default();
        let times = u32::try_from(listings_max.div_ceil(LISTINGS_MAX)).unwrap_or(u32::MAX);
        Self {
            listings_max,
            strangers_max: listings_max / 5,
            owners_without_listings_max: listings_max.div_ceil(10),
            fetched_burst: defaults.fetched_burst.saturating_mul(times),
            compared_burst: defaults.compared_burst.saturating_mul(times),
            packed_burst: defaults.packed_burst.saturating_mul(times),
            ..defaults
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            listings_max: LISTINGS_MAX,
            strangers_max: 40_000,
            settled_secs: 7 * 24 * 3600,
            per_owner_max: limits::LISTINGS_PER_OWNER_MAX,
            owners_without_listings_max: 20_000,
            updates_burst: 20,
            update_every_secs: 600,
            pushed_per_minute: 50,
            given_burst: 10_000,
            fetched_burst: 200_000,
            compared_burst: 4_096,
            packed_burst: 16_384,
            sources_max: 1024,
            refused_max: 64 * 1024,
            greyed_secs: 7 * 24 * 3600,
            kept_secs: 30 * 24 * 3600,
            content_bytes_max: 256 * 1024 * 1024,
        }
    }
}
