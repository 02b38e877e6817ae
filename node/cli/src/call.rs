//! `farthing call`: the service's answer on standard output, what it cost on standard error.

use farthing_control::{
    ControlError, RawAnswer, endpoint,
    types::{CallRequest, HEADER_CALL_ID, HEADER_CHARGED, HEADER_PRICE, HEADER_TIMING, Text},
};
use farthing_protocol::{ServiceId, Usdc};
use uuid::Uuid;

use super::{
    Context,
    args::Call,
    catalog,
    failure::{CallFacts, Exit, Failure},
    input, pick,
};

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
    let answer = node.tell_raw(endpoint::Call, &request).await;
    let answer = answer.map_err(|error| unanswered(error, call_id.clone(), is_repeat))?;
    if answer.is_problem() {
        let problem = answer.problem();
        let call_id = problem.call_id.clone().unwrap_or(call_id);
        let facts = CallFacts { charged: problem.charged, call_id: Some(call_id) };
        return Err(Failure::from(&problem).of_call(facts));
    }
    context.output.body(&answer.body)?;
    context.output.prose(&summary(&answer, timing));
    if answer.status.is_success() { Ok(()) } else { Err(declined(&answer)) }
}

/// Only a call that was not brought to the node, and never before, was surely not charged.
fn unanswered(error: ControlError, call_id: String, is_repeat: bool) -> Failure {
    let was_brought = !matches!(error, ControlError::NotRunning { .. } | ControlError::NotAllowed { .. });
    let charged = if was_brought || is_repeat { None } else { Some(false) };
    let failure = match error {
        ControlError::Unreadable(why) => {
            Failure::new(Exit::Unreachable, format!("the node's answer did not arrive ({why})"))
                .next("ask again under the same call id")
        }
        error => error.into(),
    };
    failure.of_call(CallFacts { charged, call_id: Some(call_id) })
}

/// The service's own answer was no success. People have seen it.
fn declined(answer: &RawAnswer) -> Failure {
    let charged = header(answer, HEADER_CHARGED).and_then(|charged| charged.parse::<Usdc>().ok());
    let call_id = header(answer, HEADER_CALL_ID).map(str::to_owned);
    let status = answer.status.as_u16();
    Failure::told(Exit::Upstream, format!("the service answered with status {status}"))
        .next("its answer is on standard output")
        .of_call(CallFacts { charged: charged.map(|charged| !charged.is_zero()), call_id })
}

fn header<'a>(answer: &'a RawAnswer, name: &str) -> Option<&'a str> {
    answer.headers.get(name).and_then(|value| value.to_str().ok())
}

fn request(service: ServiceId, arguments: Call) -> Result<CallRequest, Failure> {
    let Call { method, path, params, headers, body, max_price, call_id, .. } = arguments;
    Ok(CallRequest {
        api_id_public: service.into(),
        path,
        method: method.into(),
        params: input::unique(params)?,
        body: body.map(|body| input::json(&body)).transpose()?,
        headers: input::unique(headers)?,
        max_price: max_price.map(Text),
        call_id,
    })
}

fn summary(answer: &RawAnswer, timing: bool) -> String {
    let header = |name| header(answer, name).unwrap_or("unknown");
    let mut text = format!(
        "{} · charged {} of {} USDC · call {}",
        answer.status.as_u16(),
        header(HEADER_CHARGED),
        header(HEADER_PRICE),
        header(HEADER_CALL_ID),
    );
    if timing {
        text += &format!("\n{}", header(HEADER_TIMING));
    }
    text
}
