//! A browser without a screen, and what it noticed.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Once,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use fantoccini::{
    Client, ClientBuilder, Locator,
    error::{CmdError, ErrorStatus},
    wd::WebDriverCompatibleCommand,
};
use farthing_tests::{tell::tell, wait::eventually};
use hyper_util::client::legacy::connect::HttpConnector;
use parking_lot::Mutex;
use reqwest::{Method, Url};
use serde_json::{Value, json};

use crate::counted::{asked_by_a_page, is_browsers_own};

/// A page that is not ours; its name leads to this machine.
pub const STRANGER: &str = "stranger.example";

/// In place of the new-tab page, which asks for things on its own.
pub const START_PAGE: &str = "about:blank";

const AXE: &str = "tools/node_modules/axe-core/axe.min.js";
/// Another version may show pages otherwise, so the first test that opens a browser says which one it met.
static TOLD: Once = Once::new();
/// Parts of a page that a screen reader tells by their names, as the browser's accessibility tree calls them.
const NAMED_ROLES: [&str; 15] = [
    "button",
    "checkbox",
    "combobox",
    "DisclosureTriangle",
    "heading",
    "image",
    "link",
    "listbox",
    "navigation",
    "radio",
    "region",
    "searchbox",
    "slider",
    "spinbutton",
    "textbox",
];
/// Fewer parts mean that the tree is read wrongly: the smallest page has a heading and a link.
const NAMED_PARTS_MIN: usize = 2;

/// Ports that chromedriver chooses before it is given up.
const DRIVER_STARTS_MAX: usize = 5;

/// Why a press did not happen.
const NOT_YET: [ErrorStatus; 4] = [
    ErrorStatus::NoSuchElement,
    ErrorStatus::StaleElementReference,
    ErrorStatus::ElementClickIntercepted,
    ErrorStatus::ElementNotInteractable,
];

/// What these tests need besides the node.
pub struct Tools {
    chromium: PathBuf,
    driver: PathBuf,
    axe: String,
}

impl Tools {
    /// `None`, said loudly, when something is not installed.
    ///
    /// # Panics
    /// When something is not installed where tests must not be skipped.
    pub fn find() -> Option<Self> {
        let axe = Path::new(env!("CARGO_MANIFEST_DIR")).join(AXE);
        let (chromium, driver) = (on_path("chromium"), on_path("chromedriver"));
        let missing = match (&chromium, &driver, axe.exists()) {
            (Some(_), Some(_), true) => None,
            (None, ..) => Some("chromium (apt-get install chromium)"),
            (_, None, _) => Some("chromedriver (apt-get install chromium-driver)"),
            (.., false) => Some("axe-core (make tools-deps)"),
        };
        if let Some(missing) = missing {
            assert!(std::env::var_os("CI").is_none(), "{missing} is not installed");
            tell(&format!("\n  SKIPPED: tests in a browser, because there is no {missing}.\n"));
            return None;
        }
        Some(Self { chromium: chromium?, driver: driver?, axe: std::fs::read_to_string(axe).ok()? })
    }
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A window of a browser of its own; both end with it.
pub struct Browser {
    pub client: Client,
    axe: String,
    console: String,
    /// Whether pages run scripts.
    pub scripts: bool,
    /// Requests of pages that nobody has asked for yet.
    asked: Mutex<Vec<String>>,
    driver: Child,
    port: u16,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Opens one that may reach `console`, such as `https://localhost:3002`, and nothing else.
    pub async fn open(tools: &Tools, console: &str, scripts: bool) -> Result<Self> {
        Self::open_with(tools, console, scripts, true).await
    }

