//! The answers that are the network's and not the service's (RFC 9457); `docs/problems.md` lists them.

use serde_json::{Value, json};

use super::Version;

pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// An answer that any operation can have.
pub(super) struct Failure {
    pub(super) status: u16,
    /// Its name among the components.
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// [`MEDIA_TYPE`] or plain text.
    pub(super) media_type: &'static str,
}

const fn failure(status: u16, name: &'static str, description: &'static str) -> Failure {
    Failure { status, name, description, media_type: MEDIA_TYPE }
}

/// Said before the request is read, in plain words.
const fn plain(status: u16, name: &'static str, description: &'static str) -> Failure {
    Failure { status, name, description, media_type: "text/plain" }
}

/// Without the consumer's secret nothing is bought.
pub(super) const UNAUTHORIZED: Failure =
    failure(401, "Unauthorized", "The consumer secret is missing or wrong. This request is not charged.");

/// The forms of all failures, for an answer that stands for many statuses.
pub(super) const ANY_FAILURE: [Failure; 2] = [
    failure(0, "", "The network's own answer; `detail` says what was wrong."),
    plain(0, "", "The same in plain words, if the request could not be read."),
];

/// By status.
pub(super) const FAILURES: [Failure; 12] = [
    failure(
        400,
        "BadRequest",
        "A parameter or the body does not match the description; `detail` names it. Not charged.",
    ),
    failure(
        402,
        "PaymentRequired",
        "The caller's node did not pay because of its limits or funds. Not charged.",
    ),
    failure(404, "NotFound", "The service or what was asked for does not exist."),
    failure(409, "Conflict", "The price has changed, or the call id was used for another call."),
    failure(413, "ContentTooLarge", "The call is larger than allowed. Not charged."),
    plain(
        414,
        "UriTooLong",
        "The address is too long; `POST /internal/call` accepts longer ones. Not charged.",
    ),
    failure(429, "TooManyRequests", "Too many calls; `Retry-After` says when to try again. Not charged."),
    plain(431, "HeadersTooLarge", "There are too many headers, or they are too long. Not charged."),
    failure(
        500,
        "InternalError",
        "The node failed. If you repeat the call with the same call id, it is charged once.",
    ),
    failure(502, "BadGateway", "The owner's node or the service behind it failed."),
    failure(503, "Unavailable", "The caller's node cannot buy at the moment; `next` says what to do."),
    failure(
        504,
        "GatewayTimeout",
        "No answer in time, or the result is not known yet. If you repeat the call with the same call id, it is \
         charged once.",
    ),
];

pub(super) fn schema(version: Version) -> Value {
    let charged = match version {
        Version::V31 => json!({ "type": ["boolean", "null"] }),
        Version::V30 => json!({ "type": "boolean", "nullable": true }),
    };
    let mut schema = json!({
        "type": "object",
        "description": "The network's answer when the service gives none.",
        "required": ["type", "title", "status"],
        "properties": {
            "type": { "type": "string", "description": "Such as `urn:farthing:problem:bad-parameter`." },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string", "description": "The problem with this call." },
            "next": { "type": "string", "description": "The next step." },
            "charged": charged,
            "call_id": { "type": "string" },
        },
    });
    schema["properties"]["charged"]["description"] =
        "True if the call was charged; null while this is not known.".into();
    schema
}
