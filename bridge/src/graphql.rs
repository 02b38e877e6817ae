//! GraphQL in: a schema becomes operations, a call becomes one query, an answer becomes a REST body.
//!
//! Reading order: [`schema`] is the compiled form that everything else works on.

pub mod schema;

pub use schema::Schema;
