//! A rule for watched values: each is let go before the next question.
//!
//! A value that is read within a larger expression stays locked until all of it is made. If something in there reads the same value,
//! while its writer waits for the first look to end, both wait for ever, and the node with them.

use crate::{Breaches, all_sources};

#[test]
fn no_watched_value_is_held_while_others_are_asked() {
    let mut breaches = Breaches::default();
    for file in all_sources().iter().filter(|file| file.path.starts_with("node/") && !file.is_test()) {
        for line in file.code().lines().filter(|line| holds(line)) {
            breaches
                .add(&file.path, format!("reads `{}` within a larger value: read it before", line.trim()));
        }
    }
    breaches.none();
}

/// A field of a value that is being made, and what it is read from: `head: chain.head().borrow().number,`.
fn holds(line: &str) -> bool {
    let field = line.trim().split_once(": ").filter(|(name, _)| {
        !name.is_empty() && name.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_')
    });
    field.is_some_and(|(_, value)| value.contains(".borrow()") && value.ends_with(','))
}

#[test]
fn a_field_that_is_read_from_a_watched_value_is_found() {
    assert!(holds("            is_twin: parts.network.status().borrow().duplicate_identity,"));
    assert!(!holds("        let is_twin = parts.network.status().borrow().duplicate_identity;"));
    assert!(!holds("            is_twin,"));
}
