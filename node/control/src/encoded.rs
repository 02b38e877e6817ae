//! Bytes in JSON: base64 (RFC 4648, 4), with its padding or without.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Writes bytes as text.
pub fn to_text(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Reads bytes from text; `None` where it is no base64, or has blanks or line breaks.
pub fn from_text(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_as_rfc_4648_has_them() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foob", "Zm9vYg=="),
            (b"\xff\xfe\xfd", "//79"),
        ] {
            assert_eq!(to_text(bytes), text);
        }
    }

    #[test]
    fn bytes_survive_as_text() {
        let every: Vec<u8> = (0..=255).collect();
        for bytes in [&every[..], &every[..1], &every[..2], &[]] {
            let text = to_text(bytes);
            assert_eq!(from_text(&text).as_deref(), Some(bytes));
            assert_eq!(from_text(text.trim_end_matches('=')).as_deref(), Some(bytes));
        }
        for text in ["a", "a===", "QQ==\n", "Q Q", "-_-_", "QR"] {
            assert_eq!(from_text(text), None, "{text}");
        }
    }
}
