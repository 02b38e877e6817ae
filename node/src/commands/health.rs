//! Whether others have what this owner offers: asked of them, as a stranger would, when somebody wants to know.

use axum::{
    Json,
    extract::{Path, State},
};
use farthing_control::types::{ListingHealth, Text, route};
use farthing_protocol::ServiceId;

use super::Failed;
use crate::node::Node;

#[utoipa::path(
    get,
    path = route::API_HEALTH,
    summary = "Whether others have the listing of my service, and whether my server answers",
    tag = "My services",
    operation_id = "api_health",
    params(("id" = String, Path, description = "UUID of the service")),
    responses((status = 200, description = "Done", body = ListingHealth))
)]
pub(super) async fn health(
    State(node): State<Node>,
    Path(id): Path<Text<ServiceId>>,
) -> Result<Json<ListingHealth>, Failed> {
    let service = node.registry.find(id.0)?;
    Ok(Json(node.health.look(&service).await))
}
