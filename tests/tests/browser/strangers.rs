//! What strangers write and what their pages try, in a real browser in which somebody is logged in.

use anyhow::{Context, Result, ensure};
use axum::{Router, response::Html, routing::get};
use fantoccini::Locator;
use farthing_control::{
    endpoint,
    types::{OperationFile, ServiceFile, SourceFile, SourceKind},
};
use farthing_tests::{wait::eventually, world::PRICE};
use farthing_values::Method;
use serde_json::json;
use tokio::net::TcpListener;

use crate::{
    browser::{Browser, STRANGER, Tools},
    keyboard::{node, opened},
    site::{PASSWORD, has, set_up},
};

/// Everything that has ever run a script, turned words around or was too wide.
const ATTACK: &str = "\"'><script>window.harmed=1</script><img src=x onerror=window.harmed=1>\
    <svg onload=window.harmed=1><a href=\"javascript:window.harmed=1\">x</a>";
const PLANTED: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A description of a megabyte, of which every sort of Markdown is a part.
fn long_markdown() -> String {
    let piece = format!(
        "# {ATTACK}\n\n\u{202e}turned\u{2066} and hid\u{200b}den\u{feff} words\n\n> > > > {ATTACK}\n\n\
         [x](javascript:window.harmed=1) ![x](https://tracker.example/x.png) <https://{0}>\n\n\
         |{0}|b|\n|-|-|\n|{ATTACK}|c|\n\n```\n{ATTACK}\n```\n\n{0}\n\n",
        "endless".repeat(40)
    );
    piece.repeat(1024 * 1024 / piece.len())
}

