//! Sandbox: any operation of a service, tried: a form from its description, a free sample or a live call, the answer
//! in every view, and the same call as code.
//!
//! 1. A button posts the form ([`sent`], [`filled`]), with files where the operation takes some ([`files`]). A live call
//!    goes the way of every call, so limits apply, and no more is paid than the button said; a sample asks nobody.
//! 2. What comes back is kept for the session ([`crate::history`]), and the browser goes on to a page that
//!    shows it ([`answer`]), or that it is under way ([`under_way`]): loading that again pays nothing.
//! 3. `sandbox.js` posts the form as one types and exchanges the code ([`code`]); without it, a button does.
//!
//! Invariant: every end of a call says whether it was charged ([`cost`]).

use std::time::Instant;

use axum::{
    extract::{Path, Query, State},
    response::{IntoResponse, Redirect},
};
use farthing_bridge::media::without_parameters;
use farthing_control::{
    Local, endpoint,
    types::{
        CallForm, CatalogSamples, CatalogService, Text, UsdcText,
        sdk::{Snippet, SnippetBody, SnippetPart, SnippetRequest},
    },
};
use farthing_os::clock;
use farthing_sdk::UploadPart;
use farthing_serve::attachment;
use farthing_values::{CallId, ServiceId};
use http::StatusCode;
use serde::Deserialize;

use crate::{
    ConsoleState,
    access::Session,
    failure::{Failure, Page},
    frame::{Section, Visit},
    headers::ShowsContent,
    history::{Answer, AskedParty, CallStage, Exchange, StoredExchange},
    page::Rendered,
};

use super::{
    operations::LookedAt,
    saved::SavedLinks,
    service::{Part, ServiceHead, service_id},
};

mod answer;
mod code;
mod cost;
mod files;
mod filled;
mod preview;
mod saving;
mod sent;
pub(super) mod server;
pub(super) mod under_way;
mod view;

pub(super) use code::{Code, CodeTabs};
use files::FileBody;
pub(super) use filled::shown_name;
use filled::{CallBody, FilledForm, read_operation};
pub(super) use preview::show as preview;
use saving::{OpenedRequest, SAVE, SAVED_NAME, SaveField};
pub(super) use sent::FILES_FORM_BYTES_MAX;
use sent::SandboxForm;
pub(super) use under_way::cancel;
use view::{SandboxParts, SandboxState, SandboxTemplate};

/// A body that is typed; larger ones are for programs, or files.
const FORM_BYTES_MAX: usize = 128 * 1024;

/// Client code for a call is written for services of this many operations at most, which takes a tenth of a second.
const SNIPPET_OPERATIONS_MAX: usize = 150;
/// It is shown twelve times.
const SNIPPET_BODY_BYTES_MAX: usize = 512;

#[derive(Deserialize)]
pub(super) struct SandboxParams {
    /// The language whose code is looked at.
    #[serde(default)]
    language: String,
    /// An exchange of this session.
    call: Option<Text<CallId>>,
    /// A saved request.
    saved: Option<String>,
    view: Option<String>,
}

pub(super) async fn show(
    visit: Visit,
    Path(id): Path<String>,
    Query(asked): Query<SandboxParams>,
    Query(looked_at): Query<LookedAt>,
) -> Page {
    let id = service_id(&id)?;
    let node = visit.panel.node();
    let service = node.ask(endpoint::CatalogService.of(id)).await?;
    let kept = visit.panel.0.history.of(visit.session.id(), id);
    let shown = asked.call.map(|call| call.0);
    let found = shown.and_then(|call| kept.iter().find(|kept| kept.exchange.call_id == call)).cloned();
    let saved = match asked.saved.as_deref().filter(|_| shown.is_none()) {
        Some(saved) => Some(saving::opened(node, &service, saved).await?),
        None => None,
    };
    let operation = found.as_ref().map(|found| &found.exchange.operation);
    let operation = operation.or(saved.as_ref().map(|saved| &saved.title.operation));
    let looked_at = operation.map_or(looked_at, |operation| LookedAt::operation(operation));
    let chosen = form(node, &service, &looked_at).await?;
    let filled = match (&found, &saved, &chosen) {
        (Some(found), ..) => FilledForm::sent(&found.exchange.fields),
        (None, Some(saved), _) => FilledForm::saved(&saved.fields),
        (None, None, Some((_, form))) => FilledForm::start(&form.form),
        (None, None, None) => FilledForm::default(),
    };
    let language = found.as_ref().map_or(asked.language, |found| language_of(&found.exchange.fields));
    let state = SandboxState {
        filled,
        language,
        opened: saved.as_ref().map(OpenedRequest::new),
        shown: found,
        is_forgotten: shown.is_some(),
        view: asked.view,
        ..SandboxState::default()
    };
    render(&visit, SandboxParts { service, looked_at, chosen, state }, kept).await
}

