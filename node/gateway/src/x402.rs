//! The port of x402 clients: a call comes with its own payment, and its answer or its terms go out.
//!
//! `/{service id}/{path}` is a path of the service. The same answer of status 402 serves both versions: version 2 reads its
//! header, and version 1 its body. `/.well-known/x402` lists what is for sale, and costs nothing.

use std::{collections::BTreeMap, time::Duration};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Request, State, rejection::BytesRejection},
    http::{HeaderMap, HeaderName, HeaderValue, Method as HttpMethod, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{any, get},
};
use farthing_bridge::headers::answer_header_is_forbidden;
use farthing_control::types::{HEADER_CALL_ID, HEADER_CHARGED, HEADER_PRICE};
use farthing_node::handles::Handles;
use farthing_owner::{
    registry::Registry,
    x402::{DoorAnswer, DoorCall, SoldAnswer, X402Sales},
};
use farthing_protocol::{Address, Outcome, Refusal, RefusalCode, ServiceId, Usdc, call::Method};
use farthing_x402::{InvalidPayment, Malformed, ReceivedPayment, SettlementTold, Terms, Version, read};
use serde_json::{Value, json};

use super::SERVICE_REQUEST_BYTES_MAX;

const REQUIRED: HeaderName = HeaderName::from_static("payment-required");
/// The headers of a payment and of the word on it, in versions 2 and 1.
const PAYMENT: [HeaderName; 2] =
    [HeaderName::from_static("payment-signature"), HeaderName::from_static("x-payment")];
const RESPONSE: [HeaderName; 2] =
    [HeaderName::from_static("payment-response"), HeaderName::from_static("x-payment-response")];

