//! Arguments that name one of my own services.

use std::str::FromStr;

use clap::Args;
use farthing_protocol::ServiceId;

/// Fewer are soon the same for two services.
const DIGITS_MIN: usize = 4;
/// All of a UUID.
const DIGITS_MAX: usize = 32;

#[derive(Debug, Args)]
pub struct OwnService {
    /// Its UUID, as `farthing api list` shows it, or the first digits of it
    pub service: OwnServiceName,
}

/// One of my services, by its id or the beginning of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnServiceName {
    Whole(ServiceId),
    /// Hexadecimal digits in lower case, without dashes.
    Beginning(String),
}

impl FromStr for OwnServiceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = match text.parse::<ServiceId>() {
            Ok(id) => return Ok(Self::Whole(id)),
            Err(error) => error,
        };
        let digits = text.replace('-', "").to_ascii_lowercase();
        let fits = (DIGITS_MIN..=DIGITS_MAX).contains(&digits.len());
        if fits && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Ok(Self::Beginning(digits));
        }
        Err(format!("{error}, or {DIGITS_MIN} or more of its first digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";

    #[test]
    fn a_service_is_named_by_its_id_or_its_first_digits() {
        let read = |text: &str| text.parse::<OwnServiceName>();
        let whole = OwnServiceName::Whole(ID.parse::<ServiceId>().unwrap());
        assert_eq!(read(ID).unwrap(), whole);
        for (text, digits) in [
            ("0b5f", "0b5f"),
            ("0B5F2A3E", "0b5f2a3e"),
            ("0b5f2a3e-", "0b5f2a3e"),
            ("0b5f2a3e-6a3c", "0b5f2a3e6a3c"),
        ] {
            assert_eq!(read(text).unwrap(), OwnServiceName::Beginning(digits.to_owned()), "{text}");
        }
        for text in ["", "0b5", "0b-5", "books", "0b5g", &format!("{ID}0")] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains("is a UUID") && refused.contains("4 or more"), "{text}: {refused}");
        }
    }
}
