//! Headers of a server's answer: the ones that callers get, and how much of them.
//!
//! What is on the list here passes for every service, and what its owner names for that service. What speaks for a
//! connection, sets a cookie or has one of the owner's keys in it passes for none. docs/headers.md lists them for people.

use std::collections::BTreeMap;

use farthing_bridge::headers::answer_header_is_forbidden;
use farthing_protocol::{limits, wire};
use http::{HeaderMap, HeaderName};
use url::form_urlencoded;

use super::{Answered, Failure, Fault, Upstream, UpstreamRequest};

/// Headers that mean something to the caller.
const PASSED_BACK: &[&str] = &[
    "accept-patch",
    "accept-post",
    "allow",
    "cache-control",
    "content-digest",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-type",
    "deprecation",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "preference-applied",
    "ratelimit",
    "repr-digest",
    "retry-after",
    "sunset",
    "vary",
    "x-total-count",
];
const PASSED_BACK_PREFIXES: &[&str] = &["ratelimit-", "x-rate-limit-", "x-ratelimit-"];
/// Lists, of which several lines are one (RFC 9110, 5.3). Of other headers the first line counts.
const LISTS: &[&str] =
    &["allow", "cache-control", "content-language", "link", "ratelimit", "ratelimit-policy", "vary"];
/// Shorter keys are part of too much to be looked for.
const SECRET_BYTES_MIN: usize = 8;

impl Upstream {
    /// Returns the headers that callers get.
    pub(super) fn passed_back(
        &self,
        request: &UpstreamRequest,
        response: &reqwest::Response,
    ) -> BTreeMap<String, String> {
        let headers = response.headers();
        let told = |name: &HeaderName| {
            let is_told =
                is_passed_back(name.as_str()) || self.options.response_headers.contains(name.as_str());
            if !is_told || answer_header_is_forbidden(name.as_str()) {
                return None;
            }
            let value = text_of(headers, name)?;
            let value = match name.as_str() {
                // The body says its own length, unless it stays away.
                "content-length" if !request.is_for_a_head() => return None,
                "content-encoding" if value.eq_ignore_ascii_case("identity") => return None,
                // Elsewhere clients would follow it, or make nothing of it (RFC 9110, 10.2.2).
                "location" if !matches!(response.status().as_u16(), 201 | 202) => return None,
                "location" | "content-location" => self.address_told(response.url(), &value)?,
                "link" => self.links_told(response.url(), &value)?,
                _ => value,
            };
            let is_short = value.len() <= limits::PARAM_VALUE_BYTES_MAX;
            (is_short && !self.gives_away(&value)).then(|| (name.as_str().to_owned(), value))
        };
        headers.keys().filter_map(told).take(limits::HEADERS_MAX).collect()
    }

    /// Tells whether a header repeats one of the owner's keys, as a server does that writes down what it was asked.
    fn gives_away(&self, value: &str) -> bool {
        let headers = self.secret_headers.values().filter_map(|secret| secret.to_str().ok());
        let query = self.secret_query.iter().map(|(_, secret)| secret.as_str());
        let mut secrets = headers.flat_map(str::split_whitespace).chain(query);
        secrets.any(|secret| {
            let encoded: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
            let other = encoded.replace('+', "%20");
            let forms = [secret, encoded.as_str(), other.as_str()];
            secret.len() >= SECRET_BYTES_MIN && forms.iter().any(|form| value.contains(*form))
        })
    }
}

fn is_passed_back(name: &str) -> bool {
    PASSED_BACK.contains(&name) || PASSED_BACK_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let mut lines = headers.get_all(name).iter().map(|line| line.to_str().ok());
    if !LISTS.contains(&name.as_str()) {
        return lines.next()?.map(ToOwned::to_owned);
    }
    Some(lines.collect::<Option<Vec<_>>>()?.join(", "))
}

/// Rejects an answer whose headers fit no reply: it could be charged for, and never delivered.
pub(super) fn within_a_reply(answered: Answered) -> Result<Answered, Failure> {
    let (_, status, headers, _) = &answered;
    if wire::encode(headers).len() > limits::RESPONSE_HEADERS_BYTES_MAX {
        return Err(Failure::new(Fault::LongHeaders, *status));
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
        let names = PASSED_BACK.iter().map(|name| (*name).to_owned());
        let prefixes = PASSED_BACK_PREFIXES.iter().map(|prefix| format!("{prefix}…"));
        assert_eq!(rows.collect::<Vec<_>>(), names.chain(prefixes).collect::<Vec<_>>());
    }
}
