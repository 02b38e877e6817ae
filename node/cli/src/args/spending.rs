//! Commands about what may be spent, by the node and with each secret.

use clap::{Args, Subcommand, ValueEnum};
use farthing_protocol::Usdc;

use super::ServiceName;

#[derive(Debug, Subcommand)]
pub enum Spending {
    /// Show the limits, what was spent today, and whether spending is stopped
    Show,
    /// Stop buying, also after restarts; selling and settling go on
    Stop,
    /// Allow spending again
    Resume,
    /// Change the limits while the node runs; they replace those of [spending] until --reset
    Limits(NewLimits),
    /// Accept a price for all calls of a service; a single call can name its own in max_price
    Accept {
        /// Its name, its UUID, or the first digits of that
        #[arg(value_name = "SERVICE")]
        service: ServiceName,
        /// The present price, or more
        #[arg(long, value_name = "USDC")]
        up_to: Usdc,
    },
    /// List services that fail often or whose answers break their description, or set the rule for one of them
    Flagged {
        /// Its name, its UUID, or the first digits of that
        #[arg(value_name = "SERVICE", requires = "rule")]
        service: Option<ServiceName>,
        /// Rule for its calls while it is flagged
        #[arg(long, value_enum, requires = "service")]
        rule: Option<FlagRuleArg>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FlagRuleArg {
    /// Buy its calls, with a warning
    Warn,
    /// Buy only a trial call now and then
    Stop,
    /// Follow `spending.flagged`
    Setting,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct NewLimits {
    /// The most one call may cost
    #[arg(long, value_name = "USDC")]
    pub per_call: Option<Usdc>,
    /// The most this node spends in a day (UTC)
    #[arg(long, value_name = "USDC")]
    pub per_day: Option<Usdc>,
    /// The most the holder of one secret spends in a day (UTC)
    #[arg(long, value_name = "USDC")]
    pub per_secret_day: Option<Usdc>,
    /// Return to the configuration's values first
    #[arg(long)]
    pub reset: bool,
}

#[derive(Debug, Subcommand)]
pub enum Secret {
    /// List the secrets with their limits and when they were last used
    List,
    /// Print a secret
    Show {
        /// The default one unless named
        #[arg(default_value = "default", hide_default_value = true)]
        name: String,
    },
    /// Create a secret for one program or one person, and print it
    Create {
        /// Up to 40 letters, digits, `-`, `_` and `.`
        name: String,
        #[command(flatten)]
        caps: SecretCaps,
    },
    /// Change the limits of a secret; anything you do not name stays
    Limit {
        name: String,
        #[command(flatten)]
        caps: SecretCaps,
        /// First lift every limit of this secret
        #[arg(long)]
        reset: bool,
    },
    /// Replace a secret and print the new one; the old one stops working
    Rotate {
        /// The default one unless named
        #[arg(default_value = "default", hide_default_value = true)]
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Revoke a secret
    Revoke {
        name: String,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// All of them within what the node may.
#[derive(Debug, Args)]
pub struct SecretCaps {
    /// The most one call may cost
    #[arg(long, value_name = "USDC")]
    pub per_call: Option<Usdc>,
    /// The most in a day (UTC)
    #[arg(long, value_name = "USDC")]
    pub per_day: Option<Usdc>,
    /// Only this service: its name, its UUID, or the first digits of that; may be repeated
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<ServiceName>,
}
