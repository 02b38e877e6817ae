//! Documents lead where they say: every relative link of every document, and its anchor.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::{
    Breaches,
    source::{documents, repository},
};

#[test]
fn every_link_of_a_document_leads_to_a_file_and_a_heading_that_are_there() {
    let (mut breaches, mut links) = (Breaches::default(), 0);
    for document in documents() {
        for link in links_in(&document.text) {
            links += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let place = if file.is_empty() {
                repository().join(&document.path)
            } else {
                document.folder().join(file)
            };
            let target = without_dots(&place);
            if !target.exists() {
                breaches.add(&document.path, format!("links to {link}, which is not there"));
            } else if !anchor.is_empty() && !headings(&target).contains(anchor) {
                breaches.add(&document.path, format!("links to {link}, and there is no such heading"));
            }
        }
    }
    breaches.none();
    assert!(links > 50, "{links} were found");
}

#[test]
fn the_readme_names_every_document() {
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let mut breaches = Breaches::default();
    for document in documents() {
        // Decisions have a folder of their own, and what lies deeper is found from what is named.
        let is_of_people = !document.path.contains('/')
            || document.path.strip_prefix("docs/").is_some_and(|name| !name.contains('/'))
            || document.path == "deploy/README.md";
        if is_of_people && document.path != "README.md" && !readme.contains(&format!("]({})", document.path))
        {
            breaches.add("README.md", format!("does not name {}", document.path));
        }
    }
    breaches.none();
}

/// The relative targets of links; those in code are none.
fn links_in(text: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for line in prose(text) {
        // Parts between backticks are every second one.
        for part in line.split('`').step_by(2) {
            let targets = part.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            links.extend(targets.filter(|target| !target.contains(':') && !target.is_empty()));
        }
    }
    links
}

/// Lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The anchors that a file's headings have, as GitHub makes them.
fn headings(file: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let titles = prose(&text).filter(|line| line.starts_with('#'));
    titles.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(title: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let lower = title.to_lowercase();
    lower.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn links_and_anchors_are_read_as_people_follow_them() {
    let text = "See [a](docs/a.md#b-c), [b](https://b.example) and `[c](d)`.\n```\n[d](e)\n```\n[f](#g)\n[`h`](i.md)";
    assert_eq!(links_in(text), ["docs/a.md#b-c", "#g", "i.md"]);
    assert_eq!(anchor("`source`, and What's new"), "source-and-whats-new");
}
