//! `make profile`: which part of the program the processor works for while 64 callers buy, by samples of `perf`.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::{
    counts::interrupt,
    load,
    market::{Market, Way},
};

const CALLERS: usize = 64;
const TIME: Duration = Duration::from_secs(10);
const SAMPLES_PER_SECOND: u32 = 997;
/// The symbols that are printed beside the parts.
const SYMBOLS: usize = 25;

/// Where a symbol belongs, by what its name holds; the first match counts.
const PARTS: [(&str, &[&str]); 14] = [
    ("signatures (secp256k1)", &["secp256k1", "k256"]),
    ("hashes (keccak, sha2, blake2)", &["keccak", "sha2", "sha256", "blake2", "siphash"]),
    (
        "encryption of connections",
        &["chacha", "poly1305", "aes", "gcm", "GFp", "ring_core", "snow", "curve25519"],
    ),
    ("TLS", &["rustls"]),
    (
        "allocator",
        &["malloc", "cfree", "_int_free", "realloc", "calloc", "unlink_chunk", "mi_", "je_", "arena"],
    ),
    ("copying and comparing memory", &["memcpy", "memmove", "memset", "memcmp", "bcmp"]),
    ("ledger (redb)", &["redb"]),
    ("libp2p", &["libp2p", "yamux", "multistream", "unsigned_varint", "netlink", "if_watch"]),
    ("HTTP", &["hyper", "http", "axum", "tower", "httparse", "reqwest"]),
    ("JSON and CBOR", &["serde", "minicbor", "ryu", "itoa"]),
    ("logging and metrics", &["tracing", "prometheus"]),
    ("tokio", &["tokio", "mio", "parking_lot", "futures"]),
    ("farthing", &["farthing"]),
    ("other crates and the standard library", &[""]),
];

/// Samples by process, part and symbol.
#[derive(Default)]
struct Samples {
    by_part: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    by_symbol: BTreeMap<String, u64>,
    total: u64,
}

/// Prints what share of the samples each part has, for both nodes.
pub async fn measure(market: &Market) -> Result<()> {
    let processes = market.processes(Way::Paid);
    let ids: Vec<String> = processes.iter().flat_map(|(_, ids)| ids).map(u32::to_string).collect();
    let folder = farthing_testnet::demo::tempdir()?;
    let file = folder.0.join("perf.data");
    let recording = Command::new("perf")
        .args([
            "record",
            "--quiet",
            "--freq",
            &SAMPLES_PER_SECOND.to_string(),
            "--pid",
            &ids.join(","),
            "--output",
        ])
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .context("perf is not installed, or not to be used by this user")?;
    let load = load::run(market.targets(Way::Paid)?, CALLERS, TIME).await?;
    interrupt(&recording)?;
    let ended = recording.wait_with_output()?;
    ensure!(file.exists(), "perf recorded nothing: {}", ended.status);
    let script = Command::new("perf")
        .args(["script", "--fields", "pid,ip,sym,dso", "--input"])
        .arg(&file)
        .stderr(Stdio::null())
        .output()?;
    let mut samples = Samples::default();
    for line in String::from_utf8_lossy(&script.stdout).lines() {
        samples.add(line, &processes);
    }
    samples.print(&processes, load.calls);
    Ok(())
}

impl Samples {
    /// A line is `pid address symbol (library)`.
    fn add(&mut self, line: &str, processes: &[(&'static str, Vec<u32>)]) {
        let Some((process, rest)) = line.trim().split_once(char::is_whitespace) else { return };
        let process = process.parse::<u32>().ok();
        let Some((name, _)) = processes.iter().find(|(_, ids)| process.is_some_and(|id| ids.contains(&id)))
        else {
            return;
        };
        let Some((_, symbol)) = rest.trim().split_once(' ') else { return };
        let part = if symbol.contains("kernel") || symbol.contains(".ko") || symbol.contains("[k]") {
            "kernel"
        } else {
            part_of(symbol)
        };
        *self.by_part.entry(part).or_default().entry(name).or_default() += 1;
        *self.by_symbol.entry(symbol.to_owned()).or_default() += 1;
        self.total += 1;
    }

    fn print(&self, processes: &[(&'static str, Vec<u32>)], calls: u64) {
        println!(
            "\n{} samples while {CALLERS} callers bought {calls} times; shares in percent of all samples\n",
            self.total
        );
        println!("| part | {} |", processes.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" | "));
        println!("|---|{}", "---:|".repeat(processes.len()));
        let mut parts: Vec<_> = self.by_part.iter().collect();
        parts.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.values().sum::<u64>()));
        for (part, counts) in parts {
            let shares =
                processes.iter().map(|(name, _)| self.share(counts.get(name).copied().unwrap_or_default()));
            println!("| {part} | {} |", shares.collect::<Vec<_>>().join(" | "));
        }
        let mut symbols: Vec<_> = self.by_symbol.iter().collect();
        symbols.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        println!("\nThe symbols with the largest shares:\n");
        for (symbol, count) in symbols.into_iter().take(SYMBOLS) {
            println!("  {:>5}  {symbol}", self.share(*count));
        }
    }

    fn share(&self, count: u64) -> String {
        let per_mille = (count * 1_000).checked_div(self.total).unwrap_or_default();
        format!("{}.{}", per_mille / 10, per_mille % 10)
    }
}

fn part_of(symbol: &str) -> &'static str {
    let found = PARTS.iter().find(|(_, names)| names.iter().any(|name| symbol.contains(name)));
    found.map_or("unknown", |(part, _)| part)
}
