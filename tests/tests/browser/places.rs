//! Every page of the console, by name: what is judged in both themes, at every width and without scripts.

use anyhow::{Result, ensure};
use farthing_tests::console_pages::pages_of_the_source;

/// Before anybody is logged in.
pub const GUESTS: &[(&str, &str)] = &[("setup", "/panel/setup"), ("login", "/panel/login")];

/// Name and address; what stands in braces is filled in by [`crate::site::Site::address`].
pub const PLACES: &[(&str, &str)] = &[
    ("setup-words", "/panel/setup/words"),
    ("setup-words-check", "/panel/setup/words/check"),
    ("setup-fund", "/panel/setup/fund"),
    ("setup-reach", "/panel/setup/reach"),
    ("setup-sample", "/panel/setup/sample?service={earthquakes}"),
    ("home", "/panel"),
    ("catalog", "/panel/catalog"),
    ("catalog-search", "/panel/catalog?q=earthquake&online=1"),
    ("catalog-nothing", "/panel/catalog?q=submarines&online=1"),
    ("service", "/panel/catalog/{earthquakes}"),
    ("service-endpoints", "/panel/catalog/{planets}?part=endpoints"),
    ("service-samples", "/panel/catalog/{earthquakes}?part=samples"),
    ("service-versions", "/panel/catalog/{earthquakes}?part=versions"),
    ("service-own", "/panel/catalog/{own}"),
    ("sandbox", "/panel/catalog/{earthquakes}/sandbox"),
    ("sandbox-many", "/panel/catalog/{planets}/sandbox"),
    ("sandbox-sample", "/panel/catalog/{earthquakes}/sandbox?call={sample}"),
    ("sandbox-map", "/panel/catalog/{earthquakes}/sandbox?call={live}"),
    ("sandbox-table", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=table"),
    ("sandbox-pretty", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=pretty"),
    ("sandbox-headers", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=headers"),
    ("sandbox-timing", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=timing"),
    ("sandbox-receipt", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=receipt"),
    ("sandbox-problem", "/panel/catalog/{earthquakes}/sandbox?call={failed}"),
    ("sdk", "/panel/catalog/{earthquakes}/sdk"),
    ("sdk-single", "/panel/catalog/{planets}/sdk?language=python&single=1"),
    ("apis", "/panel/apis"),
    ("api", "/panel/apis/{own}"),
    ("api-edit", "/panel/apis/{own}/edit"),
    ("api-retire", "/panel/apis/{own}/retire"),
    ("register", "/panel/apis/new"),
    ("register-operations", "/panel/apis/new/{draft}"),
    ("register-details", "/panel/apis/new/{draft}/details"),
    ("register-preview", "/panel/apis/new/{draft}/preview"),
    ("finance", "/panel/finance"),
    ("finance-send", "/panel/finance/send"),
    ("finance-order", "/panel/finance/send/{order}"),
    ("finance-close", "/panel/finance/channels/{channel}/close"),
    ("finance-limits", "/panel/finance/limits"),
    ("finance-history", "/panel/finance/history"),
    ("finance-settlement", "/panel/finance/settlements/1"),
    ("finance-alerts", "/panel/finance/alerts"),
    ("activity", "/panel/activity"),
    ("network", "/panel/network"),
    ("settings", "/panel/settings"),
    ("settings-secret", "/panel/settings/secret"),
    ("settings-rotate", "/panel/settings/secret/rotate"),
    ("settings-secrets", "/panel/settings/secrets"),
    ("settings-named-secret", "/panel/settings/secrets/dashboard"),
    ("settings-backup", "/panel/settings/backup"),
    ("settings-backup-one", "/panel/settings/backup/{backup}"),
    ("settings-phrase", "/panel/settings/phrase"),
    ("settings-phrase-check", "/panel/settings/phrase/check"),
    ("settings-chain", "/panel/settings/chain"),
    ("settings-configuration", "/panel/settings/configuration"),
    ("settings-diagnostics", "/panel/settings/diagnostics"),
    ("help", "/panel/help"),
    ("document", "/panel/help/problems"),
    ("password", "/panel/password"),
];

/// Whether an address is one of a route's.
fn fits(route: &str, address: &str) -> bool {
    let path = address.split('?').next().unwrap_or_default();
    let (mut expected, mut given) = (route.split('/'), path.split('/'));
    loop {
        match (expected.next(), given.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if one == other || one.starts_with('{') && !other.is_empty() => {}
            _ => return false,
        }
    }
}

#[test]
fn no_page_of_the_console_is_left_out_in_a_browser() -> Result<()> {
    let pages = pages_of_the_source()?;
    ensure!(pages.len() > 30, "{pages:?}");
    let forgotten: Vec<&String> = pages
        .iter()
        // An address with a word of its own is no example of one with a name in its place.
        .filter(|page| {
            let own = |address: &str| {
                let closest = pages.iter().filter(|other| fits(other, address));
                closest.min_by_key(|other| other.matches('{').count()) == Some(*page)
            };
            !PLACES.iter().chain(GUESTS).any(|(_, address)| own(address))
        })
        .collect();
    ensure!(forgotten.is_empty(), "add these to PLACES in tests/tests/browser/places.rs: {forgotten:?}");
    Ok(())
}
