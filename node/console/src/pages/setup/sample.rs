//! A first look at data: a service of the catalog, tried by its free sample on the page.

use askama::Template;
use axum::{extract::Query, response::IntoResponse};
use farthing_control::{ControlError, Local, endpoint, types::CatalogQuery};
use farthing_os::clock;
use farthing_protocol::ServiceId;
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    page::Rendered,
    pages::{
        catalog::{Card, by_service, card},
        service::{Part, Sample},
    },
    show, texts,
};

use super::SetupStep;

/// A choice and not a catalog.
const OFFERED: usize = 4;

#[derive(Template)]
#[template(path = "setup-sample.html")]
struct SampleTemplate {
    frame: Frame,
    step: SetupStep,
    cards: Vec<Card>,
    tried: Option<Tried>,
}

/// The service that was chosen.
struct Tried {
    name: String,
    price: String,
    sandbox: String,
    /// A sample, or why there is none.
    sample: Result<Sample, String>,
}

#[derive(Deserialize)]
pub(in crate::pages) struct SampleParams {
    #[serde(default)]
    service: String,
}

pub(in crate::pages) async fn show(visit: Visit, Query(asked): Query<SampleParams>) -> Page {
    let node = visit.panel.node();
    let query = CatalogQuery { online: true, limit: Some(OFFERED), ..CatalogQuery::default() };
    let found = node.tell(endpoint::CatalogSearch, &query).await?;
    let figures = node.ask(endpoint::Figures).await?;
    let (measured, now_secs) = (by_service(&figures), clock::now_secs());
    let tried = match asked.service.parse() {
        Ok(id) => Some(try_out(node, id).await?),
        Err(_) => None,
    };
    let page = SampleTemplate {
        frame: visit.frame(Section::Home).await?,
        step: SetupStep::Sample,
        cards: found.hits.iter().map(|hit| card(hit, &measured, now_secs)).collect(),
        tried,
    };
    Ok(Rendered(&page).into_response())
}

async fn try_out(node: &Local, id: ServiceId) -> Result<Tried, Failure> {
    let service = node.ask(endpoint::CatalogService.of(id)).await?;
    let sample = match node.ask(endpoint::CatalogSamples.of(id)).await {
        Ok(samples) => best(samples.samples.iter().map(Sample::new))
            .ok_or_else(|| "Its owner published no sample. Try another service.".to_owned()),
        Err(ControlError::Refused(problem)) => Err(texts::sentence(&show::visible_lines(&problem.detail))),
        Err(error) => return Err(error.into()),
    };
    Ok(Tried {
        name: show::visible(&service.hit.name),
        price: show::usdc(service.hit.price.0),
        sandbox: Part::Sandbox.address(&id.to_string()),
        sample,
    })
}

/// Picks the sample that is seen best: a map before a table before text.
fn best(samples: impl Iterator<Item = Sample>) -> Option<Sample> {
    samples.min_by_key(|sample| (sample.map.is_empty(), sample.table.rows.is_empty()))
}
