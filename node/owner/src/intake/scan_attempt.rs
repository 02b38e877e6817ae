//! Places that were asked for a description, and what came from each.

use std::fmt;

use farthing_bridge::report::ReadError;

use super::{fetch::Miss, graphql::Endpoint};

/// A place that was asked, and what came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanAttempt {
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
    pub(super) fn of_endpoint(answer: &Result<Endpoint, Miss>) -> Self {
        match answer {
            Ok(Endpoint::Schema(_)) => Self::Description,
            Ok(Endpoint::Unreadable(error)) => Self::Unreadable(first_problem(error)),
            Ok(Endpoint::Silent) => Self::Silent,
            Ok(Endpoint::Other(200..=299)) => Self::NoDescription,
            Ok(Endpoint::Other(status)) => Self::Status(*status),
            Err(miss) => Self::Missed(miss.to_string()),
        }
    }

    pub(super) const fn wants_authentication(&self) -> bool {
        matches!(self, Self::Status(401 | 403))
    }
}

impl fmt::Display for ScanOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Description => f.write_str("a description"),
            Self::Status(status) => write!(f, "status {status}"),
            Self::Page => f.write_str("a page or script without a link to a description"),
            Self::Anything => f.write_str("the same answer as for any path"),
            Self::NoDescription => f.write_str("something else than a description"),
            Self::Unreadable(what) => write!(f, "a description that cannot be read ({what})"),
            Self::Silent => f.write_str("GraphQL with introspection switched off"),
            Self::Missed(why) => f.write_str(why),
        }
    }
}

/// One line for a list of places.
pub(super) fn first_problem(error: &ReadError) -> String {
    error.problems.first().map_or_else(|| error.to_string(), ToString::to_string)
}
