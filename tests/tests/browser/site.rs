//! A console with something on every page: bought, sold, settled, begun and refused.

use std::{collections::BTreeMap, path::PathBuf};

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;
use farthing_control::endpoint;
use farthing_control::types::{
    ApprovalRequest, BackupRequest, ChannelRole, Charge, LimitsRequest, NewSavedRequest, NewSecret,
    NewX402Server, RequestFields, SecretLimits, ServiceFile, SourceFile, SourceKind, StarRequest, Text,
};
use farthing_testnet::{
    NodeProcess,
    demo::{Demo, Setup, recent_earthquakes},
};
use farthing_tests::{asks::asks, wait::eventually};
use farthing_values::Usdc;
use serde_json::{Value, json};

use crate::{
    browser::{Browser, Tools},
    tides,
};

pub const PASSWORD: &str = "four random words";
const FUNDS: Usdc = Usdc::from_micros(5_000_000);
const OWN_PRICE: Usdc = Usdc::from_micros(4_000);
/// Below the price of the earthquakes.
const TOO_LITTLE: Usdc = Usdc::from_micros(1_000);

/// Three nodes and a chain; the console looked at is that of the node which buys from both others and sells to one.
pub struct Site {
    pub demo: Demo,
    pub origin: String,
    /// An x402 server's address.
    pub server: String,
    /// What stands in the braces of addresses.
    names: BTreeMap<&'static str, String>,
    folder: tempfile::TempDir,
}

