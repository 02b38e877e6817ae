//! The machine from outside: what goes in and what comes out.

mod puts;

use std::collections::HashSet;

use proptest::prelude::*;

use super::*;
use crate::{
    records::{RecordRefusal, Untrue},
    testing::{NOW_SECS, Notary, contact, name_of, place, record},
    wire::Filed,
};

const DIALS_MAX: usize = 24;

fn own() -> Contact {
    contact(9_999, place(9_999))
}

fn peer(n: u32) -> Contact {
    contact(n, place(n))
}

fn at(millis: u64) -> Now {
    Now { since: Duration::from_millis(millis), unix_secs: NOW_SECS }
}

fn directory() -> Directory<Notary> {
    let config = Config {
        own_id: own().id().to_vec(),
        seed: 1,
        allow_private: false,
        records_max: 50,
        records_per_source_max: 10,
        dials_max: DIALS_MAX,
    };
    Directory::new(config, Notary)
}

type Asked = (AskId, Contact, Request);

fn asks(outputs: &[Output<()>]) -> Vec<Asked> {
    let ask = |output: &Output<()>| match output {
        Output::Ask { id, contact, request, .. } => Some((*id, contact.clone(), request.clone())),
        _ => None,
    };
    outputs.iter().filter_map(ask).collect()
}

fn done(outputs: &[Output<()>]) -> Option<Outcome> {
    outputs.iter().find_map(|output| match output {
        Output::Done { outcome, .. } => Some(*outcome),
        _ => None,
    })
}

fn empty(request: &Request) -> Response {
    match request {
        Request::FindNode { .. } => Response::FindNode { closer: Vec::new() },
        Request::GetValue { .. } => Response::GetValue { found: None, closer: Vec::new() },
        Request::PutValue(filed) => Response::PutValue(filed.clone()),
    }
}

/// Answers everything with nothing until nothing is asked any more.
fn settle(directory: &mut Directory<Notary>, now: Now, outputs: Vec<Output<()>>) -> Vec<Output<()>> {
    let (mut all, mut left) = (Vec::new(), asks(&outputs));
    all.extend(outputs);
    while let Some((id, _, request)) = left.pop() {
        let outputs = directory.handle(now, Input::Answer(id, empty(&request)));
        left.extend(asks(&outputs));
        all.extend(outputs);
    }
    all
}

/// A directory that met these peers, which are gone since.
fn that_knows(numbers: impl IntoIterator<Item = u32>) -> Directory<Notary> {
    let mut directory = directory();
    for n in numbers {
        let outputs = directory.handle(at(0), Input::Connected(peer(n)));
        settle(&mut directory, at(0), outputs);
        directory.handle(at(0), Input::Disconnected(peer(n).key()));
    }
    directory
}

#[test]
fn a_peer_gets_a_place_when_it_has_answered_and_not_for_being_connected() {
    let mut directory = directory();
    let outputs = directory.handle(at(0), Input::Connected(peer(1)));
    assert_eq!(directory.peers(), 0);
    let (id, asked, request) = asks(&outputs).remove(0);
    assert_eq!(asked, peer(1));
    directory.handle(at(1), Input::Answer(id, empty(&request)));
    assert_eq!(directory.peers(), 1);

    let stranger = Contact::new(b"stranger", [[4, 9, 9, 9, 9]]).unwrap();
    assert!(directory.handle(at(2), Input::Connected(stranger)).is_empty(), "no peer of this network");
    let outputs = directory.handle(at(2), Input::Connected(peer(2)));
    let (id, ..) = asks(&outputs)[0];
    directory.handle(at(3), Input::Answer(id, Response::GetValue { found: None, closer: Vec::new() }));
    assert_eq!(directory.peers(), 1, "that was no answer to the question");
}

#[test]
fn the_first_peer_that_answers_is_asked_who_is_near() {
    let mut directory = directory();
    let outputs = directory.handle(at(0), Input::Connected(peer(1)));
    let (id, _, request) = asks(&outputs).remove(0);
    let outputs = directory.handle(at(1), Input::Answer(id, empty(&request)));
    let names: Vec<Request> = asks(&outputs).into_iter().map(|(.., request)| request).collect();
    assert!(names.contains(&Request::FindNode { name: own().id().into() }), "{names:?}");
}

