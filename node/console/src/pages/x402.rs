//! x402 servers that this node buys from: all of them, one of them with what was spent there, and the forms that add, ask and
//! remove one.
//!
//! A server is asked for its terms before it is added, so that the user sees the price first. What it says is a stranger's text.

use askama::Template;
use axum::{
    extract::{Path, Query},
    response::IntoResponse,
};
use farthing_control::{
    Local, endpoint,
    types::{NewX402Server, SeriesRange, ServiceIdText, Text, X402Question, X402Server, X402Terms},
};
use farthing_os::clock;
use farthing_values::{ServiceId, Usdc};
use serde::Deserialize;

use crate::{
    failure::{Failure, Page},
    form::{Form, NoFields},
    frame::{Frame, Section, Visit},
    markup::LINE_CHARS,
    page::{Rendered, answer},
    series::{CallsOf, Charts},
    show,
    texts::Done,
};

use super::{
    register::{mendable, price},
    service::{BoughtShown, service_id},
};

mod calling;

pub(super) use calling::asked_path;
use calling::{Way, ways};

const ADDRESS: &str = "/panel/x402";
/// The node is asked for the figures of each, and a page is small.
const ROWS_SHOWN: usize = 16;
/// Of an address in the list.
const ADDRESS_CHARS_MAX: usize = 72;
/// As the node reads it.
const DESCRIPTION_CHARS_MAX: usize = 300;
/// Of a chain's name, as a server has it.
const NETWORK_CHARS_MAX: usize = 64;
/// Of a reason of the node's, which may quote a server.
const REASON_CHARS_MAX: usize = 400;
/// The status of an answer that asks for a payment.
const PAYMENT_REQUIRED: u16 = 402;

#[derive(Template)]
#[template(path = "x402.html")]
struct X402ListTemplate {
    frame: Frame,
    rows: Vec<ServerRow>,
    total: usize,
    earlier: Option<String>,
    later: Option<String>,
    fields: X402Fields,
    problems: X402Problems,
}

/// A server as the list has it.
struct ServerRow {
    id: String,
    name: String,
    address: String,
    asks: String,
    network: String,
    /// The beginning of the server's own words.
    says: String,
    max_price: String,
    calls: u64,
    spent: String,
}

#[derive(Template)]
#[template(path = "x402-add.html")]
struct X402AddTemplate {
    frame: Frame,
    terms: TermsShown,
    fields: X402Fields,
    max_price: String,
}

#[derive(Template)]
#[template(path = "x402-one.html")]
struct X402OneTemplate {
    frame: Frame,
    id: String,
    name: String,
    address: String,
    added: String,
    max_price: String,
    terms: Option<TermsShown>,
    bought: Option<BoughtShown>,
    ways: Vec<Way>,
    path: String,
    price: String,
    problems: X402Problems,
}

#[derive(Template)]
#[template(path = "x402-remove.html")]
struct X402RemoveTemplate {
    frame: Frame,
    id: String,
    name: String,
    address: String,
}

/// The terms of a server, in words.
struct TermsShown {
    address: String,
    heard: String,
    asks: String,
    network: String,
    pay_to: String,
    description: String,
    /// The reason that the node would not pay.
    refused: String,
}

impl TermsShown {
    fn new(terms: &X402Terms, now_secs: u64) -> Self {
        let refused = words(terms.refused.as_deref(), REASON_CHARS_MAX);
        Self {
            address: show::visible(&terms.url),
            heard: show::ago(terms.heard_secs, now_secs),
            asks: asks(terms),
            network: words(terms.network.as_deref(), NETWORK_CHARS_MAX),
            pay_to: terms.pay_to.map_or_else(String::new, |wallet| wallet.to_string()),
            description: words(terms.description.as_deref(), DESCRIPTION_CHARS_MAX),
            refused: if refused.is_empty() { refused } else { crate::texts::sentence(&refused) },
        }
    }
}

/// The beginning of a stranger's text; nothing if there is none.
fn words(text: Option<&str>, chars_max: usize) -> String {
    text.map_or_else(String::new, |text| show::beginning(text, chars_max))
}

