//! Services are found without a server in the middle, and looked at without paying.
//!
//! Nodes are processes without money and without a chain: whatever happens here costs nothing.

mod clocks;
mod commands;
mod gossip;
mod networks;
mod preview;
mod search;
mod spread;
mod told;
