//! The node's log, as the node tells of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

words! {
    /// The weight of a line, the heaviest first.
    LogLevel {
        Error = "error",
        Warn = "warn",
        Info = "info",
        Debug = "debug",
        Trace = "trace",
    }
}

/// `farthing logs`: lines of the log that the node has in memory, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLines {
    pub lines: Vec<LogLine>,
    /// To be named as `after`, for what comes next.
    pub next: u64,
    /// Lines after the named one that have left the memory already.
    pub missed: u64,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// Since the node's start.
    pub number: u64,
    /// RFC 3339, in UTC.
    pub time: String,
    pub level: LogLevel,
    /// The part of the program that says it.
    pub target: String,
    pub message: String,
    /// Details of the message: ids, amounts, causes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub fields: BTreeMap<String, serde_json::Value>,
}
