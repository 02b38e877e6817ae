//! Every page of the console, by name: what is judged in both themes, at every width and without scripts.

use anyhow::Result;
use farthing_tests::console_pages::pages;

/// Examples for the braces of routes. What stands in braces behind them is filled in by [`crate::site::Site::address`],
/// which says so when there is no example.
const EXAMPLES: [(&str, &str); 10] = [
    ("/panel/activity/{key}", "/panel/activity/bought-{live}"),
    ("/panel/catalog/{id}", "/panel/catalog/{earthquakes}"),
    ("/panel/owners/{wallet}", "/panel/owners/{owner}"),
    ("/panel/apis/{id}", "/panel/apis/{own}"),
    ("/panel/x402/{id}", "/panel/x402/{foreign}"),
    ("/panel/finance/channels/{id}", "/panel/finance/channels/{channel}"),
    ("/panel/finance/settlements/{id}", "/panel/finance/settlements/1"),
    ("/panel/settings/secrets/{name}", "/panel/settings/secrets/dashboard"),
    ("/panel/settings/backup/{name}", "/panel/settings/backup/{backup}"),
    ("/panel/help/{name}", "/panel/help/problems"),
];
/// What a page shows in other cases, by name and address.
const VIEWS: [(&str, &str); 27] = [
    ("home-hour", "/panel?range=hour"),
    ("home-day", "/panel?range=day"),
    ("api-year", "/panel/apis/{own}?range=year"),
    ("setup-call-tried", "/panel/setup/call?service={earthquakes}"),
    ("activity-refused", "/panel/activity?outcome=refused"),
    ("activity-verified", "/panel/activity/bought-{live}?verify=1"),
    ("catalog-search", "/panel/catalog?q=earthquake&online=1"),
    ("catalog-nothing", "/panel/catalog?q=submarines&online=1"),
    ("reference-many", "/panel/catalog/{planets}/reference"),
    ("reference-search", "/panel/catalog/{planets}/reference?q=planets&language=python"),
    ("service-samples", "/panel/catalog/{earthquakes}?part=samples"),
    ("service-versions", "/panel/catalog/{earthquakes}?part=versions"),
    ("sandbox-sample", "/panel/catalog/{earthquakes}/sandbox?call={sample}"),
    ("sandbox-map", "/panel/catalog/{earthquakes}/sandbox?call={live}"),
    ("sandbox-table", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=table"),
    ("sandbox-chart", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=chart"),
    ("sandbox-tree", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=tree"),
    ("sandbox-headers", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=headers"),
    ("sandbox-timing", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=timing"),
    ("sandbox-receipt", "/panel/catalog/{earthquakes}/sandbox?call={live}&view=receipt"),
    ("sandbox-saved", "/panel/catalog/{earthquakes}/sandbox?saved={saved}"),
    ("sandbox-problem", "/panel/catalog/{earthquakes}/sandbox?call={failed}"),
    ("sdk-single", "/panel/catalog/{planets}/sdk?language=python&single=1"),
    ("service-own", "/panel/catalog/{own}"),
    ("help-search", "/panel/help?q=channel"),
    ("finance-history-by-service", "/panel/finance/history?group=service"),
    ("sandbox-many", "/panel/catalog/{planets}/sandbox"),
];

/// Returns name and address of each page, and of its views.
pub fn places() -> Result<Vec<(String, String)>> {
    let own = pages()?.into_iter().map(|route| {
        let example = EXAMPLES.iter().find(|(pattern, _)| route.starts_with(pattern));
        let address =
            example.map_or_else(|| route.clone(), |(pattern, filled)| route.replacen(pattern, filled, 1));
        (
            route.replace("/panel/", "").replace("/panel", "home").replace(['{', '}'], "").replace('/', "-"),
            address,
        )
    });
    let views = VIEWS.iter().map(|(name, address)| ((*name).to_owned(), (*address).to_owned()));
    Ok(own.chain(views).collect())
}
