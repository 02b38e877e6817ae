//! Candidates by number and address: who is asked, what is believed, and who is left alone.

use farthing_protocol::SecretKey;

use super::*;

const SALT: Hash = [0; 32];

fn peer(n: u8) -> PeerId {
    identity::peer_id(&SecretKey::from_bytes(&[n; 32]).unwrap().public_key())
}

fn candidate(n: u8, ip: &str) -> RelayCandidate {
    let family = if ip.contains(':') { "ip6" } else { "ip4" };
    RelayCandidate { peer: peer(n), address: format!("/{family}/{ip}/tcp/3001").parse().unwrap() }
}

fn with(partners: Partners) -> Relays {
    Relays::new(&ReachConfig::default(), &RelayConfig::default(), partners)
}

fn fresh() -> Relays {
    with(Partners::default())
}

/// Asks one for a place.
fn ask(
    relays: &mut Relays,
    candidates: &[RelayCandidate],
    now: Instant,
) -> Option<(RelayCandidate, ListenerId)> {
    let chosen = relays.choose(candidates.to_vec(), &SALT, now)?;
    let listener = ListenerId::next();
    relays.asked(chosen.clone(), listener, now);
    Some((chosen, listener))
}

/// A relay that works.
fn use_one(relays: &mut Relays, candidates: &[RelayCandidate], now: Instant) -> (RelayCandidate, ListenerId) {
    let (relay, listener) = ask(relays, candidates, now).unwrap();
    relays.given(&relay.peer, now);
    relays.tested(&relay.peer, peer(200), now);
    assert!(relays.arrived(&peer(200), &relay.circuit(), now));
    (relay, listener)
}

#[test]
fn two_relays_are_used_that_lie_apart() {
    let now = Instant::now();
    for (near, far) in [
        (["8.1.0.1", "8.1.200.1", "8.1.3.1"], "8.2.0.1"),
        (["2620:fe::1", "2620:fe::2", "2620:fe:0:1::1"], "2620:fe:1::1"),
    ] {
        let near: Vec<_> = (1..).zip(near).map(|(n, ip)| candidate(n, ip)).collect();
        let all = [near.clone(), vec![candidate(9, far)]].concat();
        let mut relays = fresh();
        let chosen = [ask(&mut relays, &all, now).unwrap().0, ask(&mut relays, &all, now).unwrap().0];
        assert!(chosen.contains(&candidate(9, far)), "{chosen:?}");
        assert_eq!(ask(&mut relays, &all, now), None, "two are enough");

        let mut relays = fresh();
        assert!(ask(&mut relays, &near, now).is_some());
        assert_eq!(ask(&mut relays, &near, now), None, "one of a network is enough");
    }
}

#[test]
fn in_a_private_network_every_other_relay_will_do() {
    let now = Instant::now();
    let all = [candidate(1, "127.0.0.1"), candidate(2, "127.0.0.1")];
    let mut relays = fresh();
    let chosen = [ask(&mut relays, &all, now).unwrap().0, ask(&mut relays, &all, now).unwrap().0];
    assert_ne!(chosen[0].peer, chosen[1].peer);
}

#[test]
fn an_address_is_published_once_a_test_came_through_that_relay() {
    let now = Instant::now();
    let mut relays = fresh();
    let (relay, _) = ask(&mut relays, &[candidate(1, "8.1.0.1")], now).unwrap();
    assert!(relays.to_test(now).is_empty(), "it gave no place yet");
    relays.given(&relay.peer, now);
    assert_eq!(relays.to_test(now), std::slice::from_ref(&relay));
    assert!(relays.published().is_empty(), "its word is not enough");

    relays.tested(&relay.peer, peer(200), now);
    assert!(relays.to_test(now).is_empty(), "one test at a time");
    assert!(!relays.arrived(&peer(201), &relay.circuit(), now), "anybody's key");
    assert!(relays.arrived(&peer(200), &candidate(2, "8.2.0.1").address, now));
    assert!(relays.published().is_empty(), "it came without a relay");
    assert!(relays.arrived(&peer(200), &relay.circuit(), now));
    assert_eq!(relays.published(), [relay.circuit()]);
    let wallet = identity::wallet(&relay.peer).unwrap();
    assert_eq!(relays.report(), RelayUse { is_sought: true, through: vec![wallet], asked: 0, failed: 0 });

    let again = now + ReachConfig::default().interval;
    assert_eq!(relays.to_test(again), [relay], "and is tested again");
}

