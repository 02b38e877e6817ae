//! Decides about a call on one side by the words of the other: when a promised call is over, and what one more copy of
//! a call brings.
//!
//! A consumer sends a call, and after a lost connection the same call again. As long as every copy was refused or
//! never left, the call is surely free. Once a copy was lost on its way, the call is in doubt: no refusal of another
//! copy ends it, because the lost one may have been served. Then the owner is asked with `CallMessage::Status`, and
//! its "not charged" is believed when no lost copy can still arrive.
//!
//! An owner serves a call id once. What it does with another copy depends on what it has recorded ([`repeat`]).
//!
//! Invariants: C4 every call in doubt ends as charged or not charged; O5 a call id is charged at most once.

use std::time::Duration;

use crate::{CallReply, RefusalCode, call::CallStatus};

/// A lost copy that has not arrived after this time never will: a stream is given up after five seconds without a
/// complete head, and the rest is for a clock that ticks unevenly on a busy machine.
pub const COPY_LIFETIME: Duration = Duration::from_secs(6);

/// The result of sending one copy of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyOutcome {
    /// The call's answer, with a receipt.
    Answer {
        /// See [`crate::Receipt::is_final`].
        is_final: bool,
    },
    /// The receipt of a call that was served earlier, without its answer.
    Receipt,
    /// An earlier copy is being served.
    Running,
    Refused(RefusalCode),
    /// The answer to another question. The copy arrived.
    Nonsense,
    /// The copy surely did not arrive.
    NotSent,
    /// The copy may have arrived.
    Lost,
}

impl CopyOutcome {
    /// Reads what a reply to a call says.
    pub fn of(reply: &CallReply) -> Self {
        match reply {
            CallReply::Response(response) => Self::Answer { is_final: response.receipt.is_final() },
            CallReply::Status(CallStatus::Done { .. }) => Self::Receipt,
            CallReply::Status(CallStatus::Running) => Self::Running,
            CallReply::Refused(refusal) => Self::Refused(refusal.code),
            CallReply::Status(CallStatus::Unknown)
            | CallReply::Channel(_)
            | CallReply::Calls(_)
            | CallReply::Sponsor(_) => Self::Nonsense,
        }
    }
}

/// The next step of a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The answer ends the call, once its receipt is verified.
    Answered,
    /// So does the receipt alone: an earlier copy was served.
    Served,
    /// The owner claims to have served what it never got before.
    Unasked,
    /// No copy was or will be served.
    Uncharged,
    /// The same call once more: an owner answers one call id once.
    Again,
    /// Another copy would change nothing, so the owner is asked what became of the call.
    Ask,
}

/// The copies of one call that left this node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// The time at which the newest of those that may have arrived unheard was lost.
    lost: Option<Duration>,
}

impl Copies {
    /// Copies of which nothing is known, for instance those of an earlier run. `now` is on the same clock as every
    /// other time here.
    pub const fn in_doubt(now: Duration) -> Self {
        Self { lost: Some(now) }
    }

    /// Counts a copy that may have arrived, unless one is counted already.
    pub fn doubt(&mut self, now: Duration) {
        self.lost.get_or_insert(now);
    }

    /// Returns whether a copy may have arrived without a word on it.
    pub const fn are_in_doubt(&self) -> bool {
        self.lost.is_some()
    }

    /// Returns whether a lost copy can still arrive.
    pub fn may_arrive(&self, now: Duration) -> bool {
        self.lost.is_some_and(|lost| now.saturating_sub(lost) < COPY_LIFETIME)
    }

    /// Takes note of what came of the newest copy.
    pub fn hear(&mut self, heard: CopyOutcome, now: Duration) -> Step {
        let was_in_doubt = self.are_in_doubt();
        match heard {
            // A failed, uncharged call would be served when a lost copy of it arrives. An owner that is asked for its end
            // serves none that comes over an older connection from then on.
            CopyOutcome::Answer { is_final: false } if was_in_doubt => Step::Ask,
            CopyOutcome::Answer { .. } => Step::Answered,
            CopyOutcome::Receipt if was_in_doubt => Step::Served,
            CopyOutcome::Receipt => Step::Unasked,
            CopyOutcome::Refused(_) | CopyOutcome::NotSent if !was_in_doubt => Step::Uncharged,
            CopyOutcome::Refused(code) if !mends_with_time(code) => Step::Ask,
            CopyOutcome::Refused(_) | CopyOutcome::NotSent => Step::Again,
            CopyOutcome::Running | CopyOutcome::Nonsense | CopyOutcome::Lost => {
                self.lost = Some(now);
                Step::Again
            }
        }
    }
}

