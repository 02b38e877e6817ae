//! Reading the repository's own text: source files without comments and tests, and the files that documents name.
//!
//! This is a reader of our own style, not of Rust: comments start a line, and a module's tests are its last part.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One file of Rust.
pub(crate) struct SourceFile {
    /// From the repository's root.
    pub(crate) path: String,
    text: String,
    /// The text without comments and without its tests.
    code: String,
}

/// One file of Markdown.
pub(crate) struct Document {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The repository's root.
pub(crate) fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the package is `tests/tidy` of the repository")
}

/// Every Rust file under `folder`, in order of path.
pub(crate) fn source_files(folder: &Path) -> Vec<SourceFile> {
    files(folder, |path| ends_with(path, "rs"))
        .into_iter()
        .map(|(path, text)| SourceFile { code: code(&path, &text), path, text })
        .collect()
}

/// Every Markdown file of the repository.
pub(crate) fn documents() -> Vec<Document> {
    let found = files(repository(), |path| ends_with(path, "md")).into_iter();
    found.map(|(path, text)| Document { path, text }).collect()
}

impl SourceFile {
    pub(crate) fn lines(&self) -> usize {
        self.text.lines().count()
    }

    pub(crate) fn everything(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_test(&self) -> bool {
        is_test(&self.path)
    }

    /// `gateway` for `node/src/gateway.rs` and for everything in `node/src/gateway/`.
    pub(crate) fn top_module(&self) -> &str {
        let inside = self.path.split_once("src/").map_or(self.path.as_str(), |(_, inside)| inside);
        inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
    }

    /// Its text without comments and without its tests.
    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.code.contains(text)
    }

    pub(crate) fn has_word(&self, word: &str) -> bool {
        let part_of_a_name =
            |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_');
        self.code.match_indices(word).any(|(at, _)| {
            let before = self.code[..at].chars().next_back();
            let after = self.code[at + word.len()..].chars().next();
            !part_of_a_name(before) && !part_of_a_name(after)
        })
    }

    /// The names right under `root`, wherever code writes `root::name` or `root::{name, other::…}`.
    pub(crate) fn uses(&self, root: &str) -> BTreeSet<String> {
        self.paths_in(root).into_iter().filter_map(|path| path.into_iter().next()).collect()
    }

    /// Every path that code writes from the package `root`, from that package's root.
    pub(crate) fn paths_in(&self, root: &str) -> Vec<Vec<String>> {
        self.paths_below(&format!("{root}::"), &[])
    }

    /// Its module, from the crate's root: `["gateway", "call"]` for `node/src/gateway/call.rs`, nothing for the root.
    pub(crate) fn module(&self) -> Vec<String> {
        let inside = self.path.split_once("src/").map_or(self.path.as_str(), |(_, inside)| inside);
        let names: Vec<&str> = inside.trim_end_matches(".rs").split('/').collect();
        if matches!(names[..], ["lib" | "main"]) {
            return Vec::new();
        }
        names.into_iter().map(str::to_owned).collect()
    }

    /// Every path that code writes from `crate`, `self` or `super`, from the crate's root.
    pub(crate) fn paths(&self) -> Vec<Vec<String>> {
        let own = self.module();
        let parent = own.split_last().map_or(&[][..], |(_, parent)| parent);
        let roots = [("crate::", &[][..]), ("self::", &own), ("super::", parent)];
        roots.into_iter().flat_map(|(root, from)| self.paths_below(root, from)).collect()
    }

