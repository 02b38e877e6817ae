//! What is installed for tests is pinned by what it contains, not by its name alone.

use std::{env, fs, path::Path, process::Command};

use serde_json::Value;

use crate::source::repository;

/// Builds of the local chain whose checksum is not known: they are not installed, and whoever works on such a machine
/// brings a chain on the PATH.
const UNKNOWN: [&str; 4] = [
    "node_modules/@foundry-rs/anvil-darwin-amd64",
    "node_modules/@foundry-rs/anvil-darwin-arm64",
    "node_modules/@foundry-rs/anvil-linux-arm64",
    "node_modules/@foundry-rs/anvil-win32-amd64",
];

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Requirements, each with what follows it on continued lines.
fn requirements(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(ToOwned::to_owned).collect()
}

#[test]
fn python_packages_are_installed_by_their_hashes_alone() {
    for (file, least) in [
        (".ci/requirements.txt", 1),
        ("tests/contracts/proof/requirements.txt", 10),
        ("tests/tools/requirements.txt", 10),
        ("tests/tools/langchain/requirements.txt", 10),
        ("tests/tools/llamaindex/requirements.txt", 10),
        ("tests/sdk/requirements.txt", 10),
        ("tests/x402/requirements.txt", 10),
    ] {
        let asked = requirements(&read(file));
        assert!(asked.len() >= least, "{file}: {asked:?}");
        for one in asked {
            let hash = one.split("--hash=sha256:").nth(1).unwrap_or_default();
            let digits = hash.bytes().take_while(u8::is_ascii_hexdigit).count();
            assert!(one.contains("==") && digits == 64, "{file} does not pin {one}");
        }
    }
    let scripts = read("Makefile") + &read(".ci/run");
    let uses: Vec<&str> = scripts
        .lines()
        .filter(|line| line.contains("pip install") || line.contains("pip download"))
        .collect();
    let commands = |word: &str| uses.iter().map(|line| line.matches(word).count()).sum::<usize>();
    assert_eq!(commands("pip install") + commands("pip download"), commands("--require-hashes"), "{uses:#?}");
}

#[test]
fn npm_packages_are_pinned_by_their_checksums_and_say_nothing_of_where_they_were() {
    let mut unpinned = Vec::new();
    for folder in ["tests/contracts", "tests/contracts/proof", "tests/tools", "tests/sdk", "tests/x402"] {
        let path = Path::new(folder).join("package-lock.json").display().to_string();
        let lock: Value = serde_json::from_str(&read(&path)).expect("a lockfile is JSON");
        let packages = lock["packages"].as_object().expect("a lockfile has packages");
        for (name, package) in packages.iter().filter(|(name, _)| !name.is_empty()) {
            assert!(package["resolved"].is_null(), "{path} says where {name} was");
            if !package["integrity"].as_str().is_some_and(|sum| sum.starts_with("sha512-")) {
                unpinned.push(name.clone());
            }
        }
    }
    assert_eq!(
        unpinned, UNKNOWN,
        "run npm install where the registry has them, and remove them from UNKNOWN"
    );
}

#[test]
fn crates_are_pinned_by_their_checksums_and_built_as_they_are_pinned() {
    for (file, least) in [("Cargo.lock", 300), ("tests/x402/rust/Cargo.lock", 200)] {
        let lock = read(file);
        let packages: Vec<&str> = lock.split("[[package]]").skip(1).collect();
        let of_others: Vec<&str> =
            packages.into_iter().filter(|package| package.contains("\nsource = ")).collect();
        assert!(of_others.len() >= least, "{file} has {} packages of others", of_others.len());
        for package in of_others {
            let sum = package.split("\nchecksum = \"").nth(1).unwrap_or_default();
            let digits = sum.bytes().take_while(u8::is_ascii_hexdigit).count();
            assert!(
                digits == 64 && package.contains("\nsource = \"registry+"),
                "{file} does not pin {package}"
            );
        }
    }
    let makefile = read("Makefile");
    let builds: Vec<&str> = makefile.lines().filter(|line| line.trim().starts_with("cargo build ")).collect();
    assert!(builds.len() > 4, "{builds:?}");
    for build in builds {
        assert!(build.contains(" --locked"), "{build} may take other versions");
    }
}

