//! A consumer's application: a web page on which visitors pick a magnitude, and whose server buys the matching
//! earthquakes through the Farthing node beside it, one paid call for each time somebody asks.
//!
//! Everything Farthing needs is in [`Node::buy`]: one HTTPS request with the node's secret, and the same again under the
//! same call id when its answer is lost.

use std::{
    fmt, fs,
    net::SocketAddr,
    path::PathBuf,
    process,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use anyhow::Context;
use axum::{
    Form, Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{Html, IntoResponse, Response},
    routing::get,
};
use clap::Parser;
use farthing_demo_services::serve;
use serde::Deserialize;
use serde_json::{Value, json};

mod page;

use page::{Answer, BoughtQuakes, Prices};

/// A page that sells nothing and buys earthquakes: visitors pick a magnitude, the node on this machine pays.
#[derive(Debug, Parser)]
#[command(name = "quake-map", version)]
struct Arguments {
    /// Where to listen; port 0 takes a free one. The address is printed on standard output
    #[arg(long, default_value = "127.0.0.1:4003", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// The node's call endpoint
    #[arg(long, default_value = "https://localhost:3000", value_name = "URL")]
    node: String,
    /// The certificate that the node's was issued by: tls/ca.pem in its data folder
    #[arg(long, value_name = "FILE")]
    ca: PathBuf,
    /// A file with the consumer secret, as `farthing secret show` prints it
    #[arg(long, value_name = "FILE")]
    secret_file: PathBuf,
    /// The service to buy from
    #[arg(long, value_name = "UUID")]
    service: String,
    /// What one call may cost at most, in USDC
    #[arg(long, default_value = "0.01", value_name = "USDC")]
    max_price: String,
}

/// The operation that is bought.
const PATH: &str = "/v1/earthquakes/recent";
/// The most times that a call whose end is not known is sent in all, and the pause between.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// The longest that a page waits for the price.
const PRICE_WAIT: Duration = Duration::from_secs(5);

/// The node that pays.
#[derive(Debug)]
struct Node {
    client: reqwest::Client,
    url: String,
    secret: String,
    service: String,
    max_price: String,
    /// As the service's description told it last.
    price: Mutex<Option<String>>,
}

impl Node {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        // The first provider installed in a process stays; a second attempt changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let read = |file: &PathBuf| fs::read(file).with_context(|| format!("cannot read {}", file.display()));
        let ca =
            reqwest::Certificate::from_pem(&read(&arguments.ca)?).context("--ca holds no certificate")?;
        let secret = String::from_utf8(read(&arguments.secret_file)?).context("--secret-file is not text")?;
        Ok(Self {
            client: reqwest::Client::builder().tls_certs_only([ca]).no_proxy().build()?,
            url: arguments.node.trim_end_matches('/').to_owned(),
            secret: secret.trim().to_owned(),
            service: arguments.service.clone(),
            max_price: arguments.max_price.clone(),
            price: Mutex::default(),
        })
    }

    /// Reads what a call costs now: the service's description says so, which is free. What was known stays where it does not
    /// come.
    async fn look_up_price(&self) {
        let url = format!("{}/services/{}/openapi.json", self.url, self.service);
        let Ok(answer) = self.client.get(url).bearer_auth(&self.secret).timeout(PRICE_WAIT).send().await
        else {
            return;
        };
        let Ok(description) = answer.json::<Value>().await else { return };
        if let Some(price) = description["paths"][PATH]["get"]["x-farthing-price-usdc"].as_str() {
            *self.price.lock().unwrap_or_else(PoisonError::into_inner) = Some(price.to_owned());
        }
    }

    fn prices(&self) -> Prices {
        let price = self.price.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Prices { price, max: self.max_price.clone() }
    }

    /// One paid call. Its call id makes a repeat safe: the node charges it once, and gives its answer again. The error is for
    /// the visitor: what happened, and that nothing was charged where that is so.
    async fn buy(&self, magnitude: &str) -> Result<BoughtQuakes, String> {
        let call = json!({
            "call_id": new_call_id(),
            "api_id_public": self.service,
            "method": "GET",
            "path": PATH,
            "params": { "minmagnitude": magnitude, "limit": "50" },
            "max_price": self.max_price,
        });
        let mut attempt = 1;
        loop {
            match self.try_to_buy(&call).await {
                Err(Failed { charged: None, .. }) if attempt < ATTEMPTS => attempt += 1,
                bought => return bought.map_err(|failed| failed.to_string()),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn try_to_buy(&self, call: &Value) -> Result<BoughtQuakes, Failed> {
        let lost = |what: &str| Failed { what: what.to_owned(), charged: None };
        let began = Instant::now();
        let url = format!("{}/internal/call", self.url);
        let request = self.client.post(url).bearer_auth(&self.secret).json(call);
        let answer = request.send().await.map_err(|_| lost("The node does not answer. Is it running?"))?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body =
            answer.bytes().await.map_err(|_| lost("The node stopped before the answer was complete."))?;
        if status != StatusCode::OK {
            let problem: Value = serde_json::from_slice(&body).unwrap_or_default();
            let text = |name: &str| problem[name].as_str().unwrap_or_default().to_owned();
            let what = format!("{}. {}", text("title"), text("detail"));
            return Err(Failed { what, charged: problem["charged"].as_bool() });
        }
        let Answer { features: quakes } = serde_json::from_slice(&body).map_err(|_| Failed {
            what: "The service returned an unexpected answer.".to_owned(),
            charged: Some(true),
        })?;
        let charged = headers.get("x-farthing-charged").and_then(|value| value.to_str().ok());
        Ok(BoughtQuakes {
            quakes,
            charged: charged.unwrap_or("0").to_owned(),
            milliseconds: began.elapsed().as_millis(),
        })
    }
}

/// The reason that nothing was bought, as far as is known.
#[derive(Debug)]
struct Failed {
    what: String,
    /// `None`: nobody knows yet, and the same call id is to be asked again.
    charged: Option<bool>,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let charged = match self.charged {
            Some(true) => "You were charged.",
            Some(false) => "You were not charged.",
            None => "It is not known yet whether you were charged.",
        };
        write!(f, "{} {charged}", self.what)
    }
}

/// A name that no other call of this wallet has.
fn new_call_id() -> String {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (process, call) = (process::id(), CALLS.fetch_add(1, Ordering::Relaxed));
    format!("quake-map {} {process} {call}", since_epoch.as_nanos())
}

#[derive(Debug, Deserialize)]
struct Wish {
    magnitude: String,
}

/// Only this page's own form may spend money: not one of a page elsewhere, nor one whose name was made to lead here.
async fn buy(State(node): State<&'static Node>, headers: HeaderMap, Form(wish): Form<Wish>) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    // A program that is no browser sends neither.
    let from_here = match headers.get("sec-fetch-site") {
        Some(site) => site == "same-origin",
        None => headers.get(header::ORIGIN).is_none_or(|origin| *origin == *format!("http://{host}")),
    };
    let is_address = host.parse::<SocketAddr>().is_ok() || host.split(':').next() == Some("localhost");
    if !from_here || !is_address {
        return (StatusCode::FORBIDDEN, "To buy, open the page itself.").into_response();
    }
    let bought = node.buy(&wish.magnitude).await;
    Html(page::page(&wish.magnitude, &node.prices(), Some(&bought))).into_response()
}

async fn show(State(node): State<&'static Node>) -> Html<String> {
    node.look_up_price().await;
    Html(page::page("4.5", &node.prices(), None))
}

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css")], include_str!("style.css"))
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    serve::log_to_stderr();
    let node: &'static Node = Box::leak(Box::new(Node::new(&arguments)?));
    let app = Router::new().route("/", get(show).post(buy)).route("/style.css", get(style)).with_state(node);
    serve::run(arguments.listen, app.layer(axum::middleware::map_response(page::guarded))).await
}