    /// Every path that it imports or passes on, as it is written: `["super", "call", "Order"]`.
    pub(crate) fn imports(&self) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        for (at, import) in self.code.match_indices("use ") {
            let before = self.code[..at].rsplit('\n').next().unwrap_or_default().trim();
            if matches!(before, "" | "pub") || before.starts_with("pub(") && before.ends_with(')') {
                read_tree(&self.code[at + import.len()..], &[], &mut found);
            }
        }
        found
    }

    fn paths_below(&self, root: &str, from: &[String]) -> Vec<Vec<String>> {
        let is_part = |before: char| before.is_alphanumeric() || matches!(before, '_' | ':');
        let places = self.code.match_indices(root).filter(|(at, _)| !self.code[..*at].ends_with(is_part));
        let mut found = Vec::new();
        for (at, _) in places {
            read_tree(&self.code[at + root.len()..], from, &mut found);
        }
        found
    }

    /// Names of the types and traits that it declares.
    pub(crate) fn types(&self) -> impl Iterator<Item = &str> {
        self.code.lines().filter_map(|line| {
            let line = line.trim_start();
            let line = line
                .strip_prefix("pub(")
                .and_then(|rest| rest.split_once(") "))
                .map_or(line, |(_, rest)| rest);
            let mut words = line.split_whitespace().skip_while(|word| *word == "pub");
            let is_type = matches!(words.next()?, "struct" | "enum" | "trait" | "union");
            let name = words.next().filter(|_| is_type)?;
            name.split(|c: char| !c.is_alphanumeric()).next().filter(|name| !name.is_empty())
        })
    }

    /// First lines of documentation, the module's before those of its items.
    pub(crate) fn documentation(&self) -> impl Iterator<Item = &str> {
        let opening = self.text.strip_prefix("//! ").and_then(|text| text.lines().next());
        let is_documentation = |line: &str| line.trim_start().starts_with("///");
        let before = std::iter::once("").chain(self.text.lines());
        let first = before
            .zip(self.text.lines())
            .filter(move |(before, line)| is_documentation(line) && !is_documentation(before));
        opening.into_iter().chain(first.filter_map(|(_, line)| line.trim_start().strip_prefix("/// ")))
    }

    pub(crate) fn opens_with_its_purpose(&self) -> bool {
        self.text.starts_with("//! ")
    }
}

impl Document {
    /// Where its relative links start.
    pub(crate) fn folder(&self) -> PathBuf {
        repository().join(Path::new(&self.path).parent().unwrap_or(Path::new("")))
    }

    /// Rust files in `code` and the targets of relative links.
    pub(crate) fn named_files(&self) -> BTreeSet<String> {
        let in_code = self.text.split('`').skip(1).step_by(2).filter(|code| is_rust_path(code));
        let links =
            self.text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
        let relative = links.filter(|target| !target.contains("://") && !target.starts_with(['#', '/']));
        let targets = relative.map(|target| target.split('#').next().unwrap_or(target));
        in_code.chain(targets).map(str::to_owned).collect()
    }
}

fn is_rust_path(code: &str) -> bool {
    code.ends_with(".rs")
        && code.contains('/')
        && code.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c))
}

/// Reads one path, or a tree such as `a::{b, c::d}`, and returns what comes after it.
fn read_tree<'t>(text: &'t str, from: &[String], found: &mut Vec<Vec<String>>) -> &'t str {
    let mut path = from.to_vec();
    let mut rest = text.trim_start();
    loop {
        if let Some(mut group) = rest.strip_prefix('{') {
            loop {
                group = read_tree(group, &path, found);
                // What stands between is a new name, such as `as b`, or nothing.
                let end = group.find([',', '}']).unwrap_or(group.len());
                match group[end..].strip_prefix(',') {
                    Some(next) if !next.trim_start().starts_with('}') => group = next,
                    next => return next.unwrap_or(&group[end..]).trim_start().trim_start_matches('}'),
                }
            }
        }
        let name = first_name(rest);
        rest = &rest[name.len()..];
        path.push(name);
        match rest.strip_prefix("::") {
            Some(deeper) => rest = deeper,
            None => break,
        }
    }
    found.push(path);
    rest
}

