//! One exchange with an endpoint: a request out, the bytes of an answer in.
//!
//! Every program asks over HTTP. Where a test plays the chain, the same request goes to a function of the test.

use reqwest::StatusCode;
use url::Url;

#[cfg(feature = "played")]
use crate::played::PlayedEndpoint;

/// The most an endpoint may answer. A thousand logs take half a megabyte.
const ANSWER_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The way by which an endpoint is asked.
#[derive(Debug)]
pub(super) enum Way {
    Http(reqwest::Client),
    #[cfg(feature = "played")]
    Played(PlayedEndpoint),
}

impl Way {
    /// Asks once; the status and the body of the answer, or the reason that there is none.
    pub(super) async fn exchange(&self, url: &Url, body: String) -> Result<(StatusCode, Vec<u8>), String> {
        match self {
            Self::Http(client) => over_http(client, url, body).await,
            #[cfg(feature = "played")]
            Self::Played(endpoint) => endpoint.answer(body).await.map(|answer| (StatusCode::OK, answer)),
        }
    }
}

async fn over_http(
    client: &reqwest::Client,
    url: &Url,
    body: String,
) -> Result<(StatusCode, Vec<u8>), String> {
    let request = client.post(url.clone()).header("content-type", "application/json");
    let response = request.body(body).send().await.map_err(|error| describe(&error))?;
    let status = response.status();
    Ok((status, bounded_body(response).await?))
}

async fn bounded_body(mut response: reqwest::Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| describe(&error))? {
        if bytes.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(format!("answers more than {ANSWER_BYTES_MAX} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// A transport error by its innermost cause; reqwest's own text contains the URL.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if error.is_connect() {
        format!("cannot be reached ({})", innermost(cause, error))
    } else {
        format!("closed the connection early ({})", innermost(cause, error))
    }
}

fn innermost(cause: &dyn std::error::Error, error: &reqwest::Error) -> String {
    let is_outermost = cause.to_string() == error.to_string();
    if is_outermost { "no further cause".to_owned() } else { cause.to_string() }
}
