//! Path templates: segments of literals, parameters, or both.

use std::{cmp::Reverse, collections::BTreeMap};

use super::path::{Path, is_dot_segment};
use crate::shown;

/// Why a template cannot be routed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("the path template `{template}` is refused: {reason}")]
    Malformed { template: String, reason: &'static str },
    #[error("two operations answer {method} {template}")]
    Duplicate { method: String, template: String },
}

/// A parsed template.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    text: String,
    segments: Vec<Segment>,
}

/// One segment: the pieces of text and parameters in order. No two parameters touch.
#[derive(Debug, Clone)]
struct Segment {
    raw: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
enum Piece {
    Text(String),
    Parameter(String),
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, TemplateError> {
        let malformed = |reason| TemplateError::Malformed { template: shown(text), reason };
        let rest = text.strip_prefix('/').ok_or_else(|| malformed("it must begin with a slash"))?;
        if text.contains(|c: char| matches!(c, '\\' | '?' | '#' | '%') || c.is_control()) {
            return Err(malformed("it may not contain \\, ?, #, % or control characters"));
        }
        let count = rest.split('/').count();
        let mut segments = Vec::with_capacity(count);
        for (i, raw) in rest.split('/').enumerate() {
            if raw.is_empty() && i + 1 < count {
                return Err(malformed("it has an empty segment"));
            }
            if is_dot_segment(raw) {
                return Err(malformed("it has a segment of dots"));
            }
            let pieces = pieces(raw).map_err(malformed)?;
            segments.push(Segment { raw: raw.to_owned(), pieces });
        }
        let template = Self { text: text.to_owned(), segments };
        let mut names: Vec<_> = template.parameters().collect();
        names.sort_unstable();
        if names.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(malformed("it names a parameter twice"));
        }
        Ok(template)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Names of the parameters, in order.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(|segment| &segment.pieces).filter_map(|piece| match piece {
            Piece::Parameter(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Sorts the more specific template first, segment by segment.
    pub(super) fn rank(&self) -> Vec<(u8, Reverse<usize>)> {
        self.segments.iter().map(Segment::rank).collect()
    }

    /// Whether both match the same paths.
    pub(super) fn same_shape(&self, other: &Self) -> bool {
        let same = |(a, b): (&Segment, &Segment)| {
            a.pieces.len() == b.pieces.len()
                && a.pieces.iter().zip(&b.pieces).all(|pieces| match pieces {
                    (Piece::Text(a), Piece::Text(b)) => a == b,
                    (Piece::Parameter(_), Piece::Parameter(_)) => true,
                    _ => false,
                })
        };
        self.len() == other.len() && self.segments.iter().zip(&other.segments).all(same)
    }

    /// `None`: no match. `Some(None)`: the path is this template itself. Otherwise the values in the path.
    #[allow(clippy::option_option, reason = "three outcomes, named in the line above")]
    pub(super) fn matches(&self, path: &Path<'_>) -> Option<Option<BTreeMap<String, String>>> {
        debug_assert_eq!(self.len(), path.segments().len(), "routes are indexed by length");
        let has_parameters = self.parameters().next().is_some();
        if has_parameters && path.raw() == self.text {
            return Some(None);
        }
        let mut values = BTreeMap::new();
        for (segment, given) in self.segments.iter().zip(path.segments()) {
            // Half a template is a mistake, not a value.
            if segment.has_parameter() && given.raw == segment.raw {
                return None;
            }
            segment.matches(&given.decoded, &mut values)?;
        }
        Some(Some(values))
    }

    /// This template with the segments of `path` in place of its parameters, for comparing the two.
    pub(super) fn like(&self, path: &str) -> String {
        let mut given = path.split('/').skip(1);
        self.segments.iter().fold(String::new(), |text, segment| {
            let given = given.next().filter(|_| matches!(segment.pieces[..], [Piece::Parameter(_)]));
            text + "/" + given.unwrap_or(&segment.raw)
        })
    }

    /// The decoded segments of a concrete path, with `value` giving each parameter's text.
    pub(crate) fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Option<Vec<String>> {
        let fill_piece = |text: String, piece: &Piece| match piece {
            Piece::Text(literal) => Some(text + literal),
            Piece::Parameter(name) => Some(text + value(name)?),
        };
        let fill = |segment: &Segment| segment.pieces.iter().try_fold(String::new(), fill_piece);
        self.segments.iter().map(fill).collect()
    }
}

impl Segment {
    fn has_parameter(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Parameter(_)))
    }

    fn rank(&self) -> (u8, Reverse<usize>) {
        let literal: usize = self.pieces.iter().map(Piece::literal_len).sum();
        match (self.has_parameter(), literal) {
            (false, _) => (0, Reverse(0)),
            (true, 0) => (2, Reverse(0)),
            (true, literal) => (1, Reverse(literal)),
        }
    }

    /// Each parameter takes as little as it can, at least one character; the last takes the rest. As with
    /// wildcards, taking the leftmost occurrence of each literal finds a match whenever there is one.
    fn matches(&self, decoded: &str, values: &mut BTreeMap<String, String>) -> Option<()> {
        let mut rest = decoded;
        let mut open: Option<&str> = None;
        for (i, piece) in self.pieces.iter().enumerate() {
            match piece {
                Piece::Parameter(name) => open = Some(name),
                Piece::Text(literal) => {
                    let Some(name) = open.take() else {
                        rest = rest.strip_prefix(literal.as_str())?;
                        continue;
                    };
                    let last = i + 1 == self.pieces.len();
                    let value =
                        if last { rest.strip_suffix(literal.as_str())? } else { shortest(rest, literal)? };
                    rest = if last { "" } else { &rest[value.len() + literal.len()..] };
                    take(name, value, values)?;
                }
            }
        }
        match open {
            Some(name) => take(name, rest, values),
            None => rest.is_empty().then_some(()),
        }
    }
}

fn take(name: &str, value: &str, values: &mut BTreeMap<String, String>) -> Option<()> {
    if value.is_empty() {
        return None;
    }
    values.insert(name.to_owned(), value.to_owned());
    Some(())
}

/// What stands before the first `literal` that leaves at least one character.
fn shortest<'a>(text: &'a str, literal: &str) -> Option<&'a str> {
    let first = text.chars().next()?.len_utf8();
    let at = text[first..].find(literal)? + first;
    Some(&text[..at])
}

impl Piece {
    fn literal_len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Parameter(_) => 0,
        }
    }
}

fn pieces(raw: &str) -> Result<Vec<Piece>, &'static str> {
    let mut pieces = Vec::new();
    let mut rest = raw;
    while !rest.is_empty() {
        let (text, tail) = rest.split_once('{').unwrap_or((rest, ""));
        if text.contains('}') || (tail.is_empty() && rest.len() > text.len()) {
            return Err("its braces do not match");
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text.to_owned()));
        }
        if tail.is_empty() {
            break;
        }
        let (name, after) = tail.split_once('}').ok_or("its braces do not match")?;
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
        if name.is_empty() || !name.chars().all(plain) {
            return Err("a parameter's name consists of letters, digits, _, -, . and $");
        }
        if matches!(pieces.last(), Some(Piece::Parameter(_))) {
            return Err("two parameters touch");
        }
        pieces.push(Piece::Parameter(name.to_owned()));
        rest = after;
    }
    Ok(pieces)
}
