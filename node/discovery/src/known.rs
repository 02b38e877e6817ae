//! A service whose listing and details are verified: what calls are planned with, on both sides.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use farthing_bounds::HeldBytes;
use farthing_bridge::{
    Api, ApiError, PlanError as BridgeError, Request, RouteError,
    api::Call,
    description::{Content, Operation},
    document::{self, Bounds, DescriptionText, DocumentError, Unpacked},
    headers::codings,
    media::{essence, is_json},
};
use farthing_control::types::CatalogKind;
use farthing_protocol::{
    Hash, Listing, Usdc, Verified,
    call::Method,
    keccak256, limits,
    listing::{Details, DetailsError, ServiceKind},
};

use super::condition::Condition;

/// Headers a caller may always send: they say what it sends and what it can read.
pub const HEADERS_ALLOWED: [&str; 6] =
    ["accept", "accept-encoding", "accept-language", "content-type", "if-modified-since", "if-none-match"];

/// A verified service.
#[derive(Debug)]
pub struct KnownService {
    listing: Arc<Verified<Listing>>,
    details: Details,
    api: Api,
    /// By operation.
    prices: Vec<Usdc>,
    memory_bytes: usize,
    /// Given back after all of the above.
    _room: Option<HeldBytes>,
}

/// A service whose description is unpacked and counted, and not read yet.
#[derive(Debug)]
pub struct UnreadService {
    listing: Verified<Listing>,
    details: Details,
    opened: DescriptionText,
}

/// The reason that a service cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KnownError {
    #[error(transparent)]
    Details(#[from] DetailsError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Api(#[from] ApiError),
    #[error("there is a price for {method} {path}, which is not an operation of the service")]
    PriceOfNothing { method: Method, path: String },
    #[error("the listing says {listed} and the details describe {described}")]
    Kind { listed: CatalogKind, described: CatalogKind },
}

/// A call that fits the service's description.
#[derive(Clone, Debug)]
pub struct CallPlan {
    pub price: Usdc,
    /// Method and path of the operation, as [`operation_name`] writes them.
    pub operation: String,
    /// The request to the upstream.
    pub request: Request,
    /// The caller's headers that say what it sends and can read; names in lower case.
    pub headers: BTreeMap<String, String>,
    /// See [`time_of`].
    pub time: Option<Duration>,
    /// The one thing that a read says it has, and hears for nothing that it has not changed.
    pub condition: Option<Condition>,
    /// True if the operation's description names web pages among its answers. Elsewhere they are errors of something else.
    pub html: bool,
}

/// The reason that a call does not fit; nothing is priced or sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("{0}")]
    UnknownPath(String),
    #[error("{0}")]
    MethodNotAllowed(String),
    #[error("{0}")]
    BadParameter(String),
}

impl UnreadService {
    /// Opens the details that `listing` pins, within what reading their description may cost.
    ///
    /// # Errors
    /// [`KnownError`] when they are not the pinned ones, or too large.
    pub fn open(listing: Verified<Listing>, details: &[u8], bounds: Bounds) -> Result<Self, KnownError> {
        let details = Details::from_blob(details, &listing)?;
        let opened = document::open(&details.api, bounds)?;
        Ok(Self { listing, details, opened })
    }

    /// The memory that there should be room for before it is read.
    pub const fn values_bytes(&self) -> usize {
        self.opened.values_bytes()
    }

    /// Reads the description and indexes its operations. Large ones take a while.
    ///
    /// # Errors
    /// [`KnownError`] when it cannot be offered.
    pub fn read(self) -> Result<KnownService, KnownError> {
        let Self { listing, details, opened } = self;
        let Unpacked { description, memory_bytes } = opened.read()?;
        let api = Api::new(description)?;
        let (listed, described) = (CatalogKind::from(listing.kind), CatalogKind::from(kind_of(&api)));
        if listed != described {
            return Err(KnownError::Kind { listed, described });
        }
        let operations = &api.description().operations;
        for own in &details.prices {
            if !operations.iter().any(|operation| is(operation, own.method, &own.path)) {
                return Err(KnownError::PriceOfNothing { method: own.method, path: own.path.clone() });
            }
        }
        let prices = operations
            .iter()
            .map(|operation| listing.price_of(&details, method_of(operation), &operation.path))
            .collect();
        Ok(KnownService { listing: Arc::new(listing), details, api, prices, memory_bytes, _room: None })
    }
}

impl KnownService {
    /// Reads the details that `listing` pins and indexes the operations. Large ones take a while.
    ///
    /// # Errors
    /// [`KnownError`] when they are not the pinned ones, or cannot be offered.
    pub fn new(listing: Verified<Listing>, details: &[u8]) -> Result<Self, KnownError> {
        UnreadService::open(listing, details, Bounds::ASKED_FOR)?.read()
    }

