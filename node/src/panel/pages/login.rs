//! Logging in and out, and entering the password again before something dangerous.

use askama::Template;
use axum::{
    extract::{Extension, Query, State},
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, HeaderName, StatusCode, header};
use serde::Deserialize;

use crate::{
    panel::{
        Panel,
        access::{ABSOLUTE_SECS, Refused, Session, Token},
        address_or_here,
        failure::Failure,
        frame::{THEME_COOKIE, Theme},
        guard::{COOKIE, Form, GuestForm, cookie, session_of},
        page::{Html, next_or_home},
    },
    secret::SecretText,
    serve::ClientAddress,
};

#[derive(Template)]
#[template(path = "login.html")]
struct Page {
    theme: Theme,
    /// Of the session, when the password is only entered again.
    csrf: Option<String>,
    next: String,
    problem: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Asked {
    next: Option<String>,
}

impl Page {
    fn new(headers: &HeaderMap, csrf: Option<&Session>, next: Option<&str>) -> Self {
        Self {
            theme: Theme::named(cookie(headers, THEME_COOKIE).unwrap_or_default()),
            csrf: csrf.map(|session| session.csrf().to_owned()),
            next: next_or_home(next).to_owned(),
            problem: None,
        }
    }

    fn refused(mut self, refused: &Refused) -> Response {
        self.problem = Some(refused.to_string());
        let status = match refused {
            Refused::Wait(_) => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let mut response = (status, Html(&self)).into_response();
        if let Refused::Wait(left) = refused {
            let secs = left.as_secs().max(1);
            response.headers_mut().insert(header::RETRY_AFTER, secs.into());
        }
        response
    }
}

/// The cookie that holds a session's token.
pub(in crate::panel) fn cookie_of(token: &Token) -> (HeaderName, String) {
    let token = token.expose();
    let value =
        format!("{COOKIE}={token}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={ABSOLUTE_SECS}");
    (header::SET_COOKIE, value)
}

pub(super) async fn show(
    State(panel): State<Panel>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    if panel.access().setup_code().is_some() {
        return Err(Failure::NotSetUp);
    }
    if session_of(&panel, &headers).is_some() {
        return Ok(Redirect::to(next_or_home(asked.next.as_deref())).into_response());
    }
    Ok(Html(&Page::new(&headers, None, asked.next.as_deref())).into_response())
}

#[derive(Deserialize)]
pub(super) struct Fields {
    password: String,
    next: Option<String>,
}

pub(super) async fn log_in(
    State(panel): State<Panel>,
    from: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
    GuestForm(fields): GuestForm<Fields>,
) -> Response {
    let had = session_of(&panel, &headers);
    let from = address_or_here(from);
    match panel.access().log_in(SecretText::new(fields.password), had.as_ref(), from).await {
        Ok(token) => {
            ([cookie_of(&token)], Redirect::to(next_or_home(fields.next.as_deref()))).into_response()
        }
        Err(Refused::NotSetUp) => Failure::NotSetUp.into_response(),
        Err(refused) => Page::new(&headers, None, fields.next.as_deref()).refused(&refused),
    }
}

pub(super) async fn show_again(session: Session, Query(asked): Query<Asked>, headers: HeaderMap) -> Response {
    Html(&Page::new(&headers, Some(&session), asked.next.as_deref())).into_response()
}

pub(super) async fn enter_again(
    State(panel): State<Panel>,
    from: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
    Form { visit, fields }: Form<Fields>,
) -> Response {
    let from = address_or_here(from);
    match panel.access().reauthenticate(&visit.session, SecretText::new(fields.password), from).await {
        Ok(()) => Redirect::to(next_or_home(fields.next.as_deref())).into_response(),
        Err(refused) => Page::new(&headers, Some(&visit.session), fields.next.as_deref()).refused(&refused),
    }
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

pub(super) async fn log_out(State(panel): State<Panel>, form: Form<Nothing>) -> Response {
    panel.access().log_out(&form.visit.session).await;
    let gone = format!("{COOKIE}=; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=0");
    ([(header::SET_COOKIE, gone)], Redirect::to("/panel/login")).into_response()
}
