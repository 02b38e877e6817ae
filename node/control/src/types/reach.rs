//! Reachability from other nodes, as `farthing net reach` shows it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::AddressText;

words! {
    /// The findings on one transport or one address.
    ReachState {
        Unknown = "unknown",
        Testing = "testing",
        Reachable = "reachable",
        NotReachable = "not_reachable",
    }
}

/// `farthing net reach`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reach {
    /// In plain words, with what to do.
    pub summary: String,
    /// True if somebody outside was shown to reach this node without a relay, over TCP or QUIC.
    pub reachable: bool,
    /// The relays through which callers were shown to reach this node, where nobody can connect to it.
    pub relays: Vec<AddressText>,
    pub tcp: ReachState,
    pub quic: ReachState,
    /// Seconds since the Unix epoch.
    pub checked_secs: Option<u64>,
    pub peers_asked: u64,
    /// In how many seconds a test can be made, for whoever asked for one too soon: peers dial back once a minute.
    pub again_secs: Option<u64>,
    /// The address to which a router has to forward.
    #[schema(value_type = Option<String>)]
    pub local_ip: Option<IpAddr>,
    /// The ports that this node listens on, which a router has to forward to.
    pub tcp_port: Option<u16>,
    pub udp_port: Option<u16>,
    /// Under which public addresses peers see this node.
    #[schema(value_type = Vec<String>)]
    pub seen: Vec<IpAddr>,
    pub addresses: Vec<ReachedAddress>,
}

/// One tested address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReachedAddress {
    pub address: String,
    /// `announced`, `observed`, `mapped`; or `listening`, of a private network, where that is published without a test.
    pub source: String,
    pub state: ReachState,
    /// True if other nodes are told of it.
    pub published: bool,
    /// Peers that came through, of those that were asked.
    pub arrived: u64,
    pub asked: u64,
    pub failures: Vec<ReachFailure>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReachFailure {
    pub wallet: AddressText,
    pub reason: String,
}

/// `farthing net traffic`: bytes of all streams with other nodes, without what encryption and the wire add.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Traffic {
    /// Since the start.
    pub sent_bytes: u64,
    /// Since the start.
    pub received_bytes: u64,
    /// The time that the paces are of: about a minute, or since somebody looked last.
    pub over_secs: u64,
    pub sent_bytes_per_sec: u64,
    pub received_bytes_per_sec: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_the_words_that_programs_know() {
        let words = ReachState::ALL.map(|state| serde_json::to_value(state).unwrap());
        assert_eq!(words, ["unknown", "testing", "reachable", "not_reachable"]);
    }
}
