//! Alerts: what needs a person now, from when on one is told, and which address is told too.

use askama::Template;
use axum::response::IntoResponse;
use farthing_control::{
    endpoint,
    types::{Alert, AlertLevelsRequest, AlertSeverity, Text},
};
use farthing_os::clock;
use serde::Deserialize;

use crate::{
    failure::Page,
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    page::answer,
    pages::register::{mendable, price, told},
    show,
    texts::{Done, sentence},
};

const ADDRESS: &str = "/panel/finance/alerts";

#[derive(Template)]
#[template(path = "finance-alerts.html")]
struct AlertsTemplate {
    frame: Frame,
    rows: Vec<AlertRow>,
    fields: AlertFields,
    /// The address that alerts are posted to, without what may be a secret.
    webhook: Option<String>,
    /// The result of the last posting.
    told: String,
    problem: Option<String>,
}

struct AlertRow {
    serious: bool,
    cause: String,
    action: String,
    since: String,
}

/// Levels as they are typed.
#[derive(Debug, Default, Deserialize)]
pub(in crate::pages) struct AlertFields {
    usdc_below: String,
    eth_below: String,
    channel_below: String,
    #[serde(default)]
    webhook: String,
    /// Tell nobody else any more.
    no_webhook: Option<String>,
}

impl AlertFields {
    fn request(&self) -> Result<AlertLevelsRequest, String> {
        let usdc = |field, text: &str| {
            price(field, text).map(|usdc| Some(Text(usdc))).map_err(|wrong| wrong.words())
        };
        let eth = self.eth_below.trim().parse().map_err(|_| {
            "ETH in the wallet is not an amount: write it like 0.001, with at most 18 decimals; 0 turns the alert off.".to_owned()
        })?;
        let webhook = match (self.no_webhook.is_some(), self.webhook.trim()) {
            (true, _) => Some(String::new()),
            (false, "") => None,
            (false, address) => Some(address.to_owned()),
        };
        Ok(AlertLevelsRequest {
            usdc_below: usdc("USDC in the wallet", &self.usdc_below)?,
            eth_below: Some(eth),
            channel_below: usdc("USDC left on a channel", &self.channel_below)?,
            webhook,
        })
    }
}

pub(in crate::pages) async fn show(visit: Visit) -> Page {
    page(&visit, None, None).await
}

async fn page(visit: &Visit, typed: Option<AlertFields>, problem: Option<String>) -> Page {
    let node = visit.panel.node();
    let alerts = node.ask(endpoint::Alerts).await?;
    let levels = node.ask(endpoint::AlertLevels).await?;
    let now_secs = clock::now_secs();
    let page = AlertsTemplate {
        frame: visit.frame(Section::Finance).await?,
        rows: alerts.iter().map(|alert| row(alert, now_secs)).collect(),
        fields: typed.unwrap_or_else(|| AlertFields {
            usdc_below: levels.usdc_below.to_string(),
            eth_below: levels.eth_below.to_string(),
            channel_below: levels.channel_below.to_string(),
            ..AlertFields::default()
        }),
        told: match (&levels.problem, levels.told_secs) {
            (Some(problem), _) => format!("The last message failed: {}", sentence(&show::visible(problem))),
            (None, Some(secs)) => format!("Last message sent {}.", show::ago(secs, now_secs)),
            (None, None) => String::new(),
        },
        webhook: levels.webhook.as_deref().map(show::visible),
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

fn row(alert: &Alert, now_secs: u64) -> AlertRow {
    AlertRow {
        serious: alert.severity == AlertSeverity::Error,
        cause: sentence(&show::visible(&alert.cause)),
        action: sentence(&show::visible(&alert.action)),
        since: show::ago(alert.since_secs, now_secs),
    }
}

pub(in crate::pages) async fn set(form: Form<AlertFields>) -> Page {
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    match told(visit.panel.node(), endpoint::SetAlertLevels, fields.request()).await? {
        Ok(_) => Ok(Done::Alerts.at(ADDRESS).into_response()),
        Err(problem) => page(&visit, Some(fields), Some(problem)).await,
    }
}

/// Posts something harmless to the webhook.
pub(in crate::pages) async fn test(form: Form<NoFields>) -> Page {
    let outcome = form.visit.panel.node().ask(endpoint::TestAlerts).await;
    match mendable(outcome)? {
        Ok(_) => Ok(Done::AlertTest.at(ADDRESS).into_response()),
        Err(problem) => page(&form.visit, None, Some(problem)).await,
    }
}
