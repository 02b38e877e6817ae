//! A form that comes when its log-in has ended: nothing is done with it, and what was typed waits for the next log-in.
//!
//! In order: the form's fields travel in a field of the page that one logs in at ([`LogInFirst`]); the log-in keeps them for its
//! session ([`HeldForms`]); a page offers to send them. Nothing is sent by itself.
//!
//! Invariant: what is secret is not held: neither the console's key and password nor a form that has a secret of another kind.

use askama::Template;
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::{
    page::{Rendered, next_or_home},
    session_store::{Bounds, SessionStore},
    theme::Theme,
};

/// Written twice as a part of an address it has room in a log-in.
const HELD_BYTES_MAX: usize = 3 * 1024;
const BOUNDS: Bounds = Bounds { entries_max: 32, per_session_max: 2, bytes_max: 32 * HELD_BYTES_MAX };

/// Fields that a browser shows as dots, and where the wallet's words are typed.
const SECRET_FIELDS: [&str; 5] = ["password", "repeated", "passphrase", "header_value", "query_value"];
const SECRET_PLACES: [&str; 2] = ["/words", "/phrase"];

/// Parts of addresses that take forms and are no pages.
const NO_PAGES: [&str; 21] = [
    "/add",
    "/approve",
    "/refuse",
    "/price",
    "/state",
    "/secrets",
    "/offer",
    "/read-again",
    "/candidate",
    "/discard",
    "/accept",
    "/flagged",
    "/test",
    "/daily",
    "/rotate",
    "/revoke",
    "/star",
    "/name",
    "/show",
    "/cancel",
    "/upload",
];

/// The fields of a form that was not taken, and the address that it goes to.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct HeldForm {
    pub(super) address: String,
    pub(super) pairs: Vec<(String, String)>,
}

farthing_os::hidden!(HeldForm { address });

/// The forms that wait, of all sessions.
#[derive(Debug)]
pub(super) struct HeldForms(pub(super) SessionStore<HeldForm>);

impl Default for HeldForms {
    fn default() -> Self {
        Self(SessionStore::new(BOUNDS))
    }
}

impl HeldForm {
    fn is_secret(&self) -> bool {
        let is_secret = |(name, _): &(String, String)| SECRET_FIELDS.contains(&name.as_str());
        self.pairs.iter().any(is_secret) || SECRET_PLACES.iter().any(|place| self.address.contains(place))
    }

    /// As one text, for a field of the page that one logs in at; `None` when it is too long or secret.
    fn written(&self) -> Option<String> {
        let mut text = url::form_urlencoded::Serializer::new(String::new());
        let text = text.append_pair("", &self.address).extend_pairs(&self.pairs).finish();
        (text.len() <= HELD_BYTES_MAX && !self.is_secret()).then_some(text)
    }

    /// Reads what [`HeldForm::written`] wrote; `None` for anything else.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut pairs = url::form_urlencoded::parse(text.as_bytes()).into_owned();
        let is_own = |address: &str| next_or_home(Some(address)) == address;
        let (_, address) = pairs.next().filter(|(name, address)| name.is_empty() && is_own(address))?;
        let held = Self { address, pairs: pairs.collect() };
        held.written().map(|_| held)
    }

    /// The page that the form is on.
    pub(super) fn page(&self) -> &str {
        let path = self.address.split('?').next().unwrap_or_default();
        NO_PAGES.iter().find_map(|part| path.strip_suffix(part)).unwrap_or(path)
    }
}

/// Asks for the log-in that a form needs, and holds what was typed into it.
#[derive(Template)]
#[template(path = "log-in-first.html")]
pub struct LogInFirst {
    theme: Theme,
    /// The page of the form.
    next: String,
    /// Empty when it is not held.
    held: String,
    is_secret: bool,
}

farthing_os::hidden!(LogInFirst { next });

impl LogInFirst {
    pub(super) fn new(theme: Theme, form: &HeldForm) -> Self {
        let next = next_or_home(Some(form.page())).to_owned();
        Self { theme, next, held: form.written().unwrap_or_default(), is_secret: form.is_secret() }
    }

