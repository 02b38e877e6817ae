//! Limits of spending: the switch that stops everything, and the caps.

use askama::Template;
use axum::response::{IntoResponse, Redirect};
use farthing_control::endpoint;
use farthing_control::types::{
    AcceptPrice, FlagRequest, FlagRule, FlaggedService, LimitsRequest, StoppedBy, Text,
};
use farthing_os::clock;
use farthing_values::Usdc;
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    page::answer,
    pages::register::{mendable, price, told},
    show,
    texts::Done,
};

const ADDRESS: &str = "/panel/finance/limits";

#[derive(Template)]
#[template(path = "finance-limits.html")]
struct LimitsTemplate {
    frame: Frame,
    /// Since when, and whether it is lifted here.
    stopped: Option<StopShown>,
    spent_today: String,
    left_today: String,
    at_rest: String,
    /// The part of it that came back, if there is any.
    at_rest_returned: Option<String>,
    at_rest_max: String,
    at_rest_per_owner: String,
    /// Name of the field, words, hint, as it is typed, of the configuration.
    limits: [Limit; 3],
    /// True if the configuration stops flagged services.
    stops_flagged: bool,
    flagged: Vec<Flagged>,
    problem: Option<String>,
}

struct StopShown {
    by_user: bool,
    since: String,
}

/// A service that is flagged, or of which the user said something.
struct Flagged {
    service: String,
    words: String,
    /// Value and words of each choice, and whether it holds.
    rules: [(&'static str, &'static str, bool); 3],
}

impl Flagged {
    fn new(one: &FlaggedService) -> Self {
        let rule = |value, words, rule| (value, words, one.own_rule == rule);
        Self {
            service: one.service.to_string(),
            words: one.flag.as_ref().map_or_else(
                || "It is not flagged now.".to_owned(),
                |flag| crate::texts::sentence(&show::visible(&flag.words)),
            ),
            rules: [
                rule("setting", "Follow the configuration", None),
                rule("warn", "Buy its calls", Some(FlagRule::Warn)),
                rule("stop", "Refuse its calls, except for an occasional trial", Some(FlagRule::Stop)),
            ],
        }
    }
}

struct Limit {
    name: &'static str,
    words: &'static str,
    hint: &'static str,
    value: String,
    configured: String,
}

pub(in crate::pages) async fn show(visit: Visit) -> Page {
    page(&visit, None, None).await
}

