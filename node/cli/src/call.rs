//! `farthing call`: the service's answer on standard output, what it cost on standard error.
//!
//! With `--json` standard output has one object with both. It is there whenever the service answered, also with a
//! status of 400 or more; of any other end the error on standard error tells.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    pin::pin,
    time::{Duration, Instant},
};

use clap::Args;
use farthing_bridge::is_json;
use farthing_control::{
    ControlError, RawAnswer, encoded, endpoint,
    types::{
        CHARGED_UNDECIDED, CallRequest, HEADER_CALL_ID, HEADER_CHARGED, HEADER_PRICE, HEADER_RECEIPT,
        HEADER_TIMING, NamedService, Text,
    },
};
use farthing_protocol::{Address, ServiceId, Usdc, call::Method};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use uuid::Uuid;

use super::{
    Context, SLOW_AFTER, catalog,
    failure::{CallFacts, Exit, Failure},
    input,
    pick::{self, ServiceName},
};

#[derive(Debug, Args)]
pub struct Call {
    /// Service: its name, its UUID from `farthing catalog search`, or the first digits of the UUID
    pub service: ServiceName,
    /// GET, POST, …
    pub method: Method,
    /// Path such as /v1/things
    pub path: String,
    /// Parameter; may be repeated
    #[arg(short, long = "param", value_name = "NAME=VALUE", value_parser = input::pair)]
    pub params: Vec<(String, String)>,
    /// Request header; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE", value_parser = input::header)]
    pub headers: Vec<(String, String)>,
    /// Request body as JSON, or @FILE
    #[arg(long, value_name = "JSON")]
    pub body: Option<String>,
    /// File to send as the request body, unchanged; name its media type with -H 'Content-Type: image/png'
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    pub body_file: Option<PathBuf>,
    /// Highest price to pay, in USDC
    #[arg(long, value_name = "USDC", allow_negative_numbers = true)]
    pub max_price: Option<Usdc>,
    /// Call id; a repeat with the same id is charged once
    #[arg(long, value_name = "ID")]
    pub call_id: Option<String>,
    /// Show how long each part took
    #[arg(long)]
    pub timing: bool,
    /// Show the owner's free sample for this operation; buys nothing
    #[arg(long, conflicts_with_all = ["params", "headers", "body", "body_file", "max_price", "call_id", "timing"])]
    pub sample: bool,
}

pub(super) async fn call(context: &Context, arguments: Call) -> Result<(), Failure> {
    let node = context.node()?;
    let service = pick::of_network(context, &node, arguments.service.clone()).await?;
    if arguments.sample {
        let operation = (arguments.method, arguments.path.as_str());
        return catalog::call_sample(context, &node, service, operation).await;
    }
    let (timing, is_repeat) = (arguments.timing, arguments.call_id.is_some());
    // Made here, so that whoever loses the answer has it.
    let call_id = arguments.call_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
    let request = CallRequest { call_id: Some(call_id.clone()), ..request(service, arguments)? };
    let begun = Instant::now();
    let answer = tokio::select! {
        biased;
        answer = node.tell_raw(endpoint::Call, &request) => answer,
        () = stopped(context, &call_id) => return Err(interrupted(call_id.clone())),
    };
    let took = begun.elapsed();
    let answer = answer.map_err(|error| unanswered(error, call_id.clone(), is_repeat))?;
    if answer.is_problem() {
        let problem = answer.problem();
        let call_id = problem.call_id.clone().unwrap_or(call_id);
        let facts = CallFacts { charged: problem.charged, call_id: Some(call_id) };
        return Err(Failure::from(&problem).of_call(facts));
    }
    let written = if context.output.is_json() {
        // Whose the service is is no part of the answer; that it cannot be told does not undo the call.
        let named = pick::listed(&node, &service.to_string()).await.unwrap_or_default();
        let named = named.iter().find(|named| named.id.0 == service);
        let bought = PaidAnswer::new(&answer, service, named, took)?;
        context.output.data(&bought, |_| String::new())
    } else {
        context.output.body(&answer.body)
    };
    written.map_err(|failure| unwritten(failure, &answer))?;
    context.output.prose(&summary(&answer, timing));
    if is_declined(&answer) { Err(declined(&answer)) } else { Ok(()) }
}

