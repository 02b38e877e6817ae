//! Commands about what needs a person, and who is told.

use clap::{Args, Subcommand};
use farthing_control::types::Eth;
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
