//! Modules know each other in one direction.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Breaches, packages,
    source::{SourceFile, source_files},
};

/// Modules whose parts may know each other, each with its reason.
const ONE_WHOLE: [(&str, &str); 1] =
    [("exoplanets::schema", "a planet has a star, a star has planets: the types of a GraphQL schema")];

/// A module and its parent may know each other; two modules of one parent, with all that is in them, may not. A name that
/// a module passes on counts as its declaration's, wherever it is asked for.
#[test]
fn modules_of_one_parent_know_each_other_in_one_direction_only() {
    let mut breaches = Breaches::default();
    for package in &packages() {
        // A program beside a library is a crate of its own.
        let files = source_files(&package.source()).into_iter().filter(|file| file.top_module() != "bin");
        let files: Vec<SourceFile> = files.collect();
        let modules = Modules::of(&files);
        let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in &files {
            let own = file.module();
            for path in file.paths() {
                let used = modules.home(&path);
                let shared = own.iter().zip(&used).take_while(|(a, b)| a == b).count();
                let parent = own[..shared].join("::");
                if ONE_WHOLE.iter().any(|(whole, _)| *whole == parent) {
                    continue;
                }
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

/// The modules of a crate by their paths from its root, each with what it imports by its name there.
struct Modules(BTreeMap<Vec<String>, BTreeMap<String, Vec<String>>>);

impl Modules {
    fn of(files: &[SourceFile]) -> Self {
        let names: BTreeSet<Vec<String>> = files.iter().map(SourceFile::module).collect();
        let imported = |file: &SourceFile| {
            let own = file.module();
            let paths = file.imports().into_iter().filter_map(|path| from_root(&own, &path, &names));
            let imports: BTreeMap<String, Vec<String>> =
                paths.filter_map(|path| Some((path.last()?.clone(), path))).collect();
            (own, imports)
        };
        Self(files.iter().map(imported).collect())
    }

    /// Finds the module that declares what `path` leads to.
    fn home(&self, path: &[String]) -> Vec<String> {
        let mut path = path.to_vec();
        // Where a function is called like a module, this reader of names could go on for ever.
        for _ in 0..16 {
            let mut modules = (0..=path.len()).rev().map(|length| &path[..length]);
            let module = modules.find(|module| self.0.contains_key(*module)).unwrap_or_default();
            let imported = path.get(module.len()).and_then(|name| self.0.get(module)?.get(name));
            let Some(import) = imported else { return module.to_vec() };
            path = [&import[..], &path[module.len() + 1..]].concat();
        }
        Vec::new()
    }
}

/// Reads an import of the module `own` as a path from the crate's root; another crate's is none.
fn from_root(own: &[String], path: &[String], modules: &BTreeSet<Vec<String>>) -> Option<Vec<String>> {
    let path = match path {
        [module @ .., last] if last == "self" => module,
        whole => whole,
    };
    let parent = own.split_last().map_or(&[][..], |(_, parent)| parent);
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([own, rest].concat()),
        "super" => Some([parent, rest].concat()),
        _ => Some([own, path].concat()).filter(|whole| modules.contains(&whole[..=own.len()])),
    }
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

#[test]
fn a_name_that_is_passed_on_is_its_declarations() {
    let path =
        |text: &str| text.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let imports = [("", "C", "a::C"), ("a", "C", "a::b::C"), ("d", "a", "a")];
    let mut modules = Modules(["", "a", "a::b", "d"].map(|module| (path(module), BTreeMap::new())).into());
    for (module, name, from) in imports {
        modules.0.entry(path(module)).or_default().insert(name.to_owned(), path(from));
    }
    for (asked, home) in [("C", "a::b"), ("C::new", "a::b"), ("d::a::C", "a::b"), ("a::E", "a"), ("F", "")] {
        assert_eq!(modules.home(&path(asked)), path(home), "{asked}");
    }
}

#[test]
fn an_import_is_read_from_the_crates_root() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
    let (own, modules) = (path("a::b"), BTreeSet::from([path("a"), path("a::b"), path("a::b::c")]));
    for (written, read) in [
        ("crate::d::E", Some("d::E")),
        ("self::c::E", Some("a::b::c::E")),
        ("super::E", Some("a::E")),
        ("c::self", Some("a::b::c")),
        ("std::fmt", None),
    ] {
        assert_eq!(from_root(&own, &path(written), &modules), read.map(path), "{written}");
    }
}
