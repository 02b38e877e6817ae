//! Forms of our own pages, and what each must bring before it changes something.
//!
//! A cookie alone reads: browsers send it to every port of its host, so another program on the machine may hold it.
//! A change ([`Form`]) brings the session's key, which a script of ours adds from the storage of the console's own
//! origin, or the password. What is dangerous brings the password itself ([`Form::confirmed`]), or a key and a
//! password that was entered lately ([`Form::reauthenticated`]). Where one is missing, a page asks for the password and
//! sends the same values again, so nothing that was typed is lost.

use std::net::IpAddr;

use axum::{
    Extension,
    body::{Body, Bytes, to_bytes},
    extract::{FromRequest, Request},
};
use farthing_os::{clock, secret::SecretText};
use farthing_serve::ClientAddress;
use http::{StatusCode, request::Parts};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    ConsoleState,
    access::{PasswordProof, Reauthenticated, Refused},
    address_or_here,
    failure::Failure,
    frame::Visit,
    guard::{cookie, not_logged_in, session_of},
    held_forms::{HeldForm, LogInFirst},
    password_first::{PasswordFirst, Why},
    theme::{THEME_COOKIE, Theme},
};

pub(super) mod upload;

/// Filled in by `key.js`.
pub(super) const KEY_FIELD: &str = "console_key";
pub(super) const PASSWORD_FIELD: &str = "console_password";

/// The largest form of somebody who is not logged in: it carries a password, and anybody may send many at once.
pub(super) const GUEST_BYTES_MAX: usize = 8 * 1024;

/// The proof that a form brought beside its fields.
#[derive(Debug, Clone, Copy)]
enum Proof {
    Nothing,
    Key,
    Password(PasswordProof),
}

/// A form as it came, to be sent again with the password.
struct SentForm {
    /// Path and query.
    address: String,
    pairs: Vec<(String, String)>,
    proof: Proof,
}

farthing_os::hidden!(SentForm);

impl SentForm {
    fn ask(&self, visit: &Visit, why: Why) -> Failure {
        let (address, pairs) = (self.address.clone(), self.pairs.clone());
        Failure::PasswordFirst(Box::new(PasswordFirst { theme: visit.theme, address, pairs, why }))
    }
}

/// A form of one of our pages, for somebody logged in, that changes nothing of the node: no key is asked for.
#[derive(Debug)]
pub(super) struct HarmlessForm<T> {
    pub(super) visit: Visit,
    pub(super) fields: T,
    sent: SentForm,
}

impl<T> HarmlessForm<T> {
    /// The same form, as one that may change something.
    ///
    /// # Errors
    /// [`Failure::PasswordFirst`] without the session's key.
    pub(super) fn proven(self) -> Result<Form<T>, Failure> {
        match self.sent.proof {
            Proof::Nothing => Err(self.sent.ask(&self.visit, Why::NoKey)),
            Proof::Key | Proof::Password(_) => {
                Ok(Form { visit: self.visit, fields: self.fields, sent: self.sent })
            }
        }
    }
}

/// A form that is sent as it is.
#[derive(Deserialize)]
pub(super) struct NoFields {}

/// A form of one of our pages, for somebody logged in, that brought the session's key or the password.
#[derive(Debug)]
pub(super) struct Form<T> {
    pub(super) visit: Visit,
    pub(super) fields: T,
    sent: SentForm,
}

impl<T> Form<T> {
    /// The proof that the password came with this form: for money that leaves, secrets that are shown, and servers that
    /// get the owner's keys.
    ///
    /// # Errors
    /// [`Failure::PasswordFirst`], which asks for it and then goes on.
    pub(super) fn confirmed(&self) -> Result<PasswordProof, Failure> {
        match self.sent.proof {
            Proof::Password(confirmed) => Ok(confirmed),
            Proof::Nothing | Proof::Key => Err(self.sent.ask(&self.visit, Why::Dangerous)),
        }
    }

    /// The proof that the password came with this form, or lately with another of this session.
    pub(super) fn reauthenticated(&self) -> Result<Reauthenticated, Failure> {
        match self.visit.session.reauthenticated(clock::now_secs()) {
            Some(lately) => Ok(lately),
            None => self.confirmed().map(Into::into),
        }
    }
}

impl<T> From<Form<T>> for HarmlessForm<T> {
    fn from(form: Form<T>) -> Self {
        Self { visit: form.visit, fields: form.fields, sent: form.sent }
    }
}

impl<T: DeserializeOwned> FromRequest<ConsoleState> for HarmlessForm<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, panel: &ConsoleState) -> Result<Self, Failure> {
        let (visit, sent, fields) = came(request, panel).await?;
        Ok(Self { visit, fields: read(fields).await?, sent })
    }
}

impl<T: DeserializeOwned> FromRequest<ConsoleState> for Form<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, panel: &ConsoleState) -> Result<Self, Failure> {
        let (visit, sent, fields) = came(request, panel).await?;
        // Nothing is said about the fields of a form that may change nothing.
        let asked = HarmlessForm { visit, fields: (), sent }.proven()?;
        Ok(Self { visit: asked.visit, fields: read(fields).await?, sent: asked.sent })
    }
}

