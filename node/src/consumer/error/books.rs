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
    #[error("the owner tells no more of its books for now; ask again later")]
    NoMoreForNow,
    #[error("the owner has not told all of its books within eight minutes")]
    NotToldInTime,
    #[error("the owner is slow to show its books")]
    Slow,
    #[error(transparent)]
    Page(#[from] BadPage),
    #[error("the owner's pages go on and on, and are not full")]
    ShortPages,
    #[error("the owner's pages do not end")]
    EndlessPages,
    /// This node's own.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error("{0}, so what it counts beyond this node is not explained")]
    Unexplained(Unseen),
    #[error(
        "the owner, or its chain's endpoint, tells of calls that were not made; it is asked again, and its channel is \
         stopped when it says so for two minutes"
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
                "Try again when the owner's node is there; `farthing net lookup` shows whether it is."
            }
        }
    }
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
    #[error("the owner's node refuses it ({}): {detail}", .code.name())]
    Refused { code: RefusalCode, detail: String },
    #[error("the owner's node gave an answer to another question")]
    AnotherAnswer,
}

/// The reason that a caller did not see the owner's books while it could wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unseen {
    #[error("the owner's books are being looked at")]
    UnderWay,
    #[error("looking at the owner's books ended badly")]
    Failed,
    #[error("the owner is slow to show its books")]
    Slow,
}

/// The rule that a page of an owner's calls breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPage {
    #[error("a page of the owner's names {0} calls, and at most {most} are allowed", most = CALLS_PAGE_MAX)]
    TooMany(usize),
    #[error("a page of the owner's names call {0} out of order")]
    OutOfOrder(CallId),
    #[error("the owner's pages do not go on")]
    NoProgress,
    #[error("a page of the owner's goes beyond its own end")]
    BeyondItsEnd,
}
