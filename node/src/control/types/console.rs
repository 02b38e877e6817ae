//! What the command line and programs say to the console.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `farthing panel url` and `reset-password`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Console {
    /// Where to open it.
    pub url: String,
    /// The one-time code, while the console has no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_code: Option<String>,
    /// SHA-256 of the authority that its certificate is from; none for a certificate from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_fingerprint: Option<String>,
}

impl fmt::Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Console").field("url", &self.url).finish_non_exhaustive()
    }
}

/// `POST /api/v1/session`
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    pub password: String,
}

impl fmt::Debug for LogIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogIn(…)")
    }
}

/// What a program sends along with every change, as `x-csrf-token`, beside the cookie it was given.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct LoggedIn {
    pub csrf: String,
}

impl fmt::Debug for LoggedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LoggedIn(…)")
    }
}

/// One setting as it holds in the running node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// `section.key`
    pub name: String,
    /// Secrets are shown as `(set)`; lists separated by commas; empty when nothing is set.
    pub value: String,
    /// `default`, a file with its line, a variable, or a flag.
    pub origin: String,
}
