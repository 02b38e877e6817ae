//! The owner's own server: one bounded request, and what came of it.
//!
//! 1. Scheme, host, port and address class are fixed when a service is registered; a URL outside of them is
//!    not requested, a name that moved is not followed ([`address`]), and a port that has become this node's own is
//!    not connected to.
//! 2. Headers pass an allow-list in both directions; the owner's secret headers are added last.
//! 3. Every wait is bounded: connecting, the head, each part of the body, the whole. So is the body.
//! 4. What happened becomes an [`Outcome`], which decides whether the call is charged.
//!
//! No redirect is followed, no proxy asked, no cookie kept, nothing decompressed: an answer is packed only as its caller asked.

mod address;
mod base;
mod failures;
mod fault;
mod graphql;
mod head;
mod headers;
mod links;
mod options;
mod own_ports;
mod permit;
#[cfg(feature = "played")]
mod played;
mod request;
mod times;

use std::{
    collections::BTreeMap,
    error::Error as _,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use farthing_bounds::HeldBytes;
use farthing_bridge::Request;
use farthing_network::RELAYED_BODY_BYTES_MAX;
use farthing_protocol::Outcome;
use http::HeaderMap;
use tokio::time::timeout;
use url::Url;

#[cfg(feature = "played")]
pub use self::played::{PlayedRequest, PlayedServer};
use self::{address::Resolver, options::Waits, times::Times};
pub use self::{
    address::{AddressClass, ForbiddenAddress, ResolverError, resolver_error},
    base::{check_base, literal_class},
    failures::CallName,
    fault::Fault,
    options::UpstreamOptions,
    own_ports::OwnPorts,
    permit::Permit,
    request::UpstreamRequest,
};
pub(super) use self::{permit::Sealed, request::secret_header};
use super::new_service::UpstreamSecrets;

/// Shorter than the 5 s after which common servers drop an idle connection, so that we do first.
const POOL_IDLE: Duration = Duration::from_secs(4);
/// As many as calls of one service by default; more would only sit idle.
const POOL_IDLE_CONNECTIONS_MAX: usize = 32;
const ANSWER_HEADERS_MAX: usize = 64;

/// The reason that an address cannot be an upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    #[error("`{0}` is not an address such as http://127.0.0.1:8080/api")]
    Malformed(String),
    #[error("the upstream's address may not contain a user name or password; use upstream_headers")]
    Credentials,
    #[error("the upstream's address may not have a query or fragment; use upstream_headers or parameters")]
    Query,
    #[error(
        "{0} cannot be an upstream: link-local, metadata, multicast and unassigned addresses are refused"
    )]
    ForbiddenAddress(IpAddr),
    #[error("port {0} of this machine belongs to this node")]
    OwnPort(u16),
    #[error("{host} cannot be an upstream: {why}")]
    Leads { host: String, why: ForbiddenAddress },
    #[error("the header `{0}` cannot be sent to the upstream")]
    Header(String),
    #[error(
        "the HTTPS client could not be created; install the system's certificate authorities (ca-certificates)"
    )]
    Client,
}

