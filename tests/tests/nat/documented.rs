//! The table of routers in docs/network.md tells owners what the laboratory plays, line by line.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, ensure};
use farthing_tests::lab::{
    HomeRouter, Place,
    cases::{CASES, CallsGo, Case},
};

/// Lines that begin without a relay: `behind_a_router_that_lets_in_everybody_no_relay_is_needed` and
/// `where_nobody_is_a_relay_owner_and_caller_are_told` play them.
const WITHOUT_A_RELAY: [[&str; 3]; 3] = [
    ["everybody, once a port is open", "lets in answers only", "directly, without a relay"],
    ["everybody, once a port is open", "is symmetric", "directly, without a relay"],
    [
        "answers only, as most routers do",
        "lets in answers only, and no connected node is a relay",
        "nowhere: `farthing net reach` and the call's error say so",
    ],
];

/// A line of the table, with one router of a caller.
fn words(case: &Case) -> Result<[String; 3]> {
    let home = match case.home {
        HomeRouter::FiltersByAddress => "any address your node has sent packets to, from any port",
        HomeRouter::Plain => "answers only, as most routers do",
        HomeRouter::Symmetric => "answers only, and is symmetric",
        HomeRouter::BehindProvider => "answers only, as does the provider's behind it (CGNAT)",
        HomeRouter::FirewallOfIpv6 => "answers only, as a firewall of IPv6",
    };
    let caller = match (case.home, case.from) {
        (HomeRouter::FirewallOfIpv6, Place::BehindPlain) => "is a firewall of IPv6 too",
        (_, Place::Public) => "none",
        (_, Place::BehindPlain) => "lets in answers only",
        (_, Place::BehindSymmetric) => "is symmetric",
        (_, Place::Neighbour) => "is yours too: both nodes are in one LAN",
        (_, place) => anyhow::bail!("no words for a caller at {place:?}: give it some here and in the table"),
    };
    let calls_go = match case.calls_go {
        CallsGo::Directly => "directly",
        CallsGo::ThroughARelay => "through the relay",
    };
    Ok([home, caller, calls_go].map(ToOwned::to_owned))
}

/// The lines of the table, each taken apart at the routers of its callers.
fn told(document: &str) -> Result<BTreeSet<[String; 3]>> {
    let (_, table) = document
        .split_once("| your router lets in | the caller's router | calls go |\n")
        .context("no table")?;
    let mut told = BTreeSet::new();
    for line in table.lines().skip(1).take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [home, callers, calls_go] = cells[..] else { anyhow::bail!("three cells in {line}") };
        for caller in callers.split("; ") {
            let pair = [home, caller, calls_go].map(ToOwned::to_owned);
            ensure!(told.insert(pair), "said twice: {line}");
        }
    }
    Ok(told)
}

#[test]
fn the_document_tells_owners_what_the_laboratory_plays() -> Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/network.md");
    let told = told(&fs::read_to_string(file)?)?;
    let mut played = CASES.iter().map(words).collect::<Result<BTreeSet<_>>>()?;
    played.extend(WITHOUT_A_RELAY.map(|line| line.map(ToOwned::to_owned)));
    let unplayed: Vec<_> = told.difference(&played).collect();
    let untold: Vec<_> = played.difference(&told).collect();
    ensure!(
        unplayed.is_empty() && untold.is_empty(),
        "docs/network.md tells what no test plays: {unplayed:#?}; tests play what it does not tell: {untold:#?}"
    );
    Ok(())
}
