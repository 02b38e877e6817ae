//! The pages, one file each. A handler asks the node, shapes what the template shows, and renders it.

use axum::{
    Router,
    body::to_bytes,
    extract::{DefaultBodyLimit, State},
    middleware::map_response,
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use farthing_serve::attachment;
use http::{HeaderValue, Uri, header};

use super::{
    ConsoleState, api,
    failure::Failure,
    form::{self, upload::UPLOAD_BYTES_MAX},
};

mod activity;
mod apis;
mod appearance;
mod catalog;
#[cfg(debug_assertions)]
mod design;
mod door;
mod draft;
mod entered;
mod events;
mod finance;
mod help;
mod home;
mod login;
mod network;
mod operations;
mod owner;
mod password;
mod petnames;
mod reference;
mod register;
mod sandbox;
mod saved;
mod sdk;
mod service;
mod settings;
mod setup;
mod x402;

pub(super) use events::Looks;
pub(super) use finance::send::Orders;
pub(super) use register::Drafts;
pub(super) use setup::SetupAnswers;

/// Forms here are a few lines; pages that take texts or files say so themselves.
const FORM_BYTES_MAX: usize = 64 * 1024;
/// Of a text that is shown as a page.
const DETAIL_BYTES_MAX: usize = 4 * 1024;
/// A long description, percent-encoded.
const TEXT_BYTES_MAX: usize = 1024 * 1024;

pub(super) fn routes() -> Router<ConsoleState> {
    let guest = || DefaultBodyLimit::max(form::GUEST_BYTES_MAX);
    Router::new()
        .route("/", get(|| async { Redirect::to("/panel") }))
        .route("/ca.pem", get(authority))
        .route("/reached", get(door::reached))
        .route("/panel/stay", get(door::stay))
        .route("/panel/enter", get(door::enter))
        .route("/panel", get(home::show))
        .route("/panel/", get(|| async { Redirect::to("/panel") }))
        .route("/panel/setup", get(setup::show).post(setup::set_up).layer(guest()))
        .merge(first_steps())
        .route("/panel/login", get(login::show).post(login::log_in).layer(guest()))
        .route("/panel/logout", post(login::log_out))
        .route("/panel/password", get(password::show).post(password::change))
        .route("/panel/theme", post(appearance::choose_theme))
        .route("/panel/draft", get(draft::show))
        .route("/panel/catalog", get(catalog::show))
        .route("/panel/catalog/{id}", get(service::show))
        .route("/panel/catalog/{id}/star", post(service::star))
        .route("/panel/catalog/{id}/openapi.json", get(service::openapi))
        .route("/panel/catalog/{id}/reference", get(reference::show))
        .route(
            "/panel/catalog/{id}/sandbox",
            get(sandbox::show)
                .merge(post(sandbox::act).layer(DefaultBodyLimit::max(sandbox::FILES_FORM_BYTES_MAX))),
        )
        .route("/panel/catalog/{id}/sandbox/answer", get(sandbox::download))
        .route("/panel/catalog/{id}/sandbox/preview", get(sandbox::preview))
        .route("/panel/catalog/{id}/sandbox/cancel", post(sandbox::cancel))
        .route("/panel/owners/{wallet}", get(owner::show))
        .route("/panel/owners/{wallet}/name", post(owner::name))
        .route("/panel/saved", get(saved::show).post(saved::change))
        .route("/panel/catalog/{id}/sdk", get(sdk::show))
        .route("/panel/catalog/{id}/sdk/file", get(sdk::file))
        .route("/panel/catalog/{id}/sdk/archive", get(sdk::archive))
        .route("/panel/finance", get(finance::show))
        .route("/panel/finance/claim", post(finance::settle))
        .route("/panel/finance/channels/{id}/close", get(finance::close_page).post(finance::close))
        .route("/panel/finance/send", get(finance::send::show).post(finance::send::ask))
        .route("/panel/finance/send/{order}", get(finance::send::show_order).post(finance::send::send))
        .merge(money())
        .route("/panel/settings", get(settings::show))
        .route("/panel/settings/secret", get(settings::secret_page).post(settings::show_secret))
        .route("/panel/settings/secret/rotate", get(settings::rotate_page).post(settings::rotate_secret))
        .route("/panel/settings/log-out-others", post(settings::log_out_others))
        .route("/panel/settings/configuration", get(settings::configuration))
        .route("/panel/settings/diagnostics", get(settings::diagnostics))
        .route("/panel/settings/operations", get(settings::operations))
        .route("/panel/activity", get(activity::log::show))
        .route("/panel/activity/{key}", get(activity::one::show))
        .route("/panel/activity/{key}/cancel", post(activity::one::cancel))
        .route("/panel/network", get(network::show))
        .route("/panel/network/test", post(network::test))
        .route("/panel/help", get(help::list))
        .route("/panel/help/{name}", get(help::show))
        .route("/panel/events", get(events::stream))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .merge(apis())
        .merge(foreign())
        .merge(kept())
        .merge(development())
        .layer(map_response(as_page))
}

/// Shows as a page what the framework refuses with a bare text before a page sees it, such as a number that is none.
async fn as_page(response: Response) -> Response {
    let status = response.status();
    let is_bare = |kind: &HeaderValue| kind.as_bytes().starts_with(b"text/plain");
    if !status.is_client_error() || !response.headers().get(header::CONTENT_TYPE).is_some_and(is_bare) {
        return response;
    }
    let text = to_bytes(response.into_body(), DETAIL_BYTES_MAX).await.unwrap_or_default();
    Failure::refused(status, String::from_utf8_lossy(&text)).into_response()
}

/// Routes the pages that follow the first password, one for each step.
fn first_steps() -> Router<ConsoleState> {
    use setup::{call, fund, reach, words};
    Router::new()
        .route("/panel/setup/words", get(words::show).post(words::reveal))
        .route("/panel/setup/words/check", get(words::quiz).post(words::check))
        .route("/panel/setup/fund", get(fund::show))
        .route("/panel/setup/reach", get(reach::show).post(reach::test))
        .route("/panel/setup/call", get(call::show))
}

/// Routes the pages of what the node can be restored from, and of what it starts with.
fn kept() -> Router<ConsoleState> {
    use settings::{backup, chain, phrase};
    let file = DefaultBodyLimit::max(backup::UPLOAD_BYTES_MAX);
    Router::new()
        .route("/panel/settings/phrase", get(phrase::ask).post(phrase::show))
        .route("/panel/settings/phrase/check", get(phrase::quiz).post(phrase::check))
        .route("/panel/settings/backup", get(backup::list).post(backup::make))
        .route("/panel/settings/backup/daily", post(backup::kept::daily))
        .route("/panel/settings/replaced/{name}", post(backup::kept::forget))
        .route("/panel/settings/backup/{name}", get(backup::one).post(backup::open))
        .route("/panel/settings/backup/{name}/download", post(backup::download))
        .route("/panel/settings/chain", get(chain::show).post(chain::set))
        .route("/panel/settings/restart", post(backup::restart))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
        .route("/panel/settings/backup/upload", post(backup::upload).layer(file))
}

/// Routes the pages on money: what is spent, by whom, and what came of it.
fn money() -> Router<ConsoleState> {
    use finance::{alerts, approvals, history, limits};
    use settings::secrets;
    Router::new()
        .route("/panel/finance/limits", get(limits::show).post(limits::set))
        .route("/panel/finance/stop", post(limits::stop))
        .route("/panel/finance/resume", post(limits::resume))
        .route("/panel/finance/accept", post(limits::accept))
        .route("/panel/finance/flagged", post(limits::flag))
        .route("/panel/finance/history", get(history::show))
        .route("/panel/finance/history.csv", get(history::export))
        .route("/panel/finance/history.json", get(history::export_json))
        .route("/panel/finance/settlements/{id}", get(history::settlement))
        .route("/panel/finance/approvals", get(approvals::show))
        .route("/panel/finance/approvals/approve", post(approvals::approve))
        .route("/panel/finance/approvals/refuse", post(approvals::refuse))
        .route("/panel/finance/alerts", get(alerts::show).post(alerts::set))
        .route("/panel/finance/alerts/test", post(alerts::test))
        .route("/panel/settings/secrets", get(secrets::list).post(secrets::create))
        .route("/panel/settings/secrets/{name}", get(secrets::show).post(secrets::limit))
        .route("/panel/settings/secrets/{name}/show", post(secrets::reveal))
        .route("/panel/settings/secrets/{name}/rotate", post(secrets::rotate))
        .route("/panel/settings/secrets/{name}/revoke", post(secrets::revoke))
}

/// Routes the pages of x402 servers that this node buys from.
fn foreign() -> Router<ConsoleState> {
    Router::new()
        .route("/panel/x402", get(x402::show).post(x402::look))
        .route("/panel/x402/add", post(x402::add))
        .route("/panel/x402/{id}", get(x402::one).post(x402::ask))
        .route("/panel/x402/{id}/call", get(sandbox::server::show).post(sandbox::server::act))
        .route("/panel/x402/{id}/call/answer", get(sandbox::download))
        .route("/panel/x402/{id}/call/preview", get(sandbox::preview))
        .route("/panel/x402/{id}/call/cancel", post(sandbox::cancel))
        .route("/panel/x402/{id}/price", post(x402::set_price))
        .route("/panel/x402/{id}/remove", get(x402::remove_page).post(x402::remove))
        .layer(DefaultBodyLimit::max(FORM_BYTES_MAX))
}

/// Routes the pages of the APIs that the owner offers.
fn apis() -> Router<ConsoleState> {
    let texts = || DefaultBodyLimit::max(TEXT_BYTES_MAX);
    let files = || DefaultBodyLimit::max(UPLOAD_BYTES_MAX);
    Router::new()
        .route("/panel/apis", get(apis::show))
        .route("/panel/apis/new", get(register::show).post(register::begin).layer(files()))
        .route("/panel/apis/new/{draft}", get(register::review::show).post(register::review::save))
        .route("/panel/apis/new/{draft}/candidate", post(register::choose))
        .route("/panel/apis/new/{draft}/discard", post(register::discard))
        .route(
            "/panel/apis/new/{draft}/details",
            get(register::details::show).post(register::details::save).layer(texts()),
        )
        .route(
            "/panel/apis/new/{draft}/preview",
            get(register::preview::show).post(register::preview::register),
        )
        .route("/panel/apis/{id}", get(apis::one::show))
        .route("/panel/apis/{id}/operations", get(apis::operations::show))
        .route("/panel/apis/{id}/state", post(apis::set_state))
        .route("/panel/apis/{id}/edit", get(apis::edit::show).post(apis::edit::save).layer(texts()))
        .route("/panel/apis/{id}/secrets", post(apis::edit::remove_secret))
        .route("/panel/apis/{id}/offer", post(apis::edit::offer).layer(files()))
        .route("/panel/apis/{id}/price", post(apis::one::set_price))
        .route("/panel/apis/{id}/read-again", post(apis::one::read_again).layer(files()))
        .route("/panel/apis/{id}/retire", get(apis::retire_page).post(apis::retire))
}

/// Routes the page that a development build has and no program that is shipped.
#[cfg(debug_assertions)]
fn development() -> Router<ConsoleState> {
    Router::new().route("/panel/help/design", get(design::show))
}

#[cfg(not(debug_assertions))]
fn development() -> Router<ConsoleState> {
    Router::new()
}

pub(super) async fn not_found() -> Failure {
    Failure::not_found()
}

pub(super) async fn other_method(uri: Uri) -> Response {
    if api::is_asked(uri.path()) { api::other_method() } else { Failure::other_method().into_response() }
}

/// The node's own authority, for browsers and programs to trust.
async fn authority(State(panel): State<ConsoleState>) -> Response {
    match &panel.0.parts.ca_pem {
        Some(pem) => (attachment("application/x-pem-file", "farthing-ca.pem"), pem.clone()).into_response(),
        None => Failure::not_found().into_response(),
    }
}
