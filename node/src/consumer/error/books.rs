//! Every way in which the books with an owner cannot be seen, compared or brought together.

use farthing_ledger::LedgerError;
use farthing_network::CallFailure;
use farthing_protocol::{
    CallId, Refusal, RefusalCode, books::CALLS_PAGE_MAX, limits::REFUSAL_DETAIL_BYTES_MAX,
};

/// Every way in which the books with an owner cannot be seen, compared or brought together.
#[derive(Debug, thiserror::Error)]
pub enum BooksError {
    #[error(transparent)]
    NotAnswered(#[from] CallFailure),
    #[error(transparent)]
    NotTold(#[from] NotTold),
    #[error("the owner shows no more of its ledger for now; ask again later")]
    NoMoreForNow,
    #[error("the owner did not show all of its ledger within eight minutes")]
    NotToldInTime,
    #[error("the owner is slow to show its ledger")]
    Slow,
    #[error(transparent)]
    Page(#[from] BadPage),
    #[error("the owner sends many pages that are not full")]
    ShortPages,
    #[error("the owner's pages do not end")]
    EndlessPages,
    /// This node's own.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("{0}, so it is not known why it counts more than this node")]
    Unexplained(Unseen),
    #[error(
        "the owner or the chain's endpoint reports calls that were not made; the node asks again and stops the channel \
         if this goes on for two minutes"
    )]
    CallsNotMade,
}

impl BooksError {
    /// The step to take next, for whoever asked for the comparison.
    pub const fn next_step(&self) -> &'static str {
        match self {
            Self::Ledger(error) => error.next_step(),
            Self::NotTold(NotTold::Refused { .. }) | Self::NoMoreForNow => "Try again in a few minutes.",
            Self::NotTold(NotTold::AnotherAnswer) | Self::Page(_) | Self::ShortPages | Self::EndlessPages => {
                "Tell the owner: its node breaks the protocol."
            }
            Self::NotAnswered(_)
            | Self::NotToldInTime
            | Self::Slow
            | Self::Unexplained(_)
            | Self::CallsNotMade => {
                "Try again when the owner's node is online; check with `farthing net lookup`."
            }
        }
    }
}

/// A refusal's code, as people read it: `service paused`.
pub(super) fn spoken(code: RefusalCode) -> String {
    code.name().replace('_', " ")
}

/// A refusal, as far as it is worth reading.
impl From<Refusal> for BooksError {
    fn from(Refusal { code, mut detail, .. }: Refusal) -> Self {
        detail.truncate(detail.floor_char_boundary(REFUSAL_DETAIL_BYTES_MAX));
        NotTold::Refused { code, detail }.into()
    }
}

/// The answer of an owner that does not tell what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTold {
    #[error("the owner's node refuses it ({}): {detail}", spoken(*.code))]
    Refused { code: RefusalCode, detail: String },
    #[error("the owner's node answered another question")]
    AnotherAnswer,
}

/// The reason that a caller did not see the owner's books while it could wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unseen {
    #[error("the owner's ledger is being read")]
    UnderWay,
    #[error("reading the owner's ledger failed")]
    Failed,
    #[error("the owner is slow to show its ledger")]
    Slow,
}

/// The rule that a page of an owner's calls breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPage {
    #[error("one of the owner's pages has {0} calls, at most {most} are allowed", most = CALLS_PAGE_MAX)]
    TooMany(usize),
    #[error("one of the owner's pages has call {0} out of order")]
    OutOfOrder(CallId),
    #[error("the owner's pages do not advance")]
    NoProgress,
    #[error("one of the owner's pages goes beyond its own end")]
    BeyondItsEnd,
}

#[cfg(test)]
mod tests {
    use farthing_protocol::{Refusal, RefusalCode};

    use crate::consumer::error::{BooksError, BuyError};

    #[test]
    fn a_refusals_code_is_told_in_words() {
        let refusal = Refusal::new(RefusalCode::ServicePaused, "the owner has paused the service");
        assert_eq!(
            BuyError::Refused(refusal.clone()).to_string(),
            "the owner's node refused the call (service paused): the owner has paused the service"
        );
        assert_eq!(
            BooksError::from(refusal).to_string(),
            "the owner's node refuses it (service paused): the owner has paused the service"
        );
    }
}
