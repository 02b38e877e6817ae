//! The services of the network: search, show, documents, samples.

mod scope;

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use farthing_bridge::{
    description::{ApiDescription, Operation},
    form, outline,
};
use farthing_catalog as store;
use farthing_control::{
    capital,
    types::{
        CallForm, CatalogHit, CatalogKind, CatalogPage, CatalogQuery, CatalogSamples, CatalogService,
        CatalogSort, CatalogState, Count, Counts, KindCount, LookAlike, NamedService, OperationReference,
        PriceCount, Text, VersionNote,
    },
};
use farthing_discovery::{
    Asker, CatalogError, KnownService, Queuer, SearchAnswer, cause_and_next,
    documents::{self, WritingFailed},
    method_of, time_of,
};
use farthing_gateway::services::address;
use farthing_node::handles::Handles;
use farthing_owner::samples;
use farthing_protocol::{Listing, ServiceId, Usdc, call::Method, listing::ServiceKind};
use serde::Deserialize;

use super::{
    Failed, Reply,
    services::{DocumentVersion, charge, offer},
};

const LIMIT_DEFAULT: usize = 20;

answer!(CatalogSearch: search);
async fn search(State(node): State<Handles>, Json(query): Json<CatalogQuery>) -> Reply<CatalogPage> {
    let offset = query.offset;
    let query = store::Query {
        words: query.words,
        category: query.category,
        tag: query.tag,
        kind: query.kind.map(|kind| match kind {
            CatalogKind::Rest => ServiceKind::Rest,
            CatalogKind::Graphql => ServiceKind::Graphql,
        }),
        price_max: query.price_max.map(|price| price.0),
        owner: query.owner.map(|owner| owner.0),
        online: query.online,
        samples: query.samples,
        sort: match query.sort {
            CatalogSort::Relevance => store::Sort::Relevance,
            CatalogSort::Price => store::Sort::Price,
            CatalogSort::Newest => store::Sort::Newest,
            CatalogSort::Name => store::Sort::Name,
        },
        offset,
        limit: Some(query.limit.unwrap_or(LIMIT_DEFAULT)),
    };
    let SearchAnswer { page, scope } = node.catalog.search(query).await?;
    let facets = page.facets;
    Ok(Json(CatalogPage {
        total: page.total,
        offset,
        hits: page
            .hits
            .iter()
            .map(|hit| shown(&node, &hit.listing, hit.state, hit.look_alike.as_ref()))
            .collect(),
        counts: Counts {
            categories: counts(facets.categories),
            tags: counts(facets.tags),
            kinds: facets
                .kinds
                .into_iter()
                .map(|(kind, count)| KindCount { value: kind.into(), count })
                .collect(),
            prices: facets
                .prices
                .into_iter()
                .map(|band| PriceCount {
                    above: band.above.map(Into::into),
                    up_to: band.up_to.map(Into::into),
                    count: band.count,
                })
                .collect(),
            online: facets.online,
            samples: facets.samples,
        },
        scope: scope.as_ref().map(scope::shown),
        lacking: node.catalog.storage().failing.map(lacking),
    }))
}

/// Says of an answer that a catalog of which a part fails may lack some of it.
fn lacking(failing: store::Failing) -> String {
    let (cause, next) = cause_and_next(failing);
    format!("Services may be missing here: {cause}. {}.", capital(next))
}

answer!(NamedServices: named);
async fn named(State(node): State<Handles>, Path(name): Path<String>) -> Reply<Vec<NamedService>> {
    let named = node.catalog.named(name).await?;
    let shown = |one: store::NamedService| NamedService {
        id: one.service.into(),
        name: one.name,
        owner: one.owner.into(),
        look_alike: one.is_look_alike,
    };
    Ok(Json(named.into_iter().map(shown).collect()))
}

