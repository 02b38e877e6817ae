//! A service under its own address: `/services/{id}/…` reads like the service's own server.
//!
//! The same calls as `POST /internal/call`, for tools that speak plain REST and for the documents that the
//! bridge publishes: method, path, query, declared headers and body become an [`Order`].

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use axum::{
    body::Bytes,
    extract::{State, rejection::BytesRejection},
    http::{HeaderMap, HeaderName, Method as HttpMethod, Uri},
    response::Response,
};
use farthing_bridge::{
    description::{Operation, Place},
    nearest, shown,
};
use farthing_discovery::{PlanError, documents, known::HEADERS_ALLOWED, operation_name};
use farthing_node::consumer::{BuyError, Order, spending::Grant};
use farthing_protocol::{ServiceId, call::Method};

use url::form_urlencoded;

use super::{Entrance, Gateway, auth, call, noted::AskedCall, own_headers, problem::Problem};

/// Prefix of every service's address; the service's id and a path of the service follow.
pub const PREFIX: &str = "/services";

/// Headers that programs send of themselves: about the connection, who asks and by what way. They are for this gateway, or
/// for nobody, and nothing is missing at the service without them. All others are passed on or refused.
const OF_THE_CLIENT: [&str; 31] = [
    "accept-charset",
    "authorization",
    "baggage",
    "cache-control",
    "connection",
    "content-length",
    "date",
    "dnt",
    "expect",
    "forwarded",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "origin",
    "pragma",
    "priority",
    "proxy-connection",
    "referer",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
    "x-real-ip",
    "x-request-id",
    "x-requested-with",
];
const OF_THE_CLIENT_PREFIXES: [&str; 3] = ["sec-", "x-farthing-", "x-forwarded-"];

/// The address of a service at a gateway that is reached as `origin`, such as `https://localhost:3000`.
pub fn address(origin: &str, service: ServiceId) -> String {
    format!("{origin}{PREFIX}/{service}")
}

pub(super) async fn buy(
    State(gateway): State<Arc<Gateway>>,
    auth::Authenticated(grant): auth::Authenticated,
    uri: Uri,
    method: HttpMethod,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let started = Instant::now();
    let body = match super::whole(body) {
        Ok(body) => body,
        Err(problem) => return gateway.refuse(AskedCall::by(&grant, started), problem),
    };
    // The path as it was written: what its escapes mean is the bridge's to say.
    let mut parts = uri.path().splitn(4, '/').skip(2);
    let id = parts.next().unwrap_or_default();
    let path = parts.next().map_or_else(String::new, |path| format!("/{path}"));
    let request = ServiceRequest {
        id,
        path,
        query: uri.query().unwrap_or_default(),
        method: &method,
        headers: &headers,
    };
    let asked = request.asked(&grant, started);
    match request.order(&gateway, grant, body).await {
        Ok(order) => {
            let origin = gateway.origin(&headers, &uri);
            super::carry_out(&gateway, order, (&origin, Entrance::AtItsAddress), started).await
        }
        Err(problem) => gateway.refuse(asked, problem),
    }
}

struct ServiceRequest<'a> {
    id: &'a str,
    path: String,
    query: &'a str,
    method: &'a HttpMethod,
    headers: &'a HeaderMap,
}

impl ServiceRequest<'_> {
    /// The call as far as its address tells it.
    fn asked(&self, grant: &Arc<Grant>, started: Instant) -> AskedCall {
        AskedCall::by(grant, started).at(self.id.parse().ok(), self.method.as_str().parse().ok(), &self.path)
    }

    async fn order(self, gateway: &Gateway, grant: Arc<Grant>, body: Bytes) -> Result<Order, Problem> {
        let max_price = own_headers::max_price(self.headers)?;
        let service: ServiceId = self
            .id
            .parse()
            .map_err(|e| Problem::malformed(format!("the service's id in the address: {e}")))?;
        if !grant.covers(service) {
            return Err(Problem::from(&BuyError::NotScoped { secret: grant.name.clone(), service }));
        }
        let method: Method = self.method.as_str().parse().map_err(|e| Problem::malformed(format!("{e}")))?;
        let call_id = call::id_of(&grant, None, self.headers)?;
        let known = gateway.consumer.service(service, &grant, max_price).await;
        let known = known.map_err(|e| Problem::from(&e))?;
        let params = if documents::asked(&known, method, &self.path).is_some() {
            form_urlencoded::parse(self.query.as_bytes()).into_owned().collect()
        } else {
            let refused = |e| Problem::from(&BuyError::from(PlanError::from(e))).with_call_id(call_id);
            known.api().params_of(method.as_str(), &self.path, self.query).map_err(refused)?
        };
        let params = match known.api().operation_at(method.as_str(), &self.path) {
            Some(operation) => {
                self.check_headers(operation).map_err(|problem| problem.with_call_id(call_id))?;
                self.with_headers(operation, params).map_err(|problem| problem.with_call_id(call_id))?
            }
            None => params,
        };
        Ok(Order {
            grant,
            call_id,
            service,
            method,
            params,
            headers: self.passed_on().map_err(|problem| problem.with_call_id(call_id))?,
            path: self.path,
            body,
            max_price,
        })
    }

    /// A header's text. Of two the service would get the first alone, and whoever sent the other counts on it.
    fn text(&self, name: &str) -> Result<Option<&str>, Problem> {
        let value = own_headers::only(self.headers, name)?.map(|value| value.to_str());
        value
            .transpose()
            .map_err(|_| Problem::malformed(format!("the header `{name}` must be printable ASCII")))
    }

    fn passed_on(&self) -> Result<BTreeMap<String, String>, Problem> {
        let mut passed_on = BTreeMap::new();
        for name in HEADERS_ALLOWED {
            if let Some(value) = self.text(name)? {
                passed_on.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(passed_on)
    }

    /// Refuses a header that would not be passed on, as `POST /internal/call` does: whoever sends one counts on it.
    fn check_headers(&self, operation: &Operation) -> Result<(), Problem> {
        let declared = || header_parameters(operation);
        let is_for_somebody = |name: &str| {
            HEADERS_ALLOWED.contains(&name)
                || OF_THE_CLIENT.contains(&name)
                || OF_THE_CLIENT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
                || declared().any(|own| own.eq_ignore_ascii_case(name))
        };
        let mut names = self.headers.keys().map(HeaderName::as_str);
        let Some(name) = names.find(|name| !is_for_somebody(name)) else { return Ok(()) };
        let meant = nearest(name, declared().chain(HEADERS_ALLOWED))
            .map_or_else(String::new, |meant| format!("did you mean `{}`? ", shown(meant)));
        let error = PlanError::BadParameter(format!(
            "the header `{}` is not passed on, and {} does not declare it; {meant}leave it out",
            shown(name),
            operation_name(operation)
        ));
        Err(Problem::from(&BuyError::from(error)))
    }

    /// Headers that the operation declares travel as parameters.
    fn with_headers(
        &self,
        operation: &Operation,
        mut params: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, Problem> {
        for name in header_parameters(operation) {
            if let Some(value) = self.text(name)? {
                params.insert(name.to_owned(), value.to_owned());
            }
        }
        Ok(params)
    }
}

fn header_parameters(operation: &Operation) -> impl Iterator<Item = &str> {
    let headers = operation.parameters.iter().filter(|parameter| parameter.place == Place::Header);
    headers.map(|parameter| parameter.name.as_str())
}
