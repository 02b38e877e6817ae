//! GraphQL in: a schema becomes operations, a call becomes one query, an answer becomes a REST body.
//!
//! Reading order: [`schema`] is the compiled form that everything else works on.

mod draft;
pub mod introspection;
mod judge;
pub mod print;
mod reach;
pub mod reading;
pub mod scalars;
pub mod schema;
pub mod sdl;

pub use reading::SchemaReading;
pub use scalars::override_scalar;
pub use schema::Schema;
