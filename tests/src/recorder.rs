//! An owner's server that answers whatever a test tells it to, and remembers every request.

use std::sync::Arc;

use anyhow::Result;
use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, Method, Request, Response, StatusCode, Uri},
};
use parking_lot::Mutex;
use tower::ServiceExt;

use crate::upstream::serve;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: Method,
    /// Path and query, as they were written.
    pub target: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// What the server answers.
#[derive(Debug, Clone)]
pub struct Scripted {
    pub status: StatusCode,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
}

impl Scripted {
    pub fn json(status: u16, body: &str) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT);
        Self { status, headers: vec![("content-type", "application/json".to_owned())], body: body.to_owned() }
    }
}

/// A running server. It ends with the test's runtime.
#[derive(Debug, Clone)]
pub struct Recorder {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    seen: Mutex<Vec<Seen>>,
    answer: Mutex<Scripted>,
    /// Answers instead of the script.
    behind: Option<Router>,
}

impl Recorder {
    /// A server that answers `{}` until told otherwise.
    pub async fn start() -> Result<Self> {
        Self::with(None).await
    }

    /// The same before a real service, which answers.
    pub async fn before(service: Router) -> Result<Self> {
        Self::with(Some(service)).await
    }

    async fn with(behind: Option<Router>) -> Result<Self> {
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            answer: Mutex::new(Scripted::json(200, "{}")),
            behind,
        });
        let router =
            Router::new().fallback(record).layer(DefaultBodyLimit::disable()).with_state(shared.clone());
        Ok(Self { url: serve(router).await?, shared })
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    pub fn answer_with(&self, answer: Scripted) {
        *self.shared.answer.lock() = answer;
    }

    /// Every request so far, oldest first.
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().clone()
    }

    pub fn hits(&self) -> usize {
        self.shared.seen.lock().len()
    }
}

async fn record(
    State(shared): State<Arc<Shared>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let target = uri.path_and_query().map_or_else(String::new, ToString::to_string);
    let seen = Seen { method: method.clone(), target, headers: headers.clone(), body: body.clone() };
    shared.seen.lock().push(seen);
    if let Some(service) = &shared.behind {
        let mut request = Request::new(Body::from(body));
        (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
        return match service.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
    }
    let answer = shared.answer.lock().clone();
    let mut response = Response::new(Body::from(answer.body));
    *response.status_mut() = answer.status;
    for (name, value) in answer.headers {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
