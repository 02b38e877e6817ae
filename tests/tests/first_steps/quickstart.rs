//! The two quickstarts, followed to the letter: every command in a real shell, on an anvil that poses as Base Sepolia, until
//! one has sold what the other bought, and the other has the rest of its deposit back. `deploy/test/dist-test.sh` has the seller
//! follow them with the installed package, as a user of a clean Debian.

mod document;
mod posing;
mod reader;

use std::env;

use anyhow::{Context, Result, bail, ensure};
use axum::{Router, http::header::CONTENT_TYPE, response::IntoResponse, routing::get};
use farthing_control::endpoint;
use farthing_tests::{upstream::serve, wait::eventually};
use farthing_values::Usdc;
use serde_json::json;

use document::{Commands, Manner, Step};
use posing::{Posing, USDC_GIVEN};
use reader::Reader;

const SELLER: &str = "docs/quickstart-seller.md";
const BUYER: &str = "docs/quickstart-buyer.md";

/// Names the root in which the seller is a user with nothing but what is installed there.
const CLEAN_ROOT: &str = "FARTHING_CLEAN_ROOT";

/// The server of the example, and its service, as the documents name them.
const SERVER: &str = "http://127.0.0.1:8080";
const SERVICE: &str = "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b";
const ANSWER: &str = "{\"high_water\":\"04:12\",\"station\":\"Cuxhaven\"}\n";

/// The buyer's channel, as its document names it.
const CHANNEL: &str = "0x1f0e4c6b7d3a59829b5c8e2a4d6f0b1c3e5a7988c6b4d2f0e1a3c5b7d9f80624";

/// Where the seller waits for the buyer.
const OTHER_FOLLOWS: &str = "somebody follows the other quickstart";
/// Where the buyer waits for the seller.
const OTHER_CLAIMS: &str = "the owner claims what it has earned";

/// Two calls of 0.002.
const BOUGHT: Usdc = Usdc::from_micros(4_000);

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_the_quickstarts_sells_and_buys() -> Result<()> {
    let posing = Posing::start().await?;
    let mut seller = match env::var_os(CLEAN_ROOT) {
        Some(root) => Reader::in_clean_root(&posing, root.into()).await?,
        None => Reader::new(&posing).await?,
    };
    let server = serve(Router::new().route("/tides", get(tides))).await?;
    std::fs::write(seller.folder().join("openapi.json"), description(&server))?;
    seller.fill(SERVER, server);
    let mut steps = document::read(SELLER)?.into_iter();
    follow(&mut seller, &posing, steps.by_ref(), OTHER_FOLLOWS).await?;
    let mut buyer = Reader::new(&posing).await?;
    let offered = seller.node().ask(endpoint::Apis).await?;
    buyer.fill(SERVICE, offered.first().context("the seller offers nothing")?.id.to_string());
    let mut buys = document::read(BUYER)?.into_iter();
    follow(&mut buyer, &posing, buys.by_ref(), OTHER_CLAIMS).await?;
    follow(&mut seller, &posing, steps, "").await?;
    let earned = posing.usdc_of(seller.wallet().await?).await?;
    ensure!(earned == BOUGHT, "{earned} USDC came to the seller's wallet, and not {BOUGHT}");
    eventually("the seller's books show what it has claimed", async || {
        let channels = seller.node().ask(endpoint::Channels).await?;
        Ok(channels.first().is_some_and(|channel| channel.claimed.0 == BOUGHT))
    })
    .await?;

    let channels = buyer.node().ask(endpoint::Channels).await?;
    buyer.fill(CHANNEL, channels.first().context("the buyer has no channel")?.id.to_string());
    follow(&mut buyer, &posing, buys, "").await?;
    let left = posing.usdc_of(buyer.wallet().await?).await?;
    ensure!(left == USDC_GIVEN.saturating_sub(BOUGHT), "the buyer's wallet holds {left} USDC in the end");
    // The books of both add up, with the chain too, and say the same of each call.
    let audit =
        |with: &str| Commands { script: format!("farthing audit{with}"), prints: None, manner: Manner::Once };
    seller.carry_out(&audit("")).await?;
    buyer.carry_out(&audit(&format!(" --with {}", seller.wallet().await?))).await
}

/// Follows a document up to what is done elsewhere under this name, which has to come, or to its end where there is none.
async fn follow(
    reader: &mut Reader,
    posing: &Posing,
    steps: impl Iterator<Item = Step>,
    until: &str,
) -> Result<()> {
    for step in steps {
        match step {
            Step::Commands(commands) => reader.carry_out(&commands).await?,
            Step::ByHand(what) if what == until => return Ok(()),
            Step::ByHand(what) => by_hand(&what, posing, reader).await?,
        }
    }
    ensure!(until.is_empty(), "the document does not say: {until}");
    Ok(())
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
