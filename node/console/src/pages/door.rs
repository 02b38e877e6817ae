//! Pages at the name that every program of this machine shares: staying there, and going on from there.

use askama::Template;
use axum::{
    Extension,
    extract::{Query, Request, State},
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, StatusCode, header};
use serde::Deserialize;

use super::login::log_in_here;
use crate::{
    ConsoleState,
    door::{Again, SharedName, is_plain, there},
    guard::session_of,
    headers::MayAsk,
    page::{Rendered, next_or_home},
};

#[derive(Deserialize)]
pub(in crate::pages) struct DoorParams {
    next: Option<String>,
    /// The name of what came of the set-up's form.
    #[serde(default)]
    answer: String,
}

/// The browser does not find the other name, or somebody led it here: it may log in, after another try.
pub(in crate::pages) async fn stay(
    State(panel): State<ConsoleState>,
    Query(asked): Query<DoorParams>,
    request: Request,
) -> Response {
    let next = next_or_home(asked.next.as_deref()).to_owned();
    let is_in = session_of(&panel, request.headers()).is_some();
    let Some(there) = there(&panel, &request).filter(|_| !is_in) else {
        return Redirect::to(&next).into_response();
    };
    let mut response =
        log_in_here(&panel, request.headers(), &asked.answer, Again { there: there.clone(), next });
    response.extensions_mut().insert(MayAsk(there));
    response
}

#[derive(Template)]
#[template(path = "enter.html")]
struct EnterPage {
    next: String,
}

/// Goes on from here: browsers send the cookie to a page that one of ours leads to, and to none that `localhost` does.
pub(in crate::pages) async fn enter(Query(asked): Query<DoorParams>) -> Response {
    Rendered(&EnterPage { next: next_or_home(asked.next.as_deref()).to_owned() }).into_response()
}

/// Says to the page at the shared name, and to no other, that this name is found.
pub(in crate::pages) async fn reached(shared: Option<Extension<SharedName>>, headers: HeaderMap) -> Response {
    let origin = headers.get(header::ORIGIN).filter(|origin| {
        let host = origin.to_str().ok().and_then(|origin| origin.strip_prefix("https://"));
        host.is_some_and(is_plain)
    });
    match (origin, shared) {
        (Some(origin), Some(Extension(SharedName(false)))) => {
            let allowed = [(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone())];
            (StatusCode::NO_CONTENT, allowed).into_response()
        }
        _ => StatusCode::NO_CONTENT.into_response(),
    }
}
