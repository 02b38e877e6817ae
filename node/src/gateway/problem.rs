//! What the gateway answers when the answer is the network's and not the service's (RFC 9457).
//!
//! One exhaustive match turns every way a purchase can fail into a problem. Each type has an entry in
//! `docs/problems.md`; a test compares both.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use farthing_protocol::{CallId, Outcome, Usdc};
use farthing_serve::TurnedAway;
use serde_json::{Value, json};

use crate::consumer::{BuyError, Cap, rules::Stopped};

mod refused;
mod room;

use refused::refused;

/// After which a call may find room in this node.
const ROOM_AFTER_MS: u64 = 1000;

/// The answer to the question whether money moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeStatus {
    No,
    Yes,
    /// Not known yet: the node keeps asking; repeat the call with the same call id to learn it. Nor is it known of what is
    /// refused before its call id was looked up: it may repeat a call that was charged.
    Undecided,
}

/// A problem document.
#[derive(Clone, Debug)]
pub struct Problem {
    pub status: StatusCode,
    /// The last part of the problem's type.
    pub name: &'static str,
    pub title: &'static str,
    pub detail: String,
    /// The next step for the caller.
    pub next: &'static str,
    pub charged: ChargeStatus,
    pub call_id: Option<CallId>,
    pub retry_after_secs: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, name: &'static str, title: &'static str, next: &'static str) -> Self {
        Self {
            status,
            name,
            title,
            detail: String::new(),
            next,
            charged: ChargeStatus::No,
            call_id: None,
            retry_after_secs: None,
        }
    }

    #[must_use]
    pub fn with_call_id(mut self, call_id: CallId) -> Self {
        self.call_id = Some(call_id);
        self
    }

    fn undecided(mut self) -> Self {
        self.charged = ChargeStatus::Undecided;
        self
    }

    fn detailed(mut self, detail: impl Into<String>) -> Self {
        self.detail = detail.into();
        self
    }

    /// Sets what was charged; `None` while it is not known.
    fn charging(mut self, charged: Option<Usdc>) -> Self {
        self.charged = match charged {
            None => ChargeStatus::Undecided,
            Some(charged) if charged.is_zero() => ChargeStatus::No,
            Some(_) => ChargeStatus::Yes,
        };
        self
    }

    fn retry_after(mut self, millis: Option<u64>) -> Self {
        self.retry_after_secs = millis.map(|millis| millis.div_ceil(1000).max(1));
        self
    }

    #[must_use]
    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "Missing or wrong consumer secret",
            "`farthing secret show` prints the right one; it is sent as `Authorization: Bearer <CONSUMER_SECRET>`.",
        )
        .detailed(detail)
        .undecided()
    }

    #[must_use]
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "malformed",
            "The request cannot be understood",
            "Correct the named field and send the call again.",
        )
        .detailed(detail)
    }

    #[must_use]
    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too-large",
            "The call is too large",
            "Send less, or ask the owner for an operation that takes a reference.",
        )
        .detailed(detail)
    }

    #[must_use]
    pub fn no_such_route(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "no-such-route",
            "This port has no such address",
            "Calls go to `POST /internal/call`; the port's description is at `/openapi.json`.",
        )
        .detailed(detail)
    }

    #[must_use]
    pub fn unknown_host() -> Self {
        Self::new(
            StatusCode::MISDIRECTED_REQUEST,
            "unknown-host",
            "This node is not known under that name",
            "Call `localhost` or an IP address, or add the name to `gateway.hosts`.",
        )
        .detailed("the request names a host that is neither an address nor a name of this node")
    }

    #[must_use]
    pub fn origin_refused() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "origin-refused",
            "Web pages cannot call this port",
            "Call from a script or a server; a page asks its own server, which then calls.",
        )
        .detailed("the request has the header `Origin`, which browsers add for web pages")
        .undecided()
    }

    #[must_use]
    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "The node failed",
            "The node's log says more; repeat the call with the same call_id, it is never charged twice.",
        )
        .detailed(detail)
        .undecided()
    }

    /// The document itself.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let charged = match self.charged {
            ChargeStatus::No => json!(false),
            ChargeStatus::Yes => json!(true),
            ChargeStatus::Undecided => Value::Null,
        };
        let mut document = json!({
            "type": format!("urn:farthing:problem:{}", self.name),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "next": self.next,
            "charged": charged,
        });
        if let Some(call_id) = self.call_id {
            document["call_id"] = json!(call_id.to_string());
        }
        document
    }
}

