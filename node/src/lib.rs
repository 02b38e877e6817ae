//! The control center: one participant's node of the Farthing network.

pub mod config;
pub mod control;
pub mod files;
pub mod lock;
pub mod secret;
pub mod wallet;
