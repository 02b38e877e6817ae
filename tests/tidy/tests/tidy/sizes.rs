//! No type does everything.

use std::collections::BTreeMap;

use crate::{
    Breaches, packages,
    source::{function_name, source_files},
};

/// A type with more methods is several parts, each of which lists what it may touch.
const METHODS_MAX: usize = 50;
/// Types with more methods: the most that each may have, and the reason.
const LARGE_TYPES: [(&str, &str, usize, &str); 6] = [
    ("farthing-network", "SwarmTask", 100, "one task owns the swarm, and each of its events is a method"),
    ("farthing-ledger", "Ledger", 85, "a handle: a method is one question or one write"),
    (
        "farthing-discovery",
        "Catalog",
        80,
        "knows services, their contents and their neighbours: to be taken apart",
    ),
    ("farthing-node", "Funding", 75, "deposits, their sponsors and closes: to be taken apart"),
    ("farthing-chain", "ChainHandle", 70, "a handle: a method is one question or one transaction"),
    ("farthing-bridge", "DocumentReader", 55, "one reader of a description, which all its parts report to"),
];

#[test]
fn a_type_with_many_methods_is_made_of_parts() {
    let mut breaches = Breaches::default();
    for package in &packages() {
        let mut methods: BTreeMap<String, usize> = BTreeMap::new();
        for file in source_files(&package.source()) {
            for name in types_of_methods(file.code()) {
                *methods.entry(name).or_default() += 1;
            }
        }
        for (name, count) in methods {
            let large = LARGE_TYPES
                .iter()
                .find(|(of, large, ..)| (*of, *large) == (package.name.as_str(), name.as_str()));
            let most = large.map_or(METHODS_MAX, |(_, _, most, _)| *most);
            if count > most {
                let detail =
                    format!("gives `{name}` {count} methods, and {most} is the most: take a part out of it");
                breaches.add(&package.name, detail);
            }
        }
    }
    breaches.none();
}

/// The type of each method in `code`, once for each method. The methods of a trait do not count.
fn types_of_methods(code: &str) -> Vec<String> {
    let (mut own, mut found) = (None, Vec::new());
    for line in code.lines() {
        if let Some(header) = line.strip_prefix("impl") {
            own = if header.contains(" for ") { None } else { type_of(header) };
        } else if line == "}" {
            own = None;
        } else if line.strip_prefix("    ").and_then(function_name).is_some() {
            found.extend(own.clone());
        }
    }
    found
}

/// `<K: Eq, V> KeyedMutex<K, V> {` → `KeyedMutex`
fn type_of(header: &str) -> Option<String> {
    let mut depth = 0_usize;
    let begin = header.find(|letter: char| {
        depth = match letter {
            '<' => depth + 1,
            '>' => depth.saturating_sub(1),
            _ => depth,
        };
        depth == 0 && letter.is_alphabetic()
    })?;
    header[begin..].split(|letter: char| !letter.is_alphanumeric()).next().map(str::to_owned)
}

#[test]
fn methods_are_counted_for_their_type_over_all_its_blocks() {
    let code = "\
impl Owner {
    pub fn new() -> Self {
        fn inner() {}
    }

    pub(in crate::consumer) async fn ask(&self) {}
}

impl<K: Eq, V> KeyedMutex<K, V> {
    fn take(&self, key: K) -> V {
    }
}

impl Debug for Owner {
    fn fmt(&self) {}
}

impl Owner {
    async fn tell(&self) {}
    const fn is_it(&self) -> bool {
        self.is
    }
}
";
    assert_eq!(types_of_methods(code), ["Owner", "Owner", "KeyedMutex", "Owner", "Owner"]);
}
