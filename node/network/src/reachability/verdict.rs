//! What the votes of a test mean for an address. Pure.

use farthing_protocol::{
    Address, limits,
    reach::{DialBack, ReachResponse},
};

use super::candidates::{Candidate, Source};

/// Failed tests in a row after which an address is published no more: one may be the testers' bad day.
const FAILURES_MAX: u32 = 2;

/// What one peer's dial says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    /// It came through; we saw it.
    Arrived,
    /// It tried and says why it did not.
    Failed(String),
    /// Neither is shown.
    Undecided(String),
}

impl Vote {
    /// The vote of a peer that did not come through to the `index`-th address it was asked to dial.
    pub(super) fn without_arrival(answer: &Result<ReachResponse, String>, index: usize) -> Self {
        match answer {
            Ok(ReachResponse::Dialled(ends, _)) => match ends.get(index) {
                Some(DialBack::Failed(why)) => Self::Failed(one_line(why)),
                Some(DialBack::Declined(why)) => Self::Undecided(one_line(why)),
                Some(DialBack::Reached) => {
                    Self::Undecided("it says that it came through, but nothing arrived".to_owned())
                }
                None => Self::Undecided("it did not say".to_owned()),
            },
            Ok(ReachResponse::TooSoon { .. }) => Self::Undecided("it was asked too soon".to_owned()),
            Ok(ReachResponse::Refused(why)) => Self::Undecided(one_line(why)),
            Err(why) => Self::Undecided(one_line(why)),
        }
    }

    /// A peer that we had written to came through, and its neighbour did not.
    pub(super) fn of_strangers(why: &str) -> Self {
        Self::Failed(one_line(&format!("it came through, somebody this node never wrote to did not: {why}")))
    }

    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Arrived => None,
            Self::Failed(why) | Self::Undecided(why) => Some(why),
        }
    }
}

/// A stranger's text, cut to a line.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(limits::REACH_REASON_CHARS_MAX).collect()
}

/// Two of three decide; of fewer, whatever there is. A tie decides nothing.
pub(super) fn decide<'a>(votes: impl IntoIterator<Item = &'a Vote>) -> Option<bool> {
    let (arrived, failed) = count(votes);
    (arrived != failed).then_some(arrived > failed)
}

/// How many votes more one side has than the other.
pub(super) fn margin<'a>(votes: impl IntoIterator<Item = &'a Vote>) -> usize {
    let (arrived, failed) = count(votes);
    arrived.abs_diff(failed)
}

fn count<'a>(votes: impl IntoIterator<Item = &'a Vote>) -> (usize, usize) {
    votes.into_iter().fold((0, 0), |(arrived, failed), vote| match vote {
        Vote::Arrived => (arrived + 1, failed),
        Vote::Failed(_) => (arrived, failed + 1),
        Vote::Undecided(_) => (arrived, failed),
    })
}

/// A candidate and what tests have shown of it.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) candidate: Candidate,
    /// The last test that decided.
    pub(super) reachable: Option<bool>,
    /// Failed tests since the last good one.
    pub(super) failures: u32,
    /// Whether it is published.
    pub(super) believed: bool,
    pub(super) votes: Vec<(Address, Vote)>,
}

impl Standing {
    pub(super) const fn new(candidate: Candidate) -> Self {
        let believed = matches!(candidate.source, Source::Announced);
        Self { candidate, reachable: None, failures: 0, believed, votes: Vec::new() }
    }

    /// Takes the votes of one test in.
    pub(super) fn judge(&mut self, votes: Vec<(Address, Vote)>) {
        match decide(votes.iter().map(|(_, vote)| vote)) {
            Some(true) => {
                self.reachable = Some(true);
                self.failures = 0;
                self.believed = true;
            }
            Some(false) => {
                self.reachable = Some(false);
                self.failures = self.failures.saturating_add(1);
                self.believed &= self.failures < FAILURES_MAX;
            }
            None => {}
        }
        self.votes = votes;
    }

    /// Whether the next test should not wait for its turn: the last one failed an address that is still
    /// published, or decided nothing.
    pub(super) fn is_in_doubt(&self) -> bool {
        let undecided = !self.votes.is_empty() && decide(self.votes.iter().map(|(_, vote)| vote)).is_none();
        undecided || (self.believed && self.failures > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn votes(text: &str) -> Vec<(Address, Vote)> {
        let vote = |letter| match letter {
            'a' => Vote::Arrived,
            'f' => Vote::Failed("refused".to_owned()),
            _ => Vote::Undecided("silence".to_owned()),
        };
        text.chars().map(|letter| (Address::from_bytes([0; 20]), vote(letter))).collect()
    }

    #[test]
    fn two_of_three_decide_and_of_fewer_whatever_there_is() {
        for (text, decision) in [
            ("", None),
            ("u", None),
            ("a", Some(true)),
            ("f", Some(false)),
            ("af", None),
            ("afu", None),
            ("au", Some(true)),
            ("fu", Some(false)),
            ("aaf", Some(true)),
            ("aff", Some(false)),
            ("aau", Some(true)),
            ("uuu", None),
        ] {
            assert_eq!(decide(votes(text).iter().map(|(_, vote)| vote)), decision, "{text:?}");
        }
    }

    #[test]
    fn the_word_of_a_peer_that_did_not_arrive_never_counts_for_us() {
        let says = |ends: Vec<DialBack>| Vote::without_arrival(&Ok(ReachResponse::Dialled(ends, None)), 0);
        assert!(matches!(says(vec![DialBack::Reached]), Vote::Undecided(_)));
        assert!(matches!(says(Vec::new()), Vote::Undecided(_)));
        let declined = DialBack::Declined("not dialled: this is no public address".to_owned());
        assert!(matches!(says(vec![declined]), Vote::Undecided(_)), "nobody tried");
        let hostile = format!("no\n\u{1b}[31m{}", "x".repeat(1000));
        let Vote::Failed(reason) = says(vec![DialBack::Failed(hostile)]) else { panic!() };
        assert_eq!(reason.chars().count(), limits::REACH_REASON_CHARS_MAX);
        assert!(!reason.contains(char::is_control));
    }

    fn standing(source: Source) -> Standing {
        let address: libp2p::Multiaddr = "/ip4/9.9.9.9/tcp/3001".parse().unwrap();
        Standing::new(Candidate { dialled: Some(address.clone()), address, source })
    }

    #[test]
    fn an_observed_address_is_believed_once_it_is_verified_and_until_it_fails_twice() {
        let mut standing = standing(Source::Observed);
        for (votes_text, believed, reachable) in [
            ("fff", false, Some(false)),
            ("uu", false, Some(false)),
            ("aa", true, Some(true)),
            ("ff", true, Some(false)),
            ("a", true, Some(true)),
            ("f", true, Some(false)),
            ("u", true, Some(false)),
            ("f", false, Some(false)),
        ] {
            standing.judge(votes(votes_text));
            assert_eq!((standing.believed, standing.reachable), (believed, reachable), "{votes_text}");
        }
    }

    #[test]
    fn an_announced_address_is_believed_at_once_and_withdrawn_after_two_failures() {
        let mut standing = standing(Source::Announced);
        assert!(standing.believed && !standing.is_in_doubt());
        standing.judge(votes("fff"));
        assert!(standing.believed && standing.is_in_doubt(), "tested again soon");
        standing.judge(votes("fff"));
        assert!(!standing.believed && !standing.is_in_doubt());
        standing.judge(votes("aa"));
        assert!(standing.believed);
    }
}
