//! The first visit: from the code to a first sample, a page for each step.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{ServiceFile, SourceFile, SourceKind},
};
use farthing_tests::{wait::eventually, world::PRICE};
use serde_json::json;

use crate::support::{Browser, Node, PASSWORD, Page};

const WORDS: &str = "/panel/setup/words";
const CHECK: &str = "/panel/setup/words/check";

/// Types the code that holds now, and chooses a password.
async fn enter(node: &Node) -> Result<(Browser, String)> {
    let code = node.console().await?.setup_code.context("no code")?;
    let mut browser = node.browser()?;
    let fields = [("code", code.as_str()), ("password", PASSWORD), ("repeated", PASSWORD)];
    let page = browser.post("/panel/setup", &fields).await?;
    ensure!(page.status == 303, "{page:?}");
    let next = page.header("location").to_owned();
    Ok((browser, next))
}

fn says(page: &Page, words: &[&str]) -> Result<()> {
    ensure!(page.status == 200, "{page:?}");
    for words in words {
        ensure!(page.body.contains(words), "the page does not say `{words}`: {}", page.body);
    }
    Ok(())
}

/// Fields for the words that a page asks for, of a phrase.
fn answers(page: &Page, phrase: &str) -> Vec<(String, String)> {
    let words: Vec<&str> = phrase.split(' ').collect();
    let asked = page.body.split("name=\"w").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok());
    asked
        .filter_map(|number: usize| Some((format!("w{number}"), (*words.get(number - 1)?).to_owned())))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_is_led_from_step_to_step_and_one_that_was_used_is_not() -> Result<()> {
    let mut node = Node::start().await?;
    let (mut browser, next) = enter(&node).await?;
    ensure!(next == WORDS, "{next}");
    says(&browser.get(WORDS).await?, &["Step 2 of 5", "Not now", "Restore its backup"])?;
    let asked = browser.press(WORDS, &[("console_password", "a wrong password")]).await?;
    ensure!(asked.status == 303, "{asked:?}");
    says(&browser.get(asked.header("location")).await?, &["Wrong password", "Show the words"])?;
    let answer = browser.post(WORDS, &[]).await?;
    let words = answer.header("location").to_owned();
    let shown = browser.get(&words).await?;
    let phrase = node.process.control().ask(endpoint::Phrase).await?;
    for word in phrase.phrase.split(' ') {
        ensure!(shown.body.contains(&format!("<code>{word}</code>")), "{word} is not shown");
    }
    ensure!(shown.header("cache-control").contains("no-store"), "{shown:?}");
    ensure!(!browser.get(WORDS).await?.body.contains("class=\"words\""), "nothing shows them by itself");

    let quiz = browser.get(CHECK).await?;
    let asked = answers(&quiz, &phrase.phrase);
    ensure!(asked.len() == 3, "{quiz:?}");
    let fields = |words: &'static str| asked.iter().map(move |(name, _)| (name.as_str(), words));
    let wrong: Vec<(&str, &str)> = fields("wrong").collect();
    let page = browser.post_and_follow(CHECK, &wrong).await?;
    ensure!(page.status == 200 && page.body.contains("role=\"alert\""), "{page:?}");
    ensure!(answers(&page, &phrase.phrase) == asked, "the same words are asked for again: {page:?}");
    ensure!(browser.get(&words).await?.body.contains("class=\"words\""), "going back shows them again");
    let right: Vec<(&str, &str)> = asked.iter().map(|(name, word)| (name.as_str(), word.as_str())).collect();
    let page = browser.post(CHECK, &right).await?;
    ensure!(page.status == 303 && page.header("location") == "/panel/setup/fund", "{page:?}");
    ensure!(!browser.get(&words).await?.body.contains("class=\"words\""), "they are written down");

    // What is done is seen from the node, so a restart changes nothing.
    node.restart(&mut browser).await?;
    says(&browser.get(WORDS).await?, &["Written down", "Continue"])?;
    let home = browser.get("/panel").await?;
    says(&home, &["You wrote down its 24 words."])?;
    ensure!(!home.body.contains("Continue the set-up"), "the node is in use");
    ensure!(!home.body.contains("Write down its 24 words"), "it is done: {home:?}");

    // Who only forgot the password is not led through it again.
    node.process.control().ask(endpoint::ResetConsole).await?;
    node.url = node.console().await?.origin().to_owned();
    let (_, next) = enter(&node).await?;
    ensure!(next == "/panel?welcome=1", "{next}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_mistake_the_focus_is_on_its_field_which_tells_the_mistake() -> Result<()> {
    let node = Node::start().await?;
    let code = node.console().await?.setup_code.context("no code")?;
    let mut browser = node.browser()?;
    for (code, repeated, id) in
        [("AAAA-AAAA-AAAA", PASSWORD, "code"), (code.as_str(), "four other random words", "password")]
    {
        let fields = [("code", code), ("password", PASSWORD), ("repeated", repeated)];
        let page = browser.post_and_follow("/panel/setup", &fields).await?;
        says(&page, &["<p class=\"problem\" role=\"alert\" id=\"problem\">"])?;
        let focused: Vec<&str> = page.body.split('<').filter(|tag| tag.contains(" autofocus>")).collect();
        let expected = [format!(" id=\"{id}\""), "aria-describedby=\"problem ".to_owned()];
        let [field] = focused[..] else { anyhow::bail!("{focused:?}") };
        ensure!(expected.iter().all(|part| field.contains(part.as_str())), "{field}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_step_can_be_left_for_later_and_says_how_things_are() -> Result<()> {
    let node = Node::start().await?;
    let (mut browser, _) = enter(&node).await?;
    says(&browser.get("/panel").await?, &["Back up the wallet", "Continue the set-up"])?;
    let wallet = node.process.status().await?.address.to_string();
    let fund = browser.get("/panel/setup/fund").await?;
    says(&fund, &["Step 3 of 5", &wallet, "class=\"qr\"", "no answer from the chain yet", "Skip for now"])?;
    let reach = browser.get("/panel/setup/reach").await?;
    says(
        &reach,
        &["Step 4 of 5", "reachable if you sell", "Forward TCP port", "Skip for now", "Test again"],
    )?;
    let page = browser.post("/panel/setup/reach", &[]).await?;
    ensure!(page.status == 303 && page.header("location") == "/panel/setup/reach", "{page:?}");
    let sample = browser.get("/panel/setup/call").await?;
    says(&sample, &["Step 5 of 5", "No other node is connected", "/panel?welcome=1"])?;
    says(&browser.get("/panel?welcome=1").await?, &["Welcome to Farthing"])
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_step_shows_a_sample_of_a_service_and_asks_nobody() -> Result<()> {
    let node = Node::start().await?;
    let (mut browser, _) = enter(&node).await?;
    let document = json!({ "openapi": "3.1.0", "info": { "title": "Colours", "version": "1" }, "paths": {
        "/colours": { "get": { "responses": { "200": { "description": "ok", "content": { "application/json": {
            "example": [{ "name": "ochre" }], "schema": { "type": "array" } } } } } } } } });
    let file = ServiceFile {
        name: "Colours".to_owned(),
        // Nothing listens there.
        upstream: "http://127.0.0.1:9".to_owned(),
        source: Some(SourceFile::given(SourceKind::Openapi, document.to_string(), "colours.json".to_owned())),
        ..ServiceFile::priced(PRICE)
    };
    let api = node.process.control().tell(endpoint::AddApi, &file).await?;
    eventually("the service can be chosen", async || {
        Ok(browser.get("/panel/setup/call").await?.body.contains("Show a sample"))
    })
    .await?;
    let page = browser.get(&format!("/panel/setup/call?service={}", api.id)).await?;
    says(
        &page,
        &[
            "ochre",
            "Free.",
            &format!("{PRICE} USDC"),
            "A call costs",
            "Your wallet has no USDC yet",
            "Go to Home",
        ],
    )?;
    ensure!(!page.body.contains("Open it in the sandbox"), "there is nothing to pay it with: {page:?}");
    let unknown = browser.get("/panel/setup/call?service=00000000-0000-4000-8000-000000000000").await?;
    ensure!(unknown.status == 404, "{unknown:?}");
    Ok(())
}
