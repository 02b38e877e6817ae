//! The reference of a service: every operation is found, and no description makes a page long or alive.

use anyhow::{Context, Result, ensure};
use farthing_control::{
    endpoint,
    types::{ServiceFile, SourceFile, SourceKind},
};
use farthing_tests::{upstream::Upstream, wait::eventually, world::PRICE};
use serde_json::{Map, Value, json};

use crate::{
    pages::HTML_BYTES_MAX,
    support::{Browser, Node, Page},
};

const OPERATIONS: usize = 1_000;
const LEVELS: usize = 60;
const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>";
/// What turns or hides text around it.
const UNSEEN: [char; 3] = ['\u{202e}', '\u{2066}', '\u{200b}'];

/// One of a thousand operations: its names are long, and written from the right, in pictures and in markup.
fn operation(at: usize) -> (String, Value) {
    let name = ["🪐", "שלום", "<b>", "x"][at / 3 % 4];
    let name = name.repeat(200 / name.chars().count());
    let unseen: String = UNSEEN.iter().collect();
    let parameter = json!({ "name": "id", "in": "path", "required": true, "example": 7,
        "description": format!("{MARKUP}{unseen}"), "schema": { "type": "integer", "minimum": 1, "default": 20 } });
    let content = |name: &str| json!({ "application/json": { "schema": { "$ref": format!("#/components/schemas/{name}") } } });
    let operation = json!({
        "summary": format!("{MARKUP} {unseen}{}", if at == OPERATIONS - 1 { "needle" } else { "hay" }),
        "description": format!("# {MARKUP}\n\n{name}"),
        "tags": [format!("{} {name}", at / 3)],
        "parameters": [parameter],
        "responses": {
            "200": { "description": MARKUP, "content": content("Level0") },
            "404": { "description": MARKUP, "content": content("Node") },
        },
    });
    (format!("/{}/{at}/{{id}}", "x".repeat(200)), json!({ "get": operation }))
}

fn document() -> Value {
    let reference = |name: String| json!({ "$ref": format!("#/components/schemas/{name}") });
    let level = |at: usize| {
        let next =
            if at + 1 < LEVELS { reference(format!("Level{}", at + 1)) } else { json!({ "type": "string" }) };
        (format!("Level{at}"), json!({ "type": "object", "properties": { "within": next } }))
    };
    let mut schemas: Map<String, Value> = (0..LEVELS).map(level).collect();
    let node = json!({ "type": "object", "properties": { MARKUP: { "type": "string" }, "again": reference("Node".into()) } });
    schemas.insert("Node".to_owned(), node);
    let paths: Map<String, Value> = (0..OPERATIONS).map(operation).collect();
    json!({ "openapi": "3.1.0", "info": { "title": "Many", "version": "1" }, "paths": paths,
        "components": { "schemas": schemas } })
}

/// The console of a node that offers all of them.
async fn opened() -> Result<(Node, Browser, String)> {
    let (node, mut browser) = Node::opened().await?;
    let upstream = Upstream::start().await?;
    let source = SourceFile::given(SourceKind::Openapi, document().to_string(), "many.json".to_owned());
    let file = ServiceFile {
        name: "Many".to_owned(),
        upstream: upstream.url(),
        source: Some(source),
        ..ServiceFile::priced(PRICE)
    };
    let api = node.process.control().tell(endpoint::AddApi, &file).await?;
    let own = format!("/panel/catalog/{}", api.id);
    eventually("the operations are known", async || {
        Ok(browser.get(&format!("{own}/reference")).await?.body.contains("1000 operations"))
    })
    .await?;
    Ok((node, browser, own))
}

/// A page of this service, which is as small as any and does nothing.
async fn harmless(browser: &mut Browser, path: &str) -> Result<Page> {
    let page = browser.get(path).await?;
    ensure!(page.status == 200, "{path}: {page:?}");
    ensure!(page.body.len() <= HTML_BYTES_MAX, "{path} has {} bytes", page.body.len());
    for alive in ["<script>", "<img src=x", "<b>x", "<b><b>"] {
        ensure!(!page.body.contains(alive), "{path}: {alive} in {}", page.body);
    }
    ensure!(!page.body.contains(UNSEEN), "{path} has what is not seen: {}", page.body);
    Ok(page)
}

/// The address of the first operation that a page lists.
fn first_of_tree(page: &Page) -> Result<String> {
    let leaves = page.body.split("<ul class=\"leaves\">").nth(1).context("no operations")?;
    let link = leaves.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).context("no link")?;
    Ok(link.replace("&#38;", "&"))
}

#[tokio::test(flavor = "multi_thread")]
async fn any_operation_of_a_thousand_is_found_and_no_page_of_a_hostile_description_is_large() -> Result<()> {
    let (_node, mut browser, own) = opened().await?;
    for part in ["reference", "sandbox"] {
        let here = format!("{own}/{part}");
        for query in
            ["", "?groups=2", "?groups=14", "?page=2", "?q=hay", "?q=nothing+like+it", "?language=python"]
        {
            harmless(&mut browser, &format!("{here}{query}")).await?;
        }
        let found = harmless(&mut browser, &format!("{here}?q=needle")).await?;
        ensure!(found.body.contains("1 of 1000 operations"), "{found:?}");
        let link = first_of_tree(&found)?;
        let page = harmless(&mut browser, &format!("{here}{link}")).await?;
        ensure!(page.body.contains("/999/{id}") && page.body.contains("needle"), "{page:?}");
        ensure!(page.body.contains("aria-current=\"page\"><span class=\"method\">GET"), "{page:?}");
        // Nothing of that name.
        ensure!(browser.get(&format!("{here}?operation=GET%20/none")).await?.status == 404);
        ensure!(browser.get(&format!("{here}?group=none")).await?.status == 404);
    }
    let page = harmless(&mut browser, &format!("{own}/reference")).await?;
    for words in [
        "Deeper levels are in the OpenAPI document.",
        "Same as above: this type contains itself.",
        "at least 1",
    ] {
        ensure!(page.body.contains(words), "no “{words}” in {}", page.body);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn code_is_in_the_language_that_was_chosen_and_stays_in_it() -> Result<()> {
    let (_node, mut browser, own) = opened().await?;
    let page = harmless(&mut browser, &format!("{own}/reference?q=needle&language=python")).await?;
    ensure!(page.body.contains("language=python#as-code\" aria-current=\"true\">Python"), "{page:?}");
    ensure!(page.body.contains("import ") && !page.body.contains("curl "), "one language: {page:?}");
    let link = page.body.split("class=\"button try\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    let link = link.context("nothing to try")?.replace("&#38;", "&");
    let sandbox = harmless(&mut browser, &link).await?;
    ensure!(sandbox.body.contains("value=\"python\" checked"), "{sandbox:?}");
    ensure!(sandbox.body.matches(" checked>").count() == 1, "one language is open: {sandbox:?}");
    let fields =
        [("operation", sandbox.field("operation")?), ("p.id", "9".to_owned()), ("language", "go".to_owned())];
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let here = format!("{own}/sandbox");
    let page = browser.post(&here, &[&fields[..], &[("act", "code")]].concat()).await?;
    ensure!(page.status == 200 && page.body.contains("value=\"go\" checked"), "{page:?}");
    Ok(())
}