    /// Asks without the form, of which only the address is known.
    pub(super) fn unread(theme: Theme, address: String) -> Self {
        let form = HeldForm { address, pairs: Vec::new() };
        Self { held: String::new(), ..Self::new(theme, &form) }
    }
}

impl IntoResponse for LogInFirst {
    fn into_response(self) -> Response {
        (StatusCode::FORBIDDEN, Rendered(&self)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(address: &str, pairs: &[(&str, &str)]) -> HeldForm {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        HeldForm { address: address.to_owned(), pairs: pairs.collect() }
    }

    #[test]
    fn what_was_typed_comes_back_as_it_was() {
        for held in [
            form("/panel/finance/limits", &[("price_max", "1.5"), ("per_day", "")]),
            form("/panel/apis/new?x=1", &[("a&b=c", "d\r\n é & =%"), ("a&b=c", "twice")]),
        ] {
            let written = held.written().unwrap();
            assert!(HeldForm::read(&written) == Some(held), "{written}");
        }
    }

    #[test]
    fn only_a_form_of_the_console_is_held_and_none_with_a_secret() {
        let short = form("/panel/theme", &[("theme", "dark")]);
        let long = "x".repeat(HELD_BYTES_MAX);
        for (held, is_held) in [
            (short.clone(), true),
            (form("/panel/theme", &[("theme", &long)]), false),
            (form("/panel/settings/backup", &[("passphrase", "four random words")]), false),
            (form("/panel/apis/new/1/details", &[("name", "a"), ("header_value", "")]), false),
            (form("/panel/settings/phrase/check", &[("word3", "abandon")]), false),
        ] {
            assert_eq!(held.written().is_some(), is_held, "{}", held.address);
        }
        for none in [
            "",
            "a=b",
            "=%2F%2Fevil.example&a=b",
            "=https%3A%2F%2Fevil.example%2Fpanel",
            "=%2Fpanel%2Fphrase&a=b",
        ] {
            assert!(HeldForm::read(none).is_none(), "{none}");
        }
        let asked = LogInFirst::new(Theme::System, &short);
        assert!(!asked.held.is_empty() && !asked.is_secret && asked.next == "/panel/theme");
    }

    #[test]
    fn a_form_of_which_nothing_is_read_leads_to_its_page_and_holds_nothing() {
        for (address, page) in [
            ("/panel/settings/backup/upload", "/panel/settings/backup"),
            ("/panel/apis/new?x=1", "/panel/apis/new"),
            ("//evil.example/panel", "/panel"),
        ] {
            let asked = LogInFirst::unread(Theme::System, address.to_owned());
            assert!(asked.held.is_empty() && !asked.is_secret, "{address}");
            assert_eq!(asked.next, page, "{address}");
        }
    }

    #[test]
    fn every_form_is_on_a_page_that_can_be_opened() {
        let source = include_str!("pages.rs");
        let routes: Vec<(&str, bool, bool)> = source
            .split(".route(")
            .skip(1)
            .filter_map(|route| {
                let path = route.split('"').nth(1)?;
                Some((path, route.contains("get("), route.contains("post(")))
            })
            .collect();
        let is_page = |wanted: &str| routes.iter().any(|(path, is_got, _)| *path == wanted && *is_got);
        // Buttons without a field of their own: nothing is typed into them.
        let buttons =
            ["logout", "theme", "claim", "stop", "resume", "restart", "download", "upload", "log-out-others"];
        let forms: Vec<&str> =
            routes.iter().filter(|(.., is_sent)| *is_sent).map(|(path, ..)| *path).collect();
        assert!(forms.len() > 40, "{forms:?}");
        for path in forms.iter().filter(|path| !buttons.iter().any(|button| path.ends_with(button))) {
            let page = form(path, &[]).page().to_owned();
            assert!(is_page(&page) || page == "/panel/settings/replaced/{name}", "{path} is on {page}");
        }
    }
}
