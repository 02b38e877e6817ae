//! Reconciliation: the parts that sessions about listings ([`crate::sync`]) and about node records ([`crate::agreement`]) have in
//! common. Two sides compare what they have, one with a [`Comparison`], the other with [`Answers`]; then signed documents travel, a
//! [`Batch`] a frame.
//!
//! Invariant: a comparison ends, and what a peer sends takes no more memory than a bound of ours, whatever it says about itself.

mod batch;
mod comparison;
mod picture;

pub use batch::{Batch, compress, unpack};
pub use comparison::{Answers, Comparison, Difference, ROUNDS_MAX};
pub use picture::{Item, Picture};

/// The reason that a session cannot go on with what a peer sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReconciliationError {
    #[error("{0}")]
    Malformed(String),
    #[error("the comparison takes more rounds than it may")]
    TooLong,
}

impl ReconciliationError {
    fn malformed<E: std::fmt::Display>(error: E) -> Self {
        Self::Malformed(error.to_string())
    }
}
