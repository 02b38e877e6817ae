//! The network over real loopback connections: calls, the directory, gossip, sessions, hostile peers, coming and going.

mod bootstrap;
mod calls;
mod company;
mod crowded;
mod directory;
mod eclipse;
mod floods;
mod gossip;
mod hostile;
mod inside;
mod knocking;
mod lifecycle;
mod proxy;
mod raw;
mod reachability;
mod round_trips;
mod support;
mod sync;
