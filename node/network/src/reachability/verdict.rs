//! Verdicts on an address, from the votes of a test. Pure.

use farthing_protocol::{
    Address, limits,
    reach::{DialBack, ReachResponse},
};

use super::candidates::AddressCandidate;
use crate::AddressSource;

/// Failed tests in a row after which an address is published no more, and the next test waits for its turn: one may be the
/// testers' bad day.
const FAILURES_MAX: u32 = 2;

/// Tests in a row without word of a stranger after which it is forgotten that strangers did not come through: there
/// may be none any more who could tell that a forward was added.
const STRANGERLESS_MAX: u32 = 8;

/// The result of one peer's dial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Vote {
    /// It came through, or its neighbour did, and this node had not written to it; we saw it.
    Arrived,
    /// It came through, and this node had written to it: many routers let such a peer in. Proof as long as nobody
    /// knows of a stranger that they keep out.
    ArrivedKnown,
    /// It came through, and its neighbour, whom this node had not written to, did not; why that did not.
    KeptOut(String),
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
                    Self::Undecided("it says that it connected, but nothing arrived".to_owned())
                }
                None => Self::Undecided("it did not say".to_owned()),
            },
            Ok(ReachResponse::TooSoon { .. }) => Self::Undecided("it was asked too soon".to_owned()),
            Ok(ReachResponse::Refused(why)) => Self::Undecided(one_line(why)),
            Err(why) => Self::Undecided(one_line(why)),
        }
    }

    /// A peer that we had written to came through, and its neighbour did not.
    pub(super) fn kept_out(why: &str) -> Self {
        Self::KeptOut(one_line(&format!(
            "it connected, but a peer that this node never contacted did not: {why}"
        )))
    }

    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Arrived | Self::ArrivedKnown => None,
            Self::KeptOut(why) | Self::Failed(why) | Self::Undecided(why) => Some(why),
        }
    }
}

/// A stranger's text, cut to a line.
fn one_line(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(limits::REACH_REASON_CHARS_MAX).collect()
}

/// The votes of a test on one address, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    arrived: usize,
    arrived_known: usize,
    kept_out: usize,
    failed: usize,
}

impl Count {
    fn of<'a>(votes: impl IntoIterator<Item = &'a Vote>) -> Self {
        let mut count = Self::default();
        for vote in votes {
            match vote {
                Vote::Arrived => count.arrived += 1,
                Vote::ArrivedKnown => count.arrived_known += 1,
                Vote::KeptOut(_) => count.kept_out += 1,
                Vote::Failed(_) => count.failed += 1,
                Vote::Undecided(_) => {}
            }
        }
        count
    }

    /// Two of three decide; of fewer, whatever there is. A tie decides nothing, nor do words against a stranger that came
    /// through: it was seen, and wallets that say anything are free. `keeps_out`: strangers were kept out before, so that
    /// those whom this node wrote to prove nothing.
    fn decide(self, keeps_out: bool) -> Option<bool> {
        let counts_known = !keeps_out && self.kept_out == 0;
        let arrived = self.arrived + if counts_known { self.arrived_known } else { 0 };
        let failed = self.failed + self.kept_out;
        (arrived > failed || (arrived < failed && self.arrived == 0)).then_some(arrived > failed)
    }
}

/// Returns whether these votes decide, whatever the `missing` ones are.
pub(super) fn is_certain<'a>(votes: impl IntoIterator<Item = &'a Vote>, missing: usize) -> bool {
    let count = Count::of(votes);
    let failed = count.failed + count.kept_out;
    // One more that was kept out takes the proof from all whom this node wrote to.
    count.arrived > failed + missing || missing == 0 && failed > count.arrived + count.arrived_known
}

/// A candidate and what tests have shown of it.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) candidate: AddressCandidate,
    /// The last test that decided.
    pub(super) reachable: Option<bool>,
    /// Failed tests since the last good one.
    pub(super) failures: u32,
    /// The router lets in whoever this node wrote to and keeps strangers out, as a test has shown; and how many tests
    /// since then have had no stranger.
    strangerless: Option<u32>,
    /// True if it is published.
    pub(super) believed: bool,
    /// True if the last test decided nothing.
    is_undecided: bool,
    pub(super) votes: Vec<(Address, Vote)>,
}

impl Standing {
    pub(super) const fn new(candidate: AddressCandidate) -> Self {
        let believed = matches!(candidate.source, AddressSource::Announced);
        Self {
            candidate,
            reachable: None,
            failures: 0,
            strangerless: None,
            believed,
            is_undecided: false,
            votes: Vec::new(),
        }
    }

