//! Reasons to refuse a call, free: everything that is wrong with it at once, with the nearest right thing.

use crate::{cut, routing::RouteError};

/// The text of one problem: a page. Names in it may be megabytes of a stranger's.
const PROBLEM_BYTES_MAX: usize = 8 * 1024;

/// The reason that a call cannot be planned. Nothing is priced or sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Route(#[from] RouteError),
    /// At least one.
    #[error("{}", list(.0))]
    Problems(Vec<Problem>),
}

/// One thing that is wrong with a call's parameters or body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The missing names at once; of one value at most [`PROBLEMS_MAX`](crate::limits::PROBLEMS_MAX).
    #[error("missing {}", names(.0))]
    Missing(Vec<String>),
    #[error("`{name}` is not a parameter of this operation{}", suggestion(nearest.as_deref(), known))]
    Unknown { name: String, nearest: Option<String>, known: Vec<String> },
    /// `name` was given in two places, such as path and `params`, or `params` and `body`.
    #[error("`{name}` is given twice: {places}; give it once")]
    Twice { name: String, places: &'static str },
    /// `name` may be a path into a value: `filter.mass.gt`, `ids[2]`, `body.name`.
    #[error("`{name}` is `{value}`, expected {expected}{}", did_you_mean(nearest.as_deref()))]
    Value { name: String, value: String, expected: String, nearest: Option<String> },
    /// A member of a value that does not exist.
    #[error("`{name}` has no `{member}`{}", suggestion(nearest.as_deref(), known))]
    NoMember { name: String, member: String, nearest: Option<String>, known: Vec<String> },
    /// The body as a whole, or a selection: a sentence that names its subject.
    #[error("{0}")]
    Other(String),
}

impl Problem {
    /// A name that the caller chose and the operation does not declare.
    pub(crate) fn ambiguous(name: &str) -> Self {
        let name = crate::shown(name);
        Self::Other(format!("some servers read `{name}` as another name or method; leave it out"))
    }

    /// A value that is not what was expected. `value` is shortened.
    pub fn value(name: &str, value: &str, expected: impl Into<String>) -> Self {
        Self::Value {
            name: crate::shown(name),
            value: crate::shown(value),
            expected: expected.into(),
            nearest: None,
        }
    }
}

fn list(problems: &[Problem]) -> String {
    let texts: Vec<_> = problems.iter().map(|problem| cut::beginning(problem, PROBLEM_BYTES_MAX).0).collect();
    texts.join("; ")
}

fn names(names: &[String]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!("; did you mean `{nearest}`?"))
}

fn suggestion(nearest: Option<&str>, known: &[String]) -> String {
    match (nearest, known) {
        (Some(nearest), _) => did_you_mean(Some(nearest)),
        (None, []) => "; it takes none".into(),
        (None, known) => format!("; it takes {}", names(known)),
    }
}
