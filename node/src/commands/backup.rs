//! Backups: made, listed, handed out. Restoring needs a node that does not run, and is the command line's.

use axum::{
    Json,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use super::Failed;
use crate::{
    backup::{self, BackupError, BackupFile, Backups},
    clock,
    control::types::{Backup, BackupRequest, route},
    node::Node,
    secret::SecretText,
};

fn shown(file: BackupFile) -> Backup {
    Backup { name: file.name, path: file.path.display().to_string(), bytes: file.bytes }
}

/// Waits for the disk, and for the protection of a passphrase, apart from those who answer.
async fn on_the_side<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BackupError> + Send + 'static,
) -> Result<T, Failed> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Ok(done?),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

#[utoipa::path(
    get,
    path = route::BACKUPS,
    summary = "Backups in the data folder, the newest first",
    tag = "Backup",
    operation_id = "backups",
    responses((status = 200, description = "Done", body = Vec<Backup>))
)]
pub(super) async fn list(State(node): State<Node>) -> Result<Json<Vec<Backup>>, Failed> {
    let backups = Backups::in_folder(&node.config.node.data_dir);
    let all = on_the_side(move || backups.all()).await?;
    Ok(Json(all.into_iter().map(shown).collect()))
}

#[utoipa::path(
    post,
    path = route::BACKUPS,
    summary = "Make a backup that the passphrase opens; asks for the password again",
    tag = "Backup",
    operation_id = "create_backup",
    request_body = BackupRequest,
    responses((status = 200, description = "Done", body = Backup))
)]
pub(super) async fn create(
    State(node): State<Node>,
    Json(request): Json<BackupRequest>,
) -> Result<Json<Backup>, Failed> {
    let passphrase = SecretText::new(request.passphrase);
    let made = on_the_side(move || {
        let (data_dir, now_secs) = (&node.config.node.data_dir, clock::now_secs());
        let bytes = backup::make(data_dir, &node.ledger, &node.wallet.to_string(), &passphrase, now_secs)?;
        Backups::in_folder(data_dir).add(&bytes, now_secs)
    })
    .await?;
    Ok(Json(shown(made)))
}

#[utoipa::path(
    get,
    path = route::BACKUP,
    summary = "A backup, to be kept elsewhere; asks for the password again",
    tag = "Backup",
    operation_id = "backup",
    params(("name" = String, Path, description = "As the list has it")),
    responses((status = 200, description = "Done"))
)]
pub(super) async fn download(State(node): State<Node>, Path(name): Path<String>) -> Result<Response, Failed> {
    let backups = Backups::in_folder(&node.config.node.data_dir);
    let asked = name.clone();
    let bytes = on_the_side(move || {
        let Some(file) = backups.find(&asked)? else { return Ok(None) };
        let read = std::fs::read(&file.path);
        read.map(Some).map_err(|source| BackupError::Io { path: file.path, source })
    })
    .await?;
    let Some(bytes) = bytes else {
        let next = "`farthing backup list` shows them.";
        return Err(Failed::new(StatusCode::NOT_FOUND, &"there is no backup of that name", next));
    };
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, bytes).into_response())
}

impl From<BackupError> for Failed {
    fn from(error: BackupError) -> Self {
        let status = match &error {
            BackupError::ShortPassphrase => StatusCode::BAD_REQUEST,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, &error, "Nothing was written.")
    }
}
