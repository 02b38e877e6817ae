//! A planned request as it goes out: URL, headers, body, and the owner's secrets last.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use farthing_bridge::{
    Request, base_name,
    description::Method,
    headers::{codings, header_is_forbidden},
    multipart,
};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use url::form_urlencoded;

use super::{CallName, Failure, Fault, Upstream};
use crate::new_service::UpstreamSecrets;

/// Request headers that say what the caller sends and can read; others must be declared by the operation.
const REQUEST_HEADERS: &[HeaderName] = &[
    header::ACCEPT,
    header::ACCEPT_LANGUAGE,
    header::CONTENT_TYPE,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
];
const FORM: &str = "application/x-www-form-urlencoded";
/// GraphQL over HTTP, and what older servers understand.
const ACCEPT_GRAPHQL: HeaderValue =
    HeaderValue::from_static("application/graphql-response+json, application/json;q=0.9");

/// One request below the base.
#[derive(Debug, Clone)]
pub struct UpstreamRequest {
    pub request: Request,
    /// The caller's; only those that say what it sends and can read are passed on. Names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The caller's.
    pub body: Bytes,
    /// The time that is left of the call.
    pub deadline: Duration,
    /// The time that its owner allows its operation, instead of what is usual.
    pub time: Option<Duration>,
    /// The call that it is for; a question of the owner's own has none.
    pub call: Option<CallName>,
    /// True if a web page is an answer to it.
    pub html: bool,
}

impl UpstreamRequest {
    /// The ways to pack the answer that its caller unfolds; `None` where the answer is read here.
    pub(super) fn codings(&self) -> Option<String> {
        match &self.request {
            Request::Http(_) => self.headers.get("accept-encoding").and_then(|said| codings(said)),
            Request::Graphql(_) => None,
        }
    }

    /// Tells whether the answer has no body, whatever its head says.
    pub(super) fn is_for_a_head(&self) -> bool {
        matches!(&self.request, Request::Http(request) if request.method == Method::Head)
    }

    /// Tells whether its caller names something that it has: nobody else can make use of the word that nothing has changed.
    pub(super) fn names_a_condition(&self) -> bool {
        let Request::Http(request) = &self.request else { return false };
        let declared = request.headers.iter().map(|(name, _)| name);
        let conditions = [header::IF_NONE_MATCH, header::IF_MODIFIED_SINCE];
        self.headers.keys().chain(declared).any(|name| conditions.iter().any(|one| one.as_str() == name))
    }

    /// Tells whether the upstream may be asked a second time.
    pub(super) fn is_safe(&self) -> bool {
        match &self.request {
            Request::Http(request) => matches!(request.method, Method::Get | Method::Head),
            Request::Graphql(request) => request.query.starts_with("query"),
        }
    }
}

impl Upstream {
    /// The name of a parameter that the owner's own one would meet; the call is refused, because what a server
    /// does with two of a name is its own affair.
    #[must_use]
    pub fn secret_in(&self, request: &Request, body: &[u8]) -> Option<String> {
        let Request::Http(request) = request else { return None };
        if self.secret_query.is_empty() {
            return None;
        }
        // Some servers read a form and the query as one.
        let body = request.body.bytes(body);
        let kind = request.headers.iter().find(|(name, _)| name == "content-type");
        let kind = kind.map_or("", |(_, value)| value.as_str());
        let form = if kind.starts_with(FORM) { body } else { &[] };
        let parts = multipart::parts(kind, body).unwrap_or_default();
        let names = form_urlencoded::parse(request.query.as_bytes()).chain(form_urlencoded::parse(form));
        let names = names.map(|(name, _)| name.into_owned());
        names.chain(parts.iter().map(|part| part.name.to_owned())).find(|name| {
            let before_a_dot = name.split('.').next().unwrap_or(name);
            let bases = [base_name(name), base_name(before_a_dot)];
            self.secret_query.iter().any(|(own, _)| bases.contains(&base_name(own)))
        })
    }

    pub(super) fn http_request(&self, request: &UpstreamRequest) -> Result<reqwest::Request, Failure> {
        let outside = |_| Failure::new(Fault::OutsideAddress, 0);
        let (method, mut url, body) = match &request.request {
            Request::Http(http) => {
                let body = match &http.body {
                    farthing_bridge::Payload::AsGiven => request.body.clone(),
                    written => Bytes::copy_from_slice(written.bytes(&request.body)),
                };
                (method_of(http.method), http.url(&self.base).map_err(outside)?, body)
            }
            Request::Graphql(graphql) => (http::Method::POST, self.base.clone(), graphql.body().into()),
        };
        if !self.secret_query.is_empty() {
            url.query_pairs_mut().extend_pairs(&self.secret_query);
        }
        let mut sent = reqwest::Request::new(method, url);
        *sent.headers_mut() = self.headers(request);
        if !body.is_empty() {
            *sent.body_mut() = Some(body.into());
        }
        Ok(sent)
    }

    fn headers(&self, request: &UpstreamRequest) -> HeaderMap {
        let mut headers = HeaderMap::new();
        match &request.request {
            Request::Http(http) => {
                let usual = request.headers.iter().filter(|(name, _)| is_usual(name));
                // The content type is the bridge's word on the body that it wrote.
                let is_declared = |name: &str| !header_is_forbidden(name) || name == "content-type";
                let declared = http.headers.iter().filter(|(name, _)| is_declared(name));
                for (name, value) in usual.chain(declared.map(|(name, value)| (name, value))) {
                    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value))
                    {
                        headers.insert(name, value);
                    }
                }
                headers.entry(header::ACCEPT).or_insert(HeaderValue::from_static("*/*"));
            }
            Request::Graphql(_) => {
                headers.insert(header::ACCEPT, ACCEPT_GRAPHQL);
                headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
        }
        // An answer that is packed could unfold to any size: only a caller that asks for one gets it, as it is.
        let packed = request.codings().and_then(|codings| HeaderValue::try_from(codings).ok());
        headers.insert(header::ACCEPT_ENCODING, packed.unwrap_or(HeaderValue::from_static("identity")));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("farthing/", env!("CARGO_PKG_VERSION"))),
        );
        headers.extend(self.secret_headers.clone());
        headers
    }
}

fn is_usual(name: &str) -> bool {
    REQUEST_HEADERS.iter().any(|usual| usual.as_str() == name)
}

const fn method_of(method: Method) -> http::Method {
    match method {
        Method::Get => http::Method::GET,
        Method::Head => http::Method::HEAD,
        Method::Post => http::Method::POST,
        Method::Put => http::Method::PUT,
        Method::Patch => http::Method::PATCH,
        Method::Delete => http::Method::DELETE,
    }
}

/// The owner's headers, marked sensitive.
///
/// # Errors
/// The name of one that cannot be sent.
pub(super) fn secret_headers(secrets: &UpstreamSecrets) -> Result<HeaderMap, String> {
    let header = |(name, value): (&String, &String)| secret_header(name, value).ok_or_else(|| name.clone());
    secrets.headers.iter().map(header).collect()
}

/// A header that the owner adds, marked sensitive; `None` for one that belongs to the connection.
pub(crate) fn secret_header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    const CONNECTION: &[HeaderName] = &[
        header::HOST,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::TE,
        header::TRAILER,
        header::ACCEPT_ENCODING,
    ];
    let name = HeaderName::try_from(name).ok().filter(|name| !CONNECTION.contains(name))?;
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}
