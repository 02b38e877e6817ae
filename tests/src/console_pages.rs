//! The pages of the console, as its source lists them: what tests of every page compare their lists with.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, Result};

/// Addresses that answer GET with something else than a page.
const NO_PAGES: &[&str] = &[
    "/panel/",
    "/panel/stay",
    "/panel/enter",
    "/panel/catalog/{id}/openapi.json",
    "/panel/catalog/{id}/sandbox/answer",
    "/panel/catalog/{id}/sdk/file",
    "/panel/catalog/{id}/sdk/archive",
    "/panel/finance/history.csv",
    "/panel/finance/history.json",
    "/panel/events",
];

/// Returns the addresses of pages.
///
/// # Errors
/// The source cannot be read, or has a route without a path.
pub fn pages_of_the_source() -> Result<BTreeSet<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../node/console/src/pages.rs");
    let source = std::fs::read_to_string(file)?;
    let mut pages = BTreeSet::new();
    for route in source.split(".route(").skip(1) {
        let path = route.split('"').nth(1).context("a route without a path")?;
        if route.contains("get(") && path.starts_with("/panel") && !NO_PAGES.contains(&path) {
            pages.insert(path.to_owned());
        }
    }
    Ok(pages)
}
