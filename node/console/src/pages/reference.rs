//! Reference: each operation of a service on a page of its own, beside a tree of all of them: what a call may say, what it may
//! hear, what it costs, and the same as code.
//!
//! Everything that is shown is a stranger's. The parts of a page take of one room ([`Room`]), those that are read first before the
//! others, so that no description makes it long.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use farthing_bridge::outline::{AnswerOutline, ContentOutline, Outline};
use farthing_control::{
    Local, endpoint,
    types::{CatalogService, OperationReference},
};
use serde::Deserialize;

use crate::{
    failure::Page,
    frame::{Frame, Section, Visit},
    icons::Icon,
    markup::{Markup, Room, outline_of, strangers_markdown, text_in},
    page::{Rendered, encoded},
    show,
};

use super::{
    operations::{self, LookedAt, OperationTree},
    sandbox::{self, CodeTabs},
    saved::SavedLinks,
    service::{Part, Sample, ServiceHead, service_id},
};

/// HTML of all parts of an operation; frame, head and tree have the rest of what a page should have.
const ROOM_BYTES: usize = 20 * 1024;
/// No part takes what the others need.
const CODE_BYTES_MAX: usize = 9 * 1024;
const DESCRIPTION_BYTES_MAX: usize = 5 * 1024;
const OUTLINE_BYTES_MAX: usize = 9 * 1024;
const EXAMPLE_BYTES_MAX: usize = 3 * 1024;
/// Of a description's text; the longest that has room as HTML is shown.
const DESCRIPTION_CUTS: [usize; 3] = [4_000, 1_000, 200];
const TITLE_CHARS_MAX: usize = 200;
const MEDIA_CHARS_MAX: usize = 100;
const PATH_CHARS_MAX: usize = 400;

#[derive(Template)]
#[template(path = "reference.html")]
struct ReferenceTemplate {
    frame: Frame,
    head: ServiceHead,
    here: String,
    tree: OperationTree,
    saved: SavedLinks,
    shown: Option<OperationShown>,
}

/// An operation as its page shows it.
struct OperationShown {
    title: String,
    method: String,
    path: String,
    price: String,
    deprecated: bool,
    timeout_secs: Option<u64>,
    description: Markup,
    is_description_cut: bool,
    /// The address at which it can be tried.
    sandbox: String,
    parameters: Vec<Places>,
    body: Option<BodyShape>,
    answers: Vec<AnswerShape>,
    answers_hidden: usize,
    /// The answer that the owner published.
    sample: Option<ExampleShown>,
    languages: Vec<LanguageTab>,
    code: Option<Markup>,
    code_note: Option<&'static str>,
}

/// Parameters that travel in one part of the request.
struct Places {
    title: &'static str,
    outline: Markup,
}

struct BodyShape {
    required: bool,
    description: String,
    content: ContentShape,
}

struct AnswerShape {
    status: String,
    is_success: bool,
    description: String,
    /// Absent of an answer without a body.
    content: Option<ContentShape>,
}

struct ContentShape {
    media_types: String,
    /// Of a value whose parts are listed; others say it themselves.
    kind: String,
    outline: Markup,
    example: Option<Markup>,
}

struct ExampleShown {
    status: u16,
    origin: &'static str,
    text: Markup,
}

