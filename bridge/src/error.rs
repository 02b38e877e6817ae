//! Faults of a description.

use crate::routing::TemplateError;

/// A fault that keeps a description from being offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("{operation}: the parameter `{name}` {reason}")]
    Parameter { operation: String, name: String, reason: &'static str },
    #[error("{operation} {reason}")]
    Operation { operation: String, reason: &'static str },
    #[error("the schema `{name}` {reason}")]
    Schema { name: String, reason: &'static str },
    #[error("it has {found} {what}; at most {max} can be offered")]
    TooMany { what: &'static str, found: usize, max: usize },
    #[error("GraphQL: {0}")]
    Graphql(String),
}
