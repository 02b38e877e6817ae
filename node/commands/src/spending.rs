//! Limits of what the node may spend: looked at, limited, stopped.

use axum::{Json, extract::State, http::StatusCode};
use farthing_control::types::{
    AcceptPrice, LimitsRequest, MoneyAtRest, SpendingLimits, SpendingState, StoppedBy,
};
use farthing_node::{
    consumer::{
        funding::Funding,
        rest::RestLimits,
        rules::{RulesError, SpendingStop, UserLimits},
        spending::SpendingCaps,
    },
    handles::Handles,
};

use super::{Failed, Reply};

fn state(node: &Handles) -> SpendingState {
    let rules = node.consumer.rules();
    let (stopped, stopped_secs) = match rules.stopped() {
        None => (None, None),
        Some(SpendingStop::ByConfiguration) => (Some(StoppedBy::Configuration), None),
        Some(SpendingStop::Since(secs)) => (Some(StoppedBy::User), Some(secs)),
    };
    SpendingState {
        stopped,
        stopped_secs,
        spent_today: node.consumer.spent_today().into(),
        limits: shown(rules.limits()),
        configured: shown(rules.configured()),
        confirm_above: node.config.spending.confirm_above.map(Into::into),
        at_rest: at_rest(&node.funding),
    }
}

fn at_rest(funding: &Funding) -> MoneyAtRest {
    let RestLimits { per_owner, in_all } = funding.at_rest().limits();
    let resting = funding.at_rest().in_all();
    MoneyAtRest {
        now: resting.total().into(),
        returned: resting.returned.into(),
        max: in_all.into(),
        per_owner: per_owner.into(),
        close_delay_max_secs: funding.bounds().close_delay_max_secs,
    }
}

fn shown(limits: SpendingCaps) -> SpendingLimits {
    SpendingLimits {
        price_max: limits.price_max.into(),
        per_day: limits.per_day.into(),
        per_secret_day: limits.per_secret_day.into(),
    }
}

answer!(Spending: show);
async fn show(State(node): State<Handles>) -> Json<SpendingState> {
    Json(state(&node))
}

answer!(StopSpending: stop);
async fn stop(State(node): State<Handles>) -> Reply<SpendingState> {
    node.consumer.rules().stop().await?;
    Ok(Json(state(&node)))
}

answer!(ResumeSpending: resume);
async fn resume(State(node): State<Handles>) -> Reply<SpendingState> {
    node.consumer.rules().resume().await?;
    Ok(Json(state(&node)))
}

answer!(LimitSpending: limit);
async fn limit(State(node): State<Handles>, Json(request): Json<LimitsRequest>) -> Reply<SpendingState> {
    let LimitsRequest { price_max, per_day, per_secret_day, reset } = request;
    let named = UserLimits { price_max, per_day, per_secret_day };
    let edit = |earlier| named.or(if reset { UserLimits::default() } else { earlier });
    node.consumer.rules().set_limits(edit).await?;
    Ok(Json(state(&node)))
}

answer!(AcceptPrice: accept);
async fn accept(State(node): State<Handles>, Json(request): Json<AcceptPrice>) -> Reply<AcceptPrice> {
    node.consumer.prices().accept(request.service.0, request.up_to.0).await?;
    Ok(Json(request))
}

refused!(RulesError {
    RulesError::OffByConfiguration => CONFLICT,
    RulesError::StopNotStored(_) | RulesError::NotStored(_) => SERVICE_UNAVAILABLE,
});
