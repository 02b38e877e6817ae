//! Going through every inline schema of a description, in the order of the description.

use crate::description::{ApiDescription, Operation, Schema, Shape};

/// The next step below a schema that was visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    Descend,
    Skip,
}

/// The place of a schema.
#[derive(Debug, Clone, Copy)]
pub struct SchemaPath<'n> {
    /// Words that tell what it is for, such as `listPlanets answer` or the name of a property.
    pub hint: &'n str,
    /// Schemas around it.
    pub depth: usize,
}

/// Visits `schema`, then what is in it. Named schemas are not entered.
pub fn walk(
    schema: &mut Schema,
    at: SchemaPath<'_>,
    visit: &mut dyn FnMut(&mut Schema, SchemaPath<'_>) -> Then,
) {
    if visit(schema, at) == Then::Skip {
        return;
    }
    walk_below(schema, at, visit);
}

/// Visits what is in `schema`.
pub fn walk_below(
    schema: &mut Schema,
    at: SchemaPath<'_>,
    visit: &mut dyn FnMut(&mut Schema, SchemaPath<'_>) -> Then,
) {
    let inside = |hint| SchemaPath { hint, depth: at.depth + 1 };
    match &mut schema.shape {
        Shape::Array(array) => walk(&mut array.items, inside(at.hint), visit),
        Shape::Object(object) => {
            for property in &mut object.properties {
                walk(&mut property.schema, inside(&property.name), visit);
            }
            if let Some(additional) = &mut object.additional {
                walk(additional, inside(at.hint), visit);
            }
        }
        Shape::OneOf(one_of) => {
            for variant in &mut one_of.variants {
                walk(variant, inside(at.hint), visit);
            }
        }
        Shape::Any
        | Shape::Boolean
        | Shape::Integer(_)
        | Shape::Number(_)
        | Shape::String(_)
        | Shape::Ref(_) => {}
    }
}

/// Visits the schemas of all operations.
pub fn walk_operations(
    description: &mut ApiDescription,
    visit: &mut dyn FnMut(&mut Schema, SchemaPath<'_>) -> Then,
) {
    for operation in &mut description.operations {
        let at = |hint| SchemaPath { hint, depth: 0 };
        let id = operation.id.clone();
        for parameter in &mut operation.parameters {
            walk(&mut parameter.schema, at(&parameter.name), visit);
        }
        if let Some(body) = &mut operation.body {
            walk(&mut body.schema, at(&format!("{id} request")), visit);
        }
        walk_answers(operation, visit);
    }
}

/// Visits the schemas of an operation's answers.
pub fn walk_answers(operation: &mut Operation, visit: &mut dyn FnMut(&mut Schema, SchemaPath<'_>) -> Then) {
    for response in &mut operation.responses {
        let what = if response.status.is_success() { "answer" } else { "error" };
        let hint = format!("{} {what}", operation.id);
        if let Some(content) = &mut response.content {
            walk(&mut content.schema, SchemaPath { hint: &hint, depth: 0 }, visit);
        }
    }
}
