//! The course of tests, with peers that answer as a table says. No sockets, no clock.

use farthing_protocol::reach::{BY_ANOTHER, DialBack, dial_back_key};

use super::*;
use crate::{ReachState, identity};

const OWN: &str = "9.1.1.1";
const TCP: &str = "/ip4/9.1.1.1/tcp/3001";
const QUIC: &str = "/ip4/9.1.1.1/udp/3001/quic-v1";
const SECOND: Duration = Duration::from_secs(1);

fn at(text: &str) -> Multiaddr {
    text.parse().unwrap()
}

fn peer(n: u8) -> Address {
    Address::from_bytes([n; 20])
}

/// A prober, its clock, and peers `1..=peers`, each in a network of its own.
struct Lab {
    prober: Prober,
    now: Instant,
    testers: Vec<Tester>,
    nonces: u8,
}

impl Lab {
    fn new(announce: &[&str], peers: u8) -> Self {
        let now = Instant::now();
        let announced = announce.iter().map(|text| at(text)).collect();
        let mut prober = Prober::new(ReachConfig::default(), false, announced, now);
        let listening = ["/ip4/192.168.1.20/tcp/3001", "/ip4/192.168.1.20/udp/3001/quic-v1"];
        prober.set_listening(listening.map(at).to_vec(), now);
        let mut lab = Self { prober, now, testers: Vec::new(), nonces: 0 };
        (1..=peers).for_each(|n| lab.connect(n, OWN));
        lab
    }

    /// Peer `n` connects, and sees this node at `own`.
    fn connect(&mut self, n: u8, own: &str) {
        let ip: IpAddr = format!("8.{n}.0.1").parse().unwrap();
        self.prober.observed(peer(n), own.parse().unwrap(), ip, self.now);
        self.testers.retain(|tester| tester.peer != peer(n));
        self.testers.push(Tester { peer: peer(n), ips: vec![ip], dialled: vec![ip] });
    }

    /// Waits until a test is due and begins it.
    fn begin(&mut self) -> Vec<Ask> {
        for _ in 0..10 {
            self.now = self.now.max(self.prober.next_due().unwrap());
            let nonces = &mut self.nonces;
            let asks = self.prober.begin(&self.testers, self.now, || {
                *nonces += 1;
                [*nonces; 32]
            });
            if !asks.is_empty() {
                return asks;
            }
        }
        panic!("never begun: {:#?}", self.prober.report());
    }

    /// The dial-back of the `index`-th address of a request arrives.
    fn arrive(&mut self, ask: &Ask, index: u8, remote: &str) -> bool {
        let key = identity::peer_id(&dial_back_key(&ask.request.nonce, index).unwrap().public_key());
        let dialled = &ask.request.addresses[usize::from(index % BY_ANOTHER)];
        let dialled = Multiaddr::try_from(dialled.to_vec()).unwrap();
        let local = match Transport::of(&dialled) {
            Some((Transport::Tcp, _)) => at("/ip4/192.168.1.20/tcp/3001"),
            _ => at("/ip4/192.168.1.20/udp/3001/quic-v1"),
        };
        self.prober.arrived(&key, &local, &at(remote), |_| vec![at("/ip4/8.1.0.1/udp/3001/quic-v1")])
    }

    fn answer(&mut self, ask: &Ask, ends: Vec<DialBack>) {
        self.prober.answered(ask.peer, Ok(ReachResponse::Dialled(ends, None)), self.now, 1000);
    }

    /// A whole test, in which these addresses let dials through.
    fn test(&mut self, open: &[&str]) {
        for ask in self.begin() {
            let mut ends = Vec::new();
            for (index, address) in (0..).zip(ask.request.addresses.clone()) {
                let address = Multiaddr::try_from(address.to_vec()).unwrap();
                if open.contains(&address.to_string().as_str()) {
                    assert!(self.arrive(&ask, index, "/ip4/8.1.0.1/tcp/50000"));
                    ends.push(DialBack::Reached);
                } else {
                    ends.push(DialBack::Failed("connection refused".to_owned()));
                }
            }
            self.answer(&ask, ends);
        }
        assert!(!self.prober.is_testing());
    }

    fn believed(&self) -> Vec<String> {
        self.prober.believed().iter().map(ToString::to_string).collect()
    }

    /// Seconds until the next test.
    fn wait_secs(&self) -> u64 {
        (self.prober.next_due().unwrap() - self.now).as_secs()
    }
}

