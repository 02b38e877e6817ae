//! The first visit: the setup code and a password, then what makes a node of use, one page for each step.
//!
//! 1. Code and password ([`set_up`]) begin a session. A node that was used before goes to Home at once.
//! 2. The words of the wallet ([`words`]), money ([`fund`]), being reached ([`reach`]), a first call ([`call`]):
//!    each page says what is and what is to be done, and each can be left for later.
//!
//! Invariant: no step is stored. What is done follows from the node itself, so a restart loses nothing, and Home's
//! list says the same. No page is the answer to a form ([`answers`]).

use askama::Template;
use axum::{
    extract::{Extension, Query, State},
    response::{IntoResponse, Redirect, Response},
};
use farthing_control::{
    ControlError, Local, endpoint,
    types::{Activity, Api, WalletBackup},
};
use farthing_os::secret::SecretText;
use farthing_serve::ClientAddress;
use http::HeaderMap;
use serde::Deserialize;

use crate::{
    ConsoleState,
    access::Refused,
    address_or_here,
    door::{Again, SharedName},
    form::GuestForm,
    guard::cookie,
    page::Rendered,
    theme::{THEME_COOKIE, Theme},
};

use super::entered::entered;
use answers::AnswerParams;

mod answers;
pub(super) mod call;
pub(super) mod fund;
pub(super) mod reach;
pub(super) mod words;

pub(crate) use answers::SetupAnswers;
pub(super) use answers::{Mistake, SetupAnswer, lead_to};

crate::texts::words! {
    /// The pages of the set-up, in their order.
    pub(super) enum SetupStep(title.0: &'static str, path.1: &'static str) {
        Access = "Password", "/panel/setup";
        Words = "Backup words", "/panel/setup/words";
        Fund = "Money", "/panel/setup/fund";
        Reach = "Reachability", "/panel/setup/reach";
        Call = "First call", "/panel/setup/call";
    }
}

impl SetupStep {
    /// From 1 on.
    pub(super) fn number(self) -> usize {
        Self::ALL.iter().position(|one| *one == self).map_or(1, |at| at + 1)
    }

    /// Returns the address of the step before; there is no way back to the password, which is chosen once.
    pub(super) fn back(self) -> Option<&'static str> {
        let before = self.number().checked_sub(2).and_then(|at| Self::ALL.get(at));
        before.filter(|one| **one != Self::Access).map(|one| one.path())
    }

    /// Returns the address to go on to; after the last step, Home.
    pub(super) fn next(self) -> &'static str {
        Self::ALL.get(self.number()).map_or("/panel?welcome=1", |one| one.path())
    }
}

#[derive(Template)]
#[template(path = "setup.html")]
struct SetupTemplate {
    theme: Theme,
    step: SetupStep,
    mistake: Mistake,
    again: Option<Again>,
}

pub(super) async fn show(
    State(panel): State<ConsoleState>,
    Query(asked): Query<AnswerParams>,
    headers: HeaderMap,
) -> Response {
    if panel.access().setup_code().is_none() {
        return Redirect::to("/panel").into_response();
    }
    page(&panel, &headers, &asked.answer, None)
}

/// The code and a password are asked for; `answer` names what came of it before.
pub(super) fn page(
    panel: &ConsoleState,
    headers: &HeaderMap,
    answer: &str,
    again: Option<Again>,
) -> Response {
    let theme = Theme::named(cookie(headers, THEME_COOKIE).unwrap_or_default());
    let mistake = match panel.setup_answers().get(None, answer) {
        Some(SetupAnswer::Mistake(mistake)) => mistake,
        Some(SetupAnswer::Words | SetupAnswer::Done(_)) | None => Mistake::default(),
    };
    Rendered(&SetupTemplate { theme, step: SetupStep::Access, mistake, again }).into_response()
}

#[derive(Deserialize)]
pub(super) struct SetupFields {
    code: String,
    password: String,
    repeated: String,
}

pub(super) async fn set_up(
    State(panel): State<ConsoleState>,
    from: Option<Extension<ClientAddress>>,
    shared: Option<Extension<SharedName>>,
    GuestForm(fields): GuestForm<SetupFields>,
) -> Response {
    let SetupFields { code, password, repeated } = fields;
    let outcome = if password == repeated {
        let from = address_or_here(from);
        panel.access().set_up(&code, SecretText::new(password), from).await.map_err(mistake)
    } else {
        Err(Mistake::of_password("The two passwords differ. Type the same one twice."))
    };
    match outcome {
        Ok(begun) => {
            let is_new = is_new(panel.node()).await.unwrap_or(false);
            let next = if is_new { SetupStep::Words.path() } else { "/panel?welcome=1" };
            entered(&begun, next, shared)
        }
        Err(mistake) => {
            // At the shared name every other page leads away from it.
            let is_shared = shared.is_some_and(|Extension(SharedName(shared))| shared);
            let place = if is_shared { "/panel/stay" } else { SetupStep::Access.path() };
            lead_to(&panel, place, None, SetupAnswer::Mistake(Mistake { code, ..mistake }))
        }
    }
}

fn mistake(refused: Refused) -> Mistake {
    match refused {
        Refused::Unfit(unfit) => Mistake::of_password(unfit.to_string()),
        other => Mistake::new(other.to_string()),
    }
}

/// Tells if nothing was ever bought, sold, offered or backed up here. An owner who only lost a password skips the rest.
async fn is_new(node: &Local) -> Result<bool, ControlError> {
    let activity = node.ask(endpoint::Activity.with("limit", 1)).await?;
    let apis = node.ask(endpoint::Apis).await?;
    let backup = node.ask(endpoint::WalletBackup).await?;
    Ok(is_untouched(&activity, &apis, &backup))
}

/// As [`is_new`], for those who know the facts.
pub(super) fn is_untouched(activity: &Activity, apis: &[Api], backup: &WalletBackup) -> bool {
    let nothing_called = activity.bought.is_empty() && activity.served.is_empty();
    let nothing_kept = backup.written_down_secs.is_none() && backup.newest_backup_secs.is_none();
    nothing_called && apis.is_empty() && nothing_kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_leads_to_the_next_and_back_and_the_last_one_home() {
        let mut place = SetupStep::Access.next();
        for step in SetupStep::ALL.into_iter().skip(1) {
            assert_eq!(place, step.path());
            place = step.next();
        }
        assert_eq!(place, "/panel?welcome=1");
        assert_eq!(
            (SetupStep::Words.back(), SetupStep::Access.back()),
            (None, None),
            "the password is chosen once"
        );
        assert_eq!(SetupStep::Call.back(), Some(SetupStep::Reach.path()));
        assert_eq!((SetupStep::Access.number(), SetupStep::Call.number()), (1, 5));
    }
}
