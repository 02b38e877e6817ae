//! One call of an x402 server over HTTP: without a payment, or with the one that is stored for it.
//!
//! No redirect is followed, no proxy asked and no cookie kept; time, headers and body are bounded. Nothing is asked for packed, and an
//! answer that a server still packs by gzip is unpacked: it may be paid for already.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use farthing_bounds::ByteBudget;
use farthing_bridge::headers::{answer_header_is_forbidden, header_is_forbidden};
use farthing_owner::upstream;
use farthing_protocol::limits;
use farthing_x402::{OFFERS_BYTES_MAX, SettlementHeard};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tokio::time::{Instant, timeout_at};
use url::Url;

use super::{payments::ForeignPayment, unpack::readable};
use crate::consumer::{ForeignError, Order};

/// The status with which a server asks for a payment.
pub(super) const PAYMENT_REQUIRED: u16 = 402;

/// Headers of an answer that are about the payment or the connection, or that a client would follow elsewhere.
const KEPT_BACK: [&str; 6] =
    ["content-length", "link", "location", "payment-required", "payment-response", "x-payment-response"];

/// A call, and the way to its server.
pub(super) struct Exchange<'o> {
    pub(super) client: reqwest::Client,
    pub(super) url: Url,
    pub(super) order: &'o Order,
    pub(super) budget: ByteBudget,
    /// Of an answer that asks for no payment; `None` if nobody wants it, so that it is not read.
    pub(super) body_bytes_max: Option<usize>,
    pub(super) deadline: Instant,
}

/// An answer of a server.
#[derive(Clone, Debug)]
pub(super) struct ForeignAnswer {
    pub(super) status: u16,
    /// Names in lower case.
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Bytes,
    /// The header `PAYMENT-REQUIRED`.
    pub(super) required: Option<Bytes>,
    /// The server's word on the payment that the request carried.
    pub(super) heard: Option<SettlementHeard>,
}

impl Exchange<'_> {
    /// Sends the call once.
    ///
    /// # Errors
    /// The reason that there is no answer, in words.
    pub(super) async fn send(&self, payment: Option<&ForeignPayment>) -> Result<ForeignAnswer, String> {
        let late = |_| Err("it did not answer in time".to_owned());
        timeout_at(self.deadline, self.ask(payment)).await.unwrap_or_else(late)
    }

    async fn ask(&self, payment: Option<&ForeignPayment>) -> Result<ForeignAnswer, String> {
        let request = self.request(payment)?;
        let response = request.send().await.map_err(|error| why(&error))?;
        let status = response.status().as_u16();
        let bytes_of =
            |name: &str| response.headers().get(name).map(|value| Bytes::copy_from_slice(value.as_bytes()));
        let required = bytes_of("payment-required");
        let word = bytes_of("payment-response").or_else(|| bytes_of("x-payment-response"));
        let heard = word.and_then(|word| SettlementHeard::read(&word));
        let mut headers = passed_back(response.headers());
        let is_offer = status == PAYMENT_REQUIRED;
        let bytes_max = if is_offer { Some(OFFERS_BYTES_MAX) } else { self.body_bytes_max };
        let body = match bytes_max {
            Some(bytes_max) => {
                let body = self.body_of(response, bytes_max).await?;
                readable(body, &mut headers, (bytes_max, &self.budget)).await
            }
            None => Bytes::new(),
        };
        Ok(ForeignAnswer { status, headers, body, required, heard })
    }

    async fn body_of(&self, mut response: reqwest::Response, bytes_max: usize) -> Result<Bytes, String> {
        let (mut room, mut whole) = (self.budget.nothing(), BytesMut::new());
        while let Some(part) = response.chunk().await.map_err(|error| why(&error))? {
            if whole.len() + part.len() > bytes_max {
                return Err(format!("its answer has more than {bytes_max} bytes"));
            }
            if !room.grow(part.len()) {
                return Err("this node has no room for its answer now".to_owned());
            }
            whole.extend_from_slice(&part);
        }
        Ok(room.attach(whole.freeze()))
    }

    fn request(&self, payment: Option<&ForeignPayment>) -> Result<reqwest::RequestBuilder, String> {
        let method = http::Method::from_bytes(self.order.method.as_str().as_bytes());
        let method = method.map_err(|_| "its method is none of HTTP".to_owned())?;
        let mut request = self.client.request(method, self.url.clone());
        for (name, value) in self.order.headers.iter().filter(|(name, _)| is_sent(name)) {
            request = request.header(name.as_str(), value.as_str());
        }
        if !self.order.headers.contains_key(header::USER_AGENT.as_str()) {
            request = request.header(header::USER_AGENT, concat!("farthing/", env!("CARGO_PKG_VERSION")));
        }
        request = request.header(header::ACCEPT_ENCODING, "identity");
        if let Some(payment) = payment {
            request = request.header(payment.header_name.as_str(), payment.header.as_str());
        }
        let has_body = !self.order.body.is_empty();
        Ok(if has_body { request.body(self.order.body.clone()) } else { request })
    }
}

