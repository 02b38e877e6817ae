//! Finance: what there is, what is bound, what was earned, and for how long it lasts.

use askama::Template;
use axum::{
    extract::{Path, Query, State},
    response::{IntoResponse, Redirect, Response},
};
use farthing_control::{
    endpoint,
    types::{Channel, ChannelRole, Settled},
};
use farthing_values::{ChannelId, Usdc};
use serde::Deserialize;

use crate::{
    ConsoleState,
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    markup::{Markup, qr_code},
    page::{Rendered, answer},
    series::{CallsOf, Charts, Ranges, range_named},
    show,
};

use super::{
    petnames::PeerNames,
    register::mendable,
    setup::{Mistake, SetupAnswer, lead_to},
};

pub(super) mod alerts;
pub(super) mod approvals;
pub(super) mod history;
pub(super) mod limits;
mod runway;
pub(super) mod send;

const ADDRESS: &str = "/panel/finance";
const CHANNELS_SHOWN: usize = 60;

#[derive(Template)]
#[template(path = "finance.html")]
struct FinanceTemplate {
    frame: Frame,
    locked: String,
    unclaimed: String,
    spent_today: String,
    runway: String,
    address: String,
    qr: Markup,
    ranges: Ranges,
    money: Markup,
    channels: Vec<ChannelRow>,
    channels_hidden: usize,
    /// The result of the last action.
    done: Option<String>,
    problem: Option<String>,
}

/// One channel, from this node's side.
pub(super) struct ChannelRow {
    id: String,
    short: String,
    role: &'static str,
    peer: String,
    peer_short: String,
    state: String,
    deposited: String,
    spent: String,
    claimed: String,
    left: String,
    can_close: bool,
}

#[derive(Deserialize)]
pub(super) struct FinanceParams {
    range: Option<String>,
    /// The name of the answer to a claim or a close.
    #[serde(default)]
    answer: String,
}

