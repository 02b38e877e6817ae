//! The last step: the service as strangers will see it, and the button that makes it live.
//!
//! Of a draft that is registered twice at once, one is registered: who comes second is led to what came of it.

use askama::Template;
use axum::{
    extract::{Path, State},
    response::{IntoResponse, Redirect, Response},
};
use farthing_control::{
    endpoint,
    types::{Api, ApiPreview, CatalogKind, SourceFile},
};
use farthing_values::Usdc;
use http::StatusCode;

use crate::{
    ConsoleState,
    access::SessionId,
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    markup::{Markup, ProblemText, strangers_markdown},
    page::answer,
    show,
};

use super::{
    RegisterStep,
    draft::{Draft, DraftState},
    explained,
    review::{Finding, report_findings},
};

/// Operations on the page; all are registered.
const OPERATIONS_SHOWN: usize = 60;
/// A call for more than this is far more often a slip of the decimal point than meant.
const PRICE_UNASKED_MAX: Usdc = Usdc::from_micros(1_000_000);

#[derive(Template)]
#[template(path = "register-preview.html")]
struct PreviewTemplate {
    frame: Frame,
    name: String,
    step: RegisterStep,
    title: String,
    preview: Option<Preview>,
    problem: Option<ProblemText>,
}

struct Preview {
    name: String,
    summary: String,
    kind: CatalogKind,
    category: String,
    tags: Vec<String>,
    description: Markup,
    price: String,
    per_thousand: String,
    dear: Option<String>,
    upstream: String,
    secrets: String,
    /// Operation, summary, price.
    offers: Vec<(String, String, String)>,
    offers_count: usize,
    offers_hidden: usize,
    samples: usize,
    findings: Vec<Finding>,
}

pub(in crate::pages) async fn show(visit: Visit, Path(name): Path<String>) -> Page {
    let draft = visit.panel.drafts().get(visit.session.id(), &name)?;
    match draft.state {
        DraftState::Registered(service) => Ok(to_service(&service.to_string())),
        DraftState::Registering => Err(busy()),
        DraftState::Open => page(&visit, name, &draft, None).await,
    }
}

async fn page(visit: &Visit, name: String, draft: &Draft, problem: Option<ProblemText>) -> Page {
    let outcome = match draft.file() {
        Ok(file) => explained(visit.panel.node().tell(endpoint::PreviewApi, &file).await)?,
        Err(wrong) => Err(ProblemText::new(wrong.words())),
    };
    let (preview, problem) = match (outcome, problem) {
        (Ok(found), problem) => (Some(preview(&found)), problem),
        (Err(_), Some(problem)) | (Err(problem), None) => (None, Some(problem)),
    };
    let page = PreviewTemplate {
        frame: visit.frame(Section::Apis).await?,
        name,
        step: RegisterStep::Preview,
        title: show::visible(&draft.title()),
        preview,
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

fn preview(found: &ApiPreview) -> Preview {
    let dearest = found.offers.iter().map(|offer| offer.price.0).fold(found.price.0, Usdc::max);
    Preview {
        name: show::visible(&found.name),
        summary: show::visible(&found.summary),
        kind: found.kind.0,
        category: show::visible(&found.category),
        tags: found.tags.iter().map(|tag| show::visible(tag)).collect(),
        description: strangers_markdown(&found.description),
        price: show::usdc(found.price.0),
        per_thousand: show::per_thousand(found.price.0),
        dear: (dearest > PRICE_UNASKED_MAX).then(|| show::usdc(dearest)),
        upstream: show::visible(&found.upstream),
        secrets: found.secrets.iter().map(|name| show::visible(name)).collect::<Vec<_>>().join(", "),
        offers: found
            .offers
            .iter()
            .take(OPERATIONS_SHOWN)
            .map(|offer| {
                let operation = show::visible(&format!("{} {}", offer.method, offer.path));
                let summary: String = show::visible(&offer.summary).chars().take(100).collect();
                (operation, summary, show::usdc(offer.price.0))
            })
            .collect(),
        offers_count: found.offers.len(),
        offers_hidden: found.offers.len().saturating_sub(OPERATIONS_SHOWN),
        samples: found.samples.len(),
        findings: report_findings(&found.report),
    }
}

/// Makes the service live.
pub(in crate::pages) async fn register(
    State(panel): State<ConsoleState>,
    Path(name): Path<String>,
    form: Form<NoFields>,
) -> Page {
    let _ = form.confirmed()?;
    let visit = form.visit;
    let session = visit.session.id();
    let before = panel.drafts().change(session, &name, |draft| {
        let before = draft.clone();
        if draft.state == DraftState::Open {
            draft.state = DraftState::Registering;
        }
        before
    })?;
    match before.state {
        DraftState::Registered(service) => return Ok(to_service(&service.to_string())),
        DraftState::Registering => return Err(busy()),
        DraftState::Open => {}
    }
    // A browser that goes away must not leave it half done.
    let publishing = tokio::spawn(publish(panel.clone(), session, name.clone(), before.clone()));
    let outcome = publishing.await.map_err(|_| {
        Failure::broken("Registering failed unexpectedly. My APIs shows whether the service is live.")
    })?;
    match outcome? {
        Ok(api) => Ok(to_service(&api.id.to_string())),
        Err(problem) => page(&visit, name, &before, Some(problem)).await,
    }
}

async fn publish(
    panel: ConsoleState,
    session: SessionId,
    name: String,
    draft: Draft,
) -> Result<Result<Api, ProblemText>, Failure> {
    let outcome = match draft.file() {
        Ok(file) => explained(panel.node().tell(endpoint::AddApi, &file).await),
        Err(wrong) => Ok(Err(ProblemText::new(wrong.words()))),
    };
    let registered = outcome.as_ref().ok().and_then(|outcome| outcome.as_ref().ok());
    let state = registered.map_or(DraftState::Open, |api| DraftState::Registered(api.id.0));
    // Whoever discarded it meanwhile has the service all the same.
    let _ = panel.drafts().change(session, &name, |draft| {
        draft.state = state;
        if state != DraftState::Open {
            let source = SourceFile { text: None, ..(*draft.source).clone() };
            draft.source = source.into();
            draft.choices = super::Choices::default();
        }
    });
    outcome
}

fn to_service(service: &str) -> Response {
    Redirect::to(&format!("/panel/apis/{service}?registered=1")).into_response()
}

fn busy() -> Failure {
    Failure::new(
        StatusCode::CONFLICT,
        "The service is being registered",
        "Recording samples can take a while.",
        "Open My APIs in a moment. The service appears there when it is live.",
    )
}
