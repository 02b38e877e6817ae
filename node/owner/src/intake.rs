//! The intake of API descriptions: from a file, an address or a running server to a [`Reading`] and a proposal
//! for the upstream.
//!
//! 1. A [`Source`] says what the owner has. Documents are fetched ([`fetch`]), GraphQL servers are asked for
//!    their schema ([`graphql`]), other servers are searched ([`scan`](mod@scan)).
//! 2. The bridge reads what was found; that may take half a second, so it is done on a thread for such work.
//! 3. Addresses that the document names are resolved against where it came from; the first that can be an
//!    upstream is proposed. Of a document that a search found, the server that was searched is.
//!
//! Only an owner starts an intake, with a command or in the authenticated console. What the owner's headers
//! hold goes to the named host and nowhere else: not into errors, logs or the [`Intake`].

mod error;
mod fetch;
mod graphql;
mod pages;
mod places;
mod scalars;
mod scan;
mod scan_attempt;

use std::time::Duration;

use bytes::Bytes;
use farthing_bounds::ByteBudget;
use farthing_bridge::report::{ReadError, Reading};
use farthing_os::secret::SecretText;
pub use farthing_protocol::listing::ServiceKind as Kind;
use farthing_shared::blocking::start_blocking;
use url::Url;

pub use self::{
    error::IntakeError,
    scalars::{ScalarError, override_scalars},
    scan::{Candidate, Found, Scan, scan},
    scan_attempt::{ScanAttempt, ScanOutcome},
};
use self::{
    fetch::{Fetcher, Miss, Page},
    graphql::Endpoint,
};
use crate::upstream::{OwnPorts, UpstreamOptions, check_base};

/// One request of a search, of which there are many.
const EACH: Duration = Duration::from_secs(5);
/// Everything.
const TOTAL: Duration = Duration::from_secs(30);

/// The description that an owner has, or the place to find it.
#[derive(Debug, Clone)]
pub enum Source {
    /// The document itself, and what to call it in errors: the name of its file.
    Document { bytes: Bytes, name: String },
    /// The address of an OpenAPI or Swagger document.
    OpenApiUrl(Url),
    /// A GraphQL endpoint, a server that has one in a usual place, or where a schema lies as text.
    GraphqlUrl(Url),
    /// A running server, searched for descriptions; the best is taken.
    ScanUrl(Url),
}

/// Options for asking servers.
#[derive(Debug, Clone)]
pub struct IntakeOptions {
    /// Sent with every request to the named host, such as an API key.
    pub headers: Vec<(String, SecretText)>,
    /// Bounds one request of a scan. A document that is named itself may take all of `total`.
    pub each: Duration,
    pub total: Duration,
    /// Ports of this node on this machine; nobody's API is there.
    pub own_ports: OwnPorts,
    /// Room for the answers until they are understood.
    pub budget: ByteBudget,
}

impl Default for IntakeOptions {
    fn default() -> Self {
        let UpstreamOptions { own_ports, budget, .. } = UpstreamOptions::default();
        Self { headers: Vec::new(), each: EACH, total: TOTAL, own_ports, budget }
    }
}

/// A description, ready to become a service.
#[derive(Debug, Clone)]
pub struct Intake {
    pub reading: Reading,
    /// Name of the file, or address of the document or endpoint. An address may have a query, which may hold an
    /// owner's key: show it to the owner only.
    pub origin: String,
    /// Addresses that can be the upstream, the preferred one first; empty when neither the document nor its
    /// origin tells one.
    pub upstreams: Vec<Url>,
}

impl Intake {
    /// Returns the kind of upstream that the description is of.
    pub const fn kind(&self) -> Kind {
        if self.reading.description.graphql.is_some() { Kind::Graphql } else { Kind::Rest }
    }

    /// The proposal for the upstream.
    pub fn upstream(&self) -> Option<&Url> {
        self.upstreams.first()
    }

    /// Of a document that came from `url`, or from a file.
    fn of_document(reading: Reading, name: String, url: Option<&Url>) -> Self {
        // Text of a GraphQL schema does not tell where its server is.
        let url_of_server = url.filter(|_| reading.description.graphql.is_none());
        let upstreams = upstreams(&reading.servers, url_of_server);
        Self { reading, origin: name, upstreams }
    }

    /// Of a document that a search found at `url`. Its server is the one that was searched, whatever address the document
    /// has for the public: under the path of that address, or at the root.
    fn found_at(reading: Reading, name: String, url: &Url) -> Self {
        let mut intake = Self::of_document(reading, name, Some(url));
        let is_here = |named: &Url| named.origin() == url.origin();
        if intake.kind() == Kind::Graphql || intake.upstreams.iter().any(is_here) {
            return intake;
        }
        let root = places::root(url);
        let mut here = vec![root.clone()];
        if let Some(named) = intake.upstreams.first() {
            let what = format!("the document names {named}; the server that was searched is used instead");
            intake.reading.report.warnings.add("servers", what);
            let mut below = root;
            below.set_path(named.path());
            if !here.contains(&below) {
                here.insert(0, below);
            }
        }
        here.append(&mut intake.upstreams);
        intake.upstreams = here;
        intake
    }

