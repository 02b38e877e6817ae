//! SDL text into tokens, in one pass without recursion: the bounds that keep the parser's recursion on its stack
//! are checked here, with strings, block strings and comments understood.

use super::{FORMAT, position};
use crate::{
    limits::{SDL_DEPTH_MAX, SDL_TOKENS_MAX},
    report::ReadError,
};

/// The kind of a token. Numbers are only recognised, not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    Number,
    /// `"…"`.
    String,
    /// `"""…"""`.
    Block,
    Punctuator(u8),
}

/// A token and the bytes it covers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

impl Token {
    pub fn text<'a>(&self, text: &'a str) -> &'a str {
        text.get(self.start..self.end).unwrap_or_default()
    }

    pub fn is(&self, punctuator: u8) -> bool {
        self.kind == Kind::Punctuator(punctuator)
    }
}

/// All tokens. Every bracket among them has its partner.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ReadError> {
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut open: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let start = at;
        let kind = match byte {
            b' ' | b',' | b'\t' | b'\r' | b'\n' => {
                at += 1;
                continue;
            }
            b'#' => {
                at += line_length(bytes.get(at..).unwrap_or_default());
                continue;
            }
            0xef if text.get(at..).is_some_and(|rest| rest.starts_with('\u{feff}')) => {
                at += '\u{feff}'.len_utf8();
                continue;
            }
            b'"' => string(text, &mut at)?,
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                at += run(bytes, at, |byte| byte == b'_' || byte.is_ascii_alphanumeric());
                Kind::Name
            }
            b'-' | b'0'..=b'9' => {
                at += 1;
                at += run(bytes, at, |byte| {
                    matches!(byte, b'_' | b'.' | b'+' | b'-') || byte.is_ascii_alphanumeric()
                });
                Kind::Number
            }
            b'!' | b'$' | b'&' | b'(' | b')' | b':' | b'=' | b'@' | b'[' | b']' | b'{' | b'|' | b'}' => {
                at += 1;
                Kind::Punctuator(byte)
            }
            _ => return Err(unexpected(text, start)),
        };
        let token = Token { kind, start, end: at };
        brackets(text, token, &mut open)?;
        if tokens.len() == SDL_TOKENS_MAX {
            return Err(error(
                text,
                start,
                &format!("the schema has more than {SDL_TOKENS_MAX} words and signs"),
            ));
        }
        tokens.push(token);
    }
    match open.last() {
        Some(bracket) => {
            Err(error(text, bracket.start, &format!("`{}` is never closed", bracket.text(text))))
        }
        None => Ok(tokens),
    }
}

/// Keeps the brackets that are open, and their number within bounds.
fn brackets(text: &str, token: Token, open: &mut Vec<Token>) -> Result<(), ReadError> {
    let opener = match token.kind {
        Kind::Punctuator(b'(' | b'[' | b'{') if open.len() == SDL_DEPTH_MAX => {
            let what = format!("brackets are nested deeper than {SDL_DEPTH_MAX}");
            return Err(error(text, token.start, &what));
        }
        Kind::Punctuator(b'(' | b'[' | b'{') => {
            open.push(token);
            return Ok(());
        }
        Kind::Punctuator(b')') => b'(',
        Kind::Punctuator(b']') => b'[',
        Kind::Punctuator(b'}') => b'{',
        _ => return Ok(()),
    };
    let closer = token.text(text);
    match open.pop() {
        Some(partner) if partner.is(opener) => Ok(()),
        Some(other) => {
            let (line, column) = position::of(text, other.start);
            let other = other.text(text);
            let what = format!("`{closer}` does not close the `{other}` of line {line}, column {column}");
            Err(error(text, token.start, &what))
        }
        None => Err(error(text, token.start, &format!("`{closer}` closes nothing"))),
    }
}

/// Moves past a string or block string.
fn string(text: &str, at: &mut usize) -> Result<Kind, ReadError> {
    let start = *at;
    let rest = text.get(start..).unwrap_or_default();
    let is_block = rest.starts_with("\"\"\"");
    let length = if is_block { block_length(rest) } else { string_length(rest) };
    match length {
        Some(length) => {
            *at += length;
            Ok(if is_block { Kind::Block } else { Kind::String })
        }
        None if is_block => Err(error(text, start, "the block string is never closed with `\"\"\"`")),
        None => Err(error(text, start, "the string is not closed with `\"` on its line")),
    }
}

fn string_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\n' | b'\r' => return None,
            b'\\' if !matches!(bytes.get(at + 1)?, b'\n' | b'\r') => at += 2,
            _ => at += 1,
        }
    }
}

fn block_length(text: &str) -> Option<usize> {
    let mut at = 3;
    loop {
        let found = at + text.get(at..)?.find("\"\"\"")?;
        // `\"""` does not end it.
        if found > 3 && text.as_bytes().get(found - 1) == Some(&b'\\') {
            at = found + 3;
        } else {
            return Some(found + 3);
        }
    }
}

fn line_length(bytes: &[u8]) -> usize {
    run(bytes, 0, |byte| byte != b'\n' && byte != b'\r')
}

/// Counts the bytes in a row, from `at` on, that are of a kind.
fn run(bytes: &[u8], at: usize, is_part: impl Fn(u8) -> bool) -> usize {
    bytes.get(at..).unwrap_or_default().iter().take_while(|byte| is_part(**byte)).count()
}

fn unexpected(text: &str, at: usize) -> ReadError {
    let what = match text.get(at..).and_then(|rest| rest.chars().next()) {
        Some('“' | '”' | '„') => "a typographic quotation mark is not a `\"`; replace it".to_owned(),
        Some(c) if c.is_control() || c.is_whitespace() => {
            format!("the character U+{:04X} is not allowed outside strings", u32::from(c))
        }
        Some(c) => format!("`{c}` is not allowed outside strings and comments"),
        None => "a character is cut in two".to_owned(),
    };
    error(text, at, &what)
}

pub(super) fn error(text: &str, at: usize, what: &str) -> ReadError {
    ReadError::at(FORMAT, position::of(text, at), what)
}
