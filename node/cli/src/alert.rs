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
    /// Show the alert levels and where alerts are sent
    Levels,
    /// Change the levels or the webhook; options you leave out stay as they are
    Set(Levels),
    /// Send the present alerts to the webhook now
    Test,
    /// Create the secret that signs messages to the webhook, and print it once
    Secret {
        /// Replace the current secret without asking
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct Levels {
    /// Alert when the wallet of a node that buys has less USDC than this; 0 turns it off
    #[arg(long, value_name = "USDC")]
    pub usdc_below: Option<Usdc>,
    /// Alert when the wallet has less ETH for gas than this; 0 turns it off
    #[arg(long, value_name = "ETH")]
    pub eth_below: Option<Eth>,
    /// Alert when a channel has less USDC left than this; 0 turns it off
    #[arg(long, value_name = "USDC")]
    pub channel_below: Option<Usdc>,
    /// Webhook URL that gets alerts as JSON by POST; @FILE reads the URL from a file, which keeps a secret in it off
    /// the command line
    #[arg(long, value_name = "URL|@FILE")]
    pub webhook: Option<String>,
    /// Remove the webhook
    #[arg(long, conflicts_with = "webhook")]
    pub no_webhook: bool,
}

pub(super) async fn alert(context: &Context, verb: Alert) -> Result<(), Failure> {
    let node = context.node()?;
    let levels: AlertLevels = match verb {
        Alert::List => {
            let alerts = node.ask(endpoint::Alerts).await?;
            if alerts.is_empty() {
                context.output.prose("No alerts.");
            }
            return context.output.data(&alerts, |alerts| list(alerts));
        }
        Alert::Levels => node.ask(endpoint::AlertLevels).await?,
        Alert::Set(levels) => node.tell(endpoint::SetAlertLevels, &request(&levels)?).await?,
        Alert::Test => node.ask(endpoint::TestAlerts).await?,
        Alert::Secret { yes } => {
            if !yes && node.ask(endpoint::AlertLevels).await?.signed {
                context.output.confirm(
                    "Replace the webhook's secret? Your webhook rejects messages until you give it the new secret.",
                )?;
            }
            let secret = node.ask(endpoint::RenewAlertSecret).await?;
            context.output.prose(
                "Messages to the webhook are signed with this secret from now on. It is not shown again.",
            );
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
        [severity.to_owned(), alert.kind.name().to_owned(), clock::timestamp(alert.since_secs), alert.line()]
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
            if levels.signed { "yes" } else { "no: `farthing alert secret` creates a secret" }.to_owned(),
        ),
        ("Told", if levels.webhook.is_some() { told } else { "-".to_owned() }),
        ("Problem", levels.problem.clone().unwrap_or_else(|| "-".to_owned())),
    ])
}
