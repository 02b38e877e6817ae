//! `farthing spending`: the limits, and the switch that stops it all.

use super::{
    Context,
    failure::Failure,
    output::{pairs, table},
    pick::{self, ServiceName},
    visible::one_line,
};

use clap::{Args, Subcommand, ValueEnum};
use farthing_control::endpoint;
use farthing_control::types::{
    AcceptPrice, FlagRequest, FlagRule, FlaggedServices, LimitsRequest, SpendingState, StoppedBy, Text,
};
use farthing_os::clock;
use farthing_protocol::Usdc;

#[derive(Debug, Subcommand)]
pub enum Spending {
    /// Show the limits, today's spending, and whether spending is stopped
    Show,
    /// Stop buying, also after restarts; selling and settling continue
    Stop,
    /// Allow spending again
    Resume,
    /// Change the limits while the node runs; they replace the limits in [spending] until --reset
    Limits(NewLimits),
    /// Accept a higher price for all calls of a service; a single call can use max_price instead
    Accept {
        /// Service: its name, its UUID, or the first digits of the UUID
        #[arg(value_name = "SERVICE")]
        service: ServiceName,
        /// Current price, or a higher one
        #[arg(long, value_name = "USDC")]
        up_to: Usdc,
    },
    /// List services that fail often or whose answers do not match their description, or set the rule for one of them
    Flagged {
        /// Service: its name, its UUID, or the first digits of the UUID
        #[arg(value_name = "SERVICE", requires = "rule")]
        service: Option<ServiceName>,
        /// Rule for its calls while it is flagged
        #[arg(long, value_enum, requires = "service")]
        rule: Option<FlagRuleArg>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum FlagRuleArg {
    /// Buy its calls and show a warning
    Warn,
    /// Buy only a trial call now and then
    Stop,
    /// Follow `spending.flagged`
    Setting,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct NewLimits {
    /// Highest price of one call
    #[arg(long, value_name = "USDC")]
    pub per_call: Option<Usdc>,
    /// Most this node may spend in a day (UTC)
    #[arg(long, value_name = "USDC")]
    pub per_day: Option<Usdc>,
    /// Most that may be spent with one secret in a day (UTC)
    #[arg(long, value_name = "USDC")]
    pub per_secret_day: Option<Usdc>,
    /// Go back to the configured values first
    #[arg(long)]
    pub reset: bool,
}

pub(super) async fn spending(context: &Context, verb: Spending) -> Result<(), Failure> {
    let node = context.node()?;
    let state: SpendingState = match verb {
        Spending::Show => node.ask(endpoint::Spending).await?,
        Spending::Stop => node.ask(endpoint::StopSpending).await?,
        Spending::Resume => {
            let state = node.ask(endpoint::ResumeSpending).await?;
            let names: Vec<_> = node.ask(endpoint::Secrets).await?.into_iter().map(|one| one.name).collect();
            let backups = if node.ask(endpoint::AutomaticBackups).await?.on { "on" } else { "off" };
            context.output.prose(&format!(
                "Programs may buy with these secrets: {}. Daily backups are {backups}. If you restored a backup, \
                 each secret is new, and the names, the limits and the passphrase for daily backups are as they were in \
                 it: revoke again what you had revoked since.",
                names.join(", ")
            ));
            state
        }
        Spending::Limits(limits) => node.tell(endpoint::LimitSpending, &request(&limits)).await?,
        Spending::Accept { service, up_to } => {
            let service = pick::of_network(context, &node, service).await?;
            let asked = AcceptPrice { service: service.into(), up_to: up_to.into() };
            let accepted = node.tell(endpoint::AcceptPrice, &asked).await?;
            return context.output.data(&accepted, |AcceptPrice { service, up_to }| {
                format!("Calls of {service} may cost up to {up_to} USDC.")
            });
        }
        Spending::Flagged { service, rule } => {
            let flagged: FlaggedServices = match (service, rule) {
                (Some(service), Some(rule)) => {
                    let service = pick::of_network(context, &node, service).await?;
                    let request = FlagRequest { service: service.into(), rule: chosen(rule) };
                    node.tell(endpoint::RuleFlagged, &request).await?
                }
                _ => node.ask(endpoint::FlaggedServices).await?,
            };
            return context.output.data(&flagged, flagged_text);
        }
    };
    context.output.data(&state, text)
}

const fn chosen(rule: FlagRuleArg) -> Option<FlagRule> {
    match rule {
        FlagRuleArg::Warn => Some(FlagRule::Warn),
        FlagRuleArg::Stop => Some(FlagRule::Stop),
        FlagRuleArg::Setting => None,
    }
}

fn flagged_text(flagged: &FlaggedServices) -> String {
    if flagged.services.is_empty() {
        return format!("No service is flagged. (spending.flagged is {})", flagged.rule);
    }
    let rows = flagged.services.iter().map(|one| {
        let rule =
            one.own_rule.map_or_else(|| flagged.rule.to_string(), |own| format!("{own} (your choice)"));
        let words = one.flag.as_ref().map_or("not flagged", |flag| &flag.words);
        [one.service.to_string(), rule, one_line(words)]
    });
    table(["SERVICE", "RULE", "FLAG"], rows)
}

fn request(limits: &NewLimits) -> LimitsRequest {
    LimitsRequest {
        price_max: limits.per_call.map(Text),
        per_day: limits.per_day.map(Text),
        per_secret_day: limits.per_secret_day.map(Text),
        reset: limits.reset,
    }
}

fn text(state: &SpendingState) -> String {
    let standing = match (state.stopped, state.stopped_secs) {
        (None, _) => "on".to_owned(),
        (Some(StoppedBy::Configuration), _) => "stopped: spending.enabled is false".to_owned(),
        (Some(StoppedBy::User), secs) => format!("stopped on {}", clock::date(secs.unwrap_or_default())),
    };
    let limit = |now: Text<_>, configured: Text<_>| {
        let origin = if now == configured { String::new() } else { format!(" ({configured} configured)") };
        format!("{now} USDC{origin}")
    };
    let (now, configured) = (&state.limits, &state.configured);
    let returned = match state.at_rest.returned {
        Text(Usdc::ZERO) => String::new(),
        returned => format!(", {returned} of that for deposits of the last day that came back"),
    };
    let confirmed = state.confirm_above.map(|above| ("Agents confirm above", format!("{above} USDC")));
    let facts = [
        ("Spending", standing),
        ("Spent today", format!("{} USDC", state.spent_today)),
        ("Per call", limit(now.price_max, configured.price_max)),
        ("Per day", limit(now.per_day, configured.per_day)),
        ("Per secret and day", limit(now.per_secret_day, configured.per_secret_day)),
        // `In channels` is what `status` and `wallet balance` show: what lies there and is not spent.
        ("Count as in channels", format!("{} of {} USDC{returned}", state.at_rest.now, state.at_rest.max)),
        ("At most with one owner", format!("{} USDC", state.at_rest.per_owner)),
    ];
    pairs(facts.into_iter().chain(confirmed))
}

#[cfg(test)]
mod tests {
    use farthing_control::types::{MoneyAtRest, SpendingLimits};

    use super::*;

    const fn usdc(micros: u64) -> Text<Usdc> {
        Text(Usdc::from_micros(micros))
    }

    #[test]
    fn what_counts_as_in_channels_is_not_called_what_lies_there() {
        let limits = SpendingLimits {
            price_max: usdc(10_000),
            per_day: usdc(5_000_000),
            per_secret_day: usdc(5_000_000),
        };
        let at_rest = MoneyAtRest {
            now: usdc(2_450_000),
            returned: usdc(1_250_000),
            max: usdc(20_000_000),
            per_owner: usdc(5_000_000),
            close_delay_max_secs: 604_800,
        };
        let state = SpendingState {
            stopped: None,
            stopped_secs: None,
            spent_today: usdc(0),
            limits,
            configured: limits,
            confirm_above: None,
            at_rest,
        };
        let told = text(&state);
        let line = "Count as in channels    2.45 of 20.00 USDC, 1.25 of that for deposits of the last day that came back";
        assert!(told.lines().any(|told| told == line), "{told}");
        assert!(
            !told.lines().any(|told| told.starts_with("In channels")),
            "`status` says another sum: {told}"
        );
    }
}
