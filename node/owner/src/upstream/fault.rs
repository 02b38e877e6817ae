//! The reasons that the upstream gave no answer: each has its words, its outcome, and the number by which a call's record
//! keeps it.

use farthing_protocol::Outcome;

/// The reason that the upstream gave no answer. Numbers are stored: one that is in use keeps its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    NoConnection = 0,
    NameUnknown = 1,
    NameForbidden = 2,
    NameMoved = 3,
    LeadsHere = 4,
    SlowHead = 5,
    SlowBody = 6,
    ServerError = 7,
    GraphqlError = 8,
    NoRoom = 9,
    LongBody = 10,
    LongHeaders = 11,
    OutsideAddress = 12,
    UnknownStatus = 13,
    Redirect = 14,
    Unchanged = 15,
    Packed = 16,
    WebPage = 17,
    BrokenBody = 18,
    NotHttp = 19,
    Silent = 20,
    NoData = 21,
    Unread = 22,
    LongForRelay = 23,
}

impl Fault {
    pub const ALL: [Self; 24] = [
        Self::NoConnection,
        Self::NameUnknown,
        Self::NameForbidden,
        Self::NameMoved,
        Self::LeadsHere,
        Self::SlowHead,
        Self::SlowBody,
        Self::ServerError,
        Self::GraphqlError,
        Self::NoRoom,
        Self::LongBody,
        Self::LongHeaders,
        Self::OutsideAddress,
        Self::UnknownStatus,
        Self::Redirect,
        Self::Unchanged,
        Self::Packed,
        Self::WebPage,
        Self::BrokenBody,
        Self::NotHttp,
        Self::Silent,
        Self::NoData,
        Self::Unread,
        Self::LongForRelay,
    ];

    /// The stable number in records.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the one of a record's number; `None` for one of a later version.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.code() == code)
    }

    /// The outcome that the payer is told.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::NoConnection
            | Self::NameUnknown
            | Self::NameForbidden
            | Self::NameMoved
            | Self::LeadsHere => Outcome::Unreachable,
            Self::SlowHead | Self::SlowBody => Outcome::TimedOut,
            Self::ServerError | Self::GraphqlError => Outcome::ServerError,
            Self::NoRoom | Self::LongBody | Self::LongHeaders | Self::LongForRelay => Outcome::Oversize,
            Self::OutsideAddress
            | Self::UnknownStatus
            | Self::Redirect
            | Self::Unchanged
            | Self::Packed
            | Self::WebPage
            | Self::BrokenBody
            | Self::NotHttp
            | Self::Silent
            | Self::NoData
            | Self::Unread => Outcome::BadAnswer,
        }
    }

    /// The reason in words, for the owner, with what mends it where something does.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NoConnection => "no connection to the upstream",
            Self::NameUnknown => "its name is not found",
            Self::NameForbidden => "its name leads only to addresses that cannot be an upstream",
            Self::NameMoved => {
                "its name leads to another address than at registration; if that is right, register the service again"
            }
            Self::LeadsHere => {
                "its address is a port of this node, which cannot be an upstream; give the service the address of your \
                 own server"
            }
            Self::SlowHead => "the answer did not begin in time",
            Self::SlowBody => "the body did not come in time",
            Self::ServerError => "the upstream reports an error of its own",
            Self::GraphqlError => "the GraphQL server reports an error of its own",
            Self::NoRoom => "this node holds as many bytes as limits.bodies_bytes_max allows",
            Self::LongBody => "the body is larger than limits.response_bytes_max",
            Self::LongHeaders => "the headers of the answer are larger than a call may carry",
            Self::OutsideAddress => "the request would go outside the upstream's address",
            Self::UnknownStatus => "the upstream answers with a status that is not valid for an answer",
            Self::Redirect => "the upstream redirects; register the address it redirects to",
            Self::Unchanged => {
                "the upstream says that nothing has changed, but the call named no earlier answer"
            }
            Self::Packed => "the upstream compresses the answer, although the request did not allow it",
            Self::WebPage => {
                "the upstream answers with a web page, which the operation's description does not list"
            }
            Self::BrokenBody => "the body does not match its headers",
            Self::NotHttp => "the answer is not HTTP",
            Self::Silent => "the upstream closed the connection without an answer",
            Self::NoData => "the GraphQL server gave no data",
            Self::Unread => "this node failed to read the answer",
            Self::LongForRelay => {
                "the body is larger than 64 KiB, the most that a relay carries, and the caller is connected through a \
                 relay; forward port 3001"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_has_a_number_and_words_of_its_own_and_none_is_an_answer() {
        for (at, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(fault.code()), at, "{fault:?}");
            assert_eq!(Fault::from_code(fault.code()), Some(fault));
            assert!(!fault.outcome().is_the_services_answer(), "{fault:?}");
        }
        let words: BTreeSet<&str> = Fault::ALL.into_iter().map(Fault::words).collect();
        assert_eq!(words.len(), Fault::ALL.len());
        assert_eq!(Fault::from_code(200), None, "of a later version");
    }
}
