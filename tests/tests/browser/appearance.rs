//! Every page, in both themes, on a desk, a tablet and a phone: accessible, complete, without a complaint.

use std::{fmt::Write as _, path::PathBuf, time::Duration};

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;
use farthing::{
    control::types::{Console, route},
    testnet::{
        NodeProcess,
        demo::{Demo, Setup},
    },
};
use farthing_protocol::Usdc;
use farthing_tests::world::eventually;
use serde_json::json;

use crate::browser::{Browser, Tools};

const PASSWORD: &str = "four random words";
const WIDTHS: [(&str, u32); 3] = [("desk", 1280), ("tablet", 768), ("phone", 360)];

/// Where the pictures go.
fn folder() -> Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let target = exe.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    let folder = target.context("no target folder")?.join("screenshots");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Sets the console up as a person does.
pub async fn set_up(browser: &Browser, node: &NodeProcess) -> Result<()> {
    let console: Console = node.control().get(route::CONSOLE).await?;
    let code = console.setup_code.context("no setup code")?;
    browser.goto("/panel").await?;
    for (field, text) in [("code", code.as_str()), ("password", PASSWORD), ("repeated", PASSWORD)] {
        browser.client.find(Locator::Id(field)).await?.send_keys(text).await?;
    }
    browser.client.find(Locator::Css("button.primary")).await?.click().await?;
    let url = browser.client.current_url().await?;
    ensure!(url.path() == "/panel", "{url}");
    Ok(())
}

/// Chooses a theme by its form, which needs no script.
async fn choose(browser: &Browser, theme: &str) -> Result<()> {
    browser.goto("/panel/help").await?;
    browser.client.find(Locator::Css("details.menu > summary")).await?.click().await?;
    browser.client.find(Locator::Css(&format!("button[value={theme}]"))).await?.click().await?;
    let html = browser.client.find(Locator::Css("html")).await?;
    ensure!(html.attr("data-theme").await?.as_deref() == Some(theme));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_accessible_in_both_themes_and_at_every_width() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let nodes = tempfile::tempdir()?;
    let demo =
        Demo::start(nodes.path(), Setup { gateway_port: 0, panel_port: 0, ..Setup::default() }).await?;
    let console: Console = demo.consumer.control().get(route::CONSOLE).await?;
    let origin = console.url.trim_end_matches("/panel");
    let browser = Browser::open(&tools, origin, true).await?;

    let mut report = Report { wrong: String::new(), folder: folder()? };
    for (size, width) in WIDTHS {
        browser.resize(width, 800).await?;
        browser.goto("/panel/setup").await?;
        report.look(&browser, &format!("setup-{size}")).await?;
    }
    browser.resize(1280, 800).await?;
    set_up(&browser, &demo.consumer).await?;
    buy_some(&demo).await?;

    let (sample, live) = try_some(&browser, &demo).await?;
    let quakes = format!("/panel/catalog/{}", demo.earthquakes.api.id);
    let planets = format!("/panel/catalog/{}", demo.planets.api.id);
    let pages = [
        ("home", "/panel".to_owned()),
        ("catalog", "/panel/catalog".to_owned()),
        ("catalog-nothing", "/panel/catalog?q=submarines&online=1".to_owned()),
        ("service", quakes.clone()),
        ("service-endpoints", format!("{planets}?part=endpoints")),
        ("service-samples", format!("{quakes}?part=samples")),
        ("service-versions", format!("{quakes}?part=versions")),
        ("sandbox", format!("{quakes}/sandbox")),
        ("sandbox-many", format!("{planets}/sandbox")),
        ("sandbox-sample", sample),
        ("sandbox-map", live.clone()),
        ("sandbox-table", format!("{live}&view=table")),
        ("sandbox-pretty", format!("{live}&view=pretty")),
        ("sandbox-timing", format!("{live}&view=timing")),
        ("sandbox-receipt", format!("{live}&view=receipt")),
        ("sdk", format!("{quakes}/sdk")),
        ("activity", "/panel/activity".to_owned()),
        ("network", "/panel/network".to_owned()),
        ("help", "/panel/help".to_owned()),
        ("document", "/panel/help/problems".to_owned()),
        ("password", "/panel/password".to_owned()),
        ("not-found", "/panel/nothing-here".to_owned()),
    ];
    for theme in ["light", "dark"] {
        browser.resize(1280, 800).await?;
        choose(&browser, theme).await?;
        for (size, width) in WIDTHS {
            browser.resize(width, 800).await?;
            for (name, path) in &pages {
                browser.goto(path).await?;
                report.look(&browser, &format!("{name}-{size}-{theme}")).await?;
            }
        }
    }
    ensure!(report.wrong.is_empty(), "{}", report.wrong);
    browser.client.clone().close().await?;
    demo.stop().await
}

/// Calls for the charts and lists.
async fn buy_some(demo: &Demo) -> Result<()> {
    for minimum in 1..5 {
        let call = json!({ "api_id_public": demo.earthquakes.api.id, "method": "GET",
            "path": "/v1/earthquakes/recent", "params": { "minmagnitude": minimum.to_string() } });
        demo.consumer.control().post_raw(route::CALL, &call).await?;
    }
    eventually("the calls are in the figures", async || {
        let figures: farthing::control::types::Figures = demo.consumer.control().get(route::FIGURES).await?;
        Ok(figures.days.iter().any(|day| day.spent.0 > Usdc::ZERO))
    })
    .await
}

/// A free sample and a call in the sandbox, and where their answers are shown.
async fn try_some(browser: &Browser, demo: &Demo) -> Result<(String, String)> {
    let mut shown = Vec::new();
    for button in ["sample", "live"] {
        browser.goto(&format!("/panel/catalog/{}/sandbox", demo.earthquakes.api.id)).await?;
        browser.press(&format!("button[value={button}]")).await?;
        let url = browser.wait_for_address("call=").await?;
        shown.push(format!("{}?{}", url.path(), url.query().context("no query")?));
    }
    Ok((shown.remove(0), shown.remove(0)))
}

/// Everything wrong, so that one run shows it all.
struct Report {
    wrong: String,
    folder: PathBuf,
}

impl Report {
    async fn look(&mut self, browser: &Browser, name: &str) -> Result<()> {
        // Colours fade over; what is judged is where they end.
        tokio::time::sleep(Duration::from_millis(150)).await;
        for violation in browser.violations().await? {
            writeln!(self.wrong, "{name}: {violation}")?;
        }
        for complaint in browser.complaints().await? {
            writeln!(self.wrong, "{name}: {complaint}")?;
        }
        if browser.overflows().await? {
            writeln!(self.wrong, "{name}: something is wider than the window")?;
        }
        std::fs::write(self.folder.join(format!("{name}.png")), browser.picture().await?)?;
        Ok(())
    }
}
