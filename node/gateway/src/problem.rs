//! Problems that the gateway answers when the answer is the network's and not the service's (RFC 9457).
//!
//! One exhaustive match turns every way a purchase can fail into a problem. Each type has an entry in
//! `docs/problems.md`; a test compares both.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use farthing_control::types::{
    CHARGED_UNDECIDED, CancelStage, HEADER_CALL_ID, HEADER_CHARGED, LimitKind, ProblemName as Name,
};
use farthing_discovery::{CatalogError, PlanError};
use farthing_node::consumer::{BuyError, Cap, ForeignError, Unanswered, spending::OverLimit};
use farthing_protocol::{CallId, Usdc};
use farthing_serve::TurnedAway;
use serde_json::{Value, json};

mod refused;
mod room;

use refused::refused;

/// After which a call may find room in this node.
const ROOM_AFTER_MS: u64 = 1000;

/// Statuses under short names: each way to fail is one row.
const BAD_GATEWAY: StatusCode = StatusCode::BAD_GATEWAY;
const BAD_REQUEST: StatusCode = StatusCode::BAD_REQUEST;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const NO_METHOD: StatusCode = StatusCode::METHOD_NOT_ALLOWED;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;
const TOO_LARGE: StatusCode = StatusCode::PAYLOAD_TOO_LARGE;
const PAYMENT: StatusCode = StatusCode::PAYMENT_REQUIRED;
const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
const BUSY: StatusCode = StatusCode::TOO_MANY_REQUESTS;

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
    pub name: Name,
    pub title: &'static str,
    pub detail: String,
    /// The next step for the caller.
    pub next: &'static str,
    pub charged: ChargeStatus,
    pub call_id: Option<CallId>,
    /// Price of a call that is refused for it.
    pub price: Option<Usdc>,
    /// The limit that refuses a call.
    pub limit: Option<LimitKind>,
    pub retry_after_secs: Option<u64>,
}

impl Problem {
    fn new(status: StatusCode, name: Name, title: &'static str, next: &'static str) -> Self {
        Self {
            status,
            name,
            title,
            detail: String::new(),
            next,
            charged: ChargeStatus::No,
            call_id: None,
            price: None,
            limit: None,
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

    fn costing(mut self, price: Usdc) -> Self {
        self.price = Some(price);
        self
    }

    fn retry_after(mut self, millis: Option<u64>) -> Self {
        self.retry_after_secs = millis.map(|millis| millis.div_ceil(1000).max(1));
        self
    }

    pub fn unauthorized(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            Name::Unauthorized,
            "Missing or wrong consumer secret",
            "`farthing secret show` prints the secret; send it as `Authorization: Bearer <CONSUMER_SECRET>`.",
        )
        .detailed(detail)
        .undecided()
    }

    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            Name::Malformed,
            "The request is not valid",
            "Correct the named field and send the call again.",
        )
        .detailed(detail)
    }

    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            Name::TooLarge,
            "The call is too large",
            "Send less, or ask the owner for an operation that takes a reference.",
        )
        .detailed(detail)
    }

    pub fn no_such_route(detail: impl Into<String>) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            Name::NoSuchRoute,
            "This port has no such address",
            "Calls go to `POST /internal/call`; the port's description is at `/openapi.json`.",
        )
        .detailed(detail)
    }

    pub fn unknown_host() -> Self {
        Self::new(
            StatusCode::MISDIRECTED_REQUEST,
            Name::UnknownHost,
            "This node does not have this name",
            "Call `localhost` or an IP address, or add the name to `gateway.hosts`.",
        )
        .detailed("the request's host is neither an IP address nor a name of this node")
    }

    pub fn origin_refused() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            Name::OriginRefused,
            "Web pages cannot call this port",
            "Call from a script or a server. A web page can ask its own server to make the call.",
        )
        .detailed("the request has the header `Origin`, which browsers add for web pages")
        .undecided()
    }

    /// The document itself.
    pub fn to_json(&self) -> Value {
        let charged = match self.charged {
            ChargeStatus::No => json!(false),
            ChargeStatus::Yes => json!(true),
            ChargeStatus::Undecided => Value::Null,
        };
        let mut document = json!({
            "type": self.name.kind(),
            "title": self.title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "next": self.next,
            "charged": charged,
        });
        if let Some(call_id) = self.call_id {
            document["call_id"] = json!(call_id.to_string());
        }
        if let Some(price) = self.price {
            document["price_usdc"] = json!(price.to_string());
        }
        if let Some(limit) = self.limit {
            document["limit"] = json!(limit);
        }
        document
    }
}

