//! The parts that both halves of a node stand on, and neither owns: the ends of calls ([`call_ends`]) and those that were
//! refused ([`refused`]), what the chain shows ([`chain_view`]) and what gas costs ([`gas`]), room on the disk ([`disk`]), work
//! that blocks ([`blocking`]), a few steps at once ([`at_once`]), the tasks of a half ([`tasks`]), and turns and places by key ([`keyed_mutex`],
//! [`keyed_semaphore`]).
//!
//! Invariant: nothing here waits for the chain or the network. What it tells of the chain, a handle has in memory.

pub mod at_once;
pub mod blocking;
pub mod call_ends;
pub mod chain_view;
pub mod disk;
pub mod gas;
pub mod keyed_mutex;
pub mod keyed_semaphore;
pub mod refused;
pub mod tasks;
