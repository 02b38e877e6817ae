//! The official client of x402 for Rust (x402-reqwest) buys one call with its default settings.
//!
//! Usage: client URL PRIVATE_KEY [BODY]
//! Prints one line of JSON: the status, the body, and the word on the payment.

use std::{env, error::Error, sync::Arc};

use alloy_signer_local::PrivateKeySigner;
use serde_json::{Value, json};
use x402_chain_eip155::V2Eip155ExactClient;
use x402_reqwest::{ReqwestWithPayments, ReqwestWithPaymentsBuild, X402Client};
use x402_types::util::Base64Bytes;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (url, key, body) = match arguments.as_slice() {
        [url, key] => (url, key, None),
        [url, key, body] => (url, key, Some(body)),
        _ => return Err("usage: client URL PRIVATE_KEY [BODY]".into()),
    };
    let signer = Arc::new(key.parse::<PrivateKeySigner>()?);
    let payments = X402Client::new().register(V2Eip155ExactClient::new(signer));
    // A proxy of the environment does not know this machine's addresses.
    let http = reqwest::Client::builder().no_proxy().with_payments(payments).build()?;
    let request = match body {
        None => http.get(url),
        Some(body) => http.post(url).header("content-type", "application/json").body(body.clone()),
    };
    let answer = request.send().await?;
    let status = answer.status().as_u16();
    let payment = match answer.headers().get("payment-response") {
        Some(told) => serde_json::from_slice(&Base64Bytes::from(told.as_bytes()).decode()?)?,
        None => Value::Null,
    };
    let text = answer.text().await?;
    println!("{}", json!({ "status": status, "body": text, "payment": payment }));
    Ok(())
}
