//! Calls, one by one and in figures.
//!
//! What a day came to the ledger has added up. How long calls take is made of the newest ones, apart from whoever asks
//! and at most every few seconds: a page shows what was there last and never waits for the count.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use axum::{
    Json,
    extract::{Query, State},
};
use farthing_control::types::{Activity, BoughtCall, CallOutcome, DayFigures, Figures, Measured};
use farthing_ledger::{
    CallFigures, Latencies, Ledger, LedgerError, Promise, Purchase, Side, Subject, day_of,
};
use farthing_node::{
    handles::Handles,
    history::{ServiceNames, outcome_of_purchase, served_call, status_and_reason},
};
use farthing_os::clock;
use farthing_protocol::{CallId, ServiceId, Usdc};
use farthing_shared::blocking::run_blocking;
use parking_lot::Mutex;
use serde::Deserialize;

use super::Reply;

/// More does not help anybody who looks; everything is in the export.
const LISTED_MAX: usize = 500;
const LISTED_DEFAULT: usize = 50;
/// Read for the times: some 20 ms of one core.
const COUNTED_MAX: usize = 5_000;
const COUNTED_EVERY: Duration = Duration::from_secs(3);
const DAYS: u32 = 14;
const DAY_SECS: u64 = 86_400;

#[derive(Deserialize)]
pub(super) struct Listed {
    limit: Option<usize>,
}

answer!(Activity: activity);
async fn activity(State(node): State<Handles>, Query(listed): Query<Listed>) -> Reply<Activity> {
    let limit = listed.limit.unwrap_or(LISTED_DEFAULT).min(LISTED_MAX);
    let (purchases, served) = (node.ledger.purchases(limit)?, node.ledger.served_calls(limit)?);
    let names = node.history().names();
    let open = undecided(&node.ledger, &node.consumer.undecided_calls())?;
    let open = open.iter().take(limit).map(|promise| promised(promise, &names));
    Ok(Json(Activity {
        bought: open.chain(purchases.iter().map(|purchase| bought(purchase, &names))).collect(),
        served: served.iter().map(|row| served_call(row, &names)).collect(),
    }))
}

/// Promises of the calls `of` these ids, the newest first. Others are under way: somebody waits for them.
fn undecided(ledger: &Ledger, of: &HashSet<CallId>) -> Result<Vec<Promise>, LedgerError> {
    if of.is_empty() {
        return Ok(Vec::new());
    }
    let mut promises = ledger.unresolved()?;
    promises.retain(|promise| of.contains(&promise.request.call_id));
    promises.sort_by_key(|promise| std::cmp::Reverse(promise.time_secs));
    Ok(promises)
}

fn promised(promise: &Promise, names: &ServiceNames) -> BoughtCall {
    let request = &promise.request;
    BoughtCall {
        call_id: request.call_id.into(),
        service: request.service.into(),
        name: names.of(request.service),
        owner: promise.owner.into(),
        operation: format!("{} {}", request.method, request.path),
        time_secs: promise.time_secs,
        outcome: CallOutcome::Undecided,
        status: None,
        reason: None,
        charged: Usdc::ZERO.into(),
        total_us: 0,
        owner_us: 0,
        upstream_us: 0,
    }
}

