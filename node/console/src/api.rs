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
    routing::post,
};
use farthing_control::types::{HEADER_PRICE, LogIn, LoggedIn, Problem, SetUp, route};
use farthing_os::{clock, secret::SecretText};
use farthing_serve::ClientAddress;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::Limited;
use utoipa::OpenApi;

use super::{
    Panel,
    access::{Asker, Begun, Refused},
    failure::Failure,
    form::wait_of,
    guard::{KEY_HEADER, session_of},
    pages::cookie_of,
};

const PREFIX: &str = "/api/v1";
/// Descriptions that are uploaded, with their schemas.
const UPLOAD_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Of a text that becomes a problem's detail.
const DETAIL_BYTES_MAX: usize = 4 * 1024;
const DESCRIBED: &str = "GET /api/v1/openapi.json describes what the address takes.";

/// What asks for the password again: it moves money, shows a secret, or cannot be undone.
const DANGEROUS: [(Method, &str); 32] = [
    (Method::POST, "/wallet/send"),
    (Method::POST, "/channels"),
    (Method::POST, "/channels/{id}/close"),
    (Method::POST, "/channels/{id}/resume"),
    (Method::POST, "/wallet/phrase"),
    (Method::POST, "/wallet/phrase/check"),
    (Method::POST, "/backups/upload"),
    (Method::POST, "/backups/{name}/verify"),
    (Method::POST, "/backups/{name}/restore"),
    (Method::POST, "/chain/settings"),
    (Method::POST, "/restart"),
    (Method::POST, "/spending/resume"),
    (Method::POST, "/spending/limits"),
    (Method::POST, "/spending/accept"),
    (Method::POST, "/spending/flagged"),
    (Method::POST, "/alerts/levels"),
    (Method::POST, "/backups"),
    (Method::GET, "/backups/{name}"),
    (Method::POST, "/automatic-backups"),
    (Method::DELETE, "/replaced-nodes/{name}"),
    (Method::GET, "/secret"),
    (Method::POST, "/secret/rotate"),
    (Method::POST, "/secrets"),
    (Method::GET, "/secrets/{name}"),
    (Method::DELETE, "/secrets/{name}"),
    (Method::POST, "/secrets/{name}/limits"),
    (Method::POST, "/secrets/{name}/rotate"),
    (Method::DELETE, "/apis/{id}"),
    // They send the owner's keys to a server that the request names, or decide which one gets them.
    (Method::POST, "/apis"),
    (Method::POST, "/apis/try"),
    (Method::POST, "/apis/{id}/edit"),
    (Method::POST, "/apis/{id}/rescan"),
];

/// Who is not logged in sends a password, and anybody may do that many times at once.
pub(super) const GUEST_BYTES_MAX: usize = 8 * 1024;

/// What this port alone offers: whoever may use the control socket needs no password.
#[derive(OpenApi)]
#[openapi(paths(set_up, log_in))]
struct Described;

/// The addresses that this port has beside the commands.
#[must_use]
pub fn described() -> utoipa::openapi::OpenApi {
    Described::openapi()
}

pub(super) fn routes(panel: &Panel) -> Router<Panel> {
    let commands = panel.node().routes().fallback(|| async { nothing_here() });
    let guarded = commands.layer(from_fn_with_state(panel.clone(), admit));
    Router::new()
        .route("/api/v1/setup", post(set_up))
        .route("/api/v1/session", post(log_in))
        .layer(DefaultBodyLimit::max(GUEST_BYTES_MAX))
        .nest_service(PREFIX, guarded)
        .layer(map_response(as_problem))
}

/// What the framework refuses before a command sees it is a bare text or nothing at all. Programs get a problem document
/// as for everything else. The answer of a service that was called stays as it is.
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
        "" if status == StatusCode::METHOD_NOT_ALLOWED => "The address takes another method.".to_owned(),
        "" => status.canonical_reason().unwrap_or("It failed.").to_owned(),
        text => text.to_owned(),
    };
    let mut response = problem(status, &detail, DESCRIBED);
    if let Some(methods) = head.headers.get(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, methods.clone());
    }
    response
}

#[utoipa::path(
    post,
    path = "/setup",
    summary = "Choose the console's first password with the setup code; logs in as /session does",
    tag = "Session",
    request_body = SetUp,
    responses((status = 200, description = "Done", body = LoggedIn))
)]
async fn set_up(
    State(panel): State<Panel>,
    from: Option<Extension<ClientAddress>>,
    Json(fields): Json<SetUp>,
) -> Response {
    let from = super::address_or_here(from);
    let begun = panel.access().set_up(&fields.code, SecretText::new(fields.password), from).await;
    logged_in(begun)
}