fn hostile() -> ServiceFile {
    let document = json!({
        "openapi": "3.1.0",
        "info": { "title": "x", "version": ATTACK },
        "paths": { "/a/{id}": { "get": {
            "summary": format!("{ATTACK}\u{202e}\u{200b}"),
            "description": long_markdown().chars().take(20_000).collect::<String>(),
            "parameters": [
                { "name": "id", "in": "path", "required": true, "example": ATTACK, "description": ATTACK,
                  "schema": { "type": "string", "enum": [ATTACK, "\u{202e}b"], "default": ATTACK } },
                { "name": "n\"><script>", "in": "query", "description": format!("{ATTACK}\u{202e}"),
                  "schema": { "type": "string", "pattern": ATTACK } },
            ],
            "responses": { "200": { "description": ATTACK, "content": {
                "application/json": { "schema": { "type": "array" },
                    "example": [{ ATTACK: ATTACK, "wide": "endless".repeat(300), "\u{202e}x": "\u{202e}\u{200b}" }] },
            } } } } } },
    });
    ServiceFile {
        name: "Evil <svg onload=harmed=1> \"'".to_owned(),
        summary: ATTACK.to_owned(),
        category: "\"><script>".to_owned(),
        tags: vec!["<b onclick=1>".to_owned(), "e".repeat(32)],
        description: long_markdown(),
        upstream: "http://127.0.0.1:9".to_owned(),
        source: Some(SourceFile::given(SourceKind::Openapi, document.to_string(), "evil.json".to_owned())),
        operations: vec![OperationFile::named(Method::Get, "/a/{id}".to_owned())],
        ..ServiceFile::priced(PRICE)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_full_of_attacks_is_shown_and_does_nothing() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let (node, origin) = node(&folder).await?;
    let api = node.control().tell(endpoint::AddApi, &hostile()).await?;
    let browser = Browser::open(&tools, &origin, true).await?;
    set_up(&browser, &node).await?;
    let own = format!("/panel/catalog/{}", api.id);
    eventually("the service can be tried", async || {
        browser.goto(&format!("{own}/sandbox")).await?;
        Ok(has(&browser, "button[value=sample]").await)
    })
    .await?;
    browser.press("button[value=sample]").await?;
    browser.wait_for_address("call=").await?;
    let mut wrong = harm(&browser, "sample").await?;
    let parts = ["", "/reference", "?part=samples", "?part=versions", "/sandbox", "/sdk"];
    let others = ["/panel", "/panel/catalog", "/panel/apis", &format!("/panel/apis/{}", api.id)]
        .map(ToOwned::to_owned);
    for path in parts.iter().map(|part| format!("{own}{part}")).chain(others) {
        browser.goto(&path).await?;
        wrong.extend(harm(&browser, &path).await?);
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    browser.close().await
}

/// What a page with a stranger's texts did.
async fn harm(browser: &Browser, name: &str) -> Result<Vec<String>> {
    let ran = "return [
        window.harmed ? 'a script ran' : '',
        ...[...document.querySelectorAll('main script, main img, main iframe, main object, main style')]
            .map((one) => one.outerHTML),
        ...[...document.querySelectorAll('main svg')].filter((one) => !one.matches('.icon, .map, .chart, .spark, .bar, .qr'))
            .map((one) => one.outerHTML),
        ...[...document.querySelectorAll('main a')].filter((one) => !/^(https?|mailto):$/.test(one.protocol)
            && one.getAttribute('href')).map((one) => one.outerHTML),
        ...[...document.querySelectorAll('main *')].filter((one) => [...one.attributes].some((own) =>
            own.name.startsWith('on'))).map((one) => one.outerHTML),
        /[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\ufeff]/.test(document.body.innerText) ? 'unseen signs' : '',
    ].filter(Boolean)";
    let mut wrong = Vec::new();
    for (theme, width) in [("light", 1280), ("dark", 360)] {
        browser.prefer(theme).await?;
        browser.resize(width, 800).await?;
        let found = browser.client.execute(ran, Vec::new()).await?;
        let found = found.as_array().context("no list")?;
        wrong.extend(found.iter().map(ToString::to_string));
        wrong.extend(browser.violations().await?);
        wrong.extend(browser.overflow().await?);
    }
    wrong.extend(browser.complaints().await?);
    Ok(wrong.into_iter().map(|one| format!("{name}: {one}")).collect())
}

/// A page that tries everything on a console, and notes what it got.
fn attacker(console: &str) -> String {
    format!(
        "<!doctype html><title>Kittens</title><h1>Kittens</h1>
        <iframe name=framed src=\"{console}/panel\"></iframe><iframe name=sink></iframe>
        <form id=form method=post target=sink action=\"{console}/panel/finance/stop\"><input name=console_key value=0></form>
        <script src=\"{console}/assets/live.js\"></script>
        <script>
        const got = [];
        const tried = [];
        const ask = (path, init) => tried.push(fetch('{console}' + path, {{ credentials: 'include', ...init }})
            .then((answer) => answer.text()).then((text) => got.push(path + ': ' + text), () => 0));
        const type = {{ 'Content-Type': 'text/plain' }};
        for (const path of ['/panel', '/panel/settings/secret', '/api/v1/status', '/api/v1/secret', '/panel/events'])
            ask(path, {{}});
        for (const path of ['/panel/finance/stop', '/panel/theme', '/panel/logout', '/api/v1/spending/stop']) {{
            ask(path, {{ method: 'POST', body: 'console_key=0&theme=dark' }});
            ask(path, {{ method: 'POST', mode: 'no-cors', headers: type, body: 'console_key=0' }});
        }}
        document.cookie = '__Host-farthing-console={PLANTED}; Path=/; Secure';
        document.cookie = '__Host-farthing-console={PLANTED}; Path=/';
        document.cookie = 'farthing-theme=\"><script>; Path=/';
        document.getElementById('form').submit();
        Promise.allSettled(tried).then(() => {{
            window.got = got.filter((one) => !one.endsWith(': '));
            document.title = 'Done';
        }});
        </script>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn another_page_in_the_same_browser_cannot_use_the_console() -> Result<()> {
    let Some((browser, node, origin, _folder)) = opened().await? else { return Ok(()) };
    let page = attacker(&origin);
    let router = Router::new().route("/", get(|| async move { Html(page) }));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    tokio::spawn(async move { axum::serve(listener, router).await });

    // Another site, and another port of the same host.
    let own = reqwest::Url::parse(&origin)?.host_str().context("no host")?.to_owned();
    for host in [STRANGER, "localhost", &own] {
        browser.client.goto(&format!("http://{host}:{port}/")).await?;
        eventually("everything was tried", async || Ok(browser.client.title().await? == "Done")).await?;
        let got = browser.client.execute("return window.got", Vec::new()).await?;
        ensure!(got.as_array().is_some_and(Vec::is_empty), "{host} read {got}");
        let frame = browser.client.find(Locator::Css("iframe[name=framed]")).await?;
        frame.enter_frame().await?;
        ensure!(!has(&browser, "main").await, "{host} has the console in a frame");
        browser.client.clone().enter_parent_frame().await?;
        let spending = node.control().ask(endpoint::Spending).await?;
        ensure!(spending.stopped.is_none(), "{host} stopped the spending");
        still_ours(&browser).await?;
    }
    // A name of a stranger's that now leads to this machine.
    let port = origin.rsplit(':').next().context("no port")?;
    let rebound = format!("https://{STRANGER}:{port}");
    browser.client.goto(&format!("{rebound}/panel")).await?;
    browser.wait_for("does not have this name").await?;
    let asked = "const done = arguments[0];
        fetch('/api/v1/status').then((answer) => done(answer.status), (error) => done(String(error)));";
    let status = browser.client.execute_async(asked, Vec::new()).await?;
    ensure!(status != 200, "{status}");
    browser.close().await
}

/// Logged in as before; or, where a neighbour could put another cookie in place of ours, logged out, and a log-in
/// makes a new one.
async fn still_ours(browser: &Browser) -> Result<()> {
    browser.goto("/panel").await?;
    if browser.client.current_url().await?.path() == "/panel/login" {
        browser.fill(&[("password", PASSWORD)]).await?;
        browser.press("button.primary").await?;
        eventually("Home is there", async || Ok(browser.client.current_url().await?.path() == "/panel"))
            .await?;
    }
    let cookie = browser.client.get_named_cookie("__Host-farthing-console").await?;
    ensure!(cookie.value() != PLANTED, "a session that was brought is used");
    let html = browser.client.find(Locator::Css("html")).await?;
    ensure!(html.attr("data-theme").await?.is_some_and(|theme| theme != "dark"), "the theme was changed");
    Ok(())
}
