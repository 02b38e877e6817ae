//! Failures of a command: a text for people, an object for programs, an exit code for both.
//!
//! With `--json` every failure is one object on standard error, whatever else was written:
//! `{"error": {"code", "message", "next"}}`; a call that was not bought adds `charged` and `call_id`, and one that a limit of
//! spending refused adds `limit`.

use std::{
    error::Error,
    fmt,
    io::{self, Write},
    process::ExitCode,
};

use clap::ValueEnum;
use farthing_catalog::CatalogError;
use farthing_config::ConfigError;
use farthing_console::AccessError;
use farthing_control::{
    ControlError,
    types::{LimitKind, Problem, ProblemName},
};
use farthing_ledger::OpenError;
use farthing_network::NetworkError;
use farthing_node::{backup::BackupError, secret::file::SecretFileError};
use farthing_os::lock::DataFolderError;
use farthing_serve::tls::TlsError;
use farthing_wallet::WalletError;
use serde::Serialize;

use super::visible::visible;

/// Exit codes, the same for every command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Exit {
    Failure = 1,
    Usage = 2,
    Unreachable = 3,
    Authentication = 4,
    #[value(name = "payment-refused")]
    Payment = 5,
    Upstream = 6,
    MayHaveBeenMade = 7,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The reason that a command was not carried out.
#[derive(Debug)]
pub struct Failure {
    pub exit: Exit,
    error: ErrorObject,
    /// People have read it in the command's answer already.
    is_told: bool,
}

/// A failure as programs read it.
#[derive(Debug, Serialize)]
struct ErrorObject {
    /// A problem's name where there is one, else what kind of failure the exit code means.
    code: String,
    message: String,
    /// The next step for the user.
    next: Option<String>,
    /// The limit of spending that refuses a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<LimitKind>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    call: Option<CallFacts>,
}

/// Facts about the money of a call.
#[derive(Debug, Serialize)]
pub(super) struct CallFacts {
    /// `None`: not known yet.
    pub(super) charged: Option<bool>,
    pub(super) call_id: Option<String>,
}

impl Failure {
    /// `message` says what failed.
    pub(super) fn new(exit: Exit, message: impl fmt::Display) -> Self {
        let (code, message) = (exit.name(), message.to_string());
        let error = ErrorObject { code, message, next: None, limit: None, call: None };
        Self { exit, error, is_told: false }
    }

    /// Adds what to do next: the end of a sentence, or one of its own.
    pub(super) fn next(self, next: impl fmt::Display) -> Self {
        self.next_step(Some(next))
    }

    /// Adds what an error says of what to do next.
    pub(super) fn next_step(mut self, next: Option<impl fmt::Display>) -> Self {
        self.error.next = next.map(|next| next.to_string());
        self
    }

    /// For programs: people have read as much in the answer.
    pub(super) fn told(exit: Exit, text: impl fmt::Display) -> Self {
        Self { is_told: true, ..Self::new(exit, text) }
    }

    pub(super) fn usage(text: impl fmt::Display) -> Self {
        Self::new(Exit::Usage, text)
    }

    /// Adds what became of the money.
    pub(super) fn of_call(mut self, facts: CallFacts) -> Self {
        self.error.call = Some(facts);
        self
    }

    /// Takes over what clap says of the command line, without colours and without the whole help.
    pub(super) fn of_command_line(error: &clap::Error) -> Self {
        let text = error.render().to_string();
        let mut paragraphs =
            text.split("\n\n").map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
        let first = paragraphs.next().unwrap_or_default();
        // Without a command there is no error but the help.
        let message = first.strip_prefix("error: ").unwrap_or("a command is missing").to_owned();
        let next = paragraphs.find(|part| part.starts_with("Usage: ") || part.starts_with("For more "));
        Self::usage(message).next_step(next)
    }

    /// The failure of a system that starts no threads.
    pub fn no_threads(error: &io::Error) -> Self {
        Self::new(Exit::Failure, format!("threads could not be started ({error})"))
            .next("free some memory and try again")
    }

    /// As programs read it.
    pub(super) fn object(&self) -> serde_json::Value {
        serde_json::json!({ "error": self.error })
    }

    /// Tells it on standard error. Nobody to tell is no failure.
    pub fn tell(&self, json: bool) {
        let mut stderr = io::stderr().lock();
        if json {
            let _ = writeln!(stderr, "{}", visible(&self.object().to_string()));
        } else if !self.is_told {
            let _ = writeln!(stderr, "farthing: {}", visible(&self.to_string()));
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ErrorObject { message, next, call, .. } = &self.error;
        let end = |text: &str| if text.ends_with(['.', '?']) { "" } else { "." };
        match next.as_deref() {
            None | Some("") => f.write_str(message)?,
            // A sentence of its own.
            Some(next) if !next.starts_with(|first: char| first.is_ascii_lowercase()) => {
                write!(f, "{message}{} {next}{}", end(message), end(next))?;
            }
            Some(next) if call.is_some() => write!(f, "{message}; {next}{}", end(next))?,
            Some(next) => write!(f, "{message}; {next}")?,
        }
        match call {
            Some(CallFacts { charged: Some(false), .. }) => f.write_str(" You were not charged."),
            // Without its id the call could not be repeated, but only made, and paid, a second time.
            Some(CallFacts { charged: None, call_id: Some(call_id) }) => {
                write!(
                    f,
                    " It is not known yet whether you were charged. Repeat the call with `--call-id {call_id}`; it is \
                     charged at most once."
                )
            }
            _ => Ok(()),
        }
    }
}

impl Exit {
    pub(super) fn name(self) -> String {
        self.to_possible_value().map(|named| named.get_name().to_owned()).unwrap_or_default()
    }

