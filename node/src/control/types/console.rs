//! What the command line says of the console.

use std::fmt;

use serde::{Deserialize, Serialize};

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
