//! JSON as a caller sent it: numbers keep their digits, and whatever readers disagree about is refused.
//!
//! [`Json::parse`] reads one text. Names that occur twice in an object and values nested too deeply are errors,
//! because the upstream might read them differently. What was read is written again by [`Json::to_text`].

use std::{
    borrow::Cow,
    collections::HashSet,
    fmt::{self, Write as _},
};

use serde_json::{Number, Value};

/// From here on, names of an object are compared through a set.
const NAMES_COMPARED_DIRECTLY: usize = 8;

/// A JSON value whose numbers are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json<'a> {
    Null,
    Boolean(bool),
    /// Spelled as in RFC 8259.
    Number(Cow<'a, str>),
    String(Cow<'a, str>),
    Array(Vec<Json<'a>>),
    /// In the caller's order; names are unique.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// The name of an object's member where the text is read once only, a part of it unless it is written with escapes.
#[derive(serde::Deserialize)]
pub(crate) struct MemberName<'t>(#[serde(borrow)] pub(crate) Cow<'t, str>);

/// The reason that a text is no JSON that we pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at}")]
pub(crate) struct JsonError {
    pub(crate) reason: &'static str,
    /// Zero-based.
    pub(crate) at: usize,
}

impl<'a> Json<'a> {
    /// Reads the whole of `text`, whose values may be nested `depth_max` deep.
    pub(crate) fn parse(text: &'a str, depth_max: usize) -> Result<Self, JsonError> {
        let mut reader = JsonReader { text, at: 0 };
        let value = reader.value(depth_max)?;
        reader.skip_blanks();
        if reader.at < text.len() { Err(reader.error("something follows the value")) } else { Ok(value) }
    }

    /// The value as compact JSON.
    pub(crate) fn to_text(&self) -> String {
        self.to_string()
    }

    /// Tells whether it equals `other`, numbers by their value.
    pub(crate) fn is(&self, other: &Value) -> bool {
        match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Boolean(own), Value::Bool(other)) => own == other,
            (Self::Number(own), Value::Number(other)) => {
                compare(own, other).is_some_and(std::cmp::Ordering::is_eq)
            }
            (Self::String(own), Value::String(other)) => own == other,
            (Self::Array(own), Value::Array(other)) => {
                own.len() == other.len() && own.iter().zip(other).all(|(own, other)| own.is(other))
            }
            (Self::Object(own), Value::Object(other)) => {
                own.len() == other.len()
                    && own.iter().all(|(name, own)| other.get(&**name).is_some_and(|other| own.is(other)))
            }
            _ => false,
        }
    }
}

/// Compares a number's text with a number: exactly when both are whole, else as floating point.
pub(crate) fn compare(text: &str, other: &Number) -> Option<std::cmp::Ordering> {
    if let (Ok(own), Some(other)) = (text.parse::<i128>(), other.as_i128()) {
        return Some(own.cmp(&other));
    }
    text.parse::<f64>().ok()?.partial_cmp(&other.as_f64()?)
}

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Number(text) => f.write_str(text),
            Self::String(text) => quoted(f, text),
            Self::Array(items) => {
                f.write_char('[')?;
                for (i, item) in items.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    item.fmt(f)?;
                }
                f.write_char(']')
            }
            Self::Object(members) => {
                f.write_char('{')?;
                for (i, (name, value)) in members.iter().enumerate() {
                    f.write_str(if i > 0 { "," } else { "" })?;
                    quoted(f, name)?;
                    f.write_char(':')?;
                    value.fmt(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

fn quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str(&serde_json::to_string(text).map_err(|_| fmt::Error)?)
}

/// A recursive descent; every level of nesting costs one of `depth`.
struct JsonReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> JsonReader<'a> {
    const fn error(&self, reason: &'static str) -> JsonError {
        JsonError { reason, at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Reads the next token if it is `byte`, and tells whether it was.
    fn take(&mut self, byte: u8) -> bool {
        self.skip_blanks();
        let taken = self.peek() == Some(byte);
        self.at += usize::from(taken);
        taken
    }

    fn value(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        self.skip_blanks();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Boolean(true)),
            Some(b'f') => self.word("false", Json::Boolean(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) => Err(self.error("no JSON value begins")),
            None => Err(self.error("the text ends too early")),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, JsonError> {
        depth.checked_sub(1).ok_or_else(|| self.error("values are nested too deeply"))
    }

    fn array(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        let depth = self.deeper(depth)?;
        self.at += 1;
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Json::Array(items));
        }
        loop {
            items.push(self.value(depth)?);
            if self.take(b']') {
                return Ok(Json::Array(items));
            }
            if !self.take(b',') {
                return Err(self.error("a comma or ] is missing"));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json<'a>, JsonError> {
        let depth = self.deeper(depth)?;
        self.at += 1;
        let mut members: Vec<(Cow<'a, str>, Json<'a>)> = Vec::new();
        let mut names: HashSet<Cow<'a, str>> = HashSet::new();
        if self.take(b'}') {
            return Ok(Json::Object(members));
        }
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'"') {
                return Err(self.error("a name in quotes is missing"));
            }
            let start = self.at;
            let name = self.string()?;
            if members.len() == NAMES_COMPARED_DIRECTLY {
                names = members.iter().map(|(name, _)| name.clone()).collect();
            }
            let known = if members.len() < NAMES_COMPARED_DIRECTLY {
                members.iter().any(|(known, _)| *known == name)
            } else {
                !names.insert(name.clone())
            };
            if known {
                return Err(JsonError { reason: "a name occurs twice", at: start });
            }
            if !self.take(b':') {
                return Err(self.error("a colon is missing"));
            }
            members.push((name, self.value(depth)?));
            if self.take(b'}') {
                return Ok(Json::Object(members));
            }
            if !self.take(b',') {
                return Err(self.error("a comma or } is missing"));
            }
        }
    }

    fn word(&mut self, word: &str, value: Json<'a>) -> Result<Json<'a>, JsonError> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.error("no JSON value begins"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn number(&mut self) -> Result<Json<'a>, JsonError> {
        let rest = &self.text[self.at..];
        let length = rest.bytes().take_while(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let text = &rest[..length.count()];
        if !is_number(text) {
            return Err(self.error("no JSON number begins"));
        }
        self.at += text.len();
        Ok(Json::Number(text.into()))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        let rest = &self.text[self.at + 1..];
        let mut escaped = false;
        let mut bytes = rest.bytes().enumerate();
        while let Some((length, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    let quoted = &self.text[self.at..self.at + length + 2];
                    let text = if escaped {
                        let decoded = serde_json::from_str(quoted);
                        Cow::Owned(decoded.map_err(|_| self.error("a string has a bad escape"))?)
                    } else {
                        Cow::Borrowed(&rest[..length])
                    };
                    self.at += quoted.len();
                    return Ok(text);
                }
                b'\\' => {
                    escaped = true;
                    bytes.next();
                }
                0..=0x1f => return Err(self.error("a string has a control character")),
                _ => {}
            }
        }
        Err(self.error("a string does not end"))
    }
}

/// `-?(0|[1-9]\d*)`
pub(crate) fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    is_digits(digits) && (digits == "0" || !digits.starts_with('0'))
}

/// RFC 8259: integer, then an optional fraction, then an optional exponent.
pub(crate) fn is_number(text: &str) -> bool {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (integer, fraction) = match mantissa.split_once('.') {
        Some((integer, fraction)) => (integer, Some(fraction)),
        None => (mantissa, None),
    };
    let unsigned = |exponent: &str| is_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent));
    is_integer(integer) && fraction.is_none_or(is_digits) && exponent.is_none_or(unsigned)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests;
