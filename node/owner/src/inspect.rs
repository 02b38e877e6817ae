//! Looking without a caller: what a description offers, and whether the server behind it answers.
//!
//! Nothing is stored or told to anybody. An inspection reads as a registration would; a trial before publishing, and a
//! test afterwards, is one request to the owner's server, as a call would make it, without a caller who pays.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use farthing_bridge::{Api, api::Call, description::Operation, document, share::share};
use farthing_control::types::{SourceFile, SourceKind};
use farthing_discovery::{CallPlan, PlanError, answers_html, method_of, time_of};
use farthing_os::secret::SecretText;
use farthing_protocol::{Outcome, Usdc, call::Method, limits};
use url::Url;

use super::{
    doubts::note_doubts,
    intake::{self, Candidate, Intake},
    new_service::{NewService, NewServiceError},
    probe,
    publish::{PublishError, Reader, source_kind, source_of},
    registry::Registered,
    upstream::{AddressClass, Fault, Upstream, UpstreamAnswer, UpstreamRequest},
};

/// Of an operation that has no time of its own.
const TRIAL_DEADLINE: Duration = Duration::from_secs(15);
/// Enough to recognise an answer, or to read an error.
const BEGINNING_CHARS_MAX: usize = 2_000;

/// A description that was read.
#[derive(Debug)]
pub struct Inspected {
    pub intake: Intake,
    /// The source that a service of it is registered with.
    pub source: SourceFile,
    /// Everything that a search found.
    pub candidates: Vec<Candidate>,
}

/// The server's answer to one request.
#[derive(Debug)]
pub struct ProbeAnswer {
    pub operation: String,
    /// True if a caller would get it as the service's answer.
    pub answered: bool,
    /// 0 when nothing was said.
    pub status: u16,
    pub reason: &'static str,
    pub elapsed: Duration,
    pub class: Option<AddressClass>,
    pub media_type: String,
    pub bytes: usize,
    pub beginning: String,
}

impl Reader {
    /// Reads what `source` leads to. `headers` go with every request to its host.
    pub async fn inspect(
        &self,
        mut source: SourceFile,
        headers: Vec<(String, SecretText)>,
    ) -> Result<Inspected, PublishError> {
        let mut options = self.intake.clone();
        options.headers = headers;
        if source.text.is_some() && source.kind == SourceKind::Scan {
            source.kind = SourceKind::Openapi;
        }
        let (mut intake, candidates) = match (source.kind, source.url.as_deref().map(Url::parse)) {
            (SourceKind::Scan, Some(Ok(url))) => {
                let scan = intake::scan(&url, &options).await?;
                let candidates = scan.candidates.clone();
                (scan.into_best()?.intake, candidates)
            }
            _ => (intake::read(source_of(&source)?, options).await?, Vec::new()),
        };
        // Whatever cannot be offered is said now and not at registration.
        let mut offered = intake.reading.description.clone();
        share(&mut offered);
        if let Err(error) = document::encode(&offered) {
            intake.reading.report.warnings.add("publishing", format!("not possible as it is: {error}"));
        }
        note_doubts(&offered, &self.upstream, &mut intake.reading.report);
        let source = if source.kind == SourceKind::Scan {
            found_source(&intake)
        } else {
            SourceFile { kind: source_kind(intake.kind()), ..source }
        };
        Ok(Inspected { intake, source, candidates })
    }

    /// Asks the server of a service that is not published yet: `wanted`, or the first operation that needs no
    /// parameters.
    ///
    /// # Errors
    /// [`PublishError`] when the server's address cannot be used, or the request does not fit the operation.
    pub async fn try_out(
        &self,
        service: &NewService,
        wanted: Option<(Method, String)>,
        params: &BTreeMap<String, String>,
    ) -> Result<ProbeAnswer, PublishError> {
        let upstream = Upstream::new(&service.upstream, service.secrets.clone(), self.upstream.clone())?;
        let unusable = |error: &dyn std::fmt::Display| {
            NewServiceError::new("operations", format!("cannot be offered: {error}"))
        };
        let api = Api::new(service.api.clone()).map_err(|error| unusable(&error))?;
        let (operation, request) = match wanted {
            Some((method, path)) => named(&api, method, &path, params)?,
            None => first_without_parameters(&api)?,
        };
        let planned = operation.split_once(' ').and_then(|(method, path)| api.operation_at(method, path));
        let html = planned.is_some_and(answers_html);
        let (deadline, time) = trial_time(planned);
        let headers = BTreeMap::from([("accept".to_owned(), "application/json, */*;q=0.5".to_owned())]);
        let body = Bytes::new();
        let request = UpstreamRequest { request, headers, body, deadline, time, call: None, html };
        let answer = probe::send(&upstream, request).await;
        Ok(ProbeAnswer::new(operation, &answer, upstream.class()))
    }
}

/// The time of a trial in all, and the operation's own, as `timeout_secs` of a service file says.
fn trial_time(operation: Option<&Operation>) -> (Duration, Option<Duration>) {
    let time = operation.and_then(time_of);
    (time.unwrap_or(TRIAL_DEADLINE), time)
}

