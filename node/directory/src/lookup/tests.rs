//! The rules of a look-up, one by one.

use super::*;
use crate::{
    question::Failure,
    testing::{NOW_SECS, contact, name_of, place, record},
    wire::{Filed, Response},
};

const NOW: Duration = Duration::from_secs(100);

/// A look-up, and its questions under way.
struct World {
    lookup: Lookup<()>,
    open: Vec<Question>,
    now: Duration,
}

impl World {
    /// Begins with peers of these numbers, each in a network of its own.
    fn beginning_with(numbers: impl IntoIterator<Item = u32>) -> Self {
        let target = Key::of(&name_of(0));
        let mut begin: Vec<Contact> = numbers.into_iter().map(peer).collect();
        begin.sort_by_key(|contact| target.distance(contact.key()));
        let own = Key::of(b"own");
        let lookup =
            Lookup::new(own, name_of(0), LookupPurpose::Record, begin, None, NOW + Duration::from_secs(4));
        Self { lookup, open: Vec::new(), now: NOW }
    }

    /// Asks as many as may be asked, and returns them.
    fn ask(&mut self) -> Vec<Question> {
        let mut asked = Vec::new();
        while let Some((contact, request, line, named_by)) = self.lookup.next(&self.open, self.now, |_| true)
        {
            let question = Question {
                number: 0,
                contact,
                request,
                is_dial: true,
                slow_at: self.now + crate::SLOW_AFTER,
                deadline: self.now + Duration::from_secs(3),
                line,
                named_by,
            };
            self.open.push(question.clone());
            asked.push(question);
        }
        asked
    }

    fn close(&mut self, question: &Question) {
        self.open.retain(|other| other.contact != question.contact || other.line != question.line);
    }

    fn answer(&mut self, question: &Question, closer: Vec<Contact>) {
        self.close(question);
        let answered =
            question.answered(&Response::GetValue { found: None, closer: Vec::new() }, None).unwrap();
        self.lookup.on_answer(question, &answered, None, closer);
    }

    fn fail(&mut self, question: &Question, failure: Failure) {
        self.close(question);
        match failure {
            Failure::Denied => self.lookup.on_denied(question, self.now),
            _ => self.lookup.on_failure(question),
        }
    }
}

fn at(since: Duration) -> Now {
    Now { since, unix_secs: NOW_SECS }
}

fn peer(n: u32) -> Contact {
    contact(n, place(n))
}

fn keys(contacts: &[Contact]) -> Vec<Key> {
    contacts.iter().map(Contact::key).collect()
}

fn asked(questions: &[Question]) -> Vec<Key> {
    questions.iter().map(|question| question.contact.key()).collect()
}

/// Peers from `first` on in order of their distance to the target, the nearest first.
fn near(first: u32, count: u32) -> Vec<Contact> {
    let target = Key::of(&name_of(0));
    let mut peers: Vec<Contact> = (first..first + count).map(peer).collect();
    peers.sort_by_key(|contact| target.distance(contact.key()));
    peers
}

#[test]
fn six_lines_ask_two_at_once_each_and_share_no_peer() {
    let mut world = World::beginning_with(0..40);
    let questions = world.ask();
    assert_eq!(questions.len(), 12);
    for line in 0..6 {
        assert_eq!(questions.iter().filter(|question| question.line == line).count(), 2, "{line}");
    }
    let mut keys = asked(&questions);
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), questions.len());
    // All lines are told of the same peers; each of them is asked once.
    let told = near(100, 4);
    questions.iter().for_each(|question| world.answer(question, told.clone()));
    let more = asked(&world.ask());
    assert!(keys_once(&more), "{more:?}");
}

fn keys_once(keys: &[Key]) -> bool {
    let mut sorted = keys.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() == keys.len()
}

#[test]
fn the_four_nearest_of_an_answer_are_asked_and_on_its_own_line() {
    let mut world = World::beginning_with([1]);
    let first = world.ask().remove(0);
    let told = near(100, 20);
    world.answer(&first, told.clone());
    let mut more = world.ask();
    let line = first.line;
    while let Some(question) = more.pop() {
        assert_eq!(question.line, line);
        world.answer(&question, Vec::new());
        more.extend(world.ask());
    }
    let tried: Vec<bool> = told.iter().map(|one| world.lookup.tried.contains_key(&one.key())).collect();
    assert_eq!(tried.iter().filter(|tried| **tried).count(), 4);
    assert!(tried[..4].iter().all(|tried| *tried), "the nearest");
}

#[test]
fn a_silent_peer_stops_counting_after_a_while_and_its_line_asks_another() {
    let mut world = World::beginning_with(0..18);
    assert_eq!(world.ask().len(), 12);
    world.now = NOW + crate::SLOW_AFTER - Duration::from_millis(1);
    assert_eq!(world.ask().len(), 0);
    world.now = NOW + crate::SLOW_AFTER;
    assert_eq!(world.ask().len(), 6, "three a line are there to begin with");
}

