//! The pages of the console, as its source lists them, so that tests of every page forget none.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_control::endpoint;
use farthing_testnet::NodeProcess;
use serde_json::Value;

/// Addresses that answer GET with something else than a page.
const NO_PAGES: &[&str] = &[
    "/panel/",
    "/panel/stay",
    "/panel/enter",
    "/panel/catalog/{id}/openapi.json",
    "/panel/catalog/{id}/sandbox/answer",
    "/panel/catalog/{id}/sandbox/preview",
    "/panel/x402/{id}/call/answer",
    "/panel/x402/{id}/call/preview",
    "/panel/catalog/{id}/sdk/file",
    "/panel/catalog/{id}/sdk/archive",
    "/panel/finance/history.csv",
    "/panel/finance/history.json",
    "/panel/events",
];
/// Pages of whom nobody has logged in, which others have no part in.
const GUESTS: [&str; 2] = ["/panel/setup", "/panel/login"];
/// Fewer mean that the source is read wrongly.
const ROUTES_MIN: usize = 35;

/// Returns the addresses that answer a method, `get` or `post`, as the console's source has them.
pub fn routes(method: &str) -> Result<BTreeSet<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/console/src/pages.rs");
    let source = std::fs::read_to_string(file)?;
    let mut routes = BTreeSet::new();
    for route in source.split(".route(").skip(1) {
        let path = route.split('"').nth(1).context("a route without a path")?;
        if route.contains(&format!("{method}(")) {
            routes.insert(path.to_owned());
        }
    }
    ensure!(routes.len() > ROUTES_MIN, "{routes:?}");
    Ok(routes)
}

/// Returns the addresses of the pages that are there once somebody has logged in, some with braces to be filled in.
pub fn pages() -> Result<Vec<String>> {
    let is_page =
        |path: &str| path.starts_with("/panel") && !NO_PAGES.contains(&path) && !GUESTS.contains(&path);
    Ok(routes("get")?.into_iter().filter(|path| is_page(path)).collect())
}

/// Returns the addresses of those pages that have no braces.
pub fn fixed_pages() -> Result<Vec<String>> {
    Ok(pages()?.into_iter().filter(|path| !path.contains('{')).collect())
}

/// Returns everything that a form of the console could have changed.
pub async fn changeable(node: &NodeProcess) -> Result<Vec<Value>> {
    let control = node.control();
    let mut state = vec![
        serde_json::to_value(control.ask(endpoint::Spending).await?)?,
        serde_json::to_value(control.ask(endpoint::Secrets).await?)?,
        serde_json::to_value(control.ask(endpoint::Secret).await?)?,
        serde_json::to_value(control.ask(endpoint::Apis).await?)?,
        serde_json::to_value(control.ask(endpoint::Backups).await?)?,
        serde_json::to_value(control.ask(endpoint::AutomaticBackups).await?)?,
        serde_json::to_value(control.ask(endpoint::AlertLevels).await?)?,
        serde_json::to_value(control.ask(endpoint::ChainSettings).await?)?,
        serde_json::to_value(control.ask(endpoint::WalletBackup).await?)?,
        serde_json::to_value(control.ask(endpoint::Channels).await?)?,
        serde_json::to_value(control.ask(endpoint::SavedRequests).await?)?,
        serde_json::to_value(control.ask(endpoint::Petnames).await?)?,
        serde_json::to_value(control.ask(endpoint::Starred).await?)?,
        serde_json::to_value(control.ask(endpoint::X402Servers).await?)?,
    ];
    for value in &mut state {
        // Its server is looked at now and then.
        for api in value.as_array_mut().into_iter().flatten() {
            api.as_object_mut().and_then(|api| api.remove("health"));
        }
    }
    Ok(state)
}