/// The server behind a service. Cheap to clone; clones share connections.
#[derive(Clone)]
pub struct Upstream {
    base: Url,
    client: reqwest::Client,
    class: Arc<OnceLock<AddressClass>>,
    /// The owner's own, marked sensitive.
    secret_headers: HeaderMap,
    /// The owner's own; never shown, and a URL that has them is never logged.
    secret_query: Vec<(String, String)>,
    options: UpstreamOptions,
    times: Arc<Times>,
    /// The size of its newest large answers: it falls with each smaller one.
    large_bytes: Arc<AtomicUsize>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

/// The result of a request.
#[derive(Debug, Clone)]
pub struct UpstreamAnswer {
    pub outcome: Outcome,
    /// The status that the upstream gave; 0 when it did not say anything.
    pub status: u16,
    /// Names in lower case. Empty unless the outcome is the service's own answer, and so is `body`.
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
    pub elapsed: Duration,
    /// For the owner: why this is not an answer.
    pub fault: Option<Fault>,
}

/// A request that brought no answer, and the reason.
struct Failure {
    fault: Fault,
    status: u16,
    /// The connection broke before anything was heard; it may have been closed while idle.
    silent: bool,
}

impl Failure {
    const fn new(fault: Fault, status: u16) -> Self {
        Self { fault, status, silent: false }
    }
}

type Answered = (Outcome, u16, BTreeMap<String, String>, Bytes);

impl Upstream {
    /// Fixes where requests go. Does not connect. That its port is not one of this node's is judged by [`check_base`]
    /// when it is named, and whenever it is connected to: a node may be told to listen there later.
    ///
    /// # Errors
    /// [`UpstreamError`] for an address or a header that cannot be used.
    pub fn new(
        base_url: &str,
        secrets: UpstreamSecrets,
        options: UpstreamOptions,
    ) -> Result<Self, UpstreamError> {
        let base = base::read_base(base_url)?;
        let class = Arc::new(
            options.class.or_else(|| literal_class(&base)).map_or_else(OnceLock::new, OnceLock::from),
        );
        let secret_headers = request::secret_headers(&secrets).map_err(UpstreamError::Header)?;
        let secret_query = secrets.query.into_iter().collect();
        let client = client(&base, &class, &options).ok_or(UpstreamError::Client)?;
        Ok(Self {
            base,
            client,
            class,
            secret_headers,
            secret_query,
            options,
            times: Arc::default(),
            large_bytes: Arc::default(),
        })
    }

    /// Base address, as registered.
    pub const fn base(&self) -> &Url {
        &self.base
    }

    /// Returns how far away it is; `None` until its name was first resolved.
    pub fn class(&self) -> Option<AddressClass> {
        self.class.get().copied()
    }

    /// Fixes how far away it may be, where that is open. A name that nobody knows yet may turn out to be public, never
    /// a machine of the LAN or this one.
    ///
    /// # Errors
    /// [`UpstreamError::Leads`] for a name that leads only where no upstream may be.
    pub(super) async fn fix_class(&self) -> Result<(), UpstreamError> {
        fix_class(&self.base, &self.class, &self.options).await.map_err(|why| UpstreamError::Leads {
            host: self.base.host_str().unwrap_or_default().to_owned(),
            why,
        })
    }

    /// Resolves the addresses that it may be connected to now.
    pub(super) async fn addresses(&self) -> Result<Vec<SocketAddr>, ResolverError> {
        addresses(&self.base, &self.class, &self.options).await
    }

    /// Tells whether it leads to this node now, so that no call reaches it.
    pub(super) async fn leads_here(&self) -> bool {
        if !self.options.own_ports.contains(base::port_of(&self.base)) {
            return false;
        }
        let found = timeout(self.options.connect, self.addresses()).await;
        matches!(found, Ok(Err(ResolverError::Forbidden(ForbiddenAddress::Own))))
    }

    /// Returns the median time that the newest answers took, in microseconds; `None` before the first.
    pub fn median_us(&self) -> Option<u64> {
        self.times.median_us()
    }

    /// Returns the room that its next answer may well need.
    pub(super) fn large_bytes(&self) -> usize {
        self.large_bytes.load(Ordering::Relaxed)
    }

    fn note_size(&self, bytes: usize) {
        let before = self.large_bytes();
        self.large_bytes.store(bytes.max(before - before / 64), Ordering::Relaxed);
    }

    /// Lists the times that the newest answers took, in microseconds, the oldest first.
    pub(super) fn newest_us(&self) -> Vec<u64> {
        self.times.newest_us()
    }

    /// Goes on with what was measured before a restart.
    pub(super) fn remember(&self, times_us: &[u64]) {
        times_us.iter().for_each(|took| self.times.add(Duration::from_micros(*took)));
    }

    /// Goes on with what was measured of `earlier`, which is the same server.
    pub(super) fn continue_from(&mut self, earlier: &Self) {
        if self.base == earlier.base {
            self.times = Arc::clone(&earlier.times);
            self.large_bytes = Arc::clone(&earlier.large_bytes);
        }
    }

