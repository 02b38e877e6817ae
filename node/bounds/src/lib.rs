//! Bounds that the network and the HTTP ports share: how many bytes a node holds ([`ByteBudget`], [`SharedBudget`]), whom an address
//! stands for ([`subscriber`], [`range`]), which addresses are near ([`is_near`]), and how many lines others may cause in the log
//! ([`Sparing`]). None of them waits, and none touches a socket.

mod budget;
mod near;
mod origin;
mod sparing;

pub use budget::{ByteBudget, HeldBytes, SharedBudget};
pub use near::{is_localhost, is_near, is_near_host};
pub use origin::{range, subscriber};
pub use sparing::Sparing;