#[test]
fn a_record_is_told_the_moment_it_is_there_and_a_newer_one_after_it() {
    let mut directory = that_knows(0..30);
    let outputs = directory.handle(at(0), Input::Find(CommandId(1), name_of(77)));
    let questions = asks(&outputs);
    let answer = |seq| Response::GetValue {
        found: Some(record(77, seq, NOW_SECS, 3600).filed().clone()),
        closer: Vec::new(),
    };
    let told = |outputs: &[Output<()>]| {
        outputs.iter().find_map(|output| match output {
            Output::Found(CommandId(1), record) => Some(record.facts().seq),
            _ => None,
        })
    };
    let outputs = directory.handle(at(100), Input::Answer(questions[0].0, answer(5)));
    assert_eq!((told(&outputs), done(&outputs)), (Some(5), None));
    let outputs = directory.handle(at(110), Input::Answer(questions[1].0, answer(4)));
    assert_eq!(told(&outputs), None);
    let outputs = directory.handle(at(120), Input::Answer(questions[2].0, answer(6)));
    assert_eq!(told(&outputs), Some(6));
    let outputs = directory.handle(at(600), Input::Tick);
    assert_eq!(done(&outputs), Some(Outcome::Found));
    assert!(outputs.iter().any(|output| matches!(output, Output::Abandon(_))), "nobody waits for the others");
    let told_too: Vec<Contact> = asks(&outputs)
        .into_iter()
        .filter(|(.., request)| matches!(request, Request::PutValue(_)))
        .map(|(_, contact, _)| contact)
        .collect();
    assert_eq!(told_too.len(), 2, "who has an older one hears of the newest");
    assert_eq!(directory.record(&name_of(77)).unwrap().facts().seq, 6);
}

#[test]
fn a_record_that_is_known_is_told_without_asking() {
    let mut directory = that_knows(0..30);
    directory.handle(at(0), Input::Told(peer(3).key(), record(77, 5, NOW_SECS, 3600)));
    let outputs = directory.handle(at(0), Input::Find(CommandId(1), name_of(77)));
    assert!(matches!(&outputs[0], Output::Found(_, record) if record.facts().seq == 5));
    let outputs = directory.handle(at(1), Input::Stop(CommandId(1)));
    assert_eq!(done(&outputs), Some(Outcome::Stopped));
}

#[test]
fn a_goodbye_that_is_known_is_told_as_well() {
    let mut directory = that_knows(0..3);
    for record in [record(77, 5, NOW_SECS, 3600), record(77, 6, NOW_SECS, 0)] {
        directory.handle(at(0), Input::Told(peer(77).key(), record));
    }
    let outputs = directory.handle(at(0), Input::Find(CommandId(1), name_of(77)));
    let told = |output: &Output<()>| matches!(output, Output::Found(_, record) if !record.is_alive(NOW_SECS));
    assert!(outputs.iter().any(told), "{outputs:?}");
}

#[test]
fn what_was_found_is_remembered_when_nobody_waits_for_it_any_more() {
    let mut directory = that_knows(0..30);
    let outputs = directory.handle(at(0), Input::Find(CommandId(1), name_of(77)));
    let found = Some(record(77, 5, NOW_SECS, 3600).filed().clone());
    let answer = Response::GetValue { found, closer: Vec::new() };
    directory.handle(at(1), Input::Answer(asks(&outputs)[0].0, answer));
    directory.handle(at(2), Input::Stop(CommandId(1)));
    assert_eq!(directory.record(&name_of(77)).unwrap().facts().seq, 5);
}

