//! The rows of both halves: what is told of them, how they are stored, their keys, and the arithmetic of one row.

pub(crate) mod figures;
pub(crate) mod payee;
pub(crate) mod payer;

use minicbor::{Decode, Encode};

/// On which side of a channel this node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum Side {
    /// It pays.
    #[n(0)]
    Payer,
    /// It is paid.
    #[n(1)]
    Payee,
}

impl Side {
    /// The stable number in keys.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}
