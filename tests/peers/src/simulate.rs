//! Many real nodes in one process, and what they do together: found wallets, traffic, news.
//!
//! Every node is [`farthing_network::Network`] with the feature `memory`: over queues instead of sockets (`/memory/<n>`).
//! What is not modelled: distance (a round trip takes as long as the scheduler needs), loss, and NAT. Times
//! therefore say what the process's cores can do for all nodes together, not what one node would take.

use farthing_protocol::wire::NetworkName;

pub mod arrivals;
pub mod catalog;
pub mod directory;
pub mod full_node;
pub mod holding;
pub mod hostile;
pub mod network;
pub mod news;
pub mod options;
pub mod population;
pub mod rest;
pub mod traffic;

/// The network that simulated nodes belong to.
///
/// # Panics
/// Never: the name is valid.
pub fn network_name() -> NetworkName {
    NetworkName::new("local-simulation").expect("a valid name")
}

/// Seconds since the Unix epoch.
pub fn now_secs() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
