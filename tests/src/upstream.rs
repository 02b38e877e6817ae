//! An owner's server that does what a test asks of it, and counts what reaches it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    extract::{Path, Request, State},
    http::{StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Redirect, Response},
    routing::{any, get},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::watch,
};

/// A running server. It ends with the test's runtime.
#[derive(Debug, Clone)]
pub struct Upstream {
    url: String,
    hits: Arc<AtomicU64>,
    fails: Arc<AtomicBool>,
}

/// Serves a router on a free port until the test's runtime ends; returns its address, without a slash at the end.
pub async fn serve(router: Router) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

impl Upstream {
    /// Paths say what happens: `/ok`, `/status/404`, `/slow/500` (milliseconds), `/html`, `/redirect`,
    /// `/large/1000` (bytes), `/echo` (the body back).
    pub async fn start() -> Result<Self> {
        let (hits, fails) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let router = Router::new()
            .route("/ok", any(ok))
            .route(
                "/echo",
                any(|State(hits): State<Arc<AtomicU64>>, body: Bytes| async move {
                    hits.fetch_add(1, Ordering::SeqCst);
                    ([(header::CONTENT_TYPE, "application/json")], body)
                }),
            )
            .route("/status/{status}", any(status))
            .route("/slow/{millis}", any(slow))
            .route("/large/{bytes}", get(large))
            .route("/html", get(html))
            .route("/redirect", get(redirect))
            .layer(middleware::from_fn_with_state(Arc::clone(&fails), unless_failing))
            .with_state(Arc::clone(&hits));
        Ok(Self { url: serve(router).await?, hits, fails })
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// From now on every request is answered with status 503, or none is.
    pub fn fail(&self, fails: bool) {
        self.fails.store(fails, Ordering::SeqCst);
    }

    /// Requests that arrived so far, those that failed on purpose left out.
    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::SeqCst)
    }
}

/// A server that answers every request with these bytes and closes: for answers no HTTP library would send.
pub async fn raw(answer: &'static [u8]) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 16 * 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    Ok(url)
}

async fn unless_failing(State(fails): State<Arc<AtomicBool>>, request: Request, next: Next) -> Response {
    if fails.load(Ordering::SeqCst) {
        return (StatusCode::SERVICE_UNAVAILABLE, "away").into_response();
    }
    next.run(request).await
}

type Hits = State<Arc<AtomicU64>>;

async fn ok(State(hits): Hits) -> impl IntoResponse {
    let n = hits.fetch_add(1, Ordering::SeqCst) + 1;
    ([(header::CONTENT_TYPE, "application/json")], format!("{{\"n\":{n}}}"))
}

async fn status(State(hits): Hits, Path(status): Path<u16>) -> Response {
    hits.fetch_add(1, Ordering::SeqCst);
    (StatusCode::from_u16(status).unwrap_or(StatusCode::IM_A_TEAPOT), "said so").into_response()
}

async fn slow(State(hits): Hits, Path(millis): Path<u64>) -> &'static str {
    hits.fetch_add(1, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(millis)).await;
    "at last"
}

async fn large(State(hits): Hits, Path(bytes): Path<usize>) -> impl IntoResponse {
    hits.fetch_add(1, Ordering::SeqCst);
    ([(header::CONTENT_TYPE, "application/octet-stream")], vec![7_u8; bytes])
}

async fn html(State(hits): Hits) -> impl IntoResponse {
    hits.fetch_add(1, Ordering::SeqCst);
    axum::response::Html("<h1>Bad gateway</h1>")
}

async fn redirect(State(hits): Hits) -> Redirect {
    hits.fetch_add(1, Ordering::SeqCst);
    Redirect::temporary("/ok")
}

/// A server that answers at `/held`, once its gate is open.
#[derive(Debug)]
pub struct Gate {
    url: String,
    asked: watch::Receiver<u32>,
    is_open: watch::Sender<bool>,
}

impl Gate {
    pub async fn start() -> Result<Self> {
        let ((asking, asked), (is_open, opened)) = (watch::channel(0), watch::channel(false));
        let router = Router::new().route("/held", get(held).delete(held)).with_state((asking, opened));
        let url = serve(router).await?;
        Ok(Self { url, asked, is_open })
    }

    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Waits until somebody has asked.
    pub async fn asked(&mut self) -> Result<()> {
        self.asked.wait_for(|asked| *asked > 0).await?;
        Ok(())
    }

    /// Requests that arrived so far.
    pub fn count(&self) -> u32 {
        *self.asked.borrow()
    }

    /// Answers what waits, and everything from now on at once.
    pub fn open(&self) {
        self.is_open.send_replace(true);
    }
}

async fn held(State((asking, mut opened)): State<(watch::Sender<u32>, watch::Receiver<bool>)>) -> Response {
    asking.send_modify(|asked| *asked += 1);
    let _ = opened.wait_for(|is_open| *is_open).await;
    ([(header::CONTENT_TYPE, "application/json")], "{\"held\":\"no more\"}").into_response()
}
