//! Bytes of a schema file to text: the size is checked, the encoding recognised.

use std::borrow::Cow;

use super::FORMAT;
use crate::{
    limits::SDL_BYTES_MAX,
    report::{ReadError, Report},
};

/// The text without its byte order mark. Editors and shells on Windows write UTF-16: it is converted.
pub(super) fn decode<'a>(bytes: &'a [u8], report: &mut Report) -> Result<Cow<'a, str>, ReadError> {
    if bytes.len() > SDL_BYTES_MAX {
        return Err(ReadError::new(
            FORMAT,
            format!("the schema has {} bytes, {SDL_BYTES_MAX} are the most that is read", bytes.len()),
        ));
    }
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes, report),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes, report),
        [0xef, 0xbb, 0xbf, rest @ ..] => utf8(rest),
        _ => utf8(bytes),
    }
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, ReadError> {
    std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
        let before = String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
        ReadError::at(
            FORMAT,
            super::position::of(&before, before.len()),
            "the text is not UTF-8 from here on; save it as UTF-8",
        )
    })
}

fn utf16(
    bytes: &[u8],
    unit: fn([u8; 2]) -> u16,
    report: &mut Report,
) -> Result<Cow<'static, str>, ReadError> {
    let (pairs, odd) = bytes.as_chunks::<2>();
    let text: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    match text {
        Ok(text) if odd.is_empty() => {
            report.repaired.add("the file", "is UTF-16; it was converted to UTF-8");
            Ok(Cow::Owned(text))
        }
        _ => Err(ReadError::new(FORMAT, "the text is broken UTF-16; save it as UTF-8")),
    }
}