/// Fields as they come; those that every form here has are read from them.
pub(super) type Fields = Vec<(String, String)>;

pub(super) async fn act(
    State(panel): State<ConsoleState>,
    Path(id): Path<String>,
    sent: SandboxForm,
) -> Page {
    let id = service_id(&id)?;
    let SandboxForm { visit, fields, files } = sent;
    let one = |name: &str| fields.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value.as_str());
    let looked_at = LookedAt::operation(&read_operation(one("operation")));
    let (act, name, language) = (one("act").to_owned(), one(SAVED_NAME).to_owned(), language_of(&fields));
    let service = panel.node().ask(endpoint::CatalogService.of(id)).await?;
    let chosen = form(panel.node(), &service, &looked_at).await?;
    let (place, form) = chosen.ok_or_else(Failure::not_found)?;
    let filled = FilledForm::sent(&fields).with(files);
    if act == SAVE {
        let problem = match saving::save(&visit, id, &form, &name, filled.to_save()).await? {
            Ok(saved) => return Ok(saved),
            Err(problem) => problem,
        };
        let save = SaveField { name, problem: Some(problem) };
        let chosen = Some((place, form));
        let state = SandboxState { filled, language, save, ..SandboxState::default() };
        return not_taken(&visit, SandboxParts { service, looked_at, chosen, state }).await;
    }
    let asked = filled.call(&form.form).and_then(|call| match act.as_str() {
        "live" => filled.request(id, &form, &call).map(Some),
        _ => Ok(None),
    });
    let session = visit.session.id();
    let (call_id, problem) = match (act.as_str(), asked) {
        ("sample", _) => {
            let exchange = sample(panel.node(), id, &name_of(&form), fields).await?;
            let call_id = exchange.call_id;
            panel.0.history.keep(session, exchange);
            (Some(call_id), None)
        }
        (_, Ok(Some(_))) if !filled.has_price() => return Err(without_price()),
        (_, Ok(Some(_))) if filled.names_less_than(form.deposit.as_ref()) => {
            return Err(larger_deposit(form.deposit.as_ref()));
        }
        (_, Ok(Some((call_id, request)))) => {
            let begun = Exchange {
                call_id,
                service: id,
                asked: AskedParty::Owner,
                at_secs: clock::now_secs(),
                began: Instant::now(),
                live: true,
                stage: CallStage::UnderWay,
                operation: name_of(&form),
                fields,
                answer: Answer::default(),
            };
            under_way::buy(&panel, session, begun, request).await;
            (Some(call_id), None)
        }
        (_, Ok(None)) => (None, None),
        (_, Err(problem)) => (None, Some(problem)),
    };
    let Some(call_id) = call_id else {
        let chosen = Some((place, form));
        let state = SandboxState { filled, language, problem, ..SandboxState::default() };
        return not_taken(&visit, SandboxParts { service, looked_at, chosen, state }).await;
    };
    Ok(Redirect::to(&format!("{}?call={call_id}#answer", address(id))).into_response())
}

