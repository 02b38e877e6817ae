//! The secrets with which scripts prove that they may spend, and the text type that never shows itself.
//!
//! A consumer secret is `farthing_sk_`, 32 random bytes and 4 bytes of checksum, in hexadecimal: the prefix
//! lets scanners find one that leaked, the checksum tells a typing error from a wrong secret. It is kept in
//! `secrets.toml` (0600) in the data folder in plain form, because its owner may ask to see it again.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    str::FromStr,
};

use farthing_protocol::keccak256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::files;

/// Text that `Debug` does not show and that is wiped on drop.
#[derive(Clone)]
pub struct SecretText(Zeroizing<String>);

impl SecretText {
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text itself, for the one place that needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

impl FromStr for SecretText {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(text))
    }
}

const PREFIX: &str = "farthing_sk_";
const RANDOM_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;

/// What a script presents as `Authorization: Bearer …`.
#[derive(Clone)]
pub struct ConsumerSecret(SecretText);

/// Why a text is no consumer secret at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseSecretError {
    #[error("a consumer secret begins with farthing_sk_; `farthing secret show` prints yours")]
    Prefix,
    #[error("the consumer secret is incomplete or mistyped; `farthing secret show` prints yours")]
    Checksum,
}

impl ConsumerSecret {
    /// A new secret from the operating system's randomness.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn generate() -> io::Result<Self> {
        let mut random = Zeroizing::new([0; RANDOM_BYTES]);
        getrandom::fill(&mut *random).map_err(io::Error::from)?;
        Ok(Self::from_random(&random))
    }

    fn from_random(random: &[u8; RANDOM_BYTES]) -> Self {
        Self(SecretText::new(format!("{PREFIX}{}{}", hex::encode(random), hex::encode(checksum(random)))))
    }

    /// The secret as scripts send it.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Whether `presented` is this secret. Takes the same time wherever they differ.
    #[must_use]
    pub fn matches(&self, presented: &str) -> bool {
        self.expose().as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// A name for logs and spending limits that reveals nothing.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex::encode(&keccak256(&[b"farthing secret name\0", self.expose().as_bytes()])[..8])
    }
}

fn checksum(random: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut bytes = [0; CHECKSUM_BYTES];
    bytes.copy_from_slice(&keccak256(&[b"farthing secret\0", random])[..CHECKSUM_BYTES]);
    bytes
}

impl fmt::Debug for ConsumerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConsumerSecret({}…)", self.fingerprint())
    }
}

impl FromStr for ConsumerSecret {
    type Err = ParseSecretError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(PREFIX).ok_or(ParseSecretError::Prefix)?;
        let mut bytes = Zeroizing::new([0; RANDOM_BYTES + CHECKSUM_BYTES]);
        hex::decode_to_slice(digits, &mut *bytes).map_err(|_| ParseSecretError::Checksum)?;
        let (random, check) = bytes.split_at(RANDOM_BYTES);
        if checksum(random) != check || digits.contains(|c: char| c.is_ascii_uppercase()) {
            return Err(ParseSecretError::Checksum);
        }
        Ok(Self(SecretText::new(text)))
    }
}

/// Why the stored secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    #[error("{path} cannot be read or written; check that this user owns it", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is damaged; remove it to get a new secret, which ends the old one", path = .path.display())]
    Malformed { path: PathBuf },
}

/// The stored consumer secret.
#[derive(Debug, Clone)]
pub struct SecretFile {
    path: PathBuf,
}

impl SecretFile {
    #[must_use]
    pub fn in_folder(data_dir: &Path) -> Self {
        Self { path: data_dir.join("secrets.toml") }
    }

    /// The stored secret; one is made at the first call.
    ///
    /// # Errors
    /// [`SecretFileError`] when there is a file that cannot be used; it is never replaced silently.
    pub fn load_or_create(&self) -> Result<ConsumerSecret, SecretFileError> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => self.parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.store(files::create_private),
            Err(source) => Err(self.io(source)),
        }
    }

    /// Replaces the secret. Whoever holds the old one is refused from now on.
    ///
    /// # Errors
    /// [`SecretFileError::Io`]; the old secret then still stands.
    pub fn rotate(&self) -> Result<ConsumerSecret, SecretFileError> {
        self.store(files::replace_private)
    }

    fn store(&self, write: fn(&Path, &[u8]) -> io::Result<()>) -> Result<ConsumerSecret, SecretFileError> {
        let secret = ConsumerSecret::generate().map_err(|source| self.io(source))?;
        let text = Zeroizing::new(format!("default = \"{}\"\n", secret.expose()));
        write(&self.path, text.as_bytes()).map_err(|source| self.io(source))?;
        Ok(secret)
    }

    fn parse(&self, text: &str) -> Result<ConsumerSecret, SecretFileError> {
        let malformed = || SecretFileError::Malformed { path: self.path.clone() };
        let table: toml::Table = text.parse().map_err(|_| malformed())?;
        let secret = table.get("default").and_then(toml::Value::as_str).ok_or_else(malformed)?;
        secret.parse().map_err(|_| malformed())
    }

    fn io(&self, source: io::Error) -> SecretFileError {
        SecretFileError::Io { path: self.path.clone(), source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_survives_its_text_form_and_a_typing_error_is_noticed() {
        let secret = ConsumerSecret::from_random(&[7; 32]);
        let text = secret.expose().to_owned();
        assert_eq!(text.len(), PREFIX.len() + 72);
        assert!(text.parse::<ConsumerSecret>().unwrap().matches(&text));
        let mistyped = text.replacen("0707", "0708", 1);
        assert_eq!(mistyped.parse::<ConsumerSecret>().unwrap_err(), ParseSecretError::Checksum);
        assert_eq!(text[..80].parse::<ConsumerSecret>().unwrap_err(), ParseSecretError::Checksum);
        assert_eq!("sk_1".parse::<ConsumerSecret>().unwrap_err(), ParseSecretError::Prefix);
    }

    #[test]
    fn only_the_whole_secret_matches() {
        let secret = ConsumerSecret::from_random(&[7; 32]);
        let text = secret.expose();
        assert!(secret.matches(text));
        for wrong in ["", &text[..text.len() - 1], &format!("{text} "), &text.to_uppercase()] {
            assert!(!secret.matches(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_never_printed() {
        let secret = ConsumerSecret::from_random(&[0x11; 32]);
        assert!(!format!("{secret:?} {:?}", secret.0).contains("1111"));
    }

    #[test]
    fn a_secret_is_kept_over_restarts_and_ends_when_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let file = SecretFile::in_folder(folder.path());
        let first = file.load_or_create().unwrap();
        assert!(file.load_or_create().unwrap().matches(first.expose()));
        let second = file.rotate().unwrap();
        assert!(!second.matches(first.expose()));
        assert!(file.load_or_create().unwrap().matches(second.expose()));
    }

    #[test]
    fn a_damaged_file_is_not_replaced_silently() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secrets.toml"), "default = \"farthing_sk_12\"").unwrap();
        let error = SecretFile::in_folder(folder.path()).load_or_create().unwrap_err();
        assert!(error.to_string().contains("damaged"), "{error}");
    }
}