    /// `names`: whether it finds names below localhost, as not every browser does.
    pub async fn open_with(tools: &Tools, console: &str, scripts: bool, names: bool) -> Result<Self> {
        let names = if names { ", EXCLUDE *.localhost" } else { "" };
        let (driver, port) = start_driver(&tools.driver)?;
        let profile = tempfile::tempdir()?;
        let args = vec![
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-gpu".to_owned(),
            "--hide-scrollbars".to_owned(),
            "--force-device-scale-factor=1".to_owned(),
            "--disable-quic".to_owned(),
            "--no-first-run".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            format!(
                "--host-resolver-rules=MAP {STRANGER} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, \
                 EXCLUDE 127.0.0.1{names}"
            ),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        let mut preferences = json!({ "session": { "restore_on_startup": 4, "startup_urls": [START_PAGE] } });
        if !scripts {
            preferences["profile"] = json!({ "managed_default_content_settings": { "javascript": 2 } });
        }
        let options = json!({ "binary": tools.chromium, "args": args, "prefs": preferences });
        let capabilities = json!({
            "acceptInsecureCerts": true,
            "goog:chromeOptions": options,
            "goog:loggingPrefs": { "browser": "ALL", "performance": "ALL" },
            // As long as a machine may take that does much else.
            "timeouts": { "script": 120_000, "pageLoad": 300_000 },
        });
        let Value::Object(capabilities) = capabilities else { bail!("no object") };
        let client = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await?;
        let browser = Self {
            client,
            axe: tools.axe.clone(),
            console: console.to_owned(),
            scripts,
            asked: Mutex::default(),
            driver,
            port,
            _profile: profile,
        };
        let named = browser.named()?;
        TOLD.call_once(|| tell(&format!("\n  The tests in a browser met {named}.\n")));
        Ok(browser)
    }

    /// Name and version, as the browser gives them.
    pub fn named(&self) -> Result<String> {
        let told = self.client.capabilities().context("the browser says nothing of itself")?;
        let part = |name: &str| {
            told.get(name).and_then(Value::as_str).with_context(|| format!("no {name}: {told:?}"))
        };
        Ok(format!("{} {}", part("browserName")?, part("browserVersion")?))
    }

    pub async fn goto(&self, path: &str) -> Result<()> {
        self.client.goto(&format!("{}{path}", self.console)).await?;
        Ok(())
    }

    /// Types into the fields with these ids, in place of what stands there.
    pub async fn fill(&self, fields: &[(&str, &str)]) -> Result<()> {
        for (id, text) in fields {
            let field = self.client.find(Locator::Id(id)).await.with_context(|| format!("no field {id}"))?;
            field.clear().await?;
            field.send_keys(text).await?;
        }
        Ok(())
    }

    /// Gives a file to an upload.
    pub async fn choose_file(&self, id: &str, file: &Path) -> Result<()> {
        let field = self.client.find(Locator::Id(id)).await?;
        Ok(field.send_keys(file.to_str().context("no such file")?).await?)
    }

    /// What a person reads on the page.
    pub async fn text(&self) -> Result<String> {
        Ok(self.client.find(Locator::Css("main")).await?.text().await?)
    }

    /// Presses what fits a selector, as soon as it is there and nothing is before it. A page that exchanges its
    /// live parts meanwhile is looked at again; a press that happened is never repeated.
    pub async fn press(&self, selector: &str) -> Result<()> {
        eventually(&format!("{selector} can be pressed"), async || {
            let pressed = match self.client.find(Locator::Css(selector)).await {
                Ok(found) => found.click().await,
                Err(error) => Err(error),
            };
            match pressed {
                Ok(()) => Ok(true),
                Err(CmdError::Standard(error)) if NOT_YET.contains(&error.error) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    /// Waits until the page says something; a page in the middle of being loaded says nothing yet.
    pub async fn wait_for(&self, words: &str) -> Result<()> {
        let what = format!("the page says “{words}”");
        let heard = eventually(&what, async || Ok(self.text().await.is_ok_and(|text| text.contains(words))));
        if let Err(error) = heard.await {
            let url = self.client.current_url().await?;
            bail!("{error}; {url} says: {}", self.text().await.unwrap_or_default());
        }
        Ok(())
    }

    /// Waits until the address has a part.
    pub async fn wait_for_address(&self, part: &str) -> Result<Url> {
        eventually(&format!("the address has {part}"), async || {
            Ok(self.client.current_url().await?.as_str().contains(part))
        })
        .await?;
        Ok(self.client.current_url().await?)
    }

    /// The size of what is seen, whatever the least size of a window is.
    pub async fn resize(&self, width: u32, height: u32) -> Result<()> {
        let metrics =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics).await?;
        Ok(())
    }

    /// What the system prefers: a page without a theme of its own follows it. Nothing moves, so that what is looked
    /// at has ended where it goes.
    pub async fn prefer(&self, theme: &str) -> Result<()> {
        let features = json!([
            { "name": "prefers-color-scheme", "value": theme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": features })).await?;
        Ok(())
    }

    /// The whole page as a picture.
    pub async fn picture(&self) -> Result<Vec<u8>> {
        let height = self.client.execute("return document.documentElement.scrollHeight", Vec::new()).await?;
        let width = self.client.execute("return innerWidth", Vec::new()).await?;
        let (width, height) = (width.as_u64().context("no width")?, height.as_u64().context("no height")?);
        let narrow = u32::try_from(width)?;
        self.resize(narrow, u32::try_from(height.clamp(640, 4_000))?).await?;
        let picture = self.client.screenshot().await?;
        self.resize(narrow, 800).await?;
        Ok(picture)
    }

    /// What axe-core finds wrong with the page.
    pub async fn violations(&self) -> Result<Vec<String>> {
        let here = self.client.execute("return typeof axe === 'object'", Vec::new()).await?;
        if here.as_bool() != Some(true) {
            self.client.execute(&self.axe, Vec::new()).await?;
        }
        let run = "const done = arguments[arguments.length - 1];
            axe.run(document, { resultTypes: ['violations'], iframes: false }).then(
                (result) => done(result.violations.flatMap((violation) => violation.nodes.map((node) =>
                    `${violation.id}: ${violation.help}: ${node.html} ${node.failureSummary}`))),
                (error) => done([String(error)]));";
        let found = self.client.execute_async(run, Vec::new()).await?;
        let found = found.as_array().context("no list")?;
        Ok(found.iter().map(|one| one.as_str().unwrap_or_default().to_owned()).collect())
    }

    /// What a screen reader meets and cannot name: parts of the accessibility tree without a name.
    pub async fn unnamed(&self) -> Result<Vec<String>> {
        let tree = self.devtools("Accessibility.getFullAXTree", json!({})).await?;
        let parts = tree["nodes"].as_array().context("no accessibility tree")?.iter();
        let role = |part: &Value| part["role"]["value"].as_str().unwrap_or_default().to_owned();
        let told = parts
            .filter(|part| part["ignored"] != true && NAMED_ROLES.contains(&role(part).as_str()))
            .collect::<Vec<_>>();
        ensure!(told.len() >= NAMED_PARTS_MIN, "{} parts: {tree}", told.len());
        let has_name =
            |part: &Value| part["name"]["value"].as_str().is_some_and(|name| !name.trim().is_empty());
        let mut unnamed = Vec::new();
        for part in told.into_iter().filter(|part| !has_name(part)) {
            let which = json!({ "backendNodeId": part["backendDOMNodeId"] });
            let node = self.devtools("DOM.describeNode", which).await?;
            unnamed.push(format!(
                "{} {} {}",
                role(part),
                node["node"]["nodeName"],
                node["node"]["attributes"]
            ));
        }
        Ok(unnamed)
    }

    /// What is wider than the window, which on a phone hides it.
    pub async fn overflow(&self) -> Result<Option<String>> {
        let widest = "const root = document.documentElement;
            if (root.scrollWidth <= root.clientWidth) return null;
            const wide = [...document.querySelectorAll('body *')].filter((one) =>
                one.getBoundingClientRect().right > root.clientWidth && !one.closest('.scroll, .tabs, .facets, .places, .prose table, pre'));
            return `${root.scrollWidth} px: ${wide.slice(0, 3).map((one) => one.outerHTML.slice(0, 160)).join(' | ')}`;";
        let found = self.client.execute(widest, Vec::new()).await?;
        Ok(found.as_str().map(ToOwned::to_owned))
    }

    /// What the console of the browser says, violations of the policy among it, and requests to others.
    pub async fn complaints(&self) -> Result<Vec<String>> {
        let said = self.log("browser").await?;
        let mut complaints: Vec<String> = said
            .iter()
            .filter(|entry| entry["level"] != "INFO" && entry["level"] != "DEBUG")
            // A message begins with the address of the page that it is about.
            .filter(|entry| !is_browsers_own(&entry["message"]))
            .map(|entry| format!("{} {}", entry["level"], entry["message"]))
            // What a page was refused is the page's business.
            .filter(|complaint| !complaint.contains("the server responded with a status of"))
            .collect();
        for url in self.requests().await? {
            if !url.starts_with(&self.console) && !url.starts_with("data:") {
                complaints.push(format!("a request to {url}"));
            }
        }
        Ok(complaints)
    }

    /// Closes it at the end of a test in which it complained of nothing.
    pub async fn end(&self) -> Result<()> {
        let complaints = self.complaints().await?;
        ensure!(complaints.is_empty(), "{complaints:?}");
        self.close().await
    }

    pub async fn close(&self) -> Result<()> {
        Ok(self.client.clone().close().await?)
    }

    /// Where the pages under test sent requests since this was asked last.
    pub async fn requests(&self) -> Result<Vec<String>> {
        self.network().await?;
        Ok(std::mem::take(&mut *self.asked.lock()))
    }

    /// The names of the events that pages heard since the network was looked at last.
    pub async fn heard(&self) -> Result<Vec<String>> {
        let events = self.network().await?;
        let heard = events.iter().filter(|event| event["method"] == "Network.eventSourceMessageReceived");
        Ok(heard.filter_map(|event| Some(event["params"]["eventName"].as_str()?.to_owned())).collect())
    }

    /// What happened in the network since this was asked last.
    async fn network(&self) -> Result<Vec<Value>> {
        let mut events = Vec::new();
        for entry in self.log("performance").await? {
            let mut event: Value = serde_json::from_str(entry["message"].as_str().unwrap_or("null"))?;
            events.push(event["message"].take());
        }
        self.asked.lock().extend(events.iter().filter_map(asked_by_a_page));
        Ok(events)
    }

    async fn log(&self, kind: &str) -> Result<Vec<Value>> {
        let log = self.client.issue_cmd(Vendor { path: "se/log", body: json!({ "type": kind }) }).await?;
        Ok(log.as_array().cloned().unwrap_or_default())
    }

    pub async fn devtools(&self, command: &str, params: Value) -> Result<Value> {
        let body = json!({ "cmd": command, "params": params });
        Ok(self.client.issue_cmd(Vendor { path: "goog/cdp/execute", body }).await?)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A driver that is killed leaves its browser behind; one that is asked ends both.
        let asked = TcpStream::connect(("127.0.0.1", self.port)).and_then(|mut stream| {
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            stream.write_all(b"GET /shutdown HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
            stream.read_to_end(&mut Vec::new())
        });
        if asked.is_err() {
            let _ = self.driver.kill();
        }
        let _ = self.driver.wait();
    }
}

/// Starts the driver on a port that it chooses. It takes one of IPv4 and wants the same of IPv6, and ends where a
/// stranger has that; then it chooses anew.
fn start_driver(program: &Path) -> Result<(Child, u16)> {
    for _ in 0..DRIVER_STARTS_MAX {
        let mut driver =
            Command::new(program).arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let mut lines = BufReader::new(driver.stdout.take().context("no output")?).lines();
        let started =
            lines.by_ref().map_while(Result::ok).find(|line| line.contains("started successfully on port"));
        let port = started.and_then(|line| {
            line.split(|c: char| !c.is_ascii_digit())
                .filter_map(|word| word.parse().ok())
                .rfind(|port| *port > 1_023)
        });
        // What it says later must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        if let Some(port) = port {
            return Ok((driver, port));
        }
        let _ = driver.kill();
        driver.wait()?;
    }
    bail!("chromedriver did not say where it listens")
}

/// A command of chromedriver's own.
#[derive(Debug)]
struct Vendor {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Vendor {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, <Url as std::str::FromStr>::Err> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}