fn bought(purchase: &Purchase, names: &ServiceNames) -> BoughtCall {
    let timing = purchase.end.timing();
    BoughtCall {
        call_id: purchase.call_id.into(),
        service: purchase.service.into(),
        name: names.of(purchase.service),
        owner: purchase.owner.into(),
        operation: format!("{} {}", purchase.method, purchase.path),
        time_secs: purchase.promised_secs,
        outcome: outcome_of_purchase(&purchase.end),
        status: purchase.end.status(),
        reason: status_and_reason(&purchase.end).1,
        charged: purchase.charged.into(),
        total_us: timing.total_us,
        owner_us: timing.owner_us,
        upstream_us: timing.upstream_us,
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct CountedFigures(Arc<Mutex<LastCount>>);

#[derive(Debug, Default)]
struct LastCount {
    figures: Option<Figures>,
    at: Option<Instant>,
}

answer!(Figures: figures);
async fn figures(State(node): State<Handles>, State(counted): State<CountedFigures>) -> Reply<Figures> {
    match counted.look() {
        (Some(figures), false) => Ok(Json(figures)),
        (Some(figures), true) => {
            tokio::spawn(async move {
                if let Err(error) = counted.count(node.ledger.clone()).await {
                    tracing::warn!(%error, "the calls could not be counted");
                }
            });
            Ok(Json(figures))
        }
        (None, _) => Ok(Json(counted.count(node.ledger.clone()).await?)),
    }
}

impl CountedFigures {
    /// Returns what is there, and whether the caller is the one who should count anew.
    fn look(&self) -> (Option<Figures>, bool) {
        let mut state = self.0.lock();
        let is_old = state.at.is_none_or(|at| at.elapsed() >= COUNTED_EVERY);
        if is_old {
            state.at = Some(Instant::now());
        }
        (state.figures.clone(), is_old)
    }

    async fn count(&self, ledger: Ledger) -> Result<Figures, LedgerError> {
        let figures = run_blocking(move || count(&ledger, clock::now_secs())).await?;
        self.0.lock().figures = Some(figures.clone());
        Ok(figures)
    }
}

fn count(ledger: &Ledger, now_secs: u64) -> Result<Figures, LedgerError> {
    let today = day_of(now_secs);
    let first = today.saturating_sub(DAYS - 1);
    let of_days: HashMap<u32, _> = ledger.day_figures(first, today)?.into_iter().collect();
    let of_day = |day| of_days.get(&day).copied().unwrap_or_default();
    let days = (first..=today).map(|day| {
        let figures = of_day(day);
        let (spent, earned) = (figures.spent.into(), figures.earned.into());
        DayFigures { day, bought: figures.bought, spent, served: figures.served, earned }
    });
    let purchases = ledger.purchases(COUNTED_MAX)?;
    Ok(Figures {
        days: days.collect(),
        bought_today: of_day(today).bought,
        served_today: of_day(today).served,
        median_us: bought_on(ledger, today)?.latencies.median_us(),
        measured: measured(&purchases),
    })
}

/// The calls bought since a day began, as a series counts them: a tile and a line of the same calls show the same.
fn bought_on(ledger: &Ledger, today: u32) -> Result<CallFigures, LedgerError> {
    let mut bought = CallFigures::default();
    let is_bought = |subject: &Subject| subject.side == Side::Payer;
    ledger.call_figures(u64::from(today) * DAY_SECS, is_bought, |_, _, figures| bought.add(&figures))?;
    Ok(bought)
}

fn measured(purchases: &[Purchase]) -> Vec<Measured> {
    let mut by_service: HashMap<ServiceId, (u64, Vec<u64>)> = HashMap::new();
    for purchase in purchases {
        let (calls, took) = by_service.entry(purchase.service).or_default();
        *calls += 1;
        took.extend(took_us(purchase));
    }
    let one = |(service, (calls, took)): (ServiceId, (u64, Vec<u64>))| Measured {
        service: service.into(),
        calls,
        answered: took.len() as u64,
        median_us: took.into_iter().collect::<Latencies>().median_us(),
    };
    by_service.into_iter().map(one).collect()
}

/// Returns how long an answer took; `None` when the service did not give one, or it was not measured.
fn took_us(purchase: &Purchase) -> Option<u64> {
    let is_answered = purchase.end.status().is_some_and(|status| status < 500);
    // Of an answer whose payment only the chain told, the time is not known.
    is_answered.then(|| purchase.end.timing().total_us).filter(|took_us| *took_us > 0)
}

#[cfg(test)]
mod tests {
    use farthing_ledger::{PurchaseEnd, Timing};
    use farthing_protocol::{
        Address, ChannelId, Outcome, Receipt, Signature,
        call::{ChargePolicy, Method},
    };

    use super::*;

    /// An answered call, whose status came with its receipt or did not.
    fn charged(status: u16, total_us: u64) -> Purchase {
        let receipt = Receipt {
            channel: ChannelId::NONE,
            call_id: CallId::from_bytes([1; 16]),
            request_hash: [0; 32],
            response_hash: [0; 32],
            outcome: Outcome::Answered.code(),
            charged: Usdc::ZERO,
            spent_total: Usdc::ZERO,
            time_secs: 1,
        };
        Purchase {
            call_id: receipt.call_id,
            service: ServiceId::from_bytes([7; 16]),
            owner: Address::ZERO,
            channel: ChannelId::NONE,
            secret: String::new(),
            method: Method::Get,
            path: "/ok".to_owned(),
            request_hash: [0; 32],
            price: Usdc::ZERO,
            charge_policy: ChargePolicy::Answered,
            charged: Usdc::ZERO,
            promised_secs: 1,
            closed_secs: 1,
            end: PurchaseEnd::Acknowledged {
                receipt: Box::new(receipt),
                signature: Signature::from_bytes([0; 65]),
                outcome: Outcome::Answered,
                status,
                timing: Timing { total_us, ..Timing::default() },
            },
        }
    }

    #[test]
    fn a_call_that_was_charged_late_counts_as_not_answered() {
        let figures = measured(&[charged(200, 9), charged(0, 0)]);
        let told: Vec<_> = figures.iter().map(|one| (one.calls, one.answered, one.median_us)).collect();
        assert_eq!(told, [(2, 1, Some(1_000))]);
    }
}
