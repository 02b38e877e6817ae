//! The outcome of a search, and of every place in it.

use std::fmt;

use farthing_bridge::report::ReadError;

use crate::owner::intake::{Intake, IntakeError, fetch::Miss, graphql::Endpoint};

/// The results of a search.
#[derive(Debug)]
pub struct Scan {
    /// The address that was searched.
    pub url: String,
    /// Best first.
    pub candidates: Vec<Candidate>,
    /// Every place that was asked.
    pub tried: Vec<Tried>,
}

/// A description that was found.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub found: Found,
    /// Its `origin` is where it lies.
    pub intake: Intake,
}

/// The way in which a description was found. In order of trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Found {
    Given,
    /// In a `Link` header or the catalog.
    Declared,
    WellKnown,
    Page,
    Introspection,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Given => "the address itself",
            Self::Declared => "declared by the server",
            Self::WellKnown => "well-known place",
            Self::Page => "documentation page",
            Self::Introspection => "GraphQL introspection",
        })
    }
}

/// A place that was asked, and what came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    pub url: String,
    pub came: ScanOutcome,
}

/// The outcome of asking one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanOutcome {
    Description,
    /// Another status than success.
    Status(u16),
    /// A page or script; what it names is asked too.
    Page,
    /// The answer that any path gets.
    Anything,
    /// Something that is no description.
    NoDescription,
    /// A description with mistakes.
    Unreadable(String),
    /// GraphQL that does not tell its schema.
    Silent,
    /// No answer, and why.
    Missed(String),
}

impl ScanOutcome {
    pub(in crate::owner::intake) fn of_endpoint(answer: &Result<Endpoint, Miss>) -> Self {
        match answer {
            Ok(Endpoint::Schema(_)) => Self::Description,
            Ok(Endpoint::Unreadable(error)) => Self::Unreadable(first_problem(error)),
            Ok(Endpoint::Silent) => Self::Silent,
            Ok(Endpoint::Other(200..=299)) => Self::NoDescription,
            Ok(Endpoint::Other(status)) => Self::Status(*status),
            Err(miss) => Self::Missed(miss.to_string()),
        }
    }

    pub(in crate::owner::intake) const fn wants_authentication(&self) -> bool {
        matches!(self, Self::Status(401 | 403))
    }
}

impl fmt::Display for ScanOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Description => f.write_str("a description"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Page => f.write_str("a page or script that names no description"),
            Self::Anything => f.write_str("the answer that any path gets"),
            Self::NoDescription => f.write_str("something else than a description"),
            Self::Unreadable(what) => write!(f, "a description that cannot be read ({what})"),
            Self::Silent => f.write_str("GraphQL with introspection switched off"),
            Self::Missed(why) => f.write_str(why),
        }
    }
}

impl Scan {
    /// The best candidate.
    ///
    /// # Errors
    /// [`IntakeError::Silent`] when the only thing found is GraphQL without introspection,
    /// [`IntakeError::NothingFound`] with every place that was asked otherwise.
    pub fn into_best(self) -> Result<Candidate, IntakeError> {
        let Self { url, candidates, tried } = self;
        if let Some(best) = candidates.into_iter().next() {
            return Ok(best);
        }
        match tried.iter().find(|tried| tried.came == ScanOutcome::Silent) {
            Some(silent) => Err(IntakeError::Silent { url: silent.url.clone() }),
            None => Err(IntakeError::NothingFound { url, what: "API", tried }),
        }
    }
}

/// One line for a list of places.
pub(super) fn first_problem(error: &ReadError) -> String {
    error.problems.first().map_or_else(|| error.to_string(), ToString::to_string)
}
