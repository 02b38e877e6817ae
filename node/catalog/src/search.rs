//! Searching: a query, and a page of what was found with counts for every way to narrow it down.
//!
//! The index says which slots have the words; then one pass over them filters, counts and sorts by what the
//! listings knows, and only the listings of the page are read. What an owner says of itself, such as when it updated a
//! listing, costs nothing, so it puts nobody first: without words what this node uses comes first, then what it has
//! known for longest, and owners take turns, so that many listings do not fill a page. A facet is counted as if its own filter were not
//! set, so that it shows what choosing otherwise would give.

use std::{
    cmp::{Ordering, Reverse},
    collections::HashMap,
};

use farthing_protocol::{Address, Listing, ServiceId, Usdc, listing::ServiceKind};

use crate::listings::{Card, Listings, LookAlike, Slot, State};

/// Characters of a query's words that are looked at.
pub const WORDS_CHARS_MAX: usize = 256;
pub const PAGE_HITS_MAX: usize = 100;
/// The furthest that one can turn the pages into the hits; beyond, a filter is the better way.
pub const OFFSET_MAX: usize = 10_000;
/// Values of one facet, the most frequent first.
pub const FACET_VALUES_MAX: usize = 30;

/// Upper ends of the price ranges, in micro-USDC; the last range has none.
const PRICE_BANDS_MICROS: [u64; 5] = [0, 1_000, 10_000, 100_000, 1_000_000];

/// The criteria of a search. The default finds everything, what this node uses first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query {
    /// Words in any order; all must occur. The last may be unfinished.
    pub words: String,
    pub category: Option<String>,
    pub tag: Option<String>,
    pub kind: Option<ServiceKind>,
    pub price_max: Option<Usdc>,
    /// Only services whose owner is there.
    pub online: bool,
    /// Only services with free samples.
    pub samples: bool,
    pub owner: Option<Address>,
    pub sort: Sort,
    pub offset: usize,
    /// Hits wanted; none means [`PAGE_HITS_MAX`].
    pub limit: Option<usize>,
}

/// The order of the hits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Best match first; without words what this node bought most calls of, then what has been here longest, by turns
    /// of their owners.
    #[default]
    Relevance,
    /// Cheapest first.
    Price,
    /// Last updated first, by turns of their owners; nothing was updated later than it came.
    Newest,
    /// From A to Z.
    Name,
}

/// Hits and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    pub hits: Vec<Hit>,
    /// The number of hits on all pages.
    pub total: usize,
    pub facets: Facets,
}

/// A listing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    pub listing: Listing,
    pub state: State,
    /// A warning: people may take this listing for another one.
    pub look_alike: Option<LookAlike>,
}

/// The number of hits that there would be with each choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facets {
    pub categories: Vec<(String, usize)>,
    pub tags: Vec<(String, usize)>,
    pub kinds: Vec<(ServiceKind, usize)>,
    pub prices: Vec<PriceBand>,
    /// Services whose owner is there.
    pub online: usize,
    /// Services with free samples.
    pub samples: usize,
}

/// A range of prices and how many services are in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceBand {
    /// The end of the range below, which is not in this one; none is the first range.
    pub above: Option<Usdc>,
    /// The highest price of the range, inclusive; none is the last range.
    pub up_to: Option<Usdc>,
    pub count: usize,
}

/// The result of the pass over the listings.
#[derive(Debug)]
pub(crate) struct ListingMatches {
    /// Of the page, in order.
    pub(crate) hits: Vec<(ServiceId, State, Option<LookAlike>)>,
    pub(crate) total: usize,
    pub(crate) facets: Facets,
}

/// Filters that a listing can fail, as bits.
const CATEGORY: u8 = 1;
const TAG: u8 = 2;
const KIND: u8 = 4;
const PRICE: u8 = 8;
const ONLINE: u8 = 16;
const SAMPLES: u8 = 32;

/// Filters, counts and sorts. `matches` are the slots that have the words; none means that every slot does.
pub(crate) fn select(
    listings: &Listings,
    query: &Query,
    matches: Option<Vec<(Slot, f32)>>,
    now_secs: u64,
) -> ListingMatches {
    let mut pass = Pass::new(listings, query, matches.is_some(), now_secs);
    let by_score = query.sort == Sort::Relevance;
    match matches {
        None => (0..).zip(listings.cards()).for_each(|(slot, card)| pass.look_at(slot, card, 0.0)),
        Some(matches) => {
            for (slot, score) in matches {
                if let Some(card) = listings.cards().get(slot as usize) {
                    pass.look_at(slot, card, if by_score { score } else { 0.0 });
                }
            }
        }
    }
    pass.finish()
}

