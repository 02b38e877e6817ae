//! Things that no test may forget: places at which nodes die, books that are compared at the end, and what no shipped program has.

use std::collections::BTreeSet;

use crate::{Breaches, all_sources, source::repository};

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
    // They start it for others, who end it.
    const ASIDE: [&str; 2] = ["tests/tests/browser/site.rs", "tests/tests/sdk/market.rs"];
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

/// The page of components is in development builds alone. The script that builds what is shipped looks for it in the programs.
#[test]
fn the_page_of_components_is_in_no_program_that_is_shipped() {
    const PAGE: &str = "/panel/help/design";
    let read = |path: &str| std::fs::read_to_string(repository().join(path)).expect(path);
    let pages = read("node/console/src/pages.rs");
    for part in ["mod design;", "fn development() -> Router<ConsoleState> {\n    Router::new().route("] {
        assert!(pages.contains(&format!("#[cfg(debug_assertions)]\n{part}")), "{part}");
    }
    assert_eq!(pages.matches(PAGE).count(), 1, "its one route is in `development`");
    let build = read("deploy/build.sh");
    assert!(build.contains("--profile shipped") && build.contains(PAGE), "{build}");
    let profiles = read("Cargo.toml");
    assert!(profiles.contains("[profile.shipped]\ninherits = \"release\"\n"));
    assert!(
        !profiles.contains("debug-assertions = true"),
        "a profile that has no debug assertions gets them"
    );
}