#[test]
fn a_peer_that_never_answers_does_not_hold_up_what_the_others_agree_on() {
    let mut lab = Lab::new(&[], 3);
    let asks = lab.begin();
    for (n, ask) in asks[..2].iter().enumerate() {
        assert_eq!(lab.prober.next_due(), None, "nothing is certain after {n}");
        answer_with_stranger(&mut lab, ask, true);
    }
    let ends = lab.prober.next_due().unwrap();
    assert_eq!(ends - lab.now, LATECOMERS_WITHIN);
    assert!(!lab.prober.end_if_decided(ends - SECOND, 1000));
    assert!(lab.believed().is_empty());
    assert!(lab.prober.end_if_decided(ends, 1000) && !lab.prober.is_testing());
    assert_eq!(lab.believed(), [TCP, QUIC]);
}

#[test]
fn whoever_knows_of_a_stranger_that_was_kept_out_is_waited_for() {
    let mut lab = Lab::new(&[], 3);
    let asks = lab.begin();
    for ask in &asks[..2] {
        let ends = vec![DialBack::Reached; ask.request.addresses.len()];
        for index in 0..u8::try_from(ends.len()).unwrap() {
            assert!(lab.arrive(ask, index, "/ip4/8.1.0.1/tcp/50000"));
        }
        lab.answer(ask, ends);
    }
    assert_eq!(lab.prober.next_due(), None, "this node had written to both");
    answer_with_stranger(&mut lab, &asks[2], false);
    assert!(!lab.prober.is_testing() && lab.believed().is_empty());
}

#[test]
fn an_observed_address_is_published_only_once_it_is_verified() {
    let mut lab = Lab::new(&[], 5);
    let start = lab.now;
    assert_eq!((lab.believed().len(), lab.prober.flags()), (0, 0));
    lab.test(&[TCP]);
    assert_eq!(lab.now - start, 10 * SECOND, "the first test");
    assert_eq!(lab.believed(), [TCP]);
    assert_eq!(lab.prober.flags(), FLAG_TCP_VERIFIED);
    let report = lab.prober.report();
    assert_eq!(report.state(Transport::Quic), ReachState::NotReachable);
    assert_eq!(report.checks[1].failures.len(), 3);
    assert_eq!((report.peers_asked, report.tcp_port), (3, Some(3001)));
    assert_eq!(lab.wait_secs(), 60, "it may have been the testers' bad day");
    lab.test(&[TCP]);
    assert_eq!(lab.wait_secs(), 900, "it was not");
    lab.test(&[TCP, QUIC]);
    assert_eq!(lab.prober.flags(), FLAG_TCP_VERIFIED | FLAG_QUIC_VERIFIED, "it was forwarded meanwhile");
}

#[test]
fn a_forward_that_disappears_is_noticed_by_two_tests() {
    let mut lab = Lab::new(&[], 3);
    lab.test(&[TCP, QUIC]);
    lab.test(&[TCP]);
    assert_eq!(lab.believed(), [TCP, QUIC], "one failure may be chance");
    assert_eq!(lab.prober.flags(), FLAG_TCP_VERIFIED, "but it is not called verified");
    assert_eq!(lab.wait_secs(), 60, "tested again soon");
    lab.test(&[TCP]);
    assert_eq!(lab.believed(), [TCP]);
    assert_eq!(lab.wait_secs(), 900);
}

#[test]
fn a_changed_address_is_tested_at_once_and_takes_the_place_of_the_old_one() {
    let mut lab = Lab::new(&[], 6);
    lab.test(&[TCP, QUIC]);
    lab.now += 100 * SECOND;
    for n in 1..=3 {
        lab.connect(n, "9.2.2.2");
    }
    assert_eq!(lab.believed(), [TCP, QUIC], "as many say the one as the other");
    lab.connect(4, "9.2.2.2");
    assert_eq!(lab.believed(), [TCP, QUIC], "until the new one is tested");
    assert_eq!(lab.prober.flags(), FLAG_TCP_VERIFIED | FLAG_QUIC_VERIFIED);
    assert_eq!(lab.wait_secs(), 2, "soon, not in a quarter of an hour");
    let new = "/ip4/9.2.2.2/tcp/3001";
    lab.test(&[new]);
    assert_eq!(lab.believed(), [new]);
    assert_eq!(lab.prober.flags(), FLAG_TCP_VERIFIED);
}

#[test]
fn an_announced_address_is_believed_until_two_tests_fail() {
    let mut lab = Lab::new(&["/ip4/9.1.1.1/tcp/4001"], 3);
    assert_eq!(lab.believed(), ["/ip4/9.1.1.1/tcp/4001"]);
    lab.test(&[]);
    assert_eq!(lab.believed().len(), 1);
    lab.test(&[]);
    assert_eq!(lab.believed().len(), 0);
}