#[test]
fn a_stranger_cannot_say_where_a_connected_peer_is() {
    let mut directory = that_knows([1, 2]);
    directory.handle(at(0), Input::Connected(peer(2)));
    let outputs = directory.handle(at(0), Input::Find(CommandId(1), name_of(77)));
    let questions = asks(&outputs);
    let of = |n: u32| questions.iter().find(|(_, contact, _)| *contact == peer(n)).unwrap().0;
    directory.handle(at(1), Input::Failed(of(2), Failure::TimedOut));
    let wrong = contact(2, place(5_000));
    let closer = vec![wrong.clone()];
    let outputs = directory.handle(at(2), Input::Answer(of(1), Response::GetValue { found: None, closer }));
    let (id, asked, request) = asks(&outputs).remove(0);
    assert_eq!(asked, wrong);
    directory.handle(at(3), Input::Answer(id, empty(&request)));
    assert!(directory.table.nearest(peer(2).key(), 1, None).contains(&peer(2)), "{directory:?}");
}

#[test]
fn a_forged_record_is_none_and_its_giver_is_named() {
    let mut directory = that_knows(0..30);
    let outputs = directory.handle(at(0), Input::Find(CommandId(1), name_of(77)));
    let (id, liar, _) = asks(&outputs).remove(0);
    let mut value = record(77, 5, NOW_SECS, 3600).filed().value.to_vec();
    value[15] ^= 1;
    let found = Some(Filed { name: name_of(77), value: value.into() });
    let outputs =
        directory.handle(at(9), Input::Answer(id, Response::GetValue { found, closer: Vec::new() }));
    assert!(!outputs.iter().any(|output| matches!(output, Output::Found(..))));
    let named =
        |output: &Output<()>| matches!(output, Output::Misbehaved(who, Untrue::Forged) if *who == liar.key());
    assert!(outputs.iter().any(named));
}

#[test]
fn a_record_of_the_future_is_none() {
    let mut directory = that_knows(0..30);
    let outputs = directory.handle(at(0), Input::Find(CommandId(1), name_of(77)));
    let found = Some(record(77, 5, NOW_SECS + 301, 3600).filed().clone());
    let answer = Response::GetValue { found, closer: Vec::new() };
    let outputs = directory.handle(at(9), Input::Answer(asks(&outputs)[0].0, answer));
    assert!(!outputs.iter().any(|output| matches!(output, Output::Found(..))));
}

#[test]
fn all_look_ups_together_have_one_bound_on_dials() {
    let mut directory = that_knows(0..200);
    let mut questions = Vec::new();
    for n in 0..10 {
        let outputs = directory.handle(at(0), Input::Find(CommandId(n), name_of(300)));
        questions.extend(asks(&outputs));
    }
    assert_eq!(questions.len(), DIALS_MAX);
    let (id, ..) = questions[0];
    let outputs = directory.handle(at(10), Input::Failed(id, Failure::Unreachable));
    assert_eq!(asks(&outputs).len(), 1, "one that ended makes room for one");
    // Those who are silent hold their dial until its deadline, and no longer.
    assert_eq!(asks(&directory.handle(at(500), Input::Tick)).len(), 0);
    assert!(!asks(&directory.handle(at(2_500), Input::Tick)).is_empty());
    // Somebody who is connected needs no dial.
    let known = peer(3);
    let outputs = directory.handle(at(2_501), Input::Connected(known.clone()));
    assert!(asks(&outputs).iter().all(|(_, contact, _)| *contact == known));
}

#[test]
fn look_ups_take_turns_at_the_dials_that_become_free() {
    let mut directory = that_knows(0..200);
    let mut open = Vec::new();
    for n in 0..4 {
        let outputs = directory.handle(at(0), Input::Find(CommandId(n), name_of(300)));
        open.extend(asks(&outputs));
    }
    assert_eq!(open.len(), DIALS_MAX);
    // Two have asked twelve each, and two wait.
    let mut served = HashSet::new();
    for (id, ..) in open.into_iter().take(2) {
        let outputs = directory.handle(at(1), Input::Failed(id, Failure::Unreachable));
        served.extend(asks(&outputs).into_iter().map(|(id, ..)| id.job));
    }
    assert_eq!(served, [2, 3].map(|n| JobId::Command(CommandId(n))).into());
}

#[test]
fn first_questions_to_many_newcomers_are_bounded() {
    let mut directory = directory();
    let outputs = (0..200).flat_map(|n| directory.handle(at(0), Input::Connected(peer(n))));
    assert_eq!(asks(&outputs.collect::<Vec<_>>()).len(), OWN_JOBS_MAX);
}

