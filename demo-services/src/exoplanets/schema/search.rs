//! Find whatever has a name: planets, stars and facilities.

use juniper::{DefaultScalarValue, GraphQLUnion};

use super::Context;
use super::discovery::Facility;
use super::planet::Planet;
use super::star::Star;
use crate::exoplanets::refusal::Refusal;

/// No name in the archive is half as long, in characters.
const TEXT_CHARS_MAX: usize = 100;

/// Something that a search found.
#[derive(Debug, GraphQLUnion)]
#[graphql(context = Context, scalar = DefaultScalarValue)]
pub(super) enum SearchResult {
    Planet(Planet),
    Star(Star),
    Facility(Facility),
}

/// Whatever has `text` in its name, the nearest first: names that begin with it, then short names, then by alphabet.
pub(super) fn search(text: &str, limit: usize, context: &Context) -> Result<Vec<SearchResult>, Refusal> {
    if text.trim().is_empty() || text.chars().count() > TEXT_CHARS_MAX {
        let expected = format!("must have from 1 to {TEXT_CHARS_MAX} characters that are not all spaces");
        return Err(Refusal::BadInput(format!("`text` {expected}")));
    }
    let text = text.trim().to_lowercase();
    let rank = |name: &str| Some((name.to_lowercase().find(&text)?, name.len(), name.to_owned()));
    let catalog = context.look_through()?;
    let planets = catalog.records().iter().filter_map(|record| Some((rank(&record.name)?, Kind::Planet)));
    let stars = catalog.stars().filter_map(|name| Some((rank(name)?, Kind::Star)));
    let facilities = catalog.facilities().filter_map(|(name, _)| Some((rank(name)?, Kind::Facility)));
    let mut found: Vec<_> = planets.chain(stars).chain(facilities).collect();
    found.sort_unstable();
    found.truncate(limit);
    context.spend(found.len())?;
    Ok(found.into_iter().filter_map(|((_, _, name), kind)| kind.open(&name, context)).collect())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Planet,
    Star,
    Facility,
}

impl Kind {
    fn open(self, name: &str, context: &Context) -> Option<SearchResult> {
        match self {
            Self::Planet => {
                context.catalog.find(name).map(|record| SearchResult::Planet(Planet::new(record)))
            }
            Self::Star => Star::find(name, context).map(SearchResult::Star),
            Self::Facility => Some(SearchResult::Facility(Facility::new(name))),
        }
    }
}
