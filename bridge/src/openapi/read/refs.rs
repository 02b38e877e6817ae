//! References within a document: `#/components/schemas/User` to the value it means.

use serde_json::Value;

use crate::{escape::decode, shown};

/// References to references that are followed.
const HOPS_MAX: usize = 16;

/// A document whose parts refer to each other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Document<'d> {
    pub(super) root: &'d Value,
}

/// A reference that leads nowhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum RefProblem {
    #[error("`{0}` refers to another document; copy that part into this one")]
    External(String),
    #[error("`{0}` refers to something this document does not have")]
    Dangling(String),
    #[error("`{0}` refers to itself")]
    Circular(String),
}

impl<'d> Document<'d> {
    /// Finds the value that `reference` means, which may be a reference again.
    pub(super) fn target(self, reference: &str) -> Result<&'d Value, RefProblem> {
        let Some(fragment) = reference.strip_prefix('#') else {
            return Err(RefProblem::External(shown(reference)));
        };
        let dangling = || RefProblem::Dangling(shown(reference));
        let pointer = decode(fragment).ok_or_else(dangling)?;
        self.root.pointer(&pointer).ok_or_else(dangling)
    }

    /// `value`, or what it refers to in the end.
    pub(super) fn follow(self, value: &'d Value) -> Result<&'d Value, RefProblem> {
        let mut value = value;
        for _ in 0..HOPS_MAX {
            match reference(value) {
                Some(reference) => value = self.target(reference)?,
                None => return Ok(value),
            }
        }
        Err(RefProblem::Circular(shown(reference(value).unwrap_or_default())))
    }
}

pub(super) fn reference(value: &Value) -> Option<&str> {
    value.get("$ref")?.as_str()
}

/// A name for what a reference means: the last part of `#/components/schemas/User`, otherwise made from the
/// parts that say something, such as `UsersPost201` for `#/paths/~1users/post/responses/201/content/…/schema`.
/// Consists of letters, digits, `.`, `-` and `_`, as components are named in OpenAPI.
pub(super) fn name_of(reference: &str) -> String {
    const PLUMBING: &[&str] = &[
        "paths",
        "components",
        "schemas",
        "responses",
        "content",
        "schema",
        "properties",
        "parameters",
        "items",
    ];
    let pointer = decode(reference.trim_start_matches('#')).unwrap_or_default();
    let parts: Vec<String> =
        pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
    let name = match &parts[..] {
        [components, schemas, name] if components == "components" && schemas == "schemas" => name.clone(),
        [definitions, name] if definitions == "definitions" => name.clone(),
        _ => parts
            .iter()
            .filter(|part| !PLUMBING.contains(&part.as_str()) && !part.contains("application/"))
            .map(|part| words(part))
            .collect(),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' };
    let name: String = name.chars().map(plain).take(NAME_CHARS_MAX).collect();
    if name.is_empty() { "Schema".into() } else { name }
}

/// The longest name of a schema; longer ones are cut.
const NAME_CHARS_MAX: usize = 128;

/// `/users/{id}` as `UsersId`.
pub(super) fn words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.fold(String::new(), |text, word| {
        let (first, rest) = word.split_at(1);
        text + &first.to_ascii_uppercase() + rest
    })
}
