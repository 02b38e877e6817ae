//! The cost of a request, decided before it is answered.
//!
//! The document's fields are counted with its fragments expanded. An answer has at most that many fields for each
//! element of its lists, so [`ANSWER_FIELDS_MAX`] divided by the count is how many elements it may have, and resolvers
//! spend those. Introspection has lists of its own that no resolver of ours sees, so its nesting is limited here.
//!
//! Juniper has limited depth, tokens and the count itself before, and refused fragments that spread themselves; the
//! recursion here is as bounded as the document.

use std::collections::HashMap;

use juniper::parser::parse_document_source;
use juniper::{Definition, Document, Selection};

use super::schema::Schema;

/// About 4 MB of JSON. A thousand planets with every field, their stars and the stars' planets are 120,000.
const ANSWER_FIELDS_MAX: usize = 200_000;

/// Introspection fields that lead from a type to its parts and so, nested, from one type to many.
const INTROSPECTION_LISTS: [&str; 4] = ["fields", "inputFields", "interfaces", "possibleTypes"];
/// A type, its fields, and their types' fields; the standard introspection query nests them once.
const INTROSPECTION_NESTING_MAX: usize = 2;
/// The standard introspection query has one.
const INTROSPECTION_ROOTS_MAX: usize = 4;

/// The reason that a request is not even begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum CostError {
    #[error("`{}` may be nested {INTROSPECTION_NESTING_MAX} deep in introspection", INTROSPECTION_LISTS.join("`, `"))]
    IntrospectionNesting,
    #[error("a request may have `__schema` and `__type` {INTROSPECTION_ROOTS_MAX} times")]
    IntrospectionRoots,
}

/// Computes how many list elements the answer to a valid document may have.
pub(super) fn elements_max(query: &str, schema: &Schema) -> Result<usize, CostError> {
    // Whoever calls this has parsed the same text before, so that it always parses; it takes microseconds.
    let Ok(document) = parse_document_source(query, &schema.schema) else { return Ok(0) };
    let mut count = Count::of(&document);
    for definition in &document {
        if let Definition::Operation(operation) = definition {
            count.selections(&operation.item.selection_set, 0)?;
        }
    }
    if count.introspection_roots > INTROSPECTION_ROOTS_MAX {
        return Err(CostError::IntrospectionRoots);
    }
    Ok(ANSWER_FIELDS_MAX / count.fields.max(1))
}

struct Count<'d, S> {
    fragments: HashMap<&'d str, &'d [Selection<'d, S>]>,
    fields: usize,
    introspection_roots: usize,
}

impl<'d, S> Count<'d, S> {
    fn of(document: &'d Document<'d, S>) -> Self {
        let fragment = |definition: &'d Definition<'d, S>| match definition {
            Definition::Fragment(fragment) => Some((fragment.item.name.item, &*fragment.item.selection_set)),
            Definition::Operation(_) => None,
        };
        Self { fragments: document.iter().filter_map(fragment).collect(), fields: 0, introspection_roots: 0 }
    }

    /// Counts what is selected inside `nesting` introspection lists.
    fn selections(&mut self, selections: &'d [Selection<'d, S>], nesting: usize) -> Result<(), CostError> {
        for selection in selections {
            match selection {
                Selection::Field(field) => {
                    let field = &field.item;
                    self.fields += 1;
                    self.introspection_roots += usize::from(matches!(field.name.item, "__schema" | "__type"));
                    let nesting = nesting + usize::from(INTROSPECTION_LISTS.contains(&field.name.item));
                    if nesting > INTROSPECTION_NESTING_MAX {
                        return Err(CostError::IntrospectionNesting);
                    }
                    self.selections(field.selection_set.as_deref().unwrap_or_default(), nesting)?;
                }
                Selection::InlineFragment(inline) => self.selections(&inline.item.selection_set, nesting)?,
                Selection::FragmentSpread(spread) => {
                    let named = self.fragments.get(spread.item.name.item).copied();
                    self.selections(named.unwrap_or_default(), nesting)?;
                }
            }
        }
        Ok(())
    }
}
