//! The signature of what a webhook is told: whoever has the secret knows that this node said it, and when.

use std::io;

use farthing_os::secret::SecretText;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The header with the signature: `t=SECONDS,v1=DIGITS`.
pub(super) const HEADER: &str = "x-farthing-signature";
/// Lets scanners find one that leaked.
const PREFIX: &str = "farthing_wh_";
const RANDOM_BYTES: usize = 32;

/// The secret that messages to the webhook are signed with.
#[derive(Clone, Debug)]
pub struct WebhookSecret(SecretText);

impl PartialEq for WebhookSecret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for WebhookSecret {}

impl WebhookSecret {
    pub(super) fn generate() -> io::Result<Self> {
        let mut random = Zeroizing::new([0; RANDOM_BYTES]);
        getrandom::fill(&mut *random).map_err(io::Error::from)?;
        Ok(Self(SecretText::new(format!("{PREFIX}{}", hex::encode(*random)))))
    }

    /// As it was kept.
    pub(super) fn stored(text: String) -> Self {
        Self(SecretText::new(text))
    }

    /// The text, which is the key.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// The header of a message that is sent at a time: HMAC-SHA256 over the time in seconds, a dot, and the body. With the
    /// time in it, a message that somebody caught is not taken for a new one later.
    pub(super) fn sign(&self, now_secs: u64, body: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(self.expose().as_bytes())
            .expect("a key of this kind may have any length");
        mac.update(format!("{now_secs}.{body}").as_bytes());
        format!("t={now_secs},v1={}", hex::encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_the_one_that_other_programs_compute() {
        let secret = WebhookSecret::stored(format!("{PREFIX}{}", "07".repeat(32)));
        // Python's hmac says so.
        let digits = "c4b0ec9481087898fe065e0a152492283d21523186a53456fcd02254acc155b1";
        assert_eq!(secret.sign(1_795_303_815, r#"{"test":true}"#), format!("t=1795303815,v1={digits}"));
    }

    #[test]
    fn each_secret_is_another_and_none_is_shown() {
        let (one, other) = (WebhookSecret::generate().unwrap(), WebhookSecret::generate().unwrap());
        assert!(one != other && one.expose().len() == PREFIX.len() + 64);
        assert!(!format!("{one:?}").contains(&one.expose()[PREFIX.len()..]));
    }
}
