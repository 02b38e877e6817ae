//! The control center: one participant's node of the Farthing network.

pub mod config;
pub mod files;
pub mod lock;
pub mod secret;
