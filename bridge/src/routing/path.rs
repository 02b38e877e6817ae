//! A caller's path, taken apart once and refused unless it has exactly one meaning.

use std::borrow::Cow;

use crate::{
    escape::{decode, decode_leniently},
    shown,
};

/// The most times that a value may be encoded.
const DECODED_MAX: usize = 4;

/// The reason that a path is not even looked up. Each of these is read differently by different servers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    #[error("it must begin with a slash")]
    NotAbsolute,
    #[error("it has an empty segment (//)")]
    EmptySegment,
    #[error("it contains `{0}`; parameters belong in params")]
    Forbidden(char),
    #[error("it contains a control character")]
    Control,
    #[error("`{0}` is not a valid percent escape of UTF-8 text")]
    BadEscape(String),
    #[error("it has a segment of dots")]
    DotSegment,
    #[error("it contains an encoded slash, backslash or control character")]
    EncodedSeparator,
}

/// A path's segments, as written and decoded once.
#[derive(Debug)]
pub(super) struct RequestPath<'a> {
    raw: &'a str,
    segments: Vec<PathSegment<'a>>,
}

#[derive(Debug)]
pub(super) struct PathSegment<'a> {
    pub(super) raw: &'a str,
    pub(super) decoded: Cow<'a, str>,
}

impl<'a> RequestPath<'a> {
    pub(super) fn parse(raw: &'a str) -> Result<Self, BadPath> {
        let rest = raw.strip_prefix('/').ok_or(BadPath::NotAbsolute)?;
        for c in raw.chars() {
            match c {
                '\\' | '?' | '#' => return Err(BadPath::Forbidden(c)),
                _ if c.is_control() => return Err(BadPath::Control),
                _ => {}
            }
        }
        let count = rest.split('/').count();
        let segments = rest
            .split('/')
            .enumerate()
            .map(|(i, segment)| {
                // A trailing slash is a last, empty segment; elsewhere an empty one is a way around filters.
                if segment.is_empty() && i + 1 < count {
                    return Err(BadPath::EmptySegment);
                }
                PathSegment::parse(segment)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { raw, segments })
    }

    /// The segments of a request that is made, joined as `raw`: what is encoded in them is a value's. `None` for a bad
    /// escape.
    pub(super) fn of_request(raw: &'a str) -> Option<Self> {
        let segment = |raw| decode(raw).map(|decoded| PathSegment { raw, decoded });
        let segments = raw.strip_prefix('/')?.split('/').map(segment).collect::<Option<_>>()?;
        Some(Self { raw, segments })
    }

    pub(super) const fn raw(&self) -> &'a str {
        self.raw
    }

    pub(super) fn segments(&self) -> &[PathSegment<'a>] {
        &self.segments
    }
}

impl<'a> PathSegment<'a> {
    fn parse(raw: &'a str) -> Result<Self, BadPath> {
        let decoded = decode(raw).ok_or_else(|| BadPath::BadEscape(shown(raw)))?;
        if is_dot_segment(&decoded) {
            return Err(BadPath::DotSegment);
        }
        // What was not encoded was looked at in the whole path.
        let separates = |c: char| matches!(c, '/' | '\\') || c.is_control();
        if matches!(decoded, Cow::Owned(_)) && decoded.contains(separates) {
            return Err(BadPath::EncodedSeparator);
        }
        Ok(Self { raw, decoded })
    }
}

/// A request's path, and what others may read it as: decoded several times, with other slashes, without empty segments
/// and what follows a semicolon.
pub(super) fn readings(path: String) -> impl Iterator<Item = String> {
    let plain = |path: &str| {
        let segments = path.split(['/', '\\']).filter_map(|segment| segment.split([';', '?', '#']).next());
        segments
            .filter(|segment| !segment.is_empty())
            .fold(String::new(), |path, segment| path + "/" + segment)
    };
    let decode_once_more = |decoded: &String| {
        let next = decode_leniently(decoded).into_owned();
        (next != *decoded).then_some(next)
    };
    let decoded = std::iter::successors(Some(path.clone()), decode_once_more).take(DECODED_MAX + 1);
    // What looks like an escape in a reading is text. Most paths read the same in every way.
    let others = decoded.map(move |decoded| plain(&decoded).replace('%', "%25"));
    std::iter::once(path.clone()).chain(others.filter(move |other| *other != path))
}

/// `.` and `..`, also with the path parameters (`..;a=1`) that some servers cut off first.
pub(crate) fn is_dot_segment(decoded: &str) -> bool {
    let name = decoded.split(';').next().unwrap_or_default();
    matches!(name, "." | "..")
}

/// Tells whether a text holds a slash for somebody, as [`leads_elsewhere`] does for segments of dots.
pub(crate) fn has_slash(text: &str) -> bool {
    for_somebody(text, |text| text.contains(['/', '\\']))
}

/// Tells whether a text holds segments of dots for somebody: a server behind the upstream may decode what we encode,
/// and one behind that what was decoded.
pub(crate) fn leads_elsewhere(text: &str) -> bool {
    for_somebody(text, |text| text.split(['/', '\\']).any(is_dot_segment))
}

fn for_somebody(text: &str, holds: impl Fn(&str) -> bool) -> bool {
    let mut text = Cow::Borrowed(text);
    for _ in 0..DECODED_MAX {
        if holds(&text) {
            return true;
        }
        let decoded = decode_leniently(&text).into_owned();
        if decoded == *text {
            return false;
        }
        text = Cow::Owned(decoded);
    }
    // Nobody means what is encoded so often.
    true
}
