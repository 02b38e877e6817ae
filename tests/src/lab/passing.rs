//! Bytes that pass at a place, counted by `nft` as its line carries them, headers of IP included. Pure.

use anyhow::{Context, Result};
use serde_json::Value;

/// The bytes that passed since they are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    pub sent: u64,
    pub received: u64,
}

/// What `nft` is asked for them.
pub const ASKED: [&str; 7] = ["nft", "--json", "list", "counters", "table", "inet", "passing"];

/// Rules that count whatever is not the machine's own and neither goes to the port `aside` nor comes from it.
pub fn rules(aside: u16) -> String {
    let chain = |hook: &str, interface: &str, counter: &str| {
        format!(
            "chain {hook} {{ type filter hook {hook} priority 0\n{interface} lo return\n\
             tcp sport {aside} return\ntcp dport {aside} return\ncounter name {counter}\n}}\n"
        )
    };
    let (output, input) = (chain("output", "oifname", "sent"), chain("input", "iifname", "received"));
    format!("table inet passing {{\ncounter sent {{}}\ncounter received {{}}\n{output}{input}}}\n")
}

/// Reads what `nft` told.
pub fn read(told: &str) -> Result<Passed> {
    let told: Value = serde_json::from_str(told).context("nft tells no JSON")?;
    let bytes = |name: &str| {
        let mut counters = told["nftables"].as_array()?.iter().map(|entry| &entry["counter"]);
        counters.find(|counter| counter["name"] == name)?["bytes"].as_u64()
    };
    Ok(Passed {
        sent: bytes("sent").context("nft counts nothing that is sent")?,
        received: bytes("received").context("nft counts nothing that is received")?,
    })
}

#[test]
fn counters_are_read_by_their_names() {
    // As nft 1.0.6 tells them.
    let told = r#"{"nftables": [{"metainfo": {"version": "1.0.6", "json_schema_version": 1}},
        {"counter": {"family": "inet", "name": "received", "table": "passing", "handle": 4, "packets": 2, "bytes": 90}},
        {"counter": {"family": "inet", "name": "sent", "table": "passing", "handle": 3, "packets": 1, "bytes": 40}}]}"#;
    assert_eq!(read(told).unwrap(), Passed { sent: 40, received: 90 });
    assert!(read(r#"{"nftables": []}"#).is_err());
}
