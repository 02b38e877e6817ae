//! Requests that calls would send upstream: one that is asked for, or many that are generated.

use std::{collections::BTreeMap, fmt::Write as _};

use farthing_bridge::{
    Api, Call, HttpRequest, Request,
    description::Operation,
    graphql::{Planner, generate::requests},
};
use farthing_owner::intake::Intake;
use serde::Serialize;
use serde_json::value::RawValue;
use url::Url;

use super::unusable;
use crate::{
    Context,
    failure::{Exit, Failure},
    input,
};

/// The server that a request is shown with when nothing names an upstream.
const PLACEHOLDER: &str = "http://upstream";

/// Prints the request of one call, or fails with what the caller would be told.
pub(super) fn show(
    context: &Context,
    intake: Intake,
    operation: &str,
    params: Vec<(String, String)>,
    body: Option<&str>,
) -> Result<(), Failure> {
    let (method, path) = operation
        .trim()
        .split_once(' ')
        .ok_or_else(|| Failure::usage("write the operation as \"GET /planets\""))?;
    let body = body.map(input::json).transpose()?;
    let base = base(&intake);
    let api = Api::new(intake.reading.description).map_err(|error| unusable(&error))?;
    let params: BTreeMap<String, String> = input::unique(params)?;
    let planned = api
        .plan(&Call {
            method,
            path: path.trim(),
            params: &params,
            content_type: body.as_ref().map(|_| "application/json"),
            body: body.as_deref().unwrap_or_default().as_bytes(),
        })
        .map_err(Failure::usage)?;
    let name = api.description().operations.get(planned.operation).map(name_of).unwrap_or_default();
    match planned.request {
        Request::Http(request) => {
            let url = request.url(&base).map_err(|error| Failure::new(Exit::Failure, error))?;
            let given = body.as_deref().unwrap_or_default().as_bytes();
            context.output.data(&SentRequest::new(name, &url, request, given), SentRequest::text)
        }
        Request::Graphql(request) => {
            let query = Query::new(name, request.query, request.variables)?;
            context.output.data(&query, |query| query.text(&base))
        }
    }
}

/// Prints `count` requests, one JSON object a line.
pub(super) fn generate(context: &Context, intake: Intake, count: u32, seed: u64) -> Result<(), Failure> {
    if intake.reading.description.graphql.is_none() {
        return Err(Failure::usage("--queries works with GraphQL only, and this is not a GraphQL schema"));
    }
    let api = Api::new(intake.reading.description).map_err(|error| unusable(&error))?;
    let mut lines = String::new();
    let planner = Planner::new(api.description()).map_err(|error| unusable(&error))?;
    for generated in requests(&planner, api.description(), count as usize, seed) {
        let query = Query::new(generated.operation, generated.query, generated.variables)?;
        lines += &serde_json::to_string(&query).map_err(|error| Failure::new(Exit::Failure, error))?;
        lines.push('\n');
        if lines.len() > 64 * 1024 {
            context.output.text(&lines)?;
            lines.clear();
        }
    }
    context.output.text(&lines)
}

/// As `--operation` takes it.
fn name_of(operation: &Operation) -> String {
    format!("{} {}", operation.method, operation.path)
}

fn base(intake: &Intake) -> Url {
    let base = intake.upstream().cloned().or_else(|| Url::parse(PLACEHOLDER).ok());
    base.expect("the placeholder is a URL")
}

/// A GraphQL request.
#[derive(Serialize)]
struct Query {
    operation: String,
    query: String,
    variables: Box<RawValue>,
}

impl Query {
    fn new(operation: String, query: String, variables: String) -> Result<Self, Failure> {
        let variables =
            RawValue::from_string(variables).map_err(|error| Failure::new(Exit::Failure, error))?;
        Ok(Self { operation, query, variables })
    }

    fn text(&self, endpoint: &Url) -> String {
        format!("POST {endpoint}\n\n{}\n\n{}", self.query, self.variables)
    }
}

/// A request of any other API.
#[derive(Serialize)]
struct SentRequest {
    operation: String,
    method: &'static str,
    url: String,
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl SentRequest {
    /// `given` is the caller's body.
    fn new(operation: String, url: &Url, request: HttpRequest, given: &[u8]) -> Self {
        let HttpRequest { method, headers, body, .. } = request;
        let body = String::from_utf8_lossy(body.bytes(given)).into_owned();
        Self {
            operation,
            method: method.as_str(),
            url: url.to_string(),
            headers: headers.into_iter().collect(),
            body: Some(body).filter(|body| !body.is_empty()),
        }
    }

    /// As HTTP would write it, with the whole address.
    fn text(&self) -> String {
        let mut text = format!("{} {}\n", self.method, self.url);
        for (name, value) in &self.headers {
            let _ = writeln!(text, "{name}: {value}");
        }
        if let Some(body) = &self.body {
            let _ = write!(text, "\n{body}");
        }
        text
    }
}
