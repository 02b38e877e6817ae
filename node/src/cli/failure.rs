//! How a command fails: a text for people, an exit code for scripts.

use std::{fmt, process::ExitCode};

use crate::{
    config::ConfigError,
    control::{ControlError, types::Problem},
};

/// Exit codes, the same for every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Failure = 1,
    Usage = 2,
    Unreachable = 3,
    Authentication = 4,
    Payment = 5,
    Upstream = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command was not carried out.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    /// What failed and what to do next; empty when all was said already.
    pub text: String,
}

impl Failure {
    pub(super) fn new(exit: Exit, text: impl fmt::Display) -> Self {
        Self { exit, text: text.to_string() }
    }

    /// All was said already.
    pub(super) const fn silent(exit: Exit) -> Self {
        Self { exit, text: String::new() }
    }

    pub(super) fn usage(text: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Exit {
    pub(super) fn of_problem(problem: &Problem) -> Self {
        match problem.status {
            401 | 403 => Self::Authentication,
            402 => Self::Payment,
            502 | 504 => Self::Upstream,
            400 | 404 | 405 | 413 | 414 => Self::Usage,
            _ => Self::Failure,
        }
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let exit = match &error {
            ControlError::NotRunning { .. } | ControlError::TimedOut(_) => Exit::Unreachable,
            ControlError::NotAllowed { .. } => Exit::Authentication,
            ControlError::Refused(problem) => Exit::of_problem(problem),
            ControlError::Unreadable(_) => Exit::Failure,
        };
        Self::new(exit, error)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::usage(error)
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::new(Exit::Failure, format!("{error:#}"))
    }
}
