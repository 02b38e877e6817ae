//! Commands about the history: what is asked for, and the forms in which it is told.

use axum::{
    Json,
    extract::{Path, Query, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use farthing_control::types::{
    DayTotals, HistoryKind, HistoryPage, Series, SeriesRange, ServiceCalls, SettlementShown, TrafficSeries,
    history::{CSV_HEAD, NoneOf, csv_line},
};
use farthing_ledger::day_of;
use farthing_node::{
    handles::Handles,
    history::{HistoryFilter, HistoryPosition, STEP_MAX, SeriesOf},
};
use farthing_os::clock;
use farthing_protocol::{Address, ServiceId};
use farthing_serve::attachment;
use farthing_shared::blocking::run_blocking;
use serde::Deserialize;

use super::{Failed, Reply};

const LISTED_DEFAULT: usize = 50;
const DAYS_DEFAULT: u32 = 30;
/// Ten years: more is a mistake.
const DAYS_MAX: u32 = 3_660;

/// The part of the history that is asked for; everything unless named.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    kind: Option<String>,
    state: Option<String>,
    service: Option<String>,
    with: Option<String>,
    from: Option<String>,
    to: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

answer!(History: history);
async fn history(State(node): State<Handles>, Query(asked): Query<HistoryQuery>) -> Reply<HistoryPage> {
    let limit = limit_of(asked.limit.as_deref())?;
    Ok(Json(node.history().step(filter_of(&asked)?, limit).await?))
}

answer!(HistoryCsv: csv);
async fn csv(State(node): State<Handles>, Query(asked): Query<HistoryQuery>) -> Result<Response, Failed> {
    let entries = node.history().export(filter_of(&asked)?).await?;
    let lines = move || std::iter::once(CSV_HEAD.to_owned()).chain(entries.iter().map(csv_line)).collect();
    let text: String = run_blocking(lines).await;
    let headers = attachment("text/csv; charset=utf-8; header=present", "farthing-history.csv");
    Ok((headers, text).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DaysQuery {
    from: Option<String>,
    to: Option<String>,
}

answer!(HistoryJson: json);
async fn json(State(node): State<Handles>, Query(asked): Query<HistoryQuery>) -> Result<Response, Failed> {
    let entries = node.history().export(filter_of(&asked)?).await?;
    let name = "attachment; filename=\"farthing-history.json\"";
    Ok(([(header::CONTENT_DISPOSITION, name)], Json(entries)).into_response())
}

answer!(HistoryDays: days);
async fn days(State(node): State<Handles>, Query(asked): Query<DaysQuery>) -> Reply<Vec<DayTotals>> {
    let last = asked.to.as_deref().map(|to| time_of("to", to)).transpose()?;
    let last = day_of(last.unwrap_or_else(clock::now_secs));
    let first = asked.from.as_deref().map(|from| time_of("from", from)).transpose()?;
    let first = first.map_or(last.saturating_sub(DAYS_DEFAULT - 1), day_of);
    if last.saturating_sub(first) >= DAYS_MAX {
        return Err(refused("`from` and `to` are more than ten years apart"));
    }
    Ok(Json(node.history().days(first, last)?))
}

/// The time asked for, and whose calls.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeriesQuery {
    range: Option<String>,
    service: Option<String>,
    owner: Option<String>,
}

answer!(Series: series);
async fn series(State(node): State<Handles>, Query(asked): Query<SeriesQuery>) -> Reply<Series> {
    let range = range_of(asked.range.as_deref())?;
    let service = given(asked.service.as_deref()).map(str::parse::<ServiceId>).transpose();
    let owner = given(asked.owner.as_deref()).map(str::parse::<Address>).transpose();
    let asked = SeriesOf {
        service: service.map_err(|error| wrong("service", &error))?,
        owner: owner.map_err(|error| wrong("owner", &error))?,
    };
    Ok(Json(node.history().series(range, asked).await?))
}

/// The time asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RangeQuery {
    range: Option<String>,
}

answer!(ServedSeries: served);
async fn served(State(node): State<Handles>, Query(asked): Query<RangeQuery>) -> Reply<Vec<ServiceCalls>> {
    let range = range_of(asked.range.as_deref())?;
    Ok(Json(node.history().served_series(range).await?))
}

answer!(TrafficSeries: traffic);
async fn traffic(State(node): State<Handles>, Query(asked): Query<RangeQuery>) -> Reply<TrafficSeries> {
    let range = range_of(asked.range.as_deref())?;
    // Who looks wants to see what travelled in this minute.
    node.traffic.look(&node.network);
    Ok(Json(node.traffic.series(range)))
}

fn range_of(text: Option<&str>) -> Result<SeriesRange, Failed> {
    given(text).map_or(Ok(SeriesRange::Week), |text| text.parse().map_err(|e: NoneOf| wrong("range", &e)))
}

answer!(Settlement: settled);
async fn settled(State(node): State<Handles>, Path(id): Path<String>) -> Reply<SettlementShown> {
    let number = id.parse().map_err(|_| refused("the settlement's id in the address must be a number"))?;
    let found = node.history().settlement(number).await?;
    found.map(Json).ok_or_else(|| {
        let next = "`farthing wallet history --kind settlement` shows them.";
        Failed::new(StatusCode::NOT_FOUND, &format!("there is no settlement {number}"), next)
    })
}

pub(super) fn refused(detail: &str) -> Failed {
    Failed::new(StatusCode::BAD_REQUEST, &detail, "Correct the named value and try again.")
}

pub(super) fn limit_of(text: Option<&str>) -> Result<usize, Failed> {
    let Some(text) = text else { return Ok(LISTED_DEFAULT) };
    let limit = text.parse().ok().filter(|limit| (1..=STEP_MAX).contains(limit));
    limit.ok_or_else(|| refused("`limit` must be a number from 1 to 500"))
}

pub(super) fn wrong(field: &str, error: &dyn std::fmt::Display) -> Failed {
    refused(&format!("`{field}`: {error}"))
}

/// A parameter that is there and not empty.
pub(super) fn given(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

fn filter_of(asked: &HistoryQuery) -> Result<HistoryFilter, Failed> {
    let kinds = match asked.kind.as_deref().filter(|kinds| !kinds.is_empty()) {
        None => HistoryKind::ALL.into(),
        Some(kinds) => {
            let read: Result<_, _> = kinds.split(',').map(|kind| kind.trim().parse()).collect();
            read.map_err(|error: NoneOf| wrong("kind", &error))?
        }
    };
    let state =
        given(asked.state.as_deref()).map(|text| text.parse().map_err(|e: NoneOf| wrong("state", &e)));
    let service = given(asked.service.as_deref());
    let service = service.map(|text| text.parse::<ServiceId>().map_err(|e| wrong("service", &e)));
    let peer = given(asked.with.as_deref());
    let peer = peer.map(|text| text.parse::<Address>().map_err(|e| wrong("with", &e))).transpose()?;
    let from_secs = given(asked.from.as_deref()).map(|text| time_of("from", text)).transpose()?.unwrap_or(0);
    let until_secs = given(asked.to.as_deref()).map(|text| end_of("to", text)).transpose()?;
    if until_secs.is_some_and(|until_secs| until_secs <= from_secs) {
        return Err(refused("`to` is before `from`"));
    }
    let before = match (given(asked.cursor.as_deref()), until_secs) {
        (Some(cursor), _) => {
            cursor.parse().map_err(|()| refused("`cursor` must be the `next` of the previous page"))?
        }
        (None, Some(until_secs)) => HistoryPosition::start_of(until_secs),
        (None, None) => HistoryPosition::start_of(u64::MAX),
    };
    let (state, service) = (state.transpose()?, service.transpose()?);
    Ok(HistoryFilter { kinds, state, service, peer, from_secs, before })
}

/// The second a day begins, or a second as it is.
pub(super) fn time_of(field: &str, text: &str) -> Result<u64, Failed> {
    let secs = clock::start_of(text).or_else(|| text.parse().ok());
    secs.ok_or_else(|| {
        refused(&format!("`{field}` must be a day such as 2026-11-21 or a Unix time in seconds"))
    })
}

/// The second after a day, or a second as it is.
pub(super) fn end_of(field: &str, text: &str) -> Result<u64, Failed> {
    match clock::start_of(text) {
        Some(start) => Ok(start + 86_400),
        None => time_of(field, text),
    }
}
