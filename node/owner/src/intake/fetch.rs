//! Asking an owner's server for a document: bounded in time and bytes, and never led elsewhere.
//!
//! Every request goes to the host that was named. The same addresses are refused as for an upstream
//! ([`upstream`]), a name keeps its address class over all requests, and a redirect is followed to the same
//! host only, because the owner's headers travel along.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use farthing_bridge::media::without_parameters;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::time::{Instant, timeout};
use url::Url;

use super::IntakeOptions;
use crate::upstream::{self, AddressClass, UpstreamError, UpstreamOptions};

/// The largest size of a description; the bridge reads no more.
const DOCUMENT_BYTES_MAX: usize = farthing_bridge::limits::DOCUMENT_BYTES_MAX;
/// Documentation pages and their scripts have some kilobytes, unless they are the tool itself.
const PAGE_BYTES_MAX: usize = 1024 * 1024;
/// All answers of one intake: four of the largest documents.
const TOTAL_BYTES_MAX: usize = 4 * DOCUMENT_BYTES_MAX;
/// `/docs` → `/docs/` → `/docs/index.html`, and from http to https.
const REDIRECTS_MAX: usize = 3;
/// JSON first, for servers that choose between a document and the page that shows it.
const ACCEPT: &str = "application/vnd.oai.openapi+json, application/json, application/yaml;q=0.9, */*;q=0.8";
const ACCEPT_GRAPHQL: &str = "application/graphql-response+json, application/json;q=0.9";

/// An answer.
#[derive(Debug)]
pub(super) struct Page {
    /// The address that it came from in the end.
    pub(super) url: Url,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// The reason that there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Miss {
    /// No connection, and why.
    Unreachable(String),
    TimedOut,
    /// The time of the whole intake was over before.
    NoTime,
    /// To where; not followed.
    Elsewhere(String),
    Redirects,
    TooLarge(usize),
    /// The bodies of this node's calls hold what there is.
    NoRoom,
    Compressed,
    /// Not HTTP, or broken off.
    Broken,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "no connection: {why}"),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::NoTime => f.write_str("not asked, because the time was over"),
            Self::Elsewhere(to) => write!(f, "leads to {to}, another server, and was not followed"),
            Self::Redirects => write!(f, "redirects more than {REDIRECTS_MAX} times"),
            Self::TooLarge(bytes) => write!(f, "larger than {} KiB", bytes / 1024),
            Self::NoRoom => f.write_str(
                "not read, because this node already holds as many bytes as limits.bodies_bytes_max allows; try again \
                 soon",
            ),
            Self::Compressed => f.write_str("compressed, although the request did not allow it"),
            Self::Broken => f.write_str("incomplete, or not HTTP"),
        }
    }
}

impl Page {
    fn kind(&self) -> &str {
        let kind = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        kind.map(without_parameters).unwrap_or_default()
    }

    /// HTML, by its type or its first character.
    pub(super) fn is_html(&self) -> bool {
        let kind = self.kind();
        kind.eq_ignore_ascii_case("text/html")
            || kind.eq_ignore_ascii_case("application/xhtml+xml")
            || self.body.trim_ascii_start().starts_with(b"<")
    }

    pub(super) fn is_script(&self) -> bool {
        self.kind().to_ascii_lowercase().ends_with("javascript")
    }

    pub(super) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }

    pub(super) fn links(&self) -> impl Iterator<Item = &str> {
        self.headers.get_all(header::LINK).iter().filter_map(|value| value.to_str().ok())
    }
}

/// Asks one host.
pub(super) struct Fetcher {
    origin: Url,
    client: reqwest::Client,
    class: Arc<OnceLock<AddressClass>>,
    options: UpstreamOptions,
    /// The owner's, marked sensitive; never shown.
    headers: HeaderMap,
    each: Duration,
    end: Instant,
    bytes_left: AtomicUsize,
}

impl Fetcher {
    /// A fetcher for the host of `origin`; its time runs from now. `each` bounds one request.
    pub(super) fn new(origin: &Url, each: Duration, options: &IntakeOptions) -> Result<Self, UpstreamError> {
        let (own_ports, budget) = (options.own_ports.clone(), options.budget.clone());
        let upstream_options = UpstreamOptions { own_ports, budget, ..UpstreamOptions::default() };
        check(origin, &upstream_options)?;
        let class = Arc::new(upstream::literal_class(origin).map_or_else(OnceLock::new, OnceLock::from));
        let headers = options
            .headers
            .iter()
            .map(|(name, value)| {
                upstream::secret_header(name, value.expose())
                    .ok_or_else(|| UpstreamError::Header(name.clone()))
            })
            .collect::<Result<_, UpstreamError>>()?;
        let client = upstream::client(origin, &class, &upstream_options).ok_or(UpstreamError::Client)?;
        Ok(Self {
            origin: origin.clone(),
            client,
            class,
            options: upstream_options,
            headers,
            each,
            end: Instant::now() + options.total,
            bytes_left: AtomicUsize::new(TOTAL_BYTES_MAX),
        })
    }

