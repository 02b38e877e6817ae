//! The two quickstarts, followed to the letter: every command in a real shell, on an anvil that poses as Base Sepolia, until
//! one has sold what the other bought.

mod document;
mod posing;
mod reader;

use anyhow::{Context, Result, bail, ensure};
use axum::{Router, http::header::CONTENT_TYPE, response::IntoResponse, routing::get};
use farthing_control::endpoint;
use farthing_protocol::Usdc;
use serde_json::json;
use tokio::net::TcpListener;

use document::{Commands, Manner, Step};
use posing::{Posing, USDC_GIVEN};
use reader::Reader;

const SELLER: &str = "docs/quickstart-seller.md";
const BUYER: &str = "docs/quickstart-buyer.md";

/// The server of the example, and its service, as the documents name them.
const SERVER: &str = "http://127.0.0.1:8080";
const SERVICE: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
const ANSWER: &str = "{\"high_water\":\"04:12\",\"station\":\"Cuxhaven\"}\n";

/// Two calls of 0.002.
const BOUGHT: Usdc = Usdc::from_micros(4_000);

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_the_quickstarts_sells_and_buys() -> Result<()> {
    let posing = Posing::start().await?;
    let mut seller = Reader::new(&posing).await?;
    let server = serve_tides().await?;
    std::fs::write(seller.folder().join("openapi.json"), description(&server))?;
    seller.fill(SERVER, server);
    let mut buyer = None;
    for step in document::read(SELLER)? {
        match step {
            Step::Commands(commands) => seller.carry_out(&commands).await?,
            Step::ByHand(what) if what == "somebody follows the other quickstart" => {
                buyer = Some(buy(&posing, &seller).await?);
            }
            Step::ByHand(what) => by_hand(&what, &posing, &seller).await?,
        }
    }

    let mut buyer = buyer.context("nobody bought anything")?;
    let earned = posing.usdc_of(seller.wallet().await?).await?;
    ensure!(earned == BOUGHT, "{earned} USDC came to the seller's wallet, and not {BOUGHT}");
    let left = posing.usdc_of(buyer.wallet().await?).await?;
    ensure!(left < USDC_GIVEN, "the buyer's wallet still holds {left} USDC");
    // The books of both add up, with the chain too.
    let audit = Commands { script: "farthing audit".to_owned(), prints: None, manner: Manner::Once };
    seller.carry_out(&audit).await?;
    buyer.carry_out(&audit).await
}

/// Follows the buyer's quickstart with a node of its own, and buys from the seller.
async fn buy(posing: &Posing, seller: &Reader) -> Result<Reader> {
    let mut buyer = Reader::new(posing).await?;
    let offered = seller.node().ask(endpoint::Apis).await?;
    let service = offered.first().context("the seller offers nothing")?.id;
    buyer.fill(SERVICE, service.to_string());
    for step in document::read(BUYER)? {
        match step {
            Step::Commands(commands) => buyer.carry_out(&commands).await?,
            Step::ByHand(what) => by_hand(&what, posing, &buyer).await?,
        }
    }
    Ok(buyer)
}

/// Does what a reader does elsewhere than in the shell.
async fn by_hand(what: &str, posing: &Posing, reader: &Reader) -> Result<()> {
    let wallet = reader.wallet().await?;
    match what {
        "a faucet sends ETH" => posing.send_eth(wallet).await,
        "faucets send USDC and ETH" => {
            posing.send_usdc(wallet).await?;
            posing.send_eth(wallet).await
        }
        _ => bail!("nobody knows how to do this by hand: {what}"),
    }
}

/// Starts the API that is sold; returns where it is. It ends with the test's runtime.
async fn serve_tides() -> Result<String> {
    let router = Router::new().route("/tides", get(tides));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(url)
}

async fn tides() -> impl IntoResponse {
    ([(CONTENT_TYPE, "application/json")], ANSWER)
}

fn description(server: &str) -> String {
    let answer = json!({ "type": "object", "properties": {
        "high_water": { "type": "string" }, "station": { "type": "string" } } });
    let example = json!({ "high_water": "04:12", "station": "Cuxhaven" });
    let tides = json!({
        "operationId": "tides",
        "summary": "High water of a station",
        "parameters": [{ "name": "station", "in": "query", "schema": { "type": "string" } }],
        "responses": { "200": { "description": "Today's",
            "content": { "application/json": { "schema": answer, "example": example } } } },
    });
    json!({
        "openapi": "3.1.0",
        "info": { "title": "Tides", "version": "1", "description": "High water of the day" },
        "servers": [{ "url": server }],
        "paths": { "/tides": { "get": tides } },
    })
    .to_string()
}
