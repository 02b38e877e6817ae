//! An x402 server that is no node and does what a test asks of it: it takes payments by the token itself, or does not.

use std::{io, sync::Arc};

use anyhow::{Context, Result};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use farthing_control::encoded;
use farthing_testnet::rpc;
use farthing_tests::{upstream::serve, world::PRICE};
use farthing_values::{Address, Usdc};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{OwnedRwLockWriteGuard, RwLock};

use crate::shop::{CHAIN_ID, Shop};

/// The wallet that is paid.
pub const PAYEE: Address = Address::from_bytes([7; 20]);

/// The way in which a server treats a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It takes the payment, and answers. A copy gets the same answer.
    Honest,
    /// It takes the payment, and asks for another one.
    AsksAgain,
    /// It takes the payment, and the connection breaks before its answer.
    Breaks,
    /// It takes the payment, and answers without a word on it.
    Quiet,
    /// It takes nothing, and answers without a word on it.
    Gives,
    /// It takes the payment, and answers with these bytes in this `content-encoding`, whatever it was asked for.
    Packs(&'static str, &'static [u8]),
    /// It takes nothing, and asks for a payment.
    Refuses,
    /// The same, once its offers are not held any more.
    Waits,
}

#[derive(Debug)]
struct Desk {
    manner: Manner,
    is_version_one: bool,
    offer: Value,
    /// Requests without a payment.
    asked: usize,
    /// Requests with a payment that it lets wait, and did.
    waiting: usize,
    /// Payments as they came, with the transaction of each that was taken.
    payments: Vec<(String, Option<String>)>,
}

/// A running server. It ends with the test's runtime.
#[derive(Clone, Debug)]
pub struct Server {
    pub url: String,
    desk: Arc<Mutex<Desk>>,
    gate: Arc<RwLock<()>>,
}

#[derive(Clone)]
struct Counter {
    desk: Arc<Mutex<Desk>>,
    gate: Arc<RwLock<()>>,
    chain: String,
}

impl Server {
    pub async fn start(shop: &Shop) -> Result<Self> {
        let domain = shop.domain();
        let offer = json!({
            "scheme": "exact",
            "network": format!("eip155:{CHAIN_ID}"),
            "amount": PRICE.micros().to_string(),
            "asset": domain.token.to_string(),
            "payTo": PAYEE.to_string(),
            "maxTimeoutSeconds": 60,
            "extra": { "name": domain.name, "version": domain.version },
        });
        let (manner, payments) = (Manner::Honest, Vec::new());
        let desk = Desk { manner, is_version_one: false, offer, asked: 0, waiting: 0, payments };
        let (desk, gate) = (Arc::new(Mutex::new(desk)), Arc::default());
        let counter = Counter { desk: Arc::clone(&desk), gate: Arc::clone(&gate), chain: shop.anvil.url() };
        let url = serve(Router::new().fallback(answer).with_state(counter)).await?;
        Ok(Self { url, desk, gate })
    }

    pub fn behave(&self, manner: Manner) {
        self.desk.lock().manner = manner;
    }

    /// From now on it speaks version 1.
    pub fn speak_version_one(&self) {
        let mut desk = self.desk.lock();
        desk.is_version_one = true;
        desk.offer["network"] = "base-sepolia".into();
        desk.offer["maxAmountRequired"] = desk.offer["amount"].clone();
    }

    /// Offers something else; returns what it offered before.
    pub fn offer(&self, changed: &Value) -> Value {
        let mut desk = self.desk.lock();
        let before = desk.offer.clone();
        if let (Some(offer), Some(changed)) = (desk.offer.as_object_mut(), changed.as_object()) {
            offer.extend(changed.clone());
        }
        before
    }

    /// Has all who come without a payment wait for an offer until the guard is dropped.
    pub async fn hold_offers(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).write_owned().await
    }

    /// Returns how often somebody came without a payment.
    pub fn asked(&self) -> usize {
        self.desk.lock().asked
    }

    /// Returns how often a payment came that it let wait.
    pub fn waiting(&self) -> usize {
        self.desk.lock().waiting
    }

    /// Lists the payments that came, each once.
    pub fn payments(&self) -> Vec<String> {
        let mut payments: Vec<_> =
            self.desk.lock().payments.iter().map(|(payment, _)| payment.clone()).collect();
        payments.sort();
        payments.dedup();
        payments
    }

    /// Returns how often a payment came.
    pub fn copies(&self) -> usize {
        self.desk.lock().payments.len()
    }

    /// USDC that it has earned.
    pub async fn earned(&self, shop: &Shop) -> Result<Usdc> {
        rpc::usdc_of(&shop.anvil.url(), shop.token, PAYEE).await
    }
}

