//! Filters of the history.

use clap::Args;
use farthing_control::types::{HistoryKind, HistoryState};

use super::ServiceName;

#[derive(Debug, Args)]
pub struct History {
    /// bought, served, settlement, transaction or adjustment; several with commas
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kind: Vec<HistoryKind>,
    /// charged, free, failed, pending, confirmed or lost
    #[arg(long)]
    pub state: Option<HistoryState>,
    /// Calls of one service: its name, its UUID, or the first digits of that
    #[arg(long, value_name = "SERVICE")]
    pub service: Option<ServiceName>,
    /// First day in UTC, such as 2026-11-21, or a Unix time in seconds
    #[arg(long, value_name = "DAY")]
    pub from: Option<String>,
    /// Last day in UTC, or the second after the last
    #[arg(long, value_name = "DAY")]
    pub to: Option<String>,
    /// Number of entries at most; by default 50, or all with --csv
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Print CSV, with amounts in USDC
    #[arg(long, conflicts_with = "by_day")]
    pub csv: bool,
    /// Show the totals of each day instead; the last 30 days unless --from says otherwise
    #[arg(long, conflicts_with_all = ["kind", "state", "service", "limit"])]
    pub by_day: bool,
}
