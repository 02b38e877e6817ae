//! `farthing wallet history` and `settlement`: step by step from the node, as a table, JSON or CSV.

use clap::Args;
use farthing_control::endpoint::{self, Target};
use farthing_control::{
    ControlClient,
    types::{
        HistoryEntry, HistoryKind, HistoryState, SettlementShown, Text,
        history::{CSV_HEAD, csv_line},
    },
};
use farthing_os::clock;
use farthing_protocol::{Address, ServiceId};

use crate::{
    Context,
    failure::Failure,
    input,
    output::{pairs, table},
    pick::{self, ServiceName},
};

#[derive(Debug, Args)]
pub struct History {
    /// bought, served, settlement, transaction or adjustment; several with commas
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub kind: Vec<HistoryKind>,
    /// charged, free, failed, pending, confirmed, lost or returned
    #[arg(long)]
    pub state: Option<HistoryState>,
    /// Calls of one service: its name, its UUID, or the first digits of the UUID
    #[arg(long, value_name = "SERVICE")]
    pub service: Option<ServiceName>,
    /// Entries with one wallet: that of an owner or a payer
    #[arg(long, value_name = "WALLET")]
    pub with: Option<Address>,
    /// First day in UTC, such as 2026-11-21, or a Unix time in seconds
    #[arg(long, value_name = "DAY")]
    pub from: Option<String>,
    /// Last day in UTC, or the second after the last
    #[arg(long, value_name = "DAY")]
    pub to: Option<String>,
    /// Largest number of entries; by default 50, or all with --csv
    #[arg(long, value_parser = input::at_least_one)]
    pub limit: Option<u64>,
    /// Print CSV, with amounts in USDC
    #[arg(long, conflicts_with = "by_day")]
    pub csv: bool,
    /// Show totals per day instead; by default the last 30 days
    #[arg(long, conflicts_with_all = ["kind", "state", "service", "with", "limit"])]
    pub by_day: bool,
}

const LISTED_DEFAULT: u64 = 50;
/// The most entries that the node gives in one step.
const STEP_MAX: u64 = 500;

pub(super) async fn history(
    context: &Context,
    node: &ControlClient,
    arguments: History,
) -> Result<(), Failure> {
    if arguments.csv && context.global.json {
        return Err(
            Failure::usage("--csv and --json cannot be used together").next("leave out --csv or --json")
        );
    }
    if arguments.by_day {
        return by_day(context, node, &arguments).await;
    }
    let service = match arguments.service.clone() {
        Some(service) => Some(pick::of_network(context, node, service).await?),
        None => None,
    };
    let limit = match (arguments.limit, arguments.csv) {
        (Some(limit), _) => limit,
        (None, true) => u64::MAX,
        (None, false) => LISTED_DEFAULT,
    };
    if arguments.csv {
        context.output.text(CSV_HEAD)?;
    }
    let (mut listed, mut entries, mut cursor) = (0, Vec::new(), None);
    loop {
        let at = target(&arguments, service, cursor.as_deref())
            .with("limit", limit.saturating_sub(listed).min(STEP_MAX));
        let page = node.ask(at).await?;
        listed += page.entries.len() as u64;
        if arguments.csv {
            context.output.text(&page.entries.iter().map(csv_line).collect::<String>())?;
        } else {
            entries.extend(page.entries);
        }
        cursor = page.next;
        if cursor.is_none() || listed >= limit {
            break;
        }
    }
    if arguments.csv {
        return Ok(());
    }
    if entries.is_empty() {
        context.output.prose("No entries found.");
    } else if cursor.is_some() {
        context.output.prose("There are more entries. Raise --limit, or use --csv for all of them.");
    }
    context.output.data(&entries, |entries| list(entries))
}

fn target(
    arguments: &History,
    service: Option<ServiceId>,
    cursor: Option<&str>,
) -> Target<endpoint::History> {
    let kinds: Vec<&str> = arguments.kind.iter().map(|kind| kind.name()).collect();
    Target::from(endpoint::History)
        .with_some("kind", (!kinds.is_empty()).then(|| kinds.join(",")))
        .with_some("state", arguments.state.map(HistoryState::name))
        .with_some("service", service)
        .with_some("with", arguments.with)
        .with_some("from", arguments.from.as_deref())
        .with_some("to", arguments.to.as_deref())
        .with_some("cursor", cursor)
}

fn list(entries: &[HistoryEntry]) -> String {
    fn text<T: ToString>(value: Option<&T>) -> String {
        value.map(ToString::to_string).unwrap_or_default()
    }
    let rows = entries.iter().map(|entry| {
        let amount = match (entry.kind, &entry.eth) {
            (HistoryKind::Transaction, Some(eth)) => format!("{eth} ETH"),
            _ => entry.amount.to_string(),
        };
        let what = format!("{} {}", entry.what, entry.name);
        let what = what.trim_end();
        [
            clock::timestamp(entry.time_secs),
            entry.kind.to_string(),
            entry.state.to_string(),
            amount,
            text(entry.status.as_ref()),
            entry.reason.as_ref().map_or_else(|| what.to_owned(), |why| format!("{what}: {}", spoken(why))),
            text(entry.peer.as_ref()),
            entry.id.clone(),
        ]
    });
    table(["TIME", "KIND", "STATE", "USDC", "STATUS", "WHAT", "WITH", "ID"], rows)
}

/// A reason as people read it: of a code its words, and a sentence as it is.
fn spoken(reason: &str) -> String {
    if reason.contains(' ') { reason.to_owned() } else { reason.replace('_', " ") }
}

async fn by_day(context: &Context, node: &ControlClient, arguments: &History) -> Result<(), Failure> {
    let (from, to) = (arguments.from.as_deref(), arguments.to.as_deref());
    let at = Target::from(endpoint::HistoryDays).with_some("from", from).with_some("to", to);
    let days = node.ask(at).await?;
    context.output.data(&days, |days| {
        let rows = days.iter().map(|day| {
            let counts = [day.bought.to_string(), day.spent.to_string(), day.served.to_string()];
            let [bought, spent, served] = counts;
            [day.date.clone(), bought, spent, served, day.earned.to_string()]
        });
        table(["DAY", "BOUGHT", "SPENT", "SERVED", "EARNED"], rows)
    })
}

pub(super) async fn settlement(context: &Context, node: &ControlClient, number: u64) -> Result<(), Failure> {
    let found = node.ask(endpoint::Settlement.of(number)).await?;
    if found.partial {
        context.output.prose("Some calls are not listed because they are too old or too many.");
    }
    context.output.data(&found, settled)
}

fn settled(settlement: &SettlementShown) -> String {
    let state = settlement.state.to_string();
    let facts = pairs([
        ("Settlement", settlement.id.to_string()),
        ("Time", clock::timestamp(settlement.time_secs)),
        ("State", settlement.reason.as_ref().map_or_else(|| state.clone(), |why| format!("{state}: {why}"))),
        ("Transaction", settlement.transaction.clone().unwrap_or_default()),
        ("Amount", format!("{} USDC", settlement.amount)),
    ]);
    let channels = settlement.channels.iter().map(|part| {
        [
            part.channel.to_string(),
            part.payer.as_ref().map(Text::to_string).unwrap_or_default(),
            part.amount.to_string(),
        ]
    });
    let calls = settlement.calls.iter().map(|call| {
        [
            clock::timestamp(call.time_secs),
            call.charged.to_string(),
            call.operation.clone(),
            call.call_id.to_string(),
        ]
    });
    let parts =
        [facts, table(["CHANNEL", "PAYER", "USDC"], channels), table(["TIME", "USDC", "CALL", "ID"], calls)];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}
