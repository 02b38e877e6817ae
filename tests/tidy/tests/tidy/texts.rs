//! Documentation says what things are and do.

use std::collections::BTreeSet;

use crate::{
    Breaches, Package, all_sources, packages,
    source::{documents, repository, source_files},
};

/// Texts that people read elsewhere: help, the example file, the catalogue of endpoints, a schema.
const TEXTS_FOR_USERS: [&str; 7] = [
    "node/cli/src/api",
    "node/cli/src/testnet.rs",
    "node/config/src/settings.rs",
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

/// What a node can be asked is there for people, as a command or on a page, or for their agents, as a tool.
#[test]
fn every_endpoint_is_asked_by_the_command_line_the_console_or_a_tool() {
    // What a program begins with, where a person has a page.
    const FOR_PROGRAMS: [&str; 2] = ["SetUp", "LogIn"];
    const LIST: &str = "node/control/src/endpoint/list.rs";
    let list = std::fs::read_to_string(repository().join(LIST)).expect(LIST);
    // call: Call, POST "/call" []; …
    let name = |line: &str| {
        let (_, declared) = line.split_once(": ")?;
        let (name, rest) = declared.split_once(", ")?;
        let is_one = ["GET \"", "POST \"", "DELETE \""].iter().any(|method| rest.starts_with(method));
        is_one.then(|| name.to_owned())
    };
    let names: Vec<String> = list.lines().filter_map(name).collect();
    assert!(names.len() > 80, "{names:?}");
    let rooms = ["node/cli/src", "node/console/src", "node/mcp/src"];
    let files: Vec<_> = rooms.iter().flat_map(|room| source_files(&repository().join(room))).collect();
    let mut breaches = Breaches::default();
    for name in names.iter().filter(|name| !FOR_PROGRAMS.contains(&name.as_str())) {
        let asked = format!("endpoint::{name}");
        if !files.iter().any(|file| file.has_word(&asked)) {
            breaches.add(LIST, format!("has `{name}`, which no command, no page and no tool asks"));
        }
    }
    breaches.none();
}

#[test]
fn every_package_that_writes_to_the_log_is_in_its_reference() {
    const REFERENCE: &str = "docs/logs.md";
    // Its one line is the access log's.
    const OTHERWISE: &str = "farthing-shared";
    let reference = std::fs::read_to_string(repository().join(REFERENCE)).expect(REFERENCE);
    let mut breaches = Breaches::default();
    let nodes = repository().join("node");
    let of_the_node = |package: &&Package| package.source().starts_with(&nodes) && package.name != OTHERWISE;
    for package in packages().iter().filter(of_the_node) {
        let files = source_files(&package.source());
        let writes = ["debug", "info", "warn", "error"]
            .iter()
            .any(|level| files.iter().any(|file| file.has_text(&format!("tracing::{level}!("))));
        let target = package.name.replace('-', "_");
        if writes && !reference.contains(&format!("\n| `{target}` | ")) {
            breaches.add(REFERENCE, format!("lacks a row of the target `{target}`"));
        }
    }
    breaches.none();
}

#[test]
fn every_file_that_a_document_names_exists() {
    let mut breaches = Breaches::default();
    for document in documents() {
        for named in document.named_files() {
            if !document.folder().join(&named).exists() && !repository().join(&named).exists() {
                breaches.add(&document.path, format!("names {named}, which is not there"));
            }
        }
    }
    breaches.none();
}

#[test]
fn every_make_target_that_people_use_says_what_it_does() {
    let makefile = std::fs::read_to_string(repository().join("Makefile")).unwrap();
    for target in ["help", "check", "test", "demo", "testnet", "bench"] {
        let described = |line: &str| line.starts_with(&format!("{target}:")) && line.contains(" ## ");
        assert!(makefile.lines().any(described), "`{target}: ## what it does` is missing from the Makefile");
    }
}
