//! x402 servers that this node buys from: listed, added, removed.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use farthing_control::types::{NewX402Server, ServiceIdText, X402Server};
use farthing_node::{
    foreign::{ForeignServer, ForeignServerError},
    handles::Handles,
};

use super::{Failed, Reply};

fn shown(server: &ForeignServer) -> X402Server {
    X402Server { id: server.id.into(), url: server.url.to_string(), added_secs: server.added_secs }
}

answer!(X402Servers: list);
async fn list(State(node): State<Handles>) -> Json<Vec<X402Server>> {
    Json(node.foreign.servers().iter().map(shown).collect())
}

answer!(AddX402Server: add);
async fn add(State(node): State<Handles>, Json(new): Json<NewX402Server>) -> Reply<X402Server> {
    let added = node.foreign.add(&new.url).await?;
    Ok(Json(shown(&added)))
}

answer!(RemoveX402Server: remove);
async fn remove(State(node): State<Handles>, Path(id): Path<ServiceIdText>) -> Reply<X402Server> {
    let removed = node.foreign.remove(id.0).await?;
    Ok(Json(shown(&removed)))
}

refused!(ForeignServerError {
    ForeignServerError::NotFound => NOT_FOUND,
    ForeignServerError::TooMany => CONFLICT,
    ForeignServerError::NotStored(_) => SERVICE_UNAVAILABLE,
    _ => BAD_REQUEST,
});
