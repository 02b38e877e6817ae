//! JSON-RPC over HTTP with fallback: one request goes to the endpoint that answered last, then to the next
//! ones, each within its own timeout.
//!
//! In order: pick the endpoint, check once that it serves the right chain, post the request, read a bounded
//! answer, and either return what the chain said (a revert is an answer) or turn to the next endpoint.
//! Every request is counted by purpose; that is how the demo shows that no call waits for a chain.
//!
//! Its client ([`client`]) decides where an endpoint may be, and by which way it is asked.
//!
//! Invariant: an endpoint's address appears nowhere but in its requests, because it may hold an access key.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use url::Url;

use crate::spec::ChainSpec;

mod answer;
mod client;
mod way;

use client::Clients;
use way::Way;

pub(crate) use answer::{Answered, Call, Refusal, read as read_answers, typed};

/// The reason that a request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The background watcher: heads, channels, balances.
    Watch,
    /// The transaction writer.
    Write,
    /// Somebody asked and waits.
    OnDemand,
}

/// JSON-RPC requests made since the start; one batch counts each of its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts {
    pub watch: u64,
    pub write: u64,
    pub on_demand: u64,
}

/// The reason that there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum RpcError {
    /// The chain answered with an error: a revert, or a transaction it does not take.
    #[error("{0}")]
    Refused(Refusal),
    /// Every endpoint was tried.
    #[error("{0}")]
    Unreachable(String),
    /// The endpoint that answers serves another chain.
    #[error("{0}")]
    WrongChain(String),
}

/// The request for events.
pub(crate) const EVENTS: &str = "eth_getLogs";
/// Requests in one HTTP exchange; public endpoints refuse long batches.
const BATCH_MAX: usize = 10;

#[derive(Debug)]
struct Endpoint {
    url: Url,
    /// Host and port: what may be shown.
    shown: String,
    way: Way,
    /// It answered the right chain id.
    checked: AtomicBool,
}

/// A cheap-to-share client of one chain.
#[derive(Debug)]
pub(crate) struct Rpc {
    endpoints: Vec<Endpoint>,
    /// Index of the endpoint that answered last.
    preferred: AtomicUsize,
    /// The distance from it, in the list, to the endpoint that is asked for events: some answer everything else.
    events_from: AtomicUsize,
    chain_id: u64,
    timeout: Duration,
    /// True if the chain has Multicall3; asked once.
    pub(crate) multicall: OnceLock<bool>,
    counts: [AtomicU64; 3],
}

impl Rpc {
    /// # Errors
    /// A sentence when an address is not usable or no TLS is available.
    pub(crate) fn new(spec: &ChainSpec) -> Result<Self, String> {
        let mut clients = Clients::of(spec.kind);
        let endpoints =
            spec.rpc_urls.iter().map(|text| endpoint(text, &mut clients)).collect::<Result<Vec<_>, _>>()?;
        Self::of(spec, endpoints)
    }

    /// The same with endpoints that a test plays.
    ///
    /// # Errors
    /// A sentence when there is none.
    #[cfg(feature = "played")]
    pub(crate) fn played(
        spec: &ChainSpec,
        endpoints: Vec<crate::played::PlayedEndpoint>,
    ) -> Result<Self, String> {
        let mut made = Vec::with_capacity(endpoints.len());
        for (index, endpoint) in endpoints.into_iter().enumerate() {
            let shown = format!("played-{index}");
            let url = Url::parse(&format!("http://{shown}/")).map_err(|error| error.to_string())?;
            let (way, checked) = (Way::Played(endpoint), AtomicBool::new(false));
            made.push(Endpoint { url, shown, way, checked });
        }
        Self::of(spec, made)
    }

    fn of(spec: &ChainSpec, endpoints: Vec<Endpoint>) -> Result<Self, String> {
        if endpoints.is_empty() {
            return Err(format!("no RPC endpoint is configured for {}", spec.name));
        }
        Ok(Self {
            endpoints,
            preferred: AtomicUsize::new(0),
            events_from: AtomicUsize::new(0),
            chain_id: spec.chain_id,
            timeout: Duration::from_millis(spec.request_timeout_ms),
            multicall: OnceLock::new(),
            counts: Default::default(),
        })
    }

    pub(crate) fn counts(&self) -> RequestCounts {
        let [watch, write, on_demand] = [0, 1, 2].map(|i| self.counts[i].load(Relaxed));
        RequestCounts { watch, write, on_demand }
    }

    /// Host and port of the first endpoint.
    pub(crate) fn shown(&self) -> &str {
        self.endpoints.first().map_or("", |endpoint| &endpoint.shown)
    }

