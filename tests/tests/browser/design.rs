//! The page of components: each in both themes, accessible, and no wider than the window.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};

use crate::{appearance::Report, browser::Browser, keyboard::opened};

/// It has the lists of components and of parts of the page.
const LIST: &str = "../node/console/src/pages/design.rs";

/// The names of a list, as the console's source has them: `Type = "type", …;`.
fn listed(source: &str, list: &str) -> Result<Vec<String>> {
    let (_, list) = source.split_once(&format!("enum {list}(")).with_context(|| format!("no {list}"))?;
    let (list, _) = list.split_once("\n    }").context("a list without an end")?;
    let lines = list.lines().filter(|line| line.contains(" = \""));
    Ok(lines.filter_map(|line| line.split('"').nth(1)).map(ToOwned::to_owned).collect())
}

/// The components of the page that is open, as far as each has examples in light and in dark.
async fn shown(browser: &Browser) -> Result<Vec<String>> {
    let ask = "const ground = (theme) => getComputedStyle(theme).backgroundColor;
        return [...document.querySelectorAll('main > section')].filter((one) => {
            const [light, dark] = one.querySelectorAll(':scope > .columns > .specimen');
            return light?.dataset.theme === 'light' && dark?.dataset.theme === 'dark'
                && ground(light) !== ground(dark)
                && [light, dark].every((theme) => theme.children.length > 1 && theme.offsetHeight > 64);
        }).map((one) => one.getAttribute('aria-labelledby'))";
    let found = browser.client.execute(ask, Vec::new()).await?;
    let found = found.as_array().context("no list")?.iter();
    Ok(found.filter_map(serde_json::Value::as_str).map(ToOwned::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_component_is_shown_in_both_themes_accessible_and_within_the_window() -> Result<()> {
    let Some((browser, _node, _, _folder)) = opened().await? else { return Ok(()) };
    let source = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(LIST))?;
    let (components, parts) = (listed(&source, "Component")?, listed(&source, "DesignPart")?);
    ensure!(components.len() > 20 && parts.len() > 1, "{components:?} {parts:?}");
    let (mut report, mut seen) = (Report::new()?, Vec::new());
    for part in &parts {
        browser.goto(&format!("/panel/help/design?part={part}")).await?;
        seen.extend(shown(&browser).await?);
        report.look_at_each(&browser, &format!("design-{part}")).await?;
    }
    ensure!(seen == components, "{seen:?} of {components:?}");
    report.end()?;
    browser.end().await
}
