//! A window on the latest paid calls of one service, and whether they flag it.
//!
//! Pure: time is an argument. A flag is raised by a share of the latest calls and holds until enough of them in a row
//! were good, so that it neither flickers nor is paid off by a single answer. While nothing is bought for a flag, a call
//! is tried from time to time; each trial that fails doubles the wait for the next. What is a week old is forgotten.

use std::{collections::VecDeque, fmt};

use farthing_config::FlagRule;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Calls that count; enough for a share, few enough that a service that was mended is believed soon.
pub const CALLS_MAX: usize = 24;
/// Paid answers that break the description: some, and a quarter of all.
const BROKE_MIN: usize = 4;
/// Bad ends of every kind: some, and half of all.
const BAD_MIN: usize = 6;
/// Good ends in a row after which a flag is lifted.
pub const GOOD_IN_A_ROW: usize = 8;
const FORGOTTEN_AFTER_SECS: u64 = 7 * 24 * 3600;
/// The wait for a trial doubles so often at most: from ten minutes to ten hours.
const DOUBLED_MAX: u32 = 6;
/// Of a reason, in bytes.
const WHY_BYTES_MAX: usize = 200;

/// The end of a call that was, or would have been, paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallEnd {
    #[serde(rename = "g")]
    Good,
    /// By the word of the service's owner.
    #[serde(rename = "f")]
    Failed,
    /// Charged, and the answer breaks the description.
    #[serde(rename = "b")]
    Broke,
}

/// The reason that a service is flagged: the larger part of its bad calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flag {
    Breaks(Figures),
    Fails(Figures),
}

/// Of the latest paid calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    pub failed: usize,
    pub broke: usize,
    /// All that count.
    pub of: usize,
    /// Seconds since the Unix epoch.
    pub since_secs: u64,
    /// The problem of the last bad call.
    pub last: String,
}

impl Flag {
    /// Calls that ended badly, in whatever way.
    pub const fn bad(&self) -> usize {
        let figures = self.figures();
        figures.failed + figures.broke
    }

    pub const fn figures(&self) -> &Figures {
        let (Self::Breaks(figures) | Self::Fails(figures)) = self;
        figures
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figures { failed, broke, of, last, .. } = self.figures();
        let parts = [(*failed, "failed"), (*broke, "broke its own description")];
        let parts: Vec<_> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
        write!(f, "of its last {of} paid calls {}; the last one: {last}", parts.join(" and "))
    }
}

/// A call that was charged and whose answer was lost.
#[derive(Clone, Copy, Debug)]
pub struct LostAnswer {
    /// The moment when the call was made.
    pub made: Instant,
    /// The moment when this node knew the charge, before anybody could see it: a call that is made once it is seen counts.
    pub known: Instant,
}

/// The latest calls of a service, and what follows from them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConductWindow {
    came: VecDeque<CallEnd>,
    last_secs: u64,
    bad_secs: u64,
    why: String,
    flagged_secs: Option<u64>,
    trials_failed: u32,
    /// The moment when the last charge that counted, of those whose answer was lost, was known.
    #[serde(skip)]
    lost_at: Option<Instant>,
    /// The user's rule for this service, in place of the setting.
    pub rule: Option<FlagRule>,
}

impl ConductWindow {
    /// Counts the end of a call; `why` says what was wrong.
    pub fn note(&mut self, came: CallEnd, why: &str, is_trial: bool, now_secs: u64) {
        if self.is_old(now_secs) {
            *self = Self { rule: self.rule, lost_at: self.lost_at, ..Self::default() };
        }
        self.last_secs = now_secs;
        self.came.push_back(came);
        if self.came.len() > CALLS_MAX {
            self.came.pop_front();
        }
        if came != CallEnd::Good {
            self.bad_secs = now_secs;
            why[..why.floor_char_boundary(WHY_BYTES_MAX)].clone_into(&mut self.why);
            self.trials_failed = (self.trials_failed + u32::from(is_trial)).min(DOUBLED_MAX);
            if self.is_bad() {
                self.flagged_secs.get_or_insert(now_secs);
            }
        } else if self.flagged_secs.is_some() && self.good_in_a_row() >= GOOD_IN_A_ROW {
            (self.came, self.flagged_secs) = (VecDeque::new(), None);
        } else if self.good_in_a_row() >= CALLS_MAX {
            self.trials_failed = 0;
        }
    }

    /// Tells whether a charge counts whose answer was lost, and has the next one held against it.
    pub fn counts_lost(&mut self, lost: LostAnswer) -> bool {
        let counts = self.lost_at.is_none_or(|lost_at| lost_at <= lost.made);
        if counts {
            self.lost_at = Some(lost.known);
        }
        counts
    }

    /// Returns the reason that the service is flagged, if it is.
    pub fn flag(&self, now_secs: u64) -> Option<Flag> {
        let since_secs = self.flagged_secs.filter(|_| !self.is_old(now_secs))?;
        let (failed, broke) = (self.count(CallEnd::Failed), self.count(CallEnd::Broke));
        let figures = Figures { failed, broke, of: self.came.len(), since_secs, last: self.why.clone() };
        Some(if broke >= failed { Flag::Breaks(figures) } else { Flag::Fails(figures) })
    }

    /// Computes the wait until a call of the flagged service may be tried. After a good one the next follows at once.
    pub fn wait_secs(&self, now_secs: u64, trial_after_secs: u64) -> u64 {
        if self.good_in_a_row() > 0 {
            return 0;
        }
        let wait_secs = trial_after_secs.saturating_mul(1 << self.trials_failed.min(DOUBLED_MAX));
        // A clock that was set back does not make it longer.
        self.bad_secs.saturating_add(wait_secs).saturating_sub(now_secs).min(wait_secs)
    }

    /// Tells whether something would be lost without it: a service whose calls are all well is not worth writing about.
    pub fn is_worth_keeping(&self, now_secs: u64) -> bool {
        let is_bad = self.came.iter().any(|came| *came != CallEnd::Good) || self.trials_failed > 0;
        self.rule.is_some() || is_bad && !self.is_old(now_secs)
    }

    /// Ranks it for when there are too many: what says nothing is given up first, then what is oldest.
    pub fn worth(&self) -> (bool, bool, u64) {
        (self.rule.is_some(), self.flagged_secs.is_some(), self.last_secs)
    }

    fn is_old(&self, now_secs: u64) -> bool {
        now_secs.saturating_sub(self.last_secs) > FORGOTTEN_AFTER_SECS
    }

    fn is_bad(&self) -> bool {
        let (of, broke) = (self.came.len(), self.count(CallEnd::Broke));
        let bad = broke + self.count(CallEnd::Failed);
        broke >= BROKE_MIN && broke * 4 >= of || bad >= BAD_MIN && bad * 2 >= of
    }

    fn count(&self, wanted: CallEnd) -> usize {
        self.came.iter().filter(|came| **came == wanted).count()
    }

    fn good_in_a_row(&self) -> usize {
        self.came.iter().rev().take_while(|came| **came == CallEnd::Good).count()
    }
}

#[cfg(test)]
mod tests;