#[utoipa::path(
    post,
    path = "/session",
    summary = "Log in: sets the cookie, and answers the key that every request has to carry as x-console-key",
    tag = "Session",
    request_body = LogIn,
    responses((status = 200, description = "Done", body = LoggedIn))
)]
async fn log_in(
    State(panel): State<Panel>,
    from: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
    Json(fields): Json<LogIn>,
) -> Response {
    let had = session_of(&panel, &headers);
    let from = Asker { address: super::address_or_here(from), device: fields.device };
    let begun = panel.access().log_in(SecretText::new(fields.password), had.as_ref(), from).await;
    logged_in(begun)
}

fn logged_in(begun: Result<Begun, Refused>) -> Response {
    match begun {
        Ok(Begun { token, key, device }) => {
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
async fn admit(State(panel): State<Panel>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let Some(session) = session_of(&panel, headers) else {
        return problem(
            StatusCode::UNAUTHORIZED,
            "Nobody is logged in.",
            "POST the password to /api/v1/session, and send the cookie that it sets.",
        );
    };
    let key = headers.get(KEY_HEADER).and_then(|value| value.to_str().ok());
    if !is_public(request.method(), request.uri().path()) && !key.is_some_and(|key| session.has_key(key)) {
        return problem(
            StatusCode::FORBIDDEN,
            "The header x-console-key is missing or of another session.",
            "Send the `key` that POST /api/v1/session answered.",
        );
    }
    if is_dangerous(request.method(), request.uri().path())
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
            "The body is an array; an object is expected.",
            DESCRIBED,
        );
    }
    next.run(Request::from_parts(head, Body::from(text))).await
}

/// The description of the API says the same on every node, so pages may lead to it.
fn is_public(method: &Method, path: &str) -> bool {
    method == Method::GET && path.strip_prefix(PREFIX).unwrap_or(path) == route::OPENAPI
}

fn is_dangerous(method: &Method, path: &str) -> bool {
    let path = path.strip_prefix(PREFIX).unwrap_or(path);
    // A HEAD is carried out as the GET that it asks the head of.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    DANGEROUS.iter().any(|(dangerous, pattern)| dangerous == method && fits(pattern, path))
}

/// Whether a path has the segments of a pattern; a trailing slash is no way around.
fn fits(pattern: &str, path: &str) -> bool {
    let (mut pattern, mut path) = (pattern.split('/'), path.trim_end_matches('/').split('/'));
    loop {
        match (pattern.next(), path.next()) {
            (None, None) => return true,
            (Some(pattern), Some(_)) if pattern.starts_with('{') => {}
            (Some(expected), Some(segment)) if expected == segment => {}
            _ => return false,
        }
    }
}

/// What stands before every route says to programs.
pub(super) fn refused(failure: Failure) -> Response {
    match failure {
        Failure::Said(said) => problem(said.status, &said.detail, &said.next),
        other => other.into_response(),
    }
}

fn nothing_here() -> Response {
    problem(StatusCode::NOT_FOUND, "There is no such address.", "GET /api/v1/openapi.json lists them all.")
}

pub(super) fn other_method() -> Response {
    problem(StatusCode::METHOD_NOT_ALLOWED, "The address takes another method.", DESCRIBED)
}

/// Whether a request is a program's.
pub(super) fn is_asked(path: &str) -> bool {
    path.starts_with(PREFIX)
}

fn problem(status: StatusCode, detail: &str, next: &str) -> Response {
    Problem::of_status(status, detail, next).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dangerous_is_so_under_every_spelling_that_a_route_takes() {
        for (method, path, dangerous) in [
            (Method::POST, "/wallet/send", true),
            (Method::POST, "/api/v1/wallet/send", true),
            (Method::POST, "/wallet/send/", true),
            (Method::GET, "/secret", true),
            (Method::GET, "/secrets", false),
            (Method::GET, "/secrets/dashboard", true),
            (Method::GET, "/secrets/dash%62oard", true),
            (Method::POST, "/secrets/dashboard/rotate", true),
            (Method::POST, "/spending/stop", false),
            (Method::POST, "/spending/resume", true),
            (Method::POST, "/spending/accept", true),
            (Method::POST, "/spending/flagged", true),
            (Method::GET, "/spending/flagged", false),
            (Method::DELETE, "/apis/0b5f2a3e", true),
            (Method::GET, "/apis/0b5f2a3e", false),
            (Method::POST, "/apis/0b5f2a3e/pause", false),
            (Method::GET, "/wallet", false),
            (Method::GET, "/wallet/backup", false),
            (Method::POST, "/wallet/phrase", true),
            (Method::POST, "/backups/farthing-x.backup/restore", true),
            (Method::POST, "/restart", true),
            (Method::GET, "/automatic-backups", false),
            (Method::POST, "/automatic-backups", true),
            (Method::DELETE, "/replaced-nodes/replaced-x", true),
            (Method::GET, "/chain/settings", false),
        ] {
            assert_eq!(is_dangerous(&method, path), dangerous, "{method} {path}");
        }
    }
}
