//! The third step: what strangers read, where the node sends calls, and a request to see that it works.

use std::collections::BTreeMap;

use askama::Template;
use axum::{
    extract::Path,
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint,
    types::{CatalogKind, OperationName, SamplesFile, Tried, TryRequest},
};
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    form::Form,
    frame::{Frame, Section, Visit},
    markup::ProblemText,
    page::answer,
    pages::catalog::categories,
    show,
};

use super::{
    RegisterStep,
    draft::{Choices, Draft, charge_sent, charges},
    explained,
};

/// Operations to choose from for a test request.
const OPERATIONS_SHOWN: usize = 200;

#[derive(Template)]
#[template(path = "register-details.html")]
struct DetailsTemplate {
    frame: Frame,
    name: String,
    step: RegisterStep,
    title: String,
    fields: Choices,
    kind: CatalogKind,
    security: String,
    upstreams: Vec<String>,
    /// Suggestions.
    categories: Vec<String>,
    /// Value, words, chosen.
    charges: [(&'static str, &'static str, bool); 2],
    samples: [(&'static str, &'static str, bool); 3],
    operations: Vec<String>,
    asked: DetailsParams,
    /// The answer of the owner's server, or why it was not asked.
    tried: Option<Result<TriedShown, ProblemText>>,
    problem: Option<ProblemText>,
}

/// Input of a test request, as it was typed.
#[derive(Default)]
struct DetailsParams {
    operation: String,
    params: String,
}

struct TriedShown {
    good: bool,
    headline: String,
    facts: String,
    beginning: String,
}

#[derive(Deserialize)]
pub(in crate::pages) struct DetailsFields {
    name: String,
    summary: String,
    description: String,
    category: String,
    tags: String,
    charge: String,
    samples: String,
    upstream: String,
    header_name: String,
    header_value: String,
    query_name: String,
    query_value: String,
    #[serde(default)]
    operation: String,
    #[serde(default)]
    params: String,
    #[serde(default)]
    go: String,
}

impl DetailsFields {
    fn apply(&self, choices: &mut Choices) {
        for (field, value) in [
            (&mut choices.name, &self.name),
            (&mut choices.summary, &self.summary),
            (&mut choices.category, &self.category),
            (&mut choices.tags, &self.tags),
            (&mut choices.upstream, &self.upstream),
        ] {
            value.trim().clone_into(field);
        }
        choices.description = self.description.replace("\r\n", "\n");
        choices.header.set(&self.header_name, &self.header_value);
        choices.query.set(&self.query_name, &self.query_value);
        choices.charge = charge_sent(&self.charge);
        choices.samples = match self.samples.as_str() {
            "recorded" => SamplesFile::Recorded,
            "none" => SamplesFile::None,
            _ => SamplesFile::Described,
        };
    }
}

pub(in crate::pages) async fn show(visit: Visit, Path(name): Path<String>) -> Page {
    let draft = visit.panel.drafts().get(visit.session.id(), &name)?;
    page(&visit, name, draft, DetailsParams::default(), None, None).await
}

pub(in crate::pages) async fn save(Path(name): Path<String>, form: Form<DetailsFields>) -> Page {
    if form.fields.go == "try" {
        // The draft's keys go to the server that stands in this form.
        let _ = form.reauthenticated()?;
    }
    let Form { visit, fields, .. } = form;
    let draft = visit.panel.drafts().change(visit.session.id(), &name, |draft| {
        fields.apply(&mut draft.choices);
        draft.clone()
    })?;
    if fields.go == "back" {
        return Ok(Redirect::to(&RegisterStep::Operations.path(&name)).into_response());
    }
    let asked = DetailsParams { operation: fields.operation, params: fields.params };
    if fields.go == "try" {
        let tried = Some(try_out(&visit, &draft, &asked).await?.map(|tried| shown(&tried)));
        return page(&visit, name, draft, asked, tried, None).await;
    }
    match draft.file() {
        Ok(_) => Ok(Redirect::to(&RegisterStep::Preview.path(&name)).into_response()),
        Err(wrong) => page(&visit, name, draft, asked, None, Some(ProblemText::new(wrong.words()))).await,
    }
}

