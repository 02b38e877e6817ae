//! A table for each language, and the templates of its folder.

pub(super) mod python;
