//! Every page, in both themes, on a desk, a tablet and a phone: accessible, complete, without a complaint. And zoomed to 200 % and
//! 400 %, without a part beside the window.
//!
//! Where `PICTURES` is set, pictures go to `screenshots` in the target folder, for people to look at.

use std::{env, fmt::Write as _, fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use fantoccini::Locator;
use farthing_tests::wait::eventually;

use crate::{
    browser::{Browser, Tools},
    keyboard::opened,
    places::places,
    site::{PASSWORD, Site, confirm, has, set_up},
    tides,
};

const THEMES: [&str; 2] = ["light", "dark"];
/// Names, and widths in pixels.
const WIDTHS: [(&str, u32); 3] = [("desk", 1440), ("tablet", 768), ("phone", 390)];
/// A small desk, at 100, 200 and 400 %, and a small phone. A zoomed page is laid out as a narrow one.
const OTHER_WIDTHS: [u32; 4] = [1280, 640, 360, 320];
const HEIGHT: u32 = 800;

#[tokio::test(flavor = "multi_thread")]
async fn every_page_is_accessible_in_both_themes_and_at_every_width() -> Result<()> {
    let Some(tools) = Tools::find() else { return Ok(()) };
    let mut site = Site::start().await?;
    let browser = site.open(&tools, true).await?;
    let mut report = Report::new()?;

    browser.goto("/panel/setup").await?;
    report.look(&browser, "setup").await?;
    browser.fill(&[("code", "AAAA-AAAA-AAAA"), ("password", PASSWORD), ("repeated", PASSWORD)]).await?;
    browser.press("button.primary").await?;
    browser.wait_for("Wrong setup code").await?;
    report.look(&browser, "setup-mistake").await?;
    set_up(&browser, &site.demo.consumer).await?;
    site.furnish(&browser).await?;
    for (name, place) in &places()? {
        browser.goto(&site.address(place)?).await?;
        report.look(&browser, name).await?;
    }
    test_request(&browser, &site).await?;
    report.look(&browser, "register-tried").await?;
    x402_server(&browser, &site, &mut report).await?;
    mistakes_and_warnings(&browser, &mut report).await?;

    browser.client.delete_all_cookies().await?;
    browser.goto("/panel/login").await?;
    report.look(&browser, "login").await?;
    browser.fill(&[("password", "a wrong password")]).await?;
    browser.press("button.primary").await?;
    eventually("the mistake is told", async || Ok(has(&browser, ".problem").await)).await?;
    report.look(&browser, "login-mistake").await?;

    report.end()?;
    browser.close().await?;
    farthing_tests::agreement::end(site.demo).await
}

/// A test request from a draft, answered with one long line.
async fn test_request(browser: &Browser, site: &Site) -> Result<()> {
    let server = tides::start().await?;
    let file = site.file("tried.json", &tides::document("Tides", &server).to_string())?;
    browser.goto("/panel/apis/new").await?;
    browser.choose_file("file", &file).await?;
    browser.press(".sheet > .actions button.primary").await?;
    browser.wait_for("What your node found").await?;
    browser.fill(&[("price", "0.01")]).await?;
    browser.press(".actions button[value=next]").await?;
    browser.wait_for_address("/details").await?;
    browser.press(".sheet details:has(#operation) > summary").await?;
    browser.press("button[value=try]").await?;
    browser.wait_for("the server answers").await
}

/// A server that does not answer, and one before it is added: both are answers to a form.
async fn x402_server(browser: &Browser, site: &Site, report: &mut Report) -> Result<()> {
    browser.goto("/panel/x402").await?;
    for (url, told, page) in [
        ("http://127.0.0.1:9", "Nothing was added.", "x402-mistake"),
        (site.server.as_str(), "Add this x402 server?", "x402-add"),
    ] {
        browser.fill(&[("url", url), ("max_price", "0.01")]).await?;
        browser.press("form[action='/panel/x402'] button.primary").await?;
        browser.wait_for(told).await?;
        report.look(browser, page).await?;
    }
    Ok(())
}

/// What is seen only when something is wrong.
async fn mistakes_and_warnings(browser: &Browser, report: &mut Report) -> Result<()> {
    browser.goto("/panel/nothing-here").await?;
    report.look(browser, "not-found").await?;
    browser.goto("/panel/setup/words").await?;
    browser.fill(&[("console-password", PASSWORD)]).await?;
    browser.press("button.primary").await?;
    browser.wait_for("I wrote them down").await?;
    report.look(browser, "setup-words-shown").await?;
    browser.goto("/panel/settings/phrase").await?;
    browser.fill(&[("console-password", PASSWORD)]).await?;
    browser.press("main button.danger").await?;
    browser.wait_for("Write them down").await?;
    report.look(browser, "settings-phrase-shown").await?;
    browser.goto("/panel/settings/secrets/dashboard").await?;
    browser.press("form[action$='/show'] button").await?;
    browser.wait_for("Enter your password").await?;
    report.look(browser, "password-first").await?;
    browser.fill(&[("console-password", "a wrong password")]).await?;
    browser.press("main form button.primary").await?;
    browser.wait_for("Wrong password").await?;
    report.look(browser, "password-first-mistake").await?;
    confirm(browser).await?;
    browser.wait_for("farthing_sk_").await?;
    report.look(browser, "settings-named-secret-shown").await?;
    browser.goto("/panel/apis/new").await?;
    browser.fill(&[("url", "http://127.0.0.1:9")]).await?;
    browser.press(".sheet > .actions button.primary").await?;
    eventually("the mistake is told", async || Ok(has(browser, "#result").await)).await?;
    report.look(browser, "register-mistake").await?;
    browser.goto("/panel/finance/send").await?;
    browser.fill(&[("to", "0x12"), ("amount", "1")]).await?;
    browser.press("form.narrow button.primary").await?;
    browser.wait_for("Nothing was sent").await?;
    report.look(browser, "finance-send-mistake").await?;
    browser.goto("/panel/finance/alerts").await?;
    browser.fill(&[("usdc_below", "1000"), ("webhook", "http://127.0.0.1:9/told")]).await?;
    browser.press("form.narrow button.primary").await?;
    // The machine may be so slow that the password was entered too long ago.
    eventually("the change is made or asks", async || {
        let text = browser.text().await.unwrap_or_default();
        Ok(text.contains("Enter your password") || text.contains("http://127.0.0.1:9"))
    })
    .await?;
    if browser.text().await?.contains("Enter your password") {
        confirm(browser).await?;
    }
    browser.wait_for("http://127.0.0.1:9").await?;
    browser.goto("/panel/finance").await?;
    browser.press("form[action='/panel/finance/stop'] button").await?;
    browser.wait_for("All spending is stopped").await?;
    report.look(browser, "finance-limits-stopped").await?;
    for (name, place) in [("home-stopped", "/panel"), ("finance-alerts-some", "/panel/finance/alerts")] {
        browser.goto(place).await?;
        report.look(browser, name).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_theme_that_was_chosen_is_stronger_than_the_systems() -> Result<()> {
    let Some((browser, _node, _, _folder)) = opened().await? else { return Ok(()) };
    let ground = "return getComputedStyle(document.body).backgroundColor";
    let mut grounds = Vec::new();
    for system in THEMES {
        browser.prefer(system).await?;
        for theme in ["light", "dark", "system"] {
            choose(&browser, theme).await?;
            let colour = browser.client.execute(ground, Vec::new()).await?;
            grounds.push(colour.as_str().unwrap_or_default().to_owned());
        }
    }
    let (light, dark) = (grounds[0].clone(), grounds[1].clone());
    ensure!(light != dark, "{grounds:?}");
    let expected = [&light, &dark, &light, &light, &dark, &dark];
    ensure!(grounds.iter().eq(expected), "{grounds:?}");
    browser.close().await
}

/// Chooses a theme by its form, which needs no script.
async fn choose(browser: &Browser, theme: &str) -> Result<()> {
    browser.goto("/panel/help").await?;
    browser.press("details.menu > summary").await?;
    browser.press(&format!(".menu button[value={theme}]")).await?;
    eventually("the theme is chosen", async || {
        // While a page is exchanged for the next there may be none.
        let Ok(html) = browser.client.find(Locator::Css("html")).await else { return Ok(false) };
        Ok(html.attr("data-theme").await.is_ok_and(|chosen| chosen.as_deref() == Some(theme)))
    })
    .await
}

/// Everything wrong, so that one run shows it all.
pub struct Report {
    wrong: String,
    /// The folder for pictures, which take long and are judged by nobody but who asks for them.
    pictures: Option<PathBuf>,
}

impl Report {
    pub fn new() -> Result<Self> {
        let pictures = env::var_os("PICTURES").map(|_| screenshots()).transpose()?;
        Ok(Self { wrong: String::new(), pictures })
    }

    pub fn end(&self) -> Result<()> {
        ensure!(self.wrong.is_empty(), "{}", self.wrong);
        Ok(())
    }

    /// Judges the page that is open, in both themes and at every width.
    pub async fn look(&mut self, browser: &Browser, page: &str) -> Result<()> {
        for width in OTHER_WIDTHS {
            browser.resize(width, HEIGHT).await?;
            if let Some(widest) = browser.overflow().await? {
                writeln!(self.wrong, "{page}: wider than a window of {width} px: {widest}")?;
            }
        }
        self.look_at_each(browser, page).await
    }

    /// The same at three widths alone.
    pub async fn look_at_each(&mut self, browser: &Browser, page: &str) -> Result<()> {
        for theme in THEMES {
            browser.prefer(theme).await?;
            for (size, width) in WIDTHS {
                browser.resize(width, HEIGHT).await?;
                let name = format!("{page}-{size}-{theme}");
                for violation in browser.violations().await? {
                    writeln!(self.wrong, "{name}: {violation}")?;
                }
                if let Some(widest) = browser.overflow().await? {
                    writeln!(self.wrong, "{name}: wider than the window: {widest}")?;
                }
                // No theme gives or takes a name.
                let unnamed = if theme == THEMES[0] { browser.unnamed().await? } else { Vec::new() };
                for part in unnamed {
                    writeln!(self.wrong, "{name}: a screen reader has no name for {part}")?;
                }
                if let Some(folder) = &self.pictures {
                    fs::write(folder.join(format!("{name}.png")), browser.picture().await?)?;
                }
            }
        }
        for complaint in browser.complaints().await? {
            writeln!(self.wrong, "{page}: {complaint}")?;
        }
        // Buttons are pressed where a desk has them.
        browser.resize(1280, HEIGHT).await
    }
}

/// The folder for pictures, beside those of the profiles, in whatever folder is built into.
fn screenshots() -> Result<PathBuf> {
    let exe = env::current_exe()?;
    // Below it are the profile and `deps`.
    let folder = exe.ancestors().nth(3).context("no target folder")?.join("screenshots");
    fs::create_dir_all(&folder)?;
    Ok(folder)
}
