//! Logging in and out.

use askama::Template;
use axum::{
    extract::{Extension, Query, State},
    response::{IntoResponse, Redirect, Response},
};
use farthing_os::secret::SecretText;
use farthing_serve::ClientAddress;
use http::{HeaderMap, header};
use serde::Deserialize;

use crate::{
    ConsoleState,
    access::{Asker, NewSession, Refused},
    address_or_here,
    door::{Again, SharedName},
    failure::{Failure, Page},
    form::{GuestForm, HarmlessForm, NoFields},
    guard::{COOKIE, cookie, session_of},
    held_forms::HeldForm,
    page::{Rendered, next_or_home},
    password_first::not_taken,
    theme::{THEME_COOKIE, Theme},
};

use super::{draft, entered::entered, setup};

#[derive(Template)]
#[template(path = "login.html")]
struct LoginTemplate {
    theme: Theme,
    next: String,
    /// A form that waits for the log-in, as [`HeldForm`] writes it.
    held: String,
    /// The log-in of before has ended.
    has_ended: bool,
    problem: Option<String>,
    again: Option<Again>,
}

#[derive(Deserialize)]
pub(super) struct LoginParams {
    next: Option<String>,
    ended: Option<String>,
}

impl LoginTemplate {
    fn new(headers: &HeaderMap, next: Option<&str>) -> Self {
        Self {
            theme: Theme::named(cookie(headers, THEME_COOKIE).unwrap_or_default()),
            next: next_or_home(next).to_owned(),
            held: String::new(),
            has_ended: false,
            problem: None,
            again: None,
        }
    }

    fn refused(mut self, refused: &Refused) -> Response {
        self.problem = Some(refused.to_string());
        not_taken(&self, refused)
    }
}

pub(super) async fn show(
    State(panel): State<ConsoleState>,
    Query(asked): Query<LoginParams>,
    headers: HeaderMap,
) -> Page {
    if panel.access().setup_code().is_some() {
        return Err(Failure::NotSetUp);
    }
    if session_of(&panel, &headers).is_some() {
        return Ok(Redirect::to(next_or_home(asked.next.as_deref())).into_response());
    }
    let page = LoginTemplate::new(&headers, asked.next.as_deref());
    Ok(Rendered(&LoginTemplate { has_ended: asked.ended.is_some(), ..page }).into_response())
}

/// At the name that all programs share: where the other one is not found, one logs in or sets up here.
pub(crate) fn log_in_here(panel: &ConsoleState, headers: &HeaderMap, answer: &str, again: Again) -> Response {
    if panel.access().setup_code().is_some() {
        return setup::page(panel, headers, answer, Some(again));
    }
    let page = LoginTemplate::new(headers, Some(&again.next));
    Rendered(&LoginTemplate { again: Some(again), ..page }).into_response()
}

#[derive(Deserialize)]
pub(super) struct LoginFields {
    password: String,
    next: Option<String>,
    /// Filled in by `key.js`.
    #[serde(default)]
    device: String,
    /// A form that waits for the log-in.
    #[serde(default)]
    held: String,
}

pub(super) async fn log_in(
    State(panel): State<ConsoleState>,
    from: Option<Extension<ClientAddress>>,
    shared: Option<Extension<SharedName>>,
    headers: HeaderMap,
    GuestForm(fields): GuestForm<LoginFields>,
) -> Response {
    let had = session_of(&panel, &headers);
    let from = Asker { address: address_or_here(from), device: fields.device };
    match panel.access().log_in(SecretText::new(fields.password), had.as_ref(), from).await {
        Ok(begun) => {
            let place = draft_of(&panel, &begun, &fields.held);
            entered(&begun, place.as_deref().unwrap_or(next_or_home(fields.next.as_deref())), shared)
        }
        Err(Refused::NotSetUp) => Failure::NotSetUp.into_response(),
        Err(refused) => {
            let page = LoginTemplate::new(&headers, fields.next.as_deref());
            LoginTemplate { held: fields.held, ..page }.refused(&refused)
        }
    }
}

/// Keeps a form that came with the log-in for its session, and returns the page that offers to send it.
fn draft_of(panel: &ConsoleState, begun: &NewSession, held: &str) -> Option<String> {
    let form = HeldForm::read(held)?;
    let name = panel.held().0.put(begun.token.id(), held.len(), form).ok()?;
    Some(draft::address(&name))
}

/// Without a key: ending a session gives nothing away.
pub(super) async fn log_out(State(panel): State<ConsoleState>, form: HarmlessForm<NoFields>) -> Response {
    panel.access().log_out(&form.visit.session).await;
    let gone = format!("{COOKIE}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");
    ([(header::SET_COOKIE, gone)], Redirect::to("/panel/login")).into_response()
}