/// The price, or the reason that there is none, in a few words.
pub(super) fn asks(terms: &X402Terms) -> String {
    match (terms.price, terms.status) {
        (Some(price), _) => format!("{} USDC", show::usdc(price.0)),
        (None, PAYMENT_REQUIRED) => "a payment that your node does not make".to_owned(),
        (None, status @ 200..300) => format!("asks for no payment here (status {status})"),
        (None, status) => format!("no price here (status {status}): add the path of an operation"),
    }
}

/// The host of a server, which stands for a name.
pub(super) fn name_of(server: &X402Server) -> String {
    let host = server.url.split('/').nth(2).unwrap_or_default();
    show::beginning(host, ADDRESS_CHARS_MAX)
}

/// A server to add, or what is changed of one, as it was typed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct X402Fields {
    url: String,
    max_price: String,
    /// A path below the server's address, to be asked for its price.
    path: String,
}

/// Mistakes in the fields of a form, in words beside each.
#[derive(Default)]
struct X402Problems {
    url: Option<String>,
    max_price: Option<String>,
    path: Option<String>,
}

impl X402Problems {
    fn of_url(problem: String) -> Self {
        Self { url: Some(problem), ..Self::default() }
    }

    fn of_price(problem: String) -> Self {
        Self { max_price: Some(problem), ..Self::default() }
    }

    fn of_path(problem: String) -> Self {
        Self { path: Some(problem), ..Self::default() }
    }

    fn any(&self) -> Option<&String> {
        self.url.as_ref().or(self.max_price.as_ref()).or(self.path.as_ref())
    }
}

impl X402Fields {
    fn most(&self) -> Result<Usdc, X402Problems> {
        price("Highest price", &self.max_price).map_err(|wrong| X402Problems::of_price(wrong.words()))
    }
}

/// The answer to a form, or the mistakes in it.
type Mended<T> = Result<T, X402Problems>;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct X402Params {
    page: String,
    range: Option<String>,
}

pub(super) async fn show(visit: Visit, Query(asked): Query<X402Params>) -> Page {
    list_page(&visit, &asked, X402Fields::default(), X402Problems::default()).await
}

async fn list_page(visit: &Visit, asked: &X402Params, fields: X402Fields, problems: X402Problems) -> Page {
    let node = visit.panel.node();
    let servers = node.ask(endpoint::X402Servers).await?;
    let pages = servers.len().div_ceil(ROWS_SHOWN).max(1);
    let number = asked.page.parse().unwrap_or(1_usize).clamp(1, pages);
    let mut rows = Vec::new();
    for server in servers.iter().skip((number - 1) * ROWS_SHOWN).take(ROWS_SHOWN) {
        rows.push(row(node, server).await?);
    }
    let link = |number: usize| format!("{ADDRESS}?page={number}");
    let page = X402ListTemplate {
        frame: visit.frame(Section::Catalog).await?,
        rows,
        total: servers.len(),
        earlier: (number > 1).then(|| link(number - 1)),
        later: (number < pages).then(|| link(number + 1)),
        fields,
        problems,
    };
    Ok(answer(&page, page.problems.any()))
}

async fn row(node: &Local, server: &X402Server) -> Result<ServerRow, Failure> {
    let calls = CallsOf::Service(server.id.0);
    let (calls, spent) = Charts::of(node, SeriesRange::Year, calls).await?.bought_sum();
    let terms = server.terms.as_ref();
    Ok(ServerRow {
        id: server.id.to_string(),
        name: name_of(server),
        address: show::beginning(&server.url, ADDRESS_CHARS_MAX),
        asks: terms.map_or_else(|| "not asked yet".to_owned(), asks),
        network: words(terms.and_then(|terms| terms.network.as_deref()), NETWORK_CHARS_MAX),
        says: words(terms.and_then(|terms| terms.description.as_deref()), LINE_CHARS),
        max_price: server.max_price.map_or_else(|| "–".to_owned(), |most| show::usdc(most.0)),
        calls,
        spent: show::usdc(spent),
    })
}

