//! Finance: what there is, what is bound, what was earned, and for how long it lasts.

use askama::Template;
use axum::{
    extract::{Path, Query, State},
    response::{IntoResponse, Redirect},
};
use farthing_control::{
    endpoint,
    types::{Channel, ChannelRole, SeriesRange},
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

pub(super) mod alerts;
pub(super) mod approvals;
pub(super) mod history;
pub(super) mod limits;
mod runway;
pub(super) mod send;

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
}

pub(super) async fn show(visit: Visit, Query(asked): Query<FinanceParams>) -> Page {
    page(&visit, range_named(asked.range.as_deref()), None, None).await
}

async fn page(visit: &Visit, range: SeriesRange, done: Option<String>, problem: Option<String>) -> Page {
    let node = visit.panel.node();
    let frame = visit.frame(Section::Finance).await?;
    let figures = node.ask(endpoint::Figures).await?;
    let channels = node.ask(endpoint::Channels).await?;
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
        ranges: Ranges::new("/panel/finance", "days", range),
        money: charts.money(),
        channels_hidden: channels.len().saturating_sub(CHANNELS_SHOWN),
        channels: sorted(channels).iter().take(CHANNELS_SHOWN).map(row).collect(),
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

fn row(channel: &Channel) -> ChannelRow {
    let id = channel.id.to_string();
    let is_payer = channel.role == ChannelRole::Payer;
    ChannelRow {
        short: format!("{}…", id.chars().take(10).collect::<String>()),
        id,
        role: if is_payer { "I buy from" } else { "I sell to" },
        peer: channel.peer.to_string(),
        peer_short: show::short(channel.peer.0),
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
    match super::register::mendable(outcome)? {
        Ok(settled) if settled.transactions.is_empty() => {
            let done = "There is nothing to claim: all earnings are in the wallet.".to_owned();
            page(&form.visit, range_named(None), Some(done), None).await
        }
        Ok(settled) => {
            let channels = match settled.channels {
                1 => "1 channel".to_owned(),
                channels => format!("{channels} channels"),
            };
            let mut done = format!(
                "Claimed {} USDC from {channels}. It is in the wallet.",
                show::usdc(settled.claimed.0)
            );
            if let Some(first) = settled.refused.first() {
                let number = settled.refused.len();
                done.push_str(&format!(" The contract refused {number} more: {}.", first.reason));
            }
            page(&form.visit, range_named(None), Some(done), None).await
        }
        Err(problem) => page(&form.visit, range_named(None), None, Some(problem)).await,
    }
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
        return Ok(Redirect::to("/panel/finance").into_response());
    }
    let frame = visit.frame(Section::Finance).await?;
    let is_payer = channel.role == ChannelRole::Payer;
    Ok(Rendered(&ClosePage { frame, channel: row(channel), is_payer }).into_response())
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
    match super::register::mendable(outcome)? {
        Ok(channel) => {
            let state = crate::texts::sentence(&channel.state_in_words());
            let done = format!("{state} This is the channel with {}.", channel.peer);
            page(&form.visit, range_named(None), Some(done), None).await
        }
        Err(problem) => page(&form.visit, range_named(None), None, Some(problem)).await,
    }
}