struct LanguageTab {
    title: String,
    link: String,
    is_chosen: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct ReferenceParams {
    language: String,
}

pub(super) async fn show(
    visit: Visit,
    Path(id): Path<String>,
    Query(asked): Query<ReferenceParams>,
    Query(looked_at): Query<LookedAt>,
) -> Page {
    let id = service_id(&id)?;
    let node = visit.panel.node();
    let service = node.ask(endpoint::CatalogService.of(id)).await?;
    let frame = visit.frame(Section::Catalog).await?;
    let chosen = looked_at.chosen(&service.offers)?;
    let shown = match chosen {
        None => None,
        Some((_, offer)) => {
            let at = endpoint::CatalogReference.of(id);
            let reference = node
                .ask(at.with("method", offer.method.0.as_str()).with("path", offer.path.as_str()))
                .await?;
            let gateway = &frame.status.gateway_url;
            let call = &reference.call;
            let code = sandbox::code_of_example(node, &service, call, gateway, &asked.language).await;
            let sample = sample(node, &service, &operations::name_of(offer)).await;
            Some(OperationShown::new(&id.to_string(), &reference, &code, sample.as_ref()))
        }
    };
    let page = ReferenceTemplate {
        head: ServiceHead::new(node, &service, Part::Reference).await?,
        here: Part::Reference.address(&id.to_string()),
        tree: OperationTree::new(&service.offers, &looked_at, chosen.map(|(place, _)| place)),
        saved: SavedLinks::of(node, id, None).await?,
        shown,
        frame,
    };
    Ok(Rendered(&page).into_response())
}

/// The answer of this operation that the owner published; none where the document cannot be had.
async fn sample(node: &Local, service: &CatalogService, operation: &str) -> Option<Sample> {
    if service.samples == 0 {
        return None;
    }
    let published = node.ask(endpoint::CatalogSamples.of(service.hit.id.0)).await.ok()?;
    published.samples.iter().find(|sample| sample.operation == operation).map(Sample::new)
}

impl OperationShown {
    fn new(id: &str, reference: &OperationReference, panel: &CodeTabs, sample: Option<&Sample>) -> Self {
        let (call, outline) = (&reference.call, &reference.outline);
        let name = format!("{} {}", call.method, call.path);
        let handle = encoded(&operations::handle(&name));
        let mut room = Room::of(ROOM_BYTES);
        let code = panel.shown().and_then(|code| text_at_most(&mut room, CODE_BYTES_MAX, &code.text));
        let code_note = match code {
            None if !panel.chosen.is_empty() => {
                Some("The code of this call is too long for this page. The sandbox shows it.")
            }
            _ => panel.note,
        };
        let (description, is_description_cut) = description(&mut room, &call.description);
        let all: Vec<(&'static str, &Outline)> =
            outline.parameters.iter().map(|one| (one.place.name(), &one.value)).collect();
        let parameters = [("path", "Path"), ("query", "Query"), ("header", "Headers")];
        let parameters = parameters.into_iter().filter_map(|(place, title)| {
            let here: Vec<&Outline> =
                all.iter().filter(|(own, _)| *own == place).map(|(_, one)| *one).collect();
            (!here.is_empty()).then(|| Places { title, outline: within(&mut room, &here) })
        });
        let parameters = parameters.collect();
        let body = outline.body.as_ref().map(|body| BodyShape {
            required: body.required,
            description: show::beginning(&body.description, TITLE_CHARS_MAX),
            content: ContentShape::new(&mut room, &body.content),
        });
        let text = sample.and_then(|sample| Some((sample, text_cut(&mut room, &sample.text)?)));
        let answers: Vec<AnswerShape> =
            outline.answers.iter().map_while(|answer| AnswerShape::new(&mut room, answer)).collect();
        let title = if call.summary.trim().is_empty() { &name } else { &call.summary };
        Self {
            title: show::beginning(title, TITLE_CHARS_MAX),
            method: call.method.to_string(),
            path: show::beginning(&call.path, PATH_CHARS_MAX),
            price: show::usdc(call.price.0),
            deprecated: call.deprecated,
            timeout_secs: call.timeout_secs,
            description,
            is_description_cut,
            sandbox: format!(
                "{}?operation={handle}&language={}",
                Part::Sandbox.address(id),
                encoded(&panel.chosen)
            ),
            parameters,
            body,
            answers_hidden: outline.answers.len().saturating_sub(answers.len()),
            answers,
            sample: text.map(|(sample, text)| ExampleShown {
                status: sample.status,
                origin: sample.origin,
                text,
            }),
            languages: languages(panel, &handle),
            code,
            code_note,
        }
    }
}

impl AnswerShape {
    /// None where the page has no room for another.
    fn new(room: &mut Room, answer: &AnswerOutline) -> Option<Self> {
        // Escaped, a character may take five times its bytes.
        const ELEMENTS_BYTES: usize = 400 + 5 * TITLE_CHARS_MAX;
        room.take(ELEMENTS_BYTES).then(|| Self {
            status: answer.status.clone(),
            is_success: answer.status.starts_with('2'),
            description: show::beginning(&answer.description, TITLE_CHARS_MAX),
            content: answer.content.as_ref().map(|content| ContentShape::new(room, content)),
        })
    }
}

impl ContentShape {
    fn new(room: &mut Room, content: &ContentOutline) -> Self {
        let value = &content.value;
        let has_parts = !value.parts.is_empty() && value.end.is_none();
        let listed: Vec<&Outline> = if has_parts { value.parts.iter().collect() } else { vec![value] };
        Self {
            media_types: show::beginning(&content.media_types.join(", "), MEDIA_CHARS_MAX),
            kind: if has_parts { show::beginning(&value.kind, MEDIA_CHARS_MAX) } else { String::new() },
            outline: within(room, &listed),
            example: content.example.as_ref().and_then(|text| text_cut(room, text)),
        }
    }
}

fn languages(panel: &CodeTabs, handle: &str) -> Vec<LanguageTab> {
    let tab = |code: &sandbox::Code| LanguageTab {
        title: code.title.clone(),
        link: format!("?operation={handle}&language={}#as-code", encoded(&code.language)),
        is_chosen: code.language == panel.chosen,
    };
    panel.plain.iter().chain(&panel.clients).map(tab).collect()
}

/// A stranger's Markdown, as much of it as has room, and whether that is not all of it.
fn description(room: &mut Room, text: &str) -> (Markup, bool) {
    let mut cuts = DESCRIPTION_CUTS.into_iter().map(|bytes| text.floor_char_boundary(bytes));
    let longest = cuts.find_map(|end| {
        let html = strangers_markdown(text.get(..end).unwrap_or_default());
        (html.len() <= DESCRIPTION_BYTES_MAX && room.take(html.len())).then_some((html, end < text.len()))
    });
    longest.unwrap_or((Markup::default(), !text.is_empty()))
}

fn within(room: &mut Room, values: &[&Outline]) -> Markup {
    let mut part = room.part(OUTLINE_BYTES_MAX);
    let html = outline_of(values.iter().copied(), &mut part);
    room.give_back(&part);
    html
}

/// A text whole, or not at all.
fn text_at_most(room: &mut Room, bytes_max: usize, text: &str) -> Option<Markup> {
    let mut part = room.part(bytes_max);
    let html = text_in(&mut part, text);
    room.give_back(&part);
    html
}

/// The beginning of a text, half as long again and again until it has room.
fn text_cut(room: &mut Room, text: &str) -> Option<Markup> {
    let mut lengths =
        std::iter::successors(Some(EXAMPLE_BYTES_MAX), |bytes| Some(bytes / 2).filter(|bytes| *bytes > 100));
    lengths.find_map(|bytes| {
        let cut = text.get(..text.floor_char_boundary(bytes)).unwrap_or_default();
        let shown = if cut.len() < text.len() { format!("{cut}…") } else { cut.to_owned() };
        text_at_most(room, EXAMPLE_BYTES_MAX, &shown)
    })
}

#[cfg(test)]
mod tests;
