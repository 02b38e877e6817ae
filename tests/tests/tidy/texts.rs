//! Documentation says what things are and do.

use crate::{Breaches, all_sources};

/// Texts that people read elsewhere: help, the example file, the catalogue of endpoints, a schema.
const TEXTS_FOR_USERS: [&str; 6] = [
    "node/cli/src/args",
    "node/src/config/settings.rs",
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
