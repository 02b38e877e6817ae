//! An x402 server that asks for a payment, whatever comes, and takes none.

use anyhow::Result;
use axum::{Router, http::StatusCode};
use farthing_control::encoded;
use farthing_values::Address;
use serde_json::json;

use crate::upstream::serve;

/// The wallet that it wants to be paid.
const PAYEE: Address = Address::from_bytes([7; 20]);

/// Starts one on the local chain that asks for so many micros of a token, and says this about itself; returns its address.
pub async fn asks(token: Address, micros: u64, description: &str) -> Result<String> {
    let required = json!({
        "x402Version": 2,
        "resource": { "url": "https://data.example/", "description": description },
        "accepts": [{
            "scheme": "exact",
            "network": "eip155:31337",
            "amount": micros.to_string(),
            "asset": token.to_string(),
            "payTo": PAYEE.to_string(),
            "maxTimeoutSeconds": 60,
        }],
    });
    let header = encoded::to_text(required.to_string().as_bytes());
    let answer = move || {
        let header = header.clone();
        async move { (StatusCode::PAYMENT_REQUIRED, [("payment-required", header)], "{}") }
    };
    serve(Router::new().fallback(answer)).await
}
