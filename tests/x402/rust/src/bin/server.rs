//! The official server of x402 for axum (x402-axum) sells calls, with its facilitator in this process.
//!
//! Usage: server CHAIN_URL PRIVATE_KEY_OF_THE_FACILITATOR PAYEE
//! Prints its address in a line, and sells GET /ok for 0.002 USDC each.

use std::{
    env,
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{Json, Router, routing::get};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use x402_axum::X402Middleware;
use x402_chain_eip155::{
    KnownNetworkEip155, V2Eip155Exact,
    chain::{ChecksummedAddress, Eip155ChainProvider, config::Eip155ChainConfig},
};
use x402_types::{
    chain::FromConfig,
    facilitator::Facilitator,
    networks::USDC,
    proto,
    scheme::{X402SchemeFacilitator, X402SchemeFacilitatorBuilder, X402SchemeFacilitatorError},
};

static SOLD: AtomicU64 = AtomicU64::new(0);

/// The official scheme, asked without HTTP between.
struct Here(Box<dyn X402SchemeFacilitator>);

impl Facilitator for Here {
    type Error = X402SchemeFacilitatorError;

    async fn verify(&self, request: &proto::VerifyRequest) -> Result<proto::VerifyResponse, Self::Error> {
        self.0.verify(request).await
    }

    async fn settle(&self, request: &proto::SettleRequest) -> Result<proto::SettleResponse, Self::Error> {
        self.0.settle(request).await
    }

    async fn supported(&self) -> Result<proto::SupportedResponse, Self::Error> {
        self.0.supported().await
    }
}

async fn ok() -> Json<Value> {
    Json(json!({ "sold": SOLD.fetch_add(1, Ordering::Relaxed) + 1 }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [chain, key, payee] = arguments.as_slice() else {
        return Err("usage: server CHAIN_URL PRIVATE_KEY_OF_THE_FACILITATOR PAYEE".into());
    };
    let usdc = USDC::base_sepolia();
    let inner = serde_json::from_value(json!({ "signers": [key], "rpc": [{ "http": chain }] }))?;
    let config = Eip155ChainConfig { chain_reference: usdc.chain_reference, inner };
    let provider = Eip155ChainProvider::from_config(&config).await?;
    let facilitator = Here(V2Eip155Exact.build(provider, None)?);

    let price = V2Eip155Exact::price_tag(payee.parse::<ChecksummedAddress>()?, usdc.parse("0.002")?);
    let paid = X402Middleware::from_facilitator(Arc::new(facilitator)).with_price_tag(price);
    let app = Router::new().route("/ok", get(ok).layer(paid));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    axum::serve(listener, app).await?;
    Ok(())
}
