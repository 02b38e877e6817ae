//! The answer to a log-in or a set-up.

use axum::{
    Extension,
    response::{IntoResponse, Redirect, Response},
};

use crate::{access::NewSession, door::SharedName, guard::cookie_of};

/// Leads on to `next`, and hands the keys over behind the `#`, which browsers send to no server. At the name that all
/// programs share, none for changes is handed over: there the password does.
pub(super) fn entered(begun: &NewSession, next: &str, shared: Option<Extension<SharedName>>) -> Response {
    let next = next.split('#').next().unwrap_or_default();
    let is_shared = shared.is_some_and(|Extension(SharedName(shared))| shared);
    let key = (!is_shared).then(|| format!("key={}", begun.key.expose()));
    let device = begun.device.as_ref().map(|device| format!("device={}", device.expose()));
    let handed: Vec<String> = key.into_iter().chain(device).collect();
    let place = if handed.is_empty() { next.to_owned() } else { format!("{next}#{}", handed.join("&")) };
    ([cookie_of(&begun.token)], Redirect::to(&place)).into_response()
}
