//! Bounds that the network and the HTTP ports share: how many bytes a node holds ([`ByteBudget`], [`SharedBudget`]), whom an address
//! stands for ([`subscriber`], [`range`]), which addresses are near ([`is_near`]), how many lines others may cause in the log
//! ([`LineLimiter`]), and how long they are told to wait ([`wait_secs`]). None of them waits, and none touches a socket.

mod budget;
mod line_limiter;
mod near;
mod origin;
mod wait;

pub use budget::{ByteBudget, HeldBytes, SharedBudget};
pub use line_limiter::LineLimiter;
pub use near::{is_localhost, is_near, is_near_host};
pub use origin::{range, subscriber};
pub use wait::wait_secs;