/// Answers what a port turns away before the gateway sees it.
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
            headers.insert(HEADER_CALL_ID, call_id);
        }
        let charged = match self.charged {
            ChargeStatus::No => "0.00",
            ChargeStatus::Yes => "yes",
            ChargeStatus::Undecided => CHARGED_UNDECIDED,
        };
        headers.insert(HEADER_CHARGED, HeaderValue::from_static(charged));
        response
    }
}

impl From<&BuyError> for Problem {
    fn from(error: &BuyError) -> Self {
        let (status, name, title) = match error {
            BuyError::Service(CatalogError::Unknown(_) | CatalogError::NotKept { .. }) => {
                (NOT_FOUND, Name::UnknownService, "No node knows this service")
            }
            BuyError::Service(CatalogError::Retired { .. }) => {
                (StatusCode::GONE, Name::ServiceRetired, "The owner has retired this service")
            }
            BuyError::Service(CatalogError::DetailsUnavailable { .. }) => {
                (BAD_GATEWAY, Name::OwnerUnreachable, "The details of the service are not available")
            }
            BuyError::OwnerUnreachable(_) => {
                (BAD_GATEWAY, Name::OwnerUnreachable, "The owner cannot be reached")
            }
            BuyError::BooksUnseen(_) => (
                BAD_GATEWAY,
                Name::OwnerUnreachable,
                "The owner's ledger does not agree with yours, or the owner does \
                                                    not show it",
            ),
            BuyError::Service(CatalogError::NoMemory(_)) => {
                (UNAVAILABLE, Name::NoRoom, "This node holds too much")
            }
            BuyError::NotScoped { .. } => {
                (StatusCode::FORBIDDEN, Name::SecretNotScoped, "The secret does not allow this service")
            }
            BuyError::Plan(PlanError::UnknownPath(_)) => {
                (NOT_FOUND, Name::UnknownPath, "The service has no such path")
            }
            BuyError::Plan(PlanError::MethodNotAllowed(_)) => {
                (NO_METHOD, Name::MethodNotAllowed, "The path has no such method")
            }
            BuyError::Plan(PlanError::BadParameter(_)) => {
                (BAD_REQUEST, Name::BadParameter, "A parameter is missing, unknown or malformed")
            }
            BuyError::OutOfBounds(_) => (TOO_LARGE, Name::TooLarge, "The call is too large"),
            BuyError::AboveMaxPrice { .. } => {
                (PAYMENT, Name::PriceAboveCap, "The price is above the caller's limit")
            }
            BuyError::OverLimit(_) => (PAYMENT, Name::OverLimit, "A spending limit of this node is reached"),
            BuyError::NoCommonScheme { .. } => {
                (PAYMENT, Name::NoCommonScheme, "The owner accepts no way of payment that this node has")
            }
            BuyError::TermsRefused(_) => (
                PAYMENT,
                Name::TermsRefused,
                "The owner asks for a larger or longer deposit than this node allows",
            ),
            BuyError::Flagged { .. } => {
                (PAYMENT, Name::ServiceFlagged, "The service is flagged and your rule stops calls to it")
            }
            BuyError::TooMuchUndecided(_) => {
                (UNAVAILABLE, Name::CallsUndecided, "The owner has not reported how earlier calls ended")
            }
            BuyError::Unfunded { .. } => {
                (PAYMENT, Name::InsufficientFunds, "The wallet has not enough funds")
            }
            BuyError::ChannelLow { .. } => (PAYMENT, Name::ChannelLow, "The channel's deposit is used up"),
            BuyError::ChannelClosing | BuyError::CloseAwaited { .. } => {
                (UNAVAILABLE, Name::ChannelClosing, "The channel with this owner is being closed")
            }
            BuyError::DelayTooShort { .. } => (
                PAYMENT,
                Name::ChannelDelayTooShort,
                "The channel can be withdrawn sooner than the owner allows",
            ),
            BuyError::OwnerDistrusted => {
                (BAD_GATEWAY, Name::OwnerDistrusted, "The owner's ledger contradicts its receipts")
            }
            BuyError::ChainNotReady(_) | BuyError::ChainUnreachable(_) => {
                (UNAVAILABLE, Name::ChainUnreachable, "The chain cannot be reached")
            }
            BuyError::TimeUp(_) => {
                (UNAVAILABLE, Name::ChannelNotFunded, "The payment channel was not ready in time")
            }
            BuyError::OpenFailed(_) | BuyError::DepositPending(_) | BuyError::Unsigned(_) => {
                (UNAVAILABLE, Name::ChannelNotFunded, "The payment channel could not be opened")
            }
            BuyError::Ledger(error) if !error.is_failure() => {
                (UNAVAILABLE, Name::LedgerClosed, "The node's ledger refuses the promise")
            }
            BuyError::Ledger(_) | BuyError::Service(CatalogError::Store(_)) => {
                (UNAVAILABLE, Name::LedgerClosed, "The node cannot store the promise")
            }
            BuyError::Unread(_) => {
                (UNAVAILABLE, Name::LedgerClosed, "The node cannot read its record of the call")
            }
            BuyError::NotStored(error) if error.is_failure() => {
                (UNAVAILABLE, Name::LedgerClosed, "The node cannot store its promise")
            }
            BuyError::SpendingStopped(_) => (UNAVAILABLE, Name::SpendingStopped, "Spending is stopped"),
            BuyError::Failed | BuyError::Service(CatalogError::NotRead(_)) => {
                (StatusCode::INTERNAL_SERVER_ERROR, Name::Internal, "The node failed")
            }
            BuyError::ShuttingDown => (UNAVAILABLE, Name::ShuttingDown, "The node is shutting down"),
            BuyError::Cancelled(_) => (CONFLICT, Name::Cancelled, "The call was cancelled at this node"),
            BuyError::PriceChanged { .. } | BuyError::DeclinedCharged { .. } => {
                (CONFLICT, Name::PriceChanged, "The price has changed")
            }
            BuyError::CallIdConflict => {
                (CONFLICT, Name::CallIdConflict, "This call id was used for another call")
            }
            BuyError::CallIdOfAnother => {
                (CONFLICT, Name::CallIdConflict, "This call id belongs to a call of another secret")
            }
            BuyError::Busy(_) | BuyError::ShareUsed { .. } => {
                (BUSY, Name::OwnerBusy, "Too many calls are under way")
            }
            BuyError::Refused(refusal) => refused(refusal.code),
            BuyError::UpstreamFailed { why: Unanswered::TimedOut, .. } => {
                (StatusCode::GATEWAY_TIMEOUT, Name::UpstreamTimeout, "The service took too long")
            }
            BuyError::UpstreamFailed { why: Unanswered::Oversize, .. } => {
                (BAD_GATEWAY, Name::AnswerTooLarge, "The service's answer is too large")
            }
            BuyError::UpstreamFailed { .. } => {
                (BAD_GATEWAY, Name::UpstreamFailed, "The service behind the owner's node failed")
            }
            BuyError::BadAnswer { .. } => {
                (BAD_GATEWAY, Name::BadAnswer, "The owner's answer does not match its receipt")
            }
            BuyError::BodyGone { .. } => {
                (CONFLICT, Name::AnswerNoLongerKept, "The call is done and its answer is no longer kept")
            }
            BuyError::NotRepeated { .. } => {
                (UNAVAILABLE, Name::AnswerNotRepeated, "The call is done and its answer is not available now")
            }
            BuyError::Foreign(error) => foreign(error),
            BuyError::Undecided(_) | BuyError::NotStored(_) => {
                (StatusCode::GATEWAY_TIMEOUT, Name::Undecided, "It is not known yet how the call ended")
            }
        };
        let problem = Self::new(status, name, title, error.next_step()).detailed(error.to_string());
        match error {
            BuyError::NotScoped { .. }
            | BuyError::Unread(_)
            | BuyError::NotStored(_)
            | BuyError::Failed
            | BuyError::Service(CatalogError::NotRead(_))
            | BuyError::Undecided(_)
            | BuyError::Cancelled(CancelStage::Promised)
            | BuyError::Foreign(ForeignError::Open { .. } | ForeignError::Elsewhere { .. }) => {
                problem.undecided()
            }
            BuyError::BadAnswer { charged, .. } => problem.charging(*charged),
            BuyError::BodyGone { charged }
            | BuyError::NotRepeated { charged, .. }
            | BuyError::Foreign(ForeignError::Withheld { charged, .. }) => problem.charging(Some(*charged)),
            BuyError::AboveMaxPrice { price, .. }
            | BuyError::Foreign(ForeignError::AboveMaxPrice { price, .. })
            | BuyError::DeclinedCharged { price } => problem.costing(*price),
            BuyError::PriceChanged { now, cap, .. } => {
                let limit = match cap {
                    Some(Cap::Limit(over)) => Some(kind_of(over)),
                    Some(Cap::MaxPrice(_)) | None => None,
                };
                Self { limit, ..problem.costing(*now) }
            }
            BuyError::OverLimit(over) => Self { limit: Some(kind_of(over)), ..problem },
            BuyError::Flagged { refused, .. } => {
                problem.retry_after(Some(refused.wait_secs.saturating_mul(1_000)))
            }
            BuyError::TooMuchUndecided(refused) => {
                problem.retry_after(Some(refused.wait_secs().saturating_mul(1_000)))
            }
            BuyError::ChannelLow { .. } => problem.retry_after(Some(3_000)),
            BuyError::CloseAwaited { close, .. } => {
                problem.retry_after(Some(close.wait_secs().saturating_mul(1_000)))
            }
            BuyError::Busy(_) | BuyError::ShareUsed { .. } => {
                problem.retry_after(Some(error.share_wait_ms().unwrap_or(ROOM_AFTER_MS)))
            }
            // An earlier request of this call may have been charged: an address's service is read before its call id is looked up.
            BuyError::Service(CatalogError::NoMemory(_)) => {
                problem.retry_after(Some(ROOM_AFTER_MS)).undecided()
            }
            BuyError::Refused(refusal) => problem.retry_after(refusal.retry_after_ms),
            _ => problem,
        }
    }
}