/// Web pages of any origin may buy: nothing here rests on who asks. Clients send `Access-Control-Expose-Headers` with a
/// request, so that it has to be allowed.
const CROSS_ORIGIN: [(HeaderName, &str); 5] = [
    (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
    (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, POST, PUT, PATCH, DELETE"),
    (
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        "accept, accept-language, content-type, payment-signature, x-payment, access-control-expose-headers, *",
    ),
    (
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        "payment-required, payment-response, x-payment-response, x-farthing-call-id, x-farthing-charged, *",
    ),
    (header::ACCESS_CONTROL_MAX_AGE, "86400"),
];

/// Operations that the list names.
const LISTED_MAX: usize = 1_000;
/// The time after which a client asks again for an answer whose payment is under way.
const PENDING: Duration = Duration::from_secs(5);

/// The parts that this port serves from.
#[derive(Clone, Debug)]
pub struct Door {
    sales: X402Sales,
    registry: Registry,
    /// Without a slash at its end.
    url: String,
    chain_id: u64,
}

impl Door {
    /// The port of a running node.
    pub fn of(node: &Handles) -> Self {
        Self {
            sales: node.owner.x402().clone(),
            registry: node.registry.clone(),
            url: node.x402_url().unwrap_or_default(),
            chain_id: node.chain.spec().chain_id,
        }
    }
}

/// The routes of this port.
pub fn router(door: Door) -> Router {
    Router::new()
        .route("/.well-known/x402", get(for_sale))
        .route("/{id}/{*path}", any(sell))
        .fallback(|| async {
            said_no(StatusCode::NOT_FOUND, "not_found", "there is nothing at this address")
        })
        .layer(DefaultBodyLimit::max(SERVICE_REQUEST_BYTES_MAX))
        .layer(middleware::from_fn(across_origins))
        .with_state(door)
}

async fn across_origins(request: Request, next: Next) -> Response {
    let mut response = if request.method() == HttpMethod::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    for (name, value) in CROSS_ORIGIN {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn for_sale(State(door): State<Door>) -> Json<Value> {
    let services = door.registry.all();
    let offered = services.iter().filter(|service| !service.listing().paused).flat_map(|service| {
        let address = format!("{}/{}", door.url, service.listing().service);
        let paid = service.known().operations().filter(|(_, price)| !price.is_zero());
        paid.map(move |(operation, _)| format!("{address}{}", operation.path))
    });
    let resources: Vec<String> = offered.take(LISTED_MAX).collect();
    Json(json!({ "version": 1, "resources": resources }))
}

async fn sell(
    State(door): State<Door>,
    method: HttpMethod,
    uri: Uri,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return said_no(rejection.status(), "invalid_request", &rejection.body_text()),
    };
    let payment = match payment_of(&headers) {
        Ok(payment) => payment,
        Err(malformed) => {
            return said_no(StatusCode::BAD_REQUEST, "invalid_payload", &malformed.to_string());
        }
    };
    let call = match call_of(&method, &uri, &headers, body) {
        Ok(call) => call,
        Err(detail) => return said_no(StatusCode::BAD_REQUEST, "invalid_request", &detail),
    };
    let version = payment.as_ref().map_or(Version::Two, |payment| payment.version);
    let told = PaymentReader { version, chain_id: door.chain_id };
    match door.sales.sell(call, payment).await {
        DoorAnswer::Due { terms, invalid } => {
            due(&terms, invalid.as_ref(), &format!("{}{}", door.url, uri.path()))
        }
        DoorAnswer::Refused(refusal) => refused(&refusal),
        DoorAnswer::Said(answer) => told.answer(answer),
        DoorAnswer::Failed(outcome) => failed(outcome),
        DoorAnswer::Unpaid { payer, reason } => told.unpaid(payer, reason.as_deref()),
    }
}

/// The payment of a request, in whichever version it is.
fn payment_of(headers: &HeaderMap) -> Result<Option<ReceivedPayment>, Malformed> {
    let versions = [Version::Two, Version::One].into_iter().zip(PAYMENT);
    let mut sent = versions.filter_map(|(version, name)| Some((version, headers.get(name)?)));
    sent.next().map(|(version, header)| read(version, header.as_bytes())).transpose()
}

fn call_of(method: &HttpMethod, uri: &Uri, headers: &HeaderMap, body: Bytes) -> Result<DoorCall, String> {
    // The path as it was written: what its escapes mean is the bridge's to say.
    let mut parts = uri.path().splitn(3, '/').skip(1);
    let service: ServiceId =
        parts.next().unwrap_or_default().parse().map_err(|error| format!("the address: {error}"))?;
    let path = format!("/{}", parts.next().unwrap_or_default());
    let method: Method = method.as_str().parse().map_err(|error| format!("{error}"))?;
    let texts = headers.iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    let mut named = BTreeMap::new();
    for (name, value) in texts {
        named.entry(name).or_insert(value);
    }
    let query = uri.query().unwrap_or_default().to_owned();
    Ok(DoorCall { service, method, path, query, headers: named, body })
}

/// The terms of a call, and the reason that what came does not pay it.
fn due(terms: &Terms, invalid: Option<&InvalidPayment>, resource: &str) -> Response {
    let error = invalid.map_or("Payment required", InvalidPayment::code);
    let mut body = terms.required_body(resource, error);
    if let Some(invalid) = invalid {
        body["detail"] = invalid.to_string().into();
    }
    let mut response = (StatusCode::PAYMENT_REQUIRED, Json(body)).into_response();
    insert(&mut response, REQUIRED, &terms.required_header(resource, error));
    insert(&mut response, header::CACHE_CONTROL, "no-store");
    response
}

/// An answer that is not the service's.
fn said_no(status: StatusCode, error: &str, detail: &str) -> Response {
    let mut response = (status, Json(json!({ "error": error, "detail": detail }))).into_response();
    insert(&mut response, header::CACHE_CONTROL, "no-store");
    response
}

fn refused(refusal: &Refusal) -> Response {
    let mut response = said_no(status_of(refusal.code), refusal.code.name(), &refusal.detail);
    if let Some(wait_ms) = refusal.retry_after_ms {
        insert(&mut response, header::RETRY_AFTER, &wait_ms.div_ceil(1_000).to_string());
    }
    response
}

const fn status_of(code: RefusalCode) -> StatusCode {
    match code {
        RefusalCode::Malformed | RefusalCode::BadParameter => StatusCode::BAD_REQUEST,
        RefusalCode::UnknownService | RefusalCode::UnknownOperation | RefusalCode::SchemeUnsupported => {
            StatusCode::NOT_FOUND
        }
        RefusalCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        RefusalCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        RefusalCode::CallIdConflict | RefusalCode::MayHaveRun | RefusalCode::PriceChanged => {
            StatusCode::CONFLICT
        }
        RefusalCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn failed(outcome: Outcome) -> Response {
    let (status, detail) = match outcome {
        Outcome::TimedOut => (StatusCode::GATEWAY_TIMEOUT, "the service took too long; nothing was paid"),
        Outcome::ServerError => {
            (StatusCode::BAD_GATEWAY, "the service answered with an error of its own; nothing was paid")
        }
        Outcome::Oversize | Outcome::BadAnswer => {
            (StatusCode::BAD_GATEWAY, "the service's answer cannot be passed on; nothing was paid")
        }
        Outcome::Answered | Outcome::Declined | Outcome::Unreachable => {
            (StatusCode::BAD_GATEWAY, "the service gave no answer; nothing was paid")
        }
    };
    said_no(status, "upstream_failed", detail)
}

/// The version in which a payer is told of its payment, and the chain.
#[derive(Clone, Copy, Debug)]
struct PaymentReader {
    version: Version,
    chain_id: u64,
}

impl PaymentReader {
    /// The service's own answer.
    fn answer(self, answer: SoldAnswer) -> Response {
        // Others speak about a connection, such as 101.
        let status = Some(answer.status).filter(|status| (200..600).contains(status));
        let status =
            status.and_then(|status| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut response = (status, answer.body).into_response();
        for (name, value) in &answer.headers {
            let is_read = match name.as_str() {
                // Words on payments are this node's: a service's own would ask for another, or lie about this one.
                "payment-required" | "payment-response" | "x-payment-response" | "content-length"
                | "content-encoding" => false,
                "location" => matches!(status, StatusCode::CREATED | StatusCode::ACCEPTED),
                name => !answer_header_is_forbidden(name),
            };
            if is_read && let Ok(name) = HeaderName::try_from(name) {
                insert(&mut response, name, value);
            }
        }
        // One payment is one answer: no cache gives it to others. And an owner's page is no page of this address.
        insert(&mut response, header::CACHE_CONTROL, "private, no-store");
        insert(&mut response, header::CONTENT_SECURITY_POLICY, "sandbox");
        insert(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        let charged = answer.paid_by.map_or(Usdc::ZERO, |_| answer.price);
        for (name, value) in [
            (HEADER_CALL_ID, answer.call_id.to_string()),
            (HEADER_PRICE, answer.price.to_string()),
            (HEADER_CHARGED, charged.to_string()),
        ] {
            insert(&mut response, HeaderName::from_static(name), &value);
        }
        if answer.paid_by.is_some() {
            let (network, transaction) = (self.network(), answer.paid_by);
            let told = SettlementTold { payer: answer.payer, network, transaction, error: None };
            self.tell(&mut response, &told);
        }
        response
    }

    /// The word that an answer is withheld, because it is not paid or not yet.
    fn unpaid(self, payer: Address, reason: Option<&str>) -> Response {
        let (status, code, detail) = match reason {
            Some(reason) => (
                StatusCode::PAYMENT_REQUIRED,
                "invalid_transaction_state",
                format!(
                    "the chain refuses the payment: {reason}. The answer is kept: repeat the request with the same payment \
                     once the payment can be made"
                ),
            ),
            None => (
                StatusCode::SERVICE_UNAVAILABLE,
                "settlement_pending",
                "the payment is under way: repeat the request with the same payment, and sign no other"
                    .to_owned(),
            ),
        };
        let mut response = said_no(status, code, &detail);
        if reason.is_none() {
            insert(&mut response, header::RETRY_AFTER, &PENDING.as_secs().to_string());
        }
        let told = SettlementTold { payer, network: self.network(), transaction: None, error: Some(code) };
        self.tell(&mut response, &told);
        response
    }

    fn tell(self, response: &mut Response, told: &SettlementTold) {
        let [two, one] = RESPONSE;
        let name = match self.version {
            Version::Two => two,
            Version::One => one,
        };
        insert(response, name, &told.header());
    }

    fn network(self) -> String {
        self.version.network(self.chain_id).unwrap_or_default()
    }
}

/// Sets a header; a value that no header can have is left out.
fn insert(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use farthing_protocol::CallId;

    use super::*;

    #[test]
    fn the_address_of_a_call_is_its_service_and_the_path_as_it_was_written() {
        let id = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
        let asked =
            |uri: &str| call_of(&HttpMethod::GET, &uri.parse().unwrap(), &HeaderMap::new(), Bytes::new());
        let call = asked(&format!("/{id}/v1/a%2Fb?limit=5")).unwrap();
        assert_eq!((call.path.as_str(), call.query.as_str()), ("/v1/a%2Fb", "limit=5"));
        assert_eq!(call.service.to_string(), id);
        assert!(asked("/quakes/v1").unwrap_err().contains("service id"));
    }

    #[tokio::test]
    async fn a_client_is_told_whether_the_service_answered() {
        for (outcome, words) in [
            (Outcome::ServerError, "the service answered with an error"),
            (Outcome::Oversize, "answer cannot be passed on"),
            (Outcome::BadAnswer, "answer cannot be passed on"),
            (Outcome::TimedOut, "took too long"),
            (Outcome::Unreachable, "gave no answer"),
        ] {
            let body = axum::body::to_bytes(failed(outcome).into_body(), 1_000).await.unwrap();
            let told = String::from_utf8_lossy(&body);
            assert!(told.contains(words) && told.contains("nothing was paid"), "{outcome:?}: {told}");
        }
    }

    #[test]
    fn a_header_that_is_no_payment_is_no_offer_to_pay() {
        let with = |name: &'static str, value: &'static str| {
            payment_of(&HeaderMap::from_iter([(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )]))
        };
        assert_eq!(with("accept", "*/*"), Ok(None));
        for name in ["payment-signature", "x-payment"] {
            assert_eq!(with(name, "{}"), Err(Malformed::NotBase64), "{name}");
        }
    }

    #[test]
    fn a_service_says_nothing_of_payments_in_its_headers() {
        let names = ["payment-required", "payment-response", "x-payment-response", "etag"];
        let answer = SoldAnswer {
            call_id: CallId::from_idempotency_key("any"),
            payer: Address::ZERO,
            price: Usdc::ZERO,
            status: 402,
            headers: names.map(|name| (name.to_owned(), "1".to_owned())).into(),
            body: Bytes::new(),
            paid_by: None,
            is_copy: false,
        };
        let told = PaymentReader { version: Version::Two, chain_id: 8_453 }.answer(answer);
        let there: Vec<_> = names.into_iter().filter(|name| told.headers().contains_key(*name)).collect();
        assert_eq!(there, ["etag"]);
    }

    #[test]
    fn an_unpaid_answer_is_withheld_with_the_reason_in_the_payers_version() {
        for (version, name) in [(Version::One, &RESPONSE[1]), (Version::Two, &RESPONSE[0])] {
            let told = PaymentReader { version, chain_id: 8_453 };
            let refused = told.unpaid(Address::ZERO, Some("InsufficientBalance"));
            assert_eq!(refused.status(), StatusCode::PAYMENT_REQUIRED);
            assert!(refused.headers().contains_key(name) && !refused.headers().contains_key(REQUIRED));
            let pending = told.unpaid(Address::ZERO, None);
            assert_eq!(pending.status(), StatusCode::SERVICE_UNAVAILABLE, "never terms to pay anew");
            assert_eq!(pending.headers()[header::RETRY_AFTER], "5");
        }
    }
}
