//! Documentation says what things are and do.

use std::collections::BTreeSet;

use crate::{Breaches, all_sources, source::repository};

/// Texts that people read elsewhere: help, the example file, the catalogue of endpoints, a schema.
const TEXTS_FOR_USERS: [&str; 7] = [
    "node/cli/src/api/add.rs",
    "node/cli/src/testnet.rs",
    "node/src/config/settings.rs",
    "node/control/src/endpoint/list.rs",
    "node/control/src/types/catalog.rs",
    "demo-services/src/exoplanets/",
    "demo-services/src/bin/",
];

#[test]
fn documentation_begins_with_what_a_thing_is_or_does() {
    const QUESTIONS: [&str; 10] =
        ["How", "What", "When", "Where", "Whether", "Which", "Who", "Whoever", "Whose", "Why"];
    let mut breaches = Breaches::default();
    let files = all_sources();
    // What tests share is read by those who write tests.
    for file in files.iter().filter(|file| !file.is_test() && !file.path.starts_with("tests/")) {
        if TEXTS_FOR_USERS.iter().any(|path| file.path.starts_with(path)) {
            continue;
        }
        for line in file.documentation() {
            let word = line.split(' ').next().unwrap_or_default();
            if QUESTIONS.contains(&word) {
                breaches.add(&file.path, format!("says `{line}`; name the thing, or say what it does"));
            }
        }
    }
    breaches.none();
}

#[test]
fn every_id_that_an_audit_names_stands_in_a_table_and_has_a_test() {
    let read = |path: &str| std::fs::read_to_string(repository().join(path)).expect(path);
    let documents: String = ["docs/ledger.md", "docs/contracts.md"].map(read).concat();
    let tests = read("node/ledger/src/audit/tests.rs");
    let mut ids = BTreeSet::new();
    for file in ["node/ledger/src/audit/owner.rs", "node/ledger/src/audit/consumer.rs"] {
        // `audit.require(holds, "ID", || …)`; the ledger's own index has no row.
        let text = read(file);
        let called = text.split("audit.require(").skip(1).filter_map(|call| call.split('"').nth(1));
        ids.extend(called.filter(|id| *id != "index").map(str::to_owned));
    }
    assert!(ids.len() > 10, "{ids:?}");
    let is_shown =
        |id: &&String| documents.contains(&format!("\n| {id} |")) && tests.contains(&format!("\"{id}\""));
    let without: Vec<&String> = ids.iter().filter(|id| !is_shown(id)).collect();
    assert!(without.is_empty(), "{without:?}: add a row to docs/ledger.md and a test to audit/tests.rs");
}
