//! Properties of every value, at every limit, and of everything a stranger may write; and the bytes of fixed examples.

mod bounds;
mod documents;
mod encoding;
#[path = "../support/examples.rs"]
mod examples;
mod golden;
mod rules;
mod signatures;
mod texts;
