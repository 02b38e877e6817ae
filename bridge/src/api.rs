//! A service's API, checked and indexed: every call becomes a request here, or a refusal.
//!
//! 1. [`Api::new`] checks a description, which may be a stranger's ([`check`]), and indexes its paths.
//! 2. [`Api::plan`] routes a [`Call`], reads its parameters and body, and writes the request. Everything that is
//!    wrong is told at once. Operations that stand for a GraphQL field are planned by [`graphql::Planner`].
//! 3. [`Api::params_of`] reads a real query string for callers who write URLs ([`query`]).

mod check;
mod query;

use std::collections::BTreeMap;

use crate::{
    ApiError, body,
    description::{ApiDescription, Method, Operation, Place},
    graphql, media,
    parameters::{self, ArgumentValues, style},
    problem::{PlanError, Problem},
    request::HttpRequest,
    routing::{BadPath, RouteError, RouteMatch, Routes, Template},
    shown,
    values::Checker,
};

/// A service's operations, checked and indexed.
#[derive(Debug, Clone, Default)]
pub struct Api {
    description: ApiDescription,
    routes: Routes,
    planner: graphql::Planner,
}

/// A call as a caller makes it.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// In any case.
    pub method: &'a str,
    /// Concrete (`/users/42`) or a template (`/users/{id}`).
    pub path: &'a str,
    pub params: &'a BTreeMap<String, String>,
    /// Of the body; the declared one when absent.
    pub content_type: Option<&'a str>,
    /// Empty when there is none.
    pub body: &'a [u8],
}

/// A call that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// Index into [`ApiDescription::operations`].
    pub operation: usize,
    pub request: Request,
}

/// A request to the upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    Http(HttpRequest),
    /// To the upstream's GraphQL address.
    Graphql(graphql::GraphqlRequest),
}

impl Api {
    /// Checks `description` and indexes it. Parameters of a path that are not declared are declared as required
    /// text.
    ///
    /// # Errors
    /// [`ApiError`] for the first thing that cannot be offered.
    pub fn new(mut description: ApiDescription) -> Result<Self, ApiError> {
        let routes = check::check(&mut description)?;
        let planner = graphql::Planner::new(&description)?;
        Ok(Self { description, routes, planner })
    }

    pub const fn description(&self) -> &ApiDescription {
        &self.description
    }

    /// The operation that a call of `method` and `path` is routed to.
    pub fn operation_at(&self, method: &str, path: &str) -> Option<&Operation> {
        let read = || {
            let index = asks_for_head(method).then(|| self.routes.operation_at(READ, path))??;
            self.description.operations.get(index).filter(|read| read.root.is_none())
        };
        let own =
            self.routes.operation_at(method, path).and_then(|index| self.description.operations.get(index));
        own.or_else(read)
    }

    /// The route of a call. Whoever may read a path may ask for its head alone (RFC 9110, 9.3.2).
    fn route<'a>(&'a self, method: &str, path: &'a str) -> Result<RouteMatch<'a>, RouteError> {
        let own = self.routes.find(method, path);
        if !asks_for_head(method) || !matches!(own, Err(RouteError::MethodNotAllowed { .. })) {
            return own;
        }
        let read = self.routes.find(READ, path).ok();
        let read = read.filter(|routed| self.description.operations[routed.operation].root.is_none());
        read.map_or(own, Ok)
    }

    /// Turns a call into a request.
    ///
    /// # Errors
    /// [`PlanError`]: no such path, not with this method, or everything that is wrong with parameters and body.
    pub fn plan(&self, call: &Call<'_>) -> Result<Planned, PlanError> {
        let routed = self.route(call.method, call.path)?;
        let operation = &self.description.operations[routed.operation];
        let request = if operation.root.is_some() {
            Request::Graphql(self.graphql(routed.operation, call)?)
        } else {
            Request::Http(self.http(operation, &routed, call)?)
        };
        Ok(Planned { operation: routed.operation, request })
    }

    fn graphql(&self, operation: usize, call: &Call<'_>) -> Result<graphql::GraphqlRequest, PlanError> {
        let refuse = |what: &str| Err(PlanError::Problems(vec![Problem::Other(what.into())]));
        if !call.body.is_empty() {
            if Method::parse(call.method) == Some(Method::Get) {
                return refuse("GET takes no body; leave `body` out, or use POST");
            }
            if !call.content_type.is_none_or(media::is_json) {
                return refuse("the body's content type must be application/json");
            }
        }
        let planned = self.planner.plan(&self.description, operation, call.params, call.body);
        planned.map_err(PlanError::Problems)
    }

    fn http(
        &self,
        operation: &Operation,
        routed: &RouteMatch<'_>,
        call: &Call<'_>,
    ) -> Result<HttpRequest, PlanError> {
        let mut checker = Checker::new(&self.description);
        let arguments = parameters::read(&mut checker, operation, routed.path_values.as_ref(), call.params);
        let body = body::read(&mut checker, operation.body.as_ref(), call.content_type, call.body);
        checker.finish().map_err(PlanError::Problems)?;
        let mut headers: Vec<_> = arguments
            .in_place(Place::Header)
            .map(|argument| (argument.parameter.name.to_ascii_lowercase(), style::header_text(argument)))
            .collect();
        headers.extend(body.media_type.map(|media_type| ("content-type".to_owned(), media_type)));
        let segments = segments(self.routes.template(routed.route), &arguments)?;
        // A template is priced before its values are known, and an upstream may read more into a path than we do.
        let is_read_in_one_way =
            |segment: &String| !segment.is_empty() && !segment.contains(['%', ';', '\\']);
        if (routed.path_values.is_none() || !segments.iter().all(is_read_in_one_way))
            && let Some(other) = self.routes.other_than(routed, &segments)
        {
            let (path, other) = (shown(call.path), shown(other.text()));
            let what = format!(
                "with these values an upstream may read {path} as {other}, which has its own price; call that \
                 operation"
            );
            return Err(PlanError::Problems(vec![Problem::Other(what)]));
        }
        Ok(HttpRequest {
            method: Method::parse(call.method).unwrap_or(operation.method),
            segments,
            query: query(&arguments),
            headers,
            body: body.payload,
        })
    }
}

/// The method of operations whose head may be asked for alone.
const READ: &str = Method::Get.as_str();

fn asks_for_head(method: &str) -> bool {
    Method::parse(method) == Some(Method::Head)
}

fn segments(template: &Template, arguments: &ArgumentValues<'_>) -> Result<Vec<String>, RouteError> {
    let texts: Vec<_> = arguments
        .in_place(Place::Path)
        .map(|argument| (argument.parameter.name.as_str(), style::path_text(argument)))
        .collect();
    let text = |name: &str| texts.iter().find(|(known, _)| *known == name).map(|(_, text)| text.as_str());
    // Every parameter of the template is required, and none is missing: what remains are dots.
    template.fill(text).ok_or(RouteError::BadPath(BadPath::DotSegment))
}

fn query(arguments: &ArgumentValues<'_>) -> String {
    let mut query = String::new();
    for argument in arguments.in_place(Place::Query) {
        style::write_query(&mut query, argument);
    }
    for (name, text) in &arguments.others {
        style::pair(&mut query, name, text);
    }
    query
}

#[cfg(test)]
mod tests;
