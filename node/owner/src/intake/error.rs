//! Reasons why there is no description: what was asked, what came, and what to do next.

use std::fmt::Write as _;

use farthing_bridge::report::ReadError;
use url::Url;

use super::{fetch::Miss, scan_attempt::ScanAttempt};
use crate::upstream::UpstreamError;

/// The reason that there is no description.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// The address cannot be asked, or a header cannot be sent.
    #[error(transparent)]
    Address(#[from] UpstreamError),
    #[error("{url}: {what}")]
    Unreachable { url: String, what: String },
    #[error("{url}: {what}")]
    Missed { url: String, what: String },
    #[error("{url} answers with status {status}")]
    Status { url: String, status: u16 },
    #[error("{url} is a web page, not an API description")]
    Html { url: String },
    /// Positions are `file:line:column`.
    #[error("{}", unreadable(origin, error))]
    Unreadable { origin: String, error: ReadError },
    #[error("{url} speaks GraphQL but hides its schema: introspection is switched off")]
    Silent { url: String },
    #[error("no {what} description was found at {url}; tried:{}", listed(tried))]
    NothingFound { url: String, what: &'static str, tried: Vec<ScanAttempt> },
}

impl IntakeError {
    /// Suggests what to do next, where there is something.
    pub fn next_step(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable { .. } => Some("check that the server runs and that the address is right"),
            Self::Status { status, .. } => Some(next_after(*status)),
            Self::Html { .. } => Some("give the address of the document, or scan the server"),
            Self::Silent { .. } => Some(
                "switch introspection on, or give the schema as a file (SDL) with the endpoint as upstream",
            ),
            Self::NothingFound { tried, .. } => Some(next_after_search(tried)),
            Self::Address(_) | Self::Missed { .. } | Self::Unreadable { .. } => None,
        }
    }

    /// Tells whether a header of the owner's may be all that is missing.
    pub fn wants_authentication(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(status, 401 | 403),
            Self::NothingFound { tried, .. } => tried.iter().any(|tried| tried.came.wants_authentication()),
            _ => false,
        }
    }

    pub(super) fn missed(url: &Url, miss: &Miss) -> Self {
        let (url, what) = (url.to_string(), miss.to_string());
        match miss {
            Miss::Unreachable(_) | Miss::TimedOut => Self::Unreachable { url, what },
            _ => Self::Missed { url, what },
        }
    }
}

const fn next_after(status: u16) -> &'static str {
    match status {
        401 | 403 => "add the header that it requires, such as an API key",
        404 | 410 => "check the address, or scan the server",
        _ => "check the address and the server's log",
    }
}

fn unreadable(origin: &str, error: &ReadError) -> String {
    let mut text = format!("{origin} cannot be read as {}:", error.format);
    for problem in &error.problems {
        // Writing to a String does not fail.
        let _ = match problem.position {
            Some((line, column)) => write!(text, "\n  {origin}:{line}:{column}: {}", problem.what),
            None => write!(text, "\n  {origin}: {}", problem.what),
        };
    }
    text
}

/// One line for each answer that came: most places of a search answer the same.
fn listed(tried: &[ScanAttempt]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for ScanAttempt { url, came } in tried {
        let came = came.to_string();
        match groups.iter_mut().find(|(other, _)| *other == came) {
            Some((_, urls)) => urls.push(url),
            None => groups.push((came, vec![url])),
        }
    }
    let mut text = String::new();
    for (came, urls) in groups {
        let _ = write!(text, "\n  {came}:");
        for url in urls {
            let _ = write!(text, " {}", without_host(url));
        }
    }
    text
}

/// The path: a search asks one host.
fn without_host(url: &str) -> &str {
    let Some((_, rest)) = url.split_once("://") else { return url };
    rest.find('/').map_or(rest, |at| &rest[at..])
}

fn next_after_search(tried: &[ScanAttempt]) -> &'static str {
    if tried.iter().any(|tried| tried.came.wants_authentication()) {
        return "The server requires authentication; add the header that it needs, such as an API key.";
    }
    "Give the description's file or address, or write the operations into a service file (`farthing api add FILE`)."
}