    /// Another user's folder is for that user; anything else that is wrong with a folder is a failure.
    fn of_folder(error: &DataFolderError) -> Self {
        match error {
            DataFolderError::Foreign { .. } => Self::Authentication,
            DataFolderError::NotWritable { source, .. }
                if source.kind() == io::ErrorKind::PermissionDenied =>
            {
                Self::Authentication
            }
            _ => Self::Failure,
        }
    }

    /// By the problem's name where its status has several meanings: a 404 is a path that was mistyped or a service
    /// that is not there, a 502 an owner that is away or an upstream that failed.
    pub(super) fn of_problem(problem: &Problem) -> Self {
        match (problem.name().parse().ok(), problem.status) {
            (Some(ProblemName::UnknownPath), _) => Self::Usage,
            (Some(ProblemName::MayHaveBeenMade | ProblemName::Undecided), _) => Self::MayHaveBeenMade,
            (Some(ProblemName::Cancelled), _) if problem.charged.is_none() => Self::MayHaveBeenMade,
            (Some(ProblemName::PriceChanged | ProblemName::SpendingStopped), _) => Self::Payment,
            (Some(ProblemName::ChainUnreachable), _) => Self::Unreachable,
            (
                Some(
                    ProblemName::UpstreamFailed
                    | ProblemName::UpstreamTimeout
                    | ProblemName::AnswerTooLarge
                    | ProblemName::BadAnswer
                    | ProblemName::OwnerDistrusted
                    | ProblemName::MayHaveRun,
                ),
                _,
            ) => Self::Upstream,
            (_, 401 | 403) => Self::Authentication,
            (_, 402) => Self::Payment,
            (_, 502 | 504) => Self::Unreachable,
            (_, 400 | 405 | 413 | 414) => Self::Usage,
            _ => Self::Failure,
        }
    }
}

impl From<&Problem> for Failure {
    fn from(problem: &Problem) -> Self {
        let exit = Exit::of_problem(problem);
        let what = if problem.detail.is_empty() { &problem.title } else { &problem.detail };
        let mut failure = Self::new(exit, what).next_step(problem.advice());
        failure.error.limit = problem.limit;
        if !problem.name().is_empty() {
            problem.name().clone_into(&mut failure.error.code);
        }
        failure
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let exit = match &error {
            ControlError::Refused(problem) => return Self::from(&**problem),
            ControlError::BrokenOff { is_command: true } => Exit::MayHaveBeenMade,
            ControlError::NotRunning { .. }
            | ControlError::TimedOut(_)
            | ControlError::BrokenOff { is_command: false } => Exit::Unreachable,
            ControlError::NotAllowed { .. } => Exit::Authentication,
            ControlError::Unreadable(_) => Exit::Failure,
        };
        Self::new(exit, &error).next_step(error.next_step())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        let exit = if error.is_denied() { Exit::Authentication } else { Exit::Usage };
        Self::new(exit, &error).next(error.next_step())
    }
}

impl From<DataFolderError> for Failure {
    fn from(error: DataFolderError) -> Self {
        Self::new(Exit::of_folder(&error), &error).next(error.next_step())
    }
}

impl From<BackupError> for Failure {
    fn from(error: BackupError) -> Self {
        let exit = match &error {
            BackupError::ShortPassphrase | BackupError::NoBackup | BackupError::InUse { .. } => Exit::Usage,
            BackupError::WrongPassphrase => Exit::Authentication,
            BackupError::Folder(error) => Exit::of_folder(error),
            _ => Exit::Failure,
        };
        Self::new(exit, &error).next_step(error.next_step())
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let folder = error.chain().find_map(|error| error.downcast_ref::<DataFolderError>());
        Self::new(folder.map_or(Exit::Failure, Exit::of_folder), format!("{error:#}"))
            .next_step(error.chain().find_map(next_step))
    }
}

/// Returns the next step that one of a start's errors suggests.
fn next_step<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a str> {
    macro_rules! first {
        ($($type:ty),+) => {
            $(if let Some(error) = error.downcast_ref::<$type>() {
                return error.next_step().into();
            })+
        };
    }
    first!(
        DataFolderError,
        ControlError,
        BackupError,
        OpenError,
        CatalogError,
        NetworkError,
        WalletError,
        SecretFileError,
        TlsError,
        AccessError
    );
    None
}
