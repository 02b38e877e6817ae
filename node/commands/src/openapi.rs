//! The description of the endpoints for programs.

use std::sync::LazyLock;

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use farthing_control::endpoint;
use serde_json::{Value, json};

/// Made when it is first asked for.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| json!(endpoint::document()));

answer!(Document: show);
async fn show() -> Response {
    Json(&*DOCUMENT).into_response()
}