    /// The same with a listing that pins the same details.
    pub fn with_listing(self, listing: Verified<Listing>) -> Self {
        debug_assert_eq!(self.listing.details_hash, listing.details_hash, "the details are different");
        Self { listing: Arc::new(listing), ..self }
    }

    /// The same with the room that was taken for it, which it keeps until it is dropped.
    pub(super) fn keeping(self, room: HeldBytes) -> Self {
        Self { _room: Some(room), ..self }
    }

    pub fn listing(&self) -> &Verified<Listing> {
        &self.listing
    }

    /// The listing by itself: what is needed to read this version again.
    pub fn version(&self) -> Arc<Verified<Listing>> {
        Arc::clone(&self.listing)
    }

    /// An upper bound of the memory that its description takes.
    pub const fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    pub const fn details(&self) -> &Details {
        &self.details
    }

    pub const fn api(&self) -> &Api {
        &self.api
    }

    /// Operations with what a call of each costs.
    pub fn operations(&self) -> impl Iterator<Item = (&Operation, Usdc)> {
        self.api.description().operations.iter().zip(self.prices.iter().copied())
    }

    /// Digest of the operations and their prices, in any order.
    pub fn price_list(&self) -> Hash {
        let line = |(operation, price): (&Operation, Usdc)| {
            format!("{} {}\n", operation_name(operation), price.micros())
        };
        let mut lines: Vec<String> = self.operations().map(line).collect();
        lines.sort_unstable();
        keccak256(&[lines.concat().as_bytes()])
    }

    /// Returns the price of a call of this operation, without looking at what is asked of it.
    pub fn price_at(&self, method: Method, path: &str) -> Option<Usdc> {
        let operation = self.api.operation_at(method.as_str(), path)?;
        self.operations().find(|(own, _)| std::ptr::eq(*own, operation)).map(|(_, price)| price)
    }

    /// Returns the operation that a call is of, as [`operation_name`] has it, without looking at what is asked of it.
    pub fn operation_at(&self, method: Method, path: &str) -> Option<String> {
        self.api.operation_at(method.as_str(), path).map(operation_name)
    }

    /// Returns the time that an answer to the call may take, where the owner says so.
    pub fn time_at(&self, method: Method, path: &str) -> Option<Duration> {
        self.api.operation_at(method.as_str(), path).and_then(time_of)
    }

    /// Checks a call against the description and prices it.
    pub fn plan(
        &self,
        method: Method,
        path: &str,
        params: &BTreeMap<String, String>,
        headers: &BTreeMap<String, String>,
        body: &[u8],
    ) -> Result<CallPlan, PlanError> {
        for (name, value) in headers {
            check_header(method, name, value)?;
        }
        let content_type = headers.get("content-type").map(String::as_str);
        let planned = self.api.plan(&Call { method: method.as_str(), path, params, content_type, body })?;
        // A description may make a parameter of any header.
        let declared = match &planned.request {
            Request::Http(http) => Some(&http.headers),
            Request::Graphql(_) => None,
        };
        for (name, value) in declared.into_iter().flatten() {
            check_condition(method, name, value)?;
        }
        let condition = declared.and_then(|declared| {
            let of_caller = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let declared = declared.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            Condition::of(method, &of_caller.chain(declared).collect::<Vec<_>>())
        });
        let price = self.prices.get(planned.operation).copied().unwrap_or(self.listing.price);
        let operation = self.api.description().operations.get(planned.operation);
        let mut headers = headers.clone();
        // Whoever chooses what a server answers with chooses whether that is a failure, which costs nothing.
        let is_described = |accept: &String| operation.is_some_and(|operation| describes(operation, accept));
        if !headers.get("accept").is_some_and(is_described) {
            headers.remove("accept");
        }
        let time = operation.and_then(time_of);
        let packed = headers.remove("accept-encoding").filter(|_| self.api.description().packs_answers);
        headers.extend(packed.and_then(|said| Some(("accept-encoding".to_owned(), codings(&said)?))));
        let html = operation.is_some_and(answers_html);
        let operation = operation.map(operation_name).unwrap_or_default();
        Ok(CallPlan { price, operation, request: planned.request, headers, condition, time, html })
    }
}

/// Media types that an operation answers with, by its description; without parameters, in lower case.
fn described_types(operation: &Operation) -> Vec<String> {
    let contents = operation.responses.iter().filter_map(|response| response.content.as_ref());
    contents.flat_map(Content::media_types).collect()
}

/// Tells whether an operation is described as answering web pages. One that answers anything is not: so are most that mean
/// JSON.
pub fn answers_html(operation: &Operation) -> bool {
    described_types(operation).iter().any(|media_type| media_type == "text/html")
}

