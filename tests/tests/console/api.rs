//! The same for programs.

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_tests::wait::eventually;
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::support::{Browser, Node, PASSWORD, Page};

fn problem(page: &Page) -> Result<Value> {
    ensure!(page.header("content-type") == "application/problem+json", "{page:?}");
    Ok(serde_json::from_str(&page.body)?)
}

fn key_of(page: &Page) -> Option<String> {
    let answer: Value = serde_json::from_str(&page.body).ok()?;
    answer["key"].as_str().map(ToOwned::to_owned)
}

async fn post(browser: &mut Browser, path: &str, body: &Value) -> Result<Page> {
    let request = browser
        .request(Method::POST, path)
        .header("sec-fetch-site", "same-origin")
        .header(header::CONTENT_TYPE, "application/json")
        .body(body.to_string());
    browser.send(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_logs_in_and_does_what_the_command_line_does() -> Result<()> {
    let node = Node::start().await?;
    let mut program = node.browser()?;
    let page = program.get("/api/v1/status").await?;
    ensure!(page.status == 401 && problem(&page)?["next"].is_string(), "{page:?}");
    let page = post(&mut program, "/api/v1/session", &json!({ "password": PASSWORD })).await?;
    ensure!(page.status == 409, "nothing is set up yet: {page:?}");

    let code = node.console().await?.setup_code.context("no code")?;
    for (code, password, status) in
        [("AAAA-AAAA-AAAA", PASSWORD, 401), (code.as_str(), "short", 422), (code.as_str(), PASSWORD, 200)]
    {
        let body = json!({ "code": code, "password": password });
        let page = post(&mut program, "/api/v1/setup", &body).await?;
        ensure!(page.status == status && program.session().is_some() == (status == 200), "{page:?}");
        program.key = key_of(&page);
    }
    ensure!(program.get("/api/v1/status").await?.status == 200, "setting up logs in");
    program.cookies.clear();
    program.key = None;
    let page = post(&mut program, "/api/v1/session", &json!({ "password": "a wrong one" })).await?;
    ensure!(page.status == 401 && program.session().is_none(), "{page:?}");
    let page = program.get("/api/v1/session").await?;
    ensure!(page.status == 405 && problem(&page)?["next"].is_string(), "{page:?}");
    let page = post(&mut program, "/api/v1/session", &json!({ "password": PASSWORD })).await?;
    ensure!(page.status == 200, "{page:?}");
    program.key = key_of(&page);

    for path in ["/api/v1/catalog/nope", "/api/v1/catalog/search", "/api/v1/apis/xyz"] {
        let page = program.get(path).await?;
        ensure!(page.status >= 400 && problem(&page)?["next"].is_string(), "{path}: {page:?}");
    }
    for (path, body) in [
        ("spending/limits", "[]"),
        ("spending/limits", "{"),
        ("spending/limits", r#"{"nothing":1}"#),
        ("calls/refused-1/cancel", r#"{"nothing":1}"#),
    ] {
        let request = program
            .request(Method::POST, &format!("/api/v1/{path}"))
            .header("sec-fetch-site", "same-origin")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body);
        let page = program.send(request).await?;
        ensure!(
            matches!(page.status, 400 | 415 | 422) && problem(&page)?["next"].is_string(),
            "{path} {body}: {page:?}"
        );
    }

    let status = program.get("/api/v1/status").await?;
    let status: Value = serde_json::from_str(&status.body)?;
    let asked = node.process.control().ask(endpoint::Status).await?;
    ensure!(status["address"] == asked.address.to_string(), "{status}");
    let mut thief = program.thief();
    for key in [None, Some(""), Some("0")] {
        thief.key = key.map(ToOwned::to_owned);
        let page = post(&mut thief, "/api/v1/catalog/search", &json!({})).await?;
        ensure!(page.status == 403, "{key:?}: {page:?}");
        // A cookie reads nothing here, either.
        for path in ["/api/v1/status", "/api/v1/channels", "/api/v1/secret", "/api/v1/backups/x"] {
            let page = thief.get(path).await?;
            ensure!(page.status == 403 && page.body.contains("x-console-key"), "{path}: {page:?}");
        }
        ensure!(thief.get("/api/v1/openapi.json").await?.status == 200, "it says the same everywhere");
    }
    let page = post(&mut program, "/api/v1/catalog/search", &json!({})).await?;
    ensure!(page.status == 200, "{page:?}");
    let page = program.get("/api/v1/no-such-thing").await?;
    ensure!(page.status == 404 && problem(&page)?["status"] == 404, "{page:?}");
    // The way back in belongs to the owner of the machine.
    for path in ["/api/v1/console", "/api/v1/console/reset"] {
        ensure!(program.get(path).await?.status == 404, "{path}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_dangerous_asks_for_the_password_again() -> Result<()> {
    let (mut node, mut browser) = Node::opened().await?;
    ensure!(browser.get("/api/v1/secret").await?.status == 200, "it was just entered");
    node.restart(&mut browser).await?;
    let page = browser.get("/api/v1/secret").await?;
    ensure!(page.status == 403 && !page.body.contains("farthing_sk_"), "{page:?}");
    let head = browser.request(Method::HEAD, "/api/v1/secret");
    ensure!(browser.send(head).await?.status == 403, "a HEAD is no way around");
    let send = json!({ "to": "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf", "usdc": "1" });
    let page = post(&mut browser, "/api/v1/wallet/send", &send).await?;
    ensure!(page.status == 403 && page.body.contains("too long ago"), "{page:?}");
    for path in [
        "secret/rotate",
        "secrets",
        "secrets/default/rotate",
        "spending/limits",
        "spending/resume",
        "channels",
        "channels/0x0000000000000000000000000000000000000000000000000000000000000001/close",
        "channels/0x0000000000000000000000000000000000000000000000000000000000000001/resume",
        "wallet/phrase",
        "backups",
        "chain/settings",
        "contract",
        "restart",
        "apis",
        "apis/try",
        "apis/0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b/edit",
        "apis/0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b/rescan",
    ] {
        let page = post(&mut browser, &format!("/api/v1/{path}"), &json!({})).await?;
        ensure!(page.status == 403, "{path}: {page:?}");
    }
    let page = post(&mut browser, "/api/v1/spending/stop", &json!({})).await?;
    ensure!(
        page.status == 200 && page.body.contains("\"stopped\":\"user\""),
        "stopping is never in the way: {page:?}"
    );
    eventually("the password is taken", async || {
        let page = post(&mut browser, "/api/v1/session", &json!({ "password": PASSWORD })).await?;
        browser.key = key_of(&page);
        Ok(page.status == 200)
    })
    .await?;
    ensure!(browser.get("/api/v1/secret").await?.body.contains("farthing_sk_"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_path_of_the_description_answers() -> Result<()> {
    let (_node, mut browser) = Node::opened().await?;
    let page = browser.get("/api/v1/openapi.json").await?;
    ensure!(page.status == 200, "{page:?}");
    let document: Value = serde_json::from_str(&page.body)?;
    let paths = document["paths"].as_object().context("no paths")?;
    ensure!(paths.len() > 25, "{} paths", paths.len());
    // The restart comes last: nothing answers after it.
    let (restart, others): (Vec<_>, Vec<_>) = paths.iter().partition(|(path, _)| *path == "/restart");
    for (path, item) in others.into_iter().chain(restart) {
        for method in item.as_object().context("no item")?.keys() {
            let path = path.replace("{id}", "0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b");
            let asked = format!("/api/v1{}", path.replace("{name}", "nobody"));
            let request = browser
                .request(Method::from_bytes(method.to_uppercase().as_bytes())?, &asked)
                .header("sec-fetch-site", "same-origin");
            let page = browser.send(request).await?;
            let is_there = page.status != 405 && !page.body.contains("This address does not exist");
            ensure!(is_there, "{method} {path}: {page:?}");
        }
    }
    Ok(())
}