    /// Tells whether requests may go there: the host is the one that was named, on its port, or on any with TLS where
    /// it was named without.
    pub(super) fn may_ask(&self, url: &Url) -> bool {
        let same_server = url.scheme() == self.origin.scheme()
            && url.port_or_known_default() == self.origin.port_or_known_default();
        let with_tls = self.origin.scheme() == "http" && url.scheme() == "https";
        url.host().is_some()
            && url.host() == self.origin.host()
            && (same_server || with_tls)
            && check(url, &self.options).is_ok()
    }

    pub(super) async fn get(&self, url: &Url) -> Result<Page, Miss> {
        self.within_time(self.follow(Method::GET, url, Bytes::new())).await
    }

    /// Posts a JSON body as GraphQL clients do.
    pub(super) async fn post(&self, url: &Url, body: Bytes) -> Result<Page, Miss> {
        self.within_time(self.follow(Method::POST, url, body)).await
    }

    async fn within_time(&self, asking: impl Future<Output = Result<Page, Miss>>) -> Result<Page, Miss> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Miss::NoTime);
        }
        timeout(left.min(self.each), asking).await.unwrap_or(Err(Miss::TimedOut))
    }

    async fn follow(&self, method: Method, url: &Url, body: Bytes) -> Result<Page, Miss> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            if !self.may_ask(&url) {
                return Err(Miss::Elsewhere(host_of(&url)));
            }
            let response = self.send(method.clone(), &url, body.clone()).await?;
            let repeats = method == Method::GET || matches!(response.status().as_u16(), 307 | 308);
            match location(&response).filter(|_| repeats) {
                Some(location) => url = url.join(&location).map_err(|_| Miss::Broken)?,
                None => return self.page(url, response).await,
            }
        }
        Err(Miss::Redirects)
    }

    async fn send(&self, method: Method, url: &Url, body: Bytes) -> Result<reqwest::Response, Miss> {
        let accept = if method == Method::POST { ACCEPT_GRAPHQL } else { ACCEPT };
        let mut request = reqwest::Request::new(method, url.clone());
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(
            header::USER_AGENT,
            HeaderValue::from_static(concat!("farthing/", env!("CARGO_PKG_VERSION"))),
        );
        if !body.is_empty() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.extend(self.headers.clone());
        if !body.is_empty() {
            *request.body_mut() = Some(body.into());
        }
        // A client for http knows no authority; one for https is made when a redirect asks for it.
        let client = if url.scheme() == self.origin.scheme() {
            self.client.clone()
        } else {
            upstream::client(url, &self.class, &self.options).ok_or(Miss::Broken)?
        };
        client
            .execute(request)
            .await
            .map_err(|error| if error.is_connect() { Miss::Unreachable(cause(&error)) } else { Miss::Broken })
    }

    async fn page(&self, url: Url, mut response: reqwest::Response) -> Result<Page, Miss> {
        let (status, headers) = (response.status(), std::mem::take(response.headers_mut()));
        let identity = |encoding: &HeaderValue| encoding.as_bytes().eq_ignore_ascii_case(b"identity");
        if headers.get(header::CONTENT_ENCODING).is_some_and(|encoding| !identity(encoding)) {
            return Err(Miss::Compressed);
        }
        let mut page = Page { url, status, headers, body: Bytes::new() };
        let bytes_max = if page.is_html() || page.is_script() { PAGE_BYTES_MAX } else { DOCUMENT_BYTES_MAX };
        let (mut body, mut room) = (BytesMut::new(), self.options.budget.nothing());
        while let Some(part) = response.chunk().await.map_err(|_| Miss::Broken)? {
            if body.len() + part.len() > bytes_max {
                return Err(Miss::TooLarge(bytes_max));
            }
            self.take(part.len())?;
            if !room.grow(part.len()) {
                return Err(Miss::NoRoom);
            }
            body.extend_from_slice(&part);
        }
        page.body = room.attach(body.freeze());
        Ok(page)
    }

    /// Takes `bytes` from what all answers together may have.
    fn take(&self, bytes: usize) -> Result<(), Miss> {
        let less = |left: usize| left.checked_sub(bytes);
        let taken = self.bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.map(drop).map_err(|_| Miss::TooLarge(TOTAL_BYTES_MAX))
    }
}

/// Scheme, address and port as for an upstream, where a query is no obstacle.
fn check(url: &Url, options: &UpstreamOptions) -> Result<(), UpstreamError> {
    let mut plain = url.clone();
    plain.set_query(None);
    plain.set_fragment(None);
    upstream::check_base(plain.as_str(), options).map(drop)
}

fn location(response: &reqwest::Response) -> Option<String> {
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers().get(header::LOCATION).filter(|_| redirects)?;
    Some(location.to_str().ok()?.to_owned())
}

fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The innermost reason, which names what the system said.
fn cause(error: &(dyn std::error::Error + 'static)) -> String {
    anyhow::Chain::new(error).last().map_or_else(String::new, ToString::to_string)
}