/// Reads who sent a form, what it proves, and a request with its own fields alone.
async fn came(request: Request, panel: &ConsoleState) -> Result<(Visit, SentForm, Request), Failure> {
    let (parts, body) = request.into_parts();
    let Some(session) = session_of(panel, &parts.headers) else {
        return Err(held(panel, &parts, body).await);
    };
    let visit = Visit::new(&parts, panel, session);
    let bytes = whole(Request::from_parts(parts.clone(), body), panel).await?;
    let (mut key, mut password, mut pairs) = (String::new(), String::new(), Vec::new());
    for (name, value) in url::form_urlencoded::parse(&bytes) {
        match &*name {
            KEY_FIELD => key = value.into_owned(),
            PASSWORD_FIELD => password = value.into_owned(),
            _ => pairs.push((name.into_owned(), value.into_owned())),
        }
    }
    let sent = SentForm { address: visit.address.clone(), pairs, proof: Proof::Nothing };
    let has_key = visit.session.has_key(&key);
    let proof = match (password.is_empty(), has_key) {
        (false, _) => match confirm(&visit, password, from(&parts), has_key).await {
            Ok(confirmed) => Proof::Password(confirmed),
            Err(refused) => return Err(sent.ask(&visit, Why::Refused(refused))),
        },
        (true, true) => Proof::Key,
        (true, false) => Proof::Nothing,
    };
    let own = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(&sent.pairs).finish();
    Ok((visit, SentForm { proof, ..sent }, Request::from_parts(parts, own.into())))
}

/// Holds a form of somebody whose log-in has ended. A stranger may send no more of it than to a log-in.
async fn held(panel: &ConsoleState, parts: &Parts, body: Body) -> Failure {
    let not_logged_in = not_logged_in(panel, parts);
    let Failure::NotLoggedIn { has_ended, .. } = not_logged_in else { return not_logged_in };
    let Ok(bytes) = to_bytes(body, GUEST_BYTES_MAX).await else { return unread(panel, parts) };
    let mut pairs: Vec<(String, String)> = url::form_urlencoded::parse(&bytes).into_owned().collect();
    // A browser whose cookie was deleted, or expired there, sends none. Only pages behind a log-in have the field of the key.
    let has_ended = has_ended || pairs.iter().any(|(name, _)| name == KEY_FIELD);
    pairs.retain(|(name, _)| !matches!(name.as_str(), KEY_FIELD | PASSWORD_FIELD));
    if !has_ended || pairs.is_empty() {
        return Failure::NotLoggedIn { next: None, has_ended };
    }
    let form = HeldForm { address: address_of(parts), pairs };
    Failure::LogInFirst(Box::new(LogInFirst::new(theme_of(parts), &form)))
}

/// Asks for the log-in that a form needs of which nothing is read: one with files, or too long to be held. The page before it
/// still has what was typed.
pub(super) fn unread(panel: &ConsoleState, parts: &Parts) -> Failure {
    match not_logged_in(panel, parts) {
        Failure::NotLoggedIn { .. } => {
            Failure::LogInFirst(Box::new(LogInFirst::unread(theme_of(parts), address_of(parts))))
        }
        other => other,
    }
}

fn address_of(parts: &Parts) -> String {
    parts.uri.path_and_query().map_or_else(String::new, ToString::to_string)
}

fn theme_of(parts: &Parts) -> Theme {
    Theme::named(cookie(&parts.headers, THEME_COOKIE).unwrap_or_default())
}

/// A form of somebody who is not logged in yet. That it is ours, [`super::guard::same_site`] has seen.
#[derive(Debug)]
pub(super) struct GuestForm<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<ConsoleState> for GuestForm<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &ConsoleState) -> Result<Self, Failure> {
        read(request).await.map(Self)
    }
}

async fn confirm(
    visit: &Visit,
    password: String,
    from: IpAddr,
    has_key: bool,
) -> Result<PasswordProof, Refused> {
    visit.panel.access().confirm(&visit.session, SecretText::new(password), from, has_key).await
}

fn from(parts: &Parts) -> IpAddr {
    address_or_here(parts.extensions.get::<ClientAddress>().copied().map(Extension))
}

async fn whole(request: Request, panel: &ConsoleState) -> Result<Bytes, Failure> {
    let whole = Bytes::from_request(request, panel).await;
    whole.map_err(|rejection| rejected(rejection.status(), rejection.body_text()))
}

async fn read<T: DeserializeOwned>(request: Request) -> Result<T, Failure> {
    match axum::Form::<T>::from_request(request, &()).await {
        Ok(axum::Form(fields)) => Ok(fields),
        Err(rejection) => Err(rejected(rejection.status(), rejection.body_text())),
    }
}

fn rejected(status: StatusCode, detail: String) -> Failure {
    if status == StatusCode::PAYLOAD_TOO_LARGE { Failure::too_large() } else { Failure::unreadable(detail) }
}
