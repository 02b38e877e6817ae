//! Endpoints that a test plays in its own process: watcher, finder and writer are the real ones, and ask a function in place of a
//! server. No program that is shipped has this feature.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;

/// The body of an answer to a request's body; `None` when the connection ends without one.
pub type PlayedAnswer = BoxFuture<'static, Option<Vec<u8>>>;

/// A played endpoint. It may take as long as it likes: the client's time-out is the real one.
#[derive(Clone)]
pub struct PlayedEndpoint(Arc<dyn Fn(String) -> PlayedAnswer + Send + Sync>);

impl PlayedEndpoint {
    pub fn new(answer: impl Fn(String) -> PlayedAnswer + Send + Sync + 'static) -> Self {
        Self(Arc::new(answer))
    }

    /// Asks once.
    pub(crate) async fn answer(&self, body: String) -> Result<Vec<u8>, String> {
        let answer = (self.0)(body).await;
        answer.ok_or_else(|| "closed the connection early (it is played)".to_owned())
    }
}

impl fmt::Debug for PlayedEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlayedEndpoint").finish_non_exhaustive()
    }
}
