//! `farthing alert`: what needs a person, and who is told.

use super::{
    Context,
    failure::Failure,
    input,
    output::{pairs, table},
};

use clap::{Args, Subcommand};
use farthing_control::{
    endpoint,
    types::{self, AlertLevels, AlertLevelsRequest, AlertSeverity, Eth, Text},
};
use farthing_os::clock;
use farthing_protocol::Usdc;

#[derive(Debug, Subcommand)]
pub enum Alert {
    /// List the present alerts
    List,
    /// Show the levels that raise alerts, and where alerts are sent
    Levels,
    /// Change levels and webhook; anything you do not name stays
    Set(Levels),
    /// Send the present alerts to the webhook now
    Test,
    /// Make the secret that signs messages to the webhook, and print it once
    Secret {
        /// Do not ask before the present one is replaced
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct Levels {
    /// USDC in the wallet of a node that buys; 0 for no alert
    #[arg(long, value_name = "USDC")]
    pub usdc_below: Option<Usdc>,
    /// ETH for gas; 0 for no alert
    #[arg(long, value_name = "ETH")]
    pub eth_below: Option<Eth>,
    /// USDC left on a channel; 0 for no alert
    #[arg(long, value_name = "USDC")]
    pub channel_below: Option<Usdc>,
    /// Post alerts there as JSON when they come and go: an address, or @FILE with one that holds a secret
    #[arg(long, value_name = "URL|@FILE")]
    pub webhook: Option<String>,
    /// Send alerts to nobody
    #[arg(long, conflicts_with = "webhook")]
    pub no_webhook: bool,
}

pub(super) async fn alert(context: &Context, verb: Alert) -> Result<(), Failure> {
    let node = context.node()?;
    let levels: AlertLevels = match verb {
        Alert::List => {
            let alerts = node.ask(endpoint::Alerts).await?;
            if alerts.is_empty() {
                context.output.prose("Nothing needs you.");
            }
            return context.output.data(&alerts, |alerts| list(alerts));
        }
        Alert::Levels => node.ask(endpoint::AlertLevels).await?,
        Alert::Set(levels) => node.tell(endpoint::SetAlertLevels, &request(&levels)?).await?,
        Alert::Test => node.ask(endpoint::TestAlerts).await?,
        Alert::Secret { yes } => {
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

fn list(alerts: &[types::Alert]) -> String {
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
