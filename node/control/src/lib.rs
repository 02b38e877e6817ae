//! The contract between a running node and whoever commands it: endpoints, their types, and the control socket.
//!
//! HTTP/1 with JSON over a Unix socket of mode 0600 in the data folder: whoever may read the wallet's folder
//! may command the node, and nobody else can reach it. [`types`] is the contract of both sides.

pub mod encoded;
pub mod endpoint;
mod eth;
mod local;
mod sentences;
mod text;
pub mod types;

use std::{
    error::Error,
    fmt, fs, io,
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use axum::{Router, body::HttpBody as Body};
use bytes::Bytes;
use farthing_os::file_names::CONTROL_SOCKET;
use futures::future::{Either, select};
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::TokioIo;
use serde::{Serialize, de::DeserializeOwned};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use self::{
    endpoint::{Endpoint, Raw, Target},
    types::Problem,
};
pub use self::{
    local::Local,
    sentences::{capital, counted, sentence},
};

/// An answer holds at most one call's body and its head.
const ANSWER_BYTES_MAX: usize = farthing_values::limits::RESPONSE_BODY_BYTES_MAX + 64 * 1024;
/// Opening a channel on a slow chain is the longest thing a command waits for.
const DONE_WITHIN: Duration = Duration::from_secs(600);
/// A question is answered from what the node knows, or after asking a few peers. A node that hangs is noticed.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);

/// Serves `router` on the control socket in `data_dir` until `stop`.
///
/// # Errors
/// When the socket cannot be made, for instance because the folder's path exceeds about 90 bytes.
pub async fn serve(data_dir: &Path, router: Router, stop: CancellationToken) -> io::Result<()> {
    let listener = listen(data_dir)?;
    axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned()).await?;
    // Without a node there is nobody to talk to; a leftover socket is replaced at the next start anyway.
    let _ = fs::remove_file(data_dir.join(CONTROL_SOCKET));
    Ok(())
}

fn listen(data_dir: &Path) -> io::Result<UnixListener> {
    UnixListener::from_std(farthing_os::socket::listen(&data_dir.join(CONTROL_SOCKET), 0o600)?)
}

/// The reason that a command was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    #[error("no node is running on {path}", path = .path.display())]
    NotRunning {
        path: PathBuf,
        /// Names the command that starts it.
        next: String,
    },
    #[error("{path} belongs to another user", path = .path.display())]
    NotAllowed { path: PathBuf },
    #[error("{}", if .0.detail.is_empty() { &.0.title } else { &.0.detail })]
    Refused(Box<Problem>),
    #[error("the node did not answer within {} s; it may be suspended, or its machine overloaded", .0.as_secs())]
    TimedOut(Duration),
    /// The connection ended early.
    #[error("the node stopped before it answered")]
    BrokenOff {
        /// Something may have been changed.
        is_command: bool,
    },
    #[error("the node's answer cannot be read: {0}")]
    Unreadable(String),
}

impl ControlError {
    /// Returns the step to take next, if there is one.
    pub fn next_step(&self) -> Option<&str> {
        match self {
            Self::NotRunning { next, .. } => Some(next.as_str()),
            Self::NotAllowed { .. } => Some("run the command as the node's user"),
            Self::Refused(problem) => problem.next.as_deref().filter(|next| !next.is_empty()),
            Self::TimedOut(_) => Some("read its log, and restart it if this goes on"),
            Self::BrokenOff { is_command: true } => Some(
                "what you asked for may have been done: start the node and check, for example with `farthing channel list`, \
                 before you repeat the command",
            ),
            Self::BrokenOff { is_command: false } => Some("start the node again, then ask again"),
            Self::Unreadable(_) => {
                Some("check that the program and the node have the same version (`farthing version`)")
            }
        }
    }
}

/// An answer as it came.
#[derive(Debug, Clone)]
pub struct RawAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Talks to the node that runs on a data folder. Each request has a connection of its own.
#[derive(Debug, Clone)]
pub struct ControlClient {
    socket: PathBuf,
    /// Instead of the patience that a question or a command has.
    within: Option<Duration>,
    /// Called once for each exchange that takes longer.
    when_slow: Option<(Duration, fn())>,
    /// Arguments of the command that starts this node, each with a blank before it.
    start_arguments: String,
}

impl ControlClient {
    pub fn in_folder(data_dir: &Path) -> Self {
        let socket = data_dir.join(CONTROL_SOCKET);
        Self { socket, within: None, when_slow: None, start_arguments: String::new() }
    }

