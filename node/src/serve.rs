//! The HTTP ports: our own accept loop, with a bound on everything a stranger can hold.
//!
//! 1. A connection is accepted when there is room for it, in all and per address ([`Limits`]).
//! 2. On a TLS port the first byte tells TLS from plain HTTP, which gets a helpful answer; then the handshake.
//! 3. Requests with too long an address or too many headers are refused before routing.
//! 4. A watch ([`activity`]) closes connections whose request head does not arrive in time, and those on which
//!    nothing moves. Bodies have a deadline of their own.
//! 5. At shutdown, running requests end and nothing new is taken.
//!
//! Why not `axum::serve`: it installs no timer, and a half-sent head is held for ever.

mod activity;
mod body;
mod guard;

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{Router, body::Body, response::IntoResponse};
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

pub use self::guard::{Hosts, guarded};
use self::{
    activity::{Activity, Watched},
    body::TimedBody,
};

/// What one port may be made to hold.
#[derive(Debug, Clone)]
pub struct Limits {
    pub connections_max: usize,
    pub connections_per_ip_max: usize,
    /// First byte and TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// The whole body of a request.
    pub body: Duration,
    /// A connection on which nothing moves and nothing is being worked on.
    pub idle: Duration,
    pub head_bytes_max: usize,
    pub headers_max: usize,
    pub uri_bytes_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_max: u32,
    /// How long shutdown waits for running requests.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 128,
            connections_per_ip_max: 32,
            handshake: Duration::from_secs(5),
            head: Duration::from_secs(5),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            head_bytes_max: 16 * 1024,
            headers_max: 64,
            uri_bytes_max: 4 * 1024,
            streams_max: 64,
            drain: Duration::from_secs(30),
        }
    }
}

/// A port that speaks TLS.
#[derive(Clone)]
pub struct Tls {
    pub config: Arc<rustls::ServerConfig>,
    /// Named in the answer to plain HTTP.
    pub ca_file: Option<PathBuf>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("ca_file", &self.ca_file).finish_non_exhaustive()
    }
}

/// One HTTP port.
#[derive(Debug, Clone)]
pub struct Port {
    pub router: Router,
    pub tls: Option<Tls>,
    /// When not empty, only these addresses may connect; they share one large allowance.
    pub trusted_proxies: Vec<IpAddr>,
    pub limits: Limits,
}

/// The address a request came from, among its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub SocketAddr);

impl Port {
    /// Serves until `stop`, then until running requests have ended, at most for [`Limits::drain`].
    pub async fn serve(self, listener: TcpListener, stop: CancellationToken) {
        let room = Arc::new(Semaphore::new(self.limits.connections_max));
        let drain = self.limits.drain;
        let shared = Arc::new(Shared { port: self, per_ip: Mutex::default(), stop: stop.clone() });
        let tasks = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = accept(&listener, &room) => accepted,
            };
            match accepted {
                Ok((stream, address, permit)) => {
                    if let Some(place) = shared.enter(address.ip(), permit) {
                        let shared = Arc::clone(&shared);
                        tasks.spawn(async move { shared.connection(stream, address, place).await });
                    }
                }
                Err(error) => {
                    // Usually too many open files; connections that end make room again.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        drop(listener);
        tasks.close();
        if timeout(drain, tasks.wait()).await.is_err() {
            tracing::warn!(left = tasks.len(), "requests did not end in time; their connections are closed");
        }
    }
}

/// Waits for room first, so that what is over the limit waits in the system's queue.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    let (stream, address) = listener.accept().await?;
    Ok((stream, address, permit))
}

struct Shared {
    port: Port,
    per_ip: Mutex<HashMap<IpAddr, usize>>,
    stop: CancellationToken,
}

/// A connection's place among all and among those of its address.
struct Place {
    shared: Arc<Shared>,
    ip: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut per_ip = self.shared.per_ip.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = per_ip.get_mut(&self.ip) {
            *count -= 1;
            if *count == 0 {
                per_ip.remove(&self.ip);
            }
        }
    }
}

impl Shared {
    /// `None` when the address may not connect, or has enough connections.
    fn enter(self: &Arc<Self>, ip: IpAddr, permit: OwnedSemaphorePermit) -> Option<Place> {
        let Port { trusted_proxies, limits, .. } = &self.port;
        let ip = ip.to_canonical();
        let trusted = trusted_proxies.contains(&ip);
        if !trusted_proxies.is_empty() && !trusted {
            tracing::debug!(%ip, "not a trusted proxy");
            return None;
        }
        let mut per_ip = self.per_ip.lock().unwrap_or_else(PoisonError::into_inner);
        let count = per_ip.entry(ip).or_default();
        if *count >= limits.connections_per_ip_max && !trusted {
            tracing::debug!(%ip, "too many connections");
            return None;
        }
        *count += 1;
        Some(Place { shared: Arc::clone(self), ip, _permit: permit })
    }

