//! Going through every inline schema of a description, in the order of the description.

use crate::description::{ApiDescription, Operation, Schema, Shape};

/// The next step below a schema that was visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkStep {
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

/// Bytes of an id or a property's name that a hint repeats: a stranger's may have megabytes, and stands above many
/// schemas. Names made of hints are shorter.
const HINT_BYTES_MAX: usize = 256;

/// The beginning of a name.
fn beginning(name: &str) -> &str {
    &name[..name.floor_char_boundary(HINT_BYTES_MAX)]
}

/// Visits `schema`, then what is in it. Named schemas are not entered.
pub fn walk(
    schema: &mut Schema,
    at: SchemaPath<'_>,
    visit: &mut dyn FnMut(&mut Schema, SchemaPath<'_>) -> WalkStep,
) {
    if visit(schema, at) == WalkStep::Skip {
        return;
    }
    walk_below(schema, at, visit);
}

/// Visits what is in `schema`.
pub fn walk_below(
    schema: &mut Schema,
    at: SchemaPath<'_>,
    visit: &mut dyn FnMut(&mut Schema, SchemaPath<'_>) -> WalkStep,
) {
    let inside = |name| SchemaPath { hint: beginning(name), depth: at.depth + 1 };
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
    visit: &mut dyn FnMut(&mut Schema, SchemaPath<'_>) -> WalkStep,
) {
    for operation in &mut description.operations {
        let at = |name| SchemaPath { hint: beginning(name), depth: 0 };
        for parameter in &mut operation.parameters {
            walk(&mut parameter.schema, at(&parameter.name), visit);
        }
        if let Some(body) = &mut operation.body {
            let hint = format!("{} request", beginning(&operation.id));
            walk(&mut body.schema, SchemaPath { hint: &hint, depth: 0 }, visit);
        }
        walk_answers(operation, visit);
    }
}

pub fn walk_answers(
    operation: &mut Operation,
    visit: &mut dyn FnMut(&mut Schema, SchemaPath<'_>) -> WalkStep,
) {
    for response in &mut operation.responses {
        let what = if response.status.is_success() { "answer" } else { "error" };
        let hint = format!("{} {what}", beginning(&operation.id));
        if let Some(content) = &mut response.content {
            walk(&mut content.schema, SchemaPath { hint: &hint, depth: 0 }, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn no_hint_repeats_a_strangers_long_name() {
        let long = "é".repeat(10_000);
        let inner = json!({ "shape": { "object": { "properties": [{ "name": long, "schema": { "shape": "any" } }] } } });
        let content = json!({ "media_type": "application/json", "schema": inner });
        let body = json!({ "kind": "json", "media_type": "application/json", "schema": inner });
        let parameter = json!({ "name": long, "in": "query", "schema": inner });
        let responses = json!([{ "status": { "code": 200 }, "content": content }]);
        let operation = json!({
            "method": "POST", "path": "/a", "id": long,
            "parameters": [parameter], "body": body, "responses": responses,
        });
        let described = json!({ "title": "", "operations": [operation] });
        let mut description: ApiDescription = serde_json::from_value(described).expect("a description");
        let mut hints = Vec::new();
        walk_operations(&mut description, &mut |_, at| {
            hints.push(at.hint.len());
            WalkStep::Descend
        });
        let (name, request, answer) = (HINT_BYTES_MAX, HINT_BYTES_MAX + 8, HINT_BYTES_MAX + 7);
        assert_eq!(hints, [name, name, request, name, answer, name]);
    }
}
