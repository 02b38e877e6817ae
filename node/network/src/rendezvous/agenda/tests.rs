//! When a node visits the rendezvous, and when it stays away.

use super::*;
use crate::RendezvousEnd::{Found, Listed, NoAnswer};

const OWN: Address = Address::from_bytes([1; 20]);
const FIRST: Duration = Duration::from_secs(5);
const RETRY: Duration = Duration::from_secs(20);

fn agenda(now: Instant) -> Agenda {
    let entrance = vec!["/ip4/127.0.0.1/tcp/1".to_owned()];
    Agenda::new(OWN, &RendezvousConfig { entrance, first: FIRST, retry: RETRY }, now)
}

fn address(text: &str) -> Multiaddr {
    text.parse().unwrap()
}

fn node(peers: usize, published: &[Multiaddr]) -> Circumstances<'_> {
    Circumstances { peers, published, listening: &[], is_tested: false }
}

fn asked(end: RendezvousEnd, seen: &[IpAddr]) -> ErrandOutcome {
    ErrandOutcome::Asked { end, introduced: Vec::new(), seen: seen.to_vec() }
}

#[test]
fn a_node_with_fewer_than_three_peers_asks_and_one_with_three_does_not() {
    let now = Instant::now();
    for (peers, asks) in [(0, true), (2, true), (3, false)] {
        let mut agenda = agenda(now);
        assert_eq!(agenda.next(&node(peers, &[]), now), None, "those whom it knows come first");
        let errand = agenda.next(&node(peers, &[]), now + FIRST);
        assert_eq!(errand.is_some(), asks, "{peers} peers");
        assert_eq!(agenda.report().is_needed, asks, "{peers} peers");
        assert_eq!(agenda.next(&node(0, &[]), now + FIRST + RETRY), errand.is_none().then(|| ask(0)));
    }
}

fn ask(round: u32) -> Errand {
    Errand::Ask { round }
}

#[test]
fn questions_in_vain_become_rare_and_company_that_is_lost_is_sought_again() {
    let mut now = Instant::now() + FIRST;
    let mut agenda = agenda(now - FIRST);
    let alone = node(0, &[]);
    for round in 0..40 {
        assert_eq!(agenda.next(&alone, now), Some(ask(round)));
        assert_eq!(agenda.next(&alone, now + ASK_MAX), None, "one visit at a time");
        agenda.ended(&asked(NoAnswer, &[]), 0, now, 0);
        let longest = (RETRY * (1 << round.min(10))).min(ASK_ALONE_MAX);
        assert_eq!(agenda.next(&alone, now + longest / 2 - Duration::from_millis(1)), None, "round {round}");
        now += longest;
    }
    assert_eq!(agenda.next(&node(3, &[]), now), None);
    assert_eq!(agenda.next(&alone, now), None, "those whom it knows come first");
    assert_eq!(agenda.next(&alone, now + RETRY), Some(ask(0)));
    agenda.ended(&asked(Found { nodes: 1 }, &[]), 1, now, 7);
    let report = agenda.report().asked.clone().unwrap();
    assert_eq!((report.ended_secs, report.end), (7, Found { nodes: 1 }));
}

#[test]
fn who_is_reached_is_listed_before_it_asks_and_again_before_the_entry_runs_out() {
    let now = Instant::now() + FIRST;
    let mut agenda = agenda(now - FIRST);
    let here = [address("/ip4/9.9.9.9/tcp/3001")];
    let alone = node(0, &here);
    let list = |addresses: &[Multiaddr]| Some(Errand::List { addresses: addresses.to_vec() });
    assert_eq!(agenda.next(&alone, now), list(&here));
    agenda.ended(&ErrandOutcome::Listed { end: Listed }, 0, now, 0);
    assert_eq!(agenda.next(&alone, now), Some(ask(0)));
    agenda.ended(&asked(Found { nodes: 3 }, &[]), 3, now, 0);

    let joined = node(5, &here);
    assert_eq!(agenda.next(&joined, now + LISTED_AGAIN_AFTER / 2 - RETRY), None);
    let later = now + LISTED_AGAIN_AFTER;
    assert_eq!(agenda.next(&joined, later), list(&here));
    agenda.ended(&ErrandOutcome::Listed { end: NoAnswer }, 5, later, 0);
    assert_eq!(agenda.next(&joined, later + RETRY), list(&here), "one that failed is made up for soon");
    agenda.ended(&ErrandOutcome::Listed { end: Listed }, 5, later, 0);

    let there = [address("/ip4/9.9.9.8/tcp/3001")];
    let soon = later + CHANGE_PAUSE - Duration::from_millis(1);
    assert_eq!(agenda.next(&node(5, &there), soon), None);
    assert_eq!(agenda.next(&node(5, &there), later + RETRY + CHANGE_PAUSE), list(&there), "it has moved");
    agenda.ended(&ErrandOutcome::Listed { end: Listed }, 5, later, 0);
    assert_eq!(
        agenda.next(&node(5, &[]), later + 2 * LISTED_AGAIN_AFTER),
        None,
        "nobody reaches it any more"
    );
}