#[test]
fn whoever_says_again_and_again_where_it_is_has_one_first_question() {
    let mut directory = directory();
    let outputs = (0..200).flat_map(|_| directory.handle(at(0), Input::Connected(peer(1))));
    let first = asks(&outputs.collect::<Vec<_>>());
    assert_eq!(first.len(), 1);
    let outputs = directory.handle(at(0), Input::Connected(peer(2)));
    assert_eq!(asks(&outputs).len(), 1, "there is a place for the next one");
    directory.handle(at(1), Input::Failed(first[0].0, Failure::TimedOut));
    let outputs = directory.handle(at(2), Input::Connected(peer(1)));
    assert_eq!(asks(&outputs).len(), 1, "it may come again");
}

#[test]
fn silence_is_noticed_without_the_driver_and_counts_twice() {
    let mut directory = that_knows([1, 2, 3]);
    directory.handle(at(0), Input::Connected(peer(2)));
    for n in 1..=2 {
        assert_eq!(directory.peers(), 3);
        let outputs = directory.handle(at(n * 10_000), Input::Find(CommandId(n), name_of(77)));
        let wake = outputs.iter().find_map(|output| match output {
            Output::Wake(time) => Some(*time),
            _ => None,
        });
        assert_eq!(wake, Some(at(n * 10_000 + 450).since));
        for (id, contact, request) in asks(&outputs) {
            if contact != peer(1) {
                directory.handle(at(n * 10_000), Input::Answer(id, empty(&request)));
            }
        }
        let outputs = directory.handle(at(n * 10_000 + 2_500), Input::Tick);
        assert!(outputs.iter().any(|output| matches!(output, Output::Abandon(_))));
        assert_eq!(done(&outputs), Some(Outcome::Absent), "two of three said so");
    }
    assert_eq!(directory.peers(), 2);
}

#[test]
fn a_node_that_is_cut_off_forgets_nobody() {
    let mut directory = that_knows(0..10);
    for n in 0..5 {
        let outputs = directory.handle(at(n), Input::Find(CommandId(n), name_of(77)));
        for (id, ..) in asks(&outputs) {
            directory.handle(at(n), Input::Failed(id, Failure::Unreachable));
        }
    }
    assert_eq!(directory.peers(), 10);
}

#[test]
fn a_request_is_answered_with_the_nearest_and_never_with_who_asks() {
    let mut directory = that_knows(0..60);
    let asker = directory.table.nearest(Key::of(&name_of(5)), 1, None).remove(0);
    let request = Request::GetValue { name: name_of(5) };
    let outputs = directory.handle(at(0), Input::Request(Token(8), asker.clone(), request));
    let Output::Reply(Token(8), Response::GetValue { found: None, closer }) = &outputs[0] else {
        panic!("{outputs:?}")
    };
    assert_eq!(*closer, directory.table.nearest(Key::of(&name_of(5)), K, Some(asker.key())));
    assert_eq!(closer.len(), K);
}

#[test]
fn a_stranger_does_not_send_us_into_private_networks() {
    let mut directory = that_knows(0..3);
    let outputs = directory.handle(at(0), Input::Find(CommandId(1), name_of(77)));
    let (id, ..) = asks(&outputs)[0];
    let near = contact(500, [192, 168, 0, 1]);
    let both = Contact::new(contact(501, place(1)).id(), [[4, 10, 0, 0, 1], [4, 9, 9, 9, 9]]).unwrap();
    let stranger = Contact::new(b"stranger", [[4, 9, 9, 9, 9]]).unwrap();
    let closer = vec![near, both.clone(), stranger];
    let outputs = directory.handle(at(1), Input::Answer(id, Response::GetValue { found: None, closer }));
    let asked = asks(&outputs);
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].1.key(), both.key());
    assert_eq!(asked[0].1.addresses(), [[4, 9, 9, 9, 9].into()]);
}

