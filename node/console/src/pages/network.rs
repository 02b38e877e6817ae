//! Network: who is connected, and whether others reach this node.

use askama::Template;
use axum::{
    extract::{Query, State},
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint,
    types::{Peer, Reach, ReachState},
};
use serde::Deserialize;

use crate::{
    ConsoleState,
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    markup::Markup,
    page::Rendered,
    series::{self, Ranges, range_named},
    show,
};

/// More peers than anybody reads; the figure above counts them all.
const PEERS_SHOWN: usize = 100;

#[derive(Template)]
#[template(path = "network.html")]
struct NetworkTemplate {
    frame: Frame,
    reach: Reach,
    /// Each with its state.
    transports: [(&'static str, ReachState); 2],
    /// Name, pace and sum since the start, in words.
    traffic: [(&'static str, String, String); 2],
    ranges: Ranges,
    over_time: Markup,
    peers: Vec<PeerRow>,
    peers_hidden: usize,
}

struct PeerRow {
    wallet: String,
    short: String,
    address: String,
    agent: String,
    rtt: String,
}

#[derive(Deserialize)]
pub(super) struct NetworkParams {
    range: Option<String>,
}

pub(super) async fn show(visit: Visit, Query(asked): Query<NetworkParams>) -> Page {
    let frame = visit.frame(Section::Network).await?;
    let node = visit.panel.node();
    let reach = node.ask(endpoint::Reached).await?;
    let traffic = node.ask(endpoint::Traffic).await?;
    let range = range_named(asked.range.as_deref());
    let mut peers = node.ask(endpoint::Peers).await?;
    // A stable order, so that the page does not jump while it is read.
    peers.sort_by_key(|peer| (peer.rtt_us.unwrap_or(u64::MAX) / 20_000, peer.wallet));
    let page = NetworkTemplate {
        transports: transports(&reach),
        traffic: [
            ("Sent", pace(traffic.sent_bytes_per_sec), show::traffic(traffic.sent_bytes)),
            ("Received", pace(traffic.received_bytes_per_sec), show::traffic(traffic.received_bytes)),
        ],
        ranges: Ranges::new("/panel/network", "over-time", range),
        over_time: series::traffic(node, range).await?,
        peers_hidden: peers.len().saturating_sub(PEERS_SHOWN),
        peers: peers.iter().take(PEERS_SHOWN).map(row).collect(),
        reach,
        frame,
    };
    Ok(Rendered(&page).into_response())
}

const fn transports(reach: &Reach) -> [(&'static str, ReachState); 2] {
    [("TCP", reach.tcp), ("QUIC, over UDP", reach.quic)]
}

/// Bytes of a second.
fn pace(bytes: u64) -> String {
    format!("{}/s", show::traffic(bytes))
}

fn row(peer: &Peer) -> PeerRow {
    PeerRow {
        wallet: peer.wallet.to_string(),
        short: show::short(peer.wallet.0),
        address: show::visible(&peer.address),
        agent: show::visible(&peer.agent),
        rtt: peer.rtt_us.map_or_else(|| "not measured yet".to_owned(), show::duration),
    }
}

/// A transport's state in words, and the class of its colour.
pub(super) const fn state(state: ReachState) -> (&'static str, &'static str) {
    match state {
        ReachState::Reachable => ("Reachable", "good"),
        ReachState::NotReachable => ("Not reachable", "bad"),
        ReachState::Testing => ("Testing", "plain"),
        ReachState::Unknown => ("Not known yet", "plain"),
    }
}

/// Asks peers to dial this node now.
pub(super) async fn test(State(panel): State<ConsoleState>, _: Form<NoFields>) -> Result<Redirect, Failure> {
    panel.node().ask(endpoint::TestReach).await?;
    Ok(Redirect::to("/panel/network"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{frame, reach};

    fn page(reach: Reach) -> String {
        let page = NetworkTemplate {
            frame: frame(),
            transports: transports(&reach),
            reach,
            traffic: ["Sent", "Received"].map(|name| (name, pace(0), show::traffic(0))),
            ranges: Ranges::new("/panel/network", "over-time", range_named(None)),
            over_time: Markup::default(),
            peers: Vec::new(),
            peers_hidden: 0,
        };
        page.render().unwrap()
    }

    #[test]
    fn the_page_tells_in_words_whether_calls_come_directly_or_through_relays_or_not_at_all() {
        use ReachState::{NotReachable, Reachable, Testing, Unknown};
        let tiles = |tcp: &str, quic: &str| {
            [("TCP", tcp), ("QUIC, over UDP", quic)]
                .map(|(name, shown)| format!("<dt>{name}</dt><dd class={shown}</dd>"))
        };
        let (good, bad) = ("\"good\">Reachable", "\"bad\">Not reachable");
        let (testing, unknown) = ("\"plain\">Testing", "\"plain\">Not known yet");
        for (summary, states, relays, shown) in [
            (
                "Port 3001: TCP reachable; UDP not forwarded.",
                [Reachable, NotReachable],
                &[][..],
                tiles(good, bad),
            ),
            (
                "Callers reach this node through the relays 0x… and 0x….",
                [NotReachable, NotReachable],
                &[1, 2][..],
                tiles(bad, bad),
            ),
            (
                "No connected node is a relay, so nobody can call this node.",
                [NotReachable; 2],
                &[][..],
                tiles(bad, bad),
            ),
            ("Port 3001: being tested.", [Testing; 2], &[][..], tiles(testing, testing)),
            ("Port 3001: not tested yet.", [Unknown; 2], &[][..], tiles(unknown, unknown)),
        ] {
            let html = page(reach(summary, states, relays));
            assert!(html.contains(&format!("<p class=\"lead\">{summary}</p>")), "{summary}: {html}");
            for tile in shown {
                assert!(html.contains(&tile), "{summary}: {tile}: {html}");
            }
            assert_eq!(
                html.contains("Not tested yet. Your node asks peers"),
                states == [Unknown; 2],
                "{summary}"
            );
        }
    }
}