    /// Takes the votes of one test in.
    pub(super) fn judge(&mut self, votes: Vec<(Address, Vote)>) {
        let count = Count::of(votes.iter().map(|(_, vote)| vote));
        self.strangerless = match self.strangerless {
            _ if count.kept_out > count.arrived => Some(0),
            _ if count.arrived > 0 => None,
            Some(tests) => Some(tests + 1).filter(|tests| *tests < STRANGERLESS_MAX),
            None => None,
        };
        let decision = count.decide(self.strangerless.is_some());
        match decision {
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
        self.is_undecided = !votes.is_empty() && decision.is_none();
        self.votes = votes;
    }

    /// Returns whether the next test should not wait for its turn: the last one decided nothing, or was the first in a row that
    /// failed. A node that is taken for unreachable relays nobody, and those who need a relay wait for its next test.
    pub(super) fn is_in_doubt(&self) -> bool {
        self.is_undecided || (1..FAILURES_MAX).contains(&self.failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn votes(text: &str) -> Vec<(Address, Vote)> {
        let vote = |letter| match letter {
            'a' => Vote::Arrived,
            'k' => Vote::ArrivedKnown,
            'o' => Vote::KeptOut("silence".to_owned()),
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
            // One came through, whatever two wallets say, which cost nothing.
            ("aff", None),
            ("ffu", Some(false)),
            ("aau", Some(true)),
            ("uuu", None),
            // Whom we wrote to is proof while no stranger is known to be kept out.
            ("kkk", Some(true)),
            ("kf", None),
            ("ko", Some(false)),
            ("kko", Some(false)),
            ("kao", None),
            ("aao", Some(true)),
        ] {
            let count = Count::of(votes(text).iter().map(|(_, vote)| vote));
            assert_eq!(count.decide(false), decision, "{text:?}");
        }
        for (text, decision) in [("kkk", None), ("kf", Some(false)), ("ka", Some(true))] {
            let count = Count::of(votes(text).iter().map(|(_, vote)| vote));
            assert_eq!(count.decide(true), decision, "{text:?} where strangers were kept out before");
        }
    }

    #[test]
    fn a_test_ends_early_only_when_those_who_are_missing_could_not_change_it() {
        for (text, missing, certain) in [
            ("aa", 1, true),
            // The third may come through.
            ("ff", 1, false),
            ("oo", 1, false),
            ("ff", 0, true),
            ("a", 1, false),
            ("af", 1, false),
            // The third may know of a stranger that is kept out.
            ("kk", 1, false),
            ("ka", 1, false),
            ("kk", 0, false),
        ] {
            let votes = votes(text);
            assert_eq!(is_certain(votes.iter().map(|(_, vote)| vote), missing), certain, "{text} {missing}");
        }
    }

    #[test]
    fn the_word_of_a_peer_that_did_not_arrive_never_counts_for_us() {
        let says = |ends: Vec<DialBack>| Vote::without_arrival(&Ok(ReachResponse::Dialled(ends, None)), 0);
        assert!(matches!(says(vec![DialBack::Reached]), Vote::Undecided(_)));
        assert!(matches!(says(Vec::new()), Vote::Undecided(_)));
        let declined = DialBack::Declined("not dialled: this is not a public address".to_owned());
        assert!(matches!(says(vec![declined]), Vote::Undecided(_)), "nobody tried");
        let hostile = format!("no\n\u{1b}[31m{}", "x".repeat(1000));
        let Vote::Failed(reason) = says(vec![DialBack::Failed(hostile)]) else { panic!() };
        assert_eq!(reason.chars().count(), limits::REACH_REASON_CHARS_MAX);
        assert!(!reason.contains(char::is_control));
    }

    fn standing(source: AddressSource) -> Standing {
        let address: libp2p::Multiaddr = "/ip4/9.9.9.9/tcp/3001".parse().unwrap();
        Standing::new(AddressCandidate { dialled: Some(address.clone()), address, source })
    }

    #[test]
    fn an_observed_address_is_believed_once_it_is_verified_and_until_it_fails_twice() {
        let mut standing = standing(AddressSource::Observed);
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
    fn an_address_that_fails_once_is_tested_again_soon_whether_it_is_published_or_not() {
        for source in [AddressSource::Announced, AddressSource::Observed] {
            let mut standing = standing(source);
            assert!(!standing.is_in_doubt());
            for (votes_text, is_in_doubt) in [
                ("f", true),
                ("fff", false),
                ("fff", false),
                ("aa", false),
                ("ff", true),
                ("u", true),
                ("ff", false),
                ("u", true),
            ] {
                standing.judge(votes(votes_text));
                assert_eq!(standing.is_in_doubt(), is_in_doubt, "{source:?}: {votes_text}");
            }
        }
    }

    #[test]
    fn those_we_wrote_to_prove_nothing_after_a_stranger_was_kept_out_until_that_is_long_ago() {
        let mut standing = standing(AddressSource::Observed);
        standing.judge(votes("kkk"));
        assert!(standing.believed, "nobody else may be there to tell");
        standing.judge(votes("kko"));
        standing.judge(votes("kkk"));
        assert!(standing.believed && standing.is_in_doubt(), "tested again soon");
        standing.judge(votes("ko"));
        assert!(!standing.believed);
        standing.judge(votes("kka"));
        assert!(standing.believed, "a stranger came through: it is forwarded now");
        for text in ["oo", "oo"].into_iter().chain(["kkk"; STRANGERLESS_MAX as usize - 1]) {
            standing.judge(votes(text));
        }
        assert!(!standing.believed);
        standing.judge(votes("kkk"));
        assert!(standing.believed, "no stranger is left who could tell");
    }

    #[test]
    fn an_announced_address_is_believed_at_once_and_withdrawn_after_two_failures() {
        let mut standing = standing(AddressSource::Announced);
        assert!(standing.believed && !standing.is_in_doubt());
        standing.judge(votes("fff"));
        assert!(standing.believed && standing.is_in_doubt(), "tested again soon");
        standing.judge(votes("fff"));
        assert!(!standing.believed && !standing.is_in_doubt());
        standing.judge(votes("aa"));
        assert!(standing.believed);
    }
}
