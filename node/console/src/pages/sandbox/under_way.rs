//! A call that is under way: begun once, kept with the session, and let go by whoever waits no more.
//!
//! In order: the button begins it ([`buy`]) and waits a moment; the page shows that it is under way until its answer is kept;
//! *Stop waiting* ([`cancel`]) stops it, from there or from the call's page in the log. The node goes on either way: a call
//! that was sent may be paid, so its end is always learned, and stands on the same page in the end.

use std::time::Instant;

use axum::{
    extract::{Path, State},
    response::{IntoResponse, Redirect},
};
use bytes::Bytes;
use farthing_control::{
    ControlError, RawAnswer, endpoint,
    types::{CallOutcome, HEADER_CHARGED, HEADER_RECEIPT, HEADER_TIMING, Problem, ProblemName, Text},
};
use farthing_os::clock;
use farthing_values::CallId;
use http::StatusCode;
use serde::Deserialize;
use tokio::time::timeout;

use crate::{
    ConsoleState,
    access::SessionId,
    failure::Page,
    form::HarmlessForm,
    history::{Answer, AskedParty, CallStage, Exchange},
    outcome::{self, ShownOutcome},
    page::SOON,
    pages::service::service_id,
};

use super::{address, answer::read_timing, page_of};

/// A call that is under way, as the template shows it.
pub(in crate::pages) struct ShownUnderWay {
    pub(in crate::pages) call_id: String,
    pub(in crate::pages) elapsed_secs: u64,
    /// Seconds that an answer may take, where the owner says so.
    pub(in crate::pages) at_most_secs: Option<u64>,
    pub(in crate::pages) is_let_go: bool,
    /// The event after which a call is charged, in words.
    pub(in crate::pages) charged_if: &'static str,
    pub(in crate::pages) outcome: ShownOutcome,
}

impl ShownUnderWay {
    /// The call of an exchange; `None` when it has ended.
    pub(in crate::pages) fn of(exchange: &Exchange, at_most_secs: Option<u64>) -> Option<Self> {
        (exchange.stage != CallStage::Ended).then(|| Self {
            call_id: exchange.call_id.to_string(),
            elapsed_secs: exchange.began.elapsed().as_secs(),
            at_most_secs,
            is_let_go: exchange.stage == CallStage::LetGo,
            charged_if: match exchange.asked {
                AskedParty::Owner => "the owner answered",
                AskedParty::X402Server => "the server took the payment",
            },
            outcome: shown(exchange.stage),
        })
    }
}

/// Tells how far a call is that has no end yet.
pub(super) const fn shown(stage: CallStage) -> ShownOutcome {
    match stage {
        CallStage::LetGo => outcome::of(CallOutcome::Undecided),
        CallStage::UnderWay | CallStage::Ended => outcome::of(CallOutcome::UnderWay),
    }
}

/// Buys a call, unless it was begun before, and waits a moment for its end. What comes back is kept also when nobody waits any
/// more.
pub(super) async fn buy(panel: &ConsoleState, session: SessionId, exchange: Exchange, request: Vec<u8>) {
    if !panel.0.history.begin(session, exchange.clone()) {
        return;
    }
    let (panel, asked) = (panel.clone(), tokio::spawn(ask(panel.clone(), request)));
    let bought = tokio::spawn(async move {
        let answer = asked.await.unwrap_or_else(|_| not_told(interrupted()));
        panel.0.history.keep(session, Exchange { stage: CallStage::Ended, answer, ..exchange });
        panel.changed();
    });
    // What takes longer is waited for by the page.
    let _ = timeout(SOON, bought).await;
}

async fn ask(panel: ConsoleState, request: Vec<u8>) -> Answer {
    let began = Instant::now();
    let answered = panel.node().exchange(endpoint::Call, Bytes::from(request)).await;
    let answer = answered.map_or_else(|error| not_told(unreadable(&error)), read);
    Answer { took_us: clock::micros(began.elapsed()), ..answer }
}

/// The node's answer, taken apart.
fn read(answer: RawAnswer) -> Answer {
    let text = |name: &str| {
        let value = answer.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let own = [HEADER_CHARGED, HEADER_RECEIPT, HEADER_TIMING];
    let headers = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
    Answer {
        status: answer.status.as_u16(),
        media_type: text("content-type"),
        headers: headers
            .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
            .collect(),
        problem: answer.is_problem().then(|| answer.problem()),
        charged: text(HEADER_CHARGED),
        receipt: text(HEADER_RECEIPT),
        timing: read_timing(&text(HEADER_TIMING)),
        body: answer.body,
        ..Answer::default()
    }
}

fn not_told(problem: Problem) -> Answer {
    Answer { problem: Some(problem), ..Answer::default() }
}

fn unreadable(error: &ControlError) -> Problem {
    undecided("The node's answer cannot be read", error.to_string())
}

fn interrupted() -> Problem {
    undecided("The call was interrupted", "The console failed while it waited for the answer.".to_owned())
}

fn undecided(title: &str, detail: String) -> Problem {
    let next = "Activity shows how the call ended.";
    let (kind, title) = (ProblemName::Undecided.kind(), title.to_owned());
    Problem { kind, title, ..Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR, detail, next) }
}

#[derive(Deserialize)]
pub(in crate::pages) struct CancelFields {
    call: Text<CallId>,
}

/// Stops waiting for a call. It changes nothing of the node, so no key is asked for.
pub(in crate::pages) async fn cancel(
    State(panel): State<ConsoleState>,
    Path(id): Path<String>,
    form: HarmlessForm<CancelFields>,
) -> Page {
    let (id, call_id) = (service_id(&id)?, form.fields.call.0);
    let (history, session) = (&panel.0.history, form.visit.session.id());
    history.let_go(session, call_id);
    panel.changed();
    let kept = history.of(session, id).into_iter().find(|kept| kept.exchange.call_id == call_id);
    let page = kept.map_or_else(|| address(id), |kept| page_of(&kept.exchange));
    Ok(Redirect::to(&format!("{page}?call={call_id}#answer")).into_response())
}
