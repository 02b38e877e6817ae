//! Advice about a configured peer that is not connected, for `farthing status` and `farthing doctor`. Pure.

use farthing_network::BootstrapState;

/// Returns what to do; `None` when all is well or only time is needed.
pub(crate) const fn next(state: &BootstrapState) -> Option<&'static str> {
    Some(match state {
        BootstrapState::Trying | BootstrapState::Connected { .. } => return None,
        BootstrapState::Refused => "start the node there, or correct the port in `network.bootstrap`",
        BootstrapState::TimedOut => {
            "check the address in `network.bootstrap`, and that the port is forwarded and let through there"
        }
        BootstrapState::Closed => {
            "it may be full or restarting; your node tries again. Add a second node to `network.bootstrap`"
        }
        BootstrapState::OtherWallet { .. } => {
            "if this is the right wallet, write its peer id after /p2p/ in `network.bootstrap`, or remove /p2p/"
        }
        BootstrapState::OwnWallet => {
            "remove it from `network.bootstrap`; if you mean another machine, that one runs a copy of this node's data \
             folder: stop one of the two"
        }
        BootstrapState::OtherNetwork { .. } => {
            "give both nodes the same `network.name` and chain, or name another node in `network.bootstrap`"
        }
        BootstrapState::UnknownName => {
            "correct the name in `network.bootstrap`, or use the IP address instead"
        }
        BootstrapState::NoResolver => {
            "check this machine's connection and /etc/resolv.conf, or use the IP address instead of the name"
        }
        BootstrapState::NoNode => {
            "check the address and the port in `network.bootstrap`: another program or a proxy answers there"
        }
        BootstrapState::Undialable => {
            "write it like /ip4/203.0.113.7/tcp/3001 or /dns4/node.example/udp/3001/quic-v1"
        }
        BootstrapState::Failed { .. } => "check the address in `network.bootstrap`",
    })
}

#[cfg(test)]
mod tests {
    use farthing_protocol::Address;

    use super::*;

    #[test]
    fn every_failure_names_the_next_step() {
        let wallet = Address::from_bytes([1; 20]);
        for failure in [
            BootstrapState::Refused,
            BootstrapState::TimedOut,
            BootstrapState::Closed,
            BootstrapState::OtherWallet { expected: wallet, found: wallet },
            BootstrapState::OwnWallet,
            BootstrapState::OtherNetwork { name: Some("84532".to_owned()) },
            BootstrapState::UnknownName,
            BootstrapState::NoResolver,
            BootstrapState::NoNode,
            BootstrapState::Undialable,
            BootstrapState::Failed { reason: "the name is unknown".to_owned() },
        ] {
            assert!(next(&failure).is_some() && !failure.is_connected(), "{failure}");
        }
    }
}