/// Nothing was asked of anybody: the code is shown anew, or what keeps the form from being read, sent or saved.
async fn not_taken(visit: &Visit, page: SandboxParts) -> Page {
    let kept = visit.panel.0.history.of(visit.session.id(), page.service.hit.id.0);
    let is_refused = page.state.problem.is_some() || page.state.save.problem.is_some();
    let status = if is_refused { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    Ok((status, render(visit, page, kept).await?).into_response())
}

/// Finds the sample that the owner published of an operation.
async fn sample(node: &Local, id: ServiceId, operation: &str, fields: Fields) -> Result<Exchange, Failure> {
    let samples = node.ask(endpoint::CatalogSamples.of(id)).await?;
    let found = samples.samples.iter().find(|sample| sample.operation == operation);
    let found = found.ok_or_else(|| {
        Failure::new(
            StatusCode::NOT_FOUND,
            "There is no sample for this operation",
            "The owner published none. Nothing was sent, and you were not charged.",
            "Go back and make a live call, or choose another operation.",
        )
    })?;
    Ok(Exchange {
        call_id: CallId::from_bytes(*uuid::Uuid::new_v4().as_bytes()),
        service: id,
        asked: AskedParty::Owner,
        at_secs: clock::now_secs(),
        began: Instant::now(),
        live: false,
        stage: CallStage::Ended,
        operation: operation.to_owned(),
        fields,
        answer: answer::of_sample(found),
    })
}

/// A form that buys has the price that was read.
fn without_price() -> Failure {
    Failure::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "The price is missing",
        "The form did not send the price on its button. Nothing was sent, and you were not charged.",
        "Reload the page, then press the button with the price.",
    )
}

/// A call deposits no more first than its button said: the owner may have asked for more since.
fn larger_deposit(deposit: Option<&UsdcText>) -> Failure {
    let deposit = deposit.map_or_else(String::new, |deposit| format!(" of {deposit} USDC"));
    let detail = format!(
        "The call would now make a deposit{deposit} first, more than its button said. Nothing was sent, and you were not charged."
    );
    Failure::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "The deposit has grown",
        detail,
        "Reload the page, then press the button with the new deposit.",
    )
}

#[derive(Deserialize)]
pub(super) struct DownloadQuery {
    call: Text<CallId>,
}

/// Finds an exchange of this session whose body is still here.
fn exchanged(
    panel: &ConsoleState,
    session: &Session,
    id: &str,
    asked: &DownloadQuery,
) -> Result<StoredExchange, Failure> {
    let kept = panel.0.history.of(session.id(), service_id(id)?);
    let found = kept.into_iter().find(|kept| kept.exchange.call_id == asked.call.0 && kept.has_body);
    found.ok_or_else(Failure::not_found)
}

/// The whole body, as a file that no browser opens by itself.
pub(super) async fn download(
    State(panel): State<ConsoleState>,
    session: Session,
    Path(id): Path<String>,
    Query(asked): Query<DownloadQuery>,
) -> Page {
    let kept = exchanged(&panel, &session, &id, &asked)?;
    let answer = &kept.exchange.answer;
    let name = file_name(&asked, answer);
    Ok((attachment("application/octet-stream", &name), answer.body.clone()).into_response())
}

fn file_name(asked: &DownloadQuery, answer: &Answer) -> String {
    format!("{}.{}", asked.call, extension(&answer.media_type))
}

fn extension(media_type: &str) -> &'static str {
    let kind = without_parameters(media_type);
    match kind {
        "text/csv" => "csv",
        "text/html" => "html",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/mpeg" => "mp3",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/ogg" | "application/ogg" => "ogg",
        "application/pdf" => "pdf",
        "application/xml" | "text/xml" => "xml",
        _ if kind.ends_with("json") => "json",
        _ if kind.starts_with("text/") => "txt",
        _ => "bin",
    }
}

/// The place of the operation that is looked at, and its form; nothing where no operations are known.
async fn form(
    node: &Local,
    service: &CatalogService,
    looked_at: &LookedAt,
) -> Result<Option<(usize, CallForm)>, Failure> {
    let Some((place, offer)) = looked_at.chosen(&service.offers)? else { return Ok(None) };
    let at = endpoint::CatalogForm.of(service.hit.id.0);
    Ok(Some((
        place,
        node.ask(at.with("method", offer.method.0.as_str()).with("path", offer.path.as_str())).await?,
    )))
}

