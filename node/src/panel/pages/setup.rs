//! The first visit: the setup code, then a password.

use askama::Template;
use axum::{
    extract::{Extension, State},
    response::{IntoResponse, Redirect, Response},
};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use crate::{
    panel::{
        Panel, address_or_here,
        frame::{THEME_COOKIE, Theme},
        guard::{GuestForm, cookie},
        page::Html,
    },
    secret::SecretText,
    serve::ClientAddress,
};

use super::login::cookie_of;

#[derive(Template)]
#[template(path = "setup.html")]
struct Page {
    theme: Theme,
    code: String,
    problem: Option<String>,
}

pub(super) async fn show(State(panel): State<Panel>, headers: HeaderMap) -> Response {
    if panel.access().setup_code().is_none() {
        return Redirect::to("/panel").into_response();
    }
    let theme = Theme::named(cookie(&headers, THEME_COOKIE).unwrap_or_default());
    Html(&Page { theme, code: String::new(), problem: None }).into_response()
}

#[derive(Deserialize)]
pub(super) struct Fields {
    code: String,
    password: String,
    repeated: String,
}

pub(super) async fn set_up(
    State(panel): State<Panel>,
    from: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
    GuestForm(fields): GuestForm<Fields>,
) -> Response {
    let Fields { code, password, repeated } = fields;
    let outcome = if password == repeated {
        let from = address_or_here(from);
        panel.access().set_up(&code, SecretText::new(password), from).await.map_err(|error| error.to_string())
    } else {
        Err("The two passwords differ. Type the same one twice.".to_owned())
    };
    match outcome {
        Ok(token) => ([cookie_of(&token)], Redirect::to("/panel?welcome=1")).into_response(),
        Err(problem) => {
            let theme = Theme::named(cookie(&headers, THEME_COOKIE).unwrap_or_default());
            let page = Page { theme, code, problem: Some(problem) };
            (StatusCode::UNPROCESSABLE_ENTITY, Html(&page)).into_response()
        }
    }
}