const fn kind_of(over: &OverLimit) -> LimitKind {
    match over {
        OverLimit::Price { .. } => LimitKind::PerCall,
        OverLimit::SecretPrice { .. } => LimitKind::SecretPerCall,
        OverLimit::Day { .. } => LimitKind::PerDay,
        OverLimit::SecretDay { .. } => LimitKind::PerSecretDay,
        OverLimit::SecretBudget { .. } => LimitKind::SecretPerDay,
        OverLimit::RestOfOwner { .. } => LimitKind::AtRestPerOwner,
        OverLimit::Rest { .. } => LimitKind::AtRest,
        OverLimit::Refilled { .. } | OverLimit::ClosedUnasked { .. } => LimitKind::Refills,
    }
}

/// A call of an x402 server.
const fn foreign(error: &ForeignError) -> (StatusCode, Name, &'static str) {
    match error {
        ForeignError::Removed(_) => {
            (NOT_FOUND, Name::UnknownService, "This x402 server was removed from the node")
        }
        ForeignError::NoMaxPrice => (PAYMENT, Name::PriceAboveCap, "The call names no highest price"),
        ForeignError::AboveMaxPrice { .. } => {
            (PAYMENT, Name::PriceAboveCap, "The price is above the caller's limit")
        }
        ForeignError::AboveServerPrice { .. } => {
            (PAYMENT, Name::PriceAboveCap, "The call costs more than you allow this server")
        }
        ForeignError::Path => (NOT_FOUND, Name::UnknownPath, "The service has no such path"),
        ForeignError::BadPath(_) => {
            (BAD_REQUEST, Name::BadParameter, "A parameter is missing, unknown or malformed")
        }
        ForeignError::Unreachable(_) => {
            (BAD_GATEWAY, Name::OwnerUnreachable, "The x402 server does not answer")
        }
        ForeignError::Plain => (PAYMENT, Name::NoCommonScheme, "The x402 server has no HTTPS address"),
        ForeignError::Late => {
            (BAD_GATEWAY, Name::OwnerUnreachable, "The x402 server named its price too late")
        }
        ForeignError::Offer(_) => {
            (PAYMENT, Name::NoCommonScheme, "The x402 server accepts no way of payment that this node has")
        }
        ForeignError::Unfunded { .. } => {
            (PAYMENT, Name::InsufficientFunds, "The wallet has not enough funds")
        }
        ForeignError::Clocks { .. } => {
            (UNAVAILABLE, Name::ChainUnreachable, "The chain and this machine disagree on the time")
        }
        ForeignError::Lapsed => {
            (CONFLICT, Name::CallIdConflict, "The payment of this call id was never taken")
        }
        ForeignError::Open { .. } => (
            StatusCode::GATEWAY_TIMEOUT,
            Name::Undecided,
            "It is not known yet whether the payment was taken",
        ),
        ForeignError::Elsewhere { .. } => (
            StatusCode::GATEWAY_TIMEOUT,
            Name::Undecided,
            "The payment is in another token than the settings name",
        ),
        ForeignError::Withheld { .. } => {
            (CONFLICT, Name::AnswerNoLongerKept, "The call is paid, and the server gives no answer")
        }
    }
}

#[cfg(test)]
mod tests;
