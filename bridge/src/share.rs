//! Names for inline schemas: those that occur more than once, and those that nest too deeply.
//!
//! [`share`] first counts equal shapes, then moves each that occurs again to the named schemas and leaves a
//! reference; a shape that a named schema has already is referred to there. What stands deeper than
//! [`INLINE_DEPTH_MAX`] is moved as well, so that everything that goes through a schema has few levels to go.
//! The meaning stays the same, and doing it twice changes nothing more. Names come from titles, properties and
//! operations, so that the same description always gets the same ones.

use std::collections::HashMap;

use serde_json::Value;

use crate::{
    description::{ApiDescription, NamedSchema, Schema, SchemaId, Shape},
    limits::{SCHEMAS_MAX, VALUE_DEPTH_MAX},
    names::TakenNames,
    walk::{SchemaPath, WalkStep, walk_below, walk_operations},
};

/// Inline schemas within each other. Each takes up to five levels of brackets of the 127 that a document may have.
const INLINE_DEPTH_MAX: usize = 12;

/// Gives names to shapes that occur more than once or too deep.
pub fn share(description: &mut ApiDescription) {
    drop_deep_examples(description);
    let mut counts: HashMap<String, usize> = HashMap::new();
    visit_all(description, &mut |schema, _| {
        let Some(key) = key(&schema.shape) else { return WalkStep::Descend };
        let count = counts.entry(key).or_default();
        *count += 1;
        // What is inside an equal shape is counted once: it moves together with the shape.
        if *count == 1 { WalkStep::Descend } else { WalkStep::Skip }
    });
    let mut moves = Moves::new(description, counts);
    visit_all(description, &mut |schema, at| moves.visit(schema, at));
    // Visiting what was moved can move more.
    while let Some(mut named) = moves.unvisited.pop_front() {
        let at = SchemaPath { hint: &named.name.clone(), depth: 0 };
        walk_below(&mut named.schema, at, &mut |schema, at| moves.visit(schema, at));
        description.schemas.push(named);
    }
}

/// Every schema that is not itself a named one.
fn visit_all(
    description: &mut ApiDescription,
    visit: &mut dyn FnMut(&mut Schema, SchemaPath<'_>) -> WalkStep,
) {
    walk_operations(description, visit);
    for named in &mut description.schemas {
        walk_below(&mut named.schema, SchemaPath { hint: &named.name, depth: 0 }, visit);
    }
}

/// The shape as text, when it is worth a name.
fn key(shape: &Shape) -> Option<String> {
    match shape {
        Shape::Object(object) if !object.properties.is_empty() => serde_json::to_string(shape).ok(),
        Shape::OneOf(one_of) if one_of.variants.len() > 1 => serde_json::to_string(shape).ok(),
        _ => None,
    }
}

struct Moves {
    counts: HashMap<String, usize>,
    /// Shapes that have a name.
    named: HashMap<String, SchemaId>,
    names: TakenNames,
    /// Moved here, to be appended to the named schemas in this order.
    unvisited: std::collections::VecDeque<NamedSchema>,
    schemas: usize,
}

impl Moves {
    fn new(description: &ApiDescription, counts: HashMap<String, usize>) -> Self {
        let mut named = HashMap::new();
        for (index, NamedSchema { schema, .. }) in description.schemas.iter().enumerate() {
            let is_plain = !schema.nullable && schema.choices.is_empty();
            if let (true, Some(key), Ok(index)) = (is_plain, key(&schema.shape), u32::try_from(index)) {
                named.entry(key).or_insert(SchemaId(index));
            }
        }
        let names = description.schemas.iter().map(|named| named.name.clone()).collect();
        let unvisited = std::collections::VecDeque::new();
        Self { counts, named, names, unvisited, schemas: description.schemas.len() }
    }

    fn visit(&mut self, schema: &mut Schema, at: SchemaPath<'_>) -> WalkStep {
        let key = key(&schema.shape);
        if let Some(id) = key.as_ref().and_then(|key| self.named.get(key)) {
            schema.shape = Shape::Ref(*id);
            return WalkStep::Skip;
        }
        let occurs_again =
            key.as_ref().is_some_and(|key| self.counts.get(key).is_some_and(|count| *count > 1));
        let is_deep = at.depth >= INLINE_DEPTH_MAX
            && matches!(schema.shape, Shape::Array(_) | Shape::Object(_) | Shape::OneOf(_));
        if !(occurs_again || is_deep) || self.schemas >= SCHEMAS_MAX {
            return WalkStep::Descend;
        }
        let Ok(index) = u32::try_from(self.schemas) else { return WalkStep::Descend };
        self.schemas += 1;
        let hint = if schema.title.is_empty() { at.hint } else { &schema.title };
        let name = self.names.unique(&camel(hint), "");
        let shape = std::mem::replace(&mut schema.shape, Shape::Ref(SchemaId(index)));
        self.unvisited.push_back(NamedSchema { name, schema: Schema::of(shape) });
        if let Some(key) = key {
            self.named.insert(key, SchemaId(index));
        }
        WalkStep::Skip
    }
}

/// `list_planets answer` becomes `ListPlanetsAnswer`.
fn camel(hint: &str) -> String {
    let mut name = String::new();
    for word in hint.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let mut characters = word.chars();
        name.extend(characters.next().into_iter().flat_map(char::to_uppercase));
        name.push_str(characters.as_str());
    }
    let name: String = name.chars().take(64).collect();
    if name.is_empty() { "Shape".into() } else { name }
}

/// Examples and defaults are shown and never needed; those that nest too deeply would cost the whole document.
fn drop_deep_examples(description: &mut ApiDescription) {
    let drop_deep = |value: &mut Option<Value>| {
        if value.as_ref().is_some_and(|value| nests_deeper_than(value, VALUE_DEPTH_MAX)) {
            *value = None;
        }
    };
    for operation in &mut description.operations {
        operation.parameters.iter_mut().for_each(|parameter| drop_deep(&mut parameter.example));
        operation.body.iter_mut().for_each(|body| drop_deep(&mut body.example));
        let contents = operation.responses.iter_mut().filter_map(|response| response.content.as_mut());
        contents.for_each(|content| drop_deep(&mut content.example));
    }
    let clear = |schema: &mut Schema| {
        drop_deep(&mut schema.example);
        drop_deep(&mut schema.default);
    };
    description.schemas.iter_mut().for_each(|named| clear(&mut named.schema));
    visit_all(description, &mut |schema, _| {
        clear(schema);
        WalkStep::Descend
    });
}

fn nests_deeper_than(value: &Value, levels: usize) -> bool {
    let mut inside: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return false,
    };
    levels == 0 || inside.any(|value| nests_deeper_than(value, levels - 1))
}

#[cfg(test)]
mod tests;
