//! The control center: one participant's node of the Farthing network.

pub mod alerts;
pub mod backup;
pub mod call_ends;
pub mod catalog;
pub mod chain_view;
pub mod consumer;
pub mod disk;
pub mod gas;
pub mod gateway;
pub mod handles;
pub mod history;
pub mod home;
mod journal;
mod keyed_mutex;
mod keyed_semaphore;
pub mod node;
pub mod owner;
pub mod secret;
pub mod settlement;
pub mod status;
