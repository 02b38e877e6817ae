//! Percent encoding (RFC 3986), both ways.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// All but RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// All but RFC 3986's `pchar`, which stand for themselves in a segment.
const NO_PCHAR: &AsciiSet = &RESERVED
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// `text`, percent-encoded but for RFC 3986's unreserved characters.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Appends `text`, percent-encoding everything but RFC 3986's unreserved characters.
pub(crate) fn encode(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, RESERVED));
}

/// Appends a literal segment of a template, in which RFC 3986's `pchar` stand for themselves.
pub(crate) fn encode_literal(out: &mut String, text: &str) {
    out.extend(utf8_percent_encode(text, NO_PCHAR));
}

/// Percent decoding as lenient servers do it: what is no escape stands for itself.
pub(crate) fn decode_leniently(raw: &str) -> Cow<'_, str> {
    percent_decode_str(raw).decode_utf8_lossy()
}

/// Percent decoding, once; `None` for a bad escape or for bytes that are no text.
pub(crate) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    let is_escape = |text: &str| text.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    if !raw.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(raw).decode_utf8().ok()
}