#[test]
fn whoever_a_liar_named_is_asked_after_all_others() {
    let mut world = World::beginning_with([1]);
    let first = world.ask().remove(0);
    // On one line, the liar names the nearest four, of which two are asked.
    let invented = near(100, 4);
    world.answer(&first, invented.clone());
    let questions = world.ask();
    assert_eq!(asked(&questions), keys(&invented[..2]));
    // Meanwhile somebody honest was asked on this line, and names some that are farther.
    let honest = Question { named_by: None, contact: peer(2), ..questions[0].clone() };
    world.lookup.on_answer(
        &honest,
        &honest.answered(&Response::GetValue { found: None, closer: Vec::new() }, None).unwrap(),
        None,
        near(5_000, 2),
    );
    let farther = near(5_000, 2);
    let target = Key::of(&name_of(0));
    assert!(target.distance(farther[0].key()) > target.distance(invented[3].key()));
    world.fail(&questions[0], Failure::Unreachable);
    world.fail(&questions[1], Failure::TimedOut);
    assert_eq!(asked(&world.ask()), keys(&farther));
}

#[test]
fn a_silent_peer_puts_doubt_on_its_namer_before_it_fails() {
    let mut world = World::beginning_with([1]);
    let first = world.ask().remove(0);
    world.answer(&first, near(100, 4));
    let silent = world.ask();
    let honest = Question { named_by: None, contact: peer(2), ..silent[0].clone() };
    world.lookup.on_answer(
        &honest,
        &honest.answered(&Response::GetValue { found: None, closer: Vec::new() }, None).unwrap(),
        None,
        near(5_000, 2),
    );
    world.now += crate::SLOW_AFTER;
    assert_eq!(asked(&world.ask()), keys(&near(5_000, 2)));
}

#[test]
fn what_our_own_limits_kept_back_counts_against_nobody_and_is_asked_once_more() {
    let mut world = World::beginning_with([1]);
    let first = world.ask().remove(0);
    world.fail(&first, Failure::Denied);
    assert!(world.lookup.failed.is_empty() && world.lookup.tried.is_empty());
    assert!(world.ask().is_empty(), "not at once");
    world.now += DENIED_PAUSE;
    let again = world.ask();
    assert_eq!(asked(&again), [first.contact.key()]);
    world.fail(&again[0], Failure::Denied);
    world.now += DENIED_PAUSE;
    assert!(world.ask().is_empty(), "not for ever");
    assert_eq!(world.lookup.outcome(true), Outcome::Undecided, "nothing was learned");
}

#[test]
fn few_peers_of_one_network_are_asked_on_a_line() {
    let mut world = World::beginning_with([1]);
    let first = world.ask().remove(0);
    let of_one_network: Vec<Contact> = (100..110).map(|n| contact(n, [9, 9, 1, 1])).collect();
    let mut asked = 0;
    for told in of_one_network.chunks(4) {
        world.answer(&first, told.to_vec());
        loop {
            let questions = world.ask();
            if questions.is_empty() {
                break;
            }
            asked += questions.len();
            questions.iter().for_each(|question| world.answer(question, Vec::new()));
        }
    }
    assert_eq!(asked, crate::table::SAME_NETWORK_MAX);
}

#[test]
fn a_peer_named_at_a_wrong_place_is_asked_at_the_right_one() {
    let mut world = World::beginning_with([1, 2]);
    let questions = world.ask();
    let (liar, honest) = (questions[0].clone(), questions[1].clone());
    let (wrong, right) = (contact(100, [9, 9, 9, 9]), contact(100, place(100)));
    world.answer(&liar, vec![wrong.clone()]);
    assert_eq!(asked(&world.ask()), [wrong.key()]);
    world.answer(&honest, vec![right.clone()]);
    let again = world.ask();
    assert_eq!(again[0].contact, right);
    world.answer(&again[0], Vec::new());
    // Who has answered is not asked again, wherever it is said to be.
    let other = contact(100, [8, 8, 8, 8]);
    world.answer(&Question { contact: peer(3), ..honest }, vec![other]);
    assert!(world.ask().is_empty());
}

#[test]
fn nobody_is_asked_who_is_farther_than_twenty_that_answered() {
    let peers = near(0, 60);
    let mut world = World::beginning_with([]);
    let question = Question { named_by: None, contact: peers[30].clone(), ..any_question() };
    // Two are told of on each line: the 20 nearest answer, and of those nobody is asked who is farther.
    for (n, contact) in peers[..K].iter().enumerate() {
        let question = Question { contact: contact.clone(), line: n % LINES, ..question.clone() };
        world.answer(&question, vec![peers[30 + n].clone()]);
    }
    assert!(world.ask().is_empty());
    assert_eq!(world.lookup.nearest(K), peers[..K]);
    assert!(world.lookup.is_exhausted(&[], NOW));
}

