//! The one thing that a reader says it has (RFC 9110, 13.1), and that it hears for nothing has not changed.
//!
//! Invariant: it names one thing, and hears of no other. Whoever named all that an answer may be would have it for
//! nothing: the tag that comes back tells which.

use std::collections::BTreeMap;

use farthing_protocol::call::Method;

/// The status of an answer that nothing has changed (RFC 9110, 15.4.5).
pub const NOT_MODIFIED: u16 = 304;

/// Headers of such an answer, beside its tag. Others, such as a digest, a count or the link to what follows, may tell what
/// the answer is.
const TOLD: [&str; 7] =
    ["cache-control", "content-language", "content-type", "expires", "last-modified", "retry-after", "vary"];

/// The thing that a reader has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// An answer with this tag.
    Tag(String),
    /// An answer of a date.
    Date,
}

impl Condition {
    /// Reads it in a request's headers; `None` when they name nothing or several tags, and when the call is no read.
    pub fn of(method: Method, headers: &[(&str, &str)]) -> Option<Self> {
        let values = |wanted: &'static str| {
            headers.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| *value)
        };
        let mut tags = values("if-none-match");
        match (tags.next(), tags.next()) {
            _ if !method.is_safe() => None,
            (None, _) => values("if-modified-since").next().map(|_| Self::Date),
            (Some(tag), None) => one_tag(tag).map(|tag| Self::Tag(tag.to_owned())),
            (Some(_), Some(_)) => None,
        }
    }

    /// Leaves in the headers of an answer those that tell nothing of it, and no tag but the one that was named: another one
    /// may tell the answer.
    pub fn keep_named(&self, headers: &mut BTreeMap<String, String>) {
        let is_named = |tag: &str| matches!(self, Self::Tag(named) if one_tag(tag) == Some(named.as_str()));
        headers.retain(|name, value| TOLD.contains(&name.as_str()) || (name == "etag" && is_named(value)));
    }
}

/// Reads what is between the quotes of one tag, weak or not. Servers differ in what ends a tag, so one is what has nothing
/// in it that ends one anywhere.
fn one_tag(value: &str) -> Option<&str> {
    let tag = value.trim();
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag);
    let is_one = !tag.is_empty() && !tag.contains(['"', ',']) && !tag.contains(char::is_whitespace);
    is_one.then_some(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(tag: &str) -> Option<Condition> {
        Some(Condition::Tag(tag.to_owned()))
    }

    #[test]
    fn a_read_that_names_one_thing_has_a_condition() {
        for value in ["\"7\"", " W/\"7\" ", "7"] {
            assert_eq!(Condition::of(Method::Get, &[("if-none-match", value)]), tag("7"), "{value}");
        }
        for value in
            ["\"7\", \"8\"", "\"7\",\"8\"", "\"7\"\"8\"", "7 8", "\"7\"\t\"8\"", "W/\"7\"W/\"8\"", "\"", ""]
        {
            assert_eq!(Condition::of(Method::Get, &[("if-none-match", value)]), None, "{value}");
        }
        let date = ("If-Modified-Since", "Sat, 29 Oct 1994 19:43:31 GMT");
        let named = ("If-None-Match", "\"7\"");
        assert_eq!(Condition::of(Method::Head, &[date]), Some(Condition::Date));
        assert_eq!(
            Condition::of(Method::Get, &[date, named]),
            tag("7"),
            "a date beside a tag is not looked at"
        );
        assert_eq!(Condition::of(Method::Get, &[date, ("if-none-match", "\"7\", \"8\"")]), None);
        assert_eq!(Condition::of(Method::Get, &[named, ("if-none-match", "\"8\"")]), None, "in two headers");
        assert_eq!(Condition::of(Method::Get, &[("accept", "*/*")]), None);
        for method in [Method::Post, Method::Put, Method::Patch, Method::Delete] {
            assert_eq!(Condition::of(method, &[date, named]), None, "{method} has an effect");
        }
    }

    #[test]
    fn an_answer_that_nothing_has_changed_bears_no_tag_that_its_caller_did_not_name() {
        let seen = |condition: &Condition, tag: &str| {
            let headers = [
                ("etag", tag),
                ("content-type", "text/plain"),
                ("repr-digest", "sha-256=:AA==:"),
                ("x-total-count", "17"),
                ("x-cost", "3"),
            ];
            let mut headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            condition.keep_named(&mut headers);
            assert_eq!(headers["content-type"], "text/plain");
            let told = ["repr-digest", "x-total-count", "x-cost"];
            assert!(!told.iter().any(|name| headers.contains_key(*name)), "{headers:?}");
            headers.contains_key("etag")
        };
        let seven = Condition::Tag("7".to_owned());
        assert!(seen(&seven, "\"7\"") && seen(&seven, "W/\"7\""));
        assert!(!seen(&seven, "\"8\"") && !seen(&Condition::Date, "\"7\""));
    }
}
