//! `/api/v1`: the commands of the control socket for programs in a browser, behind the same log-in as the pages.
//!
//! A program logs in at `POST /api/v1/session` and gets the cookie and the key that every request has to carry as
//! `x-console-key`: a cookie alone, which browsers send to every port of this machine, opens nothing here. Errors are problem documents (RFC 9457).

use axum::{
    Json, Router,
    body::{Body, to_bytes},
    extract::{DefaultBodyLimit, Extension, Request, State},
    middleware::{Next, from_fn_with_state, map_response},
    response::{IntoResponse, Response},
};
use farthing_control::{
    endpoint::{self, Endpoint, Session, asks_for_password},
    types::{HEADER_PRICE, LogIn, LoggedIn, Problem, SetUp},
};
use farthing_os::{clock, secret::SecretText};
use farthing_serve::ClientAddress;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::Limited;

use super::{
    ConsoleState,
    access::{Asker, NewSession, Refused},
    failure::Failure,
    form::GUEST_BYTES_MAX,
    guard::{KEY_HEADER, cookie_of, session_of},
    password_first::wait_of,
};

const PREFIX: &str = "/api/v1";
/// Descriptions that are uploaded, with their schemas.
const UPLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Of a text that becomes a problem's detail.
const DETAIL_BYTES_MAX: usize = 4 * 1024;
const DESCRIBED: &str = "GET /api/v1/openapi.json describes what the address accepts.";

pub(super) fn routes(panel: &ConsoleState) -> Router<ConsoleState> {
    let commands = panel.node().routes().fallback(|| async { nothing_here() });
    let guarded = commands.layer(from_fn_with_state(panel.clone(), admit));
    Router::new()
        .nest(PREFIX, Session::router())
        .layer(DefaultBodyLimit::max(GUEST_BYTES_MAX))
        .nest_service(PREFIX, guarded)
        .layer(map_response(as_problem))
}

/// Turns what the framework refuses before a command sees it, a bare text or nothing at all, into a problem document:
/// programs get one for everything else as well. The answer of a service that was called stays as it is.
async fn as_problem(response: Response) -> Response {
    let status = response.status();
    let is_bare = |headers: &HeaderMap| {
        let kind = headers.get(header::CONTENT_TYPE);
        !headers.contains_key(HEADER_PRICE)
            && kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"))
    };
    if !(status.is_client_error() || status.is_server_error()) || !is_bare(response.headers()) {
        return response;
    }
    let (head, body) = response.into_parts();
    let text = to_bytes(body, DETAIL_BYTES_MAX).await.unwrap_or_default();
    let detail = match String::from_utf8_lossy(&text).trim() {
        "" if status == StatusCode::METHOD_NOT_ALLOWED => {
            "This address does not accept this method.".to_owned()
        }
        "" => status.canonical_reason().unwrap_or("It failed.").to_owned(),
        text => text.to_owned(),
    };
    let mut response = problem(status, &detail, DESCRIBED);
    if let Some(methods) = head.headers.get(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, methods.clone());
    }
    response
}

farthing_control::answer!(ConsoleState, SetUp, set_up);
async fn set_up(
    State(panel): State<ConsoleState>,
    from: Option<Extension<ClientAddress>>,
    Json(fields): Json<SetUp>,
) -> Response {
    let from = super::address_or_here(from);
    let begun = panel.access().set_up(&fields.code, SecretText::new(fields.password), from).await;
    logged_in(begun)
}

farthing_control::answer!(ConsoleState, LogIn, log_in);
async fn log_in(
    State(panel): State<ConsoleState>,
    from: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
    Json(fields): Json<LogIn>,
) -> Response {
    let had = session_of(&panel, &headers);
    let from = Asker { address: super::address_or_here(from), device: fields.device };
    let begun = panel.access().log_in(SecretText::new(fields.password), had.as_ref(), from).await;
    logged_in(begun)
}

