//! Headers of a server's answer: the ones that callers get, and how much of them.

use std::collections::{BTreeMap, BTreeSet};

use farthing_protocol::{Outcome, limits, wire};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{Answered, Failure};

/// Headers that mean something to the caller.
const RESPONSE_HEADERS: &[HeaderName] = &[
    header::CONTENT_TYPE,
    header::CONTENT_LANGUAGE,
    header::ETAG,
    header::LAST_MODIFIED,
    header::CACHE_CONTROL,
    header::RETRY_AFTER,
];

/// Returns the headers that callers get: the known ones, and those that the owner passes on.
pub(super) fn passed_back(headers: &HeaderMap, of_owner: &BTreeSet<String>) -> BTreeMap<String, String> {
    let wanted = |name: &HeaderName| RESPONSE_HEADERS.contains(name) || of_owner.contains(name.as_str());
    let text = |value: &HeaderValue| value.to_str().ok().map(ToOwned::to_owned);
    let short = |value: &String| value.len() <= limits::PARAM_VALUE_BYTES_MAX;
    headers
        .keys()
        .filter(|name| wanted(name) && **name != header::SET_COOKIE)
        .filter_map(|name| Some((name.as_str().to_owned(), headers.get(name).and_then(text).filter(short)?)))
        .take(limits::HEADERS_MAX)
        .collect()
}

/// Rejects an answer whose headers fit no reply: it could be charged for, and never delivered.
pub(super) fn within_a_reply(answered: Answered) -> Result<Answered, Failure> {
    let (_, status, headers, _) = &answered;
    if wire::encode(headers).len() > limits::RESPONSE_HEADERS_BYTES_MAX {
        let reason = "the headers of the answer are larger than a reply to a call may have";
        return Err(Failure::new(Outcome::Oversize, *status, reason));
    }
    Ok(answered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_has_the_headers_that_a_caller_gets() {
        let document = include_str!("../../../../docs/headers.md");
        let chapter =
            document.split("\n## ").find(|chapter| chapter.starts_with("From the service")).unwrap();
        let rows = chapter.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        let names: Vec<&str> = RESPONSE_HEADERS.iter().map(HeaderName::as_str).collect();
        assert_eq!(rows.collect::<Vec<_>>(), names);
    }
}