pub(super) async fn show(visit: Visit, Query(asked): Query<FinanceParams>) -> Page {
    let kept = visit.panel.setup_answers().get(Some(visit.session.id()), &asked.answer);
    let (done, problem) = match kept {
        Some(SetupAnswer::Done(done)) => (Some(done), None),
        Some(SetupAnswer::Mistake(mistake)) => (None, Some(mistake.problem)),
        Some(SetupAnswer::Words) | None => (None, None),
    };
    let range = range_named(asked.range.as_deref());
    let node = visit.panel.node();
    let frame = visit.frame(Section::Finance).await?;
    let figures = node.ask(endpoint::Figures).await?;
    let channels = node.ask(endpoint::Channels).await?;
    let names = PeerNames::of(node).await?;
    let charts = Charts::of(node, range, CallsOf::All).await?;
    let balance = &frame.status.balance;
    let has = balance.usdc.map_or(Usdc::ZERO, |usdc| usdc.0).saturating_add(balance.in_channels.0);
    let address = frame.status.address.to_string();
    let page = FinanceTemplate {
        locked: show::usdc(balance.in_channels.0),
        unclaimed: show::usdc(balance.unclaimed.0),
        spent_today: show::usdc(frame.status.spent_today.0),
        runway: runway::words(has, &figures.days),
        qr: qr_code(&address, "The wallet's address as a QR code"),
        address,
        ranges: Ranges::new(ADDRESS, "days", range),
        money: charts.money(),
        channels_hidden: channels.len().saturating_sub(CHANNELS_SHOWN),
        channels: sorted(channels).iter().take(CHANNELS_SHOWN).map(|one| row(one, &names)).collect(),
        done,
        problem,
        frame,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

/// Open ones first, the largest deposits on top.
fn sorted(mut channels: Vec<Channel>) -> Vec<Channel> {
    channels.sort_by_key(|channel| (channel.state.is_closed(), std::cmp::Reverse(channel.deposited)));
    channels
}

fn row(channel: &Channel, names: &PeerNames) -> ChannelRow {
    let id = channel.id.to_string();
    let is_payer = channel.role == ChannelRole::Payer;
    ChannelRow {
        short: format!("{}…", id.chars().take(10).collect::<String>()),
        id,
        role: if is_payer { "I buy from" } else { "I sell to" },
        peer: channel.peer.to_string(),
        peer_short: names.short(channel.peer.0),
        state: crate::texts::capital(&channel.state_in_words()),
        deposited: show::usdc(channel.deposited.0),
        spent: show::usdc(channel.spent.0),
        claimed: show::usdc(channel.claimed.0),
        left: show::usdc(channel.deposited.0.saturating_sub(channel.spent.0)),
        can_close: !channel.state.is_closed(),
    }
}

/// Collects what was earned.
pub(super) async fn settle(State(panel): State<ConsoleState>, form: Form<NoFields>) -> Page {
    // A browser that goes away must not end a claim half-way.
    let node = panel.node().clone();
    let claiming = tokio::spawn(async move { node.ask(endpoint::Settle).await });
    let outcome = claiming
        .await
        .map_err(|_| Failure::broken("The claim failed unexpectedly. Finance shows what was claimed."))?;
    Ok(answered(&form.visit, mendable(outcome)?.map(|settled| claimed(&settled))))
}

/// The outcome of a claim, in words.
fn claimed(settled: &Settled) -> String {
    if settled.transactions.is_empty() {
        return "There is nothing to claim: all earnings are in the wallet.".to_owned();
    }
    let channels = match settled.channels {
        1 => "1 channel".to_owned(),
        channels => format!("{channels} channels"),
    };
    let mut done =
        format!("Claimed {} USDC from {channels}. It is in the wallet.", show::usdc(settled.claimed.0));
    if let Some(first) = settled.refused.first() {
        let number = settled.refused.len();
        done.push_str(&format!(" The contract refused {number} more: {}.", first.reason));
    }
    done
}

/// Leads to Finance, which says what came of a form: loading that again sends nothing.
fn answered(visit: &Visit, told: Result<String, String>) -> Response {
    let answer = match told {
        Ok(done) => SetupAnswer::Done(done),
        Err(problem) => SetupAnswer::Mistake(Mistake::new(problem)),
    };
    lead_to(&visit.panel, ADDRESS, Some(visit.session.id()), answer)
}

#[derive(Template)]
#[template(path = "finance-close.html")]
struct ClosePage {
    frame: Frame,
    channel: ChannelRow,
    is_payer: bool,
}

pub(super) async fn close_page(visit: Visit, Path(text): Path<String>) -> Page {
    let id: ChannelId = text.parse().map_err(|_| Failure::not_found())?;
    let channels = visit.panel.node().ask(endpoint::Channels).await?;
    let channel = channels.iter().find(|channel| channel.id.0 == id).ok_or_else(Failure::not_found)?;
    if channel.state.is_closed() {
        return Ok(Redirect::to(ADDRESS).into_response());
    }
    let frame = visit.frame(Section::Finance).await?;
    let is_payer = channel.role == ChannelRole::Payer;
    let names = PeerNames::of(visit.panel.node()).await?;
    Ok(Rendered(&ClosePage { frame, channel: row(channel, &names), is_payer }).into_response())
}

pub(super) async fn close(Path(text): Path<String>, form: Form<NoFields>) -> Page {
    let id: ChannelId = text.parse().map_err(|_| Failure::not_found())?;
    let _ = form.reauthenticated()?;
    let at = endpoint::CloseChannel.of(id);
    let node = form.visit.panel.node().clone();
    let closing = tokio::spawn(async move { node.ask(at).await });
    let outcome = closing
        .await
        .map_err(|_| Failure::broken("Closing the channel failed unexpectedly. Finance shows its state."))?;
    let told = mendable(outcome)?.map(|channel| {
        let state = crate::texts::sentence(&channel.state_in_words());
        format!("{state} This is the channel with {}.", channel.peer)
    });
    Ok(answered(&form.visit, told))
}
