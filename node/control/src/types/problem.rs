//! A problem, for programs (RFC 9457).

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::UsdcText;

/// The beginning of a problem's type, before its name.
const TYPE_PREFIX: &str = "urn:farthing:problem:";

words! {
    /// The names of problems; `docs/problems.md` describes those of the gateway.
    ProblemName {
        UnknownPath = "unknown-path",
        /// A transfer whose end is not known: to repeat it may pay twice.
        MayHaveBeenMade = "may-have-been-made",
        PriceAboveCap = "price-above-cap",
        PriceChanged = "price-changed",
        SpendingStopped = "spending-stopped",
        ChainUnreachable = "chain-unreachable",
        UpstreamFailed = "upstream-failed",
        UpstreamTimeout = "upstream-timeout",
        AnswerTooLarge = "answer-too-large",
        BadAnswer = "bad-answer",
        OwnerDistrusted = "owner-distrusted",
        OwnerUnreachable = "owner-unreachable",
        ChannelNotFunded = "channel-not-funded",
        MayHaveRun = "may-have-run",
        Undecided = "undecided",
        Cancelled = "cancelled",
        Internal = "internal",
        AnswerNotRepeated = "answer-not-repeated",
        AnswerNoLongerKept = "answer-no-longer-kept",
        Unauthorized = "unauthorized",
        Malformed = "malformed",
        TooLarge = "too-large",
        NoSuchRoute = "no-such-route",
        UnknownHost = "unknown-host",
        OriginRefused = "origin-refused",
        NoRoom = "no-room",
        UnknownService = "unknown-service",
        ServiceRetired = "service-retired",
        SecretNotScoped = "secret-not-scoped",
        MethodNotAllowed = "method-not-allowed",
        BadParameter = "bad-parameter",
        OverLimit = "over-limit",
        NoCommonScheme = "no-common-scheme",
        TermsRefused = "terms-refused",
        ServiceFlagged = "service-flagged",
        CallsUndecided = "calls-undecided",
        InsufficientFunds = "insufficient-funds",
        ChannelLow = "channel-low",
        ChannelClosing = "channel-closing",
        ChannelDelayTooShort = "channel-delay-too-short",
        ChannelTooSmall = "channel-too-small",
        DepositNotSafe = "deposit-not-safe",
        LedgerClosed = "ledger-closed",
        ShuttingDown = "shutting-down",
        CallIdConflict = "call-id-conflict",
        OwnerBusy = "owner-busy",
        OwnerUnavailable = "owner-unavailable",
        OwnerCannotClaim = "owner-cannot-claim",
        OwnerBooksBehind = "owner-books-behind",
        PaymentRefused = "payment-refused",
    }
}

words! {
    /// The limits of spending that can refuse a call.
    LimitKind {
        /// The node's, for one call.
        PerCall = "per-call",
        /// The node's, for a day.
        PerDay = "per-day",
        /// The node's, for each secret in a day.
        PerSecretDay = "per-secret-day",
        /// The secret's own, for one call.
        SecretPerCall = "secret-per-call",
        /// The secret's own, for a day.
        SecretPerDay = "secret-per-day",
        /// Money in the channel with one owner.
        AtRestPerOwner = "at-rest-per-owner",
        /// Money in all channels.
        AtRest = "at-rest",
        /// Calls that fill an emptied channel again.
        Refills = "refills",
    }
}

impl ProblemName {
    /// Returns the type of a problem of this name.
    #[must_use]
    pub fn kind(self) -> String {
        format!("{TYPE_PREFIX}{self}")
    }
}

/// The reason that a request was not carried out (RFC 9457).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Last part of the problem's address, or `about:blank`.
    #[serde(rename = "type", default)]
    pub kind: String,
    #[serde(default)]
    pub title: String,
    pub status: u16,
    #[serde(default)]
    pub detail: String,
    /// A sentence about what was left undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<String>,
    /// The step to take next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charged: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Price of a call that is refused for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_usdc: Option<UsdcText>,
    /// The limit that refuses the call, of a problem [`ProblemName::OverLimit`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitKind>,
}

impl Problem {
    /// Returns the last part of its type; empty when it has none of its own.
    pub fn name(&self) -> &str {
        self.kind.strip_prefix(TYPE_PREFIX).unwrap_or_default()
    }

    pub fn is(&self, name: ProblemName) -> bool {
        self.name() == name.name()
    }

    /// Returns what was left undone and the step to take next, if either is known.
    pub fn advice(&self) -> Option<String> {
        let next = self.next.as_ref().filter(|next| !next.is_empty());
        match (&self.undone, next) {
            (Some(undone), Some(next)) => Some(format!("{undone} {next}")),
            (undone, next) => undone.as_ref().or(next).cloned(),
        }
    }

    /// A problem without a type of its own. No `next` when that is empty.
    pub fn of_status(status: StatusCode, detail: impl Into<String>, next: &str) -> Self {
        Self {
            kind: "about:blank".to_owned(),
            title: status.canonical_reason().unwrap_or_default().to_owned(),
            status: status.as_u16(),
            detail: detail.into(),
            undone: None,
            next: Some(next.to_owned()).filter(|next| !next.is_empty()),
            charged: None,
            call_id: None,
            price_usdc: None,
            limit: None,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        response
    }
}