/// Refusals after which the same call may be served a moment later.
const fn mends_with_time(code: RefusalCode) -> bool {
    matches!(
        code,
        RefusalCode::Busy
            | RefusalCode::RateLimited
            | RefusalCode::Unavailable
            | RefusalCode::ChainStale
            | RefusalCode::UnknownChannel
            | RefusalCode::VoucherAboveDeposit
            | RefusalCode::DepositNotSafe
            | RefusalCode::OwnerCannotClaim
    )
}

/// An owner's answer when it is asked for the end of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerAnswer {
    /// A receipt, with the answer or without.
    Receipt {
        /// See [`crate::Receipt::is_final`].
        is_final: bool,
    },
    Running,
    /// Never served.
    Unknown,
    Refused(RefusalCode),
}

/// The decision that follows from that answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The receipt ends the call, once it is verified.
    Receipt,
    NotCharged,
    /// Not known yet; ask again.
    Open,
}

impl OwnerAnswer {
    /// Reads what a reply to the question says; `None` when it answers another one.
    pub fn of(reply: &CallReply) -> Option<Self> {
        match reply {
            CallReply::Response(response) => Some(Self::Receipt { is_final: response.receipt.is_final() }),
            CallReply::Status(CallStatus::Done { receipt, .. }) => {
                Some(Self::Receipt { is_final: receipt.is_final() })
            }
            CallReply::Status(CallStatus::Running) => Some(Self::Running),
            CallReply::Status(CallStatus::Unknown) => Some(Self::Unknown),
            CallReply::Refused(refusal) => Some(Self::Refused(refusal.code)),
            CallReply::Channel(_) | CallReply::Calls(_) | CallReply::Sponsor(_) => None,
        }
    }

    /// Decides on a call by the owner's word, given the copies that were sent and when it was asked.
    ///
    /// A word is as old as its question may be: between the owner's saying it and its arrival here a lost copy may have
    /// been served. What is not charged is therefore believed by the time at which it was asked.
    #[must_use]
    pub fn end(self, copies: &Copies, asked: Duration) -> End {
        match self {
            Self::Receipt { is_final: true } => End::Receipt,
            // It is the word on an earlier attempt; a lost copy may still be served.
            Self::Receipt { is_final: false } | Self::Unknown if copies.may_arrive(asked) => End::Open,
            Self::Receipt { is_final: false } => End::Receipt,
            // What was interrupted is recorded, and never run again.
            Self::Unknown | Self::Refused(RefusalCode::MayHaveRun) => End::NotCharged,
            Self::Running | Self::Refused(_) => End::Open,
        }
    }
}

/// An owner's record of a call id, when another copy of the same request arrives and none is being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// Given to the service by an earlier run of the node; it may have run.
    Interrupted,
    Finished {
        /// The service itself answered; everything else is a failure.
        is_answer: bool,
        is_charged: bool,
        /// The answer is still there.
        is_kept: bool,
        /// The service was asked once more already.
        was_repeated: bool,
    },
}

/// The effect of another copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// It is served like a new call.
    Serve,
    /// The recorded answer.
    Answer,
    /// The service is asked once more, free, when it is still offered at the price that was charged. Never again then.
    AskOnceMore,
    /// The receipt alone.
    Receipt,
    /// A refusal: the call may have had its effect, and is not run again.
    MayHaveRun,
}

