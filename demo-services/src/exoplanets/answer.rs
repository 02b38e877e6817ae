//! From a request's body to the answer's JSON, as GraphQL over HTTP has it.
//!
//! Whoever accepts `application/graphql-response+json` learns from the status whether the request could be executed
//! at all; whoever only knows `application/json` gets 200 for every request that was well formed.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use juniper::http::{GraphQLRequest, GraphQLResponse};
use juniper::{DefaultScalarValue, ExecutionError, GraphQLError, InputValue, ValidatedOperation, Value};
use serde_json::{Value as Json, json};

use super::Service;
use super::cost;
use super::schema::Context;

const LEGACY: &str = "application/json";
const CURRENT: &str = "application/graphql-response+json";

/// The media type that a client wants its answer in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MediaType {
    Legacy,
    Current,
}

impl MediaType {
    /// Chooses the type that the request accepts: the current one only if it is named, as the specification asks.
    pub(super) fn accepted(headers: &HeaderMap) -> Self {
        let named = |accepted: &HeaderValue| {
            accepted.to_str().is_ok_and(|accepted| accepted.to_ascii_lowercase().contains(CURRENT))
        };
        if headers.get_all(header::ACCEPT).iter().any(named) { Self::Current } else { Self::Legacy }
    }

    fn name(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Legacy => LEGACY,
            Self::Current => CURRENT,
        })
    }
}

/// An answer, before it is written in the media type the client wants.
#[derive(Debug)]
pub(super) struct GraphqlAnswer {
    status: StatusCode,
    /// The body was a GraphQL request, whatever became of it.
    well_formed: bool,
    json: Vec<u8>,
}

impl GraphqlAnswer {
    /// Executes a request.
    pub(super) fn to(request: &GraphQLRequest, service: &Service) -> Self {
        if !matches!(&request.variables, None | Some(InputValue::Null | InputValue::Object(_))) {
            let message = "`variables` must be an object or null";
            return Self::failed(StatusCode::BAD_REQUEST, "BAD_REQUEST", message);
        }
        let name = request.operation_name.as_deref();
        let operation = match ValidatedOperation::new(&request.query, name, &service.schema) {
            Ok(operation) => operation,
            Err(error) => return Self::not_executable(&error),
        };
        let elements_max = match cost::elements_max(&request.query, &service.schema) {
            Ok(elements_max) => elements_max,
            Err(error) => return Self::not_begun(vec![described("QUERY_TOO_COMPLEX", &error.to_string())]),
        };
        let context = Context::new(service.catalog.clone(), service.notes.clone(), elements_max);
        match operation.execute_sync(&request.variables(), &context) {
            Ok(outcome) => Self::executed(outcome),
            Err(error) => Self::not_executable(&error),
        }
    }

    fn executed(outcome: (Value, Vec<ExecutionError<DefaultScalarValue>>)) -> Self {
        let json = serde_json::to_vec(&GraphQLResponse::from_result(Ok(outcome)))
            .expect("objects with text as keys can always be written as JSON");
        Self { status: StatusCode::OK, well_formed: true, json }
    }

    /// The document is not one of this schema. Juniper says why and where; the code is ours.
    fn not_executable(error: &GraphQLError) -> Self {
        let code = match error {
            GraphQLError::ParseError(_) => "GRAPHQL_PARSE_FAILED",
            GraphQLError::ValidationError(_) => "GRAPHQL_VALIDATION_FAILED",
            GraphQLError::NoOperationProvided
            | GraphQLError::MultipleOperationsProvided
            | GraphQLError::UnknownOperationName
            | GraphQLError::IsSubscription
            | GraphQLError::NotSubscription
            | GraphQLError::NotSupported(_) => "OPERATION_RESOLUTION_FAILURE",
        };
        let mut errors = json!(error);
        for error in errors.as_array_mut().into_iter().flatten() {
            error["extensions"] = json!({ "code": code });
        }
        Self::not_begun(errors)
    }

    fn not_begun(errors: impl Into<Json>) -> Self {
        let json = json!({ "errors": errors.into() }).to_string().into();
        Self { status: StatusCode::BAD_REQUEST, well_formed: true, json }
    }

    /// The body was no request, or the service failed.
    pub(super) fn failed(status: StatusCode, code: &str, message: &str) -> Self {
        let json = json!({ "errors": [described(code, message)] }).to_string().into();
        Self { status, well_formed: false, json }
    }

    pub(super) fn written(self, media_type: MediaType) -> Response {
        let lenient = media_type == MediaType::Legacy && self.well_formed;
        let status = if lenient { StatusCode::OK } else { self.status };
        (status, [(header::CONTENT_TYPE, media_type.name())], self.json).into_response()
    }
}

fn described(code: &str, message: &str) -> Json {
    json!({ "message": message, "extensions": { "code": code } })
}