#[test]
fn in_a_network_of_our_own_private_addresses_are_dialled() {
    let mut directory = that_knows(0..3);
    directory.config.allow_private = true;
    let outputs = directory.handle(at(0), Input::Find(CommandId(1), name_of(77)));
    let near = contact(500, [192, 168, 0, 1]);
    let answer = Response::GetValue { found: None, closer: vec![near.clone()] };
    let outputs = directory.handle(at(1), Input::Answer(asks(&outputs)[0].0, answer));
    assert_eq!(asks(&outputs)[0].1, near);
}

#[test]
fn a_peer_that_comes_again_says_itself_where_it_is() {
    let mut directory = that_knows([1]);
    let moved = contact(1, place(5_000));
    assert!(directory.handle(at(0), Input::Connected(moved.clone())).is_empty(), "it has its place");
    assert_eq!(directory.table.nearest(moved.key(), 1, None), [moved]);
}

#[test]
fn the_number_of_commands_is_bounded() {
    let mut directory = that_knows(0..10);
    let count = u64::try_from(COMMANDS_MAX).unwrap();
    for n in 0..count {
        assert_eq!(done(&directory.handle(at(0), Input::Find(CommandId(n), name_of(77)))), None);
    }
    for n in [0, count] {
        let outputs = directory.handle(at(0), Input::Find(CommandId(n), name_of(77)));
        assert_eq!(done(&outputs), Some(Outcome::Busy));
    }
}

#[test]
fn without_anybody_nothing_is_learned() {
    let outputs = directory().handle(at(0), Input::Find(CommandId(1), name_of(77)));
    assert_eq!(done(&outputs), Some(Outcome::Undecided));
}

proptest! {
    /// Whatever peers do, all that is begun ends, and all that is remembered is bounded.
    #[test]
    fn every_command_ends(steps in proptest::collection::vec((0_u8..8, any::<u8>(), 0_u64..700), 1..150)) {
        let mut directory = that_knows(0..30);
        let (mut now, mut open, mut commands) = (0, Vec::<Asked>::new(), 0_u64);
        let mut begun = HashSet::new();
        let take = |outputs: Vec<Output<()>>, open: &mut Vec<Asked>, begun: &mut HashSet<CommandId>| {
            open.extend(asks(&outputs));
            for output in outputs {
                match output {
                    Output::Done { id, .. } => drop(begun.remove(&id)),
                    Output::Abandon(id) => open.retain(|(other, ..)| *other != id),
                    _ => {}
                }
            }
        };
        for (what, which, later) in steps {
            now += later;
            let n = u32::from(which);
            let asked = if open.is_empty() { None } else { Some(open.swap_remove(usize::from(which) % open.len())) };
            let input = match (what, asked) {
                (0 | 1, _) => {
                    commands += 1;
                    begun.insert(CommandId(commands));
                    match what {
                        0 => Input::Find(CommandId(commands), name_of(n)),
                        _ => Input::Put(CommandId(commands), record(9_999, commands, NOW_SECS, 3600)),
                    }
                }
                (2, _) => Input::Connected(peer(n)),
                (3, _) => Input::Refresh,
                (4, Some((id, ..))) => Input::Failed(id, Failure::Denied),
                (5, Some((id, ..))) => Input::Failed(id, Failure::Unreachable),
                (6, Some((id, _, Request::GetValue { .. } | Request::FindNode { .. }))) => {
                    let closer = (n..n + 30).map(|n| contact(n, place(n % 40))).collect();
                    Input::Answer(id, Response::FindNode { closer })
                }
                (_, Some((id, _, request))) => Input::Answer(id, empty(&request)),
                _ => Input::Tick,
            };
            take(directory.handle(at(now), input), &mut open, &mut begun);
            let dials: usize = directory.jobs.values().map(Job::dials).sum();
            prop_assert!(dials <= DIALS_MAX);
            prop_assert!(directory.jobs.len() <= COMMANDS_MAX + OWN_JOBS_MAX);
            prop_assert!(directory.jobs.values().all(|job| job.open.len() <= 161));
        }
        for _ in 0..400 {
            now += 500;
            take(directory.handle(at(now), Input::Tick), &mut open, &mut begun);
        }
        prop_assert!(begun.is_empty(), "{begun:?}");
        prop_assert!(directory.jobs.is_empty(), "{directory:?}");
        prop_assert!(open.is_empty());
    }
}
