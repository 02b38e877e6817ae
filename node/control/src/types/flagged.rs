//! Services whose answers break their own description, or that fail often, and what becomes of calls to them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ServiceIdText;

/// `farthing spending flagged`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlaggedServices {
    /// `spending.flagged`
    pub rule: FlagRule,
    /// Those that are flagged, and those of which the user said something.
    pub services: Vec<FlaggedService>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FlaggedService {
    pub service: ServiceIdText,
    pub flag: Option<ServiceFlag>,
    /// The user's rule for this service, in place of the setting.
    pub own_rule: Option<FlagRule>,
}

/// The reason that a service is flagged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceFlag {
    /// The larger part of it.
    pub cause: FlagCause,
    /// Of the latest paid calls: those that failed by the owner's word, or that it charged without giving their answer.
    pub failed: u32,
    /// Those that were charged for an answer that breaks the service's own description.
    pub broke: u32,
    /// All that count.
    pub of: u32,
    /// Seconds since the Unix epoch.
    pub since_secs: u64,
    /// The same in words.
    pub words: String,
    /// In force for this service.
    pub rule: FlagRule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlagCause {
    Breaks,
    Fails,
}

words! {
    /// The effect of a flag.
    FlagRule {
        /// Calls are bought, and the flag is shown.
        Warn = "warn",
        /// Nothing is bought but a trial now and then.
        Stop = "stop",
    }
}

/// The rule for calls to one service while it is flagged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FlagRequest {
    pub service: ServiceIdText,
    /// `null` is as the setting says.
    pub rule: Option<FlagRule>,
}
