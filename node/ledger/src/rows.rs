//! The rows of both halves: what is told of them, how they are stored, their keys, and the arithmetic of one row.

pub(crate) mod payee;
pub(crate) mod payer;
