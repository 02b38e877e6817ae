//! The sandbox: what it sends, what it costs, what it shows.

use anyhow::{Context, Result, ensure};
use axum::{Router, routing::get};
use farthing_control::{
    endpoint,
    types::{LimitsRequest, OperationFile, ServiceFile, SourceFile, SourceKind},
};
use farthing_tests::{
    upstream::serve,
    wait::eventually,
    world::{FUNDS, PRICE, Setup, World},
};
use farthing_values::{Method, Usdc};
use serde_json::json;

use crate::support::{Browser, Node, PASSWORD, Page, set_up};

/// Pages stay small, whatever the answer.
const HTML_BYTES_MAX: usize = 60 * 1024;

/// A consumer's console, open at the sandbox of the world's service.
pub struct Sandbox {
    pub browser: Browser,
    pub address: String,
}

impl Sandbox {
    async fn open(world: &World) -> Result<Self> {
        Self::open_at(world, &world.api.id.to_string()).await
    }

    pub async fn open_at(world: &World, id: &str) -> Result<Self> {
        Self::of(set_up(&world.consumer).await?, id).await
    }

    async fn of(mut browser: Browser, id: &str) -> Result<Self> {
        let address = format!("/panel/catalog/{id}/sandbox");
        eventually("the service is in the catalog", async || {
            Ok(browser.get(&address).await?.body.contains("name=\"nonce\""))
        })
        .await?;
        Ok(Self { browser, address })
    }

    pub async fn form(&mut self, operation: &str) -> Result<Page> {
        let operation = operation.replace(' ', "%20").replace('{', "%7B").replace('}', "%7D");
        let page = self.browser.get(&format!("{}?operation={operation}", self.address)).await?;
        ensure!(page.status == 200, "{page:?}");
        Ok(page)
    }

    /// Presses a button of that form.
    pub async fn press(&mut self, form: &Page, act: &str, filled: &[(&str, &str)]) -> Result<Page> {
        let (operation, nonce, price) =
            (form.field("operation")?, form.field("nonce")?, form.field("price")?);
        let own = [
            ("operation", operation.as_str()),
            ("nonce", nonce.as_str()),
            ("price", price.as_str()),
            ("act", act),
        ];
        let own = own.iter().filter(|(name, _)| !filled.iter().any(|(other, _)| other == name));
        let fields: Vec<_> = own.chain(filled).copied().collect();
        self.browser.post(&self.address, &fields).await
    }

    /// Presses the button that pays, with files: names of fields, names of files and contents.
    pub async fn upload(&mut self, form: &Page, parts: &[(&str, Option<&str>, &[u8])]) -> Result<Page> {
        let own = own_fields(form)?;
        let own: Vec<_> = own.iter().map(|(name, value)| (*name, None, value.as_bytes())).collect();
        self.browser.upload(&self.address, &[&own[..], parts].concat()).await
    }

    /// Calls, and follows to the page that shows the answer.
    async fn call(&mut self, operation: &str, filled: &[(&str, &str)]) -> Result<(String, Page)> {
        let form = self.form(operation).await?;
        let sent = self.press(&form, "live", filled).await?;
        self.follow(&sent).await
    }

    pub async fn follow(&mut self, sent: &Page) -> Result<(String, Page)> {
        ensure!(sent.status == 303, "{sent:?}");
        let place = sent.header("location").trim_end_matches("#answer").to_owned();
        eventually("the call has ended", async || Ok(!is_under_way(&self.browser.get(&place).await?)))
            .await?;
        let page = self.browser.get(&place).await?;
        ensure!(
            page.status == 200 && page.body.len() <= HTML_BYTES_MAX,
            "{} {}",
            page.status,
            page.body.len()
        );
        Ok((place, page))
    }
}

/// Whether a page shows a call that has no answer yet.
pub fn is_under_way(page: &Page) -> bool {
    page.body.contains("data-live=\"whole\"")
}

