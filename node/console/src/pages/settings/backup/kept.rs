//! Files that are kept without being asked for: the backup of every day, and the files of a node that was replaced.

use axum::{
    extract::Path,
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint,
    types::{AutomaticBackups, AutomaticBackupsRequest, ReplacedNode, WalletBalance},
};
use serde::Deserialize;

use super::{BackupNotice, BackupRow, LIST, list_page, row};
use crate::{
    failure::Page,
    form::Form,
    pages::register::{mendable, told},
    show,
};

/// The backup of every day, as the page shows it.
pub(super) struct Daily {
    pub(super) on: bool,
    pub(super) keep: u32,
    pub(super) folder: String,
    pub(super) newest: Option<BackupRow>,
    /// `in 3 hours`
    pub(super) next: String,
    pub(super) problem: Option<String>,
}

impl Daily {
    pub(super) fn new(standing: &AutomaticBackups, now_secs: u64) -> Self {
        Self {
            on: standing.on,
            keep: standing.keep,
            folder: show::visible(&standing.folder),
            newest: standing.newest.as_ref().map(|newest| row(newest, now_secs)),
            next: next(standing.next_secs, now_secs),
            problem: standing.problem.as_deref().map(|problem| super::sentence(&show::visible(problem))),
        }
    }
}

/// Tells when the next backup comes, in words.
pub(in crate::pages::settings) fn next(next_secs: Option<u64>, now_secs: u64) -> String {
    match next_secs {
        None => String::new(),
        Some(secs) if secs <= now_secs => "now".to_owned(),
        Some(secs) => format!("in {}", show::span(secs - now_secs)),
    }
}

/// A node that was replaced.
pub(super) struct Replaced {
    pub(super) name: String,
    pub(super) size: String,
    pub(super) when: String,
    pub(super) wallet: String,
    /// The money that its wallet had at its end, where that is noted.
    pub(super) had: Option<String>,
}

impl Replaced {
    pub(super) fn new(replaced: &ReplacedNode, now_secs: u64) -> Self {
        Self {
            name: show::visible(&replaced.name),
            size: show::size(replaced.bytes),
            when: show::ago(replaced.replaced_secs, now_secs),
            wallet: replaced.wallet.clone().unwrap_or_else(|| "cannot be read".to_owned()),
            had: replaced.left.as_ref().map(WalletBalance::sums),
        }
    }
}

#[derive(Deserialize)]
pub(in crate::pages) struct DailyFields {
    go: String,
    #[serde(default)]
    passphrase: String,
    #[serde(default)]
    repeated: String,
    #[serde(default)]
    keep: String,
}

/// Turns the backup of every day on or off, changes it, or makes one now.
pub(in crate::pages) async fn daily(form: Form<DailyFields>) -> Page {
    if form.fields.go == "now" {
        let visit = form.visit;
        return match mendable(visit.panel.node().ask(endpoint::MakeAutomaticBackup).await)? {
            Ok(_) => Ok(Redirect::to("/panel/settings/backup?daily=made#daily").into_response()),
            Err(problem) => list_page(&visit, BackupNotice::Problem(problem)).await,
        };
    }
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    match told(visit.panel.node(), endpoint::SetAutomaticBackups, request(&fields)).await? {
        Ok(standing) => {
            let word = if standing.on { "on" } else { "off" };
            Ok(Redirect::to(&format!("{LIST}?daily={word}#daily")).into_response())
        }
        Err(problem) => list_page(&visit, BackupNotice::Problem(problem)).await,
    }
}

fn request(fields: &DailyFields) -> Result<AutomaticBackupsRequest, String> {
    if fields.go == "off" {
        return Ok(AutomaticBackupsRequest { on: false, passphrase: None, keep: None });
    }
    if fields.passphrase != fields.repeated {
        return Err("The two passphrases differ. Type the same one twice.".to_owned());
    }
    let keep = match fields.keep.trim() {
        "" => None,
        text => Some(text.parse().map_err(|_| {
            format!(
                "“{}” is not a number of backups to keep. Type a number from 1 to 365.",
                show::visible(text)
            )
        })?),
    };
    let passphrase = (!fields.passphrase.is_empty()).then(|| fields.passphrase.clone());
    Ok(AutomaticBackupsRequest { on: true, passphrase, keep })
}

#[derive(Deserialize)]
pub(in crate::pages) struct ForgetFields {
    /// Ticked: what is in it is not needed any more.
    sure: Option<String>,
}

/// Removes the files of a replaced node.
pub(in crate::pages) async fn forget(Path(name): Path<String>, form: Form<ForgetFields>) -> Page {
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    if fields.sure.is_none() {
        let problem =
            "Confirm that you no longer need it: its wallet and everything in it are deleted for good.";
        return list_page(&visit, BackupNotice::Problem(problem.to_owned())).await;
    }
    match mendable(visit.panel.node().ask(endpoint::RemoveReplacedNode.of(&name)).await)? {
        Ok(_) => Ok(Redirect::to("/panel/settings/backup?daily=removed#replaced").into_response()),
        Err(problem) => list_page(&visit, BackupNotice::Problem(problem)).await,
    }
}
