//! `farthing status`, `doctor`, `healthcheck` and `audit`: how the node is.

use std::time::Duration;

use farthing_control::{
    endpoint,
    types::{Alert, Audit, Check, Compared, NodePart, OnChain, Status},
};
use farthing_protocol::Address;

use super::{
    Context,
    failure::{Exit, Failure},
    output::pairs,
};

/// A probe that takes longer is a failed one.
const HEALTH_WITHIN: Duration = Duration::from_secs(5);
/// Everything it tells lies in memory; a node that takes longer is stopped or stuck.
const STATUS_WITHIN: Duration = Duration::from_secs(15);
/// It reads every call there ever was.
const AUDITED_WITHIN: Duration = Duration::from_secs(600);

pub(super) async fn status(context: &Context) -> Result<(), Failure> {
    let status = context.node()?.within(STATUS_WITHIN).ask(endpoint::Status).await?;
    context.output.data(&status, text)?;
    for alert in &status.alerts {
        context.output.prose(&format!("! {}: {}", about(alert), alert.line()));
    }
    Ok(())
}

/// The part of the node that an alert is about, or its kind.
fn about(alert: &Alert) -> &'static str {
    alert.part().map_or(alert.kind.name(), NodePart::name)
}

fn text(status: &Status) -> String {
    let chain = &status.chain;
    let money = if chain.testnet { " (test money)" } else { "" };
    let head = match (chain.head, chain.head_age_secs, &chain.problem) {
        (_, _, Some(problem)) => problem.clone(),
        (Some(head), Some(age), None) => format!("block {head}, {age} s ago"),
        _ => "not seen yet".into(),
    };
    let amount = |amount: Option<String>, unit| {
        amount.map_or_else(|| "unknown".into(), |text| format!("{text} {unit}"))
    };
    let rows = [
        ("Version", format!("{}, up {} s", status.version, status.uptime_secs)),
        ("Wallet", status.address.to_string()),
        ("Peer id", status.peer_id.clone()),
        ("Gateway", status.gateway_url.clone()),
        ("Network", format!("{}, peers: {}", status.network, status.peers)),
        ("Addresses", format!("{} ({})", status.addresses.join(" "), status.reach)),
        ("Rendezvous", status.rendezvous.clone()),
        ("Chain", format!("{} ({}), {head}", chain.name, chain.chain_id)),
        ("USDC", amount(status.balance.usdc.map(|usdc| usdc.to_string()), "USDC") + money),
        ("ETH", amount(status.balance.eth.map(|eth| eth.to_string()), "ETH")),
        ("In channels", format!("{} USDC", status.balance.in_channels)),
        ("Unclaimed", format!("{} USDC", status.balance.unclaimed)),
        ("Services", status.services.to_string()),
        ("Spent today", format!("{} USDC", status.spent_today)),
        ("Spending", if status.spending { "on".into() } else { "stopped".into() }),
    ];
    pairs(rows.into_iter().chain(status.x402_url.clone().map(|url| ("x402", url))))
}

pub(super) async fn doctor(context: &Context) -> Result<(), Failure> {
    let doctor = context.node()?.ask(endpoint::Doctor).await?;
    context.output.data(&doctor, |doctor| doctor.checks.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    let mut bad: Vec<&str> =
        doctor.checks.iter().filter(|check| !check.good).map(|check| check.name.as_str()).collect();
    bad.dedup();
    if bad.is_empty() {
        return Ok(());
    }
    let what = format!("failed checks: {}", bad.join(", "));
    Err(Failure::told(Exit::Failure, what).next("each failed check shows what to do"))
}

fn line(check: &Check) -> String {
    let mark = match (check.good, &check.next) {
        (true, None) => "ok  ",
        (true, Some(_)) => "WARN",
        (false, _) => "FAIL",
    };
    let next = check.next.as_ref().map_or_else(String::new, |next| format!("\n      {next}"));
    format!("{mark}  {}: {}{next}", check.name, check.detail)
}

pub(super) async fn healthcheck(context: &Context) -> Result<(), Failure> {
    let node = context.node()?.within(HEALTH_WITHIN);
    let health = node.ask_any_status(endpoint::Health).await?;
    let waiting = format!("waiting for {}", health.waiting_for.join(", "));
    context.output.data(&health, |health| if health.ready { "ready".into() } else { waiting.clone() })?;
    if health.ready { Ok(()) } else { Err(Failure::told(Exit::Failure, waiting)) }
}

pub(super) async fn audit(context: &Context, with: Option<Address>, offline: bool) -> Result<(), Failure> {
    let at = endpoint::Audit.with("offline", offline).with_some("with", with);
    let audit = context.node()?.within(AUDITED_WITHIN).ask(at).await?;
    context.output.data(&audit, audited)?;
    for text in &audit.not_checked {
        context.output.prose(&format!("Not checked: {text}."));
    }
    let differences = audit.compared.as_ref().map_or(0, |compared| compared.differences_total);
    if audit.violations_total > 0 {
        let next = "keep the data folder as it is and see docs/ledger.md";
        let told = format!("invariants are violated: {}", audit.violations_total);
        return Err(Failure::told(Exit::Failure, told).next(next));
    }
    if differences > 0 {
        let next = "if you restored a backup, the first call to this owner brings the books together. Otherwise your ledger has \
                    the receipts: show them to the owner, and close the channel if the owner does not agree";
        let told = format!("the owner's ledger differs from yours: {differences} differences");
        return Err(Failure::told(Exit::Failure, told).next(next));
    }
    Ok(())
}

/// The counts, then what is wrong, then what is under way.
fn audited(audit: &Audit) -> String {
    let mut lines = vec![pairs([
        ("Calls served", audit.calls_served.to_string()),
        ("Calls bought", audit.calls_bought.to_string()),
        ("Undecided calls", audit.calls_undecided.to_string()),
        ("Adjustments", audit.adjustments.to_string()),
        ("Violations", audit.violations_total.to_string()),
    ])];
    lines.extend(audit.violations.iter().cloned());
    if let Some(chain) = &audit.chain {
        let OnChain { block, channels, escrow, at_stake, unconfirmed } = chain;
        lines.push(pairs([
            ("Channels on chain", format!("{channels}, as of block {block}")),
            ("In the contract", format!("{escrow} USDC, of which {at_stake} in these channels")),
            ("Not confirmed yet", unconfirmed.len().to_string()),
        ]));
        lines.extend(unconfirmed.iter().cloned());
    }
    if let Some(compared) = &audit.compared {
        let Compared { spent_here, earned_there, .. } = compared;
        lines.push(pairs([
            ("Compared with", compared.owner.to_string()),
            ("Calls compared", compared.calls.to_string()),
            ("Of these undecided", compared.undecided.to_string()),
            ("Not kept there", compared.not_kept.to_string()),
            (
                "In adjustments",
                format!(
                    "{} USDC here, {} USDC there as the owner says",
                    compared.adjusted, compared.adjusted_there
                ),
            ),
            ("Channels compared", compared.channels.to_string()),
            ("Charged on them", format!("{spent_here} USDC here, {earned_there} USDC there")),
            ("Differences", compared.differences_total.to_string()),
        ]));
        lines.extend(compared.differences.iter().cloned());
        lines.extend(compared.channels_left_out.iter().map(|left_out| format!("Not compared: {left_out}")));
    }
    lines.join("\n")
}