/// The hidden fields of a form, and its button that pays.
pub fn own_fields(form: &Page) -> Result<[(&'static str, String); 4]> {
    let (operation, nonce, price) = (form.field("operation")?, form.field("nonce")?, form.field("price")?);
    Ok([("operation", operation), ("nonce", nonce), ("price", price), ("act", "live".to_owned())])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_above_the_users_own_limit_is_not_offered_and_its_page_says_that_it_was_not_bought()
-> Result<()> {
    let world = World::start().await?;
    let mut sandbox = Sandbox::open(&world).await?;
    let control = world.consumer.control();
    let price_max = Some(Usdc::from_micros(1_000).into());
    control.tell(endpoint::LimitSpending, &LimitsRequest { price_max, ..LimitsRequest::default() }).await?;
    let form = sandbox.form("GET /ok").await?;
    ensure!(form.body.contains("Above your limit of 0.001 USDC per call."), "{form:?}");
    ensure!(form.body.contains("aria-describedby=\"about-call\" disabled>Call for"), "{form:?}");
    // As a page that was loaded before the limit sends it.
    let sent = sandbox.press(&form, "live", &[]).await?;
    let (_, page) = sandbox.follow(&sent).await?;
    ensure!(page.body.contains("Raise the limit in Finance › Limits."), "{page:?}");
    ensure!(!page.body.contains("farthing spending"), "no commands: {page:?}");
    let refused = control.ask(endpoint::Calls.with("outcome", "refused")).await?.calls;
    let key = &refused.first().context("no refused call")?.key;
    let page = sandbox.browser.get(&format!("/panel/activity/{key}")).await?;
    ensure!(
        page.body.contains("Your node did not buy this call.") && !page.body.contains(">Bought<"),
        "{page:?}"
    );
    ensure!(world.upstream.hits() == 0, "nothing was sent");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_call_is_paid_once_however_often_it_is_sent_and_looked_at() -> Result<()> {
    let world = World::start().await?;
    let mut sandbox = Sandbox::open(&world).await?;
    let form = sandbox.form("GET /ok").await?;
    ensure!(form.body.contains(&format!("Call for {PRICE} USDC")), "the button names the price");
    ensure!(world.upstream.hits() == 0, "looking is free");
    let sent = sandbox.press(&form, "live", &[]).await?;
    let (place, page) = sandbox.follow(&sent).await?;
    ensure!(page.body.contains(&format!("You were charged {PRICE} USDC.")), "{page:?}");
    ensure!(
        page.body.contains("200 OK") && page.body.contains("&#34;n&#34;</b> <i class=\"n\">1</i>"),
        "{page:?}"
    );
    for view in ["tree", "raw", "headers", "timing", "receipt"] {
        let page = sandbox.browser.get(&format!("{place}&view={view}")).await?;
        ensure!(page.status == 200 && page.body.contains("You were charged"), "{view}: {page:?}");
    }
    // A press that a browser repeats, twice at once as well.
    let mut twin = Sandbox { browser: sandbox.browser.clone(), address: sandbox.address.clone() };
    let (again, at_once) = tokio::join!(sandbox.press(&form, "live", &[]), twin.press(&form, "live", &[]));
    for repeated in [again?, at_once?] {
        ensure!(repeated.header("location") == sent.header("location"), "{repeated:?}");
    }
    ensure!(world.upstream.hits() == 1, "the service was asked once");
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == PRICE, "{charged}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_call_names_its_deposit_on_the_button_and_later_ones_do_not() -> Result<()> {
    let world = World::start().await?;
    let mut sandbox = Sandbox::open(&world).await?;
    let form = sandbox.form("GET /ok").await?;
    // 200 calls' worth.
    ensure!(form.body.contains("Call for 0.002 USDC + 0.40 refundable deposit"), "{form:?}");
    ensure!(form.body.contains("a deposit of 0.40 USDC") && form.body.contains("get the rest back"));
    // The owner asks for more than when the page was loaded: no more is deposited than its button said.
    ensure!(form.field("deposit")? == "0.40", "{form:?}");
    let page = sandbox.press(&form, "live", &[("deposit", "0.39")]).await?;
    ensure!(page.status == 422 && page.body.contains("make a deposit of 0.40 USDC first"), "{page:?}");
    ensure!(world.upstream.hits() == 0, "nothing was sent");
    let sent = sandbox.press(&form, "live", &[("deposit", "0.40")]).await?;
    sandbox.follow(&sent).await?;
    let deposited = world.consumer.control().ask(endpoint::Channels).await?;
    ensure!(
        deposited.first().is_some_and(|channel| channel.deposited.to_string() == "0.40"),
        "{deposited:?}"
    );
    let form = sandbox.form("GET /ok").await?;
    ensure!(form.body.contains("Call for 0.002 USDC</button>"), "{form:?}");
    ensure!(form.field("deposit")? == "0.00", "{form:?}");
    ensure!(form.body.contains("which has 0.398 USDC left"), "{form:?}");
    // What lies in the channel can be spent as well: the sum fell by the price alone.
    eventually("the head of the page counts the channel", async || {
        Ok(sandbox.browser.get("/panel/help").await?.body.contains("<b>4.998</b> test USDC"))
    })
    .await?;
    world.settle_and_check(FUNDS).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_succeed_says_that_nothing_was_charged() -> Result<()> {
    let world = World::start().await?;
    let mut sandbox = Sandbox::open(&world).await?;
    let (_, page) = sandbox.call("GET /status/{status}", &[("p.status", "500")]).await?;
    ensure!(page.body.contains("You were not charged.") && page.body.contains("What to do:"), "{page:?}");
    // The price rose while the page was open: no more is paid than its button said.
    let form = sandbox.form("GET /ok").await?;
    let page = sandbox.press(&form, "live", &[("price", "much")]).await?;
    ensure!(
        page.status == 422 && page.body.contains("Nothing was sent, and you were not charged"),
        "{page:?}"
    );
    let sent = sandbox.press(&form, "live", &[("price", "0.001")]).await?;
    let (_, page) = sandbox.follow(&sent).await?;
    ensure!(
        page.body.contains("above the caller&#39;s limit") && page.body.contains("not charged"),
        "{page:?}"
    );
    let form = sandbox.form("GET /ok").await?;
    let page = sandbox.press(&form, "live", &[("extra", "no pair")]).await?;
    ensure!(
        page.status == 422 && page.body.contains("Nothing was sent, and you were not charged"),
        "{page:?}"
    );
    ensure!(page.body.contains("no pair"), "what was typed is still there");
    ensure!(sandbox.browser.get("/panel/catalog/nonsense/sandbox").await?.status == 404);
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == Usdc::ZERO, "{charged}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_money_the_page_says_so_before_and_after() -> Result<()> {
    let world = World::with(Setup { funds: Usdc::ZERO, ..Setup::default() }).await?;
    let mut sandbox = Sandbox::open(&world).await?;
    let form = sandbox.form("GET /ok").await?;
    ensure!(form.body.contains("Your wallet does not have enough USDC"), "{form:?}");
    let (_, page) = sandbox.call("GET /ok", &[]).await?;
    ensure!(
        page.body.contains("not enough funds") && page.body.contains("You were not charged."),
        "{page:?}"
    );
    ensure!(
        page.body.contains("<a class=\"turn\" href=\"/panel/setup/fund\">Fund the wallet</a>"),
        "{page:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_answer_is_shown_in_part_and_downloaded_whole() -> Result<()> {
    let world = World::start().await?;
    let mut sandbox = Sandbox::open(&world).await?;
    let (place, page) = sandbox.call("GET /large/{bytes}", &[("p.bytes", "3000000")]).await?;
    ensure!(page.body.contains("2.8 MiB"), "{page:?}");
    let call = place.split("call=").nth(1).context("no call")?;
    let file = format!("{}/answer?call={call}", sandbox.address);
    let whole = sandbox.browser.get(&file).await?;
    ensure!(whole.status == 200 && whole.body.len() == 3_000_000, "{}", whole.body.len());
    ensure!(whole.header("content-type") == "application/octet-stream");
    ensure!(whole.header("content-disposition").starts_with("attachment"));
    // HTML of a stranger is text here, and a file there.
    let (place, page) = sandbox.call("POST /echo", &[("body", "{\"a\": \"<h1>big\"}")]).await?;
    ensure!(page.body.contains("&#60;h1&#62;big") && !page.body.contains("<h1>big"), "{page:?}");
    // Another log-in sees none of it.
    let mut other = sandbox.browser.clone();
    other.cookies.clear();
    ensure!(other.get(&file).await?.status == 303, "strangers log in first");
    eventually("the other one is let in", async || {
        Ok(other.post("/panel/login", &[("password", PASSWORD)]).await?.status == 303)
    })
    .await?;
    ensure!(other.get(&file).await?.status == 404);
    ensure!(other.get(&place).await?.body.contains("no longer kept"));
    Ok(())
}

/// What is neither JSON nor text of ours to trust: bytes, and a drawing that would like to run.
const DRAWING: &str =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"><script>alert(2)</script></svg>";

async fn pictures() -> Result<String> {
    let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
    let of = |kind: &'static str, body: Vec<u8>| {
        get(async move || ([(axum::http::header::CONTENT_TYPE, kind)], body))
    };
    let router = Router::new()
        .route("/picture", of("image/png", bytes))
        .route("/drawing", of("image/svg+xml", DRAWING.into()));
    serve(router).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_that_may_take_long_says_so_before_it_is_bought() -> Result<()> {
    let world = World::start().await?;
    let slow = OperationFile {
        timeout_secs: Some(120),
        ..OperationFile::named(Method::Get, "/slow/{millis}".to_owned())
    };
    let file = ServiceFile {
        name: "Slow".to_owned(),
        upstream: world.upstream.url(),
        operations: vec![slow, OperationFile::named(Method::Get, "/ok".to_owned())],
        ..ServiceFile::priced(PRICE)
    };
    let api = world.publish(&file).await?;
    let mut sandbox = Sandbox::open_at(&world, &api.id.to_string()).await?;
    let form = sandbox.form("GET /slow/{millis}").await?;
    ensure!(form.body.contains("An answer may take up to 120 s"), "{form:?}");
    let form = sandbox.form("GET /ok").await?;
    ensure!(!form.body.contains("An answer may take"), "{form:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binary_answer_is_shown_as_bytes_a_drawing_as_text_and_both_are_downloaded_whole() -> Result<()> {
    let world = World::start().await?;
    let file = ServiceFile {
        name: "Pictures".to_owned(),
        upstream: pictures().await?,
        operations: ["/picture", "/drawing"]
            .map(|path| OperationFile::named(Method::Get, path.to_owned()))
            .into(),
        ..ServiceFile::priced(PRICE)
    };
    let api = world.publish(&file).await?;
    let mut sandbox = Sandbox::open_at(&world, &api.id.to_string()).await?;

    let (place, page) = sandbox.call("GET /picture", &[]).await?;
    ensure!(page.body.contains("Not text, 68 KiB") && page.body.contains("00000010  10 11 12"), "{page:?}");
    let call = place.split("call=").nth(1).context("no call")?;
    let request =
        sandbox.browser.request(reqwest::Method::GET, &format!("{}/answer?call={call}", sandbox.address));
    let answer = request.send().await?.error_for_status()?;
    ensure!(answer.headers()["content-type"] == "application/octet-stream", "{:?}", answer.headers());
    let whole = answer.bytes().await?;
    ensure!(whole.len() == 70_000 && whole[..256].iter().copied().eq(0..=255), "{} bytes", whole.len());

    let (place, page) = sandbox.call("GET /drawing", &[]).await?;
    let raw = sandbox.browser.get(&format!("{place}&view=raw")).await?;
    ensure!(raw.body.contains("&#60;script&#62;alert(2)"), "{raw:?}");
    ensure!(!page.body.contains("<script>alert") && !raw.body.contains("<script>alert"), "{page:?}");
    let call = place.split("call=").nth(1).context("no call")?;
    let file = sandbox.browser.get(&format!("{}/answer?call={call}", sandbox.address)).await?;
    ensure!(file.body == DRAWING && file.header("content-type") == "application/octet-stream", "{file:?}");
    ensure!(file.header("content-disposition").starts_with("attachment"), "{file:?}");
    let charged = world.settle_and_check(FUNDS).await?;
    ensure!(charged == PRICE.checked_mul(2).unwrap_or_default(), "{charged}");
    Ok(())
}

/// A service with one of everything.
fn described(upstream: &str) -> ServiceFile {
    let query =
        |name: &str, schema: serde_json::Value| json!({ "name": name, "in": "query", "schema": schema });
    let places = json!({ "type": "FeatureCollection", "features": [{ "type": "Feature",
        "properties": { "place": "Hualian, Taiwan", "mag": 6.4 },
        "geometry": { "type": "Point", "coordinates": [121.7, 24.1] } }] });
    let document = json!({
        "openapi": "3.1.0", "info": { "title": "Everything", "version": "1" },
        "paths": {
            "/places/{region}": { "get": {
                "summary": "Places of a region",
                "parameters": [
                    { "name": "region", "in": "path", "required": true, "example": "asia", "schema": { "type": "string" } },
                    query("order", json!({ "type": "string", "enum": ["up", "<b>down"], "default": "up" })),
                    query("limit", json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20 })),
                    query("deep", json!({ "type": "boolean" })),
                    query("ev\u{202e}il", json!({ "type": "string", "description": "<script>alert(1)</script>" })),
                ],
                "responses": { "200": { "description": "ok", "content": {
                    "application/json": { "schema": { "type": "object" }, "example": places } } } },
            } },
            "/notes": { "post": {
                "requestBody": { "required": true, "content": { "application/json": {
                    "schema": { "type": "object", "required": ["text"], "properties": { "text": { "type": "string", "example": "Ada" } } } } } },
                "responses": { "201": { "description": "made" } },
            } },
        },
    });
    ServiceFile {
        name: "Everything".to_owned(),
        upstream: upstream.to_owned(),
        source: Some(SourceFile::given(
            SourceKind::Openapi,
            document.to_string(),
            "everything.json".to_owned(),
        )),
        operations: vec![OperationFile::named(Method::Post, "/notes".to_owned())],
        ..ServiceFile::priced(PRICE)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_form_follows_the_description_and_samples_are_free() -> Result<()> {
    let (node, browser) = Node::opened().await?;
    let upstream = farthing_tests::upstream::Upstream::start().await?;
    let api = node.process.control().tell(endpoint::AddApi, &described(&upstream.url())).await?;
    let mut sandbox = Sandbox::of(browser, &api.id.to_string()).await?;
    let form = sandbox.form("GET /places/{region}").await?;
    for part in [
        "<code><bdi>region</bdi></code></label>"
            .replace("</label>", " <span class=\"required\">required</span>"),
        "value=\"asia\"".to_owned(),
        "<option value=\"\">default up</option>".to_owned(),
        "<option>&#60;b&#62;down</option>".to_owned(),
        "type=\"number\" step=\"1\" value=\"\" placeholder=\"default 20\" min=\"1\" max=\"100\"".to_owned(),
        "<option>true</option>".to_owned(),
        "your own service".to_owned(),
    ] {
        ensure!(form.body.contains(&part), "no {part} in {}", form.body);
    }
    for alive in ["\u{202e}", "<script>alert", "<b>down"] {
        ensure!(!form.body.contains(alive), "{alive:?} in {}", form.body);
    }
    let sent = sandbox.press(&form, "sample", &[]).await?;
    let (place, page) = sandbox.follow(&sent).await?;
    ensure!(page.body.contains("Free: nothing was sent, and you were not charged."), "{page:?}");
    ensure!(page.body.contains("<svg class=\"map\"") && page.body.contains("Hualian, Taiwan"), "{page:?}");
    let table = sandbox.browser.get(&format!("{place}&view=table")).await?;
    ensure!(table.body.contains("<bdi>Hualian, Taiwan</bdi>"), "{table:?}");
    let form = sandbox.form("POST /notes").await?;
    ensure!(
        form.body.contains("&#34;text&#34;: &#34;Ada&#34;"),
        "the body begins with an example: {}",
        form.body
    );
    let page = sandbox.press(&form, "live", &[("body", "{\"text\": ")]).await?;
    ensure!(page.status == 422 && page.body.contains("The body is not JSON"), "{page:?}");
    ensure!(upstream.hits() == 0, "nobody was asked");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn client_code_is_looked_at_and_downloaded() -> Result<()> {
    let (node, mut browser) = Node::opened().await?;
    let upstream = farthing_tests::upstream::Upstream::start().await?;
    let api = node.process.control().tell(endpoint::AddApi, &described(&upstream.url())).await?;
    let address = format!("/panel/catalog/{}/sdk", api.id);
    eventually("the service is in the catalog", async || {
        Ok(browser.get(&address).await?.body.contains("All files (ZIP)"))
    })
    .await?;
    let page = browser.get(&format!("{address}?language=python")).await?;
    ensure!(page.status == 200 && page.body.len() <= HTML_BYTES_MAX, "{}", page.body.len());
    for alive in ["\u{202e}", "<script>alert"] {
        ensure!(!page.body.contains(alive), "{alive:?} in {}", page.body);
    }
    for language in farthing_sdk::Language::all() {
        // The quickstart is what is looked at first, beside the tree of files.
        let page = browser.get(&format!("{address}?language={language}")).await?;
        for part in
            ["aria-label=\"Files\"", "aria-label=\"README.md\"", "CONSUMER_SECRET", "FARTHING_CA_FILE"]
        {
            ensure!(page.status == 200 && page.body.contains(part), "{language} lacks {part}");
        }
    }
    // Code has its parts told apart.
    let link = page.body.split("href=\"").find(|link| link.contains("client.py")).context("no client.py")?;
    let link = link.split('"').next().unwrap_or_default().replace("&#38;", "&");
    let preview = browser.get(&link).await?;
    ensure!(preview.status == 200 && preview.body.contains("<i class=\"k\">"), "{}", preview.body);
    let single = browser.get(&format!("{address}?language=python&single=1")).await?;
    let file = single.body.split("/sdk/file?").nth(1).context("no file")?;
    let file = file.split('"').next().unwrap_or_default().replace("&#38;", "&");
    let code = browser.get(&format!("{address}/file?{file}")).await?;
    ensure!(code.status == 200 && code.header("content-disposition").starts_with("attachment"), "{code:?}");
    ensure!(code.body.contains("def "), "{code:?}");
    let archive = browser.get(&format!("{address}/archive?language=python")).await?;
    ensure!(archive.status == 200 && archive.header("content-type") == "application/zip", "{archive:?}");
    ensure!(archive.body.starts_with("PK"));
    ensure!(browser.get(&format!("{address}/archive?language=cobol")).await?.status == 400);
    ensure!(browser.get(&format!("{address}/file?language=python&file=../secret")).await?.status == 404);
    ensure!(browser.get("/panel/catalog/nonsense/sdk").await?.status == 404);
    Ok(())
}