fn logged_in(begun: Result<NewSession, Refused>) -> Response {
    match begun {
        Ok(NewSession { token, key, device }) => {
            let key = key.expose().to_owned();
            let device = device.map(|device| device.expose().to_owned());
            ([cookie_of(&token)], Json(LoggedIn { key, device })).into_response()
        }
        Err(refused) => {
            let status = match refused {
                Refused::Wait(_) | Refused::Busy => StatusCode::TOO_MANY_REQUESTS,
                Refused::NotSetUp | Refused::SetUpAlready => StatusCode::CONFLICT,
                Refused::Unfit(_) => StatusCode::UNPROCESSABLE_ENTITY,
                Refused::NotStored(..) | Refused::System => StatusCode::INTERNAL_SERVER_ERROR,
                _ => StatusCode::UNAUTHORIZED,
            };
            let Some(wait_secs) = wait_of(&refused) else {
                return problem(status, &refused.to_string(), "Nothing was changed.");
            };
            let mut response = problem(
                status,
                &refused.to_string(),
                "Wait as long as `Retry-After` says; nothing was changed.",
            );
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait_secs));
            response
        }
    }
}

/// Only somebody logged in who has the session's key, and what is dangerous only with a fresh password.
async fn admit(State(panel): State<ConsoleState>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let Some(session) = session_of(&panel, headers) else {
        return problem(
            StatusCode::UNAUTHORIZED,
            "You are not logged in.",
            "POST the password to /api/v1/session, and send the cookie that it sets.",
        );
    };
    let key = headers.get(KEY_HEADER).and_then(|value| value.to_str().ok());
    if !is_public(request.method(), path_of(&request)) && !key.is_some_and(|key| session.has_key(key)) {
        return problem(
            StatusCode::FORBIDDEN,
            "The header x-console-key is missing or belongs to another session.",
            "Send the `key` that POST /api/v1/session returned.",
        );
    }
    if asks_for_password(request.method(), path_of(&request))
        && session.reauthenticated(clock::now_secs()).is_none()
    {
        return problem(
            StatusCode::FORBIDDEN,
            "The password was entered too long ago for this.",
            "POST it to /api/v1/session again.",
        );
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: u64| length > UPLOAD_BYTES_MAX as u64) {
        return problem(StatusCode::PAYLOAD_TOO_LARGE, "The request is larger than 16 MiB.", "Send less.");
    }
    let (head, body) = request.into_parts();
    let kind = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
        let body = Body::new(Limited::new(body, UPLOAD_BYTES_MAX));
        return next.run(Request::from_parts(head, body)).await;
    }
    let Ok(text) = to_bytes(body, UPLOAD_BYTES_MAX).await else {
        return problem(StatusCode::PAYLOAD_TOO_LARGE, "The request is larger than 16 MiB.", "Send less.");
    };
    // The members of an object would be taken from an array by their order, which nobody means.
    if text.trim_ascii_start().first() == Some(&b'[') {
        return problem(
            StatusCode::UNPROCESSABLE_ENTITY,
            "The body is an array, but it must be an object.",
            DESCRIBED,
        );
    }
    next.run(Request::from_parts(head, Body::from(text))).await
}

/// The description of the API says the same on every node, so pages may lead to it.
fn is_public(method: &Method, path: &str) -> bool {
    method == Method::GET && path == endpoint::Document::PATH
}

/// Below the API's root.
fn path_of(request: &Request) -> &str {
    let path = request.uri().path();
    path.strip_prefix(PREFIX).unwrap_or(path)
}

/// Answers a program that a check before every route refuses.
pub(super) fn refused(failure: Failure) -> Response {
    match failure {
        Failure::Said(said) => problem(said.status, &said.detail, &said.next),
        other => other.into_response(),
    }
}

fn nothing_here() -> Response {
    problem(StatusCode::NOT_FOUND, "This address does not exist.", "GET /api/v1/openapi.json lists them all.")
}

pub(super) fn other_method() -> Response {
    problem(StatusCode::METHOD_NOT_ALLOWED, "This address does not accept this method.", DESCRIBED)
}

/// Returns whether a request is a program's.
pub(super) fn is_asked(path: &str) -> bool {
    path.starts_with(PREFIX)
}

fn problem(status: StatusCode, detail: &str, next: &str) -> Response {
    Problem::of_status(status, detail, next).into_response()
}
