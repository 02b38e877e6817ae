//! What needs a person, and who is told.

use clap::{Args, Subcommand};
use farthing_control::types::Eth;
use farthing_protocol::Usdc;

#[derive(Debug, Subcommand)]
pub enum Alert {
    /// What needs a person now
    List,
    /// From when on alerts are raised, and whom they are told
    Levels,
    /// Change levels and webhook; what is not named stays as it is
    Set(Levels),
    /// Tell the webhook the present alerts now
    Test,
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
    /// Tell nobody
    #[arg(long, conflicts_with = "webhook")]
    pub no_webhook: bool,
}
