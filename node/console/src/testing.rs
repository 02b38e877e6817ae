//! Values around the pages that unit tests render.

use farthing_control::types::{Reach, ReachState};
use farthing_values::Address;
use serde_json::json;

use super::{
    frame::{Frame, Section},
    theme::Theme,
};

/// The frame around a page of a node with three peers.
pub(super) fn frame() -> Frame {
    let address = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
    let status = json!({
        "version": "0.1.0", "uptime_secs": 1, "address": address, "peer_id": "12D3KooW", "addresses": [],
        "gateway_url": "https://localhost:3000", "network": "test", "peers": 3, "services": 1,
        "chain": { "name": "local", "chain_id": 31_337, "testnet": true, "head": 1, "head_age_secs": 1, "problem": null },
        "balance": {
            "address": address, "usdc": "1.50", "eth": "0.01", "in_channels": "0.40", "unclaimed": "0",
        },
        "spending": true, "spent_today": "0", "alerts": [],
    });
    Frame {
        theme: Theme::System,
        place: Section::Help,
        address: "/panel/help/design".to_owned(),
        words: String::new(),
        is_answer: false,
        changes: 0,
        done: None,
        alerts: Vec::new(),
        status: serde_json::from_value(status).unwrap(),
    }
}

/// What a node found that listens on port 3001.
pub(super) fn reach(summary: &str, [tcp, quic]: [ReachState; 2], relays: &[u8]) -> Reach {
    Reach {
        summary: summary.to_owned(),
        reachable: [tcp, quic].contains(&ReachState::Reachable),
        relays: relays.iter().map(|&relay| Address::from_bytes([relay; 20]).into()).collect(),
        tcp,
        quic,
        checked_secs: (tcp != ReachState::Unknown).then_some(1),
        peers_asked: 3,
        again_secs: None,
        local_ip: None,
        tcp_port: Some(3001),
        udp_port: Some(3001),
        seen: Vec::new(),
        addresses: Vec::new(),
    }
}
