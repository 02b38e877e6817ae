//! The configuration that the node runs with, and where each value comes from.

use std::sync::Arc;

use axum::{Extension, Json, Router, routing::get};

use crate::{
    config::Shown,
    control::types::{Setting, route},
};

/// The route for it; settings do not change while the node runs.
pub fn router(shown: Vec<Shown>) -> Router {
    let settings = shown.into_iter().map(|Shown { name, value, origin }| Setting {
        name: name.to_owned(),
        value,
        origin,
    });
    let settings: Arc<Vec<Setting>> = Arc::new(settings.collect());
    Router::new().route(route::CONFIG, get(show)).layer(Extension(settings))
}

#[utoipa::path(
    get,
    path = route::CONFIG,
    summary = "The settings that hold, each with its source; secrets are left out",
    tag = "Node",
    operation_id = "config",
    responses((status = 200, description = "Done", body = Vec<Setting>))
)]
pub(super) async fn show(Extension(settings): Extension<Arc<Vec<Setting>>>) -> Json<Vec<Setting>> {
    Json((*settings).clone())
}
