//! The words that are the wallet: shown when asked for, and three of them asked back.

use std::collections::BTreeMap;

use askama::Template;
use axum::response::{IntoResponse, Redirect};
use farthing_control::{
    endpoint,
    types::{Phrase, PhraseCheck},
};

use crate::{
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    page::{Rendered, answer},
    pages::register::mendable,
};

const LIST: &str = "/panel/settings/backup";
/// The number of words that are asked for: a person who has these has most likely all of them.
const ASKED: usize = 3;
const WORDS: usize = 24;

#[derive(Template)]
#[template(path = "settings-phrase.html")]
struct PhraseTemplate {
    frame: Frame,
    words: Vec<String>,
    address: String,
}

#[derive(Template)]
#[template(path = "settings-phrase-check.html")]
struct PhraseCheckTemplate {
    frame: Frame,
    /// Numbers of words, from 1 on.
    asked: Vec<usize>,
    problem: Option<String>,
}

#[derive(Template)]
#[template(path = "settings-phrase-ask.html")]
struct AskPage {
    frame: Frame,
}

/// Says what comes, before it comes.
pub(in crate::pages) async fn ask(visit: Visit) -> Page {
    Ok(Rendered(&AskPage { frame: visit.frame(Section::Settings).await? }).into_response())
}

/// The answer to a form, so that no address in a history shows it again.
pub(in crate::pages) async fn show(form: Form<NoFields>) -> Page {
    let _ = form.confirmed()?;
    let phrase = form.visit.panel.node().ask(endpoint::Phrase).await?;
    let words = words_of(&phrase);
    let address = phrase.address;
    let frame = form.visit.frame(Section::Settings).await?;
    Ok(Rendered(&PhraseTemplate { frame, words, address }).into_response())
}

pub(in crate::pages) async fn quiz(visit: Visit) -> Page {
    check_page(&visit, random_numbers(), None).await
}

/// The words, in their order.
pub(in crate::pages) fn words_of(phrase: &Phrase) -> Vec<String> {
    phrase.phrase.split(' ').map(ToOwned::to_owned).collect()
}

/// Numbers of words to ask for, from 1 on.
pub(in crate::pages) fn random_numbers() -> Vec<usize> {
    asked_of(uuid::Uuid::new_v4().into_bytes())
}

/// Different words, in their order.
fn asked_of(random: [u8; 16]) -> Vec<usize> {
    let third = WORDS / ASKED;
    (0..ASKED).map(|part| part * third + usize::from(random[part]) % third + 1).collect()
}

async fn check_page(visit: &Visit, asked: Vec<usize>, problem: Option<String>) -> Page {
    let frame = visit.frame(Section::Settings).await?;
    let page = PhraseCheckTemplate { frame, asked, problem };
    Ok(answer(&page, page.problem.as_ref()))
}

/// Words by the number in their field's name, `w7`.
pub(in crate::pages) async fn check(form: Form<BTreeMap<String, String>>) -> Page {
    match check_words(&form).await? {
        Checked::Right => Ok(Redirect::to(LIST).into_response()),
        Checked::Wrong { asked, problem } => check_page(&form.visit, asked, Some(problem)).await,
    }
}

/// The result of checking words that were typed.
pub(in crate::pages) enum Checked {
    Right,
    /// These are asked for again.
    Wrong {
        asked: Vec<usize>,
        problem: String,
    },
}

/// Compares words, by the number in their field's name, with those of the wallet.
pub(in crate::pages) async fn check_words(form: &Form<BTreeMap<String, String>>) -> Result<Checked, Failure> {
    let _ = form.reauthenticated()?;
    let number =
        |name: &String| name.strip_prefix('w')?.parse::<usize>().ok().filter(|at| (1..=WORDS).contains(at));
    let words: BTreeMap<usize, String> =
        form.fields.iter().filter_map(|(name, word)| Some((number(name)?, word.clone()))).collect();
    let asked: Vec<usize> = words.keys().copied().collect();
    if asked.len() < ASKED {
        let problem = "Type all three words.".to_owned();
        return Ok(Checked::Wrong { asked: random_numbers(), problem });
    }
    let request = PhraseCheck { words };
    Ok(match mendable(form.visit.panel.node().tell(endpoint::CheckPhrase, &request).await)? {
        Ok(_) => Checked::Right,
        Err(problem) => Checked::Wrong { asked, problem },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_different_words_of_the_phrase_are_asked_for() {
        for random in
            [[0; 16], [255; 16], [7; 16], std::array::from_fn(|at| u8::try_from(at * 16).unwrap_or(9))]
        {
            let asked = asked_of(random);
            assert!(asked.windows(2).all(|pair| pair[0] < pair[1]), "{asked:?}");
            assert!(asked.len() == ASKED && asked.iter().all(|at| (1..=WORDS).contains(at)), "{asked:?}");
        }
    }
}
