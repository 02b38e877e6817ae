//! The log of calls: every call that reached this node, bought, served or refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{AddressText, CallIdText, ChannelIdText, HistoryState, ProblemName, ServiceIdText, UsdcText};

words! {
    /// The half of the node that a call was for.
    CallSide {
        /// A program of this node's wanted to buy it.
        Bought = "bought",
        /// Another node wanted a service of this one.
        Served = "served",
    }
}

words! {
    /// The record that has a call.
    CallRecord {
        /// The ledger, as bought.
        Bought = "bought",
        /// The ledger, as served.
        Served = "served",
        /// The calls that were refused, which the ledger does not know.
        Refused = "refused",
    }
}

words! {
    /// The way in which a call ended, the same word wherever it is told.
    CallOutcome {
        /// It has not ended yet.
        UnderWay = "under-way",
        /// The service answered with a status below 500.
        Answered = "answered",
        /// This node, or the owner's, refused it before the service got it.
        Refused = "refused",
        /// The service took too long.
        TimedOut = "timed-out",
        /// The service's answer was larger than is passed on.
        TooLarge = "too-large",
        /// Nothing that is an answer came.
        Failed = "failed",
        /// Nobody waits for it any more, and its owner has not told its end.
        Undecided = "undecided",
    }
}

impl CallOutcome {
    /// Tells how a call ended whose caller got a problem: by its name, and by whether the call was charged, as far as that is
    /// known. Most problems refuse the call.
    #[must_use]
    pub fn of_problem(name: &str, charged: Option<bool>) -> Self {
        let known: Option<ProblemName> = name.parse().ok();
        match (known, charged) {
            (Some(ProblemName::UpstreamTimeout), _) => Self::TimedOut,
            (Some(ProblemName::AnswerTooLarge), _) => Self::TooLarge,
            (
                Some(
                    ProblemName::UpstreamFailed
                    | ProblemName::BadAnswer
                    | ProblemName::MayHaveRun
                    | ProblemName::OwnerUnreachable
                    | ProblemName::ChannelNotFunded
                    | ProblemName::ChainUnreachable
                    | ProblemName::Undecided
                    | ProblemName::Internal
                    | ProblemName::AnswerNotRepeated
                    | ProblemName::AnswerNoLongerKept,
                ),
                charged,
            ) => {
                if charged.is_none() {
                    Self::Undecided
                } else {
                    Self::Failed
                }
            }
            (Some(ProblemName::Cancelled), None) => Self::Undecided,
            // What was charged was served, and its answer is lost.
            (_, Some(true)) => Self::Failed,
            _ => Self::Refused,
        }
    }
}

words! {
    /// The stage at which a call was cancelled.
    CancelStage {
        /// Nothing was promised to the other side, so it is not charged. An x402 server may have been asked for its price.
        Unpromised = "unpromised",
        /// Its price was promised, so it may have been sent, served and charged.
        Promised = "promised",
    }
}

/// One step through the log of calls, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallsPage {
    pub calls: Vec<LoggedCall>,
    /// To be given as `cursor` for what comes before; absent at the end. A step may be short, even empty, and not the
    /// last one: only so much is looked at at once.
    pub next: Option<String>,
    /// Calls without a secret of this node's. They are counted, and have no entries.
    pub wrong_secrets: u64,
    /// The time of the last one, in seconds since the Unix epoch.
    pub wrong_secret_secs: Option<u64>,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LoggedCall {
    /// Its name in the log, by which it is shown.
    pub key: String,
    /// True if the ledger has it: this node promised to pay it, or served it.
    #[serde(default)]
    pub has_record: bool,
    pub side: CallSide,
    /// Seconds since the Unix epoch.
    pub time_secs: u64,
    /// None where the call could not be read that far.
    pub call_id: Option<CallIdText>,
    pub service: Option<ServiceIdText>,
    /// Name of the service, a stranger's text; empty where it is not known.
    pub name: String,
    /// `GET /v1/things`; empty where the call could not be read that far.
    pub operation: String,
    /// The other side's wallet.
    pub peer: Option<AddressText>,
    /// Name of the secret that ordered it.
    pub secret: Option<String>,
    pub outcome: CallOutcome,
    /// HTTP status of the service's answer, or that of the problem that the caller got instead.
    pub status: Option<u16>,
    /// None while it is not known.
    pub charged: Option<UsdcText>,
    /// From order to end, in microseconds, where it was measured; of a call that was served, the time that the server took.
    pub took_us: Option<u64>,
    /// The problem that the caller got, where there was no answer.
    pub problem: Option<CallProblem>,
    /// Further calls that ended like this one within its minute, which are only counted.
    pub others: u64,
}

