//! Sandbox: any operation of a service, tried: a form from its description, a free sample or a live call, the answer
//! in every view, and the same call as code.
//!
//! 1. A button posts the form ([`sent`], [`filled`]), with files where the operation takes some ([`files`]). A live call
//!    goes the way of every call, so limits apply, and no more is paid than the button said; a sample asks nobody.
//! 2. What came back is kept for the session ([`crate::history`]), and the browser goes on to a page that
//!    shows it ([`answer`]): loading that again pays nothing.
//! 3. `sandbox.js` posts the form as one types and exchanges the code ([`code`]); without it, a button does.
//!
//! Invariant: every end of a call says whether it was charged ([`cost`]).

use std::time::Instant;

use axum::{
    extract::{Path, Query, State},
    response::{IntoResponse, Redirect},
};
use bytes::Bytes;
use farthing_bridge::media::without_parameters;
use farthing_control::{
    Local, RawAnswer, endpoint,
    types::{
        CallForm, CatalogSamples, CatalogService, HEADER_CHARGED, HEADER_RECEIPT, HEADER_TIMING, Problem,
        Text,
        sdk::{Snippet, SnippetBody, SnippetPart, SnippetRequest},
    },
};
use farthing_os::clock;
use farthing_protocol::{CallId, ServiceId};
use farthing_sdk::UploadPart;
use farthing_serve::attachment;
use http::StatusCode;
use serde::Deserialize;

use crate::{
    ConsoleState,
    access::Session,
    failure::{Failure, Page},
    frame::{Section, Visit},
    history::{Answer, Exchange, StoredExchange},
    page::Rendered,
};

use super::service::{Part, ServiceHead, service_id};

mod answer;
mod code;
mod cost;
mod files;
mod filled;
mod sent;
mod view;

use files::FileBody;
use filled::{CallBody, Filled, read_operation};
pub(super) use sent::FILES_FORM_BYTES_MAX;
use sent::SandboxForm;
use view::{SandboxParts, SandboxTemplate};

/// A body that is typed; larger ones are for programs, or files.
const FORM_BYTES_MAX: usize = 128 * 1024;

/// Client code for a call is written for services of this many operations at most, which takes a tenth of a second.
const SNIPPET_OPERATIONS_MAX: usize = 150;
/// It is shown twelve times.
const SNIPPET_BODY_BYTES_MAX: usize = 512;

#[derive(Deserialize)]
pub(super) struct SandboxParams {
    /// `GET /v1/things`
    #[serde(default)]
    operation: String,
    /// An exchange of this session.
    call: Option<Text<CallId>>,
    view: Option<String>,
}

pub(super) async fn show(visit: Visit, Path(id): Path<String>, Query(asked): Query<SandboxParams>) -> Page {
    let id = service_id(&id)?;
    let node = visit.panel.node();
    let service = node.ask(endpoint::CatalogService.of(id)).await?;
    let kept = visit.panel.0.history.of(visit.session.id(), id);
    let shown = asked.call.map(|call| call.0);
    let found = shown.and_then(|call| kept.iter().find(|kept| kept.exchange.call_id == call)).cloned();
    let operation =
        found.as_ref().map_or(read_operation(&asked.operation), |found| found.exchange.operation.clone());
    let form = form(node, &service, &operation).await?;
    let filled = match (&found, &form) {
        (Some(found), _) => Filled::sent(&found.exchange.fields),
        (None, Some(form)) => Filled::start(&form.form),
        (None, None) => Filled::default(),
    };
    let page = SandboxParts {
        filled,
        shown: found,
        is_forgotten: shown.is_some(),
        view: asked.view,
        ..SandboxParts::of(service, form)
    };
    render(&visit, page, kept).await
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
    let (operation, act) = (read_operation(one("operation")), one("act").to_owned());
    let service = panel.node().ask(endpoint::CatalogService.of(id)).await?;
    let form = form(panel.node(), &service, &operation).await?.ok_or_else(Failure::not_found)?;
    let filled = Filled::sent(&fields).with(files);
    let asked = filled.call(&form.form).and_then(|call| match act.as_str() {
        "live" => filled.request(id, &form, &call).map(Some),
        _ => Ok(None),
    });
    let (exchange, problem) = match (act.as_str(), asked) {
        ("sample", _) => (Some(sample(panel.node(), id, &operation, fields).await?), None),
        (_, Ok(Some(request))) if filled.has_price() => {
            (Some(live(&panel, &visit, (id, name_of(&form)), request, fields).await?), None)
        }
        (_, Ok(Some(_))) => return Err(without_price()),
        (_, Ok(None)) => (None, None),
        (_, Err(problem)) => (None, Some(problem)),
    };
    let Some(exchange) = exchange else {
        // Nothing was asked of anybody: the code is shown anew, or what keeps the form from being read or sent.
        let kept = panel.0.history.of(visit.session.id(), id);
        let page = SandboxParts { filled, problem, ..SandboxParts::of(service, Some(form)) };
        let status = if page.problem.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
        return Ok((status, render(&visit, page, kept).await?).into_response());
    };
    let call_id = exchange.call_id;
    if !exchange.live {
        panel.0.history.keep(visit.session.id(), exchange);
    }
    Ok(Redirect::to(&format!("{}?call={call_id}#answer", address(id))).into_response())
}

