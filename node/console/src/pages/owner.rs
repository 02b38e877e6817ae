//! Owner: the services of one wallet, what this node bought from it, and the user's own name for it.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use farthing_control::{
    endpoint,
    types::{CatalogQuery, NewPetname},
};
use farthing_os::clock;
use farthing_values::Address;
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    form::Form,
    frame::{Frame, Section, Visit},
    icons::Icon,
    page::answer,
    series::CallsOf,
    show,
    texts::Done,
};

use super::{
    catalog::{Card, by_service, card},
    register::mendable,
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
    /// Empty without one.
    petname: String,
    cards: Vec<Card>,
    total: usize,
    bought: Option<BoughtShown>,
    /// In the field of the name.
    typed: String,
    problem: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct OwnerParams {
    range: Option<String>,
}

/// A name, as it was typed.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct PetnameFields {
    name: String,
}

pub(super) async fn show(visit: Visit, Path(wallet): Path<String>, Query(asked): Query<OwnerParams>) -> Page {
    page(&visit, owner_of(&wallet)?, &asked, None).await
}

/// Names the owner, or takes the name away.
pub(super) async fn name(Path(wallet): Path<String>, form: Form<PetnameFields>) -> Page {
    let Form { visit, fields, .. } = form;
    let owner = owner_of(&wallet)?;
    let new = NewPetname { name: fields.name };
    match mendable(visit.panel.node().tell(endpoint::GivePetname.of(owner), &new).await)? {
        Ok(_) => Ok(Done::OwnerNamed.at(&address(owner)).into_response()),
        Err(problem) => page(&visit, owner, &OwnerParams::default(), Some((new.name, problem))).await,
    }
}

/// The page; `refused` is a name that was not saved, and the reason.
async fn page(visit: &Visit, owner: Address, asked: &OwnerParams, refused: Option<(String, String)>) -> Page {
    let node = visit.panel.node();
    let query =
        CatalogQuery { owner: Some(owner.into()), limit: Some(SERVICES_SHOWN), ..CatalogQuery::default() };
    let found = node.tell(endpoint::CatalogSearch, &query).await?;
    let figures = node.ask(endpoint::Figures).await?;
    let (measured, now_secs) = (by_service(&figures), clock::now_secs());
    let named = node.ask(endpoint::Petnames).await?.into_iter().find(|petname| petname.wallet.0 == owner);
    let petname = named.map_or_else(String::new, |named| show::visible(&named.name));
    let (typed, problem) = match refused {
        Some((typed, problem)) => (typed, Some(problem)),
        None => (petname.clone(), None),
    };
    let place = address(owner);
    let bought = BoughtShown::of(node, CallsOf::Owner(owner), &place, asked.range.as_deref()).await?;
    let frame = visit.frame(Section::Catalog).await?;
    let page = OwnerTemplate {
        wallet: owner.to_string(),
        short: show::short(owner),
        fingerprint: show::fingerprint(owner),
        is_own: owner == frame.status.address.0,
        petname,
        cards: found.hits.iter().map(|hit| card(hit, &measured, now_secs)).collect(),
        total: found.total,
        bought,
        typed,
        problem,
        frame,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

fn address(owner: Address) -> String {
    format!("/panel/owners/{owner}")
}

/// The owner of an address; what is no wallet has no page.
fn owner_of(wallet: &str) -> Result<Address, Failure> {
    wallet.parse().map_err(|_| Failure::not_found())
}