/// The reason that a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallProblem {
    /// The name of the problem, or of the owner's refusal; none where only the reason is known.
    pub code: Option<String>,
    pub detail: String,
    /// The next step; empty where none is known.
    pub next: String,
}

/// A call with everything that this node keeps of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallShown {
    pub call: LoggedCall,
    pub price: Option<UsdcText>,
    /// Parameters of the request. They are kept while a bought call is under way.
    pub parameters: BTreeMap<String, String>,
    /// The parts of its time, none of which includes another.
    pub parts: Vec<CallPart>,
    pub answer: Option<KeptAnswer>,
    pub voucher: Option<CallVoucher>,
    pub receipt: Option<CallReceipt>,
    /// The verdict on the receipt, where that was asked for.
    pub verdict: Option<ReceiptVerdict>,
    /// The claim that pays for it, where it costs anything.
    pub settlement: Option<CallSettlement>,
}

/// A call that nobody waits for any more, because it was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CancelledCall {
    /// Its name in the log.
    pub key: String,
    pub call_id: CallIdText,
    pub stage: CancelStage,
}

/// A part of a call's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallPart {
    pub name: String,
    /// Microseconds.
    pub took_us: u64,
}

/// The answer of a call that this node served, as far as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeptAnswer {
    pub headers: BTreeMap<String, String>,
    /// Bytes of the body; 0 where none is kept.
    pub body_bytes: u64,
    /// The beginning of the body, where it is text.
    pub text: Option<String>,
}

/// The payer's signature that a call rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallVoucher {
    pub channel: ChannelIdText,
    /// The total of the channel that it covers at least.
    pub covers: UsdcText,
}

/// The owner's word on a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallReceipt {
    /// The owner, who signs.
    pub signer: AddressText,
    pub charged: UsdcText,
    /// The total of the channel after it.
    pub spent_total: UsdcText,
    /// Seconds since the Unix epoch, on the owner's clock.
    pub time_secs: u64,
    /// Digests of what was asked and answered, `0x…`.
    pub request_hash: String,
    pub response_hash: String,
    /// `0x…`; none where this node's settings name another chain or contract than its channel lies in.
    pub signature: Option<String>,
}

/// The verdict on a receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReceiptVerdict {
    pub holds: bool,
    /// The checks that were made, or the one that does not hold.
    pub words: String,
}

/// The claim that pays for a call, or the payment of one of an x402 server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallSettlement {
    pub state: HistoryState,
    /// The number of this node's settlement; none for calls that it bought.
    pub number: Option<u64>,
    /// Hash, `0x…`.
    pub transaction: Option<String>,
    /// The address at which a browser shows the transaction, on chains whose explorer is known.
    pub explorer: Option<String>,
    /// For a call over x402: true if the chain showed this node that the payment was taken; false if only the server says so, or if
    /// the chain has taken it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_on_chain: Option<bool>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_networks_word_on_a_call_has_its_outcome() {
        let no = Some(false);
        for (name, charged, outcome) in [
            ("upstream-timeout", no, CallOutcome::TimedOut),
            ("answer-too-large", no, CallOutcome::TooLarge),
            ("upstream-failed", no, CallOutcome::Failed),
            ("owner-unreachable", no, CallOutcome::Failed),
            ("answer-no-longer-kept", Some(true), CallOutcome::Failed),
            ("undecided", no, CallOutcome::Failed),
            ("undecided", None, CallOutcome::Undecided),
            ("bad-answer", None, CallOutcome::Undecided),
            ("owner-busy", no, CallOutcome::Refused),
            ("owner-busy", Some(true), CallOutcome::Failed),
            ("spending-stopped", no, CallOutcome::Refused),
            ("cancelled", no, CallOutcome::Refused),
            ("cancelled", None, CallOutcome::Undecided),
            ("price-above-cap", no, CallOutcome::Refused),
            // Refused before its call id was looked up.
            ("malformed", None, CallOutcome::Refused),
        ] {
            assert_eq!(CallOutcome::of_problem(name, charged), outcome, "{name}");
        }
    }
}
