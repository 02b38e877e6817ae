//! A checked request, and the URL it becomes.
//!
//! The URL is built from encoded segments, and what came out is compared with what went in. Invariant: scheme,
//! host, port and base path are those of the upstream.

use url::Url;

use crate::description::Method;

/// An HTTP request that may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: Method,
    /// Segments of the path below the upstream's base, percent-encoded; none is empty but the last.
    pub segments: Vec<String>,
    /// Percent-encoded, without the question mark; empty when there is none.
    pub query: String,
    /// Names in lower case. `content-type` is among them when there is a body.
    pub headers: Vec<(String, String)>,
    pub body: Payload,
}

/// The body that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Payload {
    Nothing,
    /// The caller's body, byte by byte.
    AsGiven,
    /// Written anew.
    Bytes(Vec<u8>),
}

impl Payload {
    /// The bytes to send, `given` being the caller's body.
    pub fn bytes<'a>(&'a self, given: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Nothing => &[],
            Self::AsGiven => given,
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The URL would not stay below the upstream's base; the call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the path would leave the service's address")]
pub struct EscapeError;

impl HttpRequest {
    /// The request's URL below `base`, whose query and fragment are empty.
    ///
    /// # Errors
    /// [`EscapeError`] when the result is not exactly base, segments and query; it has not been seen to happen.
    pub fn url(&self, base: &Url) -> Result<Url, EscapeError> {
        let mut expected = base.path().trim_end_matches('/').to_owned();
        for segment in &self.segments {
            expected.push('/');
            expected.push_str(segment);
        }
        let mut url = base.clone();
        url.set_path(&expected);
        url.set_query(Some(self.query.as_str()).filter(|query| !query.is_empty()));
        let is_below = url.path() == expected
            && url.scheme() == base.scheme()
            && url.host() == base.host()
            && url.port() == base.port()
            && url.username() == base.username()
            && url.password() == base.password()
            && url.query().unwrap_or_default() == self.query
            && url.fragment().is_none();
        if is_below { Ok(url) } else { Err(EscapeError) }
    }
}
