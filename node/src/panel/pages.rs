//! The pages, one file each. A handler asks the node, shapes what the template shows, and renders it.

use axum::{
    Router,
    extract::{DefaultBodyLimit, State},
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use http::header;

use super::{Panel, failure::Failure};

mod activity;
mod appearance;
mod catalog;
mod events;
mod help;
mod home;
mod login;
mod network;
mod password;
mod sandbox;
mod service;
mod setup;

pub(super) use login::cookie_of;

/// Forms here are a few lines; pages that take files say so themselves.
const FORM_BYTES_MAX: usize = 64 * 1024;

pub(super) fn routes() -> Router<Panel> {
    Router::new()
        .route("/", get(|| async { Redirect::to("/panel") }))
        .route("/ca.pem", get(authority))
        .route("/panel", get(home::show))
        .route("/panel/", get(|| async { Redirect::to("/panel") }))
        .route("/panel/setup", get(setup::show).post(setup::set_up))
        .route("/panel/login", get(login::show).post(login::log_in))
        .route("/panel/password-again", get(login::show_again).post(login::enter_again))
        .route("/panel/logout", post(login::log_out))
        .route("/panel/password", get(password::show).post(password::change))
        .route("/panel/theme", post(appearance::choose_theme))
        .route("/panel/catalog", get(catalog::show))
        .route("/panel/catalog/{id}", get(service::show))
        .route("/panel/catalog/{id}/openapi.json", get(service::openapi))
        .route(
            "/panel/catalog/{id}/sandbox",
            get(sandbox::show)
                .merge(post(sandbox::act).layer(DefaultBodyLimit::max(sandbox::FORM_BYTES_MAX))),
        )
        .route("/panel/catalog/{id}/sandbox/answer", get(sandbox::download))
        .route("/panel/activity", get(activity::show))
        .route("/panel/network", get(network::show))
        .route("/panel/network/test", post(network::test))
        .route("/panel/help", get(help::list))
        .route("/panel/help/{name}", get(help::show))
        .route("/panel/events", get(events::stream))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
}

pub(super) async fn not_found() -> Failure {
    Failure::not_found()
}

/// The node's own authority, for browsers and programs to trust.
async fn authority(State(panel): State<Panel>) -> Response {
    match &panel.0.parts.ca_pem {
        Some(pem) => {
            let headers = [
                (header::CONTENT_TYPE, "application/x-pem-file"),
                (header::CONTENT_DISPOSITION, "attachment; filename=\"farthing-ca.pem\""),
            ];
            (headers, pem.clone()).into_response()
        }
        None => Failure::not_found().into_response(),
    }
}
