//! `farthing alert`: what needs a person, and who is told.

use super::{
    Context,
    args::{self, Levels},
    failure::Failure,
    input,
    output::{pairs, table},
};

use farthing_control::{
    endpoint,
    types::{Alert, AlertLevels, AlertLevelsRequest, AlertSeverity, Text},
};
use farthing_os::clock;

pub(super) async fn alert(context: &Context, verb: args::Alert) -> Result<(), Failure> {
    let node = context.node()?;
    let levels: AlertLevels = match verb {
        args::Alert::List => {
            let alerts = node.ask(endpoint::Alerts).await?;
            if alerts.is_empty() {
                context.output.prose("Nothing needs you.");
            }
            return context.output.data(&alerts, |alerts| list(alerts));
        }
        args::Alert::Levels => node.ask(endpoint::AlertLevels).await?,
        args::Alert::Set(levels) => node.tell(endpoint::SetAlertLevels, &request(&levels)?).await?,
        args::Alert::Test => node.ask(endpoint::TestAlerts).await?,
        args::Alert::Secret { yes } => {
            if !yes && node.ask(endpoint::AlertLevels).await?.signed {
                context.output.confirm(
                    "Replace the secret of the webhook? Who checks signatures by the present one refuses what comes until \
                     it has the new one.",
                )?;
            }
            let secret = node.ask(endpoint::RenewAlertSecret).await?;
            context
                .output
                .prose("Messages to the webhook are signed with it from now on. It is not shown again.");
            return context.output.data(&secret, |secret| secret.secret.clone());
        }
    };
    context.output.data(&levels, text)
}

fn request(levels: &Levels) -> Result<AlertLevelsRequest, Failure> {
    let webhook = match levels.webhook.as_deref() {
        Some(given) => Some(input::value(given)?),
        None => levels.no_webhook.then(String::new),
    };
    Ok(AlertLevelsRequest {
        usdc_below: levels.usdc_below.map(Text),
        eth_below: levels.eth_below.map(Text),
        channel_below: levels.channel_below.map(Text),
        webhook,
    })
}

fn list(alerts: &[Alert]) -> String {
    let rows = alerts.iter().map(|alert| {
        let severity = match alert.severity {
            AlertSeverity::Warning => "warning",
            AlertSeverity::Error => "error",
        };
        let what = format!("{}; {}", alert.cause, alert.action);
        [severity.to_owned(), alert.kind.name().to_owned(), clock::timestamp(alert.since_secs), what]
    });
    table(["SEVERITY", "KIND", "SINCE", "WHAT"], rows)
}

fn text(levels: &AlertLevels) -> String {
    let told = levels.told_secs.map_or_else(|| "not since the start".to_owned(), clock::timestamp);
    pairs([
        ("USDC below", levels.usdc_below.to_string()),
        ("ETH below", levels.eth_below.to_string()),
        ("Channel below", levels.channel_below.to_string()),
        ("Webhook", levels.webhook.clone().unwrap_or_else(|| "none".to_owned())),
        (
            "Signed",
            if levels.signed { "yes" } else { "no: `farthing alert secret` makes a secret" }.to_owned(),
        ),
        ("Told", if levels.webhook.is_some() { told } else { "-".to_owned() }),
        ("Problem", levels.problem.clone().unwrap_or_else(|| "-".to_owned())),
    ])
}