#[test]
fn a_port_the_router_mapped_is_tested_like_any_other() {
    let mut lab = Lab::new(&[], 3);
    let mapped = "/ip4/9.1.1.1/tcp/5001";
    lab.prober.mapped(at(mapped), lab.now);
    lab.test(&[]);
    assert_eq!(lab.believed().len(), 0, "what routers say is not believed");
    assert!(!lab.prober.report().shared);
    lab.test(&[mapped]);
    assert_eq!(lab.believed(), [mapped]);
    lab.prober.unmapped(&at(mapped), lab.now);
    lab.test(&[]);
    assert_eq!(lab.believed().len(), 0);
}

#[test]
fn a_router_with_another_outer_address_suggests_a_shared_one() {
    let mut lab = Lab::new(&[], 3);
    lab.prober.mapped(at("/ip4/9.7.7.7/tcp/3001"), lab.now);
    assert!(lab.prober.report().shared);
    lab.prober.set_gateway(Gateway::Absent);
    assert!(!lab.prober.report().shared);
    lab.prober.set_gateway(Gateway::Private);
    assert!(lab.prober.report().shared, "a router behind a router");
}

#[test]
fn an_arrival_counts_only_from_outside_over_a_fresh_way_and_the_right_transport() {
    let mut lab = Lab::new(&[], 1);
    lab.connect(2, OWN);
    for (remote, reachable) in [
        ("/ip4/8.1.0.1/tcp/50000", ReachState::Reachable),
        ("/ip4/192.168.1.7/tcp/50000", ReachState::Unknown),
    ] {
        let mut lab = Lab::new(&[], 2);
        for ask in lab.begin() {
            assert!(lab.arrive(&ask, 0, remote));
            lab.answer(&ask, vec![DialBack::Reached; 2]);
        }
        assert_eq!(lab.prober.report().state(Transport::Tcp), reachable, "{remote}");
    }
    let asks = lab.begin();
    for ask in &asks {
        // Over QUIC, from the port with which a connection of ours is open: its router let us out to it.
        assert!(lab.arrive(ask, 1, "/ip4/8.1.0.1/udp/3001/quic-v1"));
        // Over TCP, to the key of the QUIC address: seen before, it stays what it was.
        assert!(lab.arrive(ask, 1, "/ip4/8.1.0.1/tcp/50000"));
        lab.answer(ask, vec![DialBack::Reached; 2]);
    }
    assert_eq!(lab.prober.report().state(Transport::Quic), ReachState::Unknown);
    assert!(lab.prober.report().checks[1].failures[0].reason.contains("our own connection"));
}

#[test]
fn a_stranger_who_connects_is_no_dial_back() {
    let mut lab = Lab::new(&[], 3);
    let asks = lab.begin();
    let stranger = identity::peer_id(&dial_back_key(&[99; 32], 0).unwrap().public_key());
    assert!(!lab.prober.arrived(&stranger, &at(TCP), &at("/ip4/8.1.0.1/tcp/1"), |_| Vec::new()));
    assert_eq!(lab.prober.expected().count(), 12, "three peers, two addresses, and a neighbour of each peer");
    for ask in asks {
        lab.prober.answered(ask.peer, Err("its connection was lost".to_owned()), lab.now, 1000);
    }
    assert_eq!(lab.prober.expected().count(), 0);
    assert_eq!(lab.wait_secs(), 60, "nothing was decided");
}

#[test]
fn nobody_is_asked_more_than_once_a_minute() {
    let mut lab = Lab::new(&[], 4);
    lab.test(&[TCP]);
    let first = lab.now;
    lab.prober.mapped(at("/ip4/9.1.1.1/tcp/5001"), lab.now);
    assert_eq!(lab.wait_secs(), 2);
    lab.test(&[TCP]);
    assert_eq!(lab.now - first, 63 * SECOND, "only one of four had not been asked");
}

#[test]
fn peers_that_were_asked_too_soon_leave_the_last_test_as_it_was() {
    let mut lab = Lab::new(&[], 3);
    lab.test(&[TCP]);
    let shown = lab.prober.report();
    // The node starts anew, or its peers count more slowly: they refuse.
    for ask in lab.begin() {
        let too_soon = ReachResponse::TooSoon { retry_after_secs: 40 };
        lab.prober.answered(ask.peer, Ok(too_soon), lab.now, 2000);
    }
    assert_eq!(lab.prober.report(), shown, "with its age, and what peers found then");
    let refused = lab.now;
    let asks = lab.begin();
    assert_eq!((lab.now - refused, asks.len()), (40 * SECOND, 3), "they said when to come back");
    for (n, ask) in (0_u8..).zip(asks) {
        let answer = match n {
            0 => ReachResponse::TooSoon { retry_after_secs: 40 },
            _ => ReachResponse::Dialled(vec![DialBack::Failed("no".to_owned()); 2], None),
        };
        lab.prober.answered(ask.peer, Ok(answer), lab.now, 2040);
    }
    let report = lab.prober.report();
    assert_eq!((report.peers_asked, report.checked_secs), (2, Some(2040)));
    assert!(report.checks.iter().all(|check| check.asked == 2), "{report:#?}");
}

