//! Things that no test may forget: places at which nodes die, and books that are compared at the end.

use std::collections::BTreeSet;

use crate::{Breaches, all_sources};

/// What stands in quotation marks right after each `begins` in a text.
fn named<'t>(text: &'t str, begins: &str) -> impl Iterator<Item = &'t str> {
    text.split(begins).skip(1).filter_map(|rest| rest.split('"').next())
}

#[test]
fn every_place_at_which_a_node_may_die_is_named_by_a_test() {
    let files = all_sources();
    let production = files.iter().filter(|file| !file.is_test() && file.path.starts_with("node/"));
    let places: BTreeSet<&str> =
        production.flat_map(|file| named(file.everything(), "killpoint::reached(\"")).collect();
    assert!(places.len() > 20, "{places:?}");
    let tests: Vec<_> = files.iter().filter(|file| file.path.starts_with("tests/")).collect();
    let mut breaches = Breaches::default();
    for place in places {
        let quoted = format!("\"{place}\"");
        if !tests.iter().any(|file| file.everything().contains(&quoted)) {
            breaches.add("node", format!("may die at `{place}`, where no test lets it"));
        }
    }
    breaches.none();
}

/// A world compares its books by itself when it is dropped. A demonstration is compared by `agreement::end`, so each that is
/// started has to end with it.
#[test]
fn every_demonstration_that_a_test_starts_ends_with_its_books_compared() {
    // Two start it for others, who end it; the third is this file.
    const ASIDE: [&str; 3] =
        ["tests/tests/browser/site.rs", "tests/tests/sdk/market.rs", "tests/tests/tidy/truth.rs"];
    const STARTS: [&str; 3] = ["Demo::start(folder", "Site::start()", "market::open("];
    let files = all_sources();
    let (mut breaches, mut seen) = (Breaches::default(), 0);
    for file in files.iter().filter(|file| file.path.starts_with("tests/tests/")) {
        if ASIDE.contains(&file.path.as_str()) {
            continue;
        }
        let count = |word: &str| file.everything().matches(word).count();
        let started: usize = STARTS.into_iter().map(count).sum();
        let ended = count("agreement::end(");
        seen += started;
        if started > ended {
            breaches.add(&file.path, format!("starts {started} of them, and compares the books of {ended}"));
        }
    }
    assert!(seen > 7, "only {seen} were found");
    breaches.none();
}