/// Waits for Ctrl-C. If the call takes long, tells its id: a repeat with the same one is paid once.
async fn stopped(context: &Context, call_id: &str) {
    let mut signal = pin!(tokio::signal::ctrl_c());
    let stopped = match tokio::time::timeout(SLOW_AFTER, &mut signal).await {
        Ok(stopped) => stopped,
        Err(_) => {
            context.output.prose(&format!(
                "The call id is {call_id}. If you stop waiting, repeat the call with `--call-id {call_id}`; you pay \
                 once."
            ));
            signal.await
        }
    };
    // Without a handler the signal ends the process.
    if stopped.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A service's answer with what became of the money, as programs read it.
#[derive(Debug, Serialize)]
struct PaidAnswer<'a> {
    status: u16,
    /// Of the service's answer; what the node says of the call has members of its own.
    headers: BTreeMap<&'a str, &'a str>,
    /// JSON where the answer is JSON, with every digit; otherwise its text, and `null` where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Box<RawValue>>,
    /// In place of `body` where the answer is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    /// USDC, as are all amounts.
    price: Option<&'a str>,
    /// `None` while it is not known.
    charged: Option<&'a str>,
    call_id: Option<&'a str>,
    receipt: Option<&'a str>,
    service: Text<ServiceId>,
    /// `None` when the node does not know its listing any more.
    owner: Option<Text<Address>>,
    /// From the order to the last byte of the answer.
    took_ms: f64,
    /// The parts of that time, as `server-timing` has them.
    timing: Option<&'a str>,
}

impl<'a> PaidAnswer<'a> {
    fn new(
        answer: &'a RawAnswer,
        service: ServiceId,
        named: Option<&NamedService>,
        took: Duration,
    ) -> Result<Self, Failure> {
        let own = [HEADER_CALL_ID, HEADER_CHARGED, HEADER_PRICE, HEADER_RECEIPT, HEADER_TIMING];
        let of_service = answer.headers.iter().filter(|(name, _)| !own.contains(&name.as_str()));
        let text = of_service.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let (body, body_base64) = content(answer)?;
        Ok(Self {
            status: answer.status.as_u16(),
            headers: text.collect(),
            body,
            body_base64,
            price: header(answer, HEADER_PRICE),
            charged: header(answer, HEADER_CHARGED).filter(|charged| *charged != CHARGED_UNDECIDED),
            call_id: header(answer, HEADER_CALL_ID),
            receipt: header(answer, HEADER_RECEIPT),
            service: service.into(),
            owner: named.map(|named| named.owner),
            took_ms: (took.as_secs_f64() * 1_000_000.0).round() / 1000.0,
            timing: header(answer, HEADER_TIMING),
        })
    }
}

/// The body as JSON, or as base64 where it is no text.
fn content(answer: &RawAnswer) -> Result<(Option<Box<RawValue>>, Option<String>), Failure> {
    let Ok(text) = std::str::from_utf8(&answer.body) else {
        return Ok((None, Some(encoded::to_text(&answer.body))));
    };
    let is_json = header(answer, "content-type").is_some_and(is_json);
    // Between JSON's values a line may end with one; within a text it is written otherwise.
    let body = match serde_json::from_str::<Box<RawValue>>(&text.replace('\r', " ")) {
        Ok(json) if is_json => json,
        _ => to_raw_value(&Some(text).filter(|text| !text.is_empty()))
            .map_err(|error| Failure::new(Exit::Failure, error))?,
    };
    Ok((Some(body), None))
}

/// Only a call that was not brought to the node, and never before, was surely not charged.
fn unanswered(error: ControlError, call_id: String, is_repeat: bool) -> Failure {
    let was_brought = !matches!(error, ControlError::NotRunning { .. } | ControlError::NotAllowed { .. });
    let charged = if was_brought || is_repeat { None } else { Some(false) };
    let failure = match error {
        // The node may have sent the call: one with another id could be paid a second time.
        ControlError::BrokenOff { .. } | ControlError::TimedOut(_) | ControlError::Unreadable(_) => {
            Failure::new(Exit::MayHaveBeenMade, error).next("repeat the call with the same call id")
        }
        error => error.into(),
    };
    failure.of_call(CallFacts { charged, call_id: Some(call_id) })
}

/// The node goes on with a call that nobody waits for.
fn interrupted(call_id: String) -> Failure {
    let next = format!("to get the answer, repeat the call with `--call-id {call_id}`; you pay once");
    Failure::new(Exit::MayHaveBeenMade, "you stopped waiting, and the call may still be charged")
        .next(next)
        .of_call(CallFacts { charged: None, call_id: Some(call_id) })
}

