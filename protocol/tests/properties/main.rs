//! What holds for every value, at every limit, and for everything a stranger may write.

mod bounds;
mod documents;
mod encoding;
#[path = "../support/examples.rs"]
#[allow(dead_code, reason = "this program needs a part of the examples")]
mod examples;
mod rules;
mod signatures;
mod texts;
