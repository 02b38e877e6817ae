//! Settings as text with their origin, and what is wrong with them.

use std::{collections::BTreeMap, fmt, str::FromStr};

use farthing_control::types::SettingOrigin;

/// One value as text; a list as its items.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) values: Vec<String>,
    pub(super) origin: SettingOrigin,
}

/// The texts themselves are not shown: one of them may be a passphrase.
impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Setting({} values from {})", self.values.len(), self.origin)
    }
}

/// Something in the configuration that must be mended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {name}: {what}")]
pub struct ConfigProblem {
    pub origin: SettingOrigin,
    pub name: String,
    pub what: String,
    /// True if it is about a file that belongs to another user.
    pub is_denied: bool,
}

/// Everything there is to mend, one line each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError(pub Vec<ConfigProblem>);

impl ConfigError {
    /// Returns whether another user has to run the command.
    pub fn is_denied(&self) -> bool {
        self.0.iter().any(|problem| problem.is_denied)
    }

    pub const fn next_step(&self) -> &'static str {
        "`farthing config example` explains every setting"
    }
}

impl std::error::Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the configuration is not valid:")?;
        self.0.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

/// All settings that have a value, by name.
#[derive(Debug, Default)]
pub(super) struct Raw {
    pub(super) settings: BTreeMap<&'static str, Setting>,
    /// The values that flags and the environment took the place of: those of files, and defaults.
    pub(super) overruled: BTreeMap<&'static str, Setting>,
    pub(super) problems: Vec<ConfigProblem>,
}

impl Raw {
    pub(super) fn values(&self, name: &str) -> &[String] {
        self.settings.get(name).map_or(&[], |setting| &setting.values)
    }

    /// The only or the first one.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.values(name).first().map(String::as_str)
    }

    pub(super) fn parsed<T: FromStr>(&self, name: &str, value: &str) -> Result<T, ConfigError> {
        value.parse().map_err(|_| self.wrong(name, "has an unexpected form"))
    }

    pub(super) fn wrong(&self, name: &str, what: &str) -> ConfigError {
        ConfigError(vec![self.problem_with(name, what)])
    }

    pub(super) fn problem_with(&self, name: &str, what: &str) -> ConfigProblem {
        let origin = self.settings.get(name).map_or(SettingOrigin::Default, |setting| setting.origin.clone());
        ConfigProblem { origin, name: name.into(), what: what.into(), is_denied: false }
    }
}
