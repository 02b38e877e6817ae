//! Percent encoding (RFC 3986), both ways.

use std::borrow::Cow;

/// `text`, percent-encoded but for RFC 3986's unreserved characters.
pub(crate) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    encode(&mut encoded, text);
    encoded
}

/// Appends `text`, percent-encoding everything but RFC 3986's unreserved characters.
pub(crate) fn encode(out: &mut String, text: &str) {
    encode_but(out, text, |_| false);
}

/// Appends a literal segment of a template, in which RFC 3986's `pchar` stand for themselves.
pub(crate) fn encode_literal(out: &mut String, text: &str) {
    encode_but(out, text, |byte| b"!$&'()*+,;=:@".contains(&byte));
}

fn encode_but(out: &mut String, text: &str, stays: impl Fn(u8) -> bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || stays(byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(HEX[usize::from(byte >> 4)]));
            out.push(char::from(HEX[usize::from(byte & 15)]));
        }
    }
}

/// Percent decoding as lenient servers do it: what is no escape stands for itself.
pub(crate) fn decode_leniently(raw: &str) -> Cow<'_, str> {
    if !raw.contains('%') {
        return raw.into();
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let digit = |at: usize| tail.get(at).and_then(|digit| char::from(*digit).to_digit(16));
        let escaped = digit(0).zip(digit(1)).filter(|_| byte == b'%');
        let escaped = escaped.and_then(|(high, low)| u8::try_from(high << 4 | low).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = escaped.map_or(tail, |_| &tail[2..]);
    }
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Percent decoding, once; `None` for a bad escape or for bytes that are no text.
pub(crate) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains('%') {
        return Some(raw.into());
    }
    let mut bytes = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'%' {
            bytes.push(byte);
            rest = tail;
            continue;
        }
        let (digits, tail) = tail.split_at_checked(2)?;
        let digit = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        bytes.push(digit(digits[0])? << 4 | digit(digits[1])?);
        rest = tail;
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
