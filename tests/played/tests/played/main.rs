//! A played chain: it is as anvil is, and the node's own watcher and writer end with its money, whatever its endpoints do.

#[path = "../../../../protocol/tests/support/random.rs"]
mod random;

mod agreement;
mod faults;
mod node;
mod people;
mod pool;
mod together;
