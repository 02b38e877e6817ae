//! Registering an API, in steps: where it is described, what of it is offered for how much, how it is called, and a
//! preview, from which it goes live. Each thing is asked in one step alone.
//!
//! What is chosen between the steps is a [`Draft`] in memory. Nothing is published before the last step.

use std::collections::BTreeMap;

use askama::Template;
use axum::{
    extract::{Path, State},
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    ControlError, Local,
    endpoint::{self, Endpoint, Target},
    types::{InspectRequest, Inspection, Problem, SourceFile, SourceKind},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    ConsoleState,
    failure::{Failure, Page},
    form::{
        Form, NoFields,
        upload::{Upload, document},
    },
    frame::{Frame, Section, Visit},
    markup::ProblemText,
    page::answer,
    show, texts,
};

pub(super) mod details;
pub(super) mod draft;
pub(super) mod preview;
pub(super) mod review;

pub(crate) use draft::Drafts;
pub(super) use draft::price;
use draft::{Choices, Draft, UpstreamSecret};

/// A pasted text that is shown again after a mistake; a longer one is still in the browser, one step back.
const TEXT_SHOWN_BYTES_MAX: usize = 8 * 1024;

#[derive(Template)]
#[template(path = "register.html")]
struct RegisterTemplate {
    frame: Frame,
    fields: RegisterFields,
    problem: Option<ProblemText>,
    unfinished: Vec<(String, String)>,
}

/// Input of the first step, as it was typed.
#[derive(Default)]
struct RegisterFields {
    text: String,
    url: String,
    header_name: String,
}

crate::texts::words! {
    /// The steps, for the line above each page.
    pub(super) enum RegisterStep(title.0: &'static str) {
        Source = "Description";
        Operations = "Operations";
        Details = "Details";
        Preview = "Preview";
    }
}

impl RegisterStep {
    pub(super) fn path(self, draft: &str) -> String {
        match self {
            Self::Source => "/panel/apis/new".to_owned(),
            Self::Operations => format!("/panel/apis/new/{draft}"),
            Self::Details => format!("/panel/apis/new/{draft}/details"),
            Self::Preview => format!("/panel/apis/new/{draft}/preview"),
        }
    }
}

pub(super) async fn show(visit: Visit) -> Page {
    page(&visit, RegisterFields::default(), None).await
}

async fn page(visit: &Visit, fields: RegisterFields, problem: Option<ProblemText>) -> Page {
    let frame = visit.frame(Section::Apis).await?;
    let unfinished = visit.panel.drafts().unfinished(visit.session.id());
    let page = RegisterTemplate { frame, fields, problem, unfinished };
    Ok(answer(&page, page.problem.as_ref()))
}

/// Reads what was brought, and begins a draft of it.
pub(super) async fn begin(mut upload: Upload) -> Page {
    let (file, file_name) = upload.take("file");
    let (text, _) = upload.take("text");
    let (header_value, _) = upload.take("header_value");
    let typed = |name: &str| upload.text(name).trim().to_owned();
    let mut fields =
        RegisterFields { text: String::new(), url: typed("url"), header_name: typed("header_name") };
    let visit = upload.visit;
    let mut header = UpstreamSecret::default();
    header.set(&fields.header_name, &header_value);
    let outcome = match source(file, &file_name, &text, &fields.url) {
        Err(problem) => Err(ProblemText::new(problem)),
        Ok(source) => inspect(&visit.panel, &source, &header).await?.map(|inspection| (source, inspection)),
    };
    match outcome {
        Ok((mut source, inspection)) => {
            let text = source.text.take();
            source = SourceFile { text, ..inspection.source.clone() };
            let choices = Choices { header, ..Choices::default() };
            let draft = Draft::new(source, inspection, choices);
            let name = visit.panel.drafts().begin(visit.session.id(), draft)?;
            Ok(Redirect::to(&RegisterStep::Operations.path(&name)).into_response())
        }
        Err(problem) => {
            if text.len() <= TEXT_SHOWN_BYTES_MAX {
                fields.text = text;
            }
            page(&visit, fields, Some(problem)).await
        }
    }
}

/// The one source that was given.
fn source(file: String, file_name: &str, text: &str, url: &str) -> Result<SourceFile, String> {
    let given = |text: &str| !text.trim().is_empty();
    match (given(&file), given(text), given(url)) {
        (true, false, false) => {
            let name: String = show::visible(file_name).chars().take(120).collect();
            Ok(document(file, name))
        }
        (false, true, false) => Ok(document(text.to_owned(), String::new())),
        (false, false, true) => Ok(SourceFile::at(SourceKind::Scan, url.to_owned())),
        (false, false, false) if !file_name.is_empty() => {
            Err(format!("The file “{}” is empty. Choose another.", show::visible(file_name)))
        }
        (false, false, false) => {
            Err("No description was given. Upload a file, paste its text, or enter a server to scan."
                .to_owned())
        }
        _ => Err("More than one description was given. Use only one: file, text or server.".to_owned()),
    }
}

