//! From the address that people type to the console's own name.
//!
//! Browsers send a cookie of `localhost` to every port of it, and thereby to other programs' servers. A cookie of the
//! node's own name, such as `0123….localhost`, goes only to who knows that name. Whether a browser finds such names is
//! not known beforehand, so a page at `localhost` tries and leads on, to the same place. A browser that finds nothing
//! there, or runs no scripts, may log in where it is; it is handed no key, so every change asks for the password.
//!
//! Who stays is remembered by nothing but that log-in: a cookie would be set by any server of this machine, and an address
//! be opened by any page. The page that one logs in at tries the other name once more.

use askama::Template;
use axum::{
    extract::{Request, State},
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::Method;

use super::{
    ConsoleState,
    guard::{cookie, session_of},
    headers::MayAsk,
    page::{Rendered, with_next},
    theme::{THEME_COOKIE, Theme},
};

const PLAIN: &str = "localhost";

/// True if a request came to the name that every program of this machine shares, although there is a better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharedName(pub(super) bool);

#[derive(Template)]
#[template(path = "door.html")]
struct DoorTemplate {
    theme: Theme,
    /// `https://0123….localhost:3002`
    there: String,
    /// The address to go on to without scripts.
    stay: String,
}

/// The data with which a log-in page at the shared name tries the other name once more.
#[derive(Debug)]
pub(super) struct Again {
    pub(super) there: String,
    /// The place to go on to.
    pub(super) next: String,
}

/// The name and the port of a `Host`.
fn parts(host: &str) -> (&str, &str) {
    host.rfind(':').filter(|_| !host.ends_with(']')).map_or((host, ""), |at| host.split_at(at))
}

pub(super) fn is_plain(host: &str) -> bool {
    parts(host).0.trim_end_matches('.').eq_ignore_ascii_case(PLAIN)
}

/// Finds out whether a request to `host` came to the [`SharedName`].
pub(super) fn shared(panel: &ConsoleState, host: &str) -> SharedName {
    SharedName(panel.0.parts.name.is_some() && is_plain(host))
}

/// Answers what is asked for at the shared name with a page that leads to the node's own.
pub(super) async fn lead(State(panel): State<ConsoleState>, request: Request, next: Next) -> Response {
    let there = there(&panel, &request).filter(|_| asks_for_page(&request));
    // Who logged in here has found nothing there.
    let Some(there) = there.filter(|_| session_of(&panel, request.headers()).is_none()) else {
        return next.run(request).await;
    };
    let theme = Theme::named(cookie(request.headers(), THEME_COOKIE).unwrap_or_default());
    let place = request.uri().path_and_query().map(ToString::to_string);
    let page = DoorTemplate { theme, there, stay: with_next("/panel/stay", place) };
    let mut response = Rendered(&page).into_response();
    response.extensions_mut().insert(MayAsk(page.there));
    response
}

/// The console's own name, for a request to the shared one: `https://0123….localhost:3002`.
pub(super) fn there(panel: &ConsoleState, request: &Request) -> Option<String> {
    let host = panel.0.hosts.asked(request).filter(|host| is_plain(host))?;
    panel.0.parts.name.as_deref().map(|name| format!("https://{name}{}", parts(host).1))
}

/// A page, and not what only forms, scripts or programs ask for.
fn asks_for_page(request: &Request) -> bool {
    let path = request.uri().path();
    let is_page = path == "/" || path == "/panel" || path.starts_with("/panel/");
    request.method() == Method::GET && is_page && !matches!(path, "/panel/stay" | "/panel/events")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shared_name_is_localhost_at_any_port_and_nothing_below_it() {
        for (host, plain) in [
            ("localhost", true),
            ("localhost:3002", true),
            ("LOCALHOST.:3002", true),
            ("0123.localhost:3002", false),
            ("127.0.0.1:3002", false),
            ("[::1]:3002", false),
            ("[::1]", false),
            ("localhost.example", false),
        ] {
            assert_eq!(is_plain(host), plain, "{host}");
        }
        assert_eq!(parts("localhost:3002"), ("localhost", ":3002"));
        assert_eq!(parts("[::1]"), ("[::1]", ""));
    }
}
