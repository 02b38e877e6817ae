//! Answers to the forms of the set-up, and to those of Finance that claim and close, each kept for its page.
//!
//! A form is answered by leading the browser to a page, whose address has a random name. What the page tells beside
//! what it always does is kept here under that name, in memory and for ten minutes. So no page of the set-up is the
//! answer to a form, and going back never asks whether to send one again.
//!
//! Invariant: what a session was answered is told to that session alone, and the words of the wallet are shown at such
//! an address alone: a cookie does not know it.

use std::time::{Duration, Instant};

use axum::{
    extract::{FromRequest, Request},
    response::{IntoResponse, Redirect, Response},
};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    ConsoleState, access::SessionId, failure::Failure, form::Form, guard::session_of, page::with_answer,
};

/// Long enough to write 24 words down.
const KEPT_FOR: Duration = Duration::from_secs(10 * 60);
/// Of strangers, and again of those who are logged in; each has less than a form.
const EACH_MAX: usize = 16;

/// The answer to a form, as its page tells it.
#[derive(Clone)]
pub(in crate::pages) enum SetupAnswer {
    /// The words of the wallet may be shown.
    Words,
    /// The thing that was done, in words.
    Done(String),
    /// The form was not taken.
    Mistake(Mistake),
}

/// The reason that a form was not taken, and what goes back into it.
#[derive(Clone, Default)]
pub(in crate::pages) struct Mistake {
    pub(in crate::pages) problem: String,
    /// The setup code, as it was typed.
    pub(in crate::pages) code: String,
    /// The password has to be typed again, and not the code.
    pub(in crate::pages) is_of_password: bool,
    /// Numbers of words that are asked for again.
    pub(in crate::pages) asked: Vec<usize>,
}

farthing_os::hidden!(SetupAnswer, Mistake);

impl Mistake {
    pub(in crate::pages) fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), ..Self::default() }
    }

    pub(in crate::pages) fn of_password(problem: impl Into<String>) -> Self {
        Self { is_of_password: true, ..Self::new(problem) }
    }
}

/// The answers that are kept now.
#[derive(Debug, Default)]
pub(crate) struct SetupAnswers(Mutex<Vec<StoredAnswer>>);

#[derive(Debug)]
struct StoredAnswer {
    name: String,
    /// None before anybody is logged in.
    session: Option<SessionId>,
    since: Instant,
    answer: SetupAnswer,
}

impl SetupAnswers {
    /// Keeps an answer and names it. The oldest of its kind makes room.
    fn keep(&self, session: Option<SessionId>, answer: SetupAnswer) -> Result<String, Failure> {
        let mut random = [0; 16];
        getrandom::fill(&mut random)
            .map_err(|_| Failure::broken("The system provides no random numbers."))?;
        let name = hex::encode(random);
        let mut kept = self.now();
        let is_alike = |other: &StoredAnswer| other.session.is_some() == session.is_some();
        if kept.iter().filter(|other| is_alike(other)).count() >= EACH_MAX
            && let Some(oldest) = kept.iter().position(is_alike)
        {
            kept.remove(oldest);
        }
        kept.push(StoredAnswer { name: name.clone(), session, since: Instant::now(), answer });
        Ok(name)
    }

    /// Returns the answer of that name, if it is whose it is asked for.
    pub(in crate::pages) fn get(&self, session: Option<SessionId>, name: &str) -> Option<SetupAnswer> {
        let kept = self.now();
        let found = kept.iter().find(|kept| kept.session == session && kept.name == name);
        found.map(|kept| kept.answer.clone())
    }

    /// Forgets everything that a session was answered.
    pub(in crate::pages) fn forget(&self, session: SessionId) {
        self.now().retain(|kept| kept.session != Some(session));
    }

    fn now(&self) -> MutexGuard<'_, Vec<StoredAnswer>> {
        let mut kept = self.0.lock();
        kept.retain(|kept| kept.since.elapsed() < KEPT_FOR);
        kept
    }
}

/// The name of an answer, in the address of its page.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct AnswerParams {
    pub(in crate::pages) answer: String,
}

/// Leads to a page that tells an answer.
pub(in crate::pages) fn lead_to(
    panel: &ConsoleState,
    place: &str,
    session: Option<SessionId>,
    answer: SetupAnswer,
) -> Response {
    match panel.setup_answers().keep(session, answer) {
        Ok(name) => Redirect::to(&with_answer(place, &name)).into_response(),
        Err(failure) => failure.into_response(),
    }
}

/// A form of the set-up, by somebody logged in. Where the password in it is not taken, the form's own page tells why.
#[derive(Debug)]
pub(in crate::pages) struct SetupForm<T>(pub(in crate::pages) Form<T>);

impl<T: DeserializeOwned> FromRequest<ConsoleState> for SetupForm<T> {
    type Rejection = Response;

    async fn from_request(request: Request, panel: &ConsoleState) -> Result<Self, Response> {
        let place = request.uri().path().to_owned();
        let session = session_of(panel, request.headers()).map(|session| session.id());
        let failure = match Form::from_request(request, panel).await {
            Ok(form) => return Ok(Self(form)),
            Err(failure) => failure,
        };
        match failure.refused_password() {
            Some(problem) => {
                Err(lead_to(panel, &place, session, SetupAnswer::Mistake(Mistake::new(problem))))
            }
            None => Err(failure.into_response()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Token;

    fn session(name: &str) -> Option<SessionId> {
        Some(Token::presented(name).id())
    }

    #[test]
    fn an_answer_is_told_to_whom_it_was_given_and_forgotten_when_said_so() {
        let answers = SetupAnswers::default();
        let name = answers.keep(session("a"), SetupAnswer::Words).unwrap();
        assert!(matches!(answers.get(session("a"), &name), Some(SetupAnswer::Words)));
        assert!(answers.get(session("b"), &name).is_none());
        assert!(answers.get(None, &name).is_none());
        assert!(answers.get(session("a"), "").is_none());
        answers.forget(session("a").unwrap());
        assert!(answers.get(session("a"), &name).is_none());
    }

    #[test]
    fn strangers_push_out_each_others_answers_alone() {
        let answers = SetupAnswers::default();
        let own = answers.keep(session("a"), SetupAnswer::Words).unwrap();
        let mistake = || SetupAnswer::Mistake(Mistake::new("not so"));
        let names: Vec<String> = (0..=EACH_MAX).map(|_| answers.keep(None, mistake()).unwrap()).collect();
        assert!(answers.get(None, &names[0]).is_none() && answers.get(None, &names[1]).is_some());
        assert!(answers.get(session("a"), &own).is_some());
    }
}
