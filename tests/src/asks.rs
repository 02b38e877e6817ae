//! x402 servers without a chain: one asks for a payment, whatever comes, and takes none; the other says that it takes each.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use axum::{
    Json, Router,
    extract::{Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use farthing_control::encoded;
use farthing_values::Address;
use serde_json::json;
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use crate::upstream::serve;

/// The wallet that it wants to be paid.
const PAYEE: Address = Address::from_bytes([7; 20]);
const NETWORK: &str = "eip155:31337";

/// What a server asks for, as its header says it.
fn offer(token: Address, micros: u64, description: &str) -> String {
    let required = json!({
        "x402Version": 2,
        "resource": { "url": "https://data.example/", "description": description },
        "accepts": [{
            "scheme": "exact",
            "network": NETWORK,
            "amount": micros.to_string(),
            "asset": token.to_string(),
            "payTo": PAYEE.to_string(),
            "maxTimeoutSeconds": 60,
        }],
    });
    encoded::to_text(required.to_string().as_bytes())
}

/// Starts one on the local chain that asks for so many micros of a token, and says this about itself; returns its address.
pub async fn asks(token: Address, micros: u64, description: &str) -> Result<String> {
    let header = offer(token, micros, description);
    let answer = move || {
        let header = header.clone();
        async move { (StatusCode::PAYMENT_REQUIRED, [("payment-required", header)], "{}") }
    };
    serve(Router::new().fallback(answer)).await
}

/// A server that says that it takes each payment, and answers with the address that was asked. It ends with the test's runtime.
#[derive(Debug, Clone)]
pub struct Till {
    pub url: String,
    counter: Counter,
}

#[derive(Debug, Clone)]
struct Counter {
    offer: String,
    requests: Arc<AtomicUsize>,
    payments: Arc<AtomicUsize>,
    gate: Arc<RwLock<()>>,
}

impl Till {
    /// Starts one on the local chain that asks for so many micros of a token.
    pub async fn start(token: Address, micros: u64) -> Result<Self> {
        let counter = Counter {
            offer: offer(token, micros, "Tides"),
            requests: Arc::default(),
            payments: Arc::default(),
            gate: Arc::default(),
        };
        let url = serve(Router::new().fallback(sell).with_state(counter.clone())).await?;
        Ok(Self { url, counter })
    }

    /// Requests that came, paid or not.
    pub fn requests(&self) -> usize {
        self.counter.requests.load(Ordering::SeqCst)
    }

    /// Requests that came with a payment.
    pub fn payments(&self) -> usize {
        self.counter.payments.load(Ordering::SeqCst)
    }

    /// Has paid requests wait until the guard is dropped.
    pub async fn hold_answers(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.counter.gate).write_owned().await
    }
}

async fn sell(State(counter): State<Counter>, request: Request) -> Response {
    counter.requests.fetch_add(1, Ordering::SeqCst);
    if !request.headers().contains_key("payment-signature") {
        return (StatusCode::PAYMENT_REQUIRED, [("payment-required", counter.offer)], "{}").into_response();
    }
    counter.payments.fetch_add(1, Ordering::SeqCst);
    let _opened = counter.gate.read().await;
    let transaction = format!("0x{}", "11".repeat(32));
    let told = json!({ "success": true, "transaction": transaction, "network": NETWORK });
    let told = encoded::to_text(told.to_string().as_bytes());
    let asked = format!("{} {}", request.method(), request.uri());
    ([("payment-response", told)], Json(json!({ "asked": asked }))).into_response()
}