    /// With another patience than a minute for a question and ten minutes for the slowest command.
    #[must_use]
    pub const fn within(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }

    /// Has `tell` called when an answer takes longer than `after`: silence looks like a command that hangs.
    #[must_use]
    pub const fn when_slow(mut self, after: Duration, tell: fn()) -> Self {
        self.when_slow = Some((after, tell));
        self
    }

    /// Has errors name the command that starts this node with these arguments, such as ` --data FOLDER`.
    #[must_use]
    pub fn started_with(mut self, arguments: &str) -> Self {
        arguments.clone_into(&mut self.start_arguments);
        self
    }

    /// A document in JSON that no type describes.
    pub async fn ask_document<E>(&self, at: impl Into<Target<E>>) -> Result<serde_json::Value, ControlError>
    where
        E: Endpoint<Request = (), Response = Raw>,
    {
        accepted(&self.send(E::METHOD, at.into().as_str(), Bytes::new()).await?)
    }

    /// The answer whatever its status, for [`types::Health`].
    ///
    /// # Errors
    /// [`ControlError`] when there is no such answer.
    pub async fn ask_any_status<E>(&self, at: impl Into<Target<E>>) -> Result<E::Response, ControlError>
    where
        E: Endpoint<Request = (), Response: DeserializeOwned>,
    {
        read(&self.send(E::METHOD, at.into().as_str(), Bytes::new()).await?)
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<RawAnswer, ControlError> {
        let usual = if method == Method::GET { ANSWERED_WITHIN } else { DONE_WITHIN };
        let within = self.within.unwrap_or(usual);
        let exchange = pin!(tokio::time::timeout(within, self.exchange(method, path, body)));
        let answered = match self.when_slow {
            Some((after, tell)) => match select(exchange, pin!(tokio::time::sleep(after))).await {
                Either::Left((answered, _)) => answered,
                Either::Right(((), exchange)) => {
                    tell();
                    exchange.await
                }
            },
            None => exchange.await,
        };
        answered.map_err(|_| ControlError::TimedOut(within))?
    }

    async fn exchange(&self, method: Method, path: &str, body: Bytes) -> Result<RawAnswer, ControlError> {
        let stream = UnixStream::connect(&self.socket).await.map_err(|error| self.no_connection(&error))?;
        self.check_answerer(&stream)?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(unreadable)?;
        let connection = tokio::spawn(connection);
        let is_command = method != Method::GET;
        let sent = sender.send_request(request(method, path, body)?).await;
        let response = sent.map_err(|error| broken_off(&error, is_command))?;
        let answer = whole(response).await.map_err(|error| broken_off(&*error, is_command))?;
        connection.abort();
        Ok(answer)
    }

    /// Checks that whoever put the socket there is this user: it is told this user's secrets and orders. The system's
    /// user may command everybody's node.
    fn check_answerer(&self, stream: &UnixStream) -> Result<(), ControlError> {
        let own = rustix::process::geteuid().as_raw();
        let user = stream.peer_cred().map_err(|error| self.no_connection(&error))?.uid();
        if own == 0 || user == own {
            return Ok(());
        }
        Err(self.no_connection(&io::ErrorKind::PermissionDenied.into()))
    }

    fn no_connection(&self, error: &io::Error) -> ControlError {
        let path = self.socket.parent().unwrap_or(&self.socket).to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied => ControlError::NotAllowed { path },
            _ => {
                let arguments = &self.start_arguments;
                let next =
                    format!("start it with `farthing run{arguments}`, or name another folder with --data");
                ControlError::NotRunning { path, next }
            }
        }
    }
}

/// Asking endpoints, alike over the socket and from inside the node.
macro_rules! asking {
    ($way:ty) => {
        impl $way {
            /// The answer of an endpoint that takes nothing.
            ///
            /// # Errors
            /// [`ControlError`]; a status of 400 or above is [`ControlError::Refused`].
            pub async fn ask<E>(&self, at: impl Into<Target<E>>) -> Result<E::Response, ControlError>
            where
                E: Endpoint<Request = (), Response: DeserializeOwned>,
            {
                accepted(&self.send(E::METHOD, at.into().as_str(), Bytes::new()).await?)
            }

            /// The answer of an endpoint to a request.
            pub async fn tell<E>(
                &self,
                at: impl Into<Target<E>>,
                request: &E::Request,
            ) -> Result<E::Response, ControlError>
            where
                E: Endpoint<Request: Serialize, Response: DeserializeOwned>,
            {
                accepted(&self.send(E::METHOD, at.into().as_str(), json(request)?).await?)
            }

            /// The answer as it came, for a service's own answer to a call.
            ///
            /// # Errors
            /// [`ControlError`] when there is none; its status is the caller's to judge.
            pub async fn tell_raw<E>(
                &self,
                at: impl Into<Target<E>>,
                request: &E::Request,
            ) -> Result<RawAnswer, ControlError>
            where
                E: Endpoint<Request: Serialize, Response = Raw>,
            {
                self.send(E::METHOD, at.into().as_str(), json(request)?).await
            }
        }
    };
}

