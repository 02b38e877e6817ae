//! Backups: made, listed, checked, handed out, taken in; and the wallet's phrase, which is one too.
//!
//! Restoring one ends the node that runs, so it stands beside the restart in `settings.rs`.

use axum::{
    Json,
    body::Bytes,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use farthing_control::types::{
    BACKUPS_KEPT_MAX, Backup, BackupFacts, BackupRequest, Phrase, PhraseCheck, WalletBackup,
};
use farthing_node::{
    backup::{self, BackupError, BackupOrigin, Backups, Lock},
    handles::Handles,
};
use farthing_os::{clock, secret::SecretText};
use farthing_serve::attachment;
use farthing_shared::blocking::{run_blocking, run_in_turn};
use farthing_wallet::{Wallet, WalletError};

use super::{Failed, Reply};

pub(super) mod automatic;
pub(super) mod replaced;

/// The largest backup that may be brought over HTTP; a larger one is put into the folder by hand.
pub(super) const UPLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

answer!(Backups: list);
async fn list(State(node): State<Handles>) -> Reply<Vec<Backup>> {
    let backups = Backups::of(&node.config.node);
    Ok(Json(run_blocking(move || backups.all()).await?))
}

answer!(CreateBackup: create);
async fn create(State(node): State<Handles>, Json(request): Json<BackupRequest>) -> Reply<Backup> {
    let lock = Lock::Passphrase(SecretText::new(request.passphrase));
    let made = run_in_turn(move || {
        let (config, now_secs) = (&node.config.node, clock::now_secs());
        let bytes = backup::make(&config.data_dir, &node.ledger, &node.wallet.to_string(), &lock, now_secs)?;
        Backups::of(config).add(&bytes, BackupOrigin::Here, now_secs, BACKUPS_KEPT_MAX)
    })
    .await?;
    Ok(Json(made))
}

answer!(Backup: download);
async fn download(State(node): State<Handles>, Path(name): Path<String>) -> Result<Response, Failed> {
    let bytes = read(&Backups::of(&node.config.node), &name).await?;
    Ok((attachment("application/octet-stream", &name), bytes).into_response())
}

/// The whole file.
pub(super) async fn read(backups: &Backups, name: &str) -> Result<Vec<u8>, Failed> {
    let (backups, asked) = (backups.clone(), name.to_owned());
    let bytes = run_blocking(move || {
        let Some(file) = backups.find(&asked)? else { return Ok(None) };
        let path = backups.folder().join(file.name);
        std::fs::read(&path).map(Some).map_err(|source| BackupError::Io { path, source })
    });
    bytes.await?.ok_or_else(|| {
        let next = "`farthing backup list` shows them.";
        Failed::new(StatusCode::NOT_FOUND, &"there is no backup with that name", next)
    })
}

answer!(UploadBackup: upload, with_body_max(UPLOAD_BYTES_MAX));
async fn upload(State(node): State<Handles>, bytes: Bytes) -> Reply<Backup> {
    if !backup::is_backup(&bytes) {
        return Err(BackupError::NoBackup.into());
    }
    let backups = Backups::of(&node.config.node);
    let kept = run_blocking(move || {
        backups.add(&bytes, BackupOrigin::Uploaded, clock::now_secs(), BACKUPS_KEPT_MAX)
    })
    .await?;
    Ok(Json(kept))
}

answer!(VerifyBackup: verify);
async fn verify(
    State(node): State<Handles>,
    Path(name): Path<String>,
    Json(request): Json<BackupRequest>,
) -> Reply<BackupFacts> {
    let passphrase = SecretText::new(request.passphrase);
    let bytes = read(&Backups::of(&node.config.node), &name).await?;
    let data_dir = node.config.node.data_dir.clone();
    Ok(Json(run_in_turn(move || backup::verify(&bytes, &passphrase, &data_dir)).await?))
}

answer!(WalletBackup: wallet_backup);
async fn wallet_backup(State(node): State<Handles>) -> Reply<WalletBackup> {
    let backups = Backups::of(&node.config.node);
    // A folder on a disk that is not there is told as an alert; Home is there all the same.
    let newest = run_blocking(move || backups.all()).await.unwrap_or_default().into_iter().next();
    Ok(Json(WalletBackup {
        written_down_secs: backup::phrase_written_down(&node.ledger)?,
        newest_backup_secs: newest.map(|newest| newest.written_secs),
    }))
}

answer!(Phrase: phrase);
async fn phrase(State(node): State<Handles>) -> Reply<Phrase> {
    let phrase = phrase_of(&node).await?;
    Ok(Json(Phrase { address: node.wallet.to_string(), phrase: phrase.expose().to_owned() }))
}

/// From its file: the node that runs does not keep it.
async fn phrase_of(node: &Handles) -> Result<SecretText, Failed> {
    let config = node.config.clone();
    let opening = move || Wallet::open(&config.node.data_dir, config.wallet.passphrase.as_ref());
    let wallet = run_blocking(opening).await?;
    wallet.phrase().cloned().ok_or_else(|| {
        let detail = "this wallet has no phrase because it came from a keystore file";
        let next =
            "Create a backup instead, or print the wallet's file with `farthing wallet export --keystore`.";
        Failed::new(StatusCode::CONFLICT, &detail, next)
    })
}

answer!(CheckPhrase: check_phrase);
async fn check_phrase(State(node): State<Handles>, Json(request): Json<PhraseCheck>) -> Reply<WalletBackup> {
    let phrase = phrase_of(&node).await?;
    let words: Vec<&str> = phrase.expose().split(' ').collect();
    let is_right = |(number, word): (&usize, &String)| {
        let own = number.checked_sub(1).and_then(|at| words.get(at));
        own.is_some_and(|own| own.eq_ignore_ascii_case(word.trim()))
    };
    if request.words.is_empty() || !request.words.iter().all(is_right) {
        let detail = "some of these words are not at these positions in the wallet's phrase";
        let next = "Compare the words and their numbers with what you wrote down; if it is wrong, show the phrase \
                    again.";
        return Err(Failed::new(StatusCode::BAD_REQUEST, &detail, next));
    }
    backup::note_phrase_written_down(&node.ledger).await?;
    wallet_backup(State(node)).await
}

refused!(WalletError: SERVICE_UNAVAILABLE saying "Nothing was changed.");

refused!(BackupError {
    BackupError::ShortPassphrase
    | BackupError::NoBackup
    | BackupError::Newer { .. }
    | BackupError::WrongPassphrase
    | BackupError::Violated(_)
    | BackupError::WalletClosed(_)
    | BackupError::Settings(_) => BAD_REQUEST,
    _ => SERVICE_UNAVAILABLE,
} saying "Nothing was changed.");