    fn of_endpoint(reading: Reading, url: &Url) -> Self {
        let mut endpoint = url.clone();
        endpoint.set_query(None);
        endpoint.set_fragment(None);
        Self { reading, origin: url.to_string(), upstreams: vec![endpoint] }
    }
}

/// Reads what `source` leads to.
///
/// # Errors
/// [`IntakeError`]: what was not found or not understood, and what to do.
pub async fn read(source: Source, options: IntakeOptions) -> Result<Intake, IntakeError> {
    match source {
        Source::Document { bytes, name } => document(bytes, name, None).await,
        Source::OpenApiUrl(url) => {
            let page = Fetcher::new(&url, options.total, &options)?.get(&url).await;
            let page = page.map_err(|miss| IntakeError::missed(&url, &miss))?;
            fetched(page, &url).await
        }
        Source::GraphqlUrl(url) => graphql_at(&url, &options).await,
        Source::ScanUrl(url) => scan(&url, &options).await?.into_best().map(|best| best.intake),
    }
}

/// Reads on a thread that may be busy.
async fn parse(bytes: Bytes) -> Result<Reading, ReadError> {
    let reading = start_blocking(move || farthing_bridge::read(&bytes)).await;
    reading.unwrap_or_else(|_| Err(ReadError::new("document", "it could not be read; please report this")))
}

async fn document(bytes: Bytes, name: String, url: Option<&Url>) -> Result<Intake, IntakeError> {
    match parse(bytes).await {
        Ok(reading) => Ok(Intake::of_document(reading, name, url)),
        Err(error) => Err(IntakeError::Unreadable { origin: name, error }),
    }
}

/// A document that was named by its address.
async fn fetched(page: Page, named: &Url) -> Result<Intake, IntakeError> {
    if !page.status.is_success() {
        return Err(IntakeError::Status { url: named.to_string(), status: page.status.as_u16() });
    }
    let mut bytes = page.body.clone();
    if page.is_html() || page.is_script() {
        // Documentation tools may put the document into their page.
        let embedded = pages::leads(&page.text(), &page.url).embedded;
        bytes = embedded.ok_or_else(|| IntakeError::Html { url: named.to_string() })?.into();
    }
    document(bytes, named.to_string(), Some(&page.url)).await
}

/// A schema as text, or introspection at `url` and the usual places below.
async fn graphql_at(url: &Url, options: &IntakeOptions) -> Result<Intake, IntakeError> {
    let fetcher = Fetcher::new(url, options.each, options)?;
    if scan::is_schema_file(url) {
        return schema_text(&fetcher, url).await;
    }
    let mut tried = Vec::new();
    for place in places::graphql(url) {
        let answer = graphql::ask(&fetcher, &place).await;
        match answer {
            Ok(Endpoint::Schema(reading)) => return Ok(Intake::of_endpoint(*reading, &place)),
            Ok(Endpoint::Unreadable(error)) => {
                return Err(IntakeError::Unreadable { origin: place.to_string(), error });
            }
            Err(miss @ Miss::Unreachable(_)) if tried.is_empty() => {
                return Err(IntakeError::missed(url, &miss));
            }
            other => {
                tried.push(ScanAttempt { url: place.to_string(), came: ScanOutcome::of_endpoint(&other) });
            }
        }
    }
    // The name of a schema's file need not end as such names usually do.
    let text = schema_text(&fetcher, url).await;
    match tried.iter().find(|tried| tried.came == ScanOutcome::Silent) {
        _ if text.is_ok() => text,
        Some(silent) => Err(IntakeError::Silent { url: silent.url.clone() }),
        None => Err(IntakeError::NothingFound { url: url.to_string(), what: "GraphQL", tried }),
    }
}

/// The schema that lies at `url`. A text does not tell where its server is, so the usual endpoints are asked.
async fn schema_text(fetcher: &Fetcher, url: &Url) -> Result<Intake, IntakeError> {
    let page = fetcher.get(url).await.map_err(|miss| IntakeError::missed(url, &miss))?;
    let mut intake = fetched(page, url).await?;
    for place in places::graphql(url).into_iter().skip(1) {
        if let Ok(Endpoint::Schema(_) | Endpoint::Unreadable(_) | Endpoint::Silent) =
            graphql::ask(fetcher, &place).await
        {
            intake.upstreams.push(place);
            break;
        }
    }
    Ok(intake)
}

/// Addresses that can be an upstream: those of the document, the ones on the host it came from first, or that
/// host when there are none.
fn upstreams(servers: &[String], origin: Option<&Url>) -> Vec<Url> {
    let resolved = servers.iter().filter_map(|server| match origin {
        Some(origin) => origin.join(server).ok(),
        None => Url::parse(server).ok(),
    });
    let mut list: Vec<Url> = Vec::new();
    for url in resolved.filter(can_be_upstream) {
        if !list.contains(&url) {
            list.push(url);
        }
    }
    if let Some(origin) = origin {
        if list.is_empty() {
            list.push(places::root(origin));
        }
        // The server that gave the document is there; the others may be a template's examples.
        list.sort_by_key(|url| url.origin() != origin.origin());
    }
    list
}

fn can_be_upstream(url: &Url) -> bool {
    check_base(url.as_str(), &UpstreamOptions::default()).is_ok()
}

#[cfg(test)]
mod tests;