/// Finds the sample that the owner published of an operation.
async fn sample(node: &Local, id: ServiceId, operation: &str, fields: Fields) -> Result<Exchange, Failure> {
    let samples = node.ask(endpoint::CatalogSamples.of(id)).await?;
    let found = samples.samples.iter().find(|sample| sample.operation == operation);
    let found = found.ok_or_else(|| {
        Failure::new(
            StatusCode::NOT_FOUND,
            "There is no sample of this operation",
            "Its owner published none. Nothing was sent and nothing charged.",
            "Go back and make a live call, or look at another operation.",
        )
    })?;
    Ok(Exchange {
        call_id: CallId::from_bytes(*uuid::Uuid::new_v4().as_bytes()),
        service: id,
        at_secs: clock::now_secs(),
        live: false,
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
        "The form came without the price that its button carries. Nothing was sent and nothing charged.",
        "Load the page again, and press its button.",
    )
}

/// Buys the call. What came back is kept also when the browser goes away meanwhile.
async fn live(
    panel: &ConsoleState,
    visit: &Visit,
    (id, operation): (ServiceId, String),
    (call_id, request): (CallId, Vec<u8>),
    fields: Fields,
) -> Result<Exchange, Failure> {
    let (panel, session) = (panel.clone(), visit.session.id());
    let bought = tokio::spawn(async move {
        let (at_secs, began) = (clock::now_secs(), Instant::now());
        let answered = panel.node().exchange(endpoint::Call, Bytes::from(request)).await;
        let mut answer = match answered {
            Ok(answer) => read(answer),
            Err(error) => Answer { problem: Some(unknown(&error)), ..Answer::default() },
        };
        answer.took_us = clock::micros(began.elapsed());
        let exchange = Exchange { call_id, service: id, at_secs, live: true, operation, fields, answer };
        panel.0.history.keep(session, exchange.clone());
        exchange
    });
    bought
        .await
        .map_err(|_| Failure::broken("The call was interrupted. Activity shows whether it was charged."))
}

/// The node's answer, taken apart.
fn read(answer: RawAnswer) -> Answer {
    let text = |name: &str| {
        let value = answer.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let own = [HEADER_CHARGED, HEADER_RECEIPT, HEADER_TIMING];
    let headers = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    Answer {
        status: answer.status.as_u16(),
        media_type: text("content-type"),
        headers: headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        problem: answer.is_problem().then(|| answer.problem()),
        charged: text(HEADER_CHARGED),
        receipt: text(HEADER_RECEIPT),
        timing: answer::read_timing(&text(HEADER_TIMING)),
        body: answer.body,
        ..Answer::default()
    }
}

fn unknown(error: &farthing_control::ControlError) -> Problem {
    let next = "See Activity for how the call ended.";
    Problem {
        title: "The node's answer cannot be read".to_owned(),
        ..Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR, error.to_string(), next)
    }
}

#[derive(Deserialize)]
pub(super) struct DownloadQuery {
    call: Text<CallId>,
}

/// The whole body, as a file that no browser opens by itself.
pub(super) async fn download(
    State(panel): State<ConsoleState>,
    session: Session,
    Path(id): Path<String>,
    Query(asked): Query<DownloadQuery>,
) -> Page {
    let id = service_id(&id)?;
    let kept = panel.0.history.of(session.id(), id);
    let found = kept.into_iter().find(|kept| kept.exchange.call_id == asked.call.0 && kept.has_body);
    let answer = &found.ok_or_else(Failure::not_found)?.exchange.answer;
    let name = format!("{}.{}", asked.call, extension(&answer.media_type));
    Ok((attachment("application/octet-stream", &name), answer.body.clone()).into_response())
}

fn extension(media_type: &str) -> &'static str {
    let kind = without_parameters(media_type);
    match kind {
        "text/csv" => "csv",
        "text/html" => "html",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "application/pdf" => "pdf",
        "application/xml" | "text/xml" => "xml",
        _ if kind.ends_with("json") => "json",
        _ if kind.starts_with("text/") => "txt",
        _ => "bin",
    }
}

