//! Operation ids: kept when there are any, made otherwise, always unique.

use super::{DocumentReader, refs::words};
use crate::{description::Operation, names::TakenNames};

/// A longer id is of no use to anyone.
const ID_CHARS_MAX: usize = 128;

impl DocumentReader<'_> {
    /// Makes ids unique: first those the document has, so that they change least; then those that are missing.
    pub(super) fn name_operations(&mut self, operations: &mut [Operation]) {
        let mut names = TakenNames::default();
        for operation in operations.iter_mut().filter(|operation| !operation.id.is_empty()) {
            let unique = names.unique(&operation.id, "");
            if unique != operation.id {
                let place = format!("{} {}", operation.method, operation.path);
                let what = format!("another operation has the id {}; this one is {unique}", operation.id);
                self.report.repaired.add(place, what);
                operation.id = unique;
            }
        }
        let mut made = 0;
        for operation in operations.iter_mut().filter(|operation| operation.id.is_empty()) {
            operation.id = names.unique(&made_id(operation), "");
            made += 1;
        }
        if made > 0 {
            let what = format!("{made} operations had no id and were named after method and path");
            self.report.repaired.add("document", what);
        }
    }
}

/// An id as the document has it, without what would disturb a line of text.
pub(super) fn cleaned(id: &str) -> String {
    id.trim().chars().filter(|c| !c.is_control()).take(ID_CHARS_MAX).collect()
}

/// `GET /users/{id}.json` as `getUsersByIdJson`.
fn made_id(operation: &Operation) -> String {
    let mut id = operation.method.as_str().to_ascii_lowercase();
    let path = operation.path.replace('{', "/\u{0}").replace('}', "/");
    for part in path.split('/') {
        match part.strip_prefix('\u{0}') {
            Some(parameter) => {
                id += "By";
                id += &words(parameter);
            }
            None => id += &words(part),
        }
    }
    if operation.path == "/" {
        id += "Root";
    }
    id.chars().take(ID_CHARS_MAX).collect()
}
