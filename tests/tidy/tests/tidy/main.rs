//! The promises of ARCHITECTURE.md that a compiler does not check: directions, purity, size, and documents that name files which exist.
//!
//! Directions between packages come from `cargo metadata`, others from the source text (`source.rs`). A failure lists every breach.

mod adapters;
mod clocks;
mod dangers;
mod failures;
mod features;
mod links;
mod modules;
mod mutants;
mod pinned;
mod sizes;
mod source;
mod suites;
mod texts;
mod truth;
mod walk;
mod watched;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use source::{SourceFile, repository, source_files};

const PURE: [&str; 4] = ["farthing-values", "farthing-protocol", "farthing-bridge", "farthing-sdk"];
/// A part of the network that decides: as pure, and used by nobody but the network and its tests.
const DIRECTORY: &str = "farthing-directory";
/// What x402 clients and an owner say to each other: as pure.
const X402: &str = "farthing-x402";
const ADAPTERS: [&str; 4] = ["farthing-network", "farthing-ledger", "farthing-chain", "farthing-catalog"];

/// The layers of `node/src`, lowest first. A module may use its own layer and those below.
const LAYERS: [(&str, &[&str]); 3] = [
    ("foundation", &["secret"]),
    (
        "use case",
        &[
            "agent_calls",
            "alerts",
            "approvals",
            "backup",
            "consumer",
            "deployment",
            "escrows",
            "foreign",
            "history",
            "petnames",
            "saved",
            "secrets",
            "settlement",
            "starred",
            "status",
            "testing",
            "transfers",
        ],
    ),
    ("composition", &["chain_spec", "handles", "home", "journal", "lib", "node"]),
];
/// The half that buys, and the package of the half that sells: each could run without the other.
const APART: (&str, &str) = ("consumer", "farthing_owner");

/// A longer file holds a second idea.
const LINES_MAX: usize = 500;
/// Files that may be longer, each with its reason.
const LONG_FILES: [(&str, &str); 0] = [];