struct Candidate {
    slot: Slot,
    owner: u32,
    /// Lower comes first.
    rank: u128,
}

struct Pass<'a> {
    listings: &'a Listings,
    query: &'a Query,
    states: Vec<State>,
    /// A category or tag that no listing has matches nothing.
    category: Option<Option<u32>>,
    tag: Option<Option<u32>>,
    owner: Option<Option<u32>>,
    has_words: bool,
    candidates: Vec<Candidate>,
    categories: Vec<u32>,
    tags: Vec<u32>,
    kinds: [usize; 2],
    prices: [usize; PRICE_BANDS_MICROS.len() + 1],
    online: usize,
    samples: usize,
}

impl<'a> Pass<'a> {
    fn new(listings: &'a Listings, query: &'a Query, has_words: bool, now_secs: u64) -> Self {
        let word = |text: &Option<String>| text.as_ref().map(|text| listings.words.find(text));
        Self {
            states: listings.owners.states(now_secs),
            category: word(&query.category),
            tag: word(&query.tag),
            owner: query.owner.map(|owner| listings.owners.find(owner).map(|(id, _)| id)),
            has_words,
            candidates: Vec::new(),
            categories: vec![0; listings.words.bound()],
            tags: vec![0; listings.words.bound()],
            kinds: [0; 2],
            prices: [0; PRICE_BANDS_MICROS.len() + 1],
            online: 0,
            samples: 0,
            listings,
            query,
        }
    }

    fn look_at(&mut self, slot: Slot, card: &Card, score: f32) {
        if !card.listed || self.owner.is_some_and(|owner| owner != Some(card.owner)) {
            return;
        }
        let state = self.states[card.owner as usize];
        if state == State::Dormant {
            return;
        }
        let failed = self.failed(card, state);
        // Counted where no other filter stands in the way.
        let counts = |facet: u8| failed & !facet == 0;
        if counts(CATEGORY) {
            self.categories[card.category as usize] += 1;
        }
        if counts(TAG) {
            card.tags().iter().for_each(|&tag| self.tags[tag as usize] += 1);
        }
        if counts(KIND) {
            self.kinds[usize::from(card.kind == ServiceKind::Graphql)] += 1;
        }
        if counts(PRICE) {
            self.prices[PRICE_BANDS_MICROS.partition_point(|&up_to| up_to < card.price_micros)] += 1;
        }
        if counts(ONLINE) && state == State::Live {
            self.online += 1;
        }
        if counts(SAMPLES) && card.samples {
            self.samples += 1;
        }
        if failed == 0 {
            let rank = self.rank(slot, card, score);
            self.candidates.push(Candidate { slot, owner: card.owner, rank });
        }
    }

    fn failed(&self, card: &Card, state: State) -> u8 {
        let query = self.query;
        let mut failed = 0;
        if self.category.is_some_and(|category| category != Some(card.category)) {
            failed |= CATEGORY;
        }
        if self.tag.is_some_and(|tag| !tag.is_some_and(|tag| card.tags().contains(&tag))) {
            failed |= TAG;
        }
        if query.kind.is_some_and(|kind| kind != card.kind) {
            failed |= KIND;
        }
        if query.price_max.is_some_and(|max| card.price_micros > max.micros()) {
            failed |= PRICE;
        }
        if query.online && state != State::Live {
            failed |= ONLINE;
        }
        if query.samples && !card.samples {
            failed |= SAMPLES;
        }
        failed
    }

    /// Lower comes first. Bits 64 to 96 are the turns of owners where those count.
    fn rank(&self, slot: Slot, card: &Card, score: f32) -> u128 {
        // Scores are not negative, and the bits of such floats rise with them.
        let best = u32::MAX - score.max(0.0).to_bits();
        let most_used = u32::MAX - card.calls;
        let rank = |first: u64, then: u32, last: u32| {
            u128::from(first) << 64 | u128::from(then) << 32 | u128::from(last)
        };
        match self.query.sort {
            Sort::Relevance if self.has_words => rank(best.into(), most_used, card.first_seen_secs),
            Sort::Relevance => rank(u64::from(most_used) << 32, card.first_seen_secs, 0),
            Sort::Price => rank(card.price_micros, most_used, card.first_seen_secs),
            Sort::Newest => rank(0, u32::MAX - card.updated_secs, 0),
            Sort::Name => self.listings.get(slot).map_or(u128::MAX, |entry| entry.name_begins),
        }
    }