/// Decides what another copy of a call brings, given what is recorded. `is_safe` is the method's.
///
/// One charge buys one further execution at most: the answer of a call without effects is not kept on disk, so a
/// payer that lost it may ask once more. An unbounded right would sell a service for ever for one price.
pub const fn repeat(record: Record, is_safe: bool) -> Repeat {
    match record {
        Record::Interrupted => Repeat::MayHaveRun,
        Record::Finished { is_answer: false, is_charged: false, .. } if is_safe => Repeat::Serve,
        Record::Finished { is_kept: true, .. } => Repeat::Answer,
        Record::Finished { was_repeated: false, .. } if is_safe => Repeat::AskOnceMore,
        Record::Finished { .. } => Repeat::Receipt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Duration = Duration::from_secs(100);
    const LATER: Duration = Duration::from_secs(106);

    #[test]
    fn a_refusal_is_free_and_final_only_while_no_copy_was_lost() {
        for code in [RefusalCode::Busy, RefusalCode::Unavailable, RefusalCode::InsufficientVoucher] {
            let mut copies = Copies::default();
            assert_eq!(copies.hear(CopyOutcome::Refused(code), AT), Step::Uncharged, "{code:?}");
            assert_eq!(copies.hear(CopyOutcome::Lost, AT), Step::Again);
            for now in [AT, LATER, LATER * 100] {
                let step = copies.hear(CopyOutcome::Refused(code), now);
                assert!(matches!(step, Step::Again | Step::Ask), "{code:?}: {step:?}");
            }
        }
    }

    #[test]
    fn an_owner_that_is_not_reached_again_decides_nothing_about_a_lost_copy() {
        let mut copies = Copies::default();
        assert_eq!(copies.hear(CopyOutcome::NotSent, AT), Step::Uncharged);
        copies.hear(CopyOutcome::Running, AT);
        assert_eq!(copies.hear(CopyOutcome::NotSent, LATER), Step::Again);
    }

    #[test]
    fn a_receipt_without_an_answer_is_believed_of_copies_in_doubt_alone() {
        let mut copies = Copies::default();
        assert_eq!(copies.hear(CopyOutcome::Receipt, AT), Step::Unasked);
        copies.hear(CopyOutcome::Lost, AT);
        assert_eq!(copies.hear(CopyOutcome::Receipt, LATER), Step::Served);
    }

    #[test]
    fn a_word_on_what_is_not_charged_waits_until_no_lost_copy_can_arrive() {
        let copies = Copies::in_doubt(AT);
        for said in [OwnerAnswer::Unknown, OwnerAnswer::Receipt { is_final: false }] {
            assert_eq!(said.end(&copies, LATER - Duration::from_millis(1)), End::Open, "{said:?}");
            assert_ne!(said.end(&copies, LATER), End::Open, "{said:?}");
        }
        assert_eq!(OwnerAnswer::Receipt { is_final: true }.end(&copies, AT), End::Receipt);
    }

    #[test]
    fn a_word_that_travelled_long_is_as_old_as_its_question() {
        let mut copies = Copies::in_doubt(AT);
        for now in [AT, LATER] {
            // However old the loss is: only an owner that is asked remembers that it said so.
            assert_eq!(copies.hear(CopyOutcome::Answer { is_final: false }, now), Step::Ask);
        }
        assert_eq!(Copies::default().hear(CopyOutcome::Answer { is_final: false }, AT), Step::Answered);
        assert_eq!(copies.hear(CopyOutcome::Lost, LATER), Step::Again);
        assert!(copies.may_arrive(LATER), "a loss counts from when it was noticed");
        let mut asked_again = Copies::in_doubt(AT);
        asked_again.doubt(LATER);
        assert!(!asked_again.may_arrive(LATER), "asking again does not put it off");
    }

    #[test]
    fn a_word_that_is_no_end_decides_nothing() {
        let copies = Copies::in_doubt(AT);
        for said in [
            OwnerAnswer::Running,
            OwnerAnswer::Refused(RefusalCode::Busy),
            OwnerAnswer::Refused(RefusalCode::Unavailable),
        ] {
            assert_eq!(said.end(&copies, LATER * 1_000), End::Open, "{said:?}");
        }
        assert_eq!(OwnerAnswer::Refused(RefusalCode::MayHaveRun).end(&copies, AT), End::NotCharged);
    }

    #[test]
    fn a_charged_call_reaches_its_service_once_more_and_never_again() {
        let done = |is_kept, was_repeated| Record::Finished {
            is_answer: true,
            is_charged: true,
            is_kept,
            was_repeated,
        };
        assert_eq!(repeat(done(false, false), true), Repeat::AskOnceMore);
        assert_eq!(repeat(done(false, true), true), Repeat::Receipt);
        assert_eq!(repeat(done(true, true), true), Repeat::Answer);
        assert_eq!(repeat(done(false, false), false), Repeat::Receipt, "what has effects runs once");
        assert_eq!(repeat(Record::Interrupted, false), Repeat::MayHaveRun);
    }

    #[test]
    fn only_a_failed_and_uncharged_call_without_effects_is_served_anew() {
        let failed = |is_charged| Record::Finished {
            is_answer: false,
            is_charged,
            is_kept: false,
            was_repeated: false,
        };
        assert_eq!(repeat(failed(false), true), Repeat::Serve);
        assert_ne!(repeat(failed(true), true), Repeat::Serve);
        assert_ne!(repeat(failed(false), false), Repeat::Serve);
    }
}
