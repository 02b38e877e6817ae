//! Records that are given: ours to those nearest, and those of others to us.

use super::*;
use crate::question::DENIED_PAUSE;

/// The answer of a peer that knows sixty.
fn all_sixty() -> Response {
    Response::FindNode { closer: (0..60).map(peer).collect() }
}

#[test]
fn a_put_is_done_when_twenty_of_the_nearest_keep_the_record() {
    let mut directory = that_knows(0..60);
    let own = record(9_999, 1, NOW_SECS, 3600);
    let mut left = asks(&directory.handle(at(0), Input::Put(CommandId(1), own.clone())));
    let (mut given, mut refusals, mut ended) = (Vec::new(), 0, None);
    while let Some((id, contact, request)) = left.pop() {
        let input = match &request {
            Request::PutValue(filed) => {
                assert_eq!(filed, own.filed());
                if refusals < 3 {
                    refusals += 1;
                    Input::Failed(id, Failure::Malformed)
                } else {
                    given.push(contact);
                    Input::Answer(id, empty(&request))
                }
            }
            Request::FindNode { .. } => Input::Answer(id, all_sixty()),
            Request::GetValue { .. } => panic!("a put looks for peers"),
        };
        let outputs = directory.handle(at(5), input);
        left.extend(asks(&outputs));
        ended = ended.or(done(&outputs));
    }
    assert_eq!(ended, Some(Outcome::Placed { holders: K }));
    assert_eq!(given.len(), K, "who does not keep it is replaced by the next");
    assert_eq!(directory.record(&own.filed().name).unwrap().facts().seq, 1);
}

#[test]
fn a_put_that_nobody_takes_says_so() {
    let mut directory = that_knows(0..5);
    let mut left = asks(&directory.handle(at(0), Input::Put(CommandId(1), record(9_999, 1, NOW_SECS, 3600))));
    let mut ended = None;
    while let Some((id, _, request)) = left.pop() {
        let input = match request {
            Request::PutValue(_) => Input::Failed(id, Failure::TimedOut),
            _ => Input::Answer(id, empty(&request)),
        };
        let outputs = directory.handle(at(5), input);
        left.extend(asks(&outputs));
        ended = ended.or(done(&outputs));
    }
    assert_eq!(ended, Some(Outcome::PartlyPlaced { holders: 0, wanted: 5 }));
}

#[test]
fn a_put_that_one_peer_took_while_most_of_the_nearest_said_nothing_is_not_done() {
    let mut directory = that_knows(0..5);
    let mut left = asks(&directory.handle(at(0), Input::Put(CommandId(1), record(9_999, 1, NOW_SECS, 3600))));
    let (mut ended, mut found) = (None, 0);
    while let Some((id, _, request)) = left.pop() {
        found += usize::from(matches!(request, Request::FindNode { .. }));
        let is_silent = matches!(request, Request::FindNode { .. }) && found > 1;
        let input = match is_silent {
            true => Input::Failed(id, Failure::TimedOut),
            false => Input::Answer(id, empty(&request)),
        };
        let outputs = directory.handle(at(5), input);
        left.extend(asks(&outputs));
        ended = ended.or(done(&outputs));
    }
    assert_eq!(ended, Some(Outcome::PartlyPlaced { holders: 1, wanted: K }));
}

#[test]
fn a_peer_that_our_own_limits_kept_the_record_from_gets_it_a_moment_later_and_no_other_in_its_place() {
    let mut directory = that_knows(0..60);
    let mut left = asks(&directory.handle(at(0), Input::Put(CommandId(1), record(9_999, 1, NOW_SECS, 3600))));
    let (mut denied, mut given) = (None, 0);
    while let Some((id, contact, request)) = left.pop() {
        let input = match &request {
            Request::PutValue(_) if denied.is_none() => {
                denied = Some(contact);
                Input::Failed(id, Failure::Denied)
            }
            Request::PutValue(_) => {
                given += 1;
                Input::Answer(id, empty(&request))
            }
            _ => Input::Answer(id, all_sixty()),
        };
        let outputs = directory.handle(at(0), input);
        left.extend(asks(&outputs));
        assert_eq!(done(&outputs), None);
    }
    assert_eq!(given, K - 1);
    let later = Now { since: DENIED_PAUSE, unix_secs: NOW_SECS };
    let outputs = directory.handle(later, Input::Tick);
    let (id, again, request) = asks(&outputs).remove(0);
    assert_eq!(Some(again), denied);
    let outputs = directory.handle(later, Input::Answer(id, empty(&request)));
    assert_eq!(done(&outputs), Some(Outcome::Placed { holders: K }));
}

#[test]
fn a_peers_record_is_acknowledged_when_it_is_verified_and_kept() {
    let mut directory = directory();
    let mut put = |token, filed: &Filed| {
        let outputs =
            directory.handle(at(0), Input::Request(Token(token), peer(1), Request::PutValue(filed.clone())));
        let keeps = |output: &Output<()>| matches!(output, Output::Reply(_, Response::PutValue(kept)) if kept == filed);
        (outputs.iter().any(keeps), outputs)
    };
    let good = record(5, 2, NOW_SECS, 3600).filed().clone();
    assert!(put(1, &good).0);
    assert!(put(2, &good).0, "what is held is acknowledged again");
    let (kept, outputs) = put(3, record(5, 1, NOW_SECS, 3600).filed());
    assert!(!kept && outputs.iter().any(|output| matches!(output, Output::Refuse(Token(3)))));
    let heard = |output: &Output<()>| {
        matches!(output, Output::Heard { kept: Err(RecordRefusal::NotNewer { held: 2 }), .. })
    };
    assert!(outputs.iter().any(heard));
    let mut forged = good.value.to_vec();
    forged[15] ^= 1;
    let (kept, outputs) = put(4, &Filed { value: forged.into(), ..good });
    assert!(!kept);
    assert!(outputs.iter().any(|output| matches!(output, Output::Misbehaved(_, Untrue::Forged))));
}

#[test]
fn a_flood_of_records_from_one_peer_is_not_looked_at_for_ever() {
    let mut directory = directory();
    let mut heard = 0;
    for n in 0..1_000 {
        let request = Request::PutValue(record(n, 1, NOW_SECS, 3600).filed().clone());
        let outputs = directory.handle(at(0), Input::Request(Token(0), peer(1), request));
        heard += outputs.iter().filter(|output| matches!(output, Output::Heard { .. })).count();
    }
    assert_eq!((heard, directory.records()), (240, 10));
}