#[test]
fn packages_depend_only_in_the_direction_of_the_architecture() {
    let control = ["farthing-values", "farthing-bridge", "farthing-sdk", "farthing-os"];
    let edges = ["farthing-bounds", "farthing-os", "farthing-control", "farthing-serve"];
    let parts = [
        "farthing-config",
        "farthing-discovery",
        "farthing-owner",
        "farthing-shared",
        "farthing-wallet",
        X402,
    ];
    let node = [&PURE[..], &ADAPTERS[..], &edges[..], &parts].concat();
    let rooms = [
        "farthing-commands",
        "farthing-console",
        "farthing-gateway",
        "farthing-mcp",
        "farthing-node",
        "farthing-testnet",
    ];
    let driven = [
        "farthing-chain",
        "farthing-control",
        "farthing-demo-services",
        "farthing-serve",
        "farthing-testnet",
    ];
    let readers = [
        "farthing-bridge",
        "farthing-chain",
        "farthing-gateway",
        "farthing-mcp",
        "farthing-node",
        "farthing-os",
        "farthing-protocol",
        DIRECTORY,
        X402,
    ];
    let allowed: BTreeMap<&str, Vec<&str>> = [
        ("farthing-values", vec![]),
        ("farthing-protocol", vec!["farthing-values"]),
        ("farthing-bridge", vec![]),
        ("farthing-sdk", vec!["farthing-bridge"]),
        ("farthing-anvil", vec![]),
        ("farthing-contracts", vec![]),
        ("farthing-bounds", vec![]),
        (DIRECTORY, vec![]),
        ("farthing-network", vec!["farthing-protocol", "farthing-bounds", DIRECTORY, "farthing-os"]),
        ("farthing-ledger", vec!["farthing-values", "farthing-os"]),
        ("farthing-chain", vec!["farthing-values", "farthing-bounds", "farthing-contracts", "farthing-os"]),
        ("farthing-catalog", vec!["farthing-protocol"]),
        (X402, vec!["farthing-values"]),
        ("farthing-os", vec![]),
        ("farthing-control", control.to_vec()),
        ("farthing-config", vec!["farthing-bounds", "farthing-control", "farthing-os", "farthing-values"]),
        ("farthing-wallet", vec!["farthing-os", "farthing-values"]),
        ("farthing-serve", vec!["farthing-bounds", "farthing-os"]),
        // Nothing of it writes, and of the chain it reads what a handle has in memory.
        ("farthing-shared", vec!["farthing-bounds", "farthing-chain", "farthing-values"]),
        // The network's listings; of the ledger it knows what was bought before, and no channel.
        (
            "farthing-discovery",
            [
                &control[..],
                &["farthing-bounds", "farthing-catalog", "farthing-control", "farthing-ledger"],
                &["farthing-network", "farthing-protocol", "farthing-shared"],
            ]
            .concat(),
        ),
        // The half that sells: it knows nothing of the half that buys, nor of the node that both are in.
        (
            "farthing-owner",
            [
                &edges[..],
                &["farthing-bridge", "farthing-chain", "farthing-discovery", "farthing-ledger"],
                &["farthing-network", "farthing-protocol", "farthing-shared", "farthing-wallet", X402],
            ]
            .concat(),
        ),
        // It asks the node through the contract alone.
        ("farthing-console", [&edges[..], &["farthing-values", "farthing-bridge", "farthing-sdk"]].concat()),
        // As the console: it asks the node through the contract alone.
        ("farthing-mcp", vec!["farthing-control", "farthing-values", "farthing-bridge"]),
        ("farthing-node", node.clone()),
        // Its tests make the errors of every adapter; what serves names none, as a test below sees.
        ("farthing-gateway", [&node[..], &["farthing-node"]].concat()),
        ("farthing-commands", [&node[..], &["farthing-gateway", "farthing-node"]].concat()),
        ("farthing-testnet", [&edges[..], &["farthing-anvil", "farthing-chain", "farthing-values"]].concat()),
        ("farthing", [&node[..], &rooms[..]].concat()),
        ("farthing-demo-services", vec![]),
        // Nodes are processes to them; what plays a part of one is farthing-peers.
        ("farthing-tests", [&control[..], &driven[..]].concat()),
        ("farthing-contract-tests", vec!["farthing-anvil", "farthing-contracts", "farthing-values"]),
        // It has the contracts as types and their rules; its tests run the node's chain over it.
        ("farthing-played-chain", vec!["farthing-chain", "farthing-contract-tests", "farthing-values"]),
        // It calls what reads strangers' bytes, and runs no node.
        ("farthing-fuzz", readers.to_vec()),
        // It compiles files of the node a second time, and none of its packages.
        ("farthing-models", vec!["farthing-protocol", "farthing-values"]),
        ("farthing-tidy", vec![]),
        // It compiles without the node, in seconds.
        ("farthing-simulation", vec![DIRECTORY]),
        (
            "farthing-peers",
            [
                &node[..],
                &["farthing-gateway", "farthing-node", "farthing-simulation", "farthing-testnet"],
                &["farthing-tests"],
            ]
            .concat(),
        ),
    ]
    .into();
    let packages = packages();
    assert_eq!(
        packages.iter().map(|package| package.name.as_str()).collect::<BTreeSet<_>>(),
        allowed.keys().copied().collect(),
        "every package has its place in this table and in ARCHITECTURE.md"
    );
    let mut breaches = Breaches::default();
    for package in &packages {
        for dependency in package.dependencies.iter().filter(|name| name.starts_with("farthing")) {
            let known = &allowed[package.name.as_str()];
            // A package's tests may use the harness of farthing-tests, a local chain, and one that is played.
            let harness = ["farthing-tests", "farthing-testnet", "farthing-played-chain"];
            let by_its_tests_only =
                harness.contains(&dependency.as_str()) && package.only_tests_use(dependency);
            if !known.contains(&dependency.as_str()) && !by_its_tests_only {
                breaches.add(&package.name, format!("depends on {dependency}; it may depend on {known:?}"));
            }
        }
    }
    breaches.none();
}

#[test]
fn the_map_names_every_package_and_the_folder_that_it_lies_in() {
    let map = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    // | `node/chain/` | `farthing-chain` | what it is |
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split("` | `");
        let (folder, rest) = (cells.next()?, cells.next()?);
        let name = rest.split('`').next().filter(|name| name.starts_with("farthing"))?;
        Some((name.to_owned(), folder.trim_end_matches('/').to_owned()))
    };
    let named: BTreeMap<String, String> = map.lines().filter_map(row).collect();
    let folder = |package: &Package| {
        let folder = Path::new(&package.manifest).parent().unwrap();
        folder.strip_prefix(repository()).unwrap().display().to_string()
    };
    let there: BTreeMap<String, String> =
        packages().iter().map(|package| (package.name.clone(), folder(package))).collect();
    assert_eq!(named, there);
}

