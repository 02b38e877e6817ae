//! Light, dark or as the system is: kept in a cookie of this browser.

use axum::response::{IntoResponse, Redirect, Response};
use http::header;
use serde::Deserialize;

use crate::{
    form::HarmlessForm,
    page::next_or_home,
    theme::{THEME_COOKIE, Theme},
};

const YEAR_SECS: u64 = 365 * 24 * 3600;

#[derive(Deserialize)]
pub(super) struct AppearanceFields {
    theme: String,
    next: Option<String>,
}

pub(super) async fn choose_theme(HarmlessForm { fields, .. }: HarmlessForm<AppearanceFields>) -> Response {
    let theme = Theme::named(&fields.theme).name();
    let cookie =
        format!("{THEME_COOKIE}={theme}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={YEAR_SECS}");
    ([(header::SET_COOKIE, cookie)], Redirect::to(next_or_home(fields.next.as_deref()))).into_response()
}
