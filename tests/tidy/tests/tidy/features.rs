//! What tests play - connections, endpoints, services, clocks - is behind features of our packages, and no release has it.
//!
//! Here the manifests are read, in a moment, and cargo is asked whether tests and programs are built with the same features. `deploy/test/dist-test.sh` asks cargo what it makes of all of them together.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use serde_json::Value;

use crate::{metadata, repository};

/// The features with which something is played.
const PLAYED: [&str; 2] = ["memory", "played"];
/// What no release is built of (`deploy/build.sh`).
const APART: &str = "farthing-peers";

#[test]
fn nothing_that_a_release_is_built_of_asks_for_what_tests_play() {
    let metadata = metadata();
    let packages = list(&metadata["packages"]);
    let is_played = |feature: &&Value| feature.as_str().is_some_and(|name| PLAYED.contains(&name));
    let mut asked = Vec::new();
    for package in packages.iter().filter(|package| package["name"] != APART) {
        let by_default = list(&package["features"]["default"]).iter().filter(is_played);
        asked.extend(by_default.map(|feature| format!("{} has {feature} by default", package["name"])));
        let of_ours = |one: &&Value| one["name"].as_str().is_some_and(|name| name.starts_with("farthing"));
        let shipped = list(&package["dependencies"]).iter().filter(|one| one["kind"] != "dev");
        for dependency in shipped.filter(of_ours) {
            let features = list(&dependency["features"]).iter().filter(is_played);
            let text =
                |feature: &Value| format!("{} asks {} for {feature}", package["name"], dependency["name"]);
            asked.extend(features.map(text));
        }
    }
    assert!(asked.is_empty(), "leave it to [dev-dependencies]: {asked:#?}");
}

#[test]
fn programs_that_are_built_alone_have_the_features_that_tests_are_built_with() {
    let [alone, tested] = ["normal,build", "normal,build,dev"].map(features_of_packages);
    let differing: Vec<_> =
        alone.iter().filter(|(package, features)| tested.get(*package) != Some(features)).collect();
    assert!(
        differing.is_empty(),
        "cargo builds these twice, for programs and for tests; let {APART} ask for what tests ask for: {differing:#?}",
    );
}

/// A package can be there twice, with other features for build scripts.
type Features = BTreeMap<String, BTreeSet<String>>;

/// The features that cargo chooses for each package with dependencies of these kinds.
fn features_of_packages(kinds: &str) -> Features {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--workspace", "--locked", "--offline", "--prefix", "none", "--format", "{p}|{f}"])
        .args(["--edges", kinds])
        .current_dir(repository())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut chosen = Features::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        if let Some((package, features)) = line.trim_end_matches(" (*)").split_once('|') {
            chosen.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
    }
    chosen
}

/// The elements of a list; none of anything else.
fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}
