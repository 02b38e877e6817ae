//! The operations of one of my services: what each costs, which are offered, and which are not.

use askama::Template;
use axum::extract::{Path, Query};
use farthing_control::{
    endpoint,
    types::{DescriptionOrigin, Offer, OperationName},
};
use farthing_os::clock;
use farthing_values::ServiceId;
use serde::Deserialize;

use crate::{
    failure::Page,
    frame::{Frame, Section, Visit},
    page::answer,
    pages::service::service_id,
    show,
};

/// Operations on one page.
const OPERATIONS_SHOWN: usize = 40;
const SUMMARY_CHARS_MAX: usize = 100;

/// An operation that is not offered, as the owner chose.
struct HiddenRow {
    /// As it is named in forms.
    named: String,
    shown: String,
}

impl HiddenRow {
    fn new(name: &OperationName) -> Self {
        let named = format!("{} {}", name.method, name.path);
        Self { shown: show::visible(&named), named }
    }
}

#[derive(Template)]
#[template(path = "api-operations.html")]
struct OperationsTemplate {
    frame: Frame,
    id: String,
    name: String,
    has_source: bool,
    needs_password: bool,
    /// Read again by its address alone; a file has to be given anew.
    source_is_url: bool,
    offers: Vec<OfferRow>,
    offers_count: usize,
    hidden: Vec<HiddenRow>,
    number: usize,
    pages: usize,
    problem: Option<String>,
}

struct OfferRow {
    /// As it is named in forms.
    named: String,
    operation: String,
    summary: String,
    price: String,
}

#[derive(Deserialize)]
pub(in crate::pages) struct OperationsParams {
    #[serde(default)]
    page: usize,
}

pub(super) fn address(id: ServiceId, number: usize) -> String {
    format!("/panel/apis/{id}/operations?page={number}")
}

pub(in crate::pages) async fn show(
    visit: Visit,
    Path(text): Path<String>,
    Query(asked): Query<OperationsParams>,
) -> Page {
    page(&visit, &text, asked.page, None).await
}

pub(super) async fn page(visit: &Visit, text: &str, number: usize, problem: Option<String>) -> Page {
    let id = service_id(text)?;
    let shown = visit.panel.node().ask(endpoint::ShowApi.of(id)).await?;
    let pages = shown.offers.len().div_ceil(OPERATIONS_SHOWN).max(1);
    let number = number.min(pages - 1);
    let offers = shown.offers.iter().skip(number * OPERATIONS_SHOWN).take(OPERATIONS_SHOWN);
    let page = OperationsTemplate {
        frame: visit.frame(Section::Apis).await?,
        id: id.to_string(),
        name: show::visible(&shown.api.name),
        has_source: shown.origin != DescriptionOrigin::ByHand,
        needs_password: visit.session.reauthenticated(clock::now_secs()).is_none(),
        source_is_url: shown.origin == DescriptionOrigin::Url,
        offers: offers.map(offer).collect(),
        offers_count: shown.offers.len(),
        hidden: shown.hidden.iter().map(HiddenRow::new).collect(),
        number,
        pages,
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

fn offer(offer: &Offer) -> OfferRow {
    let named = format!("{} {}", offer.method, offer.path);
    OfferRow {
        operation: show::visible(&named),
        named,
        summary: show::visible(&offer.summary).chars().take(SUMMARY_CHARS_MAX).collect(),
        price: offer.price.to_string(),
    }
}
