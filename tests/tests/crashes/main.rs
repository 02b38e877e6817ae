//! Crashes and faults with real processes: whatever ends or fails, no money is lost, made or taken twice.
//!
//! Every test ends with the books of both nodes and the chain agreeing to the last micro.

#[path = "../../../protocol/tests/support/random.rs"]
mod random;

mod chain_down;
mod disk;
mod environment;
mod kill_points;
mod load;
mod outages;
mod start;
mod support;
mod syscalls;
mod transactions;
