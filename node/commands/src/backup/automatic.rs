//! Backups that the node makes every day: turned on with a passphrase that it does not keep.

use axum::{Json, extract::State, http::StatusCode};
use farthing_control::types::{AutomaticBackups, AutomaticBackupsRequest, Backup};
use farthing_node::{backup::automatic::AutomaticError, handles::Handles};
use farthing_os::secret::SecretText;

use super::{Failed, Reply};

answer!(AutomaticBackups: show);
async fn show(State(node): State<Handles>) -> Json<AutomaticBackups> {
    Json(node.backups.standing().await)
}

answer!(SetAutomaticBackups: set);
async fn set(
    State(node): State<Handles>,
    Json(request): Json<AutomaticBackupsRequest>,
) -> Reply<AutomaticBackups> {
    let AutomaticBackupsRequest { on, passphrase, keep } = request;
    if on {
        node.backups.turn_on(passphrase.map(SecretText::new), keep).await?;
    } else {
        node.backups.turn_off().await.map_err(Failed::from)?;
    }
    Ok(show(State(node)).await)
}

answer!(MakeAutomaticBackup: make);
async fn make(State(node): State<Handles>) -> Reply<Backup> {
    Ok(Json(node.backups.make_now().await?))
}

impl From<AutomaticError> for Failed {
    fn from(error: AutomaticError) -> Self {
        let status = match error {
            AutomaticError::Backup(error) => return error.into(),
            AutomaticError::NoPassphrase | AutomaticError::Keep(_) => StatusCode::BAD_REQUEST,
            AutomaticError::Off => StatusCode::CONFLICT,
            AutomaticError::Ledger(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, &error, error.next_step())
    }
}
