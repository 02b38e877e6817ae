//! The console, as command line and programs ask for it.

use std::{convert::Infallible, fmt, path::PathBuf, str::FromStr};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Text;

/// Enough that guessing at the pace the console allows is hopeless, and what people are used to.
pub const PASSWORD_CHARS_MIN: usize = 10;

/// `farthing console url` and `reset-password`
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Console {
    /// The address at which it opens.
    pub url: String,
    /// The address to which browsers are led from there, under a name that this node alone has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub led_to: Option<String>,
    /// The one-time code, while the console has no password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_code: Option<String>,
    /// SHA-256 of the authority that its certificate is from; none for a certificate from elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_fingerprint: Option<String>,
}

impl Console {
    /// Scheme, name and port of the pages.
    pub fn origin(&self) -> &str {
        self.led_to.as_deref().unwrap_or(&self.url).trim_end_matches("/panel")
    }
}

/// `POST /api/v1/setup`
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetUp {
    /// As the node printed it; `farthing console url` prints it again.
    pub code: String,
    /// At least 10 characters.
    pub password: String,
}

/// `POST /api/v1/session`
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LogIn {
    pub password: String,
    /// The `device` that an earlier log-in answered: then wrong passwords of other programs do not make this one wait.
    #[serde(default)]
    pub device: String,
}

/// The answer to a log-in: a program sends `key` with every request, as `x-console-key`, beside the cookie it got.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
pub struct LoggedIn {
    pub key: String,
    /// To be kept, and sent with every later log-in; absent where the one that was sent is still good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

/// The place that a setting's value comes from. As text: `unset`, `default`, `preset`, `environment NAME`, `flag --set`, or
/// the path of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettingOrigin {
    Unset,
    Default,
    /// The chosen chain's own.
    Preset,
    File(PathBuf),
    /// The name of the variable.
    Variable(String),
    /// The flag as it is written.
    Flag(String),
}

impl SettingOrigin {
    /// Returns whether its value wins over what is set in the console.
    pub const fn is_above_console(&self) -> bool {
        matches!(self, Self::Variable(_) | Self::Flag(_))
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("unset"),
            Self::Default => f.write_str("default"),
            Self::Preset => f.write_str("preset"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag(flag) => write!(f, "flag {flag}"),
        }
    }
}

impl FromStr for SettingOrigin {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match (text, text.split_once(' ')) {
            ("unset", _) => Self::Unset,
            ("default", _) => Self::Default,
            ("preset", _) => Self::Preset,
            (_, Some(("environment", name))) => Self::Variable(name.to_owned()),
            (_, Some(("flag", flag))) => Self::Flag(flag.to_owned()),
            (path, _) => Self::File(path.into()),
        })
    }
}

/// One setting as it holds in the running node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Setting {
    /// `section.key`
    pub name: String,
    /// Secrets are shown as `(set)`; lists separated by commas; empty when nothing is set.
    pub value: String,
    #[schema(value_type = String)]
    pub origin: Text<SettingOrigin>,
}

/// The way the chain is reached: `farthing chain show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainSettings {
    /// `base`, `local`, …; chosen before the first start.
    pub preset: String,
    /// Host and port of each endpoint in order of preference: the addresses may hold access keys.
    pub endpoints: Vec<String>,
    /// The source of the endpoints.
    #[schema(value_type = String)]
    pub endpoints_from: Text<SettingOrigin>,
    /// Blocks until a deposit counts.
    pub confirmations: u64,
    /// The source of that number.
    #[schema(value_type = String)]
    pub confirmations_from: Text<SettingOrigin>,
    /// True if the settings that run are those that are set; `false` after a change, until the restart.
    pub in_force: bool,
}

/// `farthing chain set`; members that are left out stay as they are.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChainSettingsRequest {
    /// Addresses of endpoints in order of preference, in place of those of now. Each is asked before it is taken.
    pub rpc_urls: Option<Vec<String>>,
    /// Blocks until a deposit counts, 1 to 1,000.
    pub confirmations: Option<u64>,
    /// Goes back to the configured values first, both of them.
    #[serde(default)]
    pub reset: bool,
}

/// The settings that were stored; they hold from the next start on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChainSettingsSaved {
    pub settings: ChainSettings,
    /// The answer of each endpoint when it was asked.
    pub tested: Vec<EndpointTested>,
}

/// The answer of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct EndpointTested {
    /// Host and port.
    pub endpoint: String,
    pub good: bool,
    /// In words.
    pub detail: String,
}

/// `farthing restart`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Restarting {
    /// Running calls end first, so it takes up to half a minute.
    pub restarting: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_that_a_setting_comes_from_is_read_as_it_is_written() {
        for (origin, text, is_above) in [
            (SettingOrigin::Unset, "unset", false),
            (SettingOrigin::Default, "default", false),
            (SettingOrigin::Preset, "preset", false),
            (SettingOrigin::File("/data/my farthing.toml".into()), "/data/my farthing.toml", false),
            (SettingOrigin::Variable("FARTHING_A__B".to_owned()), "environment FARTHING_A__B", true),
            (SettingOrigin::Flag("--set".to_owned()), "flag --set", true),
        ] {
            assert_eq!(serde_json::to_value(Text(origin.clone())).unwrap(), text);
            assert_eq!(text.parse(), Ok(origin.clone()));
            assert_eq!(origin.is_above_console(), is_above, "{text}");
        }
    }
}