    /// Sends what is permitted and judges what comes back. Safe requests are sent once more when a kept connection
    /// turns out to have been closed.
    pub async fn fetch(&self, permit: &impl Permit) -> UpstreamAnswer {
        let request = permit.request();
        let room = || permit.room().unwrap_or_else(|| self.options.budget.nothing());
        let waits = self.options.begin(&request);
        let most = self.most(permit.is_relayed());
        let mut answered = self.attempt(&request, room(), &waits, most).await;
        if answered.as_ref().is_err_and(|failure| failure.silent) && request.is_safe() {
            answered = self.attempt(&request, room(), &waits, most).await;
        }
        let elapsed = waits.elapsed();
        match answered.and_then(headers::within_a_reply) {
            Ok((outcome, status, headers, body)) => {
                self.times.add(elapsed);
                self.note_size(body.len());
                UpstreamAnswer { outcome, status, headers, body, elapsed, fault: None }
            }
            Err(Failure { fault, status, .. }) => {
                failures::no_answer(request.call.as_ref(), &self.base, status, fault);
                let (headers, body) = (BTreeMap::new(), Bytes::new());
                let outcome = fault.outcome();
                UpstreamAnswer { outcome, status, headers, body, elapsed, fault: Some(fault) }
            }
        }
    }

    /// The longest body that is passed on.
    fn most(&self, is_relayed: bool) -> Most {
        let bytes = self.options.body_bytes_max;
        if is_relayed && bytes > RELAYED_BODY_BYTES_MAX {
            return Most { bytes: RELAYED_BODY_BYTES_MAX, above: Fault::LongForRelay };
        }
        Most { bytes, above: Fault::LongBody }
    }

    async fn attempt(
        &self,
        request: &UpstreamRequest,
        room: HeldBytes,
        waits: &Waits,
        most: Most,
    ) -> Result<Answered, Failure> {
        if base::own_port(&self.base, &self.options).is_some() {
            return Err(Failure::new(Fault::LeadsHere, 0));
        }
        let sent = self.http_request(request)?;
        let slow_head = |_| Failure::new(Fault::SlowHead, 0);
        let response = timeout(waits.head(), self.execute(sent)).await.map_err(slow_head)??;
        let headers = self.passed_back(request, &response);
        let status = response.status().as_u16();
        self.check_head(request, &response, most)?;
        match &request.request {
            Request::Http(_) => {
                let outcome = head::judge(&response, request.html)?;
                let (body, room) = self.body(response, room, waits, most).await?;
                Ok((outcome, status, headers, room.attach(body)))
            }
            Request::Graphql(asked) => {
                let (body, mut room) = self.body(response, room, waits, most).await?;
                let (outcome, said, headers, taken) =
                    graphql::judged(&asked.unwrap, request.call.as_ref(), status, headers, &body).await?;
                // What was asked under other names has its own, and may be longer written.
                if taken.len() > most.bytes {
                    return Err(Failure::new(most.above, status));
                }
                if !room.grow(taken.len().saturating_sub(body.len())) {
                    return Err(Failure::new(Fault::NoRoom, status));
                }
                Ok((outcome, said, headers, room.attach(taken)))
            }
        }
    }

    async fn execute(&self, sent: reqwest::Request) -> Result<reqwest::Response, Failure> {
        #[cfg(feature = "played")]
        if let Some(server) = &self.options.played {
            let silent = Failure { fault: Fault::Silent, status: 0, silent: true };
            return server.execute(sent).await.ok_or(silent);
        }
        self.client.execute(sent).await.map_err(|error| failure_of(&error))
    }

