//! Home: how the node is, what it spent and earned, and what is left to do.

use askama::Template;
use axum::{extract::Query, response::IntoResponse};
use farthing_control::{
    endpoint,
    types::{Activity, Api, Figures, Reach, ReachState, WalletBackup},
};
use farthing_os::clock;
use serde::Deserialize;

use crate::{
    failure::Page,
    frame::{Frame, Section, Visit, chain_name},
    icons::Icon,
    markup::Markup,
    page::Rendered,
    pages::{
        activity::log::{LogRow, newest},
        setup,
    },
    series::{CallsOf, Charts, Ranges, range_named},
    show,
};

/// The newest calls.
const RECENT: usize = 6;

#[derive(Template)]
#[template(path = "home.html")]
struct HomeTemplate {
    frame: Frame,
    welcome: bool,
    steps: Vec<HomeStep>,
    /// The address at which the set-up goes on, for a node that nothing was done with yet.
    set_up: Option<&'static str>,
    figures: Figures,
    /// In words, or a dash.
    median: String,
    ranges: Ranges,
    money: Markup,
    outcomes: Markup,
    recent: Vec<LogRow>,
    apis: Vec<Api>,
}

/// One thing to do until the node is of full use.
struct HomeStep {
    done: bool,
    title: &'static str,
    /// The present state, or what to do.
    detail: String,
    link: Option<(&'static str, &'static str)>,
}

impl HomeStep {
    const fn icon(&self) -> Icon {
        if self.done { Icon::Done } else { Icon::Todo }
    }
}

#[derive(Deserialize)]
pub(super) struct HomeParams {
    welcome: Option<String>,
    range: Option<String>,
}

pub(super) async fn show(visit: Visit, Query(asked): Query<HomeParams>) -> Page {
    let node = visit.panel.node();
    let frame = visit.frame(Section::Home).await?;
    let figures = node.ask(endpoint::Figures).await?;
    let range = range_named(asked.range.as_deref());
    let charts = Charts::of(node, range, CallsOf::All).await?;
    let activity = node.ask(endpoint::Activity.with("limit", 1)).await?;
    let apis = node.ask(endpoint::Apis).await?;
    let reach = node.ask(endpoint::Reached).await?;
    let backup = node.ask(endpoint::WalletBackup).await?;
    let is_new = setup::is_untouched(&activity, &apis, &backup);
    let steps = steps(&frame, &activity, &apis, &reach, &backup);
    let page = HomeTemplate {
        welcome: asked.welcome.is_some(),
        set_up: is_new.then_some(setup::SetupStep::Words.path()),
        steps: if steps.iter().all(|step| step.done) { Vec::new() } else { steps },
        median: figures.median_us.map_or_else(|| "–".to_owned(), show::duration),
        ranges: Ranges::new("/panel", "money", range),
        money: charts.money(),
        outcomes: charts.outcomes(),
        recent: newest(node, None, RECENT).await?,
        figures,
        apis,
        frame,
    };
    Ok(Rendered(&page).into_response())
}

fn steps(
    frame: &Frame,
    activity: &Activity,
    apis: &[Api],
    reach: &Reach,
    backup: &WalletBackup,
) -> Vec<HomeStep> {
    let status = &frame.status;
    let (usdc, eth) = (status.balance.usdc, status.balance.eth);
    let has_money = usdc.is_some_and(|usdc| !usdc.0.is_zero()) || !status.balance.in_channels.0.is_zero();
    let has_gas = eth.is_some_and(|eth| eth.0.wei > 0);
    let is_reachable = [reach.tcp, reach.quic].contains(&ReachState::Reachable) || !reach.relays.is_empty();
    let mut steps = vec![
        HomeStep {
            done: status.peers > 0,
            title: "Join the network",
            detail: match status.peers {
                0 => "No other node is connected yet. If this lasts, add a node's address to `network.bootstrap` \
                      and restart your node."
                    .to_owned(),
                1 => "One other node is connected.".to_owned(),
                peers => format!("{peers} other nodes are connected."),
            },
            link: Some(("See the network", "/panel/network")),
        },
        HomeStep {
            done: backup.written_down_secs.is_some() || backup.newest_backup_secs.is_some(),
            title: "Back up the wallet",
            detail: backed_up(backup),
            link: Some(("Back up or restore", "/panel/settings/backup")),
        },
        HomeStep {
            done: has_money,
            title: "Fund the wallet",
            detail: match (has_money, has_gas) {
                (true, true) => "You have USDC to spend, and ETH for fees.".to_owned(),
                (true, false) => "You have USDC to spend. You need ETH for fees only if an owner does not pay them."
                    .to_owned(),
                (false, _) => format!(
                    "Send USDC on {} to {}. You need ETH for fees only if an owner does not pay them. Samples are free.",
                    chain_name(&status.chain),
                    status.address
                ),
            },
            link: Some(("Show the address", "/panel/setup/fund")),
        },
        HomeStep {
            done: !activity.bought.is_empty(),
            title: "Make your first call",
            detail: if activity.bought.is_empty() {
                "Find a service, try its free samples, and call it.".to_owned()
            } else {
                "Done. Activity shows how long every call took and what it cost.".to_owned()
            },
            link: Some(("Open the catalog", "/panel/catalog")),
        },
    ];
    if !apis.is_empty() {
        steps.push(HomeStep {
            done: is_reachable,
            title: "Let consumers reach you",
            detail: reach.summary.clone(),
            link: Some(("See the network", "/panel/network")),
        });
    }
    steps
}

/// The backups that there are, or what to do.
fn backed_up(backup: &WalletBackup) -> String {
    let written = backup.written_down_secs.map(|_| "You wrote down its 24 words.".to_owned());
    let newest = backup
        .newest_backup_secs
        .map(|secs| format!("The newest backup file was created {}.", show::ago(secs, clock::now_secs())));
    let there: Vec<String> = written.into_iter().chain(newest).collect();
    if there.is_empty() {
        return "Write down its 24 words, or create a backup file that only your passphrase opens. Without a backup, you \
                lose the money if you lose the disk. You can also restore an earlier node there."
            .to_owned();
    }
    there.join(" ")
}
