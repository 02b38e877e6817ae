//! Requests that the user saved: listed, kept, opened, renamed, deleted.

use axum::{
    Json,
    extract::{Path, Query, State},
    http::StatusCode,
};
use farthing_control::types::{NewSavedRequest, SavedName, SavedRequest, SavedTitle, ServiceIdText};
use farthing_node::{handles::Handles, saved::SavedError};
use serde::Deserialize;

use super::{
    Failed, Reply,
    history::{given, wrong},
};

/// The requests that are asked for; all unless one service is named.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SavedQuery {
    service: Option<String>,
}

/// Adds the name of the service, as the catalog has it.
fn named(node: &Handles, title: SavedTitle) -> SavedTitle {
    let service_name = node.catalog.name(title.service.0).unwrap_or_default();
    SavedTitle { service_name, ..title }
}

fn shown(node: &Handles, request: SavedRequest) -> SavedRequest {
    SavedRequest { title: named(node, request.title), ..request }
}

answer!(SavedRequests: list);
async fn list(State(node): State<Handles>, Query(asked): Query<SavedQuery>) -> Reply<Vec<SavedTitle>> {
    let service = given(asked.service.as_deref()).map(str::parse::<ServiceIdText>).transpose();
    let service = service.map_err(|error| wrong("service", &error))?;
    let titles = node.saved.titles(service.map(|service| service.0));
    Ok(Json(titles.into_iter().map(|title| named(&node, title)).collect()))
}

answer!(SaveRequest: save);
async fn save(State(node): State<Handles>, Json(new): Json<NewSavedRequest>) -> Reply<SavedRequest> {
    let saved = node.saved.save(new).await?;
    Ok(Json(shown(&node, saved)))
}

answer!(SavedRequest: one);
async fn one(State(node): State<Handles>, Path(id): Path<String>) -> Reply<SavedRequest> {
    let found = node.saved.get(&id)?;
    Ok(Json(shown(&node, found)))
}

answer!(RenameSavedRequest: rename);
async fn rename(
    State(node): State<Handles>,
    Path(id): Path<String>,
    Json(request): Json<SavedName>,
) -> Reply<SavedTitle> {
    let renamed = node.saved.rename(&id, &request.name).await?;
    Ok(Json(named(&node, renamed)))
}

answer!(RemoveSavedRequest: remove);
async fn remove(State(node): State<Handles>, Path(id): Path<String>) -> Reply<SavedTitle> {
    let last = node.saved.remove(&id).await?;
    Ok(Json(named(&node, last)))
}

refused!(SavedError {
    SavedError::NoName | SavedError::LongName | SavedError::TooLarge => BAD_REQUEST,
    SavedError::NotFound => NOT_FOUND,
    SavedError::Exists(_) | SavedError::TooMany => CONFLICT,
    SavedError::NotStored(_) => SERVICE_UNAVAILABLE,
});
