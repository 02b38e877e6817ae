//! A cookie in the hands of another program: browsers send it to every port of its host, so it is worth nothing alone.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{BackupRequest, Charge, NewSecret, SecretLimits},
};
use farthing_tests::{
    console_pages::{changeable, routes},
    upstream::Upstream,
    world::service_file,
};
use reqwest::{Method, header};
use serde_json::Value;

use crate::{
    pages::pages,
    support::{Browser, Node, PASSWORD, Page},
};

const TO: &str = "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf";
/// Before anybody is logged in, and what is of the sender's browser alone.
const HARMLESS: [&str; 6] = [
    "/panel/setup",
    "/panel/login",
    "/panel/logout",
    "/panel/theme",
    "/panel/catalog/{id}/sandbox/cancel",
    "/panel/x402/{id}/call/cancel",
];
/// What takes files.
const UPLOADS: [&str; 4] = [
    "/panel/apis/new",
    "/panel/apis/{id}/offer",
    "/panel/apis/{id}/read-again",
    "/panel/settings/backup/upload",
];

/// A node with something of everything, and names for the braces of addresses.
async fn furnished() -> Result<(Node, Browser, Vec<(&'static str, String)>)> {
    let (node, mut browser) = Node::opened().await?;
    let control = node.process.control();
    let upstream = Upstream::start().await?;
    let api = control.tell(endpoint::AddApi, &service_file(&upstream.url(), Charge::Success)).await?;
    let new = NewSecret { name: "dashboard".to_owned(), limits: SecretLimits::default() };
    control.tell(endpoint::CreateSecret, &new).await?;
    let request = BackupRequest { passphrase: PASSWORD.to_owned() };
    let backup = control.tell(endpoint::CreateBackup, &request).await?;
    let order =
        browser.press("/panel/finance/send", &[("to", TO), ("amount", "1"), ("coin", "usdc")]).await?;
    let order = order.header("location").rsplit('/').next().context("no order")?.to_owned();
    let names = vec![("order", order), ("id", api.id.to_string()), ("name", "dashboard".to_owned())];
    let names = [names, vec![("backup", backup.name), ("wallet", TO.to_owned())]].concat();
    Ok((node, browser, names))
}

/// An address with its braces filled; backups have a name of their own.
fn filled(pattern: &str, names: &[(&'static str, String)]) -> String {
    let pattern = pattern.replace("/backup/{name}", "/backup/{backup}");
    names.iter().fold(pattern, |path, (name, value)| path.replace(&format!("{{{name}}}"), value))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_alone_changes_nothing_whatever_form_it_is_sent_with() -> Result<()> {
    let (node, browser, names) = furnished().await?;
    let before = changeable(&node.process).await?;
    let cookie = browser.session().context("no session")?;
    for pattern in routes("post")?.iter().filter(|path| !HARMLESS.contains(&path.as_str())) {
        let place = filled(pattern, &names);
        // Nothing, and all that a cookie could lead to.
        for key in ["", "0", &cookie, &cookie[..32]] {
            let mut thief = browser.thief();
            let page = if UPLOADS.contains(&pattern.as_str()) {
                let parts: [(&str, Option<&str>, &[u8]); 2] =
                    [("price", None, b"0.1"), ("file", Some("a.json"), b"{}")];
                let request = thief.upload_with(&place, key, &parts);
                thief.send(request).await?
            } else {
                let fields = [("console_key", key), ("go", "on"), ("act", "live"), ("sure", "1")];
                let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
                let request = thief.form(&place, &fields);
                thief.send(request).await?
            };
            ensure!(page.status == 403, "{place} with `{key}`: {page:?}");
            ensure!(!page.body.contains("farthing_sk_"), "{place}: {page:?}");
        }
    }
    let after = changeable(&node.process).await?;
    ensure!(before == after, "something was changed:\n{before:#?}\n{after:#?}");
    ensure!(browser.clone().get("/panel").await?.status == 200, "the session goes on");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_alone_reads_no_secret_and_opens_nothing_for_programs() -> Result<()> {
    let (node, browser, names) = furnished().await?;
    let mut thief = browser.thief();
    let secret = node.process.secret().await?;
    let others = ["/panel/settings/secrets/{name}", "/panel/settings/backup/{name}", "/panel/apis/{id}/edit"];
    let others = others.map(|path| filled(path, &names));
    let mut read = 0;
    for path in pages()?.iter().chain(&others) {
        let page = thief.get(path).await?;
        ensure!(page.status == 200 || page.status == 404, "{path}: {page:?}");
        read += usize::from(page.status == 200);
        for kept in [&secret, "farthing_sk_", "class=\"words\"", "FARTHBK1"] {
            ensure!(!page.body.contains(kept), "{path} shows {kept}: {page:?}");
        }
        let key = browser.key.as_deref().context("no key")?;
        ensure!(!page.body.contains(key), "{path} says the key: {page:?}");
    }
    ensure!(read > pages()?.len() / 2, "only {read} pages were there");
    for path in ["/panel/settings/secrets/{name}/show", "/panel/settings/backup/{name}/download"] {
        let page = thief.get(&filled(path, &names)).await?;
        ensure!(page.status == 405, "{path}: {page:?}");
    }
    let page = thief.get("/api/v1/openapi.json").await?;
    let document: Value = serde_json::from_str(&page.body)?;
    let paths = document["paths"].as_object().context("no paths")?;
    for (path, item) in paths.iter().filter(|(path, _)| *path != "/openapi.json") {
        for method in item.as_object().context("no item")?.keys() {
            if matches!(path.as_str(), "/session" | "/setup") {
                continue;
            }
            let asked = format!("/api/v1{}", filled(path, &names));
            for method in [method.to_uppercase().as_str(), "HEAD"] {
                let request = thief
                    .request(Method::from_bytes(method.as_bytes())?, &asked)
                    .header("sec-fetch-site", "same-origin")
                    .header("x-console-key", browser.session().unwrap_or_default())
                    .header(header::CONTENT_TYPE, "application/json")
                    .body("{}");
                let page = thief.send(request).await?;
                ensure!(page.status == 403, "{method} {path}: {page:?}");
            }
        }
    }
    Ok(())
}

/// Nothing of a form with files is read before its key, which comes first.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_comes_after_the_file_or_never_ends_opens_no_form_with_files() -> Result<()> {
    let (node, browser, names) = furnished().await?;
    let before = changeable(&node.process).await?;
    let key = browser.key.clone().context("no key")?;
    let document = br#"{"openapi":"3.1.0","info":{"title":"T","version":"1"},"paths":{}}"#;
    for pattern in UPLOADS {
        let place = filled(pattern, &names);
        let (file, price) = (("file", Some("a.json"), &document[..]), ("price", None, &b"0.1"[..]));
        let late = [("console_key", None, key.as_bytes()), ("console_password", None, PASSWORD.as_bytes())];
        let endless = "0".repeat(20_000);
        for (what, key, parts, status) in [
            ("behind the file", "", vec![file, price, late[0], late[1]], 403),
            ("behind the price", "", vec![price, late[0], file], 403),
            ("in a form of nothing else", "", vec![], 403),
            ("longer than any key", endless.as_str(), vec![late[0], file], 413),
            (
                "with a password longer than any",
                "",
                vec![("console_password", None, endless.as_bytes()), file],
                413,
            ),
        ] {
            let mut thief = browser.thief();
            let request = thief.upload_with(&place, key, &parts);
            let page = thief.send(request).await?;
            ensure!(page.status == status, "{place}, a key {what}: {page:?}");
        }
    }
    ensure!(before == changeable(&node.process).await?, "something was changed");
    Ok(())
}

/// Without scripts there is no key.
#[tokio::test(flavor = "multi_thread")]
async fn without_the_key_the_password_does_and_what_was_typed_is_kept() -> Result<()> {
    let (node, browser, names) = furnished().await?;
    let mut plain = browser.thief();
    let own = filled("/panel/apis/{id}", &names);
    let says = async |price: &str| -> Result<bool> {
        let apis = node.process.control().ask(endpoint::Apis).await?;
        Ok(apis.first().is_some_and(|api| api.price.to_string() == price))
    };
    let typed = [("price", "0.25"), ("operation", "")];
    let place = format!("{own}/price");
    let page = plain.press(&place, &typed).await?;
    ensure!(page.asks_for_password() && !says("0.25").await?, "{page:?}");
    ensure!(page.body.contains(&format!("action=\"{place}\"")), "{page:?}");
    ensure!(page.field("price")? == "0.25" && page.field("operation")?.is_empty(), "{page:?}");
    let with = |password: &'static str| [&typed[..], &[("console_password", password)]].concat();
    let page = plain.press(&place, &with("a wrong password")).await?;
    ensure!(page.status == 422 && page.field("price")? == "0.25" && !says("0.25").await?, "{page:?}");
    ensure!(!page.body.contains("a wrong password"), "{page:?}");
    let page = plain.press(&place, &with(PASSWORD)).await?;
    ensure!(page.status == 303 && says("0.25").await?, "{page:?}");
    // A file cannot be held by a page: its form has a field for the password.
    let file = ("file", Some("api.json"), &b"{"[..]);
    let password = ("console_password", None, PASSWORD.as_bytes());
    let request = plain.upload_with("/panel/apis/new", "", &[file]);
    let page: Page = plain.send(request).await?;
    ensure!(page.status == 403 && page.body.contains("type your password into the form"), "{page:?}");
    let request = plain.upload_with("/panel/apis/new", "", &[password, file]);
    let page = plain.send(request).await?;
    ensure!(page.status == 422 && page.body.contains("cannot be read as"), "{page:?}");
    Ok(())
}

/// What names another server, or what it is sent, decides who gets the owner's keys.
#[tokio::test(flavor = "multi_thread")]
async fn another_server_needs_the_password_and_other_words_do_not() -> Result<()> {
    let (node, mut browser, names) = furnished().await?;
    let edit = filled("/panel/apis/{id}/edit", &names);
    let now = node.process.control().ask(endpoint::Apis).await?;
    let now = now.first().context("no service")?.upstream.clone();
    let fields = |name: &'static str, upstream: &str, header: &'static str| {
        let value = if header.is_empty() { "" } else { "x" };
        [("name", name), ("upstream", upstream), ("header_name", header), ("header_value", value)]
            .map(|(name, value)| (name, value.to_owned()))
    };
    let rest = ["summary", "description", "category", "tags"].map(|name| (name, String::new()));
    let mut press = async |own: [(&'static str, String); 4]| -> Result<Page> {
        let version = browser.get(&edit).await?.field("version")?;
        let all = [&own[..], &rest[..], &[("charge", "success".to_owned()), ("version", version)]].concat();
        let all: Vec<(&str, &str)> = all.iter().map(|(name, value)| (*name, value.as_str())).collect();
        browser.press(&edit, &all).await
    };
    let page = press(fields("Other words", &now, "")).await?;
    ensure!(page.status == 303, "{page:?}");
    for own in [fields("Other words", "http://127.0.0.1:9", ""), fields("Other words", &now, "X-Key")] {
        let page = press(own).await?;
        ensure!(page.asks_for_password(), "{page:?}");
    }
    let after = node.process.control().ask(endpoint::Apis).await?;
    ensure!(after.first().is_some_and(|api| api.upstream == now && api.name == "Other words"), "{after:?}");
    Ok(())
}