#[test]
fn pure_crates_know_no_runtime_no_sockets_no_files_and_no_clock() {
    const RUNTIMES: [&str; 12] = [
        "alloy",
        "axum",
        "fs4",
        "futures",
        "hyper",
        "libp2p",
        "redb",
        "reqwest",
        "rustls",
        "tokio",
        "tokio-util",
        "tracing",
    ];
    const STD: [&str; 5] = ["env", "fs", "net", "process", "thread"];
    let mut breaches = Breaches::default();
    let pure = [&PURE[..], &[DIRECTORY, X402]].concat();
    for package in packages().iter().filter(|package| pure.contains(&package.name.as_str())) {
        for name in package.normal_dependencies.iter().filter(|name| RUNTIMES.contains(&name.as_str())) {
            breaches.add(&package.name, format!("depends on {name}; pure code decides, adapters act"));
        }
        for file in source_files(&package.source()) {
            for module in file.uses("std").iter().filter(|module| STD.contains(&module.as_str())) {
                breaches
                    .add(&file.path, format!("uses std::{module}; take the value as an argument instead"));
            }
            for clock in ["SystemTime", "Instant"].iter().filter(|clock| file.has_word(clock)) {
                breaches.add(&file.path, format!("reads {clock}; take the time as an argument instead"));
            }
        }
    }
    breaches.none();
}

#[test]
fn the_protocol_has_no_floating_point() {
    let mut breaches = Breaches::default();
    let folders = ["protocol/src", "protocol/values/src"].map(|folder| repository().join(folder));
    for file in folders.iter().flat_map(|folder| source_files(folder)) {
        for float in ["f32", "f64"].iter().filter(|float| file.has_word(float)) {
            breaches
                .add(&file.path, format!("uses {float}; money is whole micros, and ratios are integers too"));
        }
    }
    breaches.none();
}

#[test]
fn imports_inside_the_node_go_down_only() {
    let mut breaches = Breaches::default();
    for file in source_files(&repository().join("node/src")) {
        let module = file.top_module();
        let Some(own) = layer(module) else {
            breaches.add(
                &file.path,
                format!("`{module}` has no layer; give it one in tests/tidy/tests/tidy/main.rs"),
            );
            continue;
        };
        let used: BTreeSet<String> =
            file.paths().into_iter().filter_map(|path| path.into_iter().next()).collect();
        for used in used {
            let Some(theirs) = layer(&used) else { continue };
            if theirs > own {
                let (own, theirs) = (LAYERS[own].0, LAYERS[theirs].0);
                breaches.add(
                    &file.path,
                    format!("is of the {own} layer and uses `{used}` of the {theirs} layer above"),
                );
            }
        }
        let (half, other) = APART;
        if module == half && file.has_word(other) {
            breaches.add(&file.path, format!("uses `{other}`; the two must work without each other"));
        }
        if file.has_text("super::super") {
            breaches.add(&file.path, "climbs with super::super; write the path from `crate`");
        }
    }
    breaches.none();
}

#[test]
fn no_two_types_of_a_crate_share_a_name() {
    // What tests share is many small worlds in one package; in another one, everything has the name of what it stands for.
    const SMALL_WORLDS: [&str; 3] = ["farthing-tests", "farthing-peers", "farthing-models"];
    let mut breaches = Breaches::default();
    for package in packages().iter().filter(|package| !SMALL_WORLDS.contains(&package.name.as_str())) {
        let mut places: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        let files = source_files(&package.source());
        for file in files.iter().filter(|file| !file.is_test()) {
            // Each program is a crate of its own.
            let program = file.path.split_once("/src/bin/").map_or("", |(_, program)| program);
            let program = program.split(['/', '.']).next().unwrap_or(program);
            for name in file.types() {
                places.entry((program, name)).or_default().push(&file.path);
            }
        }
        for ((_, name), places) in places.iter().filter(|(_, places)| places.len() > 1) {
            breaches.add(&package.name, format!("has several types `{name}`: {}", places.join(", ")));
        }
    }
    breaches.none();
}

