//! The network as the rest of the node sees it: calls to wallet addresses, and calls from them.
//!
//! One task owns the libp2p swarm. Everybody else holds a [`NetworkHandle`]; peers are wallet addresses and
//! multiaddresses are text, so no other crate meets libp2p.
//!
//! A call, in the order things happen:
//! 1. `handle` asks the swarm's task for a stream to the owner. Warm, that is all: the stream is open at
//!    once, and request and answer take one round trip.
//! 2. Without a connection, `reach` finds the owner's record (`records`, then the directory and other
//!    nodes) and has its addresses dialled.
//! 3. `call` writes the request and reads the answer, on the caller's own task.
//! 4. On the other side, `streams` hands the stream to the call server, which reads the request and gives
//!    it to the node as an [`InboundCall`].
//!
//! Architecture invariant: a body never passes through the swarm's task, and no event handler waits.

mod addresses;
mod admission;
mod agreement;
mod backoff;
mod behaviour;
mod bootstrap;
mod call;
mod clocks;
mod command;
mod config;
mod dial_scheduler;
mod directory;
mod forward;
mod frame;
mod gate;
mod gossip;
mod handle;
mod handshakes;
mod identity;
mod info;
mod keep;
mod line;
mod line_watch;
mod listed;
#[cfg(feature = "memory")]
mod memory;
mod memory_limit;
mod meter;
mod names;
mod neighbour_origin;
mod outbound;
mod pace;
mod partners;
mod peer_book;
#[cfg(feature = "memory")]
mod played;
mod portmap;
mod publisher;
mod reach_report;
mod reachability;
mod records;
mod relay;
mod rendezvous;
mod rendezvous_report;
mod report;
mod saved;
mod single_flight;
mod start;
mod status;
mod streams;
mod swarm;
mod sync;
mod traffic;
mod twin;
mod usage;
mod yield_budget;

use farthing_os::clock::now_secs;

pub use addresses::{AddressUse, check_address};
pub use bootstrap::{BootstrapPeer, BootstrapState};
pub use call::{CallFailure, CallTiming, InboundCall, Interrupted, NotStarted, Responder};
pub use clocks::ClockSkew;
pub use config::{NetworkConfig, NetworkError, NetworkLimits, ReachConfig, RelayConfig, RendezvousConfig};
pub use gossip::{InboundListing, ListingResponder, Verdict};
pub use handle::{
    NetworkHandle,
    lookup::{Lookup, LookupStep},
};
pub use info::{InboundInfo, InfoResponder};
pub use line::Origin;
#[cfg(feature = "memory")]
pub use played::{Played, PlayedCall, PlayedExchange};
pub use reach_report::{
    AddressCheck, AddressSource, CheckFailure, Gateway, ReachState, Reachability, RecordHolders, RelayUse,
    Transport,
};
pub use records::IndexNode;
pub use relay::RELAYED_BODY_BYTES_MAX;
pub use rendezvous_report::{RendezvousEnd, RendezvousReport, RendezvousVisit};
#[cfg(feature = "memory")]
pub use saved::save_records;
pub use start::{Inbound, Network};
pub use status::{CounterSnapshot, Direction, DirectoryMode, Neighbour, NetworkStatus, PeerInfo};
pub use sync::{InboundSync, SyncEnded, SyncStream};

/// The words of an error's last source, on one line.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string().lines().next().unwrap_or_default().to_owned()
}