/// Asks a server for its terms, and shows them before the server is added.
pub(super) async fn look(form: Form<X402Fields>) -> Page {
    let Form { visit, fields, .. } = form;
    match offered(visit.panel.node(), &fields).await? {
        Ok((terms, most)) => {
            let page = X402AddTemplate {
                frame: visit.frame(Section::Catalog).await?,
                terms: TermsShown::new(&terms, clock::now_secs()),
                max_price: show::usdc(most),
                fields,
            };
            Ok(Rendered(&page).into_response())
        }
        Err(problems) => list_page(&visit, &X402Params::default(), fields, problems).await,
    }
}

/// The terms of a server that may be added, and the highest price of its calls.
async fn offered(node: &Local, fields: &X402Fields) -> Result<Mended<(X402Terms, Usdc)>, Failure> {
    let most = match fields.most() {
        Ok(most) => most,
        Err(problems) => return Ok(Err(problems)),
    };
    let question = X402Question { url: fields.url.trim().to_owned() };
    let terms = match mendable(node.tell(endpoint::AskX402Server, &question).await)? {
        Ok(terms) => terms,
        Err(problem) => return Ok(Err(X402Problems::of_url(problem))),
    };
    match terms.price {
        Some(Text(price)) if price > most => {
            let price = show::usdc(price);
            let problem = format!("The server asks {price} USDC for a call, which is more than this price.");
            Ok(Err(X402Problems::of_price(problem)))
        }
        _ => Ok(Ok((terms, most))),
    }
}

/// Adds the server that the page before has shown. Every secret that names no services may pay it then.
pub(super) async fn add(form: Form<X402Fields>) -> Page {
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    match tell(visit.panel.node(), &fields).await? {
        Ok(server) => Ok(Done::ServerAdded.at(&address(server.id)).into_response()),
        Err(problems) => list_page(&visit, &X402Params::default(), fields, problems).await,
    }
}

/// Tells the node the address and the highest price of a server, known or not.
async fn tell(node: &Local, fields: &X402Fields) -> Result<Mended<X402Server>, Failure> {
    let most = match fields.most() {
        Ok(most) => most,
        Err(problems) => return Ok(Err(problems)),
    };
    let new = NewX402Server { url: fields.url.trim().to_owned(), max_price: Some(most.into()) };
    Ok(mendable(node.tell(endpoint::AddX402Server, &new).await)?.map_err(X402Problems::of_url))
}

/// The address of the page of a server.
fn address(id: ServiceIdText) -> String {
    format!("{ADDRESS}/{id}")
}

/// The server of an address; what is none has no page.
pub(super) async fn server_of(node: &Local, id: &str) -> Result<X402Server, Failure> {
    let id: ServiceId = service_id(id)?;
    let servers = node.ask(endpoint::X402Servers).await?;
    servers.into_iter().find(|server| server.id.0 == id).ok_or_else(Failure::not_found)
}

pub(super) async fn one(visit: Visit, Path(id): Path<String>, Query(asked): Query<X402Params>) -> Page {
    let server = server_of(visit.panel.node(), &id).await?;
    one_page(&visit, &server, &asked, X402Fields::default(), X402Problems::default()).await
}

async fn one_page(
    visit: &Visit,
    server: &X402Server,
    asked: &X402Params,
    typed: X402Fields,
    problems: X402Problems,
) -> Page {
    let (node, now_secs) = (visit.panel.node(), clock::now_secs());
    let place = address(server.id);
    let calls = CallsOf::Service(server.id.0);
    let bought = BoughtShown::of(node, calls, &place, asked.range.as_deref()).await?;
    let frame = visit.frame(Section::Catalog).await?;
    let price = server.max_price.map_or_else(String::new, |most| most.to_string());
    let page = X402OneTemplate {
        ways: ways(server, &frame.status.gateway_url),
        id: server.id.to_string(),
        name: name_of(server),
        address: show::visible(&server.url),
        added: show::ago(server.added_secs, now_secs),
        max_price: server.max_price.map_or_else(String::new, |most| show::usdc(most.0)),
        terms: server.terms.as_ref().map(|terms| TermsShown::new(terms, now_secs)),
        bought,
        path: show::visible(&typed.path),
        price: if typed.max_price.is_empty() { price } else { typed.max_price },
        problems,
        frame,
    };
    Ok(answer(&page, page.problems.any()))
}