/// The language whose code was looked at when a form was sent.
fn language_of(fields: &Fields) -> String {
    let field = fields.iter().find(|(name, _)| name == "language");
    field.map(|(_, language)| language.clone()).unwrap_or_default()
}

/// The code of a call as the form begins with it.
pub(super) async fn code_of_example(
    node: &Local,
    service: &CatalogService,
    form: &CallForm,
    gateway: &str,
    language: &str,
) -> CodeTabs {
    let filled = FilledForm::start(&form.form);
    let snippets = snippets(node, service, form, &filled).await;
    CodeTabs::new(form, &filled, (gateway, &service.hit.id.to_string()), snippets, language)
}

async fn render(visit: &Visit, mut parts: SandboxParts, kept: Vec<StoredExchange>) -> Page {
    let frame = visit.frame(Section::Catalog).await?;
    let node = visit.panel.node();
    if let Some((_, form)) = &parts.chosen {
        parts.state.snippets = snippets(node, &parts.service, form, &parts.state.filled).await;
    }
    let head = ServiceHead::new(node, &parts.service, Part::Sandbox).await?;
    let open = parts.state.opened.as_ref().map(|opened| opened.id.as_str());
    let saved = SavedLinks::of(node, parts.service.hit.id.0, open).await?;
    parts.state.price_max = Some(node.ask(endpoint::Spending).await?.limits.price_max.0);
    let channels = node.ask(endpoint::Channels).await?;
    let samples = if parts.service.samples > 0 {
        let samples: Result<CatalogSamples, _> =
            node.ask(endpoint::CatalogSamples.of(parts.service.hit.id.0)).await;
        samples.map(|samples| samples.samples).unwrap_or_default()
    } else {
        Vec::new()
    };
    let page = SandboxTemplate::new(frame, head, saved, parts, &channels, &samples, &kept);
    let mut response = Rendered(&page).into_response();
    response.extensions_mut().insert(ShowsContent);
    Ok(response)
}

/// The call as it is typed, with the service's client; nothing while it cannot be read, and for large services, whose
/// names take too long for a page that follows every key.
async fn snippets(
    node: &Local,
    service: &CatalogService,
    form: &CallForm,
    filled: &FilledForm,
) -> Vec<Snippet> {
    let Ok(call) = filled.call(&form.form) else { return Vec::new() };
    let body = call.body.as_ref().map(snippet_body);
    let bytes = body.as_ref().map_or(0, bytes_shown);
    if service.offers.len() > SNIPPET_OPERATIONS_MAX || bytes > SNIPPET_BODY_BYTES_MAX {
        return Vec::new();
    }
    let request = SnippetRequest {
        method: form.method.to_string(),
        path: form.path.clone(),
        params: call.params.into_iter().collect(),
        body,
    };
    node.tell(endpoint::SdkSnippets.of(service.hit.id.0), &request).await.unwrap_or_default()
}

fn snippet_body(body: &CallBody) -> SnippetBody {
    match body {
        CallBody::Typed(body) => SnippetBody::Text(body.text().to_owned()),
        CallBody::Files(FileBody::Whole { file, .. }) => SnippetBody::File(file.name().to_owned()),
        CallBody::Files(FileBody::Parts { parts, .. }) => {
            let part = |UploadPart { name, value, is_file }| SnippetPart { name, value, is_file };
            SnippetBody::Parts(FileBody::shown_parts(parts).into_iter().map(part).collect())
        }
    }
}

fn bytes_shown(body: &SnippetBody) -> usize {
    match body {
        SnippetBody::Text(text) | SnippetBody::File(text) => text.len(),
        SnippetBody::Parts(parts) => parts.iter().map(|part| part.name.len() + part.value.len()).sum(),
    }
}

fn address(id: ServiceId) -> String {
    format!("/panel/catalog/{id}/sandbox")
}

/// The address of the page that shows an exchange.
pub(super) fn page_of(exchange: &Exchange) -> String {
    match exchange.asked {
        AskedParty::Owner => address(exchange.service),
        AskedParty::X402Server => server::address(exchange.service),
    }
}

fn name_of(form: &CallForm) -> String {
    format!("{} {}", form.method, form.path)
}