async fn answer(State(counter): State<Counter>, request: Request) -> Response {
    let payment = payment_of(request.headers());
    let Some(payment) = payment else {
        counter.desk.lock().asked += 1;
        let _offered = counter.gate.read().await;
        return asks(&counter.desk.lock());
    };
    let manner = counter.desk.lock().manner;
    if manner == Manner::Waits {
        counter.desk.lock().waiting += 1;
        drop(counter.gate.read().await);
    }
    let known = counter
        .desk
        .lock()
        .payments
        .iter()
        .find_map(|(known, taken)| taken.clone().filter(|_| *known == payment));
    let taken = match (known, manner) {
        (Some(transaction), _) => Some(transaction),
        (None, Manner::Refuses | Manner::Waits | Manner::Gives) => None,
        (None, _) => match take(&counter.chain, &payment).await {
            Ok(transaction) => Some(transaction),
            Err(error) => return (StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}")).into_response(),
        },
    };
    let mut desk = counter.desk.lock();
    desk.payments.push((payment, taken.clone()));
    match (manner, taken) {
        (Manner::Honest, Some(transaction)) => sold(&desk, &transaction),
        (Manner::Packs(coding, bytes), Some(transaction)) => packed(sold(&desk, &transaction), coding, bytes),
        (Manner::Quiet | Manner::Gives, _) => "{\"sold\":true}".into_response(),
        (Manner::Breaks, _) => {
            let broken = futures::stream::once(async { Err::<Bytes, _>(io::Error::other("broken off")) });
            Body::from_stream(broken).into_response()
        }
        _ => asks(&desk),
    }
}

fn payment_of(headers: &HeaderMap) -> Option<String> {
    let header = headers.get("payment-signature").or_else(|| headers.get("x-payment"))?;
    header.to_str().ok().map(str::to_owned)
}

fn asks(desk: &Desk) -> Response {
    let version = if desk.is_version_one { 1 } else { 2 };
    let required = json!({
        "x402Version": version, "error": "pay", "resource": { "url": "https://data.example/" }, "accepts": [desk.offer],
    });
    if desk.is_version_one {
        return (StatusCode::PAYMENT_REQUIRED, required.to_string()).into_response();
    }
    let header = encoded::to_text(required.to_string().as_bytes());
    (StatusCode::PAYMENT_REQUIRED, [("payment-required", header)], "{}").into_response()
}

fn sold(desk: &Desk, transaction: &str) -> Response {
    let told = json!({ "success": true, "transaction": transaction, "network": desk.offer["network"] });
    let name = if desk.is_version_one { "x-payment-response" } else { "payment-response" };
    let headers = [
        (name, encoded::to_text(told.to_string().as_bytes())),
        ("content-type", "application/json".to_owned()),
    ];
    (StatusCode::OK, headers, "{\"sold\":true}").into_response()
}

/// The same answer, packed.
fn packed(mut answer: Response, coding: &'static str, bytes: &'static [u8]) -> Response {
    answer.headers_mut().insert("content-encoding", HeaderValue::from_static(coding));
    answer.headers_mut().remove("content-length");
    *answer.body_mut() = Body::from(bytes);
    answer
}

/// Brings a payment to the token, by an account of the chain that is nobody's and before all others of its block; returns the
/// transaction.
pub async fn take(chain: &str, payment: &str) -> Result<String> {
    let json: Value = serde_json::from_slice(&encoded::from_text(payment).context("no base64")?)?;
    let (payload, token) = (&json["payload"], &json["accepted"]["asset"]);
    let own = &payload["authorization"];
    let text = |value: &Value| value.as_str().unwrap_or_default().trim_start_matches("0x").to_lowercase();
    let number = |name: &str| own[name].as_str().unwrap_or_default().parse::<u64>();
    let signature = text(&payload["signature"]);
    let (r, s, v) = (signature.get(..64), signature.get(64..128), signature.get(128..));
    let (r, s, v) = (r.context("r")?, s.context("s")?, v.context("v")?);
    // 0xe3ee160e is the selector of transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32).
    let data = format!(
        "0xe3ee160e{:0>64}{:0>64}{:064x}{:064x}{:064x}{}{v:0>64}{r}{s}",
        text(&own["from"]),
        text(&own["to"]),
        number("value")?,
        number("validAfter")?,
        number("validBefore")?,
        text(&own["nonce"]),
    );
    let accounts = rpc::call(chain, "eth_accounts", json!([])).await?;
    // Version 1 names no token.
    let token = token.as_str().unwrap_or(crate::shop::USDC);
    let transaction = json!({ "from": accounts[5], "to": token, "data": data, "gas": "0x30d40", "gasPrice": "0x174876e800" });
    let hash = rpc::call(chain, "eth_sendTransaction", json!([transaction])).await?;
    Ok(hash.as_str().context("no hash")?.to_owned())
}
