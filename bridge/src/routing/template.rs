//! Path templates: segments of literals, parameters, or both.

use super::{
    PathValues,
    path::{RequestPath, is_dot_segment, leads_elsewhere},
};
use crate::{
    escape::{decode, encode_literal},
    limits::{TEMPLATE_BYTES_MAX, TEMPLATE_SEGMENTS_MAX},
    shown,
};

/// The reason that a template cannot be routed.
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
    segments: Vec<TemplateSegment>,
}

/// One segment: the pieces of text and parameters in order. No two parameters touch.
#[derive(Debug, Clone)]
pub(super) struct TemplateSegment {
    raw: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone)]
pub(super) enum Piece {
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
        if text.len() > TEMPLATE_BYTES_MAX || count > TEMPLATE_SEGMENTS_MAX {
            return Err(malformed("it is too long"));
        }
        let mut segments = Vec::with_capacity(count);
        for (i, raw) in rest.split('/').enumerate() {
            if raw.is_empty() && i + 1 < count {
                return Err(malformed("it has an empty segment"));
            }
            if is_dot_segment(raw) {
                return Err(malformed("it has a segment of dots"));
            }
            let pieces = pieces(raw).map_err(malformed)?;
            segments.push(TemplateSegment { raw: raw.to_owned(), pieces });
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

    pub(super) fn segments(&self) -> &[TemplateSegment] {
        &self.segments
    }

    /// Names of the parameters, in order.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.segments.iter().flat_map(|segment| &segment.pieces).filter_map(|piece| match piece {
            Piece::Parameter(name) => Some(name.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Tells whether `path` has a segment of this template that stands for a value: half a template is a mistake.
    pub(super) fn is_half_of(&self, path: &RequestPath<'_>) -> bool {
        path.raw().contains('{')
            && self
                .segments
                .iter()
                .zip(path.segments())
                .any(|(segment, given)| segment.has_parameter() && given.raw == segment.raw)
    }

    /// The values that `path` has for the parameters; `None` when it does not match.
    pub(super) fn values<'a>(&'a self, path: &RequestPath<'a>) -> Option<PathValues<'a>> {
        let mut values = Vec::new();
        for (segment, given) in self.segments.iter().zip(path.segments()) {
            match (&segment.pieces[..], &given.decoded) {
                ([Piece::Parameter(name)], decoded) => values.push((name.as_str(), decoded.clone())),
                ([] | [Piece::Text(_)], _) => {}
                (_, decoded) => segment.split(decoded, |name, value| {
                    values.push((name, value.to_owned().into()));
                })?,
            }
        }
        Some(values)
    }

    /// This template with the segments of `path` in place of its parameters, for comparing the two.
    pub(super) fn like(&self, path: &str) -> String {
        let mut given = path.split('/').skip(1);
        self.segments.iter().fold(String::new(), |text, segment| {
            let given = given.next().filter(|_| matches!(segment.pieces[..], [Piece::Parameter(_)]));
            text + "/" + given.unwrap_or(&segment.raw)
        })
    }

    /// The encoded segments of a concrete path, with `value` giving each parameter's encoded text. `None` when a
    /// value is missing, or together with its surroundings is a segment of dots.
    pub(crate) fn fill<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Option<Vec<String>> {
        let fill = |segment: &TemplateSegment| {
            let mut text = String::with_capacity(segment.raw.len());
            for piece in &segment.pieces {
                match piece {
                    Piece::Text(literal) => encode_literal(&mut text, literal),
                    Piece::Parameter(name) => text.push_str(value(name)?),
                }
            }
            decode(&text).is_some_and(|decoded| !leads_elsewhere(&decoded)).then_some(text)
        };
        self.segments.iter().map(fill).collect()
    }
}

impl TemplateSegment {
    /// Pieces in order; none when the segment is empty.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn has_parameter(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Parameter(_)))
    }

    /// Counts the bytes that are text: the more, the more specific.
    pub(super) fn literal_bytes(&self) -> usize {
        self.pieces.iter().map(Piece::literal_len).sum()
    }

    /// Tells whether both match the same texts.
    pub(super) fn same_shape(&self, other: &Self) -> bool {
        self.pieces.len() == other.pieces.len()
            && self.pieces.iter().zip(&other.pieces).all(|pieces| match pieces {
                (Piece::Text(own), Piece::Text(other)) => own == other,
                (Piece::Parameter(_), Piece::Parameter(_)) => true,
                _ => false,
            })
    }

    pub(super) fn matches(&self, decoded: &str) -> bool {
        self.split(decoded, |_, _| {}).is_some()
    }

    /// Tells `take` the value of each parameter; `None` when `decoded` does not match.
    ///
    /// Each parameter takes as little as it can, at least one character; the last takes the rest. As with
    /// wildcards, taking the leftmost occurrence of each literal finds a match whenever there is one.
    fn split<'s, 'd>(&'s self, decoded: &'d str, mut take: impl FnMut(&'s str, &'d str)) -> Option<()> {
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
                    take(name, Some(value).filter(|value| !value.is_empty())?);
                }
            }
        }
        match open {
            Some(name) => take(name, Some(rest).filter(|rest| !rest.is_empty())?),
            None if !rest.is_empty() => return None,
            None => {}
        }
        Some(())
    }
}

/// Returns the text before the first `literal` that leaves at least one character.
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
