//! GraphQL in: a schema becomes operations, a call becomes one query, an answer becomes a REST body.
//!
//! Reading order: [`schema`] is the compiled form that everything else works on.

pub mod answer;
mod check;
mod coerce;
mod describe;
mod draft;
mod fields;
pub mod generate;
pub mod introspection;
mod judge;
pub mod plan;
pub mod print;
mod prune;
mod reach;
pub mod reading;
pub mod scalars;
pub mod schema;
pub mod sdl;
mod selection;

pub use answer::{Answer, Unwrap, UpstreamError, Verdict, answer};
pub use describe::describe;
pub use plan::{Planner, Request};
pub use prune::prune;
pub use reading::SchemaReading;
pub use scalars::override_scalar;
pub use schema::Schema;
