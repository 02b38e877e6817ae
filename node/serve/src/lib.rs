//! The HTTP ports: our own accept loop, with a bound on everything a stranger can hold.
//!
//! 1. A connection that has asked for something gets a place ([`lobby`]) when there is room for it, in all and per subscriber
//!    ([`Limits`]); one that does nothing makes room, and otherwise it waits ([`places`]).
//! 2. On a TLS port the first byte tells TLS from plain HTTP, which gets a helpful answer; then the handshake.
//! 3. Requests with too long an address or too many headers are refused before routing.
//! 4. A watch ([`activity`]) closes connections whose request head does not arrive in time, and those on which
//!    nothing moves. Bodies have a deadline of their own, and count against the memory of the node.
//! 5. At shutdown, running requests end and nothing new is taken.
//!
//! Why not `axum::serve`: it installs no timer, and a half-sent head is held for ever.

mod activity;
mod answer;
mod body;
mod finished;
mod guard;
mod listener;
mod lobby;
mod places;
pub mod tls;

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::{Router, body::Body, response::IntoResponse};
use farthing_bounds::ByteBudget;
use http::{HeaderMap, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::graceful::GracefulConnection,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceExt;

use self::{
    activity::Activity,
    answer::Answer,
    body::{Room, TimedBody},
    listener::Newcomer,
    lobby::{Lobby, Stay},
    places::{Full, Place, Places},
};
pub use self::{
    answer::attachment,
    finished::finished,
    guard::{Hosts, guarded},
    listener::{Listener, listen},
    places::Desk,
};

/// Unread bytes of one request, and of one connection: on 128 connections together 32 MiB.
const HTTP2_STREAM_BYTES: u32 = 64 * 1024;
const HTTP2_CONNECTION_BYTES: u32 = 256 * 1024;

/// A connection that is closed for doing nothing.
const SAYS_GOODBYE_WITHIN: Duration = Duration::from_millis(250);

/// Limits on what one port may be made to hold.
#[derive(Debug, Clone)]
pub struct Limits {
    pub connections_max: usize,
    /// Of one subscriber: an IPv4 address, a /64 of IPv6, or this machine.
    pub connections_per_ip_max: usize,
    /// The first line of a connection or its hello of TLS, and then the TLS handshake.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its head.
    pub head: Duration,
    /// The whole body of a request.
    pub body: Duration,
    /// A connection on which nothing moves and nothing is being worked on.
    pub idle: Duration,
    /// A newcomer for a place, while all those of its subscriber are at work.
    pub wait: Duration,
    pub head_bytes_max: usize,
    pub headers_max: usize,
    pub uri_bytes_max: usize,
    /// Requests at once on one HTTP/2 connection.
    pub streams_max: u32,
    /// The longest time that shutdown waits for running requests.
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
            wait: Duration::from_secs(10),
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

farthing_os::hidden!(Tls { ca_file });

/// One HTTP port.
#[derive(Debug, Clone)]
pub struct Port {
    pub router: Router,
    pub tls: Option<Tls>,
    /// The only addresses that may connect, when not empty; they share one large allowance.
    pub trusted_proxies: Vec<IpAddr>,
    pub limits: Limits,
    /// The memory that the bodies of all requests may hold.
    pub budget: ByteBudget,
    pub wording: Wording,
}

/// A request that this port answers in place of its routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnedAway {
    /// It names a host that is neither an address nor a name of this node.
    UnknownHost,
    /// A web page makes it.
    FromWebPage,
    /// Its body finds no room in the memory of the node.
    NoRoom,
}

/// A function that words an edge's answer to what its port turns away.
pub type Wording = fn(TurnedAway) -> Response<Body>;

/// The address a request came from, among its extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub SocketAddr);

impl Port {
    /// Serves until `stop`, then until running requests have ended, at most for [`Limits::drain`].
    pub async fn serve(self, listener: Listener, stop: CancellationToken) {
        let drain = self.limits.drain;
        let places = Places::new(self.limits.connections_max, self.limits.connections_per_ip_max);
        let shared = Arc::new(Shared { port: self, places, stop: stop.clone() });
        let (lobby, tasks) = (Lobby::new(), TaskTracker::new());
        loop {
            let accepted = tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok(newcomer) if newcomer.is_stranger_to(&shared.port.trusted_proxies) => {
                    tracing::debug!(address = %newcomer.address(), "not a trusted proxy");
                }
                Ok(newcomer) => {
                    let stay = tokio::select! {
                        () = stop.cancelled() => break,
                        stay = lobby.enter(newcomer.address().ip()) => stay,
                    };
                    let shared = Arc::clone(&shared);
                    tasks.spawn(async move { shared.arrive(newcomer, stay).await });
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

struct Shared {
    port: Port,
    places: Arc<Places>,
    stop: CancellationToken,
}

impl Shared {
    /// Serves a newcomer once it has asked for something and has a place.
    async fn arrive(&self, newcomer: Newcomer, stay: Stay) {
        let address = newcomer.address();
        let Some((place, activity)) = self.admit(&newcomer, address, stay).await else { return };
        match newcomer {
            Newcomer::Tcp(stream, _) => self.connection(stream, address, activity, place).await,
            // Whatever the port speaks to others.
            Newcomer::Unix(stream) => self.http1(stream, address, activity, &place).await,
        }
    }

    /// A place for a newcomer that has asked for something; `None` when it has to go before.
    async fn admit(
        &self,
        newcomer: &Newcomer,
        address: SocketAddr,
        stay: Stay,
    ) -> Option<(Place, Arc<Activity>)> {
        let asks = match newcomer {
            Newcomer::Tcp(..) if self.port.tls.is_some() => newcomer.says(lobby::has_greeted),
            _ => newcomer.says(lobby::has_asked),
        };
        let entered = async {
            timeout(self.port.limits.handshake, asks).await.ok()?.ok()?;
            stay.speaks();
            self.enter(address.ip().to_canonical()).await
        };
        let entered = tokio::select! {
            () = self.stop.cancelled() => return None,
            () = stay.evicted() => return None,
            entered = entered => entered,
        };
        if entered.is_none() {
            tracing::debug!(%address, "no place");
        }
        entered
    }

    /// A place, as soon as there is one. `None` when others of its subscriber are at work for too long, or so many of it
    /// came since that it may wait no longer.
    async fn enter(&self, ip: IpAddr) -> Option<(Place, Arc<Activity>)> {
        let Port { trusted_proxies, limits, .. } = &self.port;
        let ip = (!trusted_proxies.contains(&ip)).then_some(ip);
        let mut turn = None;
        let waited_out = Instant::now() + limits.wait;
        loop {
            let now = Instant::now();
            let activity = Activity::new(limits);
            match (self.places.enter(ip, &activity, turn.as_ref(), now), ip) {
                (Ok(place), _) => return Some((place, activity)),
                (Err(Full::Displaced), _) => return None,
                (Err(Full::Subscriber), _) if now >= waited_out => return None,
                (Err(Full::Subscriber), Some(ip)) if turn.is_none() => turn = Some(self.places.wait(ip)),
                (Err(_), _) => self.places.room().await,
            }
        }
    }

    async fn connection(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        activity: Arc<Activity>,
        place: Place,
    ) {
        // Answers are small; waiting to fill packets would only delay them.
        let _ = stream.set_nodelay(true);
        let limits = &self.port.limits;
        let Some(tls) = &self.port.tls else { return self.http1(stream, address, activity, &place).await };
        let handshake = timeout(limits.handshake, async {
            if !begins_tls(&stream).await? {
                explain_tls(stream, tls, address.ip()).await?;
                return Ok(None);
            }
            TlsAcceptor::from(Arc::clone(&tls.config)).accept(stream).await.map(Some)
        });
        let handshake = tokio::select! {
            handshake = handshake => handshake,
            () = activity.evicted() => return,
        };
        match handshake {
            Ok(Ok(Some(stream))) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                activity.speaks_http2();
                self.http2(stream, address, activity, &place).await;
            }
            Ok(Ok(Some(stream))) => self.http1(stream, address, activity, &place).await,
            Ok(Ok(None)) => {}
            Ok(Err(error)) => tracing::debug!(%address, %error, "no TLS handshake"),
            Err(_) => tracing::debug!(%address, "no TLS handshake in time"),
        }
    }

    async fn http1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        address: SocketAddr,
        activity: Arc<Activity>,
        place: &Place,
    ) {
        let limits = &self.port.limits;
        let io = TokioIo::new(Arc::clone(&activity).watch(stream));
        let connection = hyper::server::conn::http1::Builder::new()
            .half_close(false)
            .max_buf_size(limits.head_bytes_max)
            .max_headers(limits.headers_max)
            .serve_connection(io, self.service(address, &activity, place));
        self.until_over(connection, &activity).await;
    }

    async fn http2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
        address: SocketAddr,
        activity: Arc<Activity>,
        place: &Place,
    ) {
        let limits = &self.port.limits;
        let io = TokioIo::new(Arc::clone(&activity).watch(stream));
        let head_bytes_max = u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX);
        let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams_max)
            .max_header_list_size(head_bytes_max)
            // What arrives before anybody reads it, of a request and of all on this connection.
            .initial_stream_window_size(HTTP2_STREAM_BYTES)
            .initial_connection_window_size(HTTP2_CONNECTION_BYTES)
            .keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(10))
            .serve_connection(io, self.service(address, &activity, place));
        self.until_over(connection, &activity).await;
    }

    /// Until the connection ends by itself; one that is to end says goodbye first, so that a client knows that a request it
    /// sends just then was not read, and answers a request that came before that.
    async fn until_over(&self, connection: impl GracefulConnection, activity: &Activity) {
        let mut connection = pin!(connection);
        let is_expired = tokio::select! {
            _ = connection.as_mut() => return,
            () = activity.expired() => true,
            () = self.stop.cancelled() => false,
        };
        connection.as_mut().graceful_shutdown();
        let is_over = async {
            if !is_expired {
                return activity.expired().await;
            }
            loop {
                tokio::time::sleep(SAYS_GOODBYE_WITHIN).await;
                if activity.standing(Instant::now()).is_some() {
                    return;
                }
            }
        };
        tokio::select! {
            _ = connection => {}
            () = is_over => {}
        }
    }

    fn service(
        &self,
        address: SocketAddr,
        activity: &Arc<Activity>,
        place: &Place,
    ) -> impl hyper::service::Service<
        Request<Incoming>,
        Response = Response<Body>,
        Error = Infallible,
        Future: Send + 'static,
    > + use<> {
        let router = self.port.router.clone();
        let limits = self.port.limits.clone();
        let budget = self.port.budget.clone();
        let activity = Arc::clone(activity);
        let desks = place.desks();
        let wording = self.port.wording;
        hyper::service::service_fn(move |request: Request<Incoming>| {
            let router = router.clone();
            let activity = Arc::clone(&activity);
            let working = Activity::work(&activity);
            let refusal = refuse(&request, &limits);
            let body_deadline = limits.body;
            let room = Room::new(&budget);
            let desk = desks.desk();
            async move {
                let _working = working;
                if let Some(refusal) = refusal {
                    return Ok(refusal);
                }
                let (head, body) = request.into_parts();
                let (body, unread) = TimedBody::new(body, body_deadline, &activity, &room);
                let mut request = Request::from_parts(head, Body::new(body));
                request.extensions_mut().insert(ClientAddress(address));
                request.extensions_mut().insert(desk.clone());
                let answer = match router.oneshot(request).await? {
                    _ if room.was_short() => wording(TurnedAway::NoRoom),
                    answer => answer,
                };
                drop(desk);
                unread.drain(&activity).await;
                Ok(answer.map(|body| Body::new(Answer::new(body, &activity))))
            }
        })
    }
}

/// Refuses a request whose address is too long or whose headers are too many, before any route sees it.
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

/// Tells a caller to use HTTPS; only those at this machine are told the path of the authority's certificate.
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
