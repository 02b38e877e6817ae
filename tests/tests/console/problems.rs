//! What a script is told at port 3000 and what a person reads in the console are the same words.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::{
    wait::eventually,
    world::{FUNDS, Setup, World},
};
use farthing_values::Usdc;
use serde_json::{Value, json};

use crate::{
    sandbox::is_under_way,
    support::{Browser, Page, set_up},
};

/// A problem by name, the operation that meets it, and what a caller says beside it.
struct Case {
    name: &'static str,
    operation: &'static str,
    filled: &'static [(&'static str, &'static str)],
    call: Value,
}

/// The text as it stands in a page, where commands are marked.
fn escaped(text: &str) -> String {
    let mut html = text.replace('&', "&#38;");
    for (plain, safe) in [("\"", "&#34;"), ("'", "&#39;"), ("<", "&#60;"), (">", "&#62;")] {
        html = html.replace(plain, safe);
    }
    for part in 0.. {
        let Some(at) = html.find('`') else { break };
        html.replace_range(at..=at, if part % 2 == 0 { "<code>" } else { "</code>" });
    }
    html
}

/// As a page begins and ends it; a title has no full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Calls both ways and compares.
async fn agree(world: &World, browser: &mut Browser, case: Case) -> Result<()> {
    let mut call = case.call.clone();
    call["api_id_public"] = world.api.id.to_string().into();
    call["method"] = "GET".into();
    let told = world.call(&call).await?;
    ensure!(told.problem() == case.name, "{} and not {}: {told:?}", told.problem(), case.name);
    let told = told.json();

    let page = press(world, browser, &case).await?;
    for field in ["title", "detail", "next"] {
        let text = told[field].as_str().context("a problem without it")?;
        ensure!(
            page.body.contains(&escaped(&sentence(text))),
            "{}: {field}, `{text}`, is not in {page:?}",
            case.name
        );
    }
    ensure!(
        told["charged"] == false && page.body.contains("You were not charged."),
        "{}: {page:?}",
        case.name
    );
    let help = browser.get("/panel/help/problems").await?;
    ensure!(help.body.contains(&format!("<code>{}</code>", case.name)), "{} is not in Help", case.name);
    Ok(())
}

/// Presses the button of the sandbox and follows to the answer.
async fn press(world: &World, browser: &mut Browser, case: &Case) -> Result<Page> {
    let address = format!("/panel/catalog/{}/sandbox", world.api.id);
    let operation = format!("GET {}", case.operation);
    let encoded = operation.replace(' ', "%20").replace('{', "%7B").replace('}', "%7D");
    let form = browser.get(&format!("{address}?operation={encoded}")).await?;
    let (nonce, price) = (form.field("nonce")?, form.field("price")?);
    let mut fields = vec![("operation", operation.as_str()), ("nonce", &nonce), ("act", "live")];
    if !case.filled.iter().any(|(name, _)| *name == "price") {
        fields.push(("price", &price));
    }
    fields.extend(case.filled);
    let sent = browser.post(&address, &fields).await?;
    ensure!(sent.status == 303, "{sent:?}");
    let place = sent.header("location").trim_end_matches("#answer").to_owned();
    eventually("the call has ended", async || Ok(!is_under_way(&browser.get(&place).await?))).await?;
    browser.get(&place).await
}

async fn browser_of(world: &World) -> Result<Browser> {
    let mut browser = set_up(&world.consumer).await?;
    eventually("the service is in the consumer's catalog", async || {
        let page = browser.get(&format!("/panel/catalog/{}/sandbox", world.api.id)).await?;
        Ok(page.body.contains("name=\"nonce\""))
    })
    .await?;
    Ok(browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_says_what_the_gateway_says() -> Result<()> {
    let world = World::start().await?;
    let mut browser = browser_of(&world).await?;
    let failing = Case {
        name: "upstream-failed",
        operation: "/status/{status}",
        filled: &[("p.status", "500")],
        call: json!({ "path": "/status/500" }),
    };
    let dear = Case {
        name: "price-above-cap",
        operation: "/ok",
        filled: &[("price", "0.001")],
        call: json!({ "path": "/ok", "max_price": "0.001" }),
    };
    agree(&world, &mut browser, failing).await?;
    agree(&world, &mut browser, dear).await?;
    let plain = |name| Case { name, operation: "/ok", filled: &[], call: json!({ "path": "/ok" }) };
    world.owner.control().ask(endpoint::PauseApi.of(world.api.id)).await?;
    agree(&world, &mut browser, plain("owner-unavailable")).await?;
    world.consumer.control().ask(endpoint::StopSpending).await?;
    agree(&world, &mut browser, plain("spending-stopped")).await?;
    ensure!(world.settle_and_check(FUNDS).await? == Usdc::ZERO, "nothing of it was charged");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_money_both_say_what_to_send_and_where() -> Result<()> {
    let world = World::with(Setup { funds: Usdc::ZERO, ..Setup::default() }).await?;
    let mut browser = browser_of(&world).await?;
    let case =
        Case { name: "insufficient-funds", operation: "/ok", filled: &[], call: json!({ "path": "/ok" }) };
    agree(&world, &mut browser, case).await
}