fn first_name(path: &str) -> String {
    path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The name of the function that a line declares, which begins it: `pub(super) async fn ask(&self) {` → `ask`
pub(crate) fn function_name(line: &str) -> Option<&str> {
    let (before, rest) = line.split_once("fn ")?;
    let is_declared = before.starts_with("pub") || matches!(before.trim_end(), "" | "async" | "const");
    (is_declared && !before.starts_with(' ')).then(|| rest.split(['(', '<']).next().unwrap_or(rest))
}

fn code(path: &str, text: &str) -> String {
    if is_test(path) {
        return String::new();
    }
    let before_tests = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or(text);
    let lines = before_tests.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

pub(crate) fn ends_with(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// Whether a file is compiled for tests only, by its place.
pub(crate) fn is_test(path: &str) -> bool {
    let ends = ["/tests.rs", "/testing.rs"];
    ["/tests/", "/testing/", "/benches/"].iter().any(|folder| path.contains(folder))
        || ends.iter().any(|end| path.ends_with(end))
}

/// Path and text of every file under `folder` that is `wanted`, in order of path.
pub(crate) fn files(folder: &Path, wanted: impl Fn(&Path) -> bool) -> Vec<(String, String)> {
    const NOT_OURS: [&str; 4] = ["target", "node_modules", ".venv", ".git"];
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        // Editors and other tools may remove what was just listed; what is gone needs no reading.
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_dir() && !NOT_OURS.iter().any(|not_ours| name == *not_ours) {
                folders.push(path);
            } else if wanted(&path) {
                let inside = path.strip_prefix(repository()).unwrap_or(&path).display().to_string();
                found.extend(fs::read_to_string(&path).ok().map(|text| (inside, text)));
            }
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::{SourceFile, code};

    fn file(text: &str) -> SourceFile {
        let path = "node/src/gateway/call.rs".to_owned();
        SourceFile { code: code(&path, text), path, text: text.to_owned() }
    }

    #[test]
    fn imports_are_found_in_every_form() {
        let source = file(
            "use crate::{\n    catalog::{Catalog, Plan},\n    wallet,\n};\nuse crate::owner::Owner;\n\
             fn now() { crate::clock::now(); mycrate::nothing(); }\n// use crate::panel;\n",
        );
        assert_eq!(Vec::from_iter(source.uses("crate")), ["catalog", "clock", "owner", "wallet"]);
        assert_eq!(source.top_module(), "gateway");
    }

    #[test]
    fn paths_are_read_from_the_crates_root() {
        let source = file(
            "use super::{\n    admit::{Admitted as A, b::*},\n    call::{self, C},\n};\nuse self::body::read;\n\
             fn now() { crate::clock::now(); std::fs::super::a(); }\nuse crate::{d, e::F,};\n",
        );
        let paths: Vec<String> = source.paths().iter().map(|path| path.join("::")).collect();
        let from_crate = ["clock::now", "d", "e::F"];
        let from_super =
            ["gateway::admit::Admitted", "gateway::admit::b::", "gateway::call::self", "gateway::call::C"];
        assert_eq!(paths, [&from_crate[..], &["gateway::call::body::read"], &from_super].concat());
    }

    #[test]
    fn imports_are_read_as_they_are_written() {
        let source = file(
            "pub use self::{a::B, c::{self, D}};\npub(crate) use e::F;\n    use super::G;\n\
             pub fn reuse (h: I) { excuse (); }\n// use j::K;\n",
        );
        let imports: Vec<String> = source.imports().iter().map(|path| path.join("::")).collect();
        assert_eq!(imports, ["self::a::B", "self::c::self", "self::c::D", "e::F", "super::G"]);
    }

    #[test]
    fn types_are_found_whoever_may_see_them() {
        let file = file(
            "pub(in crate::a) enum A {\n    B,\n}\n  struct C<'a>(&'a str);\ntrait D: E {}\n// struct F;\nlet g = structure;\n",
        );
        assert_eq!(file.types().collect::<Vec<_>>(), ["A", "C", "D"]);
    }

    #[test]
    fn comments_and_tests_are_not_code() {
        let source =
            file("//! f64\nfn a() {}\n    // f64\n#[cfg(test)]\nmod tests {\n    const X: f64 = 0.0;\n}\n");
        assert!(!source.has_word("f64"));
        assert!(file("const HALF: f64 = 0.5;").has_word("f64"));
        assert!(!file("fn of64() { f64x(); }").has_word("f64"));
    }
}
