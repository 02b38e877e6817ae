//! Other nodes in `/metrics`: connections, the rendezvous, relays, and the way that calls took.

use std::fmt;

use farthing_node::status::Readiness;
use farthing_shared::call_ends::Half;
use prometheus_client::{
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter},
};

use super::{Fact, counter, one};

pub(super) fn encode(node: &Readiness, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    for (name, help, value) in gauges(node) {
        one(encoder, name, help, None, value)?;
    }
    for (name, help, value) in counters(node) {
        counter(encoder, name, help, value)?;
    }
    visits(node, encoder)?;
    requests(node, encoder)
}

fn gauges(node: &Readiness) -> [Fact; 4] {
    let (told, counted) = (node.network.status(), node.network.counters());
    let status = told.borrow();
    [
        ("farthing_network_connections", "Open connections", status.connections as u64),
        (
            "farthing_network_rendezvous_needed",
            "1 while the rendezvous is asked for other nodes, because too few are connected",
            u64::from(status.rendezvous.is_needed),
        ),
        (
            "farthing_network_relays",
            "Relays through which callers reach this node",
            status.reachability.relays.through.len() as u64,
        ),
        (
            "farthing_network_relay_circuits_open",
            "Connections of others that run through this node now",
            counted.relay_circuits.saturating_sub(counted.relay_circuits_ended),
        ),
    ]
}

fn counters(node: &Readiness) -> [Fact; 4] {
    let counted = node.network.counters();
    [
        (
            "farthing_network_peers_blocked",
            "Peers blocked for a while because they sent what no honest node sends",
            counted.peers_blocked,
        ),
        (
            "farthing_network_rendezvous_nodes",
            "Nodes from the rendezvous that were chosen to be dialled",
            counted.rendezvous_nodes,
        ),
        (
            "farthing_network_relay_circuits",
            "Connections of others that began through this node",
            counted.relay_circuits,
        ),
        ("farthing_network_punched", "Direct connections made beside one through a relay", counted.punched),
    ]
}

/// Visits to the rendezvous: what for, and what came of them.
fn visits(node: &Readiness, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let counted = node.network.counters();
    let (name, help) = ("farthing_network_rendezvous_visits", "Visits to the rendezvous, by result");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (purpose, end, visits) in [
        ("ask", "found", counted.rendezvous_found),
        ("ask", "nobody", counted.rendezvous_nobody),
        ("ask", "no_entrance", counted.rendezvous_ask_no_entrance),
        ("ask", "no_answer", counted.rendezvous_ask_no_answer),
        ("list", "listed", counted.rendezvous_listed),
        ("list", "no_entrance", counted.rendezvous_list_no_entrance),
        ("list", "no_answer", counted.rendezvous_list_no_answer),
    ] {
        let labels = [("purpose", purpose), ("end", end)];
        ConstCounter::new(visits).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

/// Requests to owners and of consumers, by their way.
fn requests(node: &Readiness, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let counted = node.network.counters();
    let (name, help) =
        ("farthing_network_requests", "Calls and questions about them between this node and others");
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (half, way, requests) in [
        (Half::Consumer, "direct", counted.calls_sent_directly),
        (Half::Consumer, "relayed", counted.calls_sent_relayed),
        (Half::Owner, "direct", counted.calls_received_directly),
        (Half::Owner, "relayed", counted.calls_received_relayed),
    ] {
        let labels = [half.label(), ("way", way)];
        ConstCounter::new(requests).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
