//! Bounds that the network and the HTTP ports share: how many bytes a node holds ([`ByteBudget`]), and whom an address
//! stands for ([`subscriber`], [`range`]). Neither waits, and neither touches a socket.

mod budget;
mod origin;

pub use budget::{ByteBudget, HeldBytes};
pub use origin::{range, subscriber};
