//! A local chain for one test, as `farthing testnet` starts it, and the contracts to test on it.

pub use farthing_testnet::anvil::{Anvil, DEV_PHRASE, find};

pub mod contracts;

/// What anvil calls its chain unless told otherwise.
pub const CHAIN_ID: u64 = Anvil::CHAIN_ID;