/// Tells whether an operation answers with each of the media types that an `accept` header names, by its description.
/// JSON is what most answer with, described or not.
fn describes(operation: &Operation, accept: &str) -> bool {
    let described = described_types(operation);
    accept
        .split(',')
        .map(essence)
        .all(|range| range == "*/*" || is_json(&range) || described.contains(&range))
}

fn check_header(method: Method, name: &str, value: &str) -> Result<(), PlanError> {
    if !HEADERS_ALLOWED.contains(&name) {
        let shown: String = name.chars().filter(|c| !c.is_control()).take(60).collect();
        return Err(PlanError::BadParameter(format!(
            "the header `{shown}` is not passed on; `headers` may have {}, and declared headers are parameters: `params`, or \
             `-p` in a command",
            HEADERS_ALLOWED.join(", ")
        )));
    }
    if !value.bytes().all(|b| matches!(b, b' '..=b'~')) {
        return Err(PlanError::BadParameter(format!("the header `{name}` must be printable ASCII")));
    }
    check_condition(method, name, value)
}

/// Refuses a condition that is never met: it has a server work for an answer that is free.
fn check_condition(method: Method, name: &str, value: &str) -> Result<(), PlanError> {
    let names_any = || value.split(',').any(|tag| tag.trim() == "*");
    if method.is_safe() && name.eq_ignore_ascii_case("if-none-match") && names_any() {
        return Err(PlanError::BadParameter(format!(
            "the header `{name}` must have the `etag` of an earlier answer; `*` is not allowed"
        )));
    }
    Ok(())
}

/// Returns the kind of upstream that an API has.
pub fn kind_of(api: &Api) -> ServiceKind {
    if api.description().graphql.is_some() { ServiceKind::Graphql } else { ServiceKind::Rest }
}

/// The operation's method in the protocol's words.
pub const fn method_of(operation: &Operation) -> Method {
    use farthing_bridge::description::Method as Described;
    match operation.method {
        Described::Get => Method::Get,
        Described::Head => Method::Head,
        Described::Post => Method::Post,
        Described::Put => Method::Put,
        Described::Patch => Method::Patch,
        Described::Delete => Method::Delete,
    }
}

/// An operation in one line: `GET /planets/{id}`.
pub fn operation_name(operation: &Operation) -> String {
    format!("{} {}", method_of(operation), operation.path)
}

/// Returns the time that an answer of the operation may take, as its owner chose, within what anybody waits for. Both
/// nodes go by it.
pub fn time_of(operation: &Operation) -> Option<Duration> {
    let (min, max) = (limits::CALL_DEADLINE_MS_MIN, limits::CALL_DEADLINE_MS_MAX);
    operation.timeout_secs.map(|secs| Duration::from_millis((u64::from(secs) * 1_000).clamp(min, max)))
}

fn is(operation: &Operation, method: Method, path: &str) -> bool {
    method_of(operation) == method && operation.path == path
}

