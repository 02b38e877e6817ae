//! The owner's services: add, price, pause, remove.

use axum::{
    Json,
    extract::{Path, State},
};
use farthing_protocol::{
    ServiceId, Usdc,
    call::ChargePolicy,
    listing::{Details, Operation, Parameter, Place, ValueKind},
};

use super::Failed;
use crate::{
    control::types::{
        Api, ApiOperation, ApiState, Charge, KindFile, ParameterFile, PlaceFile, PriceRequest, ServiceFile,
        Text,
    },
    node::Node,
    owner::{
        new_service::NewService,
        registry::{Registered, RegistryError},
    },
};

/// The newest calls that a service's figures are taken from.
const CALLS_COUNTED_MAX: usize = 100_000;

pub(super) async fn apis(State(node): State<Node>) -> Result<Json<Vec<Api>>, Failed> {
    node.registry.all().iter().map(|service| api(&node, service)).collect::<Result<_, _>>().map(Json)
}

pub(super) async fn add_api(
    State(node): State<Node>,
    Json(file): Json<ServiceFile>,
) -> Result<Json<Api>, Failed> {
    let service = node.registry.add(new_service(file)).await?;
    node.publish().await;
    api(&node, &service).map(Json)
}

pub(super) async fn remove_api(
    State(node): State<Node>,
    Path(id): Path<Text<ServiceId>>,
) -> Result<Json<Api>, Failed> {
    let service = node.registry.get(id.0).ok_or(RegistryError::NotFound(id.0))?;
    let mut last = api(&node, &service)?;
    node.registry.remove(id.0).await?;
    node.publish().await;
    last.state = ApiState::Removed;
    Ok(Json(last))
}

pub(super) async fn price_api(
    State(node): State<Node>,
    Path(id): Path<Text<ServiceId>>,
    Json(request): Json<PriceRequest>,
) -> Result<Json<Api>, Failed> {
    let operation = request.operation.map(|operation| (operation.method.0, operation.path));
    let service = node.registry.set_price(id.0, operation, request.price.0).await?;
    node.publish().await;
    api(&node, &service).map(Json)
}

pub(super) async fn pause_api(
    State(node): State<Node>,
    Path(id): Path<Text<ServiceId>>,
) -> Result<Json<Api>, Failed> {
    set_paused(&node, id.0, true).await
}

pub(super) async fn resume_api(
    State(node): State<Node>,
    Path(id): Path<Text<ServiceId>>,
) -> Result<Json<Api>, Failed> {
    set_paused(&node, id.0, false).await
}

async fn set_paused(node: &Node, id: ServiceId, paused: bool) -> Result<Json<Api>, Failed> {
    let service = node.registry.set_paused(id, paused).await?;
    node.publish().await;
    api(node, &service).map(Json)
}

fn api(node: &Node, service: &Registered) -> Result<Api, Failed> {
    let listing = service.listing();
    let served = node.ledger.served_calls(CALLS_COUNTED_MAX)?;
    let served =
        served.iter().filter(|row| row.call.service == listing.service && !row.call.charged.is_zero());
    Ok(Api {
        id: listing.service.into(),
        name: listing.name.clone(),
        state: if listing.paused { ApiState::Paused } else { ApiState::Published },
        upstream: service.upstream_url().to_owned(),
        upstream_class: service
            .upstream()
            .class()
            .map_or_else(|| "not resolved yet".to_owned(), |class| class.to_string()),
        price: listing.price.into(),
        listing_version: listing.seq,
        operations: service
            .known()
            .details()
            .operations
            .iter()
            .map(|operation| ApiOperation {
                method: operation.method.into(),
                path: operation.path.clone(),
                price: listing.price_of(operation).into(),
            })
            .collect(),
        calls: served.clone().count() as u64,
        earned: served.fold(Usdc::ZERO, |sum, row| sum.saturating_add(row.call.charged)).into(),
    })
}

fn new_service(file: ServiceFile) -> NewService {
    let operations = file
        .operations
        .into_iter()
        .map(|operation| Operation {
            method: operation.method.0,
            path: operation.path,
            summary: operation.summary,
            price: operation.price.map(|price| price.0),
            parameters: operation.parameters.into_iter().map(parameter).collect(),
            body: operation.body,
            any_params: operation.any_params,
        })
        .collect();
    NewService {
        id: file.id.map(|id| id.0),
        name: file.name,
        summary: file.summary,
        category: file.category,
        tags: file.tags,
        upstream: file.upstream,
        upstream_headers: file.upstream_headers,
        price: file.price.0,
        charge_policy: match file.charge {
            Charge::Success => ChargePolicy::Success,
            Charge::Answered => ChargePolicy::Answered,
        },
        details: Details { description: file.description, operations },
    }
}

fn parameter(file: ParameterFile) -> Parameter {
    Parameter {
        name: file.name,
        place: match file.place {
            PlaceFile::Query => Place::Query,
            PlaceFile::Path => Place::Path,
            PlaceFile::Header => Place::Header,
        },
        kind: match file.kind {
            KindFile::Text => ValueKind::Text,
            KindFile::Integer => ValueKind::Integer,
            KindFile::Number => ValueKind::Number,
            KindFile::Boolean => ValueKind::Boolean,
        },
        required: file.required,
        choices: file.choices,
        description: file.description,
    }
}
