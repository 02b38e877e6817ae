//! Mutants (`tests/mutants`) fit the source: the text that each replaces is there, and so is the test that must notice it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::{
    Breaches, all_sources,
    source::{ends_with, files, repository},
};

#[test]
fn every_mutant_changes_one_place_and_names_a_test_that_is_there() {
    let sources = all_sources();
    let functions = sources.iter().flat_map(|file| file.everything().split("fn ").skip(1));
    let functions: BTreeSet<&str> = functions.filter_map(|rest| rest.split('(').next()).collect();
    let (mut breaches, mut numbers) = (Breaches::default(), BTreeSet::new());
    for (group, text) in files(&repository().join("tests/mutants"), |path| ends_with(path, "json")) {
        let mutants: Vec<Value> = serde_json::from_str(&text).expect(&group);
        for mutant in &mutants {
            let number = mutant["number"].as_u64().expect(&group);
            let field = |name: &str| {
                mutant[name].as_str().unwrap_or_else(|| panic!("{group}: {number} has no text `{name}`"))
            };
            let (file, old, test) = (field("file"), field("old"), field("test"));
            if !numbers.insert(number) {
                breaches
                    .add(&group, format!("has the number {number}, which another mutant has; take the next"));
            }
            if old == field("new") {
                breaches.add(&group, format!("changes nothing in {number}"));
            }
            let changed = std::fs::read_to_string(repository().join(file)).unwrap_or_default();
            let times = changed.matches(old).count();
            if times != 1 {
                breaches.add(
                    &group,
                    format!("expects the old text of {number} once in {file}, where it is {times} times"),
                );
            }
            if !functions.contains(test.rsplit("::").next().unwrap_or(test)) {
                breaches.add(&group, format!("names the test {test} in {number}, which is not there"));
            }
        }
    }
    assert!(numbers.len() > 150, "only {} were found", numbers.len());
    breaches.none();
}