    async fn connection(&self, stream: TcpStream, address: SocketAddr, _place: Place) {
        // Answers are small; waiting to fill packets would only delay them.
        let _ = stream.set_nodelay(true);
        let limits = &self.port.limits;
        let Some(tls) = &self.port.tls else { return self.http1(stream, address).await };
        let handshake = timeout(limits.handshake, async {
            if !begins_tls(&stream).await? {
                explain_tls(stream, tls, address.ip()).await?;
                return Ok(None);
            }
            TlsAcceptor::from(Arc::clone(&tls.config)).accept(stream).await.map(Some)
        });
        match handshake.await {
            Ok(Ok(Some(stream))) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                self.http2(stream, address).await;
            }
            Ok(Ok(Some(stream))) => self.http1(stream, address).await,
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::debug!(%address, %error, "no TLS handshake"),
            Err(_) => tracing::debug!(%address, "no TLS handshake in time"),
        }
    }

    async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        address: SocketAddr,
    ) {
        let limits = &self.port.limits;
        let activity = Activity::new(Some(limits.head), limits.idle);
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
        let connection = hyper::server::conn::http1::Builder::new()
            .half_close(false)
            .max_buf_size(limits.head_bytes_max)
            .max_headers(limits.headers_max)
            .serve_connection(io, self.service(address, &activity));
        let mut connection = pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = activity.expired() => return,
            () = self.stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            _ = connection => {}
            () = activity.expired() => {}
        }
    }

    async fn http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        address: SocketAddr,
    ) {
        let limits = &self.port.limits;
        // Frames beside requests are ordinary here, so only silence counts.
        let activity = Activity::new(None, limits.idle);
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&activity)));
        let head_bytes_max = u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX);
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams_max)
            .max_header_list_size(head_bytes_max)
            .keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(10))
            .serve_connection(io, self.service(address, &activity));
        let mut connection = pin!(connection);
        tokio::select! {
            _ = connection.as_mut() => return,
            () = activity.expired() => return,
            () = self.stop.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        tokio::select! {
            _ = connection => {}
            () = activity.expired() => {}
        }
    }

    fn service(
        &self,
        address: SocketAddr,
        activity: &Arc<Activity>,
    ) -> impl hyper::service::Service<
        Request<Incoming>,
        Response = Response<Body>,
        Error = Infallible,
        Future: Send + 'static,
    > + use<> {
        let router = self.port.router.clone();
        let limits = self.port.limits.clone();
        let activity = Arc::clone(activity);
        hyper::service::service_fn(move |request: Request<Incoming>| {
            let router = router.clone();
            let working = Activity::work(&activity);
            let refusal = refuse(&request, &limits);
            let body_deadline = limits.body;
            async move {
                let _working = working;
                if let Some(refusal) = refusal {
                    return Ok(refusal);
                }
                let (head, body) = request.into_parts();
                let (body, unread) = TimedBody::new(body, body_deadline);
                let mut request = Request::from_parts(head, Body::new(body));
                request.extensions_mut().insert(ClientAddress(address));
                let answer = router.oneshot(request).await;
                unread.drain().await;
                answer
            }
        })
    }
}

/// What is refused before any route sees it.
fn refuse(request: &Request<Incoming>, limits: &Limits) -> Option<Response<Body>> {
    let uri_bytes = request.uri().path_and_query().map_or(0, |uri| uri.as_str().len());
    if uri_bytes > limits.uri_bytes_max {
        let what = format!("the address has {uri_bytes} bytes, at most {} are read\n", limits.uri_bytes_max);
        return Some((StatusCode::URI_TOO_LONG, what).into_response());
    }
    let headers = request.headers();
    if headers.len() > limits.headers_max || head_bytes(headers) > limits.head_bytes_max {
        let what = "the request has too many headers\n";
        return Some((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, what).into_response());
    }
    None
}

fn head_bytes(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// A TLS record begins with its content type, 22 for a handshake (RFC 8446, 5.1); no HTTP method does.
async fn begins_tls(stream: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    let read = stream.peek(&mut first).await?;
    Ok(read == 0 || first[0] == 22)
}

/// How this machine's folders are called is told to those at this machine alone.
fn use_https(ca_file: Option<&Path>, from: IpAddr) -> String {
    let ca_file = ca_file.filter(|_| from.to_canonical().is_loopback());
    let trust =
        ca_file.map_or_else(String::new, |path| format!(", and for curl --cacert {}", path.display()));
    format!("This port speaks HTTPS: use https:// in place of http://{trust}\n")
}

/// Plain HTTP on a TLS port gets an answer a person can act on.
async fn explain_tls(mut stream: TcpStream, tls: &Tls, from: IpAddr) -> io::Result<()> {
    let body = use_https(tls.ca_file.as_deref(), from);
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // Closing with unread input would reset the connection and lose the answer.
    let mut rest = [0; 1024];
    while tokio::io::AsyncReadExt::read(&mut stream, &mut rest).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests;
