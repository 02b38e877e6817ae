//! The listings of the network, as one node keeps them: stored, searched, reconciled with neighbours.
//!
//! Reading order: `catalog` (the handle: open, offer, ask) → `verdict`, `options`, `budget` (what is taken, and
//! how much) → `listings` (everything known in memory, and the rules) → `writer`, `store`, `shared` (the one thread
//! that writes, and its file) → `search`, `index` → `sync` (reconciliation) → `content` (details by hash).
//!
//! The truth is `catalog.redb`, the signed listings as their owners published them. The index is derived from
//! it, the content is a cache, and the memory is filled from it at the start. All of it can be lost: the network
//! has it. The crate knows no network; callers bring the bytes and the clock.

mod budget;
mod catalog;
mod content;
mod error;
mod index;
mod listings;
mod options;
mod picture;
mod search;
mod shared;
mod store;
mod sync;
mod verdict;
mod writer;

pub use catalog::{Catalog, CatalogEntry, Counts, Failing, OpenedCatalog};
pub use error::{CatalogError, Result};
pub use listings::{LookAlike, NAMED_MAX, NameLook, NamedService, State};
pub use options::{Limits, Options};
pub use search::{
    FACET_VALUES_MAX, Facets, Hit, OFFSET_MAX, PAGE_HITS_MAX, Page, PriceBand, Query, Sort, WORDS_CHARS_MAX,
};
pub use sync::{Initiator, Responder, SESSION_MESSAGES_MAX, SESSION_SECS_MAX, Step, Summary, SyncError};
pub use verdict::{Neighbour, Reason, Source, Verdict};
