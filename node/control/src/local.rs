//! The commands from inside the node: the console asks what the command line asks, without a socket between.

use axum::{Router, body::Body, response::Response};
use bytes::Bytes;
use http::{Method, Request, header, response::Parts};
use http_body_util::{BodyExt, Full, Limited};
use serde::de::DeserializeOwned;
use tower::ServiceExt;

use super::{
    ANSWER_BYTES_MAX, ControlError, RawAnswer, accepted,
    endpoint::{Endpoint, Raw, Target},
};

/// The routes of the control socket, asked directly. A cheap handle.
#[derive(Debug, Clone)]
pub struct Local(Router);

impl Local {
    #[must_use]
    pub const fn new(routes: Router) -> Self {
        Self(routes)
    }

    /// The routes themselves, to be offered elsewhere.
    pub fn routes(&self) -> Router {
        self.0.clone()
    }

    /// The answer of an endpoint to bytes as they are.
    ///
    /// # Errors
    /// As [`Local::ask`].
    pub async fn tell_bytes<E>(
        &self,
        at: impl Into<Target<E>>,
        bytes: Bytes,
    ) -> Result<E::Response, ControlError>
    where
        E: Endpoint<Request = Raw, Response: DeserializeOwned>,
    {
        accepted(&self.send(E::METHOD, at.into().as_str(), bytes).await?)
    }

    /// The answer as it came, whatever its status, to JSON that was read already, or to nothing.
    ///
    /// # Errors
    /// When there is none that fits.
    pub async fn exchange<E: Endpoint>(
        &self,
        at: impl Into<Target<E>>,
        body: Bytes,
    ) -> Result<RawAnswer, ControlError> {
        self.send(E::METHOD, at.into().as_str(), body).await
    }

    /// The answer as it comes, to be handed on piece by piece.
    ///
    /// # Errors
    /// When the node refuses.
    pub async fn stream<E>(&self, at: impl Into<Target<E>>) -> Result<Response, ControlError>
    where
        E: Endpoint<Request = (), Response = Raw>,
    {
        let request = Request::builder().method(E::METHOD).uri(at.into().as_str());
        let request = request.header(header::HOST, "localhost").body(Body::empty());
        let request = request.map_err(|error| ControlError::Unreadable(error.to_string()))?;
        let Ok(response) = self.0.clone().oneshot(request).await;
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        Err(ControlError::Refused(Box::new(read_whole(head, body).await?.problem())))
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<RawAnswer, ControlError> {
        let unreadable = |error: &dyn std::fmt::Display| ControlError::Unreadable(error.to_string());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "localhost")
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| unreadable(&error))?;
        let Ok(response) = self.0.clone().oneshot(request.map(Body::new)).await;
        let (head, body) = response.into_parts();
        read_whole(head, body).await
    }
}

async fn read_whole(head: Parts, body: Body) -> Result<RawAnswer, ControlError> {
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
    let body = body.map_err(|error| ControlError::Unreadable(error.to_string()))?;
    Ok(RawAnswer { status: head.status, headers: head.headers, body: body.to_bytes() })
}