async fn page(visit: &Visit, typed: Option<&LimitFields>, problem: Option<String>) -> Page {
    let state = visit.panel.node().ask(endpoint::Spending).await?;
    let flagged = visit.panel.node().ask(endpoint::FlaggedServices).await?;
    let (now, configured) = (state.limits, state.configured);
    let limit = |name, words, hint, now: Text<Usdc>, configured: Text<Usdc>, typed: Option<&String>| Limit {
        name,
        words,
        hint,
        value: typed.cloned().unwrap_or_else(|| now.to_string()),
        configured: configured.to_string(),
    };
    let page = LimitsTemplate {
        frame: visit.frame(Section::Finance).await?,
        stopped: state.stopped.map(|by| StopShown {
            by_user: by == StoppedBy::User,
            since: state
                .stopped_secs
                .map_or_else(String::new, |secs| format!(", {}", show::ago(secs, clock::now_secs()))),
        }),
        spent_today: show::usdc(state.spent_today.0),
        left_today: show::usdc(now.per_day.0.saturating_sub(state.spent_today.0)),
        at_rest: show::usdc(state.at_rest.now.0),
        at_rest_returned: Some(state.at_rest.returned.0)
            .filter(|returned| !returned.is_zero())
            .map(show::usdc),
        at_rest_max: show::usdc(state.at_rest.max.0),
        at_rest_per_owner: show::usdc(state.at_rest.per_owner.0),
        limits: [
            limit(
                "price_max",
                "Maximum price per call",
                "Your node refuses a call that costs more, and you pay nothing.",
                now.price_max,
                configured.price_max,
                typed.map(|typed| &typed.price_max),
            ),
            limit(
                "per_day",
                "Maximum per day",
                "For all calls together. Days end at midnight UTC.",
                now.per_day,
                configured.per_day,
                typed.map(|typed| &typed.per_day),
            ),
            limit(
                "per_secret_day",
                "Maximum per day for each secret",
                "Applies to every secret without its own limit.",
                now.per_secret_day,
                configured.per_secret_day,
                typed.map(|typed| &typed.per_secret_day),
            ),
        ],
        stops_flagged: flagged.rule == FlagRule::Stop,
        flagged: flagged.services.iter().map(Flagged::new).collect(),
        problem,
    };
    Ok(answer(&page, page.problem.as_ref()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct LimitFields {
    price_max: String,
    per_day: String,
    per_secret_day: String,
    reset: Option<String>,
}

pub(in crate::pages) async fn set(form: Form<LimitFields>) -> Page {
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    let outcome = told(visit.panel.node(), endpoint::LimitSpending, request(&fields)).await?;
    let done = if fields.reset.is_some() { Done::LimitsReset } else { Done::Limits };
    match outcome {
        Ok(_) => Ok(done.at(ADDRESS).into_response()),
        Err(problem) => page(&visit, Some(&fields), Some(problem)).await,
    }
}

fn request(fields: &LimitFields) -> Result<LimitsRequest, String> {
    if fields.reset.is_some() {
        return Ok(LimitsRequest { reset: true, ..LimitsRequest::default() });
    }
    let read =
        |field, text: &str| price(field, text).map(|usdc| Some(usdc.into())).map_err(|wrong| wrong.words());
    Ok(LimitsRequest {
        price_max: read("Maximum price per call", &fields.price_max)?,
        per_day: read("Maximum per day", &fields.per_day)?,
        per_secret_day: read("Maximum per day for each secret", &fields.per_secret_day)?,
        reset: false,
    })
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct AcceptFields {
    service: String,
    up_to: String,
}

/// Lets all calls of a service cost what its owner asks for now.
pub(in crate::pages) async fn accept(form: Form<AcceptFields>) -> Page {
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    let outcome = told(visit.panel.node(), endpoint::AcceptPrice, accepted(&fields)).await?;
    answered(&visit, outcome, Done::PriceAccepted).await
}

fn accepted(fields: &AcceptFields) -> Result<AcceptPrice, String> {
    let service = fields
        .service
        .trim()
        .parse()
        .map_err(|_| "The service must be a UUID. Copy it from the catalog.".to_owned())?;
    let up_to = price("New maximum price per call", &fields.up_to).map_err(|wrong| wrong.words())?;
    Ok(AcceptPrice { service: Text(service), up_to: up_to.into() })
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct RuleChosen {
    service: String,
    rule: String,
}

/// Says what becomes of calls to one service while it is flagged.
pub(in crate::pages) async fn flag(form: Form<RuleChosen>) -> Page {
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    let outcome = told(visit.panel.node(), endpoint::RuleFlagged, rule_chosen(&fields)).await?;
    answered(&visit, outcome, Done::Flagged).await
}

fn rule_chosen(fields: &RuleChosen) -> Result<FlagRequest, String> {
    let service = fields.service.trim().parse().map_err(|_| "The service must be a UUID.".to_owned())?;
    let rule = match fields.rule.as_str() {
        "setting" => None,
        rule => Some(rule.parse().map_err(|_| "Choose what happens to its calls.".to_owned())?),
    };
    Ok(FlagRequest { service: Text(service), rule })
}

/// At once, without a password: stopping harms nobody.
pub(in crate::pages) async fn stop(form: Form<NoFields>) -> Result<Redirect, Failure> {
    form.visit.panel.node().ask(endpoint::StopSpending).await?;
    Ok(Redirect::to(ADDRESS))
}

pub(in crate::pages) async fn resume(form: Form<NoFields>) -> Page {
    let _ = form.reauthenticated()?;
    let outcome = mendable(form.visit.panel.node().ask(endpoint::ResumeSpending).await)?;
    answered(&form.visit, outcome, Done::Spending).await
}

async fn answered<T>(visit: &Visit, outcome: Result<T, String>, done: Done) -> Page {
    match outcome {
        Ok(_) => Ok(done.at(ADDRESS).into_response()),
        Err(problem) => page(visit, None, Some(problem)).await,
    }
}
