//! The secrets with which scripts prove that they may spend.
//!
//! A consumer secret is `farthing_sk_`, 32 random bytes and 4 bytes of checksum, in hexadecimal: the prefix
//! lets scanners find one that leaked, the checksum tells a typing error from a wrong secret. [`file`] keeps them.

use std::{fmt, io, str::FromStr};

use farthing_os::secret::SecretText;
use farthing_protocol::keccak256;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

pub mod file;

const PREFIX: &str = "farthing_sk_";
const RANDOM_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;

/// The secret that a script presents as `Authorization: Bearer …`.
#[derive(Clone)]
pub struct ConsumerSecret(SecretText);

/// The reason that a text is no consumer secret at all.
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
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Returns whether `presented` is this secret. Takes the same time wherever they differ.
    #[must_use]
    pub fn matches(&self, presented: &str) -> bool {
        self.expose().as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// A name for logs and spending limits that reveals nothing.
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
}
