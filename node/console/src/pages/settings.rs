//! Settings: the secret that scripts present, who is logged in, what the node runs with, and whether it is well.

use askama::Template;
use axum::{
    extract::State,
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint::{self, Danger, Facts},
    types::{Check, Doctor, Secret, Setting, Status},
};
use farthing_os::clock;

use crate::{
    ConsoleState,
    failure::Page,
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    page::Rendered,
    show,
    texts::Done,
};

pub(super) mod backup;
pub(super) mod chain;
pub(super) mod phrase;
pub(super) mod secrets;

#[derive(Template)]
#[template(path = "settings.html")]
struct SettingsTemplate {
    frame: Frame,
    sessions: usize,
    password_is_configured: bool,
    daily: DailyBackup,
}

/// The backup of every day, in a line.
struct DailyBackup {
    on: bool,
    newest: Option<String>,
    next: String,
    fails: bool,
}

pub(super) async fn show(visit: Visit) -> Page {
    let access = visit.panel.access();
    let standing = visit.panel.node().ask(endpoint::AutomaticBackups).await?;
    let now_secs = clock::now_secs();
    let page = SettingsTemplate {
        daily: DailyBackup {
            on: standing.on,
            newest: standing.newest.map(|newest| show::ago(newest.written_secs, now_secs)),
            next: backup::kept::next(standing.next_secs, now_secs),
            fails: standing.problem.is_some(),
        },
        sessions: access.sessions_count(),
        password_is_configured: access.is_configured(),
        frame: visit.frame(Section::Settings).await?,
    };
    Ok(Rendered(&page).into_response())
}

#[derive(Template)]
#[template(path = "settings-secret.html")]
struct SecretPage {
    frame: Frame,
    /// None until it is asked for.
    secret: Option<String>,
    rotated: bool,
}

/// Says what comes, before it comes.
pub(super) async fn secret_page(visit: Visit) -> Page {
    let frame = visit.frame(Section::Settings).await?;
    Ok(Rendered(&SecretPage { frame, secret: None, rotated: false }).into_response())
}

pub(super) async fn show_secret(form: Form<NoFields>) -> Page {
    let _ = form.confirmed()?;
    let Secret { secret } = form.visit.panel.node().ask(endpoint::Secret).await?;
    let frame = form.visit.frame(Section::Settings).await?;
    Ok(Rendered(&SecretPage { frame, secret: Some(secret), rotated: false }).into_response())
}

#[derive(Template)]
#[template(path = "settings-rotate.html")]
struct RotatePage {
    frame: Frame,
}

pub(super) async fn rotate_page(visit: Visit) -> Page {
    Ok(Rendered(&RotatePage { frame: visit.frame(Section::Settings).await? }).into_response())
}

pub(super) async fn rotate_secret(form: Form<NoFields>) -> Page {
    let _ = form.confirmed()?;
    let Secret { secret } = form.visit.panel.node().ask(endpoint::RotateSecret).await?;
    let frame = form.visit.frame(Section::Settings).await?;
    Ok(Rendered(&SecretPage { frame, secret: Some(secret), rotated: true }).into_response())
}

pub(super) async fn log_out_others(State(panel): State<ConsoleState>, form: Form<NoFields>) -> Redirect {
    panel.access().log_out_others(&form.visit.session).await;
    Done::LoggedOut.at("/panel/settings")
}

#[derive(Template)]
#[template(path = "settings-configuration.html")]
struct ConfigurationPage {
    frame: Frame,
    sections: Vec<(String, Vec<Setting>)>,
}

pub(super) async fn configuration(visit: Visit) -> Page {
    let settings = visit.panel.node().ask(endpoint::Config).await?;
    let mut sections: Vec<(String, Vec<Setting>)> = Vec::new();
    for mut setting in settings {
        let section = setting.name.split('.').next().unwrap_or_default().to_owned();
        setting.value = show::visible(&setting.value);
        match sections.last_mut().filter(|(last, _)| *last == section) {
            Some((_, list)) => list.push(setting),
            None => sections.push((section, vec![setting])),
        }
    }
    let frame = visit.frame(Section::Settings).await?;
    Ok(Rendered(&ConfigurationPage { frame, sections }).into_response())
}

#[derive(Template)]
#[template(path = "settings-operations.html")]
struct NodeOperationsPage {
    frame: Frame,
    /// By what they are about.
    groups: Vec<(&'static str, Vec<&'static Facts>)>,
}

/// Lists what `/api/v1` offers.
pub(super) async fn operations(visit: Visit) -> Page {
    let mut groups: Vec<(&str, Vec<&Facts>)> = Vec::new();
    for facts in endpoint::offered() {
        match groups.iter_mut().find(|(tag, _)| *tag == facts.tag) {
            Some((_, list)) => list.push(facts),
            None => groups.push((facts.tag, vec![facts])),
        }
    }
    let frame = visit.frame(Section::Settings).await?;
    Ok(Rendered(&NodeOperationsPage { frame, groups }).into_response())
}

#[derive(Template)]
#[template(path = "settings-diagnostics.html")]
struct DiagnosticsPage {
    frame: Frame,
    checks: Vec<Check>,
    good: bool,
}

/// Checks everything, the whole ledger too, so it is not part of another page.
pub(super) async fn diagnostics(visit: Visit) -> Page {
    let Doctor { mut checks } = visit.panel.node().ask(endpoint::Doctor).await?;
    for check in &mut checks {
        check.detail = show::visible(&check.detail);
    }
    let good = checks.iter().all(|check| check.good);
    Ok(Rendered(&DiagnosticsPage { frame: visit.frame(Section::Settings).await?, checks, good })
        .into_response())
}

impl SettingsTemplate {
    fn status(&self) -> &Status {
        &self.frame.status
    }
}
