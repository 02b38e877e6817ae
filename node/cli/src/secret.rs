//! `farthing secret`: what scripts present to the gateway.

use std::collections::BTreeSet;

use super::{
    Context,
    failure::Failure,
    output::table,
    pick::{self, ServiceName},
};

use clap::{Args, Subcommand};
use farthing_control::{
    ControlClient, counted, endpoint,
    types::{NewSecret, PinnedServices, SecretLimits, SecretShown, ServiceIdText, Text},
};
use farthing_node::secrets::SecretsError;
use farthing_os::clock;
use farthing_protocol::Usdc;

#[derive(Debug, Subcommand)]
pub enum Secret {
    /// List the secrets with their limits and when they were last used
    List,
    /// Print a secret
    Show {
        /// Name of the secret; the default one if left out
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
    /// Change the limits of a secret; options you leave out stay as they are
    Limit {
        name: String,
        #[command(flatten)]
        caps: SecretCaps,
        /// Remove every limit of this secret first
        #[arg(long)]
        reset: bool,
    },
    /// Give an agent that buys with a secret a tool for each operation of these services, 30 tools at most
    Pin {
        name: String,
        /// Service: its name, its UUID, or the first digits of the UUID
        #[arg(required = true, value_name = "SERVICE")]
        services: Vec<ServiceName>,
    },
    /// Take these tools away again; without a service, all of them
    Unpin {
        name: String,
        /// Service: its name, its UUID, or the first digits of the UUID
        #[arg(value_name = "SERVICE")]
        services: Vec<ServiceName>,
    },
    /// Replace a secret and print the new one; the old one stops working
    Rotate {
        /// Name of the secret; the default one if left out
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
    /// Highest price of one call
    #[arg(long, value_name = "USDC")]
    pub per_call: Option<Usdc>,
    /// Most that may be spent in a day (UTC)
    #[arg(long, value_name = "USDC")]
    pub per_day: Option<Usdc>,
    /// An agent needs a confirmation for a call that costs more
    #[arg(long, value_name = "USDC")]
    pub confirm_above: Option<Usdc>,
    /// Allow only this service: its name, its UUID, or the first digits of the UUID; may be repeated
    #[arg(long = "service", value_name = "SERVICE")]
    pub services: Vec<ServiceName>,
}

pub(super) async fn secret(context: &Context, verb: Secret) -> Result<(), Failure> {
    let node = context.node()?;
    let output = &context.output;
    match verb {
        Secret::List => {
            let all = node.ask(endpoint::Secrets).await?;
            output.data(&all, |all| list(all))
        }
        Secret::Show { name } => {
            let secret = node.ask(endpoint::NamedSecret.of(&name)).await?;
            output.data(&secret, |secret| secret.secret.clone())
        }
        Secret::Create { name, caps } => {
            let new = NewSecret { name, limits: over(context, &node, SecretLimits::default(), caps).await? };
            let secret = node.tell(endpoint::CreateSecret, &new).await?;
            output.data(&secret, |secret| secret.secret.clone())
        }
        Secret::Limit { name, caps, reset } => {
            let earlier = if reset { SecretLimits::default() } else { find(&node, &name).await?.limits };
            let limits = over(context, &node, earlier, caps).await?;
            let changed = node.tell(endpoint::LimitSecret.of(&name), &limits).await?;
            output.data(&changed, |changed| list(std::slice::from_ref(changed)))
        }
        Secret::Pin { name, services } => {
            let mut pinned = find(&node, &name).await?.pinned;
            pinned.extend(picked(context, &node, services).await?);
            pin(context, &node, &name, pinned).await
        }
        Secret::Unpin { name, services } => {
            let mut pinned = find(&node, &name).await?.pinned;
            let named = picked(context, &node, services).await?;
            let is_all = named.is_empty();
            pinned.retain(|service| !is_all && !named.contains(service));
            pin(context, &node, &name, pinned).await
        }
        Secret::Rotate { name, yes } => {
            confirm_end(context, &node, &name, yes).await?;
            let secret = node.ask(endpoint::RotateNamedSecret.of(&name)).await?;
            output.prose("The old secret no longer works.");
            output.data(&secret, |secret| secret.secret.clone())
        }
        Secret::Revoke { name, yes } => {
            confirm_end(context, &node, &name, yes).await?;
            let last = node.ask(endpoint::RevokeSecret.of(&name)).await?;
            output.prose("The secret no longer works.");
            output.data(&last, |last| list(std::slice::from_ref(last)))
        }
    }
}

/// The ids of services as the user named them.
async fn picked(
    context: &Context,
    node: &ControlClient,
    named: Vec<ServiceName>,
) -> Result<BTreeSet<ServiceIdText>, Failure> {
    let mut services = BTreeSet::new();
    for service in named {
        services.insert(Text(pick::of_network(context, node, service).await?));
    }
    Ok(services)
}

async fn pin(
    context: &Context,
    node: &ControlClient,
    name: &str,
    services: BTreeSet<ServiceIdText>,
) -> Result<(), Failure> {
    let changed = node.tell(endpoint::PinServices.of(name), &PinnedServices { services }).await?;
    let pinned = counted(changed.pinned.len(), "pinned service");
    context.output.prose(&format!("The secret has {pinned}. Restart the agent's program to see its tools."));
    context.output.data(&changed, |changed| list(std::slice::from_ref(changed)))
}

/// Asks before programs are refused. About a secret that is not there, the node has the word.
async fn confirm_end(context: &Context, node: &ControlClient, name: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let all = node.ask(endpoint::Secrets).await?;
    let Some(found) = all.iter().find(|secret| secret.name == name) else { return Ok(()) };
    let used = found.last_used_secs.map_or_else(|| "never".to_owned(), clock::date);
    context.output.confirm(&format!(
        "Replace or revoke the secret {name} (last used: {used})? Programs that use it stop working."
    ))
}

async fn find(node: &ControlClient, name: &str) -> Result<SecretShown, Failure> {
    let all = node.ask(endpoint::Secrets).await?;
    let found = all.into_iter().find(|secret| secret.name == name);
    found.ok_or_else(|| {
        let missing = SecretsError::NotFound(name.to_owned());
        Failure::new(super::Exit::Failure, &missing).next(missing.next_step())
    })
}

/// The limits named on the command line over earlier ones.
async fn over(
    context: &Context,
    node: &ControlClient,
    earlier: SecretLimits,
    caps: SecretCaps,
) -> Result<SecretLimits, Failure> {
    let services = picked(context, node, caps.services).await?;
    let services = (!services.is_empty()).then_some(services);
    Ok(SecretLimits {
        price_max: caps.per_call.map(Text).or(earlier.price_max),
        per_day: caps.per_day.map(Text).or(earlier.per_day),
        confirm_above: caps.confirm_above.map(Text).or(earlier.confirm_above),
        services: services.or(earlier.services),
    })
}

fn list(secrets: &[SecretShown]) -> String {
    let amount = |amount: Option<Text<_>>| amount.map_or_else(|| "-".to_owned(), |usdc| usdc.to_string());
    let date = |secs: Option<u64>| secs.map_or_else(|| "-".to_owned(), clock::date);
    let rows = secrets.iter().map(|secret| {
        let services = secret.limits.services.as_ref().map_or_else(
            || "all".to_owned(),
            |services| services.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        );
        [
            secret.name.clone(),
            amount(secret.limits.price_max),
            amount(secret.limits.per_day),
            amount(secret.limits.confirm_above),
            secret.spent_today.to_string(),
            date(secret.created_secs),
            date(secret.last_used_secs),
            services,
        ]
    });
    table(["NAME", "PER CALL", "PER DAY", "CONFIRM", "TODAY", "MADE", "USED", "SERVICES"], rows)
}
