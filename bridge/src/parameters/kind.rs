//! The text forms of values: one spelling per value, nothing coerced.

use std::fmt;

/// The text form of a parameter's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Verbatim, also empty.
    Text,
    /// `-?(0|[1-9]\d*)` within 64 bits.
    Integer,
    /// A JSON number.
    Number,
    /// `true` or `false`.
    Boolean,
}

impl Kind {
    /// Whether `text` has this form exactly.
    #[must_use]
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::Text => true,
            Self::Integer => is_integer(text) && (text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok()),
            Self::Number => is_json_number(text) && text.parse::<f64>().is_ok_and(f64::is_finite),
            Self::Boolean => matches!(text, "true" | "false"),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Integer => "a whole number such as 7",
            Self::Number => "a number such as 4.5",
            Self::Boolean => "true or false",
        })
    }
}

/// `-?(0|[1-9]\d*)`
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    is_digits(digits) && (digits == "0" || !digits.starts_with('0'))
}

/// RFC 8259: integer, then an optional fraction, then an optional exponent.
fn is_json_number(text: &str) -> bool {
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
