//! Calls of agents that wait for the user: what each asks for, with all of its arguments, and the user's decision.

use std::fmt::Write as _;

use askama::Template;
use axum::response::IntoResponse;
use farthing_control::{
    endpoint,
    types::{Approval, ApprovalState},
};
use farthing_os::clock;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    failure::Page,
    form::Form,
    frame::{Frame, Section, Visit},
    page::answer,
    pages::register::mendable,
    show,
    texts::Done,
};

const ADDRESS: &str = "/panel/finance/approvals";
/// Arguments on one page, beside those of its first call: more calls are shown once these are decided.
const ARGUMENTS_BYTES_MAX: usize = 16 * 1024;

#[derive(Template)]
#[template(path = "finance-approvals.html")]
struct ApprovalsTemplate {
    frame: Frame,
    rows: Vec<ApprovalRow>,
    /// Calls that have no room on the page.
    hidden: usize,
    problem: Option<String>,
}

/// A call as the user reads it.
struct ApprovalRow {
    id: String,
    secret: String,
    service: String,
    service_name: String,
    operation: String,
    price: String,
    above: String,
    /// The parameters and the body, as JSON on several lines.
    arguments: String,
    state: &'static str,
    tone: &'static str,
    is_waiting: bool,
    /// Waits, or may be bought yet.
    is_open: bool,
    asked: String,
    expires: String,
}

impl ApprovalRow {
    fn new(approval: &Approval, now_secs: u64) -> Self {
        let call = &approval.call;
        let (state, tone) = match approval.state {
            ApprovalState::Waiting => ("Waiting for you", "undecided"),
            ApprovalState::Approved => ("Approved, not bought yet", "good"),
            ApprovalState::Refused => ("Refused", "bad"),
        };
        Self {
            id: approval.id.clone(),
            secret: approval.secret.clone(),
            service: call.api_id_public.to_string(),
            service_name: show::visible(&approval.service_name),
            operation: show::visible(&format!("{} {}", call.method, call.path)),
            price: show::usdc(approval.price.0),
            above: show::usdc(approval.above.0),
            arguments: arguments(approval),
            state,
            tone,
            is_waiting: approval.state == ApprovalState::Waiting,
            is_open: approval.state != ApprovalState::Refused,
            asked: show::ago(approval.asked_secs, now_secs),
            expires: show::span(approval.expires_in_secs),
        }
    }
}

/// Everything that the agent sends beside the operation, whole: the user decides about exactly this.
fn arguments(approval: &Approval) -> String {
    let call = &approval.call;
    let mut sent = serde_json::Map::new();
    sent.insert("params".to_owned(), json!(call.params));
    for (name, value) in [
        ("headers", json!(call.headers)),
        ("body", call.body.clone().unwrap_or_default()),
        ("body_base64", json!(call.body_base64)),
    ] {
        if !value.is_null() && value != json!({}) {
            sent.insert(name.to_owned(), value);
        }
    }
    escaped(&serde_json::to_string_pretty(&Value::Object(sent)).unwrap_or_default())
}

/// JSON whose texts have escapes in place of characters that nobody sees or that turn what stands around them.
fn escaped(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        if show::is_invisible(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

pub(in crate::pages) async fn show(visit: Visit) -> Page {
    page(&visit, None).await
}

async fn page(visit: &Visit, problem: Option<String>) -> Page {
    let all = visit.panel.node().ask(endpoint::Approvals).await?;
    let now_secs = clock::now_secs();
    let (mut rows, mut bytes): (Vec<ApprovalRow>, usize) = (Vec::new(), 0);
    for row in all.iter().map(|approval| ApprovalRow::new(approval, now_secs)) {
        bytes += row.arguments.len();
        if !rows.is_empty() && bytes > ARGUMENTS_BYTES_MAX {
            break;
        }
        rows.push(row);
    }
    let mut frame = visit.frame(Section::Finance).await?;
    // The page itself says it.
    frame.alerts.retain(|alert| alert.link != Some(ADDRESS));
    let page = ApprovalsTemplate { frame, hidden: all.len() - rows.len(), rows, problem };
    Ok(answer(&page, page.problem.as_ref()))
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::pages) struct ApprovalChosen {
    id: String,
}

pub(in crate::pages) async fn approve(form: Form<ApprovalChosen>) -> Page {
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    let outcome = visit.panel.node().ask(endpoint::ApproveCall.of(&fields.id)).await;
    match mendable(outcome)? {
        Ok(_) => Ok(Done::CallApproved.at(ADDRESS).into_response()),
        Err(problem) => page(&visit, Some(problem)).await,
    }
}

/// At once, without a password: a refusal costs nothing.
pub(in crate::pages) async fn refuse(form: Form<ApprovalChosen>) -> Page {
    let Form { visit, fields, .. } = form;
    let outcome = visit.panel.node().ask(endpoint::RefuseCall.of(&fields.id)).await;
    match mendable(outcome)? {
        Ok(_) => Ok(Done::CallRefused.at(ADDRESS).into_response()),
        Err(problem) => page(&visit, Some(problem)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_reads_all_of_a_call_with_what_nobody_would_see() {
        let approval: Approval = serde_json::from_value(json!({
            "id": "a1", "secret": "agent", "state": "waiting", "service_name": "Planets\u{202e}", "price": "0.5", "above": "0.1",
            "asked_secs": 100, "expires_in_secs": 600, "url": "https://localhost:3002/panel/finance/approvals",
            "call": {
                "api_id_public": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b", "method": "POST", "path": "/orders",
                "params": { "to": "al\u{202e}ice" }, "body": { "count": 7 },
            },
        }))
        .unwrap();
        let row = ApprovalRow::new(&approval, 160);
        assert_eq!((row.service_name.as_str(), row.operation.as_str()), ("Planets", "POST /orders"));
        assert_eq!((row.price.as_str(), row.above.as_str()), ("0.50", "0.10"));
        for sent in ["\"to\": \"al\\u202eice\"", "\"count\": 7"] {
            assert!(row.arguments.contains(sent), "{sent}: {}", row.arguments);
        }
        assert!(!row.arguments.contains("base64") && !row.arguments.contains("headers"), "{}", row.arguments);
        assert!(row.is_open && row.is_waiting && row.tone == "undecided", "{}", row.state);
        assert_eq!((row.asked.as_str(), row.expires.as_str()), ("1 min ago", "10 min"));
    }
}