    /// Gives owners their turns: the best of each, then the second of each, and so on.
    fn take_turns(&mut self) {
        let by_turns = match self.query.sort {
            Sort::Relevance => !self.has_words,
            Sort::Newest => true,
            Sort::Price | Sort::Name => false,
        };
        if !by_turns {
            return;
        }
        self.candidates.sort_unstable_by_key(|candidate| (candidate.rank, candidate.slot));
        let mut turns = vec![0_u32; self.states.len()];
        for candidate in &mut self.candidates {
            let turn = &mut turns[candidate.owner as usize];
            candidate.rank |= u128::from(*turn) << 64;
            *turn += 1;
        }
    }

    fn finish(mut self) -> ListingMatches {
        self.take_turns();
        let total = self.candidates.len();
        let start = if self.query.offset > OFFSET_MAX { total } else { self.query.offset.min(total) };
        let limit = self.query.limit.unwrap_or(PAGE_HITS_MAX).min(PAGE_HITS_MAX);
        let end = (start + limit).min(total);
        let listings = self.listings;
        let by_name = self.query.sort == Sort::Name;
        let order = |one: &Candidate, other: &Candidate| {
            let names =
                || if by_name { compare_names(listings, one.slot, other.slot) } else { Ordering::Equal };
            one.rank.cmp(&other.rank).then_with(names).then(one.slot.cmp(&other.slot))
        };
        if end < total {
            self.candidates.select_nth_unstable_by(end, order);
            self.candidates.truncate(end);
        }
        self.candidates.sort_unstable_by(order);
        let hit = |candidate: &Candidate| {
            let entry = listings.get(candidate.slot)?;
            let state = self.states[entry.owner as usize];
            Some((entry.service, state, listings.look_alike(candidate.slot)))
        };
        ListingMatches {
            hits: self.candidates[start..].iter().filter_map(hit).collect(),
            total,
            facets: Facets {
                categories: values(listings, &self.categories),
                tags: values(listings, &self.tags),
                kinds: [ServiceKind::Rest, ServiceKind::Graphql].into_iter().zip(self.kinds).collect(),
                prices: price_bands(self.prices),
                online: self.online,
                samples: self.samples,
            },
        }
    }
}

fn compare_names(listings: &Listings, one: Slot, other: Slot) -> Ordering {
    let letters = |slot| listings.get(slot).map(|entry| entry.name.chars().flat_map(char::to_lowercase));
    match (letters(one), letters(other)) {
        (Some(one), Some(other)) => one.cmp(other),
        _ => Ordering::Equal,
    }
}

fn values(listings: &Listings, counts: &[u32]) -> Vec<(String, usize)> {
    let mut counted: Vec<(Reverse<u32>, u32)> = counts
        .iter()
        .zip(0..)
        .filter(|(count, _)| **count > 0)
        .map(|(&count, id)| (Reverse(count), id))
        .collect();
    if counted.len() > FACET_VALUES_MAX {
        counted.select_nth_unstable(FACET_VALUES_MAX);
        counted.truncate(FACET_VALUES_MAX);
    }
    let mut values: Vec<(String, usize)> = counted
        .into_iter()
        .map(|(Reverse(count), id)| (listings.words.text(id).to_string(), count as usize))
        .filter(|(text, _)| !text.is_empty())
        .collect();
    values.sort_unstable_by(|(one, a), (other, b)| b.cmp(a).then_with(|| one.cmp(other)));
    values
}

fn price_bands(counts: [usize; PRICE_BANDS_MICROS.len() + 1]) -> Vec<PriceBand> {
    let ends = PRICE_BANDS_MICROS.into_iter().map(|micros| Some(Usdc::from_micros(micros))).chain([None]);
    let starts = [None].into_iter().chain(ends.clone());
    starts.zip(ends).zip(counts).map(|((above, up_to), count)| PriceBand { above, up_to, count }).collect()
}

/// Puts the listings that were read to what was found.
pub(crate) fn page(found: ListingMatches, listings: Vec<Option<Listing>>) -> Page {
    let mut listings: HashMap<ServiceId, Listing> =
        listings.into_iter().flatten().map(|listing| (listing.service, listing)).collect();
    let hits = found.hits.into_iter().filter_map(|(service, state, look_alike)| {
        Some(Hit { listing: listings.remove(&service)?, state, look_alike })
    });
    Page { hits: hits.collect(), total: found.total, facets: found.facets }
}