    async fn body(
        &self,
        mut response: reqwest::Response,
        mut room: HeldBytes,
        waits: &Waits,
        most: Most,
    ) -> Result<(Bytes, HeldBytes), Failure> {
        let status = response.status().as_u16();
        let failure = |fault| Failure::new(fault, status);
        let (mut whole, mut spare) = (Body::default(), room.bytes());
        loop {
            let part = timeout(waits.part(), response.chunk())
                .await
                .map_err(|_| failure(Fault::SlowBody))?
                .map_err(|_| failure(Fault::BrokenBody))?;
            let Some(part) = part else {
                room.keep(whole.len());
                return Ok((whole.finish(), room));
            };
            let taken = part.len().min(spare);
            spare -= taken;
            if !room.grow(part.len() - taken) {
                return Err(failure(Fault::NoRoom));
            }
            whole.push(part);
            if whole.len() > most.bytes {
                return Err(failure(most.above));
            }
        }
    }
}

/// The longest body that is passed on, and the reason that a longer one is not.
#[derive(Clone, Copy, Debug)]
struct Most {
    bytes: usize,
    above: Fault,
}

/// A body as it comes. One that comes in one piece is not copied.
#[derive(Default)]
struct Body {
    first: Bytes,
    rest: BytesMut,
}

impl Body {
    fn len(&self) -> usize {
        if self.rest.is_empty() { self.first.len() } else { self.rest.len() }
    }

    fn push(&mut self, part: Bytes) {
        if self.len() == 0 {
            self.first = part;
            return;
        }
        if self.rest.is_empty() {
            self.rest.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.rest.extend_from_slice(&part);
    }

    fn finish(self) -> Bytes {
        if self.rest.is_empty() { self.first } else { self.rest.freeze() }
    }
}

/// Fixes how far away `base` may be, where that is open: a name that nobody knows yet may turn out to be public.
///
/// # Errors
/// Where a name leads when nothing may be there.
pub async fn fix_class(
    base: &Url,
    class: &Arc<OnceLock<AddressClass>>,
    options: &UpstreamOptions,
) -> Result<(), ForbiddenAddress> {
    if class.get().is_some() {
        return Ok(());
    }
    match timeout(options.connect, addresses(base, class, options)).await {
        Ok(Err(ResolverError::Forbidden(why))) => Err(why),
        Ok(Ok(_)) => Ok(()),
        Ok(Err(ResolverError::Lookup(_))) | Err(_) => {
            class.get_or_init(|| AddressClass::Public);
            Ok(())
        }
    }
}

async fn addresses(
    base: &Url,
    class: &Arc<OnceLock<AddressClass>>,
    options: &UpstreamOptions,
) -> Result<Vec<SocketAddr>, ResolverError> {
    let host = base.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    resolver(base, class, options).addresses(host, base::port_of(base)).await
}

fn resolver(base: &Url, class: &Arc<OnceLock<AddressClass>>, options: &UpstreamOptions) -> Resolver {
    Resolver { class: Arc::clone(class), port: base::port_of(base), own_ports: options.own_ports.clone() }
}

/// A client that follows nothing, asks no proxy, and connects only to addresses of `class`; it is for URLs of
/// `base`'s scheme and port.
pub fn client(
    base: &Url,
    class: &Arc<OnceLock<AddressClass>>,
    options: &UpstreamOptions,
) -> Option<reqwest::Client> {
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only()
        .http1_max_headers(ANSWER_HEADERS_MAX)
        .connect_timeout(options.connect)
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(POOL_IDLE_CONNECTIONS_MAX)
        .dns_resolver(resolver(base, class, options));
    farthing_serve::tls::install_provider();
    if base.scheme() == "http" {
        // Nothing is trusted because nothing needs to be: this client never speaks TLS.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .ok()?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        builder = builder.tls_backend_preconfigured(tls);
    }
    builder.build().ok()
}

fn failure_of(error: &reqwest::Error) -> Failure {
    if error.is_connect() {
        return Failure::new(address::why_not(error), 0);
    }
    if error.is_timeout() {
        return Failure::new(Fault::SlowHead, 0);
    }
    let mut failure = Failure::new(Fault::NotHttp, 0);
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(hyper) = cause.downcast_ref::<hyper::Error>() {
            failure.silent |= hyper.is_incomplete_message() || hyper.is_canceled();
        }
        if let Some(io) = cause.downcast_ref::<std::io::Error>() {
            failure.silent |=
                matches!(io.kind(), std::io::ErrorKind::ConnectionReset | std::io::ErrorKind::BrokenPipe);
        }
        source = cause.source();
    }
    if failure.silent {
        failure.fault = Fault::Silent;
    }
    failure
}

#[cfg(test)]
mod tests;
