//! The result of reading a GraphQL schema.

use super::GraphqlSchema;
use crate::report::Report;

/// A schema read, and what became of its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaReading {
    pub schema: GraphqlSchema,
    pub report: Report,
}
