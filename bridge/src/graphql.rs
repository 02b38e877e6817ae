//! GraphQL in: a schema becomes operations, a call becomes one query, an answer becomes a REST body.
//!
//! 1. [`sdl`] and [`introspection`] read a schema into its compiled form, [`schema`].
//! 2. [`describe()`] makes an operation of every root field; [`prune()`] drops what the owner does not offer.
//! 3. [`plan`] turns a call into a request: variables from what was given, and a selection, by default or by the
//!    caller's `fields`.
//! 4. [`answer()`] takes the value out of the upstream's response, or finds the status that its errors stand for.
//!
//! [`generate`] makes up calls, so that others' tools can check the queries.

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
pub mod sdl;
mod selection;
#[cfg(test)]
mod testing;
mod worst;

pub use crate::description::graphql::{self as schema, GraphqlSchema};
pub use answer::{GraphqlAnswer, Unwrap, UpstreamError, Verdict, answer};
pub use describe::describe;
pub use plan::{GraphqlRequest, Planner};
pub use prune::prune;
pub use reading::SchemaReading;
pub use scalars::override_scalar;
