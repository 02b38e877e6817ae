//! Backups: made, downloaded, checked, brought from elsewhere, and restored in this node's place.

use askama::Template;
use axum::{
    body::Bytes,
    extract::{FromRequest, Multipart, Path, Query, Request, State},
    response::{IntoResponse, Redirect, Response},
};
use farthing_control::endpoint;
use farthing_control::types::{BACKUPS_KEPT_MAX, Backup, BackupFacts, BackupRequest, WalletBalance};
use farthing_os::clock;
use serde::Deserialize;

use crate::{
    ConsoleState,
    failure::{Failure, Page},
    form::{
        Form, NoFields, unread,
        upload::{self, Gate},
    },
    frame::{Frame, Section, Visit},
    guard::session_of,
    page::{Rendered, answer},
    pages::register::mendable,
    show,
    texts::sentence,
};

pub(in crate::pages) mod kept;

use kept::{Daily, Replaced};

const LIST: &str = "/panel/settings/backup";
/// As the command takes it, with what stands around it in a form.
pub(in crate::pages) const UPLOAD_BYTES_MAX: usize = 64 * 1024 * 1024 + 4_096;

#[derive(Template)]
#[template(path = "settings-backup.html")]
struct BackupsTemplate {
    frame: Frame,
    rows: Vec<BackupRow>,
    written_down: Option<String>,
    /// Made just now.
    made: Option<BackupRow>,
    /// The action that was done just now.
    done: &'static str,
    daily: Daily,
    replaced: Vec<Replaced>,
    kept_max: usize,
    problem: Option<String>,
}

