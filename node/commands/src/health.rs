//! Checks that others have what this owner offers: asked of them, as a stranger would, when somebody wants to know.

use axum::{
    Json,
    extract::{Path, State},
};
use farthing_control::types::{ListingHealth, Text};
use farthing_node::handles::Handles;
use farthing_protocol::ServiceId;

use super::Reply;

answer!(ApiHealth: health);
async fn health(State(node): State<Handles>, Path(id): Path<Text<ServiceId>>) -> Reply<ListingHealth> {
    let service = node.registry.find(id.0)?;
    Ok(Json(node.health.look(&service).await))
}
