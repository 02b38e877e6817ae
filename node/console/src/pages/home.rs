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
    markup::{Markup, chart_of_days},
    page::Rendered,
    pages::setup,
    show,
};

/// The newest calls of each side.
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
    /// Day, spent and earned.
    days: Vec<(String, String, String)>,
    chart: Markup,
    recent: Vec<super::activity::ActivityRow>,
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
}

pub(super) async fn show(visit: Visit, Query(asked): Query<HomeParams>) -> Page {
    let node = visit.panel.node();
    let frame = visit.frame(Section::Home).await?;
    let figures = node.ask(endpoint::Figures).await?;
    let activity = node.ask(endpoint::Activity.with("limit", RECENT)).await?;
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
        days: show::days(&figures.days),
        chart: chart_of_days(&figures.days),
        recent: super::activity::short_rows(&activity, RECENT, clock::now_secs()),
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
    let is_reachable = [reach.tcp, reach.quic].contains(&ReachState::Reachable);
    let mut steps = vec![
        HomeStep {
            done: status.peers > 0,
            title: "Join the network",
            detail: match status.peers {
                0 => "No other node is connected yet. Name one in `network.bootstrap`.".to_owned(),
                1 => "One other node is connected.".to_owned(),
                peers => format!("{peers} other nodes are connected."),
            },
            link: Some(("See the network", "/panel/network")),
        },
        HomeStep {
            done: backup.written_down_secs.is_some() || backup.newest_backup_secs.is_some(),
            title: "Back up the wallet",
            detail: "Write down its 24 words, or make a file that only a passphrase of yours opens. A lost disk is lost \
                     money otherwise. A node that you had before is restored there, too."
                .to_owned(),
            link: Some(("Back up or restore", "/panel/settings/backup")),
        },
        HomeStep {
            done: has_money && has_gas,
            title: "Fund the wallet",
            detail: match (has_money, has_gas) {
                (true, true) => "There is USDC to spend, and ETH for fees.".to_owned(),
                (true, false) => format!("Send a little ETH for fees to {}.", status.address),
                (false, _) => format!(
                    "Send USDC, and a little ETH for fees, on {} to {}. Samples are free without it.",
                    chain_name(&status.chain),
                    status.address
                ),
            },
            link: Some(("Show the address", "/panel/setup/fund")),
        },
        HomeStep {
            done: !activity.bought.is_empty(),
            title: "Make a first call",
            detail: if activity.bought.is_empty() {
                "Find a service, look at its free samples, and call it.".to_owned()
            } else {
                "Done. Activity shows what every call took and cost.".to_owned()
            },
            link: Some(("Open the catalog", "/panel/catalog")),
        },
    ];
    if !apis.is_empty() {
        steps.push(HomeStep {
            done: is_reachable,
            title: "Be reachable for your consumers",
            detail: reach.summary.clone(),
            link: Some(("See the network", "/panel/network")),
        });
    }
    steps
}