#[test]
fn a_local_chain_without_a_checksum_is_not_installed() {
    for (platform, architecture, is_installed) in [
        ("linux", "x64", true),
        ("linux", "arm64", false),
        ("darwin", "x64", false),
        ("darwin", "arm64", false),
        ("win32", "x64", false),
    ] {
        let script = repository().join("tests/contracts/pinned.mjs");
        let Ok(output) = Command::new("node").arg(script).args([platform, architecture]).output() else {
            assert!(env::var_os("CI").is_none(), "node is missing");
            eprintln!(
                "\n  SKIPPED: whether a local chain without a checksum is refused, because node is missing\n"
            );
            return;
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.success(), is_installed, "{platform} {architecture}: {said}");
        assert!(is_installed || said.contains("anvil-"), "{said}");
    }
    for file in ["Makefile", "deploy/Dockerfile"] {
        let text = read(file);
        let check = text.find("pinned.mjs\n\tnpm ci").or_else(|| text.find("node pinned.mjs && npm ci"));
        assert!(check.is_some(), "{file} installs without looking first");
    }
}

#[test]
fn actions_of_the_release_are_named_by_their_commits() {
    let text = read(".github/workflows/release.yml");
    let actions: Vec<&str> = text.lines().filter_map(|line| line.split("uses: ").nth(1)).collect();
    assert!(actions.len() > 2, "{actions:?}");
    for action in actions {
        let commit = action.split(['@', ' ']).nth(1).unwrap_or_default();
        assert!(commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit()), "{action}");
    }
}

#[test]
fn a_release_has_no_larger_program_than_make_dist_packs() {
    let makefile = read("Makefile");
    let bounds: Vec<&str> = makefile.lines().filter_map(|line| line.strip_prefix("BYTES_MAX ?= ")).collect();
    assert_eq!(bounds, ["50000000"], "the workflow reads this line");
    let workflow = read(".github/workflows/release.yml").replace("\\\n", " ");
    for (file, text, bound) in [
        ("Makefile", &makefile, "BYTES_MAX=\"$(BYTES_MAX)\" "),
        ("the workflow", &workflow, "BYTES_MAX=\"$(sed -n 's/^BYTES_MAX ?= //p' Makefile)\" "),
    ] {
        let packs: Vec<&str> = text.lines().filter(|line| line.contains("deploy/dist.sh ")).collect();
        assert!(packs.len() == 1 && packs[0].contains(bound), "{file}: {packs:?}");
    }
}

#[test]
fn base_images_are_named_by_their_digests() {
    let text = read("deploy/Dockerfile");
    let from = |stage: &str| text.lines().filter(move |line| line.starts_with(stage)).collect::<Vec<_>>();
    let bases = from("ARG ").into_iter().filter(|line| line.contains("_IMAGE=")).collect::<Vec<_>>();
    for base in &bases {
        let digest = base.split("@sha256:").nth(1).unwrap_or_default();
        assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{base}");
    }
    let stages = || from("FROM ").into_iter().filter_map(|line| line.split(' ').nth(3));
    let mut images = 0;
    for line in from("FROM ") {
        let image = line.split(' ').nth(1).unwrap_or_default();
        let is_argument = bases.iter().any(|base| {
            let name = base.trim_start_matches("ARG ").split('=').next().unwrap_or_default();
            image == format!("${{{name}}}")
        });
        images += usize::from(is_argument);
        assert!(is_argument || stages().any(|stage| stage == image), "{line} has no digest");
    }
    assert_eq!((bases.len(), images), (3, 3));
    for file in ["deploy/compose.yaml", "deploy/compose.testnet.yaml"] {
        for line in read(file).lines().filter(|line| line.trim_start().starts_with("image:")) {
            let image = line.split("image:").nth(1).unwrap_or_default().trim();
            assert!(image.contains("farthing") || image.contains("@sha256:"), "{file}: {line}");
        }
    }
}
