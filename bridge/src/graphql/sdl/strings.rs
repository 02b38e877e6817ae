//! GraphQL's string literals (October 2021, section 2.9.4), where the parser falls short of them.

use std::fmt::Write;

/// A rewritten literal.
pub(super) struct Escapes {
    pub text: String,
    /// It was not a literal at all: a backslash began no escape.
    pub is_wrong: bool,
}

/// Rewrites `"…"` so that it has only escapes the parser knows; `None` when it has no others.
pub(super) fn escapes(literal: &str) -> Option<Escapes> {
    let mut text = String::with_capacity(literal.len() + 8);
    let (mut is_other, mut is_wrong) = (false, false);
    let mut rest = literal;
    while let Some(at) = rest.find('\\') {
        text.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let (escape, after) = first_escape(rest);
        match escape {
            Escape::Known(escape) => text.push_str(escape),
            Escape::Character(c) => {
                is_other = true;
                push_escaped(&mut text, c);
            }
            Escape::None => {
                (is_other, is_wrong) = (true, true);
                text.push_str("\\\\");
            }
        }
        rest = after;
    }
    text.push_str(rest);
    is_other.then_some(Escapes { text, is_wrong })
}

enum Escape<'a> {
    /// As the parser takes it.
    Known(&'a str),
    Character(char),
    None,
}

/// Reads what a backslash begins, and returns what follows it.
fn first_escape(text: &str) -> (Escape<'_>, &str) {
    let known = |length: usize| (Escape::Known(&text[..length]), &text[length..]);
    let unknown = (Escape::None, text.get(1..).unwrap_or_default());
    match text.as_bytes().get(1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => known(2),
        Some(b'u') => {
            if let Some((code, after)) = text.get(2..).and_then(braced) {
                return char::from_u32(code).map_or(unknown, |c| (Escape::Character(c), after));
            }
            match (unit(text), text.get(6..).and_then(unit)) {
                (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
                    let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                    let c = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                    (Escape::Character(c), text.get(12..).unwrap_or_default())
                }
                (Some(0xd800..=0xdfff), _) => {
                    (Escape::Character(char::REPLACEMENT_CHARACTER), text.get(6..).unwrap_or_default())
                }
                (Some(_), _) => known(6),
                (None, _) => unknown,
            }
        }
        _ => unknown,
    }
}

/// The code of a leading `{X…}` of at most eight digits, and what follows it.
fn braced(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix('{')?;
    let length = rest.bytes().take(9).take_while(u8::is_ascii_hexdigit).count();
    let (digits, after) = rest.split_at_checked(length)?;
    Some((hexadecimal(digits)?, after.strip_prefix('}')?))
}

/// The code of a leading `\uXXXX`.
fn unit(text: &str) -> Option<u32> {
    hexadecimal(text.strip_prefix("\\u")?.get(..4)?)
}

fn hexadecimal(digits: &str) -> Option<u32> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_plain { u32::from_str_radix(digits, 16).ok() } else { None }
}

/// `value` as a literal in quotes.
pub(in crate::graphql) fn quoted(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    value.chars().for_each(|c| push_escaped(&mut text, c));
    text.push('"');
    text
}

fn push_escaped(text: &mut String, c: char) {
    match c {
        '"' => text.push_str("\\\""),
        '\\' => text.push_str("\\\\"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        c if c.is_control() => write!(text, "\\u{:04X}", u32::from(c)).unwrap_or_default(),
        c => text.push(c),
    }
}

/// The value of a block string from what is between its quotes (section "BlockStringValue").
pub(super) fn block_value(raw: &str) -> String {
    let unescaped = raw.replace(r#"\""""#, r#"""""#).replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<&str> = unescaped.split('\n').collect();
    let is_blank = |line: &&str| line.bytes().all(|byte| matches!(byte, b' ' | b'\t'));
    let indent = lines
        .iter()
        .skip(1)
        .filter(|line| !is_blank(line))
        .map(|line| line.len() - line.trim_start_matches([' ', '\t']).len())
        .min()
        .unwrap_or(0);
    let first = lines.iter().position(|line| !is_blank(line)).unwrap_or(lines.len());
    let end = lines.iter().rposition(|line| !is_blank(line)).map_or(first, |last| last + 1);
    let kept: Vec<&str> = lines
        .iter()
        .enumerate()
        .take(end)
        .skip(first)
        .map(|(index, line)| if index == 0 { line } else { line.get(indent..).unwrap_or_default() })
        .collect();
    kept.join("\n")
}