async fn try_out(
    visit: &Visit,
    draft: &Draft,
    asked: &DetailsParams,
) -> Result<Result<Tried, ProblemText>, Failure> {
    let file = match draft.file() {
        Ok(file) => file,
        Err(wrong) => return Ok(Err(ProblemText::new(wrong.words()))),
    };
    let operation = match asked.operation.as_str() {
        "" => None,
        named => match operation(named) {
            Some(operation) => Some(operation),
            None => {
                let problem = "The operation to try does not belong to this API.";
                return Ok(Err(ProblemText::new(problem)));
            }
        },
    };
    let params: BTreeMap<String, String> = url::form_urlencoded::parse(asked.params.trim().as_bytes())
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    explained(visit.panel.node().tell(endpoint::TryApi, &TryRequest { file, operation, params }).await)
}

/// `GET /v1/things`
fn operation(text: &str) -> Option<OperationName> {
    let (method, path) = text.split_once(' ')?;
    Some(OperationName { method: method.parse().ok()?, path: path.to_owned() })
}

/// The same in a form that only our own pages fill in.
pub(in crate::pages) fn operation_sent(text: &str) -> Result<OperationName, Failure> {
    operation(text).ok_or_else(|| Failure::unreadable("`operation` is not a method and a path."))
}

fn shown(tried: &Tried) -> TriedShown {
    let headline = match (tried.status, tried.answered) {
        (401 | 403, _) => format!(
            "{}: the server requires authentication. Check the secret header or parameter.",
            tried.status
        ),
        (status @ 400.., true) => format!("{status}: the server answers, but declines this request."),
        (status, true) => format!("{status}: the server answers."),
        (0, false) => format!("No answer: {}.", tried.reason),
        (status, false) => format!("{status}: callers would get no answer, because {}.", tried.reason),
    };
    let mut facts = format!(
        "{}, {}, server: {}",
        show::visible(&tried.operation),
        show::duration(tried.took_us),
        show::visible(&tried.upstream_class)
    );
    if tried.bytes > 0 {
        facts.push_str(&format!(", {} bytes of {}", tried.bytes, show::visible(&tried.media_type)));
    }
    TriedShown {
        good: tried.answered && tried.status < 400,
        headline,
        facts,
        beginning: show::visible_lines(&tried.beginning),
    }
}

async fn page(
    visit: &Visit,
    name: String,
    draft: Draft,
    asked: DetailsParams,
    tried: Option<Result<TriedShown, ProblemText>>,
    problem: Option<ProblemText>,
) -> Page {
    let inspection = &draft.inspection;
    let wanted: Vec<String> = inspection.security.iter().map(ToString::to_string).collect();
    let offered = inspection.operations.iter().zip(&draft.choices.operations);
    let offered = offered.filter(|(_, chosen)| chosen.offered).map(|(operation, _)| operation);
    let samples = draft.choices.samples;
    let page = DetailsTemplate {
        frame: visit.frame(Section::Apis).await?,
        name,
        step: RegisterStep::Details,
        title: show::visible(&draft.title()),
        kind: inspection.kind.0,
        security: wanted.join(", "),
        upstreams: inspection.upstreams.iter().map(|upstream| show::visible(upstream)).collect(),
        categories: categories(visit.panel.node()).await?,
        charges: charges(draft.choices.charge),
        samples: [
            ("described", "The description's examples", samples == SamplesFile::Described),
            ("recorded", "Answers of your server, recorded now", samples == SamplesFile::Recorded),
            ("none", "None", samples == SamplesFile::None),
        ],
        operations: offered
            .take(OPERATIONS_SHOWN)
            .map(|operation| format!("{} {}", operation.method, operation.path))
            .collect(),
        fields: draft.choices,
        asked,
        tried,
        problem,
    };
    let not_asked = page.tried.as_ref().and_then(|tried| tried.as_ref().err());
    Ok(answer(&page, page.problem.as_ref().or(not_asked)))
}
