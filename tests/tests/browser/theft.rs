//! A second web server on this machine: browsers send it the console's cookie, and it can do nothing with it.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    http::HeaderMap,
    response::Html,
    routing::{any, get},
};
use farthing_control::{
    endpoint,
    types::{NewSecret, SecretLimits},
};
use farthing_tests::{
    console_pages::{changeable, fixed_pages},
    wait::eventually,
    world::World,
};
use farthing_values::Address;
use parking_lot::Mutex;
use reqwest::{Certificate, Client, Method, header, redirect::Policy};
use serde_json::Value;
use tokio::net::TcpListener;

use crate::{
    browser::{Browser, STRANGER, Tools},
    keyboard::opened,
    site::{PASSWORD, confirm, set_up},
};

const COOKIE: &str = "__Host-farthing-console";
const TO: &str = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
/// Pages with forms, beside those whose addresses need nothing filled in.
const MORE_PAGES: [&str; 5] = [
    "/panel/apis/{api}",
    "/panel/apis/{api}/operations",
    "/panel/apis/{api}/edit",
    "/panel/apis/{api}/retire",
    "/panel/finance/send/{order}",
];
/// Their effect is the sender's own.
const HARMLESS: [&str; 2] = ["/panel/theme", "/panel/logout"];

/// Another program's server on a port of its own, which keeps what browsers send it.
struct Neighbour {
    port: u16,
    cookies: Arc<Mutex<BTreeSet<String>>>,
}

impl Neighbour {
    /// `page` is what it answers with.
    async fn start(page: String) -> Result<Self> {
        let cookies = Arc::new(Mutex::new(BTreeSet::new()));
        let kept = Arc::clone(&cookies);
        let answer = move |headers: HeaderMap| async move {
            let lines = headers.get_all("cookie").iter().filter_map(|line| line.to_str().ok());
            let pairs = lines.flat_map(|line| line.split(';')).map(|pair| pair.trim().to_owned());
            kept.lock().extend(pairs);
            Html(page)
        };
        let router = Router::new().route("/", get(answer.clone())).fallback(any(answer));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { port, cookies })
    }

    fn stolen(&self) -> Option<String> {
        let cookies = self.cookies.lock();
        cookies.iter().find(|pair| pair.starts_with(COOKIE)).cloned()
    }
}

/// A program with the cookie, which sends whatever headers it likes.
struct Thief {
    client: Client,
    origin: String,
    cookie: String,
}

impl Thief {
    fn new(ca_pem: &[u8], origin: &str, cookie: String) -> Result<Self> {
        farthing_serve::tls::install_provider();
        let host = reqwest::Url::parse(origin)?.host_str().context("no host")?.to_owned();
        let client = Client::builder()
            .tls_certs_only([Certificate::from_pem(ca_pem)?])
            .resolve(&host, std::net::SocketAddr::from(([127, 0, 0, 1], 0)))
            .redirect(Policy::none())
            .no_proxy()
            .build()?;
        Ok(Self { client, origin: origin.to_owned(), cookie })
    }

    fn ask(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.client
            .request(method, format!("{}{path}", self.origin))
            .header(header::COOKIE, &self.cookie)
            .header(header::ORIGIN, &self.origin)
            .header("sec-fetch-site", "same-origin")
    }

    async fn read(&self, path: &str) -> Result<String> {
        let answer = self.ask(Method::GET, path).send().await?;
        ensure!(answer.status() == 200, "{path}: {}", answer.status());
        Ok(answer.text().await?)
    }

    /// Sends every form of a page, with every field that stands in it and each of its buttons.
    async fn send_forms(&self, path: &str) -> Result<usize> {
        let mut sent = 0;
        for form in self.read(path).await?.split("<form ").skip(1) {
            let form = form.split("</form>").next().unwrap_or_default();
            let (head, body) = form.split_once('>').context("a form without an end")?;
            let action = attribute(head, "action").unwrap_or_default();
            if attribute(head, "method").as_deref() != Some("post") || HARMLESS.contains(&action.as_str()) {
                continue;
            }
            let fields = body.split("<input ").skip(1).chain(body.split("<textarea ").skip(1));
            let fields: Vec<(String, String)> = fields
                .filter_map(|field| {
                    let field = field.split('>').next()?;
                    let typed = attribute(field, "value").filter(|value| !value.is_empty());
                    Some((attribute(field, "name")?, typed.unwrap_or_else(|| "1".to_owned())))
                })
                .filter(|(name, _)| name != "console_password")
                .collect();
            let buttons = body.split("<button").skip(1).filter_map(|button| button.split('>').next());
            let buttons: Vec<Option<(String, String)>> = buttons
                .map(|button| Some((attribute(button, "name")?, attribute(button, "value")?)))
                .collect();
            let is_upload = head.contains("multipart/form-data");
            for button in buttons {
                let fields: Vec<&(String, String)> = fields.iter().chain(&button).collect();
                let (kind, body) = if is_upload { multipart(&fields) } else { urlencoded(&fields) };
                let request = self.ask(Method::POST, &action).header(header::CONTENT_TYPE, kind).body(body);
                let answer = request.send().await?;
                let status = answer.status();
                let text = answer.text().await?;
                ensure!(status == 403 && !text.contains("farthing_sk_"), "{path}, {action}: {status} {text}");
                sent += 1;
            }
        }
        Ok(sent)
    }

