//! The commands from inside the node: the console asks what the command line asks, without a socket between.

use axum::{Router, body::Body, response::Response};
use bytes::Bytes;
use http::{Method, Request, header, response::Parts};
use http_body_util::{BodyExt, Full, Limited};
use serde::{Serialize, de::DeserializeOwned};
use tower::ServiceExt;

use super::{ANSWER_BYTES_MAX, ControlError, RawAnswer, accepted, json};

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

    /// # Errors
    /// [`ControlError`]; a status of 400 or above is [`ControlError::Refused`].
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ControlError> {
        accepted(&self.send(Method::GET, path, Bytes::new()).await?)
    }

    /// # Errors
    /// As [`Local::get`].
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ControlError> {
        accepted(&self.send(Method::POST, path, json(body)?).await?)
    }

    /// # Errors
    /// As [`Local::get`].
    pub async fn delete<T: DeserializeOwned>(&self, path: &str) -> Result<T, ControlError> {
        accepted(&self.send(Method::DELETE, path, Bytes::new()).await?)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// As [`Local::get`].
    pub async fn send_as<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<T, ControlError> {
        accepted(&self.send(method, path, body).await?)
    }

    /// The answer to a GET as it comes, to be handed on piece by piece.
    ///
    /// # Errors
    /// When the path is none.
    pub async fn stream(&self, path: &str) -> Result<Response, ControlError> {
        let request = Request::get(path).header(header::HOST, "localhost").body(Body::empty());
        let request = request.map_err(|error| ControlError::Unreadable(error.to_string()))?;
        let Ok(response) = self.0.clone().oneshot(request).await;
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        Err(ControlError::Refused(Box::new(read_whole(head, body).await?.problem())))
    }

    /// The answer as it came, whatever its status.
    ///
    /// # Errors
    /// When there is none that fits.
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<RawAnswer, ControlError> {
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