#[test]
fn the_first_node_is_listed_on_trial_where_strangers_see_it_and_nobody_else_is() {
    let now = Instant::now() + FIRST;
    let listening = [
        address("/ip4/192.168.1.2/tcp/3001"),
        address("/ip4/127.0.0.1/tcp/3001"),
        address("/ip4/127.0.0.1/udp/3001/quic-v1"),
        address("/ip6/::1/tcp/3001"),
        address("/memory/7"),
    ];
    let seen: [IpAddr; 1] = ["9.9.9.9".parse().unwrap()];
    let first = Circumstances { peers: 0, published: &[], listening: &listening, is_tested: false };
    let trial = Errand::List { addresses: supposed(&listening, &seen) };
    let shown: Vec<String> = supposed(&listening, &seen).iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["/ip4/9.9.9.9/tcp/3001", "/ip4/9.9.9.9/udp/3001/quic-v1"]);

    let after = |end: RendezvousEnd| {
        let mut agenda = agenda(now - FIRST);
        assert_eq!(agenda.next(&first, now), Some(ask(0)), "it is not known yet where it is");
        agenda.ended(&asked(end, &seen), 0, now, 0);
        agenda
    };
    let mut agenda = after(Found { nodes: 0 });
    assert_eq!(agenda.next(&first, now), Some(trial.clone()));
    agenda.ended(&ErrandOutcome::Listed { end: Listed }, 0, now, 0);
    assert_eq!(agenda.next(&first, now), Some(ask(1)), "another one may have been listed meanwhile");

    let mut named = after(Found { nodes: 2 });
    assert_eq!(named.next(&first, now), None, "they may be there");
    assert_eq!(named.next(&first, now + RETRY), Some(trial), "they are not");
    for other in [Circumstances { peers: 1, ..first }, Circumstances { is_tested: true, ..first }] {
        assert_eq!(after(Found { nodes: 0 }).next(&other, now), None, "peers find out whether it is reached");
    }
    assert_eq!(after(NoAnswer).next(&first, now), None);
}

#[test]
fn a_node_that_flips_between_two_networks_is_listed_ever_more_rarely() {
    let start = Instant::now() + FIRST;
    let mut agenda = agenda(start - FIRST);
    let places = ["/ip4/9.9.9.9/tcp/3001", "/ip4/8.8.8.8/tcp/3001"].map(|at| [address(at)]);
    let mut visits = 0;
    for minute in 0..24 * 60 {
        let now = start + CHANGE_PAUSE * minute;
        let [one, other] = &places;
        if agenda.next(&node(5, if minute % 2 == 0 { one } else { other }), now).is_some() {
            visits += 1;
            agenda.ended(&ErrandOutcome::Listed { end: Listed }, 5, now, 0);
        }
    }
    assert!((10..60).contains(&visits), "{visits} visits in a day");
}

/// Questions of the first hour, questions of a day, and entries of a day, if no visit takes any time.
fn visits(node: &Circumstances<'_>) -> [u32; 3] {
    let begin = Instant::now();
    let (mut agenda, mut visits) = (agenda(begin), [0; 3]);
    for secs in 0..24 * 3600 {
        let now = begin + Duration::from_secs(secs);
        let outcome = match agenda.next(node, now) {
            None => continue,
            Some(Errand::Ask { .. }) => {
                visits[0] += u32::from(secs < 3600);
                visits[1] += 1;
                asked(Found { nodes: 0 }, &[])
            }
            Some(Errand::List { .. }) => {
                visits[2] += 1;
                ErrandOutcome::Listed { end: Listed }
            }
        };
        agenda.ended(&outcome, node.peers, now, secs);
    }
    visits
}

/// The figures are those of docs/scale.md.
#[test]
fn a_day_has_no_more_visits_than_the_document_says() {
    let here = [address("/ip4/9.9.9.9/tcp/3001")];
    assert_eq!(visits(&node(3, &[])), [0, 0, 0], "company, and nobody reaches it");
    let [_, questions, entries] = visits(&node(3, &here));
    assert!(questions == 0 && (2..=4).contains(&entries), "company, and others reach it: {entries}");
    let [first, day, entries] = visits(&node(1, &[]));
    assert!(first <= 9 && (24..=9 + 23 * 2).contains(&day) && entries == 0, "little company: {first}, {day}");
    let [first, day, entries] = visits(&node(0, &[]));
    assert!(first <= 17 && (144..=17 + 23 * 12).contains(&day) && entries == 0, "alone: {first}, {day}");
}
