//! The ports of this node, which are nobody's upstream: a request that came back here would be paid by its owner.
//!
//! Invariant: what is asked is what holds now. The network may listen later than the first service is read.

use std::sync::{Arc, OnceLock};

use farthing_network::NetworkStatus;
use tokio::sync::watch;

/// The ports that this node listens on. A cheap handle.
#[derive(Debug, Clone, Default)]
pub struct OwnPorts(Arc<OwnPortsInner>);

#[derive(Debug, Default)]
struct OwnPortsInner {
    /// Of gateway and console.
    http: Vec<u16>,
    network: OnceLock<watch::Receiver<NetworkStatus>>,
}

impl OwnPorts {
    /// Those of gateway and console, as they were bound.
    pub fn new(http: impl IntoIterator<Item = u16>) -> Self {
        Self(Arc::new(OwnPortsInner { http: http.into_iter().collect(), network: OnceLock::new() }))
    }

    /// From now on also those that the network listens on.
    pub fn follow(&self, network: watch::Receiver<NetworkStatus>) {
        // There is one network, and it is started once.
        let _ = self.0.network.set(network);
    }

    pub fn contains(&self, port: u16) -> bool {
        let network = self.0.network.get();
        self.0.http.contains(&port) || network.is_some_and(|status| status.borrow().ports.contains(&port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_s_ports_are_own_ones_from_when_it_listens() {
        let ports = OwnPorts::new([3000, 3002]);
        let clone = ports.clone();
        let (network, status) = watch::channel(NetworkStatus::default());
        clone.follow(status);
        assert!(ports.contains(3000) && ports.contains(3002) && !ports.contains(3001));
        network.send_modify(|status| status.ports = [3001].into());
        assert!(ports.contains(3001) && clone.contains(3001) && !ports.contains(3003));
    }
}
