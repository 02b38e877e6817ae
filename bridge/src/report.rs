//! A reader's report on an owner's document: bridged, repaired, skipped, and why.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::description::ApiDescription;

/// Findings of one kind that a report keeps; the rest are counted.
pub const FINDINGS_MAX: usize = 200;

/// A document read.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    pub description: ApiDescription,
    pub report: Report,
    /// Base addresses the document names, absolute or relative to where it came from; the first is preferred.
    pub servers: Vec<String>,
    /// The ways to authenticate that the upstream wants, in the document's order.
    pub security: Vec<SecurityScheme>,
}

/// The authentication that the upstream asks for. The owner's node adds it; callers never see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecurityScheme {
    ApiKeyHeader(String),
    ApiKeyQuery(String),
    ApiKeyCookie(String),
    Basic,
    Bearer,
    /// OAuth 2, OpenID Connect and the like, by the document's word.
    Other(String),
}

impl fmt::Display for SecurityScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ApiKeyHeader(name) => write!(f, "an API key in the header {}", plain(name)),
            Self::ApiKeyQuery(name) => write!(f, "an API key in the parameter {}", plain(name)),
            Self::ApiKeyCookie(name) => write!(f, "an API key in the cookie {}", plain(name)),
            Self::Basic => f.write_str("a user name and password (basic)"),
            Self::Bearer => f.write_str("a bearer token"),
            Self::Other(what) => f.write_str(&plain(what)),
        }
    }
}

/// The result of reading a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Such as `OpenAPI 3.0.3`, `Swagger 2.0`, `GraphQL SDL`.
    pub format: String,
    /// Operations that can be called.
    pub bridged: usize,
    /// Oddities that could be put right.
    pub repaired: Findings,
    /// Parts that cannot be offered.
    pub skipped: Findings,
    /// Parts that are offered, with a reservation.
    pub warnings: Findings,
}

/// A bounded list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Findings {
    pub list: Vec<Finding>,
    /// Findings beyond [`FINDINGS_MAX`].
    pub further: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Such as `GET /users/{id}`, `type Planet, line 12`, `#/components/schemas/User`.
    pub place: String,
    /// The problem, and what was made of it.
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

impl Findings {
    /// Adds one, without control characters and not too long: both texts may hold a stranger's words.
    pub fn add(&mut self, place: impl AsRef<str>, what: impl AsRef<str>) {
        if self.list.len() < FINDINGS_MAX {
            self.list.push(Finding { place: plain(place.as_ref()), what: plain(what.as_ref()) });
        } else {
            self.further += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Counts all findings, also those beyond the list.
    pub fn count(&self) -> usize {
        self.list.len() + self.further
    }
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if crate::is_deceptive(c) { ' ' } else { c }).take(300).collect()
}

/// The reason that a document cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{format}: {}", list(problems))]
pub struct ReadError {
    /// The format that it was taken for, such as `OpenAPI`.
    pub format: &'static str,
    /// At least one, 20 at most.
    pub problems: Vec<ReadProblem>,
}

/// One thing that keeps a document from being read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadProblem {
    /// Line and column, counted from 1, where the source has lines.
    pub position: Option<(u64, u64)>,
    /// A text that tells what was found, what was expected, and what to do.
    pub what: String,
}

impl ReadError {
    /// Problems that are kept.
    pub const PROBLEMS_MAX: usize = 20;

    /// One problem without a position.
    pub fn new(format: &'static str, what: impl AsRef<str>) -> Self {
        Self { format, problems: vec![ReadProblem { position: None, what: plain(what.as_ref()) }] }
    }

    /// One problem at a line and column.
    pub fn at(format: &'static str, position: (u64, u64), what: impl AsRef<str>) -> Self {
        Self { format, problems: vec![ReadProblem { position: Some(position), what: plain(what.as_ref()) }] }
    }

    /// The problem that a JSON reader found. The reader's text ends with the position, which stands before it here.
    pub(crate) fn of_json(format: &'static str, what: &str, error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let found = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
        Self::at(format, (line as u64, column as u64), format!("{what}: {found}"))
    }
}

impl fmt::Display for ReadProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

fn list(problems: &[ReadProblem]) -> String {
    let texts: Vec<_> = problems.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