/// Tells how to have an answer that is bought and went nowhere: a full disk must not cost it.
fn unwritten(failure: Failure, answer: &RawAnswer) -> Failure {
    let call_id = header(answer, HEADER_CALL_ID).unwrap_or("unknown");
    failure
        .next(format!(
            "make room for the answer and repeat the call with `--call-id {call_id}`; you are not charged again"
        ))
        .of_call(facts(answer))
}

/// Facts about the money of a call that was answered.
fn facts(answer: &RawAnswer) -> CallFacts {
    let charged = header(answer, HEADER_CHARGED).and_then(|charged| charged.parse::<Usdc>().ok());
    let call_id = header(answer, HEADER_CALL_ID).map(str::to_owned);
    CallFacts { charged: charged.map(|charged| !charged.is_zero()), call_id }
}

/// Tells whether the service's answer is an error. 304 is an answer to a conditional request.
fn is_declined(answer: &RawAnswer) -> bool {
    answer.status.as_u16() >= 400
}

/// The service's own answer was an error. People have seen it.
fn declined(answer: &RawAnswer) -> Failure {
    let status = answer.status.as_u16();
    Failure::told(Exit::Upstream, format!("the service answered with status {status}"))
        .next("its answer is on standard output")
        .of_call(facts(answer))
}

fn header<'a>(answer: &'a RawAnswer, name: &str) -> Option<&'a str> {
    answer.headers.get(name).and_then(|value| value.to_str().ok())
}

fn request(service: ServiceId, arguments: Call) -> Result<CallRequest, Failure> {
    let Call { method, path, params, headers, body, body_file, max_price, call_id, .. } = arguments;
    let mut headers = input::unique(headers)?;
    let body = input::body(body.as_deref(), body_file.as_deref(), &mut headers)?;
    Ok(CallRequest {
        api_id_public: service.into(),
        path,
        method: method.into(),
        params: input::unique(params)?,
        body: body.value,
        body_base64: body.base64,
        headers,
        max_price: max_price.map(Text),
        call_id,
    })
}

/// Returns whether an answer is charged, or may be, without a receipt, as those of x402 servers are.
fn has_no_receipt(answer: &RawAnswer) -> bool {
    // This node's own words on a failure come without one as well.
    let may_be_paid = facts(answer).charged != Some(false) && !answer.is_problem();
    may_be_paid && header(answer, HEADER_RECEIPT).is_none()
}

fn summary(answer: &RawAnswer, timing: bool) -> String {
    let header = |name| header(answer, name).unwrap_or("unknown");
    let (charged, price) = (header(HEADER_CHARGED), header(HEADER_PRICE));
    let cost = match charged {
        CHARGED_UNDECIDED => format!("not known yet whether {price} USDC are charged"),
        charged => format!("charged {charged} of {price} USDC"),
    };
    let id = header(HEADER_CALL_ID);
    let mut text = format!("{} · {cost} · call {id}", answer.status.as_u16());
    if has_no_receipt(answer) {
        text += &format!(
            "\nAn x402 server signs no receipt: `farthing calls {id}` shows whether it took the payment."
        );
    }
    if timing {
        text += &format!("\n{}", header(HEADER_TIMING));
    }
    text
}

#[cfg(test)]
mod tests {
    use axum::{
        body::Bytes,
        http::{HeaderMap, HeaderName, HeaderValue, StatusCode},
    };
    use serde_json::{Value, json};

    use super::*;

