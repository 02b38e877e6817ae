//! Backups that the node makes every day: turned on with a passphrase that it does not keep.

use axum::{Json, extract::State, http::StatusCode};
use farthing_control::types::{AutomaticBackups, AutomaticBackupsRequest, Backup};
use farthing_os::secret::SecretText;

use super::{Failed, shown};
use crate::{
    backup::automatic::{AutomaticError, Standing},
    commands::handles::Handles,
};

impl From<Standing> for AutomaticBackups {
    fn from(standing: Standing) -> Self {
        let Standing { on, keep, folder, newest, next_secs, failing } = standing;
        Self {
            on,
            keep,
            folder: folder.display().to_string(),
            newest: newest.map(shown),
            next_secs,
            problem: failing.as_ref().map(|failing| failing.cause.clone()),
            failing_since_secs: failing.map(|failing| failing.since_secs),
        }
    }
}

pub(in crate::commands) async fn show(State(node): State<Handles>) -> Json<AutomaticBackups> {
    Json(node.backups.standing().await.into())
}

pub(in crate::commands) async fn set(
    State(node): State<Handles>,
    Json(request): Json<AutomaticBackupsRequest>,
) -> Result<Json<AutomaticBackups>, Failed> {
    let AutomaticBackupsRequest { on, passphrase, keep } = request;
    if on {
        node.backups.turn_on(passphrase.map(SecretText::new), keep).await?;
    } else {
        node.backups.turn_off().await.map_err(Failed::from)?;
    }
    Ok(show(State(node)).await)
}

pub(in crate::commands) async fn make(State(node): State<Handles>) -> Result<Json<Backup>, Failed> {
    Ok(Json(shown(node.backups.make_now().await?)))
}

impl From<AutomaticError> for Failed {
    fn from(error: AutomaticError) -> Self {
        match error {
            AutomaticError::Backup(error) => error.into(),
            AutomaticError::Ledger(error) => error.into(),
            error @ AutomaticError::Off => Self::new(StatusCode::CONFLICT, &error, "Nothing was made."),
            error @ (AutomaticError::NoPassphrase | AutomaticError::Keep(_)) => {
                Self::new(StatusCode::BAD_REQUEST, &error, "Nothing was changed.")
            }
        }
    }
}
