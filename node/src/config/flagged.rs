//! What becomes of calls to a service that is flagged.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// What a flag does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FlagRule {
    /// It is shown, and calls are bought.
    #[default]
    Warn,
    /// Nothing is bought but a trial now and then.
    Stop,
}

impl fmt::Display for FlagRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Warn => "warn",
            Self::Stop => "stop",
        })
    }
}

impl FromStr for FlagRule {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "warn" => Ok(Self::Warn),
            "stop" => Ok(Self::Stop),
            _ => Err("expected warn or stop"),
        }
    }
}