/// | catalog | what it means | `Shelf`, other words |
#[test]
fn no_type_and_no_module_is_called_by_a_word_that_the_glossary_turns_away() {
    let glossary = std::fs::read_to_string(repository().join("GLOSSARY.md")).unwrap();
    let last_cells = glossary.lines().filter_map(|row| row.strip_prefix("| ")?.split(" | ").nth(2));
    let turned_away: BTreeSet<&str> =
        last_cells.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(turned_away.len() >= 10, "{turned_away:?}");
    let mut breaches = Breaches::default();
    for package in packages() {
        for file in source_files(&package.source()) {
            let module = file.path.trim_end_matches(".rs").split(['/', '_']).map(capital).collect::<Vec<_>>();
            for word in module.iter().filter(|word| turned_away.contains(word.as_str())) {
                breaches.add(&file.path, format!("has `{word}` in its name"));
            }
            for name in file.types() {
                for word in words(name).into_iter().filter(|word| turned_away.contains(word)) {
                    breaches.add(&file.path, format!("calls a type `{name}`, and `{word}` is not our word"));
                }
            }
        }
    }
    breaches.none();
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `ListingCard` → `Listing`, `Card`
fn words(name: &str) -> Vec<&str> {
    let starts = name.char_indices().filter(|(_, letter)| letter.is_uppercase()).map(|(at, _)| at);
    let starts: Vec<usize> = starts.chain([name.len()]).collect();
    starts.windows(2).filter_map(|pair| name.get(pair[0]..pair[1])).collect()
}

#[test]
fn files_hold_one_idea_and_no_module_is_called_mod() {
    let mut breaches = Breaches::default();
    for file in all_sources() {
        let lines = file.lines();
        if lines > LINES_MAX && !LONG_FILES.iter().any(|(path, _)| *path == file.path) {
            breaches.add(
                &file.path,
                format!("has {lines} lines; look for the second idea, or give a reason in LONG_FILES"),
            );
        }
        if Path::new(&file.path).ends_with("mod.rs") {
            breaches.add(&file.path, "is named mod.rs; a module is foo.rs with its parts in foo/");
        }
    }
    for (path, _) in LONG_FILES {
        if !repository().join(path).exists() {
            breaches.add(path, "is in LONG_FILES and gone");
        }
    }
    breaches.none();
}

#[test]
fn modules_open_with_their_purpose() {
    let mut breaches = Breaches::default();
    for file in all_sources().iter().filter(|file| !file.opens_with_its_purpose()) {
        breaches.add(&file.path, "does not open with `//! ` and one sentence of purpose");
    }
    breaches.none();
}

#[test]
fn nothing_panics_by_unwrap_and_no_test_is_skipped() {
    let mut breaches = Breaches::default();
    for file in all_sources() {
        // The harness exists for tests, where a panic is the report.
        if !file.path.starts_with("tests/") && !file.is_test() && file.has_text(".unwrap()") {
            breaches.add(&file.path, "unwraps; return the error, or say in `expect` why there is none");
        }
        if file.everything().contains(concat!("#[", "ignore")) {
            breaches.add(&file.path, "skips a test");
        }
    }
    breaches.none();
}

/// Everything wrong, so that one run shows it all.
#[derive(Default)]
struct Breaches(String);

impl Breaches {
    fn add(&mut self, place: &str, breach: impl AsRef<str>) {
        writeln!(self.0, "  {place} {}", breach.as_ref()).unwrap();
    }

    #[track_caller]
    fn none(&self) {
        assert!(self.0.is_empty(), "the architecture is broken in:\n{}", self.0);
    }
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|(_, modules)| modules.contains(&module))
}

fn all_sources() -> Vec<SourceFile> {
    let folders = ["protocol", "bridge", "node", "demo-services", "tests"];
    folders.iter().flat_map(|folder| source_files(&repository().join(folder))).collect()
}

/// What `cargo metadata` says about one package of the workspace.
struct Package {
    name: String,
    manifest: String,
    /// Of every kind: normal, build and dev.
    dependencies: Vec<String>,
    normal_dependencies: Vec<String>,
    /// Whether its documentation is searched for examples, which are compiled and run.
    runs_examples: bool,
    /// Its library and its programs: the file that each begins with, and whether cargo builds its tests.
    units: Vec<(PathBuf, bool)>,
}

impl Package {
    fn only_tests_use(&self, dependency: &str) -> bool {
        !self.normal_dependencies.iter().any(|name| name == dependency)
    }

    fn source(&self) -> PathBuf {
        Path::new(&self.manifest).with_file_name("src")
    }
}

fn packages() -> Vec<Package> {
    metadata()["packages"].as_array().unwrap().iter().map(package).collect()
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn package(described: &Value) -> Package {
    let dependencies = described["dependencies"].as_array().unwrap();
    let targets = described["targets"].as_array().unwrap();
    let is_unit = |target: &&Value| target["kind"][0] == "lib" || target["kind"][0] == "bin";
    let is_normal = |dependency: &&Value| dependency["kind"].is_null();
    let name = |dependency: &Value| dependency["name"].as_str().unwrap().to_owned();
    Package {
        name: name(described),
        manifest: described["manifest_path"].as_str().unwrap().to_owned(),
        dependencies: dependencies.iter().map(name).collect(),
        normal_dependencies: dependencies.iter().filter(is_normal).map(name).collect(),
        runs_examples: targets.iter().any(|target| target["doctest"] == true),
        units: targets
            .iter()
            .filter(is_unit)
            .map(|target| (target["src_path"].as_str().unwrap().into(), target["test"] == true))
            .collect(),
    }
}
