//! A chain endpoint that says of channels and of blocks' dates what a test has it say, and of everything else what the chain
//! does.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use anyhow::{Context, Result};
use axum::{Json, Router, extract::State, routing::post};
use farthing_values::keccak256;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What the contract's `state(bytes32)` answers: deposited, claimed, the second of a close, round.
pub type ChannelState = [u128; 4];
/// Turns what the chain says of a channel into what is said instead.
type Lie = Box<dyn FnMut(ChannelState) -> ChannelState + Send>;

/// It ends with the test's runtime.
pub struct Liar {
    url: String,
    chain: OnceLock<String>,
    lie: Mutex<Option<Lie>>,
    /// What contracts say is told as of this block.
    stands_at: Mutex<Option<u64>>,
    /// Blocks are dated so many seconds before their time.
    older_by_secs: AtomicU64,
    /// Blocks are dated so many seconds after their time.
    newer_by_secs: AtomicU64,
    /// How often the token was asked whether it has taken an authorization.
    asked_of_payments: AtomicUsize,
    /// The most of these questions that came in one request.
    payments_at_once_max: AtomicUsize,
    /// It fails when it is asked that.
    keeps_payments_back: AtomicBool,
    /// How often a channel was told of otherwise than it is.
    told: AtomicUsize,
}

farthing_os::hidden!(Liar { url });

impl Liar {
    pub async fn start() -> Result<Arc<Self>> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (chain, lie, stands_at, told) = Default::default();
        let (older_by_secs, newer_by_secs, keeps_payments_back) = Default::default();
        let (asked_of_payments, payments_at_once_max) = Default::default();
        let liar = Arc::new(Self {
            url,
            chain,
            lie,
            stands_at,
            older_by_secs,
            newer_by_secs,
            asked_of_payments,
            payments_at_once_max,
            keeps_payments_back,
            told,
        });
        let router = Router::new().route("/", post(answer)).with_state(Arc::clone(&liar));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(liar)
    }

    /// The setting that has a node ask it, about the chain at `rpc_url`.
    pub fn stand_before(&self, rpc_url: String) -> (String, String) {
        self.chain.get_or_init(|| rpc_url);
        ("chain.rpc_urls".to_owned(), self.url.clone())
    }

    pub fn lie(&self, lie: impl FnMut(ChannelState) -> ChannelState + Send + 'static) {
        *self.lie.lock() = Some(Box::new(lie));
    }

    /// Tells what contracts say as of this block, and nothing of it before the chain has the block.
    pub fn stand_at(&self, block: u64) {
        *self.stands_at.lock() = Some(block);
    }

    /// Dates every block so many seconds before its time, as an endpoint shows them that has stood still for as long.
    pub fn stand_still_for(&self, secs: u64) {
        self.older_by_secs.store(secs, Ordering::SeqCst);
    }

    /// Dates every block so many seconds after its time.
    pub fn date_ahead(&self, secs: u64) {
        self.newer_by_secs.store(secs, Ordering::SeqCst);
    }

    /// Fails when it is asked whether the token has taken an authorization.
    pub fn keep_payments_back(&self) {
        self.keeps_payments_back.store(true, Ordering::SeqCst);
    }

    pub fn tell_the_truth(&self) {
        self.keeps_payments_back.store(false, Ordering::SeqCst);
        *self.lie.lock() = None;
        *self.stands_at.lock() = None;
        self.older_by_secs.store(0, Ordering::SeqCst);
        self.newer_by_secs.store(0, Ordering::SeqCst);
    }

    pub fn told(&self) -> usize {
        self.told.load(Ordering::SeqCst)
    }

    /// Counts the questions whether the token has taken an authorization.
    pub fn asked_of_payments(&self) -> usize {
        self.asked_of_payments.load(Ordering::SeqCst)
    }

    /// Returns the most of these questions that came in one request.
    pub fn payments_at_once_max(&self) -> usize {
        self.payments_at_once_max.load(Ordering::SeqCst)
    }

    /// The request, asked of the block at which this endpoint stands.
    fn delay(&self, request: &mut Value) {
        let block = *self.stands_at.lock();
        let is_of_contracts = matches!(request["method"].as_str(), Some("eth_call" | "eth_estimateGas"));
        if let Some(block) = block.filter(|_| is_of_contracts)
            && let Some(params) = request["params"].as_array_mut()
        {
            params.truncate(1);
            params.push(json!(format!("{block:#x}")));
        }
    }

    fn rewrite(&self, request: &Value, answer: &mut Value) -> Option<()> {
        if request["method"] == "eth_getBlockByNumber" {
            return self.date(answer.get_mut("result")?);
        }
        let asked = request["params"][0]["data"].as_str().or(request["params"][0]["input"].as_str())?;
        if is_of_payment(request) {
            self.asked_of_payments.fetch_add(1, Ordering::SeqCst);
            if self.keeps_payments_back.load(Ordering::SeqCst) {
                let error = json!({ "code": -32603, "message": "not now" });
                *answer = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
                return None;
            }
        }
        let selector = selector(b"state(bytes32)");
        let words = answer["result"].as_str()?.strip_prefix("0x").filter(|words| words.len() == 4 * 64)?;
        let mut lie = self.lie.lock();
        let lie = lie.as_mut().filter(|_| asked.starts_with(&selector))?;
        let mut state = [0; 4];
        for (number, word) in state.iter_mut().zip(words.as_bytes().chunks(64)) {
            *number = u128::from_str_radix(std::str::from_utf8(&word[32..]).ok()?, 16).ok()?;
        }
        let said = lie(state);
        if said != state {
            self.told.fetch_add(1, Ordering::SeqCst);
            let words: String = said.iter().map(|number| format!("{number:064x}")).collect();
            answer["result"] = json!(format!("0x{words}"));
        }
        Some(())
    }

    fn date(&self, block: &mut Value) -> Option<()> {
        let dated = block.get("timestamp")?.as_str()?.strip_prefix("0x")?;
        let dated = u64::from_str_radix(dated, 16).ok()?;
        let told = dated.saturating_sub(self.older_by_secs.load(Ordering::SeqCst));
        let told = told.saturating_add(self.newer_by_secs.load(Ordering::SeqCst));
        block["timestamp"] = json!(format!("{told:#x}"));
        Some(())
    }
}