    /// Sends every command of the description that programs have.
    async fn send_commands(&self) -> Result<usize> {
        let document: Value = serde_json::from_str(&self.read("/api/v1/openapi.json").await?)?;
        let mut sent = 0;
        for (path, item) in document["paths"].as_object().context("no paths")? {
            if matches!(path.as_str(), "/session" | "/setup" | "/openapi.json") {
                continue;
            }
            for method in item.as_object().context("no item")?.keys() {
                let method = Method::from_bytes(method.to_uppercase().as_bytes())?;
                let asked = format!("/api/v1{}", path.replace("{id}", "1").replace("{name}", "default"));
                let request =
                    self.ask(method.clone(), &asked).header(header::CONTENT_TYPE, "application/json");
                let body = serde_json::json!({ "to": TO, "usdc": "1", "name": "thief" });
                let answer = request.body(body.to_string()).send().await?;
                ensure!(answer.status() == 403, "{method} {path}: {}", answer.status());
                sent += 1;
            }
        }
        Ok(sent)
    }
}

/// The value of an attribute of a tag.
fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    Some(rest.split('"').next()?.replace("&#38;", "&"))
}

fn urlencoded(fields: &[&(String, String)]) -> (String, String) {
    let encoded = |text: &str| text.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();
    let pairs = fields.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    ("application/x-www-form-urlencoded".to_owned(), pairs.collect::<Vec<_>>().join("&"))
}

