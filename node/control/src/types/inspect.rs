//! The node's report on an API before it is published: what it offers, how strangers will see it, whether its
//! server answers.

use std::{collections::BTreeMap, fmt};

use farthing_bridge::report::{Report, SecurityScheme};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    CallRequest, CatalogKind, MethodText, Offer, OfferParameter, OperationName, OperationSample, ServiceFile,
    ServiceIdText, SourceFile, Text, UsdcText,
};

/// An API description to look at.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InspectRequest {
    /// Of a text the kind is found out, whatever is said here.
    pub source: SourceFile,
    /// Sent with every request to the named host, such as an API key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub upstream_headers: BTreeMap<String, String>,
}

/// Headers may be keys.
impl fmt::Debug for InspectRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&String> = self.upstream_headers.keys().collect();
        f.debug_struct("InspectRequest").field("headers", &headers).finish_non_exhaustive()
    }
}

/// The content of a description: what it offers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Inspection {
    /// The source to register it with; a text is left out, because whoever asks has it.
    pub source: SourceFile,
    #[schema(value_type = String)]
    pub kind: Text<CatalogKind>,
    pub title: String,
    pub version: String,
    /// Markdown.
    pub description: String,
    /// Addresses that can be the upstream, the proposed one first.
    pub upstreams: Vec<String>,
    /// The security schemes that the upstream asks for, in the document's order.
    #[schema(value_type = Vec<Object>)]
    pub security: Vec<SecurityScheme>,
    #[schema(value_type = Object)]
    pub report: Report,
    pub operations: Vec<InspectedOperation>,
    /// Everything that a search found, this one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<InspectedCandidate>,
}

/// An operation that can be offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InspectedOperation {
    pub method: MethodText,
    pub path: String,
    pub summary: String,
    #[serde(default)]
    pub deprecated: bool,
    /// A GraphQL mutation, which is offered only when it is named.
    #[serde(default)]
    pub mutation: bool,
    pub parameters: Vec<OfferParameter>,
    /// Type of the body, when one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// One of several descriptions that a server has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InspectedCandidate {
    pub source: SourceFile,
    /// Such as `OpenAPI 3.0.3`.
    pub format: String,
    pub title: String,
    pub operations: u64,
    /// The way in which it was found, in words.
    pub found: String,
}

/// A service as strangers would see it, checked as for publishing. Nothing is published.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ApiPreview {
    pub name: String,
    #[schema(value_type = String)]
    pub kind: Text<CatalogKind>,
    pub summary: String,
    pub category: String,
    pub tags: Vec<String>,
    /// Markdown.
    pub description: String,
    pub price: UsdcText,
    pub upstream: String,
    /// Names of what this node would add to every upstream request.
    pub secrets: Vec<String>,
    #[schema(value_type = Object)]
    pub report: Report,
    pub offers: Vec<Offer>,
    pub samples: Vec<OperationSample>,
}

/// Send one request to the server of a service that is not published yet.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TryRequest {
    pub file: ServiceFile,
    /// The first that needs no parameters when absent.
    pub operation: Option<OperationName>,
    #[serde(default)]
    pub params: BTreeMap<String, String>,
}

/// `farthing api test`: one request to the server of a published service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    /// The first that reads and needs no parameters when absent.
    pub operation: Option<OperationName>,
    #[serde(default)]
    pub params: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<serde_json::Value>,
    /// A body of bytes, as base64, instead; `headers` name its `content-type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
}

impl TestRequest {
    /// The call that it stands for, if it names an operation.
    #[must_use]
    pub fn into_call(self, service: ServiceIdText) -> Option<CallRequest> {
        let Self { operation, params, headers, body, body_base64 } = self;
        let OperationName { method, path } = operation?;
        Some(CallRequest {
            api_id_public: service,
            path,
            method,
            params,
            body,
            body_base64,
            headers,
            max_price: None,
            call_id: None,
        })
    }
}

/// The server's answer to a test, and what a caller would have paid for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tested {
    #[serde(flatten)]
    pub tried: Tried,
    pub price: UsdcText,
    /// 0 where such an answer is free.
    pub would_charge: UsdcText,
}

/// The server's answer to a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tried {
    /// `GET /v1/things`
    pub operation: String,
    /// True if callers would get this as the service's answer.
    pub answered: bool,
    /// 0 when the server did not say anything.
    pub status: u16,
    /// The reason that it is no answer; empty when it is one.
    pub reason: String,
    pub took_us: u64,
    /// `public`, `LAN` or `same machine`, once it is known.
    pub upstream_class: String,
    pub media_type: String,
    /// Of the whole answer.
    pub bytes: u64,
    /// The beginning of the answer, as text.
    pub beginning: String,
}