/// Returns whether a request asks if the token has taken an authorization.
fn is_of_payment(request: &Value) -> bool {
    let call = &request["params"][0];
    let asked = call["data"].as_str().or(call["input"].as_str());
    asked.is_some_and(|asked| asked.starts_with(&selector(b"authorizationState(address,bytes32)")))
}

/// The first bytes of a call's data.
fn selector(signature: &[u8]) -> String {
    format!("0x{}", hex::encode(&keccak256(&[signature])[..4]))
}

async fn answer(State(liar): State<Arc<Liar>>, Json(mut request): Json<Value>) -> Json<Value> {
    match &mut request {
        Value::Array(requests) => requests.iter_mut().for_each(|request| liar.delay(request)),
        request => liar.delay(request),
    }
    let asked = ask(&liar, &request).await;
    Json(asked.unwrap_or_else(|error| json!({ "error": { "code": -32603, "message": error.to_string() } })))
}

async fn ask(liar: &Liar, request: &Value) -> Result<Value> {
    let chain = liar.chain.get().context("no chain stands behind it yet")?;
    let mut answer: Value = reqwest::Client::new().post(chain).json(request).send().await?.json().await?;
    match (request.as_array(), answer.as_array_mut()) {
        (Some(requests), Some(answers)) => {
            let of_payments = requests.iter().filter(|request| is_of_payment(request)).count();
            liar.payments_at_once_max.fetch_max(of_payments, Ordering::SeqCst);
            for answer in answers {
                let request = requests.iter().find(|request| request["id"] == answer["id"]);
                request.and_then(|request| liar.rewrite(request, answer));
            }
        }
        _ => drop(liar.rewrite(request, &mut answer)),
    }
    Ok(answer)
}
