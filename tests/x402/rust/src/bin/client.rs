//! The official client of x402 for Rust (x402-reqwest) buys one call with its default settings.
//!
//! Usage: client VERSION URL PRIVATE_KEY [BODY]
//! Prints one line of JSON: the status, the body, and the word on the payment.
//!
//! If an answer has the terms of both versions, this client reads those of version 2, whatever it can pay. So its part for version 1
//! is given the answer without them, as servers of version 1 send it.

use std::{env, error::Error, sync::Arc};

use alloy_signer_local::PrivateKeySigner;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response};
use serde_json::{Value, json};
use x402_chain_eip155::{V1Eip155ExactClient, V2Eip155ExactClient};
use x402_reqwest::{ReqwestWithPayments, ReqwestWithPaymentsBuild, X402Client};
use x402_types::util::Base64Bytes;

type Signer = Arc<PrivateKeySigner>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (version, url, key, body) = match arguments.as_slice() {
        [version, url, key] => (version, url, key, None),
        [version, url, key, body] => (version, url, key, Some(body.as_str())),
        _ => return Err("usage: client VERSION URL PRIVATE_KEY [BODY]".into()),
    };
    let signer = Arc::new(key.parse::<PrivateKeySigner>()?);
    let (answer, told) = match version.as_str() {
        "1" => (buy_by_version_one(signer, url, body).await?, "x-payment-response"),
        _ => (buy(signer, url, body).await?, "payment-response"),
    };
    let status = answer.status().as_u16();
    let payment = match answer.headers().get(told) {
        Some(told) => serde_json::from_slice(&Base64Bytes::from(told.as_bytes()).decode()?)?,
        None => Value::Null,
    };
    let text = answer.text().await?;
    println!("{}", json!({ "status": status, "body": text, "payment": payment }));
    Ok(())
}

/// A proxy of the environment does not know this machine's addresses.
fn builder() -> ClientBuilder {
    Client::builder().no_proxy()
}

async fn buy(signer: Signer, url: &str, body: Option<&str>) -> Result<Response, Box<dyn Error>> {
    let payments = X402Client::new().register(V2Eip155ExactClient::new(signer));
    let http = builder().with_payments(payments).build()?;
    let request = match body {
        None => http.get(url),
        Some(body) => http.post(url).header("content-type", "application/json").body(body.to_owned()),
    };
    Ok(request.send().await?)
}

async fn buy_by_version_one(
    signer: Signer,
    url: &str,
    body: Option<&str>,
) -> Result<Response, Box<dyn Error>> {
    let payments = X402Client::new().register(V1Eip155ExactClient::new(signer));
    let http = builder().build()?;
    let request = || -> RequestBuilder {
        match body {
            None => http.get(url),
            Some(body) => http.post(url).header("content-type", "application/json").body(body.to_owned()),
        }
    };
    let mut offer = request().send().await?;
    offer.headers_mut().remove("payment-required");
    let paid = payments.make_payment_headers(offer).await?;
    Ok(request().headers(paid).send().await?)
}
