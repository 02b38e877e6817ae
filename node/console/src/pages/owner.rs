//! Owner: the services of one wallet, and what this node bought from it.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use farthing_control::{endpoint, types::CatalogQuery};
use farthing_os::clock;
use farthing_values::Address;
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    frame::{Frame, Section, Visit},
    icons::Icon,
    page::Rendered,
    series::CallsOf,
    show,
};

use super::{
    catalog::{Card, by_service, card},
    service::BoughtShown,
};

/// Services on the page, the most used first.
const SERVICES_SHOWN: usize = 24;

#[derive(Template)]
#[template(path = "owner.html")]
struct OwnerTemplate {
    frame: Frame,
    wallet: String,
    short: String,
    fingerprint: String,
    is_own: bool,
    cards: Vec<Card>,
    total: usize,
    bought: Option<BoughtShown>,
}

#[derive(Deserialize)]
pub(super) struct OwnerParams {
    range: Option<String>,
}

pub(super) async fn show(visit: Visit, Path(wallet): Path<String>, Query(asked): Query<OwnerParams>) -> Page {
    let owner: Address = wallet.parse().map_err(|_| Failure::not_found())?;
    let node = visit.panel.node();
    let query =
        CatalogQuery { owner: Some(owner.into()), limit: Some(SERVICES_SHOWN), ..CatalogQuery::default() };
    let found = node.tell(endpoint::CatalogSearch, &query).await?;
    let figures = node.ask(endpoint::Figures).await?;
    let (measured, now_secs) = (by_service(&figures), clock::now_secs());
    let place = format!("/panel/owners/{owner}");
    let bought = BoughtShown::of(node, CallsOf::Owner(owner), &place, asked.range.as_deref()).await?;
    let frame = visit.frame(Section::Catalog).await?;
    let page = OwnerTemplate {
        wallet: owner.to_string(),
        short: show::short(owner),
        fingerprint: show::fingerprint(owner),
        is_own: owner == frame.status.address.0,
        cards: found.hits.iter().map(|hit| card(hit, &measured, now_secs)).collect(),
        total: found.total,
        bought,
        frame,
    };
    Ok(Rendered(&page).into_response())
}