impl From<BridgeError> for PlanError {
    fn from(error: BridgeError) -> Self {
        let text = error.to_string();
        match error {
            BridgeError::Route(RouteError::MethodNotAllowed { .. }) => Self::MethodNotAllowed(text),
            BridgeError::Route(RouteError::BadPath(_)) => Self::BadParameter(text),
            BridgeError::Route(_) => Self::UnknownPath(text),
            BridgeError::Problems(_) => Self::BadParameter(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use farthing_bridge::{description::Content, openapi};
    use farthing_protocol::{SecretKey, ServiceNonce, Signed, listing::OperationPrice};

    use super::*;

    /// A service with these operations, each with its price.
    fn known(operations: &[(&str, u64)]) -> KnownService {
        known_with("[]", operations)
    }

    /// The same, of operations with these parameters.
    fn known_with(parameters: &str, operations: &[(&str, u64)]) -> KnownService {
        let path = |path: &str| {
            format!(
                r#""{path}":{{"get":{{"parameters":{parameters},"responses":{{"200":{{"description":"said so"}}}}}}}}"#
            )
        };
        let paths: Vec<String> = operations.iter().map(|(of, _)| path(of)).collect();
        let text = format!(
            r#"{{"openapi":"3.1.0","info":{{"title":"T","version":"1"}},"paths":{{{}}}}}"#,
            paths.join(",")
        );
        let api = document::encode(&openapi::read(text.as_bytes()).unwrap().description).unwrap();
        let price = |(path, micros): &(&str, u64)| OperationPrice {
            method: Method::Get,
            path: (*path).to_owned(),
            price: Usdc::from_micros(*micros),
        };
        let details = Details { api, prices: operations.iter().map(price).collect(), samples: None };
        let (blob, details_hash) = details.to_blob();
        let key = SecretKey::from_bytes(&[7; 32]).unwrap();
        let nonce = ServiceNonce::from_bytes([1; 16]);
        let listing = Listing {
            name: "Test".to_owned(),
            category: "other".to_owned(),
            price: Usdc::from_micros(1),
            operations_count: u32::try_from(operations.len()).unwrap(),
            details_hash,
            details_bytes: u32::try_from(blob.len()).unwrap(),
            ..Listing::first("test", key.address(), nonce, 1)
        };
        KnownService::new(Signed::sign(&listing, &key).unwrap().verify().unwrap(), &blob).unwrap()
    }

    #[test]
    fn a_caller_asks_for_what_is_described_and_for_json() {
        let known = known(&[("/a", 1)]);
        for (accept, is_passed_on) in [
            ("*/*", true),
            ("application/json", true),
            ("Application/Geo+JSON; q=0.9, */*; q=0.1", true),
            ("text/html", false),
            ("text/html, */*;q=0.8", false),
            ("text/csv", false),
            ("", false),
        ] {
            let headers: BTreeMap<_, _> = [("accept".to_owned(), accept.to_owned())].into();
            let plan = known.plan(Method::Get, "/a", &BTreeMap::new(), &headers, b"").unwrap();
            assert_eq!(plan.headers.contains_key("accept"), is_passed_on, "{accept}");
        }
        let mut operation = known.api().description().operations[0].clone();
        operation.responses[0].content = Some(Content {
            media_type: "text/csv".to_owned(),
            also: vec!["image/png".to_owned(), "*/*".to_owned()],
            ..Content::default()
        });
        assert!(
            describes(&operation, "text/csv;q=1, image/png") && !describes(&operation, "text/csv, text/html")
        );
    }

    #[test]
    fn a_read_says_what_it_has_and_not_that_it_wants_nothing() {
        let known = known(&[("/a", 1)]);
        let plan = |value: &str| {
            let headers: BTreeMap<_, _> = [("if-none-match".to_owned(), value.to_owned())].into();
            known.plan(Method::Get, "/a", &BTreeMap::new(), &headers, b"")
        };
        for value in ["\"7\"", "W/\"7\", \"8\"", "\"*\""] {
            assert_eq!(plan(value).unwrap().headers["if-none-match"], value);
        }
        for value in ["*", " * ", "\"7\", *"] {
            let refused = plan(value).unwrap_err().to_string();
            assert!(refused.contains("`if-none-match`"), "{value}: {refused}");
        }
        assert_eq!(check_header(Method::Put, "if-none-match", "*"), Ok(()), "made where nothing is yet");
    }

    #[test]
    fn a_tag_that_is_a_parameter_is_what_a_read_has_and_two_in_two_places_are_no_one_thing() {
        let parameters = r#"[{"name":"If-None-Match","in":"header","schema":{"type":"string"}}]"#;
        let known = known_with(parameters, &[("/a", 1)]);
        let condition = |header: Option<&str>, parameter: Option<&str>| {
            let of = |name: &str, tag: &str| (name.to_owned(), tag.to_owned());
            let headers = header.map(|tag| of("if-none-match", tag)).into_iter().collect();
            let params = parameter.map(|tag| of("If-None-Match", tag)).into_iter().collect();
            known.plan(Method::Get, "/a", &params, &headers, b"").unwrap().condition
        };
        let seven = Some(Condition::Tag("7".to_owned()));
        assert_eq!((condition(Some("7"), None), condition(None, Some("7"))), (seven.clone(), seven));
        assert_eq!(condition(Some("6"), Some("7")), None, "a server may look at either");
        assert_eq!(condition(None, None), None);
        let any = [("If-None-Match".to_owned(), "*".to_owned())].into();
        assert!(known.plan(Method::Get, "/a", &any, &BTreeMap::new(), b"").is_err(), "whatever it is");
    }

    #[test]
    fn a_price_list_is_another_when_a_name_or_a_price_is_and_in_another_order_the_same() {
        let list = |operations: &[(&str, u64)]| known(operations).price_list();
        let first = list(&[("/a", 1), ("/b", 9)]);
        assert_eq!(list(&[("/b", 9), ("/a", 1)]), first);
        for (what, operations) in [
            ("a price", &[("/a", 2), ("/b", 9)][..]),
            ("a name", &[("/c", 1), ("/b", 9)]),
            ("prices that change places", &[("/a", 9), ("/b", 1)]),
            ("one more", &[("/a", 1), ("/b", 9), ("/c", 1)]),
            ("one less", &[("/b", 9)]),
        ] {
            assert_ne!(list(operations), first, "{what}");
        }
    }

    #[test]
    fn the_reference_has_the_headers_that_a_caller_may_send() {
        let document = include_str!("../../../docs/headers.md");
        let chapter = document.split("\n## ").find(|chapter| chapter.starts_with("From the caller")).unwrap();
        let rows = chapter.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next());
        assert_eq!(rows.collect::<Vec<_>>(), HEADERS_ALLOWED);
    }
}