impl Site {
    /// Everything that needs no browser.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let setup = Setup { gateway_port: 0, panel_port: 0, ..Setup::default() };
        let demo = Demo::start(folder.path(), setup).await?;
        let console = demo.consumer.control().ask(endpoint::ShowConsole).await?;
        let origin = console.origin().to_owned();
        let words = format!("Waves and tides. שלום 🪐 {}", "x".repeat(200));
        let server = asks(demo.chain.token, 2_000, &words).await?;
        let mut site = Self { demo, origin, server, names: BTreeMap::new(), folder };
        site.buy_and_sell().await?;
        Ok(site)
    }

    async fn buy_and_sell(&mut self) -> Result<()> {
        let (demo, url) = (&self.demo, tides::start().await?);
        let consumer = demo.consumer.control();
        let own = consumer.tell(endpoint::AddApi, &own_service(&url)).await?;
        for minimum in ["2.5", "4.5", "5"] {
            let mut call = recent_earthquakes(&demo.earthquakes.api);
            call["params"]["minmagnitude"] = minimum.into();
            bought(&demo.consumer, &call).await?;
        }
        let other = &demo.planets;
        demo.chain.fund(other.wallet, FUNDS).await?;
        other.node.wait_for_usdc(FUNDS).await?;
        for harbour in ["ijmuiden", "lowestoft", "esbjerg", "atlantis"] {
            let path = format!("/v1/tides/{harbour}");
            bought(&other.node, &json!({ "api_id_public": own.id, "method": "GET", "path": path })).await?;
        }
        consumer.ask(endpoint::Settle).await?;
        let more = json!({ "api_id_public": own.id, "method": "GET", "path": "/v1/harbours" });
        bought(&other.node, &more).await?;
        let secret = NewSecret {
            name: "dashboard".to_owned(),
            limits: SecretLimits { per_day: Some(Text(FUNDS)), ..SecretLimits::default() },
        };
        consumer.tell(endpoint::CreateSecret, &secret).await?;
        // An agent asks for more than its secret may spend unasked, with text that a stranger could have given it.
        let asked: ApprovalRequest = serde_json::from_value(json!({
            "price": "0.25", "above": "0.001",
            "call": {
                "api_id_public": own.id, "method": "GET", "path": "/v1/tides/ijmuiden",
                "params": { "note": format!("שלום 🪐 {}", "x".repeat(200)) }, "max_price": "1", "call_id": "asked",
            },
        }))?;
        consumer.tell(endpoint::AskApproval.of("dashboard"), &asked).await?;
        consumer
            .tell(endpoint::StarService.of(demo.earthquakes.api.id), &StarRequest { starred: true })
            .await?;
        let saved = self.save_request().await?;
        let new = NewX402Server { url: format!("{}/api", self.server), max_price: Some(Text(OWN_PRICE)) };
        let foreign = consumer.tell(endpoint::AddX402Server, &new).await?.id.to_string();
        let passphrase = BackupRequest { passphrase: PASSWORD.to_owned() };
        let backup = consumer.tell(endpoint::CreateBackup, &passphrase).await?;
        let channels = consumer.ask(endpoint::Channels).await?;
        let channel = channels.iter().find(|channel| channel.role == ChannelRole::Payer);
        let channel = channel.context("no channel")?.id.to_string();
        eventually("the calls are in the figures", async || {
            let figures = consumer.ask(endpoint::Figures).await?;
            Ok(figures.days.iter().any(|day| day.spent.0 > Usdc::ZERO && day.earned.0 > Usdc::ZERO))
        })
        .await?;
        self.names.extend([
            ("earthquakes", demo.earthquakes.api.id.to_string()),
            ("planets", demo.planets.api.id.to_string()),
            ("own", own.id.to_string()),
            ("owner", demo.earthquakes.wallet.to_string()),
            ("channel", channel),
            ("backup", backup.name),
            ("saved", saved),
            ("foreign", foreign),
        ]);
        Ok(())
    }

    /// A saved request with a name as long as any, from both sides and in pictures.
    async fn save_request(&self) -> Result<String> {
        let (consumer, service) = (self.demo.consumer.control(), self.demo.earthquakes.api.id);
        let offers = consumer.ask(endpoint::CatalogService.of(service)).await?.offers;
        let offer = offers.first().context("no operations")?;
        let new = NewSavedRequest {
            name: format!("שלום 🪐 {}", "x".repeat(90)),
            service,
            operation: format!("{} {}", offer.method, offer.path),
            fields: RequestFields::default(),
        };
        Ok(consumer.tell(endpoint::SaveRequest, &new).await?.title.id)
    }

    /// What is kept for a session alone, made through its forms; scripts or none make no difference.
    pub async fn furnish(&mut self, browser: &Browser) -> Result<()> {
        for (name, button) in [("sample", "sample"), ("live", "live")] {
            self.open_sandbox(browser).await?;
            let call = press_in_sandbox(browser, button).await?;
            self.names.insert(name, call);
        }
        let failed = self.refused_call(browser).await?;
        let draft = self.draft(browser).await?;
        let order = order(browser).await?;
        self.names.extend([("failed", failed), ("draft", draft), ("order", order)]);
        Ok(())
    }

    async fn open_sandbox(&self, browser: &Browser) -> Result<()> {
        browser.goto(&self.address("/panel/catalog/{earthquakes}/sandbox")?).await
    }

    /// A call beyond a limit that came after its page: the sandbox offers none beyond a limit that it knows.
    async fn refused_call(&self, browser: &Browser) -> Result<String> {
        let consumer = self.demo.consumer.control();
        self.open_sandbox(browser).await?;
        let little = LimitsRequest { price_max: Some(Text(TOO_LITTLE)), ..LimitsRequest::default() };
        consumer.tell(endpoint::LimitSpending, &little).await?;
        let call = press_in_sandbox(browser, "live").await?;
        let reset = LimitsRequest { reset: true, ..LimitsRequest::default() };
        consumer.tell(endpoint::LimitSpending, &reset).await?;
        Ok(call)
    }

    /// A registration that was not finished.
    async fn draft(&self, browser: &Browser) -> Result<String> {
        let file =
            self.file("birds.json", &tides::document("Bird counts", "http://127.0.0.1:9").to_string())?;
        browser.goto("/panel/apis/new").await?;
        browser.choose_file("file", &file).await?;
        // No page can hold a file until the password is typed, so the form has a field for it.
        ensure!(has(browser, "#console-password").await != browser.scripts, "the field for the password");
        if !browser.scripts {
            browser.fill(&[("console-password", PASSWORD)]).await?;
        }
        browser.press(".sheet > .actions button.primary").await?;
        browser.wait_for("What your node found").await?;
        let draft = browser.client.current_url().await?;
        let draft = draft.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default();
        browser.fill(&[("price", "0.01")]).await?;
        browser.press(".actions button[value=next]").await?;
        confirm_without_scripts(browser).await?;
        browser.wait_for_address("/details").await?;
        browser.press(".sheet > .actions button[value=next]").await?;
        confirm_without_scripts(browser).await?;
        browser.wait_for_address("/preview").await?;
        Ok(draft.to_owned())
    }

    /// Writes a file that a browser can upload.
    pub fn file(&self, name: &str, text: &str) -> Result<PathBuf> {
        let file = self.folder.path().join(name);
        std::fs::write(&file, text)?;
        Ok(file)
    }

    /// An address with its braces filled.
    pub fn address(&self, pattern: &str) -> Result<String> {
        let mut address = pattern.to_owned();
        for (name, value) in &self.names {
            address = address.replace(&format!("{{{name}}}"), value);
        }
        ensure!(!address.contains('{'), "nothing is known for {address}");
        Ok(address)
    }

    pub async fn open(&self, tools: &Tools, scripts: bool) -> Result<Browser> {
        Browser::open(tools, &self.origin, scripts).await
    }
}

