//! The control socket: how the command line talks to the running node.
//!
//! HTTP/1 with JSON over a Unix socket of mode 0600 in the data folder: whoever may read the wallet's folder
//! may command the node, and nobody else can reach it. [`types`] is the contract of both sides.

mod eth;
pub mod routes;
pub mod types;