    pub(crate) async fn request<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        method: &'static str,
        params: Value,
    ) -> Result<T, RpcError> {
        let mut answers = self.batch(purpose, &[Call { method, params }]).await?;
        let answer = answers.pop().ok_or_else(|| RpcError::Unreachable("an empty answer".into()))?;
        typed(method, &answer.map_err(RpcError::Refused)?)
    }

    /// One request to every endpoint at once, for what one of them may keep to itself. Waits for all of them, within the
    /// time-out; done when one has taken it.
    pub(crate) async fn tell_all(
        &self,
        purpose: Purpose,
        method: &'static str,
        params: Value,
    ) -> Result<(), RpcError> {
        let calls = [Call { method, params }];
        let asked = self.endpoints.iter().map(|endpoint| self.ask(purpose, endpoint, &calls));
        let mut worst = RpcError::Unreachable("no endpoint accepts it".to_owned());
        for answers in futures::future::join_all(asked).await.into_iter().flatten() {
            match answers.into_iter().next() {
                Some(Ok(_)) => return Ok(()),
                Some(Err(refusal)) => worst = RpcError::Refused(refusal),
                None => {}
            }
        }
        Err(worst)
    }

    /// Many requests, answered in their order. All of one chunk come from one endpoint.
    pub(crate) async fn batch(&self, purpose: Purpose, calls: &[Call]) -> Result<Vec<Answered>, RpcError> {
        let mut answers = Vec::with_capacity(calls.len());
        for chunk in calls.chunks(BATCH_MAX) {
            answers.extend(self.chunk(purpose, chunk).await?);
        }
        Ok(answers)
    }

    /// Prefers another endpoint from now on, because this one lags behind.
    pub(crate) fn turn_to_next(&self) {
        let next = (self.preferred.load(Relaxed) + 1) % self.endpoints.len();
        self.preferred.store(next, Relaxed);
    }

    pub(crate) fn events_from(&self) -> usize {
        self.events_from.load(Relaxed)
    }

    /// Asks the endpoint for events from now on that is so far behind the preferred one.
    pub(crate) fn read_events_from(&self, behind: usize) {
        self.events_from.store(behind % self.endpoints.len(), Relaxed);
    }

    async fn chunk(&self, purpose: Purpose, calls: &[Call]) -> Result<Vec<Answered>, RpcError> {
        let is_about_events = calls.iter().any(|call| call.method == EVENTS);
        let behind = if is_about_events { self.events_from() } else { 0 };
        let first = self.preferred.load(Relaxed) + behind;
        let mut reasons = Vec::new();
        let mut wrong_chain = false;
        for step in 0..self.endpoints.len() {
            let index = (first + step) % self.endpoints.len();
            let endpoint = &self.endpoints[index];
            match self.ask(purpose, endpoint, calls).await {
                Ok(answers) => {
                    if behind == 0 {
                        self.preferred.store(index, Relaxed);
                    }
                    return Ok(answers);
                }
                Err(failure) => {
                    tracing::debug!(endpoint = endpoint.shown, reason = failure.text, "endpoint failed");
                    wrong_chain |= failure.wrong_chain;
                    reasons.push(format!("{} {}", endpoint.shown, failure.text));
                }
            }
        }
        let reason = reasons.join("; ");
        Err(if wrong_chain { RpcError::WrongChain(reason) } else { RpcError::Unreachable(reason) })
    }

    async fn ask(
        &self,
        purpose: Purpose,
        endpoint: &Endpoint,
        calls: &[Call],
    ) -> Result<Vec<Answered>, Failure> {
        if !endpoint.checked.load(Relaxed) {
            self.check_chain(purpose, endpoint).await?;
        }
        let answers = self.post(purpose, endpoint, calls).await?;
        // Limits and internal troubles of one endpoint are no word of the chain: ask the next one.
        match answers
            .iter()
            .find_map(|answer| answer.as_ref().err().filter(|refusal| refusal.is_endpoints_own()))
        {
            Some(trouble) => Err(Failure::from(format!("answers: {trouble}"))),
            None => Ok(answers),
        }
    }

    async fn check_chain(&self, purpose: Purpose, endpoint: &Endpoint) -> Result<(), Failure> {
        let method = "eth_chainId";
        let call = Call { method, params: json!([]) };
        let answer = self.post(purpose, endpoint, &[call]).await?.pop().and_then(Result::ok);
        let id: Option<String> = answer.and_then(|answer| typed(method, &answer).ok());
        let id = id.as_deref().and_then(|text| text.strip_prefix("0x"));
        match id.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
            Some(id) if id == self.chain_id => {
                endpoint.checked.store(true, Relaxed);
                Ok(())
            }
            Some(id) => Err(Failure {
                text: format!("serves chain {id}, not chain {}", self.chain_id),
                wrong_chain: true,
            }),
            None => Err(Failure::from("does not return its chain id".to_owned())),
        }
    }

    async fn post(
        &self,
        purpose: Purpose,
        endpoint: &Endpoint,
        calls: &[Call],
    ) -> Result<Vec<Answered>, Failure> {
        let counter = &self.counts[purpose as usize];
        counter.fetch_add(u64::try_from(calls.len()).unwrap_or(u64::MAX), Relaxed);
        let body = answer::request_body(calls);
        let exchange = async {
            let (status, bytes) = endpoint.way.exchange(&endpoint.url, body).await?;
            // Some endpoints send JSON-RPC errors with an error status; any other such answer is a failure.
            read_answers(calls.len(), &bytes).ok_or_else(|| format!("answers HTTP {status} without JSON-RPC"))
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(answers) => answers.map_err(Failure::from),
            Err(_) => Err(Failure::from(format!("did not answer within {} ms", self.timeout.as_millis()))),
        }
    }
}

/// The reason that one endpoint gave no usable answer.
struct Failure {
    text: String,
    wrong_chain: bool,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self { text, wrong_chain: false }
    }
}

fn endpoint(text: &str, clients: &mut Clients) -> Result<Endpoint, String> {
    // The text itself is not repeated: it may hold an access key.
    let url = Url::parse(text).map_err(|error| format!("an RPC endpoint is not a URL: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("an RPC endpoint must start with http:// or https://".to_owned());
    }
    let host = url.host().ok_or("an RPC endpoint has no host")?;
    let shown = url.port().map_or_else(|| host.to_string(), |port| format!("{host}:{port}"));
    let way = Way::Http(clients.of_host(&host)?);
    Ok(Endpoint { url, shown, way, checked: AtomicBool::new(false) })
}