    fn answer(headers: &[(&'static str, &'static str)], body: &'static [u8]) -> RawAnswer {
        let headers: HeaderMap = headers
            .iter()
            .map(|&(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        RawAnswer { status: StatusCode::OK, headers, body: Bytes::from_static(body) }
    }

    fn object(answer: &RawAnswer) -> String {
        let service = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b".parse().unwrap();
        let bought = PaidAnswer::new(answer, service, None, Duration::from_micros(12_345)).unwrap();
        serde_json::to_string(&bought).unwrap()
    }

    #[test]
    fn a_charge_without_a_receipt_is_one_of_an_x402_server() {
        let receipt = [("x-farthing-charged", "0.002"), ("x-farthing-receipt", "0x01")];
        let free = [("x-farthing-charged", "0")];
        let open = [("x-farthing-charged", CHARGED_UNDECIDED)];
        for (headers, is_said) in
            [(&receipt[..1], true), (&receipt[..], false), (&free[..], false), (&open[..], true)]
        {
            let said = summary(&answer(headers, b""), false);
            assert_eq!(said.contains("shows whether it took the payment"), is_said, "{said}");
        }
    }

    #[test]
    fn an_answer_of_which_nobody_knows_the_charge_says_so() {
        let open = answer(&[(HEADER_CHARGED, CHARGED_UNDECIDED), (HEADER_PRICE, "0.002")], b"{}");
        let said = summary(&open, false);
        assert!(said.starts_with("200 · not known yet whether 0.002 USDC are charged · "), "{said}");
        let told: Value = serde_json::from_str(&object(&open)).unwrap();
        assert_eq!((&told["charged"], &told["price"]), (&Value::Null, &json!("0.002")));
        assert_eq!(facts(&open).charged, None);
    }

    #[test]
    fn a_bought_answer_is_one_object_with_its_charge_and_its_call_id() {
        let paid = answer(
            &[
                ("content-type", "application/json"),
                ("etag", "\"1\""),
                (HEADER_CALL_ID, "6f1c0a52-3d0e-4b6e-9d0b-2f4f6f1f7a10"),
                (HEADER_CHARGED, "0.002"),
                (HEADER_PRICE, "0.002"),
                (HEADER_RECEIPT, "0x01"),
                (HEADER_TIMING, "gateway;dur=1"),
            ],
            b"{\"n\": 1.10}",
        );
        let text = object(&paid);
        assert!(text.contains(r#""body":{"n": 1.10}"#), "every digit stays: {text}");
        let told: Value = serde_json::from_str(&text).unwrap();
        let expected = json!({
            "status": 200,
            "headers": { "content-type": "application/json", "etag": "\"1\"" },
            "body": { "n": 1.10 },
            "price": "0.002",
            "charged": "0.002",
            "call_id": "6f1c0a52-3d0e-4b6e-9d0b-2f4f6f1f7a10",
            "receipt": "0x01",
            "service": "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b",
            "owner": null,
            "took_ms": 12.345,
            "timing": "gateway;dur=1",
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn a_call_that_may_be_paid_ends_with_another_code_than_one_that_was_never_brought() {
        let not_running = || ControlError::NotRunning { path: "control.sock".into(), next: String::new() };
        for (error, exit, charged) in [
            (not_running(), Exit::Unreachable, json!(false)),
            (ControlError::BrokenOff { is_command: true }, Exit::MayHaveBeenMade, Value::Null),
            (ControlError::TimedOut(Duration::from_secs(1)), Exit::MayHaveBeenMade, Value::Null),
            (ControlError::Unreadable(String::new()), Exit::MayHaveBeenMade, Value::Null),
        ] {
            let failure = unanswered(error, "c1".to_owned(), false);
            assert_eq!((failure.exit, &failure.object()["error"]["charged"]), (exit, &charged), "{failure}");
        }
    }

    #[test]
    fn an_answer_is_an_error_from_status_400_on() {
        for (status, is_error) in [(200, false), (304, false), (399, false), (400, true), (503, true)] {
            let answer = RawAnswer { status: StatusCode::from_u16(status).unwrap(), ..answer(&[], b"") };
            assert_eq!(is_declined(&answer), is_error, "{status}");
        }
    }

    #[test]
    fn a_call_that_is_interrupted_names_its_id_and_may_be_charged() {
        let failure = interrupted("c1".to_owned());
        let told = failure.object();
        assert_eq!(failure.exit, Exit::MayHaveBeenMade);
        assert_eq!((&told["error"]["charged"], &told["error"]["call_id"]), (&Value::Null, &json!("c1")));
        assert!(failure.to_string().contains("--call-id c1"), "{failure}");
    }

    #[test]
    fn a_body_is_json_text_or_base64_as_it_came() {
        for (media_type, body, member, value) in [
            ("application/json", &b"[1]"[..], "body", json!([1])),
            ("application/geo+json; charset=utf-8", b"{}", "body", json!({})),
            ("application/json", b"{\r\n\t\"a\": 1\r\n}", "body", json!({ "a": 1 })),
            ("application/json", b"no json", "body", json!("no json")),
            ("text/plain", b"17", "body", json!("17")),
            ("text/plain", b"", "body", json!(null)),
            ("image/png", b"\x89PNG", "body_base64", json!("iVBORw==")),
        ] {
            let told: Value =
                serde_json::from_str(&object(&answer(&[("content-type", media_type)], body))).unwrap();
            assert_eq!(told[member], value, "{media_type}");
            assert!(told.get("body").is_none() || told.get("body_base64").is_none());
        }
    }
}