answer!(CatalogService: show);
async fn show(State(node): State<Handles>, Path(id): Path<Text<ServiceId>>) -> Reply<CatalogService> {
    listed(&node, id.0)?;
    let entry = node.catalog.entry(id.0).await?;
    let shown = CatalogService {
        hit: shown(&node, &entry.listing, entry.state, entry.look_alike.as_ref()),
        description: String::new(),
        offers: Vec::new(),
        samples: 0,
        address: address(&node.gateway_url(), id.0),
        details_missing: None,
    };
    let known = match node.catalog.newest(id.0, &Asker::USER).await {
        Ok(known) => known,
        Err(error) => return Ok(Json(CatalogService { details_missing: Some(error.to_string()), ..shown })),
    };
    let description = known.api().description();
    let samples = node.catalog.samples(&known).await.unwrap_or_default();
    Ok(Json(CatalogService {
        description: description.description.clone(),
        offers: known.operations().map(|(operation, price)| offer(description, operation, price)).collect(),
        samples: samples::read(&samples).len(),
        ..shown
    }))
}

answer!(CatalogOpenapi: openapi);
async fn openapi(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Query(query): Query<DocumentVersion>,
) -> Result<Response, Failed> {
    let known = newest(&node, id.0).await?;
    let (at, version) = (address(&node.gateway_url(), id.0), query.version());
    let write = move || documents::openapi(&known, &at, version);
    let document = node.catalog.in_turn(Queuer::User, write).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], document).into_response())
}

answer!(CatalogSamples: sample);
async fn sample(State(node): State<Handles>, Path(id): Path<Text<ServiceId>>) -> Reply<CatalogSamples> {
    let known = newest(&node, id.0).await?;
    let document = node.catalog.samples(&known).await?;
    Ok(Json(CatalogSamples { id, samples: samples::read(&document) }))
}

/// The operation of a service that is asked about.
#[derive(Debug, Deserialize)]
pub(super) struct OperationQuery {
    method: Text<Method>,
    path: String,
}

answer!(CatalogVersions: versions);
async fn versions(State(node): State<Handles>, Path(id): Path<Text<ServiceId>>) -> Reply<Vec<VersionNote>> {
    listed(&node, id.0)?;
    // Looks at the newest, so that it is among them, where its details can be had.
    let entry = node.catalog.entry(id.0).await?;
    let versions = match node.catalog.newest(id.0, &Asker::USER).await {
        Ok(known) => node.catalog.versions(known.listing()).await,
        Err(_) => node.catalog.versions(&entry.listing).await,
    };
    Ok(Json(versions.into_iter().rev().collect()))
}

answer!(CatalogForm: form);
async fn form(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Query(wanted): Query<OperationQuery>,
) -> Reply<CallForm> {
    let found = FoundOperation::of(&node, id.0, &wanted).await?;
    let form = written(&node, &found, form::of).await?;
    Ok(Json(CallForm { form, ..found.call }))
}

answer!(CatalogReference: reference);
async fn reference(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Query(wanted): Query<OperationQuery>,
) -> Reply<OperationReference> {
    let found = FoundOperation::of(&node, id.0, &wanted).await?;
    let both = |description: &ApiDescription, operation: &Operation| {
        (form::of(description, operation), outline::of(description, operation))
    };
    let (form, outline) = written(&node, &found, both).await?;
    Ok(Json(OperationReference { call: CallForm { form, ..found.call }, outline }))
}

/// Refuses an x402 server: it has no listing, so no other node is asked for one.
fn listed(node: &Handles, id: ServiceId) -> Result<(), Failed> {
    if !node.foreign.has(id) {
        return Ok(());
    }
    let detail = format!("{id} is an x402 server, which describes no operations");
    let next = "Buy by its UUID, a path and `max_price`, with `farthing call`, `/internal/call` or an agent's `call_service`.";
    Err(Failed::new(StatusCode::NOT_FOUND, &detail, next))
}

/// Finds the newest version of a service, with its details.
pub(super) async fn newest(node: &Handles, id: ServiceId) -> Result<Arc<KnownService>, Failed> {
    listed(node, id)?;
    Ok(node.catalog.newest(id, &Asker::USER).await?)
}

