//! Changes that a newer reading of an API brings its callers.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::description::{
    ApiDescription, Body, Content, Method, Operation, Parameter, Response, Schema, Shape,
};

/// References within references that a difference is seen through. Every round looks at every schema once,
/// however they refer to each other.
const ROUNDS: usize = 6;

/// Differences between two readings, operation by operation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// `GET /planets`
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub changed: Vec<Change>,
}

/// The differences in one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub operation: String,
    /// One sentence each.
    pub what: Vec<String>,
}

impl Changes {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// Compares what callers see of `old` and `new`; texts do not count.
pub fn changes(old: &ApiDescription, new: &ApiDescription) -> Changes {
    let (old_outlines, new_outlines) = (Outlines::of(old), Outlines::of(new));
    let (in_old, in_new) = (by_name(old), by_name(new));
    let mut changes = Changes::default();
    for operation in &new.operations {
        match in_old.get(&key(operation)) {
            None => changes.added.push(name(operation)),
            Some(before) => {
                let what = differences((old, &old_outlines), before, (new, &new_outlines), operation);
                if !what.is_empty() {
                    changes.changed.push(Change { operation: name(operation), what });
                }
            }
        }
    }
    let gone = old.operations.iter().filter(|operation| !in_new.contains_key(&key(operation)));
    changes.removed.extend(gone.map(name));
    changes
}

fn name(operation: &Operation) -> String {
    format!("{} {}", operation.method, operation.path)
}

fn key(operation: &Operation) -> (Method, &str) {
    (operation.method, &operation.path)
}

/// A stranger's description may have thousands of operations: each is found at once.
fn by_name(api: &ApiDescription) -> HashMap<(Method, &str), &Operation> {
    api.operations.iter().map(|operation| (key(operation), operation)).collect()
}

fn differences(
    (old, old_outlines): (&ApiDescription, &Outlines),
    before: &Operation,
    (new, new_outlines): (&ApiDescription, &Outlines),
    after: &Operation,
) -> Vec<String> {
    let mut what = Vec::new();
    let find = |operation: &'_ Operation, like: &Parameter| {
        operation.parameters.iter().position(|p| p.name == like.name && p.place == like.place)
    };
    for parameter in &after.parameters {
        let shown = format!("parameter `{}`", crate::shown(&parameter.name));
        let Some(earlier) = find(before, parameter).and_then(|i| before.parameters.get(i)) else {
            let required = if parameter.required { "required " } else { "" };
            what.push(format!("{required}{shown} added"));
            continue;
        };
        if parameter.required != earlier.required {
            what.push(format!(
                "{shown} is {} required",
                if parameter.required { "now" } else { "no longer" }
            ));
        }
        if new_outlines.outline(&parameter.schema) != old_outlines.outline(&earlier.schema) {
            let (from, to) = (old.type_name(&earlier.schema), new.type_name(&parameter.schema));
            let (from, to) = (crate::shown(&from), crate::shown(&to));
            what.push(if from == to {
                format!("{shown} accepts different values")
            } else {
                format!("{shown} changed from {from} to {to}")
            });
        }
    }
    for parameter in before.parameters.iter().filter(|parameter| find(after, parameter).is_none()) {
        what.push(format!("parameter `{}` removed", crate::shown(&parameter.name)));
    }
    let body = |outlines: &Outlines, body: &Option<Body>| {
        body.as_ref().map(|body| {
            (body.media_type.clone(), body.also.clone(), body.required, outlines.outline(&body.schema))
        })
    };
    if body(old_outlines, &before.body) != body(new_outlines, &after.body) {
        what.push("the body changed".to_owned());
    }
    if old_outlines.answers(before) != new_outlines.answers(after) {
        what.push("the answer changed".to_owned());
    }
    if before.deprecated != after.deprecated {
        what.push(if after.deprecated { "now deprecated" } else { "no longer deprecated" }.to_owned());
    }
    what
}

/// Hashes of schemas, without their texts and names.
struct Outlines(Vec<u64>);

