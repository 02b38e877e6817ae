//! The place of a value, for an error.

use std::fmt;

use crate::{cut, shown};

/// The text of a place. Each of its 64 names may have 80 characters, and 20 problems tell 20 places each.
const PLACE_BYTES_MAX: usize = 1024;

/// The place of a value: a parameter's name, then members and indices. Made into text only for an error.
#[derive(Clone, Copy)]
pub(crate) enum ValuePath<'n> {
    Root(&'n str),
    Member(&'n ValuePath<'n>, &'n str),
    Item(&'n ValuePath<'n>, usize),
}

impl ValuePath<'_> {
    /// The text of the place, from its beginning.
    pub(super) fn shown(&self) -> String {
        cut::beginning(self, PLACE_BYTES_MAX).0
    }
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(name) => f.write_str(&shown(name)),
            Self::Member(parent, name) => write!(f, "{parent}.{}", shown(name)),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}