fn multipart(fields: &[&(String, String)]) -> (String, String) {
    const BOUNDARY: &str = "----a-boundary-that-no-content-has";
    let part = |(name, value): &&(String, String)| {
        format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let body: String = fields.iter().map(part).collect();
    (format!("multipart/form-data; boundary={BOUNDARY}"), format!("{body}--{BOUNDARY}--\r\n"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_localhost_gets_the_cookie_and_changes_nothing_with_it() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let world = World::start().await?;
    let control = world.consumer.control();
    let file =
        farthing_tests::world::service_file(&world.upstream.url(), farthing_control::types::Charge::Success);
    let api = control.tell(endpoint::AddApi, &file).await?;
    let new = NewSecret { name: "dashboard".to_owned(), limits: SecretLimits::default() };
    control.tell(endpoint::CreateSecret, &new).await?;
    let console = control.ask(endpoint::ShowConsole).await?;
    let origin = console.origin().to_owned();
    let browser = Browser::open(&tools, &origin, true).await?;
    set_up(&browser, &world.consumer).await?;

    // Somebody is about to send money, and opens the page of another program in between.
    browser.goto("/panel/finance/send").await?;
    browser.fill(&[("to", TO), ("amount", "1.25")]).await?;
    browser.press("form.narrow button.primary").await?;
    browser.wait_for("You cannot undo this").await?;
    let order = browser.client.current_url().await?;
    let order = order.path_segments().and_then(|mut parts| parts.next_back()).context("no order")?.to_owned();
    let neighbour = Neighbour::start("<!doctype html><title>Mine</title>Hello".to_owned()).await?;
    // Under the name that all programs share, the browser sends nothing of the console's.
    browser.client.goto(&format!("http://localhost:{}/", neighbour.port)).await?;
    ensure!(browser.client.title().await? == "Mine" && neighbour.stolen().is_none(), "localhost is enough");
    // Names are no secrets: a program may know the console's.
    let host = reqwest::Url::parse(&origin)?.host_str().context("no host")?.to_owned();
    browser.client.goto(&format!("http://{host}:{}/", neighbour.port)).await?;
    eventually("the other server has seen the browser", async || Ok(neighbour.stolen().is_some()))
        .await
        .context("the browser keeps the cookie from other ports; then this test shows nothing")?;

    let before = changeable(&world.consumer).await?;
    let cookie = neighbour.stolen().context("no cookie")?;
    let thief = Thief::new(&std::fs::read(world.consumer.ca_file())?, &origin, cookie)?;
    let mut sent = 0;
    for page in fixed_pages()?.into_iter().chain(MORE_PAGES.map(ToOwned::to_owned)) {
        let page = page.replace("{api}", &api.id.to_string()).replace("{order}", &order);
        ensure!(!thief.read(&page).await?.contains("farthing_sk_"), "{page} shows a secret");
        sent += thief.send_forms(&page).await.with_context(|| page.clone())?;
    }
    ensure!(sent >= 40, "{sent} forms were sent");
    let commands = thief.send_commands().await?;
    ensure!(commands >= 80, "{commands} commands were sent");
    ensure!(changeable(&world.consumer).await? == before, "something was changed");
    let to: Address = TO.parse()?;
    ensure!(world.chain.usdc_of(to).await?.is_zero(), "money was sent");
    println!("a stolen cookie: {sent} forms and {commands} commands, all refused");

    // The one whose browser it is goes on where they were.
    browser.goto(&format!("/panel/finance/send/{order}")).await?;
    browser.fill(&[("console-password", PASSWORD)]).await?;
    browser.press("form.narrow button.primary").await?;
    browser.wait_for("1.25 USDC sent").await?;
    browser.goto("/panel/finance/limits").await?;
    browser.press("form[action='/panel/finance/stop'] button").await?;
    browser.wait_for("All spending is stopped").await?;
    browser.close().await
}

/// Forms that send themselves, to all that a form can do.
fn sending_page(console: &str) -> String {
    let fields = format!(
        "<input name=to value=\"{TO}\"><input name=amount value=1><input name=coin value=usdc>\
         <input name=console_key value=0><input name=go value=on><input name=name value=thief>"
    );
    let actions = [
        "/panel/finance/send",
        "/panel/finance/stop",
        "/panel/finance/limits",
        "/panel/settings/secrets",
        "/panel/settings/secret/rotate",
        "/panel/settings/backup/daily",
        "/panel/password",
    ];
    let forms: String = actions
        .iter()
        .enumerate()
        .map(|(number, action)| {
            format!(
                "<iframe name=f{number}></iframe>\
                 <form method=post target=f{number} action=\"{console}{action}\">{fields}</form>"
            )
        })
        .collect();
    let loaded = "let left = document.forms.length;
        for (const frame of document.querySelectorAll('iframe')) frame.onload = () => {
            if (--left <= 0) document.title = 'Done'; };
        for (const form of document.forms) form.submit();";
    format!("<!doctype html><title>Kittens</title>{forms}<script>{loaded}</script>")
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_of_other_sites_and_ports_change_nothing() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let world = World::start().await?;
    let console = world.consumer.control().ask(endpoint::ShowConsole).await?;
    let origin = console.origin().to_owned();
    let browser = Browser::open(&tools, &origin, true).await?;
    set_up(&browser, &world.consumer).await?;
    let origin = browser.client.current_url().await?.origin().ascii_serialization();
    let host = browser.client.current_url().await?.host_str().context("no host")?.to_owned();
    let before = changeable(&world.consumer).await?;
    let neighbour = Neighbour::start(sending_page(&origin)).await?;
    for host in [STRANGER, host.as_str(), "localhost"] {
        browser.client.goto(&format!("http://{host}:{}/", neighbour.port)).await?;
        eventually("every form was sent", async || Ok(browser.client.title().await? == "Done")).await?;
        ensure!(changeable(&world.consumer).await? == before, "{host} changed something");
    }
    browser.goto("/panel/settings/secrets/default").await?;
    browser.press("form[action$='/show'] button").await?;
    confirm(&browser).await?;
    browser.wait_for("farthing_sk_").await?;
    browser.close().await
}

/// Anybody can link to the console with a key of his own behind the `#`.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_of_another_site_replaces_no_key() -> Result<()> {
    let Some((browser, _node, origin, _folder)) = opened().await? else { return Ok(()) };
    let held = async || -> Result<Vec<String>> {
        let read = "return ['key', 'device'].map((name) => localStorage.getItem(`farthing-${name}`) ?? '');";
        Ok(serde_json::from_value(browser.client.execute(read, Vec::new()).await?)?)
    };
    let own = held().await?;
    ensure!(own.iter().all(|key| key.len() == 64), "{own:?}");
    let other = "0".repeat(64);
    let page = |to: &str| format!("<!doctype html><title>Kittens</title><a href=\"{to}\">Look</a>");
    for place in ["/panel", "/panel/login", "/panel/enter?next=%2Fpanel", "/panel/apis/new"] {
        let link = format!("{origin}{place}#key={other}&device={other}");
        let neighbour = Neighbour::start(page(&link)).await?;
        browser.client.goto(&format!("http://{STRANGER}:{}/", neighbour.port)).await?;
        browser.press("a").await?;
        eventually("the console takes it out of the address", async || {
            let url = browser.client.current_url().await?;
            Ok(url.as_str().starts_with(&origin) && url.fragment().is_none())
        })
        .await
        .with_context(|| place.to_owned())?;
        ensure!(held().await? == own, "{place}: {:?}", held().await?);
    }
    // The key is the right one still, and so is what a later log-in hands over.
    browser.goto("/panel/finance/limits").await?;
    browser.press("form[action='/panel/finance/stop'] button").await?;
    browser.wait_for("All spending is stopped").await?;
    browser.client.delete_all_cookies().await?;
    browser.goto("/panel/login").await?;
    browser.fill(&[("password", PASSWORD)]).await?;
    browser.press("button.primary").await?;
    eventually("another key is held, and the same device", async || {
        let now = held().await?;
        Ok(now[0].len() == 64 && now[0] != own[0] && now[1] == own[1])
    })
    .await?;
    browser.close().await
}