/// Answers what a port turns away before the gateway sees it.
#[must_use]
pub fn turned_away(what: TurnedAway) -> Response {
    match what {
        TurnedAway::UnknownHost => Problem::unknown_host(),
        TurnedAway::FromWebPage => Problem::origin_refused(),
        TurnedAway::NoRoom => Problem::no_room(),
    }
    .into_response()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = self.to_json().to_string();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some(secs) = self.retry_after_secs {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(secs));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"farthing\""));
        }
        if let Some(call_id) = self.call_id.and_then(|id| HeaderValue::from_str(&id.to_string()).ok()) {
            headers.insert("x-farthing-call-id", call_id);
        }
        let charged = match self.charged {
            ChargeStatus::No => "0.00",
            ChargeStatus::Yes => "yes",
            ChargeStatus::Undecided => "undecided",
        };
        headers.insert("x-farthing-charged", HeaderValue::from_static(charged));
        response
    }
}

impl From<&BuyError> for Problem {
    fn from(error: &BuyError) -> Self {
        let problem = match error {
            BuyError::UnknownService(_) => Self::new(
                StatusCode::NOT_FOUND,
                "unknown-service",
                "No node knows this service",
                "Check api_id_public; if the service is new, its owner may be offline.",
            ),
            BuyError::Retired { .. } => Self::new(
                StatusCode::GONE,
                "service-retired",
                "The owner has retired this service",
                "Look for another one with `farthing catalog search`.",
            ),
            BuyError::DetailsUnavailable { .. } | BuyError::OwnerUnreachable(_) => Self::new(
                StatusCode::BAD_GATEWAY,
                "owner-unreachable",
                "The owner cannot be reached",
                "Try again later; nothing was sent.",
            ),
            BuyError::NotScoped { .. } => Self::new(
                StatusCode::FORBIDDEN,
                "secret-not-scoped",
                "The secret is not made for this service",
                "Use a secret that is, or add the service with `farthing secret limit`.",
            )
            .undecided(),
            BuyError::UnknownPath(_) => Self::new(
                StatusCode::NOT_FOUND,
                "unknown-path",
                "The service has no such path",
                "Use a path of the service's description.",
            ),
            BuyError::MethodNotAllowed(_) => Self::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method-not-allowed",
                "The path has no such method",
                "Use a method of the service's description.",
            ),
            BuyError::BadParameter(_) => Self::new(
                StatusCode::BAD_REQUEST,
                "bad-parameter",
                "A parameter is missing, unknown or malformed",
                "Correct the named parameter and send the call again.",
            ),
            BuyError::OutOfBounds(_) => Self::too_large(""),
            BuyError::AboveMaxPrice { .. } => payment(
                "price-above-cap",
                "The price is above the caller's limit",
                "Raise `max_price` in the call, or leave it out.",
            ),
            BuyError::OverLimit(_) => payment(
                "over-limit",
                "A spending limit of this node is reached",
                "`farthing spending show` shows the limits, `farthing secret list` those of secrets.",
            ),
            BuyError::NoCommonScheme { .. } => payment(
                "no-common-scheme",
                "The owner accepts no way of payment that this node has",
                "Compare the listing's `accepts` with this node's chain in `farthing status`.",
            ),
            BuyError::TermsRefused(_) => payment(
                "terms-refused",
                "The owner asks for more than this node puts aside",
                "Look for another service with `farthing catalog search`, or raise the setting that is named.",
            ),
            BuyError::Flagged { refused, .. } => payment(
                "service-flagged",
                "The service is flagged, and a rule stops buying from it",
                "Look for another service with `farthing catalog search`, or buy it all the same with \
                 `farthing spending flagged SERVICE --rule warn` or on the console's page Limits.",
            )
            .retry_after(Some(refused.wait_secs.saturating_mul(1_000))),
            BuyError::Unfunded { .. } => payment(
                "insufficient-funds",
                "The wallet has not enough funds",
                "Send what is missing to the wallet's address; `farthing wallet balance` shows when it arrived.",
            ),
            BuyError::ChannelLow { .. } => payment(
                "channel-low",
                "The channel's deposit is used up",
                "A top-up is made in the background when the wallet has funds; try again in a moment.",
            )
            .retry_after(Some(3_000)),
            BuyError::ChannelClosing => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "channel-closing",
                "The channel with this owner is being closed",
                "Try again when `farthing channel list` shows it closed; a new call reopens it.",
            ),
            BuyError::DelayTooShort { .. } => payment(
                "channel-delay-too-short",
                "The channel can be withdrawn sooner than the owner allows",
                "Close it with `farthing channel close`; the next call opens one with the listed delay.",
            ),
            BuyError::OwnerDistrusted => Self::new(
                StatusCode::BAD_GATEWAY,
                "owner-distrusted",
                "The owner's books contradict its receipts",
                "Nothing more is promised to this owner: `farthing channel close` takes the deposit back, and then \
                 `farthing channel resume` buys from it again.",
            ),
            BuyError::ChainNotReady(_) => unavailable(
                "chain-unreachable",
                "The chain cannot be reached",
                "Paid calls resume by themselves; `farthing doctor` checks the endpoints.",
            ),
            BuyError::OpenFailed(_) => unavailable(
                "channel-not-funded",
                "The payment channel could not be opened",
                "See the reason above; `farthing doctor` checks wallet and chain.",
            ),
            BuyError::LedgerClosed(_) => unavailable(
                "ledger-closed",
                "The node cannot store what it would have to promise",
                "Free disk space or repair the disk, then restart the node.",
            ),
            BuyError::NotStored(_) => unavailable(
                "ledger-closed",
                "The node cannot store what it promised",
                "Free disk space or repair the disk, restart the node, then repeat the call with the same call_id.",
            )
            .undecided(),
            BuyError::SpendingStopped(stopped) => unavailable(
                "spending-stopped",
                "Spending is stopped",
                match stopped {
                    Stopped::Since(_) => "`farthing spending resume` or the console's Finance page lifts it.",
                    Stopped::ByConfiguration => "Set `spending.enabled = true` and restart the node.",
                },
            ),
            BuyError::Failed => Self::internal(""),
            BuyError::ShuttingDown => unavailable(
                "shutting-down",
                "The node is shutting down",
                "Try again when it is back.",
            ),
            BuyError::PriceChanged { cap, .. } => Self::new(
                StatusCode::CONFLICT,
                "price-changed",
                "The price has changed",
                match cap {
                    None => {
                        "Name the new price in the call's `max_price`, or accept it for all calls with \
                         `farthing spending accept` or on the console's page Limits."
                    }
                    Some(Cap::MaxPrice(_)) => "Raise `max_price` to the new price.",
                    Some(Cap::Limit(_)) => {
                        "Raise that limit with `farthing spending limits`, then name the new price in the call's \
                         `max_price`, or accept it with `farthing spending accept`."
                    }
                },
            ),
            BuyError::CallIdConflict => Self::new(
                StatusCode::CONFLICT,
                "call-id-conflict",
                "This call id was used for another call",
                "Use a new call_id (or Idempotency-Key) for a different call.",
            ),
            BuyError::Busy(_) | BuyError::ShareUsed { .. } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "owner-busy",
                "Too much is under way",
                "Wait as Retry-After says, then send the call again; nothing was sent.",
            )
            .retry_after(Some(error.share_wait_ms().unwrap_or(ROOM_AFTER_MS))),
            BuyError::Refused(refusal) => refused(refusal.code).retry_after(refusal.retry_after_ms),
            BuyError::UpstreamFailed { outcome: Outcome::TimedOut, .. } => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                "upstream-timeout",
                "The service took too long",
                "Try again; the owner is not paid for this.",
            ),
            BuyError::UpstreamFailed { .. } => Self::new(
                StatusCode::BAD_GATEWAY,
                "upstream-failed",
                "The service behind the owner's node failed",
                "Try again later; the owner is not paid for this.",
            ),
            BuyError::BadAnswer { charged, .. } => Self::new(
                StatusCode::BAD_GATEWAY,
                "bad-answer",
                "The owner's answer does not match its receipt",
                "Nothing more is promised to this owner; its deposit is being taken back.",
            )
            .charging(*charged),
            BuyError::BodyGone { charged } => Self::new(
                StatusCode::CONFLICT,
                "answer-no-longer-kept",
                "The call is done and its answer is no longer kept",
                "Repeat the call with the same call_id: it is never charged twice. When that brings no answer either, a new call_id buys \
                 it again.",
            )
            .charging(Some(*charged)),
            BuyError::NotRepeated { charged, .. } => unavailable(
                "answer-not-repeated",
                "The call is done and its answer cannot be had now",
                "Repeat the call with the same call_id later: it is never charged twice.",
            )
            .charging(Some(*charged)),
            BuyError::Undecided(_) => Self::new(
                StatusCode::GATEWAY_TIMEOUT,
                "undecided",
                "The call's end is not known yet",
                "Repeat the call with the same call_id: it is never charged twice.",
            )
            .undecided(),
        };
        problem.detailed(error.to_string())
    }
}

fn payment(name: &'static str, title: &'static str, next: &'static str) -> Problem {
    Problem::new(StatusCode::PAYMENT_REQUIRED, name, title, next)
}

fn unavailable(name: &'static str, title: &'static str, next: &'static str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, name, title, next)
}

#[cfg(test)]
mod tests;