/// Asks a server for the price of one of its paths.
pub(super) async fn ask(Path(id): Path<String>, form: Form<X402Fields>) -> Page {
    let Form { visit, fields, .. } = form;
    let node = visit.panel.node();
    let server = server_of(node, &id).await?;
    let path = fields.path.trim();
    let slash = if path.is_empty() || path.starts_with('/') { "" } else { "/" };
    let question = X402Question { url: format!("{}{slash}{path}", server.url.trim_end_matches('/')) };
    match mendable(node.tell(endpoint::AskX402Server, &question).await)? {
        Ok(_) => Ok(Done::ServerAsked.at(&address(server.id)).into_response()),
        Err(problem) => {
            let problems = X402Problems::of_path(problem);
            one_page(&visit, &server, &X402Params::default(), fields, problems).await
        }
    }
}

/// Sets the highest price of a server, which is a limit of what is spent.
pub(super) async fn set_price(Path(id): Path<String>, form: Form<X402Fields>) -> Page {
    let _ = form.reauthenticated()?;
    let Form { visit, fields, .. } = form;
    let node = visit.panel.node();
    let server = server_of(node, &id).await?;
    let fields = X402Fields { url: server.url.clone(), ..fields };
    match tell(node, &fields).await? {
        Ok(server) => Ok(Done::ServerPrice.at(&address(server.id)).into_response()),
        Err(X402Problems { url, max_price, .. }) => {
            let problems = X402Problems { max_price: max_price.or(url), ..X402Problems::default() };
            one_page(&visit, &server, &X402Params::default(), fields, problems).await
        }
    }
}

pub(super) async fn remove_page(visit: Visit, Path(id): Path<String>) -> Page {
    let server = server_of(visit.panel.node(), &id).await?;
    let page = X402RemoveTemplate {
        id: server.id.to_string(),
        name: name_of(&server),
        address: show::visible(&server.url),
        frame: visit.frame(Section::Catalog).await?,
    };
    Ok(Rendered(&page).into_response())
}

pub(super) async fn remove(Path(id): Path<String>, form: Form<NoFields>) -> Page {
    let id = service_id(&id)?;
    form.visit.panel.node().ask(endpoint::RemoveX402Server.of(id)).await?;
    Ok(Done::ServerRemoved.at(ADDRESS).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(status: u16, price: Option<&str>) -> X402Terms {
        X402Terms {
            url: "https://data.example/api/it's".to_owned(),
            heard_secs: 100,
            status,
            price: price.map(|price| price.parse().unwrap()),
            network: Some(format!("eip155:{}", "1".repeat(200))),
            pay_to: None,
            description: Some("a\u{202e}b<i>".repeat(200)),
            refused: None,
        }
    }

    #[test]
    fn what_a_server_says_is_bounded_and_turns_nothing_around() {
        let shown = TermsShown::new(&terms(402, Some("0.002")), 160);
        assert_eq!((shown.asks.as_str(), shown.heard.as_str()), ("0.002 USDC", "1 min ago"));
        assert!(shown.description.starts_with("ab<i>ab"), "{}", shown.description);
        assert_eq!(shown.description.chars().count(), DESCRIPTION_CHARS_MAX + 1);
        assert_eq!(shown.network.chars().count(), NETWORK_CHARS_MAX + 1);
        assert!(asks(&terms(402, None)).contains("does not make"));
        assert_eq!(asks(&terms(200, None)), "asks for no payment here (status 200)");
        assert_eq!(asks(&terms(404, None)), "no price here (status 404): add the path of an operation");
    }
}
