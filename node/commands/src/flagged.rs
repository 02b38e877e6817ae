//! Services that are flagged, and what the user says of them.

use axum::{Json, extract::State};
use farthing_control::types::{FlagCause, FlagRequest, FlaggedService, FlaggedServices, ServiceFlag};
use farthing_node::{
    consumer::conduct::{self, Flag},
    handles::Handles,
};
use farthing_protocol::ServiceId;

use super::Reply;

pub(super) fn of(node: &Handles, service: ServiceId) -> Option<ServiceFlag> {
    shown(node.consumer.conduct().of(service)).flag
}

fn all(node: &Handles) -> FlaggedServices {
    let conduct = node.consumer.conduct();
    FlaggedServices {
        rule: conduct.settings().rule,
        services: conduct.all().into_iter().map(shown).collect(),
    }
}

fn shown(known: conduct::ServiceConduct) -> FlaggedService {
    let flag = known.flag.map(|flag| {
        let figures = flag.figures();
        ServiceFlag {
            cause: match &flag {
                Flag::Breaks(_) => FlagCause::Breaks,
                Flag::Fails(_) => FlagCause::Fails,
            },
            failed: count(figures.failed),
            broke: count(figures.broke),
            of: count(figures.of),
            since_secs: figures.since_secs,
            words: flag.to_string(),
            rule: known.rule,
        }
    });
    FlaggedService { service: known.service.into(), flag, own_rule: known.own_rule }
}

/// At most some dozens.
fn count(calls: usize) -> u32 {
    u32::try_from(calls).unwrap_or(u32::MAX)
}

answer!(FlaggedServices: list);
async fn list(State(node): State<Handles>) -> Json<FlaggedServices> {
    Json(all(&node))
}

answer!(RuleFlagged: set);
async fn set(State(node): State<Handles>, Json(request): Json<FlagRequest>) -> Reply<FlaggedServices> {
    node.consumer.conduct().set_rule(request.service.0, request.rule).await?;
    Ok(Json(all(&node)))
}
