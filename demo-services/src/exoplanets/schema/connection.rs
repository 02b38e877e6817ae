//! Planets page by page, in the form of the GraphQL Cursor Connections specification.

use std::sync::Arc;

use juniper::{DefaultScalarValue, GraphQLObject};

use super::planet::Planet;
use super::{Context, LIMIT_DEFAULT, bounded, int};
use crate::exoplanets::catalog::Record;
use crate::exoplanets::refusal::Refusal;

/// One page of a list of planets.
#[derive(Debug, GraphQLObject)]
#[graphql(context = Context, scalar = DefaultScalarValue)]
pub(super) struct PlanetConnection {
    /// Number of planets in the whole list.
    total_count: i32,
    /// The planets of this page, each with its cursor.
    edges: Vec<PlanetEdge>,
    /// The planets of this page.
    nodes: Vec<Planet>,
    /// Where this page lies in the list.
    page_info: PageInfo,
}

/// A planet at its place in a list.
#[derive(Debug, GraphQLObject)]
#[graphql(context = Context, scalar = DefaultScalarValue)]
pub(super) struct PlanetEdge {
    /// Names the place; to be used as it is, in `after` or `before`.
    cursor: String,
    /// The planet.
    node: Planet,
}

/// Where a page lies in its list.
#[derive(Debug, GraphQLObject)]
#[graphql(scalar = DefaultScalarValue)]
pub(super) struct PageInfo {
    /// Whether planets follow this page.
    has_next_page: bool,
    /// Whether planets precede this page.
    has_previous_page: bool,
    /// Cursor of the page's first planet; null when the page is empty.
    start_cursor: Option<String>,
    /// Cursor of the page's last planet; null when the page is empty.
    end_cursor: Option<String>,
}

/// The page that a client asked for.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) first: Option<i32>,
    pub(super) after: Option<String>,
    pub(super) last: Option<i32>,
    pub(super) before: Option<String>,
}

impl Page {
    /// Cuts this page out of the whole list.
    pub(super) fn of(&self, list: &[&Arc<Record>], context: &Context) -> Result<PlanetConnection, Refusal> {
        let begin = place("after", self.after.as_deref(), list)?.map_or(0, |place| place + 1);
        let end = place("before", self.before.as_deref(), list)?.unwrap_or(list.len()).max(begin);
        let (begin, end) = match (self.first, self.last) {
            (Some(_), Some(_)) => {
                return Err(Refusal::BadInput("give `first` or `last`, not both".to_owned()));
            }
            (None, Some(last)) => (begin.max(end.saturating_sub(bounded("last", last, 0)?)), end),
            (first, None) => {
                let first = first.map_or(Ok(LIMIT_DEFAULT), |first| bounded("first", first, 0))?;
                (begin, end.min(begin + first))
            }
        };
        let page = &list[begin..end];
        context.spend(page.len())?;
        let cursor_of = |record: &&Arc<Record>| cursor(record);
        Ok(PlanetConnection {
            total_count: int(list.len()),
            edges: page
                .iter()
                .map(|record| PlanetEdge { cursor: cursor(record), node: Planet::new(record) })
                .collect(),
            nodes: page.iter().map(|record| Planet::new(record)).collect(),
            page_info: PageInfo {
                has_next_page: end < list.len(),
                has_previous_page: begin > 0,
                start_cursor: page.first().map(cursor_of),
                end_cursor: page.last().map(cursor_of),
            },
        })
    }
}

/// A cursor names a planet rather than a number, so that it stays right when the filter or the order changes.
fn cursor(record: &Record) -> String {
    format!("row-{}", record.row)
}

/// Finds the position in the list of a cursor's planet.
fn place(name: &str, cursor: Option<&str>, list: &[&Arc<Record>]) -> Result<Option<usize>, Refusal> {
    let Some(cursor) = cursor else { return Ok(None) };
    let row = cursor.strip_prefix("row-").and_then(|row| row.parse().ok());
    let place = row.and_then(|row: usize| list.iter().position(|record| record.row == row));
    place.map(Some).ok_or_else(|| {
        let from = "take it from `cursor`, `startCursor` or `endCursor` of the same list";
        Refusal::BadInput(format!("`{name}` is not a cursor of this list; {from}"))
    })
}
