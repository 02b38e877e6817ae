//! The words that are the wallet: shown, and three of them asked back. Or later.

use std::collections::BTreeMap;

use askama::Template;
use axum::{
    extract::Query,
    response::{IntoResponse, Redirect},
};
use farthing_control::endpoint;
use farthing_os::clock;

use crate::{
    failure::Page,
    form::NoFields,
    frame::{Frame, Section, Visit},
    page::Rendered,
    pages::{
        register::mendable,
        settings::phrase::{Checked, check_words, random_numbers, words_of},
    },
    show,
};

use super::{
    SetupStep,
    answers::{AnswerParams, Mistake, SetupAnswer, SetupForm, lead_to},
};

const STEP: SetupStep = SetupStep::Words;
pub(in crate::pages) const CHECK: &str = "/panel/setup/words/check";

#[derive(Template)]
#[template(path = "setup-words.html")]
struct WordsTemplate {
    frame: Frame,
    step: SetupStep,
    /// Empty until they are asked for.
    words: Vec<String>,
    /// The time since it was shown that they are written down.
    written_down: Option<String>,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "setup-words-check.html")]
struct WordsCheckTemplate {
    frame: Frame,
    step: SetupStep,
    /// Numbers of words, from 1 on.
    asked: Vec<usize>,
    problem: String,
    /// It was not entered lately.
    needs_password: bool,
}

/// Says what comes, before it comes; for ten minutes after the password, and where the address says so, the words.
pub(in crate::pages) async fn show(visit: Visit, Query(asked): Query<AnswerParams>) -> Page {
    match visit.panel.setup_answers().get(Some(visit.session.id()), &asked.answer) {
        Some(SetupAnswer::Words) => match mendable(visit.panel.node().ask(endpoint::Phrase).await)? {
            Ok(phrase) => page(&visit, words_of(&phrase), None).await,
            Err(problem) => page(&visit, Vec::new(), Some(problem)).await,
        },
        Some(SetupAnswer::Mistake(mistake)) => page(&visit, Vec::new(), Some(mistake.problem)).await,
        Some(SetupAnswer::Done(_)) | None => page(&visit, Vec::new(), None).await,
    }
}

/// Lets this session see the words, at an address that only this answer names.
pub(in crate::pages) async fn reveal(SetupForm(form): SetupForm<NoFields>) -> Page {
    let _ = form.confirmed()?;
    Ok(lead_to(&form.visit.panel, STEP.path(), Some(form.visit.session.id()), SetupAnswer::Words))
}

async fn page(visit: &Visit, words: Vec<String>, problem: Option<String>) -> Page {
    let backup = visit.panel.node().ask(endpoint::WalletBackup).await?;
    let page = WordsTemplate {
        frame: visit.frame(Section::Home).await?,
        step: STEP,
        words,
        written_down: backup.written_down_secs.map(|secs| show::ago(secs, clock::now_secs())),
        problem,
    };
    Ok(Rendered(&page).into_response())
}

pub(in crate::pages) async fn quiz(visit: Visit, Query(asked): Query<AnswerParams>) -> Page {
    let mistake = match visit.panel.setup_answers().get(Some(visit.session.id()), &asked.answer) {
        Some(SetupAnswer::Mistake(mistake)) => mistake,
        Some(SetupAnswer::Words | SetupAnswer::Done(_)) | None => Mistake::default(),
    };
    let page = WordsCheckTemplate {
        frame: visit.frame(Section::Home).await?,
        step: STEP,
        asked: if mistake.asked.is_empty() { random_numbers() } else { mistake.asked },
        problem: mistake.problem,
        needs_password: visit.session.reauthenticated(clock::now_secs()).is_none(),
    };
    Ok(Rendered(&page).into_response())
}

/// Words by the number in their field's name, `w7`.
pub(in crate::pages) async fn check(SetupForm(form): SetupForm<BTreeMap<String, String>>) -> Page {
    let (panel, session) = (&form.visit.panel, form.visit.session.id());
    match check_words(&form).await? {
        Checked::Right => {
            panel.setup_answers().forget(session);
            Ok(Redirect::to(STEP.next()).into_response())
        }
        Checked::Wrong { asked, problem } => {
            let mistake = Mistake { asked, ..Mistake::new(problem) };
            Ok(lead_to(panel, CHECK, Some(session), SetupAnswer::Mistake(mistake)))
        }
    }
}
