//! A checked request, and the URL it becomes.
//!
//! The URL is built from decoded segments, never by joining texts, and what came out is compared with what went
//! in. Invariant: scheme, host, port and base path are those of the upstream.

use url::Url;

/// A request that may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// Index of the operation.
    pub operation: usize,
    /// Decoded segments of the path, below the upstream's base.
    pub segments: Vec<String>,
    /// Names and values, not encoded.
    pub query: Vec<(String, String)>,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
}

/// The URL would not stay below the upstream's base; the call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the path would leave the service's address")]
pub struct EscapeError;

impl Prepared {
    /// The request's URL below `base`, whose query and fragment are empty.
    ///
    /// # Errors
    /// [`EscapeError`] when the result is not exactly base and segments; it has not been seen to happen.
    pub fn url(&self, base: &Url) -> Result<Url, EscapeError> {
        let mut url = base.clone();
        url.path_segments_mut().map_err(|()| EscapeError)?.pop_if_empty().extend(&self.segments);
        if !self.query.is_empty() {
            let pairs: Vec<_> = self
                .query
                .iter()
                .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
                .collect();
            url.set_query(Some(&pairs.join("&")));
        }
        if self.stays_below(base, &url) { Ok(url) } else { Err(EscapeError) }
    }

    fn stays_below(&self, base: &Url, url: &Url) -> bool {
        let segments = |url: &Url| -> Option<Vec<String>> {
            Some(url.path_segments()?.map(ToOwned::to_owned).collect())
        };
        let (Some(mut expected), Some(found)) = (segments(base), segments(url)) else { return false };
        if expected.last().is_some_and(String::is_empty) {
            expected.pop();
        }
        let own = found.strip_prefix(&expected[..]);
        url.scheme() == base.scheme()
            && url.host() == base.host()
            && url.port() == base.port()
            && url.username() == base.username()
            && url.password() == base.password()
            && url.fragment().is_none()
            && own.is_some_and(|own| own.len() == self.segments.len())
    }
}

/// Percent encoding of everything but RFC 3986's unreserved characters.
fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
