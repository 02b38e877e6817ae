//! `secrets.toml` in the data folder: the consumer secrets, each with what its holder may do.
//!
//! Readable by its owner alone (0600), and in plain form, because its owner may ask to see a secret again:
//!
//! ```toml
//! default = "farthing_sk_…"
//!
//! [named.dashboard]
//! secret = "farthing_sk_…"
//! created_secs = 1795300000
//! price_max = "0.002"
//! per_day = "0.50"
//! confirm_above = "0.001"
//! services = ["0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b"]
//! pinned = ["0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b"]
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
};

pub use farthing_control::types::DEFAULT_SECRET;
use farthing_control::types::{SecretLimits, Text};
use farthing_os::{file_names, files};
use farthing_protocol::{ServiceId, Usdc};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::ConsumerSecret;

/// Each is compared with what a script presents; a household of scripts has a few.
pub const NAMED_MAX: usize = 64;
/// A name is a column of a table and a part of an address.
pub const NAME_CHARS_MAX: usize = 40;
/// Services that one secret may be for.
pub const SERVICES_MAX: usize = 256;
/// Services that can be pinned to a secret: the tools of an agent are few.
pub const PINNED_MAX: usize = 10;

/// An error that keeps the stored secrets from use.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error("{path} cannot be read or written", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is damaged", path = .path.display())]
    Malformed { path: PathBuf },
}

impl SecretFileError {
    pub fn next_step(&self) -> &'static str {
        match self {
            Self::Io { source, .. } => files::next_step(source),
            Self::Malformed { .. } => "remove it to get a new secret; the old ones then stop working",
        }
    }
}

/// Every secret that this node accepts.
#[derive(Clone, Debug)]
pub struct StoredSecrets {
    pub default: ConsumerSecret,
    pub named: BTreeMap<String, NamedSecret>,
}

/// A secret beside the default one.
#[derive(Clone, Debug)]
pub struct NamedSecret {
    pub secret: ConsumerSecret,
    /// Seconds since the Unix epoch.
    pub created_secs: u64,
    pub limits: SecretLimits,
    /// Services whose operations an agent has as tools of their own.
    pub pinned: BTreeSet<Text<ServiceId>>,
}

/// The error for a text that is no name for a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`name` must have 1 to {NAME_CHARS_MAX} letters, digits, `-`, `_` or `.`, and begin with a letter or digit"
)]
pub struct BadName;

/// Checks that a secret can have this name.
pub fn check_name(name: &str) -> Result<(), BadName> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && name.len() <= NAME_CHARS_MAX && name.chars().all(fits) { Ok(()) } else { Err(BadName) }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileForm {
    default: String,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    named: BTreeMap<String, NamedForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedForm {
    secret: String,
    created_secs: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price_max: Option<Text<Usdc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    per_day: Option<Text<Usdc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    confirm_above: Option<Text<Usdc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    services: Option<BTreeSet<Text<ServiceId>>>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pinned: BTreeSet<Text<ServiceId>>,
}

#[derive(Debug, Clone)]
pub struct SecretFile {
    path: PathBuf,
}

impl SecretFile {
    pub fn in_folder(data_dir: &Path) -> Self {
        Self { path: data_dir.join(file_names::SECRETS) }
    }

    /// The stored secrets; the default one is created at the first call.
    ///
    /// # Errors
    /// [`SecretFileError`] when there is a file that cannot be used; it is never replaced silently.
    pub fn load_or_create(&self) -> Result<StoredSecrets, SecretFileError> {
        match std::fs::read_to_string(&self.path).map(Zeroizing::new) {
            Ok(text) => self.parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let stored = StoredSecrets { default: self.fresh()?, named: BTreeMap::new() };
                self.write(&stored, files::create_private)?;
                Ok(stored)
            }
            Err(source) => Err(self.io(source)),
        }
    }

    /// Puts these secrets in place of the stored ones.
    ///
    /// # Errors
    /// [`SecretFileError::Io`]; the old ones then still stand.
    pub fn replace(&self, stored: &StoredSecrets) -> Result<(), SecretFileError> {
        self.write(stored, files::replace_private)
    }

    /// Gives every name a new secret, and a node whose stored ones cannot be read a new default one alone.
    ///
    /// # Errors
    /// [`SecretFileError::Io`]
    pub fn renew(&self) -> Result<(), SecretFileError> {
        let mut stored = match self.load_or_create() {
            Err(SecretFileError::Malformed { .. }) => {
                StoredSecrets { default: self.fresh()?, named: BTreeMap::new() }
            }
            stored => stored?,
        };
        stored.default = self.fresh()?;
        for named in stored.named.values_mut() {
            named.secret = self.fresh()?;
        }
        self.replace(&stored)
    }

    /// A new secret.
    ///
    /// # Errors
    /// [`SecretFileError::Io`] when the system has no randomness to give.
    pub fn fresh(&self) -> Result<ConsumerSecret, SecretFileError> {
        ConsumerSecret::generate().map_err(|source| self.io(source))
    }

    fn write(
        &self,
        stored: &StoredSecrets,
        write: fn(&Path, &[u8]) -> io::Result<()>,
    ) -> Result<(), SecretFileError> {
        let text = toml::to_string(&FileForm::from(stored)).map(Zeroizing::new);
        let text = text.map_err(|error| self.io(io::Error::other(error.to_string())))?;
        write(&self.path, text.as_bytes()).map_err(|source| self.io(source))
    }

    fn parse(&self, text: &str) -> Result<StoredSecrets, SecretFileError> {
        // What is wrong inside is not told: the reader's words would quote secrets.
        let malformed = || SecretFileError::Malformed { path: self.path.clone() };
        let form: FileForm = toml::from_str(text).map_err(|_| malformed())?;
        let named = form.named.into_iter().map(|(name, form)| {
            check_name(&name).map_err(|_| malformed())?;
            let secret = form.secret.parse().map_err(|_| malformed())?;
            let NamedForm { created_secs, price_max, per_day, confirm_above, services, pinned, .. } = form;
            let limits = SecretLimits { price_max, per_day, confirm_above, services };
            Ok((name, NamedSecret { secret, created_secs, limits, pinned }))
        });
        Ok(StoredSecrets {
            default: form.default.parse().map_err(|_| malformed())?,
            named: named.collect::<Result<_, _>>()?,
        })
    }

    fn io(&self, source: io::Error) -> SecretFileError {
        SecretFileError::Io { path: self.path.clone(), source }
    }
}

