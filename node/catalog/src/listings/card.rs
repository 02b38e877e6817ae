//! The part of a listing that search looks at, in one cache line: a search without words looks at all of them.

use farthing_protocol::{Listing, limits, listing::ServiceKind};

use super::{
    Came, OwnerId,
    text_pool::{TextPool, WordId},
};

/// The part of a listing that filters, counts and most orders need.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Card {
    pub(crate) price_micros: u64,
    /// The time at which it was updated, as its owner says, but not later than it came. Good until the year 2106.
    pub(crate) updated_secs: u32,
    pub(crate) first_seen_secs: u32,
    /// Calls of it that this node paid for and got.
    pub(crate) calls: u32,
    pub(crate) owner: OwnerId,
    pub(crate) category: WordId,
    tags: [WordId; limits::LISTING_TAGS_MAX],
    tags_count: u8,
    pub(crate) kind: ServiceKind,
    /// True if there is a listing here, and it is not a tombstone.
    pub(crate) listed: bool,
    /// True if something of it can be seen without paying.
    pub(crate) samples: bool,
}

impl Card {
    /// The card of a slot without a listing.
    pub(super) const EMPTY: Self = Self {
        price_micros: 0,
        updated_secs: 0,
        first_seen_secs: 0,
        calls: 0,
        owner: 0,
        category: 0,
        tags: [0; limits::LISTING_TAGS_MAX],
        tags_count: 0,
        kind: ServiceKind::Rest,
        listed: false,
        samples: false,
    };

    pub(crate) fn tags(&self) -> &[WordId] {
        &self.tags[..usize::from(self.tags_count)]
    }

    pub(super) fn new(
        listing: &Listing,
        owner: OwnerId,
        came: Came,
        calls: u32,
        words: &mut TextPool,
    ) -> Self {
        let secs = |secs: u64| u32::try_from(secs).unwrap_or(u32::MAX);
        let mut card = Self {
            price_micros: listing.price.micros(),
            updated_secs: secs(listing.updated_secs.min(came.arrived_secs)),
            first_seen_secs: secs(came.first_seen_secs),
            calls,
            owner,
            category: words.add(&listing.category),
            kind: listing.kind,
            listed: !listing.tombstone,
            samples: listing.samples_count > 0,
            ..Self::EMPTY
        };
        for (place, tag) in card.tags.iter_mut().zip(&listing.tags) {
            *place = words.add(tag);
            card.tags_count += 1;
        }
        card
    }

    /// Its words are used once less.
    pub(super) fn release(&self, words: &mut TextPool) {
        words.release(self.category);
        self.tags().iter().for_each(|&tag| words.release(tag));
    }
}