#[test]
fn a_relay_that_lies_or_says_nothing_is_replaced_and_left_alone_ever_longer() {
    let mut now = Instant::now();
    let all = [candidate(1, "8.1.0.1"), candidate(2, "8.2.0.1"), candidate(3, "8.3.0.1")];
    let mut relays = fresh();
    let (works, _) = use_one(&mut relays, &all, now);
    let (silent, _) = ask(&mut relays, &all, now).unwrap();
    now += ANSWER_WITHIN;
    assert_eq!(relays.drop_overdue(now)[0].0, silent);
    let (liar, _) = ask(&mut relays, &all, now).unwrap();
    assert!(liar != silent && liar != works);
    relays.given(&liar.peer, now);
    relays.tested(&liar.peer, peer(201), now);
    now += ARRIVAL_WITHIN;
    assert_eq!(relays.drop_overdue(now)[0].0, liar);
    assert_eq!(relays.published(), [works.circuit()]);
    assert_eq!(ask(&mut relays, std::slice::from_ref(&liar), now), None, "it is left alone");

    let pause = ReachConfig::default().retry / FIRST_PAUSE_PART;
    now += pause;
    let (again, _) = ask(&mut relays, std::slice::from_ref(&liar), now).unwrap();
    assert_eq!(again, liar);
    now += ANSWER_WITHIN;
    assert_eq!(relays.drop_overdue(now).len(), 1);
    now += pause;
    assert_eq!(ask(&mut relays, std::slice::from_ref(&liar), now), None, "twice as long");
    now += pause;
    assert!(ask(&mut relays, std::slice::from_ref(&liar), now).is_some());
}

#[test]
fn an_owner_whose_first_minute_was_bad_asks_its_relays_again_within_seconds() {
    let second = Duration::from_secs(1);
    let (start, all) = (Instant::now(), [candidate(1, "8.1.0.1"), candidate(2, "8.2.0.1")]);
    let ask_all = |relays: &mut Relays, now| (0..WANTED).filter(|_| ask(relays, &all, now).is_some()).count();
    let (mut relays, mut now) = (fresh(), start);
    while now < start + 60 * second {
        ask_all(&mut relays, now);
        now += second;
        relays.drop_overdue(now);
    }
    let mut asked = ask_all(&mut relays, now);
    while asked < WANTED {
        now += second;
        assert!(now <= start + 70 * second, "asked again: {asked}");
        asked += ask_all(&mut relays, now);
    }
}

#[test]
fn one_that_dies_is_replaced_by_another() {
    let now = Instant::now();
    let all = [candidate(1, "8.1.0.1"), candidate(2, "8.2.0.1"), candidate(3, "8.3.0.1")];
    let mut relays = fresh();
    let (first, listener) = use_one(&mut relays, &all, now);
    let (second, _) = use_one(&mut relays, &all, now);
    assert_eq!(relays.published().len(), 2);
    assert_eq!(relays.ended(ListenerId::next(), now), None, "a listener of something else");
    assert_eq!(relays.ended(listener, now), Some(first.clone()));
    assert_eq!(relays.published(), [second.circuit()]);
    let (third, _) = ask(&mut relays, &all, now).unwrap();
    assert!(third != first && third != second);
}

#[test]
fn a_relay_that_brings_nobody_who_paid_makes_room_for_another_and_one_of_two_always_works() {
    let mut now = Instant::now();
    let all = [candidate(1, "8.1.0.1"), candidate(2, "8.2.0.1"), candidate(3, "8.3.0.1")];
    let partners = Partners::default();
    partners.set([identity::wallet(&peer(100)).unwrap()].into());
    let mut relays = with(partners);
    let (idle, listener) = use_one(&mut relays, &all, now);
    let (busy, _) = use_one(&mut relays, &all, now);

    now += RelayConfig::default().unproven_max;
    relays.brought(&peer(100), &busy.circuit(), now);
    relays.brought(&peer(100), &idle.address, now);
    relays.brought(&peer(101), &idle.circuit(), now);
    assert_eq!(relays.leave_unproven(&all, now - Duration::from_secs(1)), None, "it still has time");
    let known = [idle.clone(), busy.clone()];
    assert_eq!(relays.leave_unproven(&known, now), None, "there is no other");
    let mut near = vec![candidate(4, "8.1.0.2"), candidate(5, "8.2.0.2"), candidate(6, "8.3.0.2")];
    near.retain(|one| !one.is_apart_from(&busy));
    assert_eq!(relays.leave_unproven(&near, now), None, "the other is too near to the one that stays");
    assert_eq!(relays.leave_unproven(&all, now), Some((idle.clone(), listener)));
    assert_eq!(relays.published(), [busy.circuit()]);
    assert_eq!(relays.report().failed, 0, "it did not fail");

    let (third, _) = ask(&mut relays, &all, now).unwrap();
    assert!(![&idle, &busy].contains(&&third));
    now += RelayConfig::default().unproven_max;
    assert_eq!(relays.leave_unproven(&all, now), None, "the new one does not work yet");
    relays.given(&third.peer, now);
    relays.tested(&third.peer, peer(201), now);
    assert!(relays.arrived(&peer(201), &third.circuit(), now));
    relays.brought(&peer(100), &third.circuit(), now);
    assert_eq!(relays.leave_unproven(&all, now).unwrap().0, busy, "nobody came through it since");
}