#[test]
fn a_change_during_a_test_is_tested_right_after_it() {
    let mut lab = Lab::new(&[], 6);
    let asks = lab.begin();
    lab.prober.mapped(at("/ip4/9.1.1.1/tcp/5001"), lab.now);
    for ask in asks {
        lab.answer(&ask, vec![DialBack::Failed("no".to_owned()); 2]);
    }
    assert_eq!(lab.wait_secs(), 2);
}

#[test]
fn without_peers_or_candidates_nothing_is_tested_and_nothing_given_up() {
    let mut lab = Lab::new(&[], 0);
    for _ in 0..100 {
        lab.now = lab.prober.next_due().unwrap();
        assert!(lab.prober.begin(&lab.testers, lab.now, || [0; 32]).is_empty());
        assert!(lab.prober.next_due().unwrap() > lab.now, "no busy loop");
    }
    lab.connect(1, OWN);
    lab.connect(2, OWN);
    assert!(lab.wait_secs() <= 2);
    lab.test(&[TCP, QUIC]);
    assert_eq!(lab.believed(), [TCP, QUIC]);
}

#[test]
fn relays_are_wanted_once_a_test_failed_and_until_an_address_works() {
    let mut lab = Lab::new(&[], 3);
    assert!(!lab.prober.is_unreachable(), "nobody was asked yet");
    lab.test(&[]);
    assert!(lab.prober.is_unreachable());
    lab.test(&[TCP]);
    assert!(!lab.prober.is_unreachable(), "over one transport is enough");

    let mut announced = Lab::new(&[TCP], 3);
    announced.test(&[]);
    assert!(!announced.prober.is_unreachable(), "it is believed until two tests fail");
    announced.test(&[]);
    assert!(announced.prober.is_unreachable());

    let mut nowhere = Lab::new(&[], 3);
    nowhere.prober.set_listening(Vec::new(), nowhere.now);
    nowhere.now = nowhere.prober.next_due().unwrap();
    assert!(nowhere.prober.begin(&nowhere.testers, nowhere.now, || [1; 32]).is_empty());
    assert!(nowhere.prober.is_unreachable(), "there is nothing to test");
}

/// `ask`'s peer comes through to everything and says whether its neighbour did, too.
fn answer_with_stranger(lab: &mut Lab, ask: &Ask, comes_through: bool) {
    let ends = |end: DialBack| vec![end; ask.request.addresses.len()];
    for index in 0..u8::try_from(ask.request.addresses.len()).unwrap() {
        assert!(lab.arrive(ask, index, "/ip4/8.1.0.1/tcp/50000"));
        if comes_through {
            assert!(lab.arrive(ask, index + BY_ANOTHER, "/ip4/8.77.0.1/tcp/50000"));
        }
    }
    let stranger = if comes_through { DialBack::Reached } else { DialBack::Failed("no answer".to_owned()) };
    let answer = ReachResponse::Dialled(ends(DialBack::Reached), Some(ends(stranger)));
    lab.prober.answered(ask.peer, Ok(answer), lab.now, 1000);
}

/// A whole test in which everybody has a stranger.
fn with_strangers(lab: &mut Lab, come_through: bool) {
    for ask in lab.begin() {
        answer_with_stranger(lab, &ask, come_through);
    }
}

#[test]
fn an_address_that_only_those_reach_whom_we_wrote_to_is_not_published() {
    let mut lab = Lab::new(&[], 5);
    with_strangers(&mut lab, false);
    assert!(lab.believed().is_empty());
    assert!(lab.prober.report().checks[0].failures[0].reason.contains("never contacted"));
    with_strangers(&mut lab, true);
    assert_eq!(lab.believed(), [TCP, QUIC]);
    // Somebody may dial on behalf of us whom we wrote to all the same.
    let ask = lab.begin().remove(0);
    assert!(lab.arrive(&ask, BY_ANOTHER, "/ip4/8.2.0.1/tcp/50000"), "it is a dial-back");
    let known = ask.request.known.clone().unwrap();
    assert_eq!(known.len(), 5, "all testers were dialled");
}
