//! Pages in place of the one that was asked for: where to log in, or what went wrong and what to do.

use askama::Template;
use axum::response::{IntoResponse, Redirect, Response};
use farthing_control::{ControlError, types::Problem};
use http::StatusCode;

use super::{
    access::Refused,
    held_forms::LogInFirst,
    page::{self, Rendered},
    password_first::{PasswordFirst, Why, status_of},
    theme::Theme,
};

/// The page to log in again at, which tells the reason.
const ENDED: &str = "/panel/login?ended=1";

/// A page, or the reason that it is not shown.
pub(super) type Page = Result<Response, Failure>;

/// The reason that a page is not shown, or a change not made.
#[derive(Debug)]
pub enum Failure {
    /// There is no password yet.
    NotSetUp,
    /// Log in, then go on at `next`.
    NotLoggedIn {
        next: Option<String>,
        /// The browser was logged in before.
        has_ended: bool,
    },
    /// Log in, then send the form after all.
    LogInFirst(Box<LogInFirst>),
    /// Enter the password, and the form is sent again with it.
    PasswordFirst(Box<PasswordFirst>),
    /// Something to read.
    Said(Box<FailureText>),
}

/// A failure in words.
#[derive(Debug)]
pub struct FailureText {
    pub(super) status: StatusCode,
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) next: String,
}

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage<'a> {
    theme: Theme,
    said: &'a FailureText,
}

impl Failure {
    pub(super) fn new(status: StatusCode, title: &str, detail: impl Into<String>, next: &str) -> Self {
        let (title, next) = (title.to_owned(), next.to_owned());
        Self::Said(Box::new(FailureText { status, title, detail: detail.into(), next }))
    }

    pub(super) fn unknown_host() -> Self {
        Self::new(
            StatusCode::MISDIRECTED_REQUEST,
            "This node does not have this name",
            "The host in the address is neither an IP address nor a name of this node.",
            "Open https://localhost:3002/panel, or add the name to `panel.hosts`.",
        )
    }

    pub(super) fn other_site() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "The request came from another site",
            "You can make changes only from the console's own pages. Nothing was changed.",
            "Open the console and try again from there. Programs send `Origin` with the console's address.",
        )
    }

    /// Of a form with files, which no page can hold until the password is typed.
    pub(super) fn no_key() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "The form has no key",
            "Changes need the key that this browser got when you logged in, or your password. Nothing was changed.",
            "Log out and in again, then send the form again. Without scripts, type your password into the form.",
        )
    }

    pub(super) fn password_in_the_form() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "The form needs your password",
            "You entered your password too long ago. Nothing was changed.",
            "Go back, reload the page, type your password into the form, and send the form again.",
        )
    }

    /// The password in a form with files.
    pub(super) fn password_refused(refused: &Refused) -> Self {
        let next = "Go back, correct the password in the form, and send it again.";
        Self::new(status_of(refused), "The password was not accepted", refused.to_string(), next)
    }

    /// Returns why the password that came with a form was not taken, where that is what failed.
    pub(super) fn refused_password(&self) -> Option<String> {
        match self {
            Self::PasswordFirst(page) => match &page.why {
                Why::Refused(refused) => Some(refused.to_string()),
                Why::Dangerous | Why::NoKey => None,
            },
            Self::NotSetUp | Self::NotLoggedIn { .. } | Self::LogInFirst(_) | Self::Said(_) => None,
        }
    }

    pub(super) fn unreadable(detail: impl Into<String>) -> Self {
        Self::refused(StatusCode::BAD_REQUEST, detail)
    }

    /// Refuses input that the page does not take.
    pub(super) fn refused(status: StatusCode, detail: impl Into<String>) -> Self {
        Self::new(status, "The request is not valid", detail, "Go back, correct it and try again.")
    }

    pub(super) fn too_large() -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "The request is too large",
            "You sent more than this page accepts. Nothing was changed.",
            "Go back and send less: up to 16 MiB of an API description, or a few pages of other text.",
        )
    }

    /// Reports that something begun here is not there any more.
    pub(super) fn gone(what: &str, next: &str) -> Self {
        let detail = format!(
            "{what} is no longer available. Unfinished work is kept in memory for two hours, until the node restarts or \
             you log out, and only the newest four are kept. Nothing was published or sent."
        );
        Self::new(StatusCode::GONE, "Start again", detail, next)
    }

    pub(super) fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "Page not found",
            "The console has no page at this address.",
            "Go to Home, or search the catalog.",
        )
    }

    /// Somebody opened what a form is sent to, or loaded again what it answered.
    pub(super) fn other_method() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "This address is not a page",
            "Only a button of the console can use this address. Nothing was changed.",
            "Go to Home, or go back to the page with the button.",
        )
    }

    pub(super) fn broken(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "The page could not be shown",
            detail,
            "Reload it. `farthing doctor` checks the node.",
        )
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        match error {
            ControlError::Refused(problem) => {
                let advice = problem.advice().unwrap_or_default();
                let Problem { status, title, detail, .. } = *problem;
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
                Self::new(status, &title, detail, &advice)
            }
            other => Self::broken(other.to_string()),
        }
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Self::NotSetUp => Redirect::to("/panel/setup").into_response(),
            Self::NotLoggedIn { next, has_ended } => {
                let place = page::with_next(if has_ended { ENDED } else { "/panel/login" }, next);
                Redirect::to(&place).into_response()
            }
            Self::LogInFirst(page) => page.into_response(),
            Self::PasswordFirst(page) => page.into_response(),
            Self::Said(said) => {
                let status = said.status;
                (status, Rendered(&FailurePage { theme: Theme::System, said: &said })).into_response()
            }
        }
    }
}
