//! What reading a GraphQL schema yields.

use super::Schema;
use crate::report::Report;

/// A schema read, and what became of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaReading {
    pub schema: Schema,
    pub report: Report,
}
