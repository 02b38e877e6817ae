//! A container that the process may have to itself.

use std::{ffi::OsStr, path::Path};

/// The variable that says so, with `true` or `false`: not every engine leaves a mark, and where one develops there may be
/// one.
const VARIABLE: &str = "FARTHING_CONTAINER";

/// Docker and Podman each leave a mark.
const MARKS: [&str; 2] = ["/.dockerenv", "/run/.containerenv"];

/// Tells a container from a machine with other users and programs.
pub fn is_here() -> bool {
    let told = std::env::var_os(VARIABLE);
    is_one(told.as_deref(), MARKS.iter().any(|mark| Path::new(mark).exists()))
}

/// Anything but the two words says nothing.
fn is_one(told: Option<&OsStr>, is_marked: bool) -> bool {
    match told.and_then(OsStr::to_str) {
        Some("true") => true,
        Some("false") => false,
        _ => is_marked,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_believed_before_the_marks() {
        for (told, is_marked, is_container) in [
            (None, false, false),
            (None, true, true),
            (Some("true"), false, true),
            (Some("false"), true, false),
            (Some(""), true, true),
            (Some(""), false, false),
            (Some("perhaps"), false, false),
        ] {
            assert_eq!(is_one(told.map(OsStr::new), is_marked), is_container, "{told:?} {is_marked}");
        }
    }
}