impl Outlines {
    fn of(api: &ApiDescription) -> Self {
        let mut outlines = Self(vec![0; api.schemas.len()]);
        for _ in 0..ROUNDS {
            let next = api.schemas.iter().map(|named| hash(&outlines.outline(&named.schema))).collect();
            outlines = Self(next);
        }
        outlines
    }

    fn answers(&self, operation: &Operation) -> Vec<(String, Option<(String, Value)>)> {
        let content = |content: &Content| (content.media_type.clone(), self.outline(&content.schema));
        let response =
            |response: &Response| (response.status.to_string(), response.content.as_ref().map(content));
        operation.responses.iter().map(response).collect()
    }

    fn outline(&self, schema: &Schema) -> Value {
        let shape = match &schema.shape {
            Shape::Any => json!("any"),
            Shape::Boolean => json!("boolean"),
            Shape::Integer(bounds) => json!({ "integer": bounds }),
            Shape::Number(bounds) => json!({ "number": bounds }),
            Shape::String(bounds) => json!({ "string": bounds }),
            Shape::Array(array) => json!([self.outline(&array.items), array.items_min, array.items_max]),
            Shape::Object(object) => {
                let mut members: Vec<_> = object
                    .properties
                    .iter()
                    .map(|property| (&property.name, property.required, self.outline(&property.schema)))
                    .collect();
                members.sort_by_key(|(name, ..)| *name);
                let others = object.additional.as_deref().map(|schema| self.outline(schema));
                json!({ "members": members, "others": others, "one": object.exactly_one })
            }
            Shape::OneOf(one_of) => {
                json!({ "one of": one_of.variants.iter().map(|schema| self.outline(schema)).collect::<Vec<_>>() })
            }
            Shape::Ref(id) => json!(usize::try_from(id.0).ok().and_then(|index| self.0.get(index))),
        };
        json!([shape, schema.nullable, schema.choices])
    }
}

fn hash(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::{NamedSchema, SchemaId};

    fn operation(path: &str, parameters: Vec<Parameter>) -> Operation {
        Operation {
            method: Method::Get,
            path: path.to_owned(),
            id: path.to_owned(),
            parameters,
            ..Operation::default()
        }
    }

    fn parameter(name: &str, schema: Schema, required: bool) -> Parameter {
        Parameter { name: name.to_owned(), required, schema, ..Parameter::default() }
    }

    fn api(operations: Vec<Operation>) -> ApiDescription {
        ApiDescription { operations, ..ApiDescription::default() }
    }

    #[test]
    fn a_reading_is_compared_with_the_one_before() {
        let old = api(vec![
            operation("/a", vec![]),
            operation(
                "/b",
                vec![parameter("n", Schema::integer(), false), parameter("o", Schema::string(), false)],
            ),
            operation("/c", vec![]),
        ]);
        let new = api(vec![
            operation(
                "/b",
                vec![parameter("n", Schema::string(), true), parameter("p", Schema::string(), true)],
            ),
            operation("/c", vec![]),
            operation("/d", vec![]),
        ]);
        let found = changes(&old, &new);
        assert_eq!(found.added, ["GET /d"]);
        assert_eq!(found.removed, ["GET /a"]);
        assert_eq!(found.changed.len(), 1);
        assert_eq!(
            found.changed[0].what,
            [
                "parameter `n` is now required",
                "parameter `n` changed from integer to string",
                "required parameter `p` added",
                "parameter `o` removed",
            ]
        );
        assert!(changes(&new, &new).is_empty());
    }

    #[test]
    fn names_of_schemas_are_cut_in_what_is_told() {
        let named = |name: &str| NamedSchema { name: name.repeat(100_000), schema: Schema::string() };
        let of = |name| ApiDescription {
            schemas: vec![named(name)],
            ..api(vec![operation(
                "/a",
                vec![parameter("p", Schema::array(Schema::reference(SchemaId(0))), false)],
            )])
        };
        let integers = ApiDescription {
            schemas: vec![NamedSchema { schema: Schema::integer(), ..named("b") }],
            ..of("b")
        };
        let told = format!("{:?}", changes(&of("a"), &integers));
        assert!(told.contains("aaa") && told.len() < 1_000, "{} bytes", told.len());
    }
}
