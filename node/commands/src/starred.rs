//! Services that the user starred: listed, starred, and no longer starred.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use farthing_control::types::{StarRequest, StarredService, Text};
use farthing_node::{handles::Handles, starred::StarError};
use farthing_protocol::ServiceId;

use super::{Failed, Reply};

fn shown(node: &Handles, id: ServiceId) -> StarredService {
    StarredService { id: id.into(), name: node.catalog.name(id).unwrap_or_default() }
}

answer!(Starred: list);
async fn list(State(node): State<Handles>) -> Json<Vec<StarredService>> {
    let mut starred: Vec<StarredService> =
        node.starred.all().into_iter().map(|id| shown(&node, id)).collect();
    starred.sort_by_cached_key(|service| service.name.to_lowercase());
    Json(starred)
}

answer!(StarService: star);
async fn star(
    State(node): State<Handles>,
    Path(id): Path<Text<ServiceId>>,
    Json(request): Json<StarRequest>,
) -> Reply<StarredService> {
    node.starred.set(id.0, request.starred).await?;
    Ok(Json(shown(&node, id.0)))
}

refused!(StarError {
    StarError::TooMany => CONFLICT,
    StarError::NotStored(_) => SERVICE_UNAVAILABLE,
});
