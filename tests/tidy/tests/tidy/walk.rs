//! The walk through one paid call in ARCHITECTURE.md: each of its files once, in an order in which one leads to the next.

use std::collections::BTreeSet;

use crate::source::{SourceFile, repository, source_files};

/// A row of the walk.
struct Step {
    file: String,
    /// The call arrives here from another node, or from its caller.
    is_arrival: bool,
}

fn steps() -> Vec<Step> {
    let map = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let walk = map.split("\n## ").find(|chapter| chapter.starts_with("One paid call")).unwrap();
    // | what happens | `node/owner/src/lib.rs` | rests on |
    let file = |row: &str| row.split(" | ").nth(1)?.strip_prefix('`')?.strip_suffix('`').map(str::to_owned);
    let mut is_arrival = false;
    let mut steps = Vec::new();
    for row in walk.lines().filter(|line| line.starts_with("| ")) {
        is_arrival |= row.starts_with("| **on the ");
        if let Some(file) = file(row) {
            steps.push(Step { file, is_arrival: std::mem::take(&mut is_arrival) });
        }
    }
    steps
}

/// Whether `earlier` declares the module that `file` is, uses it by its path, or uses a type of it from another package.
fn names(earlier: &SourceFile, file: &SourceFile) -> bool {
    let module = file.module();
    let package = |file: &SourceFile| file.path.split("/src/").next().map(str::to_owned);
    if package(earlier) != package(file) {
        let folder = package(file).unwrap_or_default();
        let used = earlier.paths_in(&format!("farthing_{}", folder.trim_start_matches("node/")));
        let is_type =
            |path: &Vec<String>| path.first().is_some_and(|used| file.types().any(|name| name == used));
        return used.iter().any(|path| is_type(path) || !module.is_empty() && path.starts_with(&module));
    }
    let is_declared = module.split_last().is_some_and(|(name, parent)| {
        earlier.module() == parent && earlier.has_text(&format!("mod {name};"))
    });
    is_declared || earlier.paths().iter().any(|path| path.starts_with(&module))
}

#[test]
fn one_paid_call_is_read_in_fourteen_files_each_once() {
    let steps = steps();
    let each: BTreeSet<&String> = steps.iter().map(|step| &step.file).collect();
    let files: Vec<&String> = steps.iter().map(|step| &step.file).collect();
    assert!(files.len() == each.len() && (10..=14).contains(&files.len()), "{files:?}");
}

#[test]
fn each_file_of_a_paid_call_is_named_by_one_before_it() {
    let sources = source_files(&repository().join("node"));
    let mut before: Vec<&SourceFile> = Vec::new();
    let mut unnamed = Vec::new();
    for Step { file, is_arrival } in steps() {
        let source = sources.iter().find(|source| source.path == file).unwrap();
        if !is_arrival && !before.iter().any(|earlier| names(earlier, source)) {
            unnamed.push(file);
        }
        before.push(source);
    }
    assert!(unnamed.is_empty(), "no earlier file of the walk leads to {unnamed:?}");
}
