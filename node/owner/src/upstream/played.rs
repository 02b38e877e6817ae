//! Servers that are played: their answers come from the same process, and no socket is opened. A build has them with the feature
//! `played` alone. Everything before and after the exchange is as with any server.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use url::Url;

/// A request as it reaches a server that is played.
#[derive(Clone, Debug)]
pub struct PlayedRequest {
    pub method: http::Method,
    pub url: Url,
    pub body: Bytes,
}

/// The answer to one; none where the connection breaks before anything was said.
type PlayedAnswer = Option<http::Response<Bytes>>;

type Answering = dyn Fn(PlayedRequest) -> BoxFuture<'static, PlayedAnswer> + Send + Sync;

/// The server behind every service of an owner, in its own process. One that never ends its answer is slow.
#[derive(Clone)]
pub struct PlayedServer(Arc<Answering>);

impl PlayedServer {
    pub fn new(
        answer: impl Fn(PlayedRequest) -> BoxFuture<'static, PlayedAnswer> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(answer))
    }

    /// The answer to a request that would be sent.
    pub(super) async fn execute(&self, mut sent: reqwest::Request) -> Option<reqwest::Response> {
        let body = match sent.body_mut().take() {
            // Read as an answer is, because that copies nothing.
            Some(body) => reqwest::Response::from(http::Response::new(body)).bytes().await.ok()?,
            None => Bytes::new(),
        };
        let (method, url) = (sent.method().clone(), sent.url().clone());
        (self.0)(PlayedRequest { method, url, body }).await.map(reqwest::Response::from)
    }
}

impl fmt::Debug for PlayedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlayedServer").finish_non_exhaustive()
    }
}
