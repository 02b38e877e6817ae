//! The rendezvous in plain words, for the console, `farthing status` and `farthing doctor`. Pure.

use farthing_network::{RendezvousEnd, RendezvousReport, RendezvousVisit};

use super::words::{age, counted};

/// Says what the rendezvous has done for this node. One line.
///
/// `The public IPFS DHT was asked for other nodes 3 minutes ago: 2 nodes are named there. This node was listed there 1
/// hour ago.`
pub(crate) fn sentence(report: &RendezvousReport, now_secs: u64) -> String {
    if !report.is_on {
        return "The rendezvous is off.".to_owned();
    }
    let ago = |visit: &RendezvousVisit| age(now_secs.saturating_sub(visit.ended_secs));
    let asked = report.asked.as_ref().map(|visit| match &visit.end {
        RendezvousEnd::Found { nodes: 0 } => {
            format!("The public IPFS DHT was asked for other nodes {}: it knows none.", ago(visit))
        }
        RendezvousEnd::Found { nodes } => {
            let (ago, nodes) = (ago(visit), counted(*nodes, "node"));
            format!("The public IPFS DHT was asked for other nodes {ago}: it knows {nodes}.")
        }
        other => {
            format!("Asking the public IPFS DHT for other nodes failed {}: {}.", ago(visit), why(other))
        }
    });
    let listed = report.listed.as_ref().map(|visit| match &visit.end {
        RendezvousEnd::Listed | RendezvousEnd::Found { .. } => {
            format!("This node was listed there {}.", ago(visit))
        }
        other => format!("Listing this node there failed {}: {}.", ago(visit), why(other)),
    });
    let said: Vec<String> = asked.into_iter().chain(listed).collect();
    if said.is_empty() {
        return "The public IPFS DHT has not been asked for other nodes yet, and this node is not listed there.".to_owned();
    }
    said.join(" ")
}

/// Returns what to do about it, where something failed that only you can mend.
pub(crate) fn next(report: &RendezvousReport) -> Option<&'static str> {
    let visits = [&report.asked, &report.listed];
    let is_bad = visits.into_iter().flatten().any(|visit| !visit.end.is_good());
    is_bad.then_some(
        "check this machine's connection; if the public IPFS DHT is blocked, name a node in `network.bootstrap`, or \
         another entrance in `network.rendezvous_entrance`",
    )
}

/// The reason of a visit that failed, as it follows a colon.
fn why(end: &RendezvousEnd) -> &str {
    match end {
        RendezvousEnd::NoEntrance { reason } => reason,
        RendezvousEnd::NoAnswer => "nobody in it answered in time",
        RendezvousEnd::Found { .. } | RendezvousEnd::Listed => "it went well",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(end: RendezvousEnd) -> Option<RendezvousVisit> {
        Some(RendezvousVisit { ended_secs: 1000, end })
    }

    #[test]
    fn what_came_of_each_visit_is_said_with_its_age_and_what_failed_with_what_to_do() {
        let off = RendezvousReport::default();
        assert_eq!((sentence(&off, 0).as_str(), next(&off)), ("The rendezvous is off.", None));
        let on = RendezvousReport { is_on: true, ..off };
        assert!(sentence(&on, 0).contains("has not been asked for other nodes yet"));
        let reason = || "/ip4/127.0.0.1/tcp/1 refuses the connection".to_owned();
        for (asked, listed, words, is_good) in [
            (visit(RendezvousEnd::Found { nodes: 0 }), None, "1 minute ago: it knows none.", true),
            (visit(RendezvousEnd::Found { nodes: 1 }), None, "it knows 1 node.", true),
            (
                visit(RendezvousEnd::Found { nodes: 2 }),
                visit(RendezvousEnd::Listed),
                "2 nodes. This node was",
                true,
            ),
            (
                visit(RendezvousEnd::NoAnswer),
                None,
                "failed 1 minute ago: nobody in it answered in time.",
                false,
            ),
            (
                visit(RendezvousEnd::NoEntrance { reason: reason() }),
                None,
                "failed 1 minute ago: /ip4/127.0.0.1/tcp/1 refuses the connection.",
                false,
            ),
            (None, visit(RendezvousEnd::NoAnswer), "Listing this node there failed", false),
        ] {
            let report = RendezvousReport { asked, listed, ..on.clone() };
            let told = sentence(&report, 1090);
            assert!(told.contains(words), "{told}");
            assert_eq!(next(&report).is_none(), is_good, "{told}");
        }
    }
}
