//! The network over real loopback connections: calls, the directory, gossip, sessions, hostile peers, coming and going.

mod before;
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
mod meddling;
#[cfg(feature = "memory")]
mod played;
mod proxy;
mod raw;
mod reachability;
mod records;
mod relays;
mod rendezvous;
mod round_trips;
mod support;
mod sync;
