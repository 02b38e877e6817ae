//! The first call: a service of the catalog, its free sample, and what a call of it costs. Whoever has money makes the
//! call from here; for whoever has none the price is where the set-up ends.

use askama::Template;
use axum::{extract::Query, response::IntoResponse};
use farthing_control::{ControlError, Local, endpoint, types::CatalogQuery};
use farthing_os::clock;
use farthing_values::ServiceId;
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    page::{Rendered, encoded},
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
#[template(path = "setup-call.html")]
struct CallTemplate {
    frame: Frame,
    step: SetupStep,
    cards: Vec<Card>,
    tried: Option<TriedService>,
}

/// The service that was chosen.
struct TriedService {
    name: String,
    price: String,
    is_free: bool,
    /// The address at which the operation of the sample can be called.
    sandbox: String,
    /// A sample, or why there is none.
    sample: Result<Sample, String>,
}

#[derive(Deserialize)]
pub(in crate::pages) struct FirstCallParams {
    #[serde(default)]
    service: String,
}

pub(in crate::pages) async fn show(visit: Visit, Query(asked): Query<FirstCallParams>) -> Page {
    let node = visit.panel.node();
    let query = CatalogQuery { online: true, limit: Some(OFFERED), ..CatalogQuery::default() };
    let found = node.tell(endpoint::CatalogSearch, &query).await?;
    let figures = node.ask(endpoint::Figures).await?;
    let (measured, now_secs) = (by_service(&figures), clock::now_secs());
    let tried = match asked.service.parse() {
        Ok(id) => Some(try_out(node, id).await?),
        Err(_) => None,
    };
    let page = CallTemplate {
        frame: visit.frame(Section::Home).await?,
        step: SetupStep::Call,
        cards: found.hits.iter().map(|hit| card(hit, &measured, now_secs)).collect(),
        tried,
    };
    Ok(Rendered(&page).into_response())
}

impl CallTemplate {
    /// The service that was chosen, where a call of it can be paid.
    fn first_call(&self) -> Option<&TriedService> {
        self.tried.as_ref().filter(|tried| tried.is_free || self.is_funded())
    }

    /// Tells if there is USDC to pay a call with.
    fn is_funded(&self) -> bool {
        let balance = &self.frame.status.balance;
        balance.usdc.is_some_and(|usdc| !usdc.0.is_zero()) || !balance.in_channels.0.is_zero()
    }
}

async fn try_out(node: &Local, id: ServiceId) -> Result<TriedService, Failure> {
    let service = node.ask(endpoint::CatalogService.of(id)).await?;
    let sandbox = Part::Sandbox.address(&id.to_string());
    let sample = match node.ask(endpoint::CatalogSamples.of(id)).await {
        Ok(samples) => best(samples.samples.iter().map(Sample::new))
            .ok_or_else(|| "The owner published no sample. Try another service.".to_owned()),
        Err(ControlError::Refused(problem)) => Err(texts::sentence(&show::visible_lines(&problem.detail))),
        Err(error) => return Err(error.into()),
    };
    Ok(TriedService {
        name: show::visible(&service.hit.name),
        price: show::usdc(service.hit.price.0),
        is_free: service.hit.price.0.is_zero(),
        sandbox: match &sample {
            Ok(sample) => format!("{sandbox}?operation={}", encoded(&sample.operation)),
            Err(_) => sandbox,
        },
        sample,
    })
}

/// Picks the sample that is seen best: a map before a table before text.
fn best(samples: impl Iterator<Item = Sample>) -> Option<Sample> {
    samples.min_by_key(|sample| (sample.map.is_empty(), sample.table.rows.is_empty()))
}
