//! Bounds that the network and the HTTP ports share: how many bytes a node holds ([`ByteBudget`], [`SharedBudget`]), whom an address
//! stands for ([`subscriber`], [`range`]), and how many lines others may cause in the log ([`Sparing`]). None of them
//! waits, and none touches a socket.

mod budget;
mod origin;
mod sparing;

pub use budget::{ByteBudget, HeldBytes, SharedBudget};
pub use origin::{range, subscriber};
pub use sparing::Sparing;
