//! Commands about the log of calls: which calls are asked for, and one of them.

use axum::{
    Json,
    extract::{Path, Query, State},
    http::StatusCode,
};
use bytes::Bytes;
use farthing_control::types::{CallShown, CallsPage, CancelledCall};
use farthing_node::{
    handles::Handles,
    history::log::{CallKey, LogFilter, LogPosition},
};
use serde::Deserialize;

use super::{
    Failed, Reply,
    history::{end_of, given, limit_of, refused, time_of, wrong},
};

/// The calls that are asked for; all unless named.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CallsQuery {
    side: Option<String>,
    service: Option<String>,
    outcome: Option<String>,
    secret: Option<String>,
    call_id: Option<String>,
    from: Option<String>,
    to: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
}

answer!(Calls: calls);
async fn calls(State(node): State<Handles>, Query(asked): Query<CallsQuery>) -> Reply<CallsPage> {
    let limit = limit_of(asked.limit.as_deref())?;
    Ok(Json(node.history().calls(filter_of(&asked)?, limit).await?))
}

fn filter_of(asked: &CallsQuery) -> Result<LogFilter, Failed> {
    let from_secs = given(asked.from.as_deref()).map(|text| time_of("from", text)).transpose()?.unwrap_or(0);
    let until_secs = given(asked.to.as_deref()).map(|text| end_of("to", text)).transpose()?;
    if until_secs.is_some_and(|until_secs| until_secs <= from_secs) {
        return Err(refused("`to` is before `from`"));
    }
    let before = match given(asked.cursor.as_deref()) {
        Some(cursor) => {
            cursor.parse().map_err(|()| refused("`cursor` must be the `next` of the previous page"))?
        }
        None => LogPosition::start_of(until_secs.unwrap_or(u64::MAX)),
    };
    Ok(LogFilter {
        side: read("side", asked.side.as_deref())?,
        outcome: read("outcome", asked.outcome.as_deref())?,
        service: read("service", asked.service.as_deref())?,
        secret: given(asked.secret.as_deref()).map(str::to_owned),
        call_id: read("call_id", asked.call_id.as_deref())?,
        from_secs,
        before,
    })
}

/// A parameter that may be missing, as what it is to be.
fn read<T: std::str::FromStr<Err: std::fmt::Display>>(
    name: &str,
    text: Option<&str>,
) -> Result<Option<T>, Failed> {
    given(text).map(|text| text.parse::<T>().map_err(|error| wrong(name, &error))).transpose()
}

/// The wish to have the receipt verified.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OneCallQuery {
    #[serde(default)]
    verify: bool,
}

answer!(ShowCall: call);
async fn call(
    State(node): State<Handles>,
    Path(key): Path<String>,
    Query(asked): Query<OneCallQuery>,
) -> Reply<CallShown> {
    let key = key.parse::<CallKey>().map_err(|error| wrong("key", &error))?;
    let found = node.history().call(key, node.call_reader(asked.verify)).await?;
    found.map(Json).ok_or_else(|| {
        let next =
            "`farthing calls` lists them. Calls are kept for a year, refused calls while there is room.";
        Failed::new(StatusCode::NOT_FOUND, &format!("the log has no call {key}"), next)
    })
}

/// A request that says nothing beside its path.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoMembers {}

answer!(CancelCall: cancel);
async fn cancel(State(node): State<Handles>, Path(key): Path<String>, body: Bytes) -> Reply<CancelledCall> {
    if !body.is_empty() {
        serde_json::from_slice::<NoMembers>(&body).map_err(|error| wrong("body", &error))?;
    }
    let key = key.parse::<CallKey>().map_err(|error| wrong("key", &error))?;
    let cancelled = match key.bought() {
        Some(call_id) => node.consumer.cancel(call_id).await.map(|stage| (call_id, stage)),
        None => None,
    };
    let (call_id, stage) = cancelled.ok_or_else(|| {
        let detail = format!("no program of this node waits for a call {key}");
        Failed::new(StatusCode::NOT_FOUND, &detail, &*format!("`farthing calls {key}` shows how it ended."))
    })?;
    Ok(Json(CancelledCall { key: CallKey::Bought(call_id).to_string(), call_id: call_id.into(), stage }))
}