asking!(ControlClient);
asking!(Local);

fn unreadable(error: impl fmt::Display) -> ControlError {
    ControlError::Unreadable(error.to_string())
}

/// The error of an answer that ended early, and of one that is no HTTP or too long for it.
fn broken_off(error: &(dyn Error + 'static), is_command: bool) -> ControlError {
    match error.downcast_ref::<hyper::Error>() {
        Some(ended) if !ended.is_parse() => ControlError::BrokenOff { is_command },
        _ => unreadable(error),
    }
}

fn request(method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, ControlError> {
    let request = Request::builder().method(method).uri(path).header(header::HOST, "localhost");
    let request = request.header(header::CONTENT_TYPE, "application/json").body(Full::new(body));
    request.map_err(unreadable)
}

async fn whole<B>(response: Response<B>) -> Result<RawAnswer, Box<dyn Error + Send + Sync>>
where
    B: Body<Error: Into<Box<dyn Error + Send + Sync>>>,
{
    let (head, body) = response.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await?;
    Ok(RawAnswer { status: head.status, headers: head.headers, body: body.to_bytes() })
}

fn json(body: &impl Serialize) -> Result<Bytes, ControlError> {
    serde_json::to_vec(body).map(Bytes::from).map_err(unreadable)
}

fn accepted<T: DeserializeOwned>(answer: &RawAnswer) -> Result<T, ControlError> {
    if answer.status.is_success() {
        read(answer)
    } else {
        Err(ControlError::Refused(Box::new(answer.problem())))
    }
}

fn read<T: DeserializeOwned>(answer: &RawAnswer) -> Result<T, ControlError> {
    let body = if answer.body.is_empty() { &b"null"[..] } else { &answer.body };
    serde_json::from_slice(body).map_err(unreadable)
}

impl RawAnswer {
    /// Returns whether this is a problem of the network rather than an answer of a service, which may be a problem too:
    /// what was bought has its price.
    pub fn is_problem(&self) -> bool {
        let kind = self.headers.get(header::CONTENT_TYPE).map(http::HeaderValue::as_bytes);
        kind.is_some_and(|kind| kind.starts_with(b"application/problem+json"))
            && !self.headers.contains_key(types::HEADER_PRICE)
    }

    /// The problem it describes; one made up from the status when it does not.
    pub fn problem(&self) -> Problem {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| {
            let detail: String = String::from_utf8_lossy(&self.body).chars().take(500).collect();
            let title = self.status.canonical_reason().unwrap_or("unknown status").to_owned();
            Problem { title, ..Problem::of_status(self.status, detail, "") }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        os::unix::fs::PermissionsExt,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use axum::{Json, response::IntoResponse, routing::get};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::endpoint::Danger;

    macro_rules! endpoints {
        ($($name:ident: $method:ident $path:literal $request:ty => $response:ty;)+) => {$(
            #[derive(Clone, Copy)]
            struct $name;

            impl Endpoint for $name {
                type Request = $request;
                type Response = $response;
                const METHOD: Method = Method::$method;
                const PATH: &'static str = $path;
                const DANGER: Danger = Danger::Low;
            }
        )+};
    }

    endpoints! {
        Fine: GET "/ok" () => String;
        Echo: POST "/ok" [u8; 2] => Vec<u8>;
        Refuses: GET "/no" () => String;
        Empty: GET "/empty" () => ();
    }

    async fn running(folder: &Path) -> (ControlClient, CancellationToken, tokio::task::JoinHandle<()>) {
        let router = Router::new()
            .route("/ok", get(|| async { Json("fine") }).post(|body: String| async move { body }))
            .route("/no", get(|| async {
                let problem = serde_json::json!({ "status": 402, "title": "t", "detail": "no money", "next": "send some" });
                (StatusCode::PAYMENT_REQUIRED, Json(problem)).into_response()
            }))
            .route("/empty", get(|| async { StatusCode::NO_CONTENT }));
        let stop = CancellationToken::new();
        let (serving, data_dir) = (stop.clone(), folder.to_owned());
        let task = tokio::spawn(async move { serve(&data_dir, router, serving).await.unwrap() });
        let client = ControlClient::in_folder(folder);
        while !folder.join(CONTROL_SOCKET).exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (client, stop, task)
    }

    #[tokio::test]
    async fn a_command_reaches_the_node_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let (client, stop, task) = running(folder.path()).await;
        assert_eq!(client.ask(Fine).await.unwrap(), "fine");
        assert_eq!(client.tell(Echo, &[1, 2]).await.unwrap(), [1, 2]);
        client.ask(Empty).await.unwrap();
        let refused = client.ask(Refuses).await.unwrap_err();
        assert_eq!(refused.to_string(), "no money", "what failed");
        assert_eq!(refused.next_step(), Some("send some"), "told once, and here");
        assert!(matches!(refused, ControlError::Refused(problem) if problem.status == 402));
        let mode = fs::metadata(folder.path().join(CONTROL_SOCKET)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        stop.cancel();
        task.await.unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_problem_that_a_service_answers_is_its_own_answer() {
        let mut answer =
            RawAnswer { status: StatusCode::NOT_FOUND, headers: HeaderMap::new(), body: Bytes::new() };
        assert!(!answer.is_problem());
        answer.headers.insert(header::CONTENT_TYPE, "application/problem+json".parse().unwrap());
        assert!(answer.is_problem());
        answer.headers.insert(types::HEADER_PRICE, "0.002".parse().unwrap());
        assert!(!answer.is_problem());
    }

    #[tokio::test]
    async fn whoever_waits_long_is_told_so_and_not_for_ever() {
        static TOLD: AtomicUsize = AtomicUsize::new(0);
        let folder = tempfile::tempdir().unwrap();
        // It takes connections and says nothing, as a stopped process does.
        let _silent = listen(folder.path()).unwrap();
        let client = ControlClient::in_folder(folder.path()).within(Duration::from_millis(200));
        let patient = client.when_slow(Duration::from_millis(1), || {
            TOLD.fetch_add(1, Ordering::Relaxed);
        });
        let error = patient.ask(Fine).await.unwrap_err();
        assert!(matches!(error, ControlError::TimedOut(_)), "{error}");
        assert_eq!(TOLD.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn a_node_that_dies_before_it_has_answered_may_have_done_what_it_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let listener = listen(folder.path()).unwrap();
        let cut = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n\"fi";
        let dying = tokio::spawn(async move {
            for begun in ["", "", cut, cut, "no HTTP at all\r\n\r\n"] {
                let (mut stream, _) = listener.accept().await.unwrap();
                assert!(stream.read(&mut [0; 4_096]).await.unwrap() > 0, "a question");
                stream.write_all(begun.as_bytes()).await.unwrap();
            }
        });
        let client = ControlClient::in_folder(folder.path());
        for _ in 0..2 {
            let asked = client.ask(Fine).await.unwrap_err();
            assert!(matches!(asked, ControlError::BrokenOff { is_command: false }), "{asked:?}");
            let told = client.tell(Echo, &[1, 2]).await.unwrap_err();
            assert!(matches!(told, ControlError::BrokenOff { is_command: true }), "{told:?}");
            assert!(told.next_step().unwrap().contains("may have been done"), "{told}");
        }
        let other = client.ask(Fine).await.unwrap_err();
        assert!(matches!(other, ControlError::Unreadable(_)), "{other:?}");
        dying.await.unwrap();
    }

    #[tokio::test]
    async fn without_a_node_the_next_step_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let client = ControlClient::in_folder(folder.path());
        for (client, command) in [
            (client.clone(), "`farthing run`"),
            (client.started_with(" --data /srv/node"), "`farthing run --data /srv/node`"),
        ] {
            let error = client.ask(Fine).await.unwrap_err();
            assert!(error.next_step().unwrap().contains(command), "{error}: {:?}", error.next_step());
        }
    }

    #[tokio::test]
    async fn a_socket_left_by_a_killed_node_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        drop(std::os::unix::net::UnixListener::bind(folder.path().join(CONTROL_SOCKET)).unwrap());
        fs::create_dir(folder.path().join(".control.sock.new")).unwrap();
        let client = ControlClient::in_folder(folder.path());
        assert!(matches!(client.ask(Fine).await, Err(ControlError::NotRunning { .. })));
        let (client, ..) = running(folder.path()).await;
        let answered = async {
            while client.ask(Fine).await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), answered).await.unwrap();
    }
}
