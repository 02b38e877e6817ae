//! Services are found without a server in the middle, and looked at without paying.
//!
//! Nodes are processes without money and without a chain: whatever happens here costs nothing.

mod bombs;
mod clocks;
mod commands;
mod floods;
mod gossip;
mod knocking;
mod networks;
mod preview;
mod search;
mod spread;
mod stranger;
mod told;
