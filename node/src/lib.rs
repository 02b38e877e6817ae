//! The control center: one participant's node of the Farthing network.

pub mod agent_calls;
pub mod alerts;
pub mod approvals;
pub mod backup;
pub mod chain_spec;
pub mod consumer;
pub mod deployment;
pub mod escrows;
pub mod foreign;
pub mod handles;
pub mod history;
pub mod home;
pub mod journal;
pub mod node;
pub mod petnames;
pub mod saved;
pub mod secret;
pub mod secrets;
pub mod settlement;
pub mod starred;
pub mod status;
#[cfg(test)]
mod testing;
pub mod transfers;
