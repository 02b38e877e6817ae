//! The outcome of a search.

use std::fmt;

use crate::intake::{
    Intake, IntakeError,
    scan_attempt::{ScanAttempt, ScanOutcome},
};

/// The results of a search.
#[derive(Debug)]
pub struct Scan {
    /// The address that was searched.
    pub url: String,
    /// Best first.
    pub candidates: Vec<Candidate>,
    /// Every place that was asked.
    pub tried: Vec<ScanAttempt>,
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
