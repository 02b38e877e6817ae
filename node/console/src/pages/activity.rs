//! Activity: the newest calls, bought and served, with what they took and cost.

use askama::Template;
use axum::{extract::Query, response::IntoResponse};
use farthing_control::{
    endpoint,
    types::{Activity, BoughtCall, ServedCall},
};
use farthing_os::clock;
use serde::Deserialize;

use crate::{
    failure::Page,
    frame::{Frame, Section, Visit},
    page::Rendered,
    show,
};

/// Some screens; the rest is in the export.
const LISTED: usize = 50;

#[derive(Template)]
#[template(path = "activity.html")]
struct ActivityTemplate {
    frame: Frame,
    /// `bought`, `served` or nothing for both.
    side: String,
    rows: Vec<ActivityRow>,
}

/// One call, as tables show it.
pub(super) struct ActivityRow {
    pub(super) bought: bool,
    pub(super) name: String,
    pub(super) service: String,
    pub(super) operation: String,
    /// The other side's wallet, shortened.
    pub(super) peer: String,
    pub(super) time_secs: u64,
    pub(super) when: String,
    pub(super) at: String,
    /// `200`, or why there was none.
    pub(super) outcome: String,
    /// The class of its colour: answered, answered with "not so", or failed.
    pub(super) tone: &'static str,
    pub(super) charged: String,
    /// Whole call; empty for served ones, whose time the buyer measures.
    pub(super) took: String,
    /// Network, owner and upstream, for a closer look.
    pub(super) parts: String,
}

#[derive(Deserialize)]
pub(super) struct ActivityParams {
    #[serde(default)]
    side: String,
}

pub(super) async fn show(visit: Visit, Query(asked): Query<ActivityParams>) -> Page {
    let frame = visit.frame(Section::Activity).await?;
    let mut activity = visit.panel.node().ask(endpoint::Activity.with("limit", LISTED)).await?;
    match asked.side.as_str() {
        "bought" => activity.served.clear(),
        "served" => activity.bought.clear(),
        _ => {}
    }
    let rows = rows(&activity, LISTED, clock::now_secs());
    Ok(Rendered(&ActivityTemplate { frame, side: asked.side, rows }).into_response())
}

/// Both sides in one list, the newest first.
pub(super) fn rows(activity: &Activity, limit: usize, now_secs: u64) -> Vec<ActivityRow> {
    let bought = activity.bought.iter().map(|call| bought(call, now_secs));
    let served = activity.served.iter().map(|call| served(call, now_secs));
    let mut rows: Vec<ActivityRow> = bought.chain(served).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.time_secs));
    rows.truncate(limit);
    rows
}

/// The same without where the time of each went.
pub(super) fn short_rows(activity: &Activity, limit: usize, now_secs: u64) -> Vec<ActivityRow> {
    let mut rows = rows(activity, limit, now_secs);
    rows.iter_mut().for_each(|row| row.parts.clear());
    rows
}

fn bought(call: &BoughtCall, now_secs: u64) -> ActivityRow {
    let (outcome, tone) = match (call.status, &call.reason) {
        (Some(status), _) => (status.to_string(), tone(status)),
        (None, Some(reason)) => (show::visible(reason), "bad"),
        (None, None) => ("no answer".to_owned(), "bad"),
    };
    let network_us = call.total_us.saturating_sub(call.owner_us);
    let parts = format!(
        "network {} · owner's node {} · its server {}",
        show::duration(network_us),
        show::duration(call.owner_us.saturating_sub(call.upstream_us)),
        show::duration(call.upstream_us)
    );
    let answered = call.status.is_some();
    ActivityRow {
        bought: true,
        name: named(&call.name),
        service: call.service.to_string(),
        operation: show::visible(&call.operation),
        peer: show::short(call.owner.0),
        time_secs: call.time_secs,
        when: show::ago(call.time_secs, now_secs),
        at: show::utc(call.time_secs),
        outcome,
        tone,
        charged: show::usdc(call.charged.0),
        took: if answered { show::duration(call.total_us) } else { String::new() },
        parts: if answered { parts } else { String::new() },
    }
}

fn served(call: &ServedCall, now_secs: u64) -> ActivityRow {
    ActivityRow {
        bought: false,
        name: named(&call.name),
        service: call.service.to_string(),
        operation: show::visible(&call.operation),
        peer: show::short(call.payer.0),
        time_secs: call.time_secs,
        when: show::ago(call.time_secs, now_secs),
        at: show::utc(call.time_secs),
        outcome: call.status.to_string(),
        tone: tone(call.status),
        charged: show::usdc(call.charged.0),
        took: String::new(),
        parts: String::new(),
    }
}

/// A service that says "there is none" has answered, and yet it is no success.
const fn tone(status: u16) -> &'static str {
    match status {
        ..400 => "good",
        400..500 => "neutral",
        500.. => "bad",
    }
}

pub(super) fn named(name: &str) -> String {
    if name.is_empty() { "A service no longer known".to_owned() } else { show::visible(name) }
}
