//! What may be spent, by the node and with each secret.

use clap::{Args, Subcommand, ValueEnum};
use farthing_protocol::{ServiceId, Usdc};

#[derive(Debug, Subcommand)]
pub enum Spending {
    /// The limits, what was spent today, and whether spending is stopped
    Show,
    /// Refuse every call from now on, over restarts too; selling and settling go on
    Stop,
    /// End a stop
    Resume,
    /// Change the limits while the node runs; they replace those of [spending] until --reset
    Limits(NewLimits),
    /// Let all calls of a service cost up to a price; a call names one for itself in max_price
    Accept {
        /// UUID of the service
        #[arg(value_name = "SERVICE")]
        service: ServiceId,
        /// What it costs now, or more
        #[arg(long, value_name = "USDC")]
        up_to: Usdc,
    },
    /// Services whose answers break their own description or that fail often; with one named, what becomes of calls to it
    Flagged {
        /// UUID of the service
        #[arg(value_name = "SERVICE", requires = "rule")]
        service: Option<ServiceId>,
        /// While it is flagged
        #[arg(long, value_enum, requires = "service")]
        rule: Option<FlagRuleArg>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FlagRuleArg {
    /// Its calls are bought all the same
    Warn,
    /// Nothing is bought from it but a trial now and then
    Stop,
    /// As `spending.flagged` says
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
    /// First back to the configuration's
    #[arg(long)]
    pub reset: bool,
}

#[derive(Debug, Subcommand)]
pub enum Secret {
    /// Every secret with what its holder may do, and when it was used
    List,
    /// Print a secret
    Show {
        /// The default one unless named
        #[arg(default_value = "default", hide_default_value = true)]
        name: String,
    },
    /// Make a secret, for one program or one person, and print it
    Create {
        /// Up to 40 letters, digits, `-`, `_` and `.`
        name: String,
        #[command(flatten)]
        caps: SecretCaps,
    },
    /// Change what the holder of a secret may do; what is not named stays as it is
    Limit {
        name: String,
        #[command(flatten)]
        caps: SecretCaps,
        /// First lift every limit of this secret
        #[arg(long)]
        reset: bool,
    },
    /// Replace a secret and print the new one; the old one ends
    Rotate {
        /// The default one unless named
        #[arg(default_value = "default", hide_default_value = true)]
        name: String,
    },
    /// End a secret
    Revoke { name: String },
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
    /// Only this service; may be repeated
    #[arg(long = "service", value_name = "UUID")]
    pub services: Vec<ServiceId>,
}