/// The address of a call below that of its server.
///
/// # Errors
/// A path that leads elsewhere, or that has another meaning than its caller wants: `?` would be sent encoded, as a part of the path.
pub(super) fn target(base: &Url, order: &Order) -> Result<Url, ForeignError> {
    let (root, path) = (base.path().trim_end_matches('/'), &order.path);
    for (is_wrong, problem) in [
        (!path.starts_with('/'), "it must begin with a slash"),
        (path.contains('?'), "it contains `?`; parameters belong in params"),
        (path.contains('#'), "it contains `#`; parameters belong in params"),
    ] {
        if is_wrong {
            return Err(ForeignError::BadPath(problem));
        }
    }
    let mut url = base.clone();
    url.set_path(&format!("{root}{path}"));
    if !url.path().strip_prefix(root).is_some_and(|rest| rest.starts_with('/')) {
        return Err(ForeignError::Path);
    }
    if !order.params.is_empty() {
        url.query_pairs_mut().extend_pairs(&order.params);
    }
    Ok(url)
}

/// Returns whether a header of a call is sent. What speaks for the connection or the payment is this node's to say, and nothing is
/// asked for packed.
fn is_sent(name: &str) -> bool {
    let is_payment = matches!(name, "payment-signature" | "x-payment" | "accept-encoding");
    !is_payment && (name == "content-type" || !header_is_forbidden(name))
}

fn passed_back(headers: &HeaderMap) -> BTreeMap<String, String> {
    let told = |(name, value): (&HeaderName, &HeaderValue)| {
        let (name, value) = (name.as_str(), value.to_str().ok()?);
        let is_told = !KEPT_BACK.contains(&name) && !answer_header_is_forbidden(name);
        let is_short = value.len() <= limits::PARAM_VALUE_BYTES_MAX;
        (is_told && is_short).then(|| (name.to_owned(), value.to_owned()))
    };
    let mut kept: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers.iter().filter_map(told).take(limits::HEADERS_MAX) {
        // The lines of a list are one list (RFC 9110, 5.3): an answer that was packed twice names both codings.
        if name == header::CONTENT_ENCODING.as_str()
            && let Some(codings) = kept.get_mut(&name)
        {
            *codings = format!("{codings}, {value}");
        } else {
            kept.insert(name, value);
        }
    }
    kept
}

/// The reason that a request failed, without its address.
fn why(error: &reqwest::Error) -> String {
    match upstream::resolver_error(error) {
        Some(refused) => refused.to_string(),
        None if error.is_connect() => "no connection to it can be made".to_owned(),
        None => "the connection to it broke".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use farthing_protocol::{CallId, ServiceId, call::Method};

    use super::*;
    use crate::consumer::spending::Grant;

    fn order(path: &str) -> Order {
        Order {
            grant: Arc::new(Grant::unlimited("laptop")),
            call_id: CallId::from_bytes([1; 16]),
            service: ServiceId::from_bytes([2; 16]),
            method: Method::Get,
            path: path.to_owned(),
            params: BTreeMap::from([("q".to_owned(), "a b&c".to_owned())]),
            headers: BTreeMap::new(),
            body: Bytes::new(),
            max_price: None,
        }
    }

    #[test]
    fn a_path_stays_below_the_address_of_its_server() {
        for (base, path, url) in [
            ("https://a.example", "/v1/x", Some("https://a.example/v1/x?q=a+b%26c")),
            ("https://a.example/api/", "/x", Some("https://a.example/api/x?q=a+b%26c")),
            ("https://a.example/api", "/x/../y", Some("https://a.example/api/y?q=a+b%26c")),
            ("https://a.example/api", "/../secret", None),
            ("https://a.example/api", "/%2e%2e/secret", None),
            ("https://a.example/api", "/..\\secret", None),
            ("https://a.example/api", "x", None),
            ("https://a.example/api", "@b.example/x", None),
        ] {
            let found = target(&Url::parse(base).unwrap(), &order(path));
            assert_eq!(found.ok().as_ref().map(Url::as_str), url, "{base} {path}");
        }
    }

    #[test]
    fn a_path_with_a_query_or_without_a_slash_is_refused_before_anything_is_sent() {
        let base = Url::parse("https://a.example/api").unwrap();
        for (path, words) in [
            ("/x?a=1", "it contains `?`; parameters belong in params"),
            ("/x#a", "it contains `#`; parameters belong in params"),
            ("x", "it must begin with a slash"),
            ("", "it must begin with a slash"),
        ] {
            assert_eq!(target(&base, &order(path)), Err(ForeignError::BadPath(words)), "{path}");
        }
        assert_eq!(target(&base, &order("/../x")), Err(ForeignError::Path));
    }

    #[test]
    fn an_answer_that_is_packed_twice_names_both_codings_in_their_order() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("content-encoding", "gzip"), ("x-a", "1"), ("content-encoding", "br"), ("x-a", "2")]
        {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let kept = passed_back(&headers);
        assert_eq!((kept["content-encoding"].as_str(), kept["x-a"].as_str()), ("gzip, br", "2"));
    }

    #[test]
    fn a_caller_sets_neither_the_payment_nor_the_connection() {
        for name in
            ["payment-signature", "x-payment", "host", "connection", "authorization", "accept-encoding"]
        {
            assert!(!is_sent(name), "{name}");
        }
        assert!(is_sent("content-type") && is_sent("accept"));
    }
}
