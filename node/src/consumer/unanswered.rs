//! The reasons that a service gave no answer, as far as its owner's receipt tells them: an outcome, and the status that the
//! service gave.

use farthing_protocol::Outcome;

/// The reason that a service gave no answer, by its owner's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unanswered {
    #[error("the owner's node could not connect to the service")]
    Unreachable,
    #[error("the service did not answer the owner's node in time")]
    TimedOut,
    #[error("the service answered with status {0}")]
    ServerError(u16),
    #[error(
        "the service's answer is larger than its owner passes on, or than the 64 KiB that a relay to the owner carries"
    )]
    Oversize,
    /// Nothing that has a status came back.
    #[error("the owner's node got no HTTP answer from the service")]
    NotHttp,
    #[error("the service redirects (status {0}), and the owner's node does not follow redirects")]
    Redirect(u16),
    #[error("the service says that nothing has changed, but the call named no earlier answer")]
    Unchanged,
    #[error("the service answered with status {0}, which is not valid for an answer")]
    UnknownStatus(u16),
    #[error("the service's GraphQL server gave no data, or its answer is incomplete")]
    NoData,
    #[error(
        "the service answered with status {0}, but the answer is incomplete, compressed without a request for it, or a \
         web page that the service does not describe"
    )]
    Broken(u16),
    #[error("the owner's node says that the service failed with status {0}, which is not a failure")]
    Contradiction(u16),
}

impl Unanswered {
    /// Reads it from what an owner's receipt says of a call that it did not answer.
    #[must_use]
    pub const fn of(outcome: Outcome, status: u16, is_graphql: bool) -> Self {
        match (outcome, status) {
            (Outcome::Unreachable, _) => Self::Unreachable,
            (Outcome::TimedOut, _) => Self::TimedOut,
            (Outcome::Oversize, _) => Self::Oversize,
            (Outcome::ServerError, 500..=599) => Self::ServerError(status),
            (Outcome::BadAnswer, 0) => Self::NotHttp,
            (Outcome::BadAnswer, 304) => Self::Unchanged,
            (Outcome::BadAnswer, 300..=399) => Self::Redirect(status),
            (Outcome::BadAnswer, 200..=599) if is_graphql => Self::NoData,
            (Outcome::BadAnswer, 200..=599) => Self::Broken(status),
            (Outcome::BadAnswer, _) => Self::UnknownStatus(status),
            (Outcome::ServerError | Outcome::Answered | Outcome::Declined, _) => Self::Contradiction(status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_owner_tells_of_a_failure_is_told_apart_by_outcome_and_status() {
        for (outcome, status, told) in [
            (Outcome::Unreachable, 0, Unanswered::Unreachable),
            (Outcome::TimedOut, 200, Unanswered::TimedOut),
            (Outcome::Oversize, 200, Unanswered::Oversize),
            (Outcome::ServerError, 500, Unanswered::ServerError(500)),
            (Outcome::ServerError, 599, Unanswered::ServerError(599)),
            (Outcome::ServerError, 200, Unanswered::Contradiction(200)),
            (Outcome::ServerError, 600, Unanswered::Contradiction(600)),
            (Outcome::BadAnswer, 0, Unanswered::NotHttp),
            (Outcome::BadAnswer, 199, Unanswered::UnknownStatus(199)),
            (Outcome::BadAnswer, 200, Unanswered::Broken(200)),
            (Outcome::BadAnswer, 302, Unanswered::Redirect(302)),
            (Outcome::BadAnswer, 304, Unanswered::Unchanged),
            (Outcome::BadAnswer, 404, Unanswered::Broken(404)),
            (Outcome::BadAnswer, 600, Unanswered::UnknownStatus(600)),
        ] {
            assert_eq!(Unanswered::of(outcome, status, false), told, "{outcome:?} {status}");
        }
        for (status, told) in
            [(0, Unanswered::NotHttp), (200, Unanswered::NoData), (302, Unanswered::Redirect(302))]
        {
            assert_eq!(Unanswered::of(Outcome::BadAnswer, status, true), told, "GraphQL, {status}");
        }
    }
}
