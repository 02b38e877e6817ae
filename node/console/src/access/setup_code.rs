//! The one-time code that proves, at the first visit, that one can read the node's output.

use std::io;

use farthing_os::secret::SecretText;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Without letters and digits that are taken for one another.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const GROUPS: usize = 3;
const GROUP_CHARS: usize = 4;

/// Twelve letters and digits, 60 bits, in groups: `K7QF-2M9D-XH4T`.
#[derive(Clone, Debug)]
pub struct SetupCode(SecretText);

impl SetupCode {
    /// A new one from the operating system's randomness.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn generate() -> io::Result<Self> {
        let mut random = Zeroizing::new([0; GROUPS * GROUP_CHARS]);
        getrandom::fill(&mut *random).map_err(io::Error::from)?;
        let mut text = String::with_capacity(GROUPS * (GROUP_CHARS + 1));
        for (index, byte) in random.iter().enumerate() {
            if index > 0 && index % GROUP_CHARS == 0 {
                text.push('-');
            }
            text.push(char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        }
        Ok(Self(SecretText::new(text)))
    }

    /// For the one place that prints it.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Returns whether `typed` is this code, however it is spaced and in either case.
    #[must_use]
    pub fn matches(&self, typed: &str) -> bool {
        let bare = |text: &str| {
            let chars = text.chars().filter(char::is_ascii_alphanumeric).take(64);
            Zeroizing::new(chars.map(|c| c.to_ascii_uppercase()).collect::<String>())
        };
        bare(self.expose()).as_bytes().ct_eq(bare(typed).as_bytes()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_taken_as_people_type_it() {
        let code = SetupCode::generate().unwrap();
        let text = code.expose().to_owned();
        assert_eq!(text.len(), 14);
        assert!(code.matches(&text));
        assert!(code.matches(&text.to_lowercase().replace('-', " ")));
        assert!(!code.matches(&text[1..]));
        assert!(!code.matches(""));
        assert!(!code.matches(SetupCode::generate().unwrap().expose()));
        assert!(!format!("{code:?}").contains(&text));
    }
}