impl ProbeAnswer {
    fn new(operation: String, answer: &UpstreamAnswer, class: Option<AddressClass>) -> Self {
        Self {
            operation,
            answered: matches!(answer.outcome, Outcome::Answered | Outcome::Declined),
            status: answer.status,
            reason: answer.fault.map_or("", Fault::words),
            elapsed: answer.elapsed,
            class,
            media_type: answer.headers.get("content-type").cloned().unwrap_or_default(),
            bytes: answer.body.len(),
            beginning: String::from_utf8_lossy(&answer.body).chars().take(BEGINNING_CHARS_MAX).collect(),
        }
    }
}

/// The result of a test: the answer, and what a caller would have paid for it.
#[derive(Debug)]
pub struct TestAnswer {
    pub answer: ProbeAnswer,
    pub price: Usdc,
    pub charge: Usdc,
}

/// A call with which an owner tests an operation, as its node would get it.
#[derive(Debug)]
pub struct TestCall {
    pub method: Method,
    pub path: String,
    pub params: BTreeMap<String, String>,
    /// Names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Bytes,
}

/// Asks the server of a published service as a paid call would: `wanted`, or the first operation that reads and needs
/// no parameters.
///
/// # Errors
/// [`PlanError`] when what is asked does not fit the operation; the server is not asked then.
pub async fn test(service: &Registered, wanted: Option<TestCall>) -> Result<TestAnswer, PlanError> {
    let (plan, body, head) = match wanted {
        Some(TestCall { method, path, params, headers, body }) => {
            let plan = service.known().plan(method, &path, &params, &headers, &body)?;
            // The plan names the operation whose head is asked for.
            (plan, body, (method == Method::Head).then(|| format!("{method} {path}")))
        }
        None => (first_that_reads(service)?, Bytes::new(), None),
    };
    let CallPlan { price, operation, request, headers, time, html, .. } = plan;
    if let Some(name) = service.upstream().secret_in(&request, &body) {
        return Err(PlanError::BadParameter(format!("the parameter `{name}` is one that your node adds")));
    }
    let deadline = Duration::from_millis(limits::CALL_DEADLINE_MS_MAX);
    let answer = probe::send(
        service.upstream(),
        UpstreamRequest { request, headers, body, deadline, time, call: None, html },
    )
    .await;
    let charge = answer.outcome.charge(service.listing().charge_policy, price);
    let answer = ProbeAnswer::new(head.unwrap_or(operation), &answer, service.upstream().class());
    Ok(TestAnswer { answer, price, charge })
}

/// A test that nobody named changes nothing on the owner's server.
fn first_that_reads(service: &Registered) -> Result<CallPlan, PlanError> {
    let none = BTreeMap::new();
    let known = service.known();
    let reads = known.operations().filter(|(operation, _)| method_of(operation) == Method::Get);
    let mut planned =
        reads.filter_map(|(operation, _)| known.plan(Method::Get, &operation.path, &none, &none, &[]).ok());
    planned.next().ok_or_else(|| {
        PlanError::BadParameter(
            "every operation that only reads needs parameters; name an operation and give its parameters"
                .to_owned(),
        )
    })
}

/// Returns the source with which to register what a search found.
pub fn found_source(intake: &Intake) -> SourceFile {
    SourceFile::at(source_kind(intake.kind()), intake.origin.clone())
}

fn named(
    api: &Api,
    method: Method,
    path: &str,
    params: &BTreeMap<String, String>,
) -> Result<(String, farthing_bridge::Request), NewServiceError> {
    let call = Call { method: method.as_str(), path, params, content_type: None, body: &[] };
    let planned = api.plan(&call);
    let planned =
        planned.map_err(|error| NewServiceError::new("operation", format!("does not fit: {error}")))?;
    Ok((format!("{method} {path}"), planned.request))
}

/// Only what reads: a trial changes nothing on the owner's server.
fn first_without_parameters(api: &Api) -> Result<(String, farthing_bridge::Request), NewServiceError> {
    let none = BTreeMap::new();
    let reads = |operation: &&Operation| method_of(operation) == Method::Get;
    let mut planned = api
        .description()
        .operations
        .iter()
        .filter(reads)
        .filter_map(|operation| named(api, Method::Get, &operation.path, &none).ok());
    planned.next().ok_or_else(|| {
        let problem =
            "is missing: every operation that only reads needs parameters; name one and give its parameters";
        NewServiceError::new("operation", problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_waits_as_long_as_the_operation_may_take() {
        let document = r#"{"openapi":"3.0.3","info":{"title":"T","version":"1"},
            "paths":{"/a":{"get":{"responses":{"200":{"description":"it"}}}}}}"#;
        let mut operation =
            farthing_bridge::read(document.as_bytes()).unwrap().description.operations.remove(0);
        assert_eq!(trial_time(Some(&operation)), (TRIAL_DEADLINE, None));
        operation.timeout_secs = Some(40);
        let own = Duration::from_secs(40);
        assert_eq!(trial_time(Some(&operation)), (own, Some(own)));
    }
}
