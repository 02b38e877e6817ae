//! The commands from inside the node: the console asks what the command line asks, without a socket between.

use axum::{Router, body::Body, response::Response};
use bytes::Bytes;
use http::{Method, Request, header};
use serde::de::DeserializeOwned;
use tower::ServiceExt;

use super::{
    ControlError, RawAnswer, accepted,
    endpoint::{Endpoint, Raw, Target},
    request, unreadable, whole,
};

/// The routes of the control socket, asked directly. A cheap handle.
#[derive(Debug, Clone)]
pub struct Local(Router);

impl Local {
    pub const fn new(routes: Router) -> Self {
        Self(routes)
    }

    /// The routes themselves, to be offered elsewhere.
    pub fn routes(&self) -> Router {
        self.0.clone()
    }

    /// The answer of an endpoint to bytes as they are.
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
    pub async fn stream<E>(&self, at: impl Into<Target<E>>) -> Result<Response, ControlError>
    where
        E: Endpoint<Request = (), Response = Raw>,
    {
        let request = Request::builder().method(E::METHOD).uri(at.into().as_str());
        let request = request.header(header::HOST, "localhost").body(Body::empty());
        let request = request.map_err(unreadable)?;
        let Ok(response) = self.0.clone().oneshot(request).await;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(ControlError::Refused(Box::new(whole(response).await.map_err(unreadable)?.problem())))
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<RawAnswer, ControlError> {
        let Ok(response) = self.0.clone().oneshot(request(method, path, body)?.map(Body::new)).await;
        whole(response).await.map_err(unreadable)
    }
}