fn any_question() -> Question {
    crate::testing::question(peer(0), Request::GetValue { name: name_of(0) })
}

#[test]
fn the_first_record_is_told_at_once_and_a_newer_one_has_half_a_second() {
    let mut world = World::beginning_with(0..10);
    assert!(world.lookup.on_record(&record(0, 5, NOW_SECS, 3600), at(NOW)));
    assert_eq!(world.lookup.ends_at, NOW + AFTER_FIRST);
    assert!(!world.lookup.on_record(&record(0, 5, NOW_SECS, 3600), at(NOW + AFTER_FIRST / 2)));
    assert!(!world.lookup.on_record(&record(0, 4, NOW_SECS, 3600), at(NOW + AFTER_FIRST / 2)));
    assert!(world.lookup.on_record(&record(0, 6, NOW_SECS, 3600), at(NOW + AFTER_FIRST / 2)));
    assert_eq!(world.lookup.ends_at, NOW + AFTER_FIRST, "later ones give no more time");
    assert_eq!(world.lookup.outcome(false), Outcome::Found);
}

#[test]
fn a_record_that_has_expired_ends_no_look_up_early() {
    let mut world = World::beginning_with(0..10);
    let ends_at = world.lookup.ends_at;
    assert!(world.lookup.on_record(&record(0, 5, NOW_SECS - 7200, 3600), at(NOW)));
    assert_eq!(world.lookup.ends_at, ends_at, "its owner may have come back since");
    assert!(world.lookup.on_record(&record(0, 6, NOW_SECS, 3600), at(NOW)));
    assert_eq!(world.lookup.ends_at, NOW + AFTER_FIRST);
}

#[test]
fn a_time_out_is_no_absence() {
    for (answers, outcome) in [(0, Outcome::Undecided), (5, Outcome::Undecided), (6, Outcome::Absent)] {
        let mut world = World::beginning_with(0..10);
        let questions = world.ask();
        assert_eq!(questions.len(), 10);
        for (n, question) in questions.iter().enumerate() {
            if n < answers {
                world.answer(question, Vec::new());
            } else {
                world.fail(question, Failure::TimedOut);
            }
        }
        assert!(world.lookup.is_exhausted(&world.open, world.now));
        assert_eq!(world.lookup.outcome(true), outcome, "{answers} answered");
        assert_eq!(world.lookup.outcome(false), Outcome::Undecided, "not at the deadline");
    }
    assert_eq!(World::beginning_with([]).lookup.outcome(true), Outcome::Undecided, "nobody was asked");
}

#[test]
fn whoever_has_an_older_record_is_told_of_the_newest() {
    let mut world = World::beginning_with(0..3);
    let questions = world.ask();
    let (new, old) = (record(0, 6, NOW_SECS, 3600), record(0, 5, NOW_SECS, 3600));
    for (question, record) in questions.iter().zip([Some(&new), Some(&old), None]) {
        let found: Option<Filed> = record.map(|record| record.filed().clone());
        let answered = question.answered(&Response::GetValue { found, closer: Vec::new() }, None).unwrap();
        world.lookup.on_answer(question, &answered, record.map(VerifiedRecord::seq), Vec::new());
        record.map(|record| world.lookup.on_record(record, at(NOW)));
    }
    assert_eq!(world.lookup.behind(), [questions[1].contact.clone()]);
}

#[test]
fn a_line_remembers_few_who_wait() {
    let mut world = World::beginning_with([1]);
    let first = world.ask().remove(0);
    for n in 0..100 {
        let from = 1_000 + 20 * n;
        world.answer(
            &Question { contact: peer(from), ..first.clone() },
            (from..from + 20).map(peer).collect(),
        );
    }
    assert_eq!(world.lookup.lines[first.line].candidates.len(), CANDIDATES_MAX);
}

/// Whoever is asked names four who are nearer, without end.
#[test]
fn a_look_up_that_is_led_on_for_ever_ends() {
    let mut nearer_and_nearer = near(0, 3_000).into_iter().rev();
    let mut world = World::beginning_with([]);
    world.lookup.add(0, nearer_and_nearer.next().unwrap(), None);
    loop {
        let questions = world.ask();
        if questions.is_empty() {
            break;
        }
        for question in questions {
            world.answer(&question, nearer_and_nearer.by_ref().take(4).collect());
        }
    }
    assert_eq!(world.lookup.tried.len(), QUESTIONS_MAX);
    assert!(world.lookup.is_exhausted(&[], NOW));
}
