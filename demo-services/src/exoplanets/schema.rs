//! The GraphQL schema: what can be asked, and how it is answered from the [`PlanetCatalog`].
//!
//! The macros make the schema from these types; a description in it is the documentation comment here. Resolvers
//! only look up, filter and sort in memory.

mod body;
mod choice;
mod connection;
mod discovery;
mod filter;
mod mutation;
mod note;
mod order;
mod planet;
mod query;
mod search;
mod sky;
mod star;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use juniper::{EmptySubscription, RootNode};

pub(super) use self::note::Notes;

// The types of the graph name each other, as its edges do; they find each other here.
use self::body::CelestialBodyValue;
use self::mutation::Mutation;
use self::planet::Planet;
use self::query::Query;
use self::star::Star;
use super::catalog::PlanetCatalog;
use super::refusal::Refusal;

pub(super) type Schema = RootNode<Query, Mutation, EmptySubscription<Context>>;

/// Elements of a list when the client does not say how many.
const LIMIT_DEFAULT: usize = 100;
/// With every field of a planet this is about 1.5 MB; more should be asked for page by page.
const LIMIT_MAX: usize = 1_000;

/// Comparing all records takes as long as answering this many planets with a few fields each. Without it, a request of
/// five hundred searches that find nothing would be cheap.
const LOOK_THROUGH_ELEMENTS: usize = 50;

/// Deeper than the standard introspection query nests (13), and than any question about planets.
const DEPTH_MAX: usize = 24;
/// More than the standard introspection query's, with its fragments expanded.
const DOCUMENT_FIELDS_MAX: usize = 1_000;

pub(super) fn schema() -> Schema {
    Schema::new(Query, Mutation, EmptySubscription::new())
        .limit_depth(DEPTH_MAX)
        .limit_fields(DOCUMENT_FIELDS_MAX)
}

/// The data of a request that its resolvers see.
#[derive(Debug)]
pub(super) struct Context {
    catalog: Arc<PlanetCatalog>,
    notes: Arc<Notes>,
    /// Number of list elements that this answer may still have.
    elements_left: AtomicUsize,
}

impl juniper::Context for Context {}

impl Context {
    pub(super) fn new(catalog: Arc<PlanetCatalog>, notes: Arc<Notes>, elements_max: usize) -> Self {
        Self { catalog, notes, elements_left: AtomicUsize::new(elements_max) }
    }

    /// The catalog, for a question that compares every record with what was asked.
    fn look_through(&self) -> Result<&PlanetCatalog, Refusal> {
        self.spend(LOOK_THROUGH_ELEMENTS)?;
        Ok(&self.catalog)
    }

    /// Takes the elements of a list that is about to be answered from what this answer may have. Whoever resolves
    /// to a list calls this first: stars have planets, which have stars, and only this bounds the answer.
    fn spend(&self, elements: usize) -> Result<(), Refusal> {
        // One request is resolved by one thread; the atomic is only there because juniper wants `Sync`.
        let left = self.elements_left.load(Ordering::Relaxed);
        let rest = left.checked_sub(elements).ok_or_else(|| {
            let more = "ask for fewer elements (`limit`, `first`), fewer fields or fewer things at once";
            Refusal::TooComplex(format!("this request is too expensive; {more}"))
        })?;
        self.elements_left.store(rest, Ordering::Relaxed);
        Ok(())
    }
}

/// Checks a number of elements that a client asked for.
fn bounded(name: &str, asked: i32, least: usize) -> Result<usize, Refusal> {
    usize::try_from(asked).ok().filter(|asked| (least..=LIMIT_MAX).contains(asked)).ok_or_else(|| {
        Refusal::BadInput(format!(
            "`{name}` must be a whole number from {least} to {LIMIT_MAX}; it was {asked}"
        ))
    })
}

/// A count as GraphQL's `Int`.
fn int(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}
