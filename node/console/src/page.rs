//! Turning templates into answers, and remembering where to go on.

use std::time::Duration;

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

/// The longest that a button's answer is waited for before a page says that it is under way.
pub(super) const SOON: Duration = Duration::from_secs(1);

/// A rendered template.
pub(super) struct Rendered<'a, T>(pub(super) &'a T);

impl<T: Template> IntoResponse for Rendered<'_, T> {
    fn into_response(self) -> Response {
        match self.0.render() {
            Ok(html) => ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response(),
            Err(error) => {
                tracing::error!(%error, "a page could not be rendered");
                (StatusCode::INTERNAL_SERVER_ERROR, "The page could not be rendered.\n").into_response()
            }
        }
    }
}

/// A page that may name what keeps a form from being taken; its status then says so as well.
pub(super) fn answer<P>(page: &impl Template, problem: Option<&P>) -> Response {
    let status = if problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    (status, Rendered(page)).into_response()
}

/// `path` with the place to go on at.
pub(super) fn with_next(path: &str, next: Option<String>) -> String {
    match next.filter(|next| is_place(next) && next != HOME) {
        Some(next) => format!("{path}{}next={}", if path.contains('?') { '&' } else { '?' }, encoded(&next)),
        None => path.to_owned(),
    }
}

/// `path` with the name of what its page tells beside what it always does.
pub(super) fn with_answer(path: &str, name: &str) -> String {
    format!("{path}?answer={name}")
}

/// A text as a part of an address or the name of a field, where it must come back as it was.
pub(super) fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// Returns the place to go on to: `next` if it is a place of this console, otherwise Home.
pub(super) fn next_or_home(next: Option<&str>) -> &str {
    next.filter(|next| is_place(next)).unwrap_or(HOME)
}

const HOME: &str = "/panel";
/// Far more than any address here has.
const PLACE_BYTES_MAX: usize = 1024;

/// Addresses that begin like ours and lead elsewhere are none: `//host`, `/\host`, line breaks.
fn is_place(next: &str) -> bool {
    let inside = next.strip_prefix(HOME).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?']));
    inside
        && next.len() <= PLACE_BYTES_MAX
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_on_inside_the_console_only() {
        for (next, place) in [
            ("/panel/catalog?q=a%20b", true),
            ("/panel", true),
            ("/panel?x=1", true),
            ("//evil.example", false),
            ("https://evil.example/panel", false),
            ("/panelevil", false),
            ("/panel/\\evil.example", false),
            ("/panel/\r\nset-cookie: a=b", false),
            ("", false),
        ] {
            assert_eq!(next_or_home(Some(next)) == next, place, "{next}");
        }
        assert_eq!(with_next("/panel/login", Some("//evil".to_owned())), "/panel/login");
        assert_eq!(
            with_next("/panel/login", Some("/panel/a?b=c".to_owned())),
            "/panel/login?next=%2Fpanel%2Fa%3Fb%3Dc"
        );
        let ended = with_next("/panel/login?ended=1", Some("/panel/a".to_owned()));
        assert_eq!(ended, "/panel/login?ended=1&next=%2Fpanel%2Fa");
    }
}
