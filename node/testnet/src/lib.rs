//! A whole network on this machine: chain, contracts, nodes, services, as child processes.
//!
//! `farthing testnet` runs it for people; the end-to-end tests run the same code. Everything is started on
//! free ports of the loopback interface and ended when its value is dropped. Where containers run the processes
//! instead (`deploy/compose.testnet.yaml`), [`prepare`] does the rest: contracts, money, services.

pub mod chain;
pub mod demo;
pub mod down;
pub mod prepare;
pub mod process;
pub mod rpc;

pub use chain::LocalChain;
pub use farthing_anvil as anvil;
pub use process::{NodeOptions, NodeProcess, ServiceProcess, launched, program};
