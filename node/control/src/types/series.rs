//! Calls and money over a time that ends now.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CallOutcome, ServiceIdText, UsdcText};

words! {
    /// A time that ends now, and the parts that it is told in. All of them begin as UTC has it.
    SeriesRange {
        /// 60 minutes, in parts of 5.
        Hour = "hour",
        /// 24 hours.
        Day = "day",
        /// 7 days, in parts of 6 hours.
        Week = "week",
        /// 30 days.
        Month = "month",
        /// 12 months.
        Year = "year",
    }
}

/// Calls and money over time. What is older than 31 days is kept by day. Beyond 64 services in an hour or a day, calls of
/// further ones count for all services and for none alone. Of the last hour, the newest 100,000 calls of each side count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Series {
    pub range: SeriesRange,
    /// The earliest first, and the present one last; those without calls are there, too.
    pub points: Vec<SeriesPoint>,
    /// All of it.
    pub bought: CallSums,
    pub served: CallSums,
}

/// One part of the time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SeriesPoint {
    /// Its first second, since the Unix epoch.
    pub start_secs: u64,
    pub bought: CallSums,
    pub served: CallSums,
}

/// Bytes sent to other nodes and received from them over time, without what encryption and the wire add. What is older than 31
/// days is kept by day. Of the last hour, what travelled since the node started counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrafficSeries {
    pub range: SeriesRange,
    /// The earliest first, and the present one last.
    pub points: Vec<TrafficPoint>,
}

/// One part of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrafficPoint {
    /// Its first second, since the Unix epoch.
    pub start_secs: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
}

/// The sum of some calls of one side.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CallSums {
    pub outcomes: OutcomeCounts,
    /// Charged for them. Where no service is asked for, adjustments count as well, as in the history's days.
    pub charged: UsdcText,
    /// The time within which half of the answers came, in microseconds: of a bought call all of it, of a served one what
    /// the service took. Read between fixed bounds; `None` where no answer has a known time.
    pub p50_us: Option<u64>,
    /// The time within which 95 percent came.
    pub p95_us: Option<u64>,
}

/// Numbers of calls by how they ended: those with an end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutcomeCounts {
    pub answered: u64,
    /// Of bought calls, by their owner's node.
    pub refused: u64,
    pub timed_out: u64,
    pub too_large: u64,
    /// Bought calls that were never sent, or that their owner does not know, are among them.
    pub failed: u64,
}

impl OutcomeCounts {
    /// Returns how many calls ended so.
    #[must_use]
    pub const fn of(&self, outcome: CallOutcome) -> u64 {
        match outcome {
            CallOutcome::Answered => self.answered,
            CallOutcome::Refused => self.refused,
            CallOutcome::TimedOut => self.timed_out,
            CallOutcome::TooLarge => self.too_large,
            CallOutcome::Failed => self.failed,
            CallOutcome::UnderWay | CallOutcome::Undecided => 0,
        }
    }

    /// Counts calls that ended so.
    pub const fn add(&mut self, outcome: CallOutcome, calls: u64) {
        let count = match outcome {
            CallOutcome::Answered => &mut self.answered,
            CallOutcome::Refused => &mut self.refused,
            CallOutcome::TimedOut => &mut self.timed_out,
            CallOutcome::TooLarge => &mut self.too_large,
            CallOutcome::Failed => &mut self.failed,
            CallOutcome::UnderWay | CallOutcome::Undecided => return,
        };
        *count = count.saturating_add(calls);
    }
}

/// Calls of one of this node's services over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceCalls {
    pub service: ServiceIdText,
    /// One number for each part of the time, the earliest first.
    pub served: Vec<u64>,
}
