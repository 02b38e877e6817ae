//! The words that are the wallet: shown, and three of them asked back. Or later.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::{IntoResponse, Redirect};
use farthing_control::endpoint;
use farthing_os::clock;

use crate::{
    failure::Page,
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    page::answer,
    pages::{
        register::mendable,
        settings::phrase::{Checked, check_words, random_numbers, words_of},
    },
    show,
};

use super::SetupStep;

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
    problem: Option<String>,
}

/// Says what comes, before it comes.
pub(in crate::pages) async fn show(visit: Visit) -> Page {
    page(&visit, Vec::new(), None).await
}

/// The answer to a form, so that no address in a history shows them again.
pub(in crate::pages) async fn reveal(form: Form<NoFields>) -> Page {
    let _ = form.confirmed()?;
    match mendable(form.visit.panel.node().ask(endpoint::Phrase).await)? {
        Ok(phrase) => page(&form.visit, words_of(&phrase), None).await,
        Err(problem) => page(&form.visit, Vec::new(), Some(problem)).await,
    }
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
    Ok(answer(&page, page.problem.as_ref()))
}

pub(in crate::pages) async fn quiz(visit: Visit) -> Page {
    check_page(&visit, random_numbers(), None).await
}

/// Words by the number in their field's name, `w7`.
pub(in crate::pages) async fn check(form: Form<BTreeMap<String, String>>) -> Page {
    match check_words(&form).await? {
        Checked::Right => Ok(Redirect::to(STEP.next()).into_response()),
        Checked::Wrong { asked, problem } => check_page(&form.visit, asked, Some(problem)).await,
    }
}

async fn check_page(visit: &Visit, asked: Vec<usize>, problem: Option<String>) -> Page {
    let frame = visit.frame(Section::Home).await?;
    let page = WordsCheckTemplate { frame, step: STEP, asked, problem };
    Ok(answer(&page, page.problem.as_ref()))
}