/// The form of the operation that is asked for, or of the first one.
async fn form(node: &Local, service: &CatalogService, operation: &str) -> Result<Option<CallForm>, Failure> {
    let wanted = if operation.is_empty() {
        service.offers.first().map(|offer| (offer.method.to_string(), offer.path.clone()))
    } else {
        operation.split_once(' ').map(|(method, path)| (method.to_owned(), path.to_owned()))
    };
    let Some((method, path)) = wanted else { return Ok(None) };
    let at = endpoint::CatalogForm.of(service.hit.id.0).with("method", method).with("path", path);
    Ok(Some(node.ask(at).await?))
}

async fn render(visit: &Visit, mut parts: SandboxParts, kept: Vec<StoredExchange>) -> Page {
    let frame = visit.frame(Section::Catalog).await?;
    let node = visit.panel.node();
    parts.snippets = snippets(node, &parts).await;
    let head = ServiceHead::new(node, &parts.service, Part::Sandbox).await?;
    let channels = node.ask(endpoint::Channels).await?;
    let samples = if parts.service.samples > 0 {
        let samples: Result<CatalogSamples, _> =
            node.ask(endpoint::CatalogSamples.of(parts.service.hit.id.0)).await;
        samples.map(|samples| samples.samples).unwrap_or_default()
    } else {
        Vec::new()
    };
    let page = SandboxTemplate::new(frame, head, parts, &channels, &samples, &kept);
    Ok(Rendered(&page).into_response())
}

/// The call as it is typed, with the service's client; nothing while it cannot be read, and for large services, whose
/// names take too long for a page that follows every key.
async fn snippets(node: &Local, parts: &SandboxParts) -> Vec<Snippet> {
    let Some(form) = &parts.form else { return Vec::new() };
    let Ok(call) = parts.filled.call(&form.form) else { return Vec::new() };
    let body = call.body.as_ref().map(snippet_body);
    let bytes = body.as_ref().map_or(0, bytes_shown);
    if parts.service.offers.len() > SNIPPET_OPERATIONS_MAX || bytes > SNIPPET_BODY_BYTES_MAX {
        return Vec::new();
    }
    let request = SnippetRequest {
        method: form.method.to_string(),
        path: form.path.clone(),
        params: call.params.into_iter().collect(),
        body,
    };
    node.tell(endpoint::SdkSnippets.of(parts.service.hit.id.0), &request).await.unwrap_or_default()
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

fn name_of(form: &CallForm) -> String {
    format!("{} {}", form.method, form.path)
}