/// Writes something of an operation, in its turn.
async fn written<T: Send + 'static>(
    node: &Handles,
    found: &FoundOperation,
    write: impl FnOnce(&ApiDescription, &Operation) -> T + Send + 'static,
) -> Result<T, WritingFailed> {
    let (known, index) = (found.known.clone(), found.index);
    node.catalog
        .in_turn(Queuer::User, move || {
            let description = known.api().description();
            write(description, &description.operations[index])
        })
        .await
}

/// An operation of a service of the network.
struct FoundOperation {
    known: Arc<KnownService>,
    index: usize,
    /// Its form has no fields yet.
    call: CallForm,
}

impl FoundOperation {
    async fn of(node: &Handles, id: ServiceId, wanted: &OperationQuery) -> Result<Self, Failed> {
        let known = newest(node, id).await?;
        let mut operations = known.operations().enumerate();
        let found = operations.find(|(_, (operation, _))| {
            method_of(operation) == wanted.method.0 && operation.path == wanted.path
        });
        let Some((index, (operation, price))) = found else {
            let detail = format!("the service has no operation {} at that path", wanted.method);
            return Err(Failed::new(
                StatusCode::NOT_FOUND,
                &detail,
                "`farthing catalog show` lists its operations.",
            ));
        };
        let call = CallForm {
            method: method_of(operation).into(),
            path: operation.path.clone(),
            price: price.into(),
            deposit: deposit(node, known.listing(), price).map(Into::into),
            summary: operation.summary.clone(),
            description: operation.description.clone(),
            deprecated: operation.deprecated,
            timeout_secs: time_of(operation).map(|time| time.as_secs()),
            form: form::Form::default(),
        };
        Ok(Self { known: known.clone(), index, call })
    }
}

/// The deposit that a call of the service at `price` makes first.
fn deposit(node: &Handles, listing: &Listing, price: Usdc) -> Option<Usdc> {
    let accept = node.funding.choose(&listing.accepts, listing.owner).ok()?;
    if price.is_zero() { None } else { node.funding.deposit_before(accept, price) }
}

fn shown(
    node: &Handles,
    listing: &Listing,
    state: store::State,
    older: Option<&store::LookAlike>,
) -> CatalogHit {
    CatalogHit {
        id: listing.service.into(),
        name: listing.name.clone(),
        summary: listing.summary.clone(),
        category: listing.category.clone(),
        tags: listing.tags.clone(),
        kind: listing.kind.into(),
        price: listing.price.into(),
        charge: charge(listing.charge_policy),
        operations: listing.operations_count,
        samples_free: listing.samples_count,
        owner: listing.owner.into(),
        owner_petname: node.petnames.of(listing.owner),
        state: match state {
            _ if listing.paused => CatalogState::Paused,
            store::State::Live => CatalogState::Online,
            store::State::Away | store::State::Dormant => CatalogState::Away,
        },
        updated_secs: listing.updated_secs,
        version: listing.seq,
        look_alike: older.map(|other| LookAlike {
            service: other.service.into(),
            name: other.name.clone(),
            owner: other.owner.into(),
            older: other.older,
        }),
        not_buyable: node.funding.why_not(listing),
        flag: super::flagged::of(node, listing.service),
    }
}

fn counts(facet: Vec<(String, usize)>) -> Vec<Count> {
    facet.into_iter().map(|(value, count)| Count { value, count }).collect()
}

refused!(CatalogError {
    CatalogError::Unknown(_) | CatalogError::NotKept { .. } => NOT_FOUND,
    CatalogError::Retired { .. } => GONE,
    CatalogError::DetailsUnavailable { .. } => BAD_GATEWAY,
    CatalogError::NotRead(_) => INTERNAL_SERVER_ERROR,
    CatalogError::Store(_) | CatalogError::NoMemory(_) => SERVICE_UNAVAILABLE,
});