/// Types the password that a form needs before the console does what it wants.
pub async fn confirm(browser: &Browser) -> Result<()> {
    browser.wait_for("Enter your password").await?;
    browser.fill(&[("console-password", PASSWORD)]).await?;
    browser.press("main form button.primary").await
}

/// Presses a button of the sandbox that is open, and names its call.
async fn press_in_sandbox(browser: &Browser, button: &str) -> Result<String> {
    browser.press(&format!("button[value={button}]")).await?;
    // A sample costs nothing, and nothing is asked of anybody.
    if button == "live" {
        confirm_without_scripts(browser).await?;
    }
    let url = browser.wait_for_address("call=").await?;
    eventually("the call has ended", async || Ok(!has(browser, "[data-elapsed]").await)).await?;
    let call = url.query_pairs().find(|(name, _)| name == "call");
    Ok(call.context("no call")?.1.into_owned())
}

/// Without scripts there is no key, and every change asks.
async fn confirm_without_scripts(browser: &Browser) -> Result<()> {
    if browser.scripts { Ok(()) } else { confirm(browser).await }
}

/// Sets the console up as a person does.
pub async fn set_up(browser: &Browser, node: &NodeProcess) -> Result<()> {
    let console = node.control().ask(endpoint::ShowConsole).await?;
    let code = console.setup_code.context("no setup code")?;
    browser.goto("/panel").await?;
    browser.wait_for("Set up your node").await?;
    browser.fill(&[("code", &code), ("password", PASSWORD), ("repeated", PASSWORD)]).await?;
    browser.press("button.primary").await?;
    eventually("the password is taken", async || {
        let url = browser.client.current_url().await?;
        let is_in = url.path() == "/panel" || url.path() == "/panel/setup/words";
        // The key went from the address into the storage.
        Ok(is_in && (url.fragment().is_none() || !browser.scripts))
    })
    .await?;
    browser.goto("/panel").await
}

/// Money about to be sent.
async fn order(browser: &Browser) -> Result<String> {
    browser.goto("/panel/finance/send").await?;
    browser.fill(&[("to", "0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf"), ("amount", "1.25")]).await?;
    browser.press("form.narrow button.primary").await?;
    confirm_without_scripts(browser).await?;
    browser.wait_for("You cannot undo this").await?;
    let url = browser.client.current_url().await?;
    let order = url.path_segments().and_then(|mut segments| segments.next_back());
    Ok(order.context("no order")?.to_owned())
}

fn own_service(url: &str) -> ServiceFile {
    ServiceFile {
        name: tides::NAME.to_owned(),
        summary: tides::SUMMARY.to_owned(),
        category: "weather".to_owned(),
        tags: vec!["tides".to_owned(), "sea".to_owned()],
        upstream: url.to_owned(),
        charge: Charge::Success,
        source: Some(SourceFile::given(
            SourceKind::Openapi,
            tides::document(tides::NAME, url).to_string(),
            "tides.json".to_owned(),
        )),
        ..ServiceFile::priced(OWN_PRICE)
    }
}

/// Buys a call as soon as the service is known there.
pub async fn bought(node: &NodeProcess, call: &Value) -> Result<()> {
    eventually("the call is answered by the service", async || {
        let request = serde_json::from_value(call.clone())?;
        let answer = node.control().tell_raw(endpoint::Call, &request).await?;
        Ok(!answer.is_problem())
    })
    .await
}

/// Whether an element is on the page.
pub async fn has(browser: &Browser, selector: &str) -> bool {
    browser.client.find(Locator::Css(selector)).await.is_ok()
}
