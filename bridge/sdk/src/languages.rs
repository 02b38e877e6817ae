//! A table for each language, and the templates of its folder.

pub(super) mod csharp;
pub(super) mod go;
pub(super) mod java;
pub(super) mod javascript;
pub(super) mod kotlin;
pub(super) mod php;
pub(super) mod python;
pub(super) mod ruby;
pub(super) mod rust;
pub(super) mod shell;
pub(super) mod swift;
