//! Files that restorations put aside: listed, and removed for good.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use farthing_control::types::ReplacedNode;
use farthing_node::{backup::replaced, handles::Handles};
use farthing_shared::blocking::run_blocking;

use super::{Failed, Reply};

answer!(ReplacedNodes: list);
async fn list(State(node): State<Handles>) -> Reply<Vec<ReplacedNode>> {
    Ok(Json(run_blocking(move || replaced::all(&node.config.node.data_dir)).await?))
}

answer!(RemoveReplacedNode: remove);
async fn remove(State(node): State<Handles>, Path(name): Path<String>) -> Reply<ReplacedNode> {
    let removed = run_blocking(move || replaced::remove(&node.config.node.data_dir, &name)).await?;
    let removed = removed.ok_or_else(|| {
        let next = "`farthing backup replaced` lists them. Nothing was removed.";
        Failed::new(StatusCode::NOT_FOUND, &"there is no replaced node with that name", next)
    })?;
    tracing::warn!(folder = removed.name, "the files of a replaced node were removed");
    Ok(Json(removed))
}
