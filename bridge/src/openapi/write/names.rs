//! Names that OpenAPI allows, each of them once.

use crate::names::TakenNames;

/// Longer names are cut; a stranger chose them.
const NAME_CHARS_MAX: usize = 100;

/// Hands out names.
#[derive(Debug, Default)]
pub(super) struct NameAllocator(TakenNames);

impl NameAllocator {
    /// `wanted` in the alphabet of component names, `^[A-Za-z0-9._-]+$`; `fallback` when nothing of it is left;
    /// with a number when it is taken.
    pub(super) fn unique(&mut self, wanted: &str, fallback: &str) -> String {
        let plain = plain(wanted);
        self.0.unique(if plain.is_empty() { fallback } else { &plain }, "_")
    }
}

/// Runs of other characters become one underscore, none at the end: `Page[User]` is `Page_User`.
fn plain(text: &str) -> String {
    let mut name = String::new();
    for c in text.chars().take(NAME_CHARS_MAX) {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('_') {
            name.push('_');
        }
    }
    // Only what was put there for other characters is taken off again.
    if text.ends_with('_') || !name.ends_with('_') { name } else { name.trim_end_matches('_').to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_where_openapi_allows_them() {
        let mut names = NameAllocator::default();
        for (wanted, expected) in [
            ("Planet", "Planet"),
            ("Planet", "Planet_2"),
            ("planet", "planet"),
            ("com.example.Planet-v1_", "com.example.Planet-v1_"),
            ("Page[User]", "Page_User"),
            ("Page<User>", "Page_User_2"),
            ("Page«User»", "Page_User_3"),
            ("a/b c", "a_b_c"),
            ("惑星", "Schema"),
            ("", "Schema_2"),
            ("Planet_2", "Planet_2_2"),
            ("Planet", "Planet_3"),
        ] {
            assert_eq!(names.unique(wanted, "Schema"), expected, "{wanted}");
        }
    }

    #[test]
    fn long_names_are_cut() {
        let mut names = NameAllocator::default();
        assert!(names.unique(&"x".repeat(10_000), "Schema").len() <= NAME_CHARS_MAX);
    }
}
