//! The key that neighbours are counted by.

use std::net::IpAddr;

use farthing_protocol::Address;

/// The address range of a neighbour, or else its wallet: whoever has one wallet can have any number, but not as many ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NeighbourOrigin {
    Range(IpAddr),
    Wallet(Address),
}

impl NeighbourOrigin {
    /// Of a neighbour in this range, unless that is private.
    pub(crate) fn of(wallet: Address, range: Option<IpAddr>) -> Self {
        range.map_or(Self::Wallet(wallet), Self::Range)
    }
}
