//! Modules know each other in one direction.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Breaches, packages,
    source::{SourceFile, source_files},
};

/// A module and its parent may know each other; two modules of one parent, with all that is in them, may not.
#[test]
fn modules_of_one_parent_know_each_other_in_one_direction_only() {
    let mut breaches = Breaches::default();
    for package in &packages() {
        // A program beside a library is a crate of its own.
        let files = source_files(&package.source()).into_iter().filter(|file| file.top_module() != "bin");
        let files: Vec<SourceFile> = files.collect();
        let modules: BTreeSet<Vec<String>> = files.iter().map(SourceFile::module).collect();
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in &files {
            let own = file.module();
            for path in file.paths() {
                let Some(used) =
                    (0..=path.len()).rev().map(|n| &path[..n]).find(|path| modules.contains(*path))
                else {
                    continue;
                };
                let shared = own.iter().zip(used).take_while(|(a, b)| a == b).count();
                if let (Some(_), Some(_)) = (own.get(shared), used.get(shared)) {
                    let user = own[..=shared].join("::");
                    uses.entry(user).or_default().insert(used[..=shared].join("::"));
                }
            }
        }
        for circle in circles(&uses) {
            breaches.add(&package.name, format!("has a circle of modules: {}", circle.join(" → ")));
        }
    }
    breaches.none();
}

/// Modules that lead back to themselves, each circle once.
fn circles(uses: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for start in uses.keys() {
        // Circles are told by the first of their names.
        let mut ways = vec![vec![start.clone()]];
        let mut seen = BTreeSet::new();
        while let Some(way) = ways.pop() {
            for next in way.last().and_then(|last| uses.get(last)).into_iter().flatten() {
                if next == start && way.len() > 1 {
                    found.push([&way[..], std::slice::from_ref(start)].concat());
                } else if next > start && seen.insert(next.clone()) {
                    ways.push([&way[..], std::slice::from_ref(next)].concat());
                }
            }
        }
    }
    found
}

#[test]
fn a_circle_of_modules_is_found() {
    let uses = [("a", "b"), ("b", "c"), ("c", "a"), ("d", "a"), ("e", "e")];
    let uses = uses.map(|(from, to)| (from.to_owned(), BTreeSet::from([to.to_owned()]))).into();
    assert_eq!(circles(&uses), [["a", "b", "c", "a"]]);
}