/// A notice that the list shows beside the backups.
pub(super) enum BackupNotice {
    Nothing,
    Made(Backup),
    Done(&'static str),
    Problem(String),
}

#[derive(Deserialize)]
pub(in crate::pages) struct BackupParams {
    /// The result that the action before had for the daily ones, or for a replaced node.
    #[serde(default)]
    daily: String,
}

struct BackupRow {
    name: String,
    size: String,
    when: String,
    at: String,
}

fn row(backup: &Backup, now_secs: u64) -> BackupRow {
    BackupRow {
        name: backup.name.clone(),
        size: show::size(backup.bytes),
        when: show::ago(backup.written_secs, now_secs),
        at: show::utc(backup.written_secs),
    }
}

pub(in crate::pages) async fn list(visit: Visit, Query(asked): Query<BackupParams>) -> Page {
    let said = match asked.daily.as_str() {
        "on" => BackupNotice::Done("Daily backups are on. Your node makes the first one now."),
        "off" => BackupNotice::Done("Daily backups are off. Existing backups stay."),
        "made" => BackupNotice::Done("Today's backup was created."),
        "removed" => BackupNotice::Done("The files of the replaced node are removed."),
        _ => BackupNotice::Nothing,
    };
    list_page(&visit, said).await
}

async fn list_page(visit: &Visit, said: BackupNotice) -> Page {
    let node = visit.panel.node();
    let now_secs = clock::now_secs();
    let backups = node.ask(endpoint::Backups).await;
    let unreadable = backups.as_ref().err().map(ToString::to_string);
    let backups = backups.unwrap_or_default();
    let wallet = node.ask(endpoint::WalletBackup).await?;
    let standing = node.ask(endpoint::AutomaticBackups).await?;
    let replaced = node.ask(endpoint::ReplacedNodes).await?;
    let (mut made, mut done, mut problem) = (None, "", None);
    match said {
        BackupNotice::Nothing => problem = unreadable.as_deref().map(sentence),
        BackupNotice::Made(backup) => made = Some(backup),
        BackupNotice::Done(words) => done = words,
        BackupNotice::Problem(words) => problem = Some(words),
    }
    let page = BackupsTemplate {
        daily: Daily::new(&standing, now_secs),
        replaced: replaced.iter().map(|one| Replaced::new(one, now_secs)).collect(),
        kept_max: BACKUPS_KEPT_MAX,
        done,
        frame: visit.frame(Section::Settings).await?,
        rows: backups.iter().map(|backup| row(backup, now_secs)).collect(),
        written_down: wallet.written_down_secs.map(|secs| show::ago(secs, now_secs)),
        made: made.map(|made| row(&made, now_secs)),
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

#[derive(Deserialize)]
pub(in crate::pages) struct MakeFields {
    passphrase: String,
    repeated: String,
}

pub(in crate::pages) async fn make(form: Form<MakeFields>) -> Page {
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    if fields.passphrase != fields.repeated {
        let problem = "The two passphrases differ. Type the same one twice.".to_owned();
        return list_page(&visit, BackupNotice::Problem(problem)).await;
    }
    let request = BackupRequest { passphrase: fields.passphrase };
    match mendable(visit.panel.node().tell(endpoint::CreateBackup, &request).await)? {
        Ok(made) => list_page(&visit, BackupNotice::Made(made)).await,
        Err(problem) => list_page(&visit, BackupNotice::Problem(problem)).await,
    }
}

/// A file of the user's own, brought in a form whose first fields are the key and, where it is needed, the password.
pub(in crate::pages) async fn upload(State(panel): State<ConsoleState>, request: Request) -> Page {
    let (parts, body) = request.into_parts();
    let session = session_of(&panel, &parts.headers).ok_or_else(|| unread(&panel, &parts))?;
    let visit = Visit::new(&parts, &panel, session);
    let gate = Gate::new(&parts);
    let _place = panel.upload_place().await?;
    match file_of(Request::from_parts(parts, body), &visit, gate).await? {
        bytes if bytes.is_empty() => {
            list_page(&visit, BackupNotice::Problem("No file was chosen.".to_owned())).await
        }
        bytes => match mendable(keep(&visit, bytes).await)? {
            Ok(kept) => Ok(Redirect::to(&format!("{LIST}/{}", kept.name)).into_response()),
            Err(problem) => list_page(&visit, BackupNotice::Problem(problem)).await,
        },
    }
}

async fn file_of(request: Request, visit: &Visit, mut gate: Gate) -> Result<Bytes, Failure> {
    let mut form = Multipart::from_request(request, &visit.panel)
        .await
        .map_err(|rejection| Failure::unreadable(rejection.body_text()))?;
    while let Some(mut field) = form.next_field().await.map_err(|error| upload::failure(&error))? {
        if gate.took(visit, &mut field).await? {
            continue;
        }
        let is_file = field.name() == Some("file");
        if is_file {
            let _ = gate.reauthenticated(visit)?;
            return field.bytes().await.map_err(|error| upload::failure(&error));
        }
    }
    gate.passed().map(|()| Bytes::new())
}

async fn keep(visit: &Visit, bytes: Bytes) -> Result<Backup, farthing_control::ControlError> {
    visit.panel.node().tell_bytes(endpoint::UploadBackup, bytes).await
}

/// The file as the command's own route hands it out.
pub(in crate::pages) async fn download(Path(name): Path<String>, form: Form<NoFields>) -> Page {
    let _ = form.confirmed()?;
    Ok(form.visit.panel.node().stream(endpoint::Backup.of(&name)).await?)
}

#[derive(Template)]
#[template(path = "settings-backup-one.html")]
struct BackupTemplate {
    frame: Frame,
    row: BackupRow,
    facts: Option<Facts>,
    own_wallet: String,
    problem: Option<String>,
}

/// The content of a backup, once it was opened.
struct Facts {
    made: String,
    wallet: String,
    is_own: bool,
    files: String,
    channels: usize,
    unverified: usize,
    violations: u64,
}

impl Facts {
    fn new(facts: &BackupFacts, own: &str) -> Self {
        Self {
            made: show::utc(facts.made_secs),
            wallet: show::visible(&facts.wallet),
            is_own: facts.wallet == own,
            files: show::visible(&facts.files.join(", ")),
            channels: facts.channels,
            unverified: facts.unverified,
            violations: facts.violations,
        }
    }
}

pub(in crate::pages) async fn one(visit: Visit, Path(name): Path<String>) -> Page {
    one_page(&visit, &name, None, None).await
}

async fn one_page(visit: &Visit, name: &str, facts: Option<BackupFacts>, problem: Option<String>) -> Page {
    let backups = visit.panel.node().ask(endpoint::Backups).await?;
    let backup = backups.iter().find(|backup| backup.name == name).ok_or_else(Failure::not_found)?;
    let frame = visit.frame(Section::Settings).await?;
    let own_wallet = frame.status.address.to_string();
    let page = BackupTemplate {
        row: row(backup, clock::now_secs()),
        facts: facts.map(|facts| Facts::new(&facts, &own_wallet)),
        own_wallet,
        frame,
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

#[derive(Deserialize)]
pub(in crate::pages) struct OpenFields {
    passphrase: String,
    #[serde(default)]
    go: String,
    /// Ticked: the node of the backup runs nowhere else.
    alone: Option<String>,
}

#[derive(Template)]
#[template(path = "settings-restarting.html")]
struct RestartingPage {
    frame: Frame,
    restored: Option<Restored>,
}

struct Restored {
    wallet: String,
    kept_in: String,
    /// Of the wallet that was here, where it is another.
    left: Option<WalletBalance>,
    /// Earned by the same wallet and not claimed, where there was any.
    unclaimed: Option<String>,
}

/// Checks a backup, or restores it.
pub(in crate::pages) async fn open(Path(name): Path<String>, form: Form<OpenFields>) -> Page {
    let _ = form.confirmed()?;
    let Form { visit, fields, .. } = form;
    let request = BackupRequest { passphrase: fields.passphrase };
    if fields.go != "restore" {
        let verified = visit.panel.node().tell(endpoint::VerifyBackup.of(&name), &request).await;
        return match mendable(verified)? {
            Ok(facts) => one_page(&visit, &name, Some(facts), None).await,
            Err(problem) => one_page(&visit, &name, None, Some(problem)).await,
        };
    }
    if fields.alone.is_none() {
        let problem = "Confirm that the node in the backup runs nowhere else: two nodes with one wallet contradict each \
                       other, and you can lose money. Nothing was changed.";
        return one_page(&visit, &name, None, Some(problem.to_owned())).await;
    }
    // Everything around the page is of the node that is about to go.
    let frame = visit.frame(Section::Settings).await?;
    match mendable(visit.panel.node().tell(endpoint::RestoreBackup.of(&name), &request).await)? {
        Ok(restoring) => {
            let is_own = restoring.facts.wallet == frame.status.address.to_string();
            let earned = restoring.left.as_ref().map(|left| left.unclaimed).filter(|_| is_own);
            let restored = Restored {
                wallet: show::visible(&restoring.facts.wallet),
                kept_in: show::visible(&restoring.kept_in),
                left: restoring.left.filter(|_| !is_own),
                unclaimed: earned.filter(|earned| !earned.0.is_zero()).map(|earned| earned.to_string()),
            };
            Ok(restarting(frame, Some(restored)))
        }
        Err(problem) => one_page(&visit, &name, None, Some(sentence(&problem))).await,
    }
}

fn restarting(frame: Frame, restored: Option<Restored>) -> Response {
    let page = RestartingPage { frame, restored };
    // Long enough for running calls to end and the wallet to open; without a script, too.
    ([("refresh", "12;url=/panel")], Rendered(&page)).into_response()
}

pub(in crate::pages) async fn restart(form: Form<NoFields>) -> Page {
    let _ = form.reauthenticated()?;
    let frame = form.visit.frame(Section::Settings).await?;
    form.visit.panel.node().ask(endpoint::Restart).await?;
    Ok(restarting(frame, None))
}