impl From<&StoredSecrets> for FileForm {
    fn from(stored: &StoredSecrets) -> Self {
        let text = |secret: &ConsumerSecret| secret.expose().to_owned();
        let form = |(name, named): (&String, &NamedSecret)| {
            let SecretLimits { price_max, per_day, confirm_above, services } = named.limits.clone();
            let (secret, created_secs) = (text(&named.secret), named.created_secs);
            let pinned = named.pinned.clone();
            let form =
                NamedForm { secret, created_secs, price_max, per_day, confirm_above, services, pinned };
            (name.clone(), form)
        };
        Self { default: text(&stored.default), named: stored.named.iter().map(form).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_and_what_they_may_do_are_kept_over_restarts() {
        let folder = tempfile::tempdir().unwrap();
        let file = SecretFile::in_folder(folder.path());
        let mut stored = file.load_or_create().unwrap();
        assert!(file.load_or_create().unwrap().default.matches(stored.default.expose()));
        let limits = SecretLimits {
            price_max: Some(Usdc::from_micros(2_000).into()),
            per_day: Some(Usdc::from_micros(500_000).into()),
            confirm_above: Some(Usdc::from_micros(1_000).into()),
            services: Some([ServiceId::from_bytes([7; 16]).into()].into()),
        };
        for (name, limits) in [("dash.board-1", limits.clone()), ("free", SecretLimits::default())] {
            let secret = file.fresh().unwrap();
            let pinned = limits.services.clone().unwrap_or_default();
            stored.named.insert(name.to_owned(), NamedSecret { secret, created_secs: 9, limits, pinned });
        }
        file.replace(&stored).unwrap();
        let read = file.load_or_create().unwrap();
        assert!(read.default.matches(stored.default.expose()));
        assert_eq!(read.named.len(), 2);
        let (one, was) = (&read.named["dash.board-1"], &stored.named["dash.board-1"]);
        assert!(one.secret.matches(was.secret.expose()) && one.created_secs == 9);
        assert_eq!((&one.limits, &read.named["free"].limits), (&limits, &SecretLimits::default()));
        assert_eq!((one.pinned.len(), &one.pinned, read.named["free"].pinned.len()), (1, &was.pinned, 0));
    }

    #[test]
    fn the_file_of_a_node_without_named_secrets_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let secret = ConsumerSecret::generate().unwrap();
        let path = folder.path().join("secrets.toml");
        std::fs::write(path, format!("default = \"{}\"\n", secret.expose())).unwrap();
        let stored = SecretFile::in_folder(folder.path()).load_or_create().unwrap();
        assert!(stored.default.matches(secret.expose()) && stored.named.is_empty());
    }

    #[test]
    fn a_damaged_file_is_not_replaced_silently_and_not_quoted() {
        let folder = tempfile::tempdir().unwrap();
        let good = ConsumerSecret::generate().unwrap();
        for damaged in [
            "default = \"farthing_sk_12\"".to_owned(),
            format!(
                "default = \"{}\"\n[named.a]\nsecret = \"farthing_sk_12\"\ncreated_secs = 1\n",
                good.expose()
            ),
            format!(
                "default = \"{0}\"\n[named.\"a b\"]\nsecret = \"{0}\"\ncreated_secs = 1\n",
                good.expose()
            ),
            format!("default = \"{}\" x", good.expose()),
        ] {
            std::fs::write(folder.path().join("secrets.toml"), &damaged).unwrap();
            let error = SecretFile::in_folder(folder.path()).load_or_create().unwrap_err();
            assert!(error.to_string().contains("damaged"), "{error}");
            assert!(!format!("{error:?}").contains("farthing_sk_"), "{error:?}");
        }
    }

    #[test]
    fn a_name_is_one_word() {
        for good in ["a", "7", "dash-board_1.x", &"n".repeat(NAME_CHARS_MAX)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "-a", ".", "..", "a b", "a/b", "ä", "a\n", &"n".repeat(NAME_CHARS_MAX + 1)] {
            assert_eq!(check_name(bad), Err(BadName), "{bad:?}");
        }
    }
}