/// Asks the node what it makes of a source; the inner error is the owner's to mend.
async fn inspect(
    panel: &ConsoleState,
    source: &SourceFile,
    header: &UpstreamSecret,
) -> Result<Result<Inspection, ProblemText>, Failure> {
    if !header.name.is_empty() && header.value.is_none() {
        let problem = "The secret header has a name but no value. Enter both, or neither.";
        return Ok(Err(ProblemText::new(problem)));
    }
    let value = header.value.as_ref().map(|value| (header.name.clone(), value.expose().to_owned()));
    let upstream_headers: BTreeMap<String, String> = value.into_iter().collect();
    let request = InspectRequest { source: source.clone(), upstream_headers };
    explained(panel.node().tell(endpoint::InspectApi, &request).await)
}

/// Parts what the owner can mend from what is wrong with the node.
pub(super) fn explained<T>(outcome: Result<T, ControlError>) -> Result<Result<T, ProblemText>, Failure> {
    match outcome {
        Ok(value) => Ok(Ok(value)),
        Err(ControlError::Refused(problem)) if matches!(problem.status, 400..=499 | 502) => {
            Ok(Err(problem_text(&problem)))
        }
        Err(error) => Err(error.into()),
    }
}

/// The same, with the mistake and the next step in one text.
pub(super) fn mendable<T>(outcome: Result<T, ControlError>) -> Result<Result<T, String>, Failure> {
    Ok(explained(outcome)?.map_err(|problem| problem.to_string()))
}

/// The mistake and the step to take next. Pages say themselves what was left undone.
fn problem_text(problem: &Problem) -> ProblemText {
    let text = ProblemText::new(texts::sentence(&show::visible_lines(&problem.detail)));
    match problem.next.as_deref().map(show::visible).filter(|next| !next.is_empty()) {
        Some(next) => text.with_next(texts::sentence(&next)),
        None => text,
    }
}

/// Tells the node what a form asks for, where that could be read; the inner error is the owner's to mend.
pub(super) async fn told<E>(
    node: &Local,
    at: impl Into<Target<E>>,
    request: Result<E::Request, String>,
) -> Result<Result<E::Response, String>, Failure>
where
    E: Endpoint<Request: Serialize, Response: DeserializeOwned>,
{
    match request {
        Ok(request) => mendable(node.tell(at, &request).await),
        Err(problem) => Ok(Err(problem)),
    }
}

/// Another of the descriptions that a scan found.
#[derive(Deserialize)]
pub(super) struct Candidate {
    candidate: usize,
}

pub(super) async fn choose(Path(name): Path<String>, form: Form<Candidate>) -> Page {
    let Form { visit, fields, .. } = form;
    let drafts = visit.panel.drafts();
    let draft = drafts.get(visit.session.id(), &name)?;
    let candidate = draft.inspection.candidates.get(fields.candidate);
    let source = candidate.map(|candidate| candidate.source.clone()).ok_or_else(Failure::not_found)?;
    match inspect(&visit.panel, &source, &draft.choices.header).await? {
        Ok(mut inspection) => {
            inspection.candidates.clone_from(&draft.inspection.candidates);
            // What follows from the description is taken from this one.
            let choices = Choices { name: String::new(), upstream: String::new(), ..draft.choices };
            let source = inspection.source.clone();
            let other = Draft::new(source, inspection, choices);
            drafts.change(visit.session.id(), &name, |draft| *draft = other)?;
            Ok(Redirect::to(&RegisterStep::Operations.path(&name)).into_response())
        }
        Err(problem) => page(&visit, RegisterFields::default(), Some(problem)).await,
    }
}

pub(super) async fn discard(
    State(panel): State<ConsoleState>,
    Path(name): Path<String>,
    form: Form<NoFields>,
) -> Redirect {
    panel.drafts().discard(form.visit.session.id(), &name);
    Redirect::to("/panel/apis")
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    #[test]
    fn a_mistake_tells_the_next_step_and_leaves_to_the_page_what_was_left_undone() {
        let told = |next: &str| {
            let mut problem = Problem::of_status(StatusCode::BAD_REQUEST, "no connection", next);
            problem.undone = Some("Nothing was changed.".to_owned());
            problem_text(&problem).to_string()
        };
        assert_eq!(told("check the address"), "No connection. Check the address.");
        assert_eq!(told(""), "No connection.");
    }

    #[test]
    fn one_source_is_taken_and_several_or_none_are_told() {
        let kind = |file: &str, name: &str, text: &str, url: &str| {
            source(file.to_owned(), name, text, url).map(|source| (source.kind, source.file))
        };
        assert_eq!(kind("{}", "a\u{202e}b.json", " ", ""), Ok((SourceKind::Openapi, "ab.json".to_owned())));
        assert_eq!(kind("", "", "type Query", ""), Ok((SourceKind::Openapi, String::new())));
        assert_eq!(kind("", "", "", "http://127.0.0.1:1"), Ok((SourceKind::Scan, String::new())));
        assert!(kind("", "", "", "").unwrap_err().contains("No description"));
        assert!(kind("", "empty.json", "", "").unwrap_err().contains("is empty"));
        assert!(kind("{}", "a", "{}", "").unwrap_err().contains("More than one"));
    }
}
