//! The table of settings keeps to its own rules.

use super::*;
use crate::settings::KEYS;

#[test]
fn every_default_has_the_form_it_stands_for() {
    for key in KEYS {
        match key.default {
            Fallback::Value(text) => assert_eq!(key.form.check(text), Ok(()), "{}", key.name),
            Fallback::Values(items) => {
                assert!(key.is_list(), "{}", key.name);
                items.iter().for_each(|item| assert_eq!(key.form.check(item), Ok(()), "{}", key.name));
            }
            Fallback::Unset => {}
        }
    }
}

#[test]
fn every_key_is_named_once_in_one_section() {
    for key in KEYS {
        assert_eq!(KEYS.iter().filter(|other| other.name == key.name).count(), 1, "{}", key.name);
        assert_eq!(key.name.matches('.').count(), 1, "{}", key.name);
        // A sentence, or the first part of one that the next key ends.
        let ends = [".", ",", " old", " remain"];
        assert!(ends.iter().any(|end| key.about.ends_with(end)), "{}: {}", key.name, key.about);
    }
}
