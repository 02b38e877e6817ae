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

/// A file that no `mod` line names is not compiled, and nothing else would say so.
#[test]
fn every_file_is_named_by_the_module_above_it() {
    let mut breaches = Breaches::default();
    for package in &packages() {
        let files = source_files(&package.source());
        for file in files.iter().filter(|file| file.top_module() != "bin" && !file.is_test()) {
            let module = file.module();
            let Some((name, above)) = module.split_last() else { continue };
            let line = format!("mod {name};");
            let names = |other: &SourceFile| other.everything().lines().any(|own| own.ends_with(&line));
            if !files.iter().any(|other| other.module() == above && names(other)) {
                breaches.add(&file.path, format!("is not compiled: write `{line}` into the module above it"));
            }
        }
    }
    breaches.none();
}

/// The modules of a crate by their paths from its root.
struct Modules(BTreeMap<Vec<String>, Names>);

#[derive(Default)]
struct Names {
    /// What it imports, each by its name here, with its path from the crate's root.
    imported: BTreeMap<String, Vec<String>>,
    /// Modules all of whose names it imports.
    whole: Vec<Vec<String>>,
    types: BTreeSet<String>,
}

impl Modules {
    fn of(files: &[SourceFile]) -> Self {
        let modules: BTreeSet<Vec<String>> = files.iter().map(SourceFile::module).collect();
        let names_of = |file: &SourceFile| {
            let own = file.module();
            let mut names = Names { types: file.types().map(str::to_owned).collect(), ..Names::default() };
            for path in file.imports().into_iter().filter_map(|path| from_root(&own, &path, &modules)) {
                match path.split_last() {
                    Some((star, module)) if star.is_empty() => names.whole.push(module.to_vec()),
                    Some((name, _)) => drop(names.imported.insert(name.clone(), path.clone())),
                    None => {}
                }
            }
            (own, names)
        };
        Self(files.iter().map(names_of).collect())
    }

    /// Finds the module that declares what `path` leads to.
    fn home(&self, path: &[String]) -> Vec<String> {
        let mut path = path.to_vec();
        // Where a function is called like a module, this reader of names could go on for ever.
        for _ in 0..16 {
            let mut modules = (0..=path.len()).rev().map(|length| &path[..length]);
            let module = modules.find(|module| self.0.contains_key(*module)).unwrap_or_default();
            let import = path.get(module.len()).and_then(|name| self.import(module, name));
            let Some(import) = import else { return module.to_vec() };
            path = [&import[..], &path[module.len() + 1..]].concat();
        }
        Vec::new()
    }

    /// Finds the path of a name that a module imports.
    fn import(&self, module: &[String], name: &str) -> Option<Vec<String>> {
        let names = self.0.get(module)?;
        let declares =
            |module: &&Vec<String>| self.0.get(*module).is_some_and(|other| other.types.contains(name));
        let of_a_whole = || Some([&names.whole.iter().find(declares)?[..], &[name.to_owned()]].concat());
        names.imported.get(name).cloned().or_else(of_a_whole)
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
    let mut modules = Modules(["", "a", "a::b", "d"].map(|module| (path(module), Names::default())).into());
    for (module, name, from) in imports {
        modules.0.entry(path(module)).or_default().imported.insert(name.to_owned(), path(from));
    }
    // `pub use self::b::*` in `a`.
    modules.0.entry(path("a")).or_default().whole.push(path("a::b"));
    modules.0.entry(path("a::b")).or_default().types.insert("G".to_owned());
    for (asked, home) in
        [("C", "a::b"), ("C::new", "a::b"), ("d::a::C", "a::b"), ("a::E", "a"), ("F", ""), ("a::G", "a::b")]
    {
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
