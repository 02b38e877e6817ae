//! A [`Schema`] as JSON Schema (3.1) or as OpenAPI's older dialect of it (3.0.3).
//!
//! | | 3.1 | 3.0.3 |
//! |---|---|---|
//! | or null | `type: [T, "null"]` | `nullable: true` beside the type |
//! | reference or null | `anyOf` with `type: "null"` | `anyOf` with an enum of `null` |
//! | reference with more | members beside `$ref` | `allOf` around it |
//! | exclusive bound | `exclusiveMinimum: 1` | `minimum: 1, exclusiveMinimum: true` |
//! | example | `examples: [x]` | `example: x` |

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::{Version, markdown, names::NameAllocator};
use crate::{
    description::{
        ApiDescription, ArrayOf, NumberBounds, Object, OneOf, Schema, SchemaId, Shape, StringBounds,
    },
    fits::fits,
    steps::Steps,
};

/// Writes schemas, and remembers which named ones they refer to.
pub(super) struct SchemaWriter<'d> {
    pub(super) description: &'d ApiDescription,
    version: Version,
    /// By [`SchemaId`].
    names: Vec<String>,
    problem: String,
    problem_is_referred: bool,
    referred: BTreeSet<SchemaId>,
    unwritten: Vec<SchemaId>,
    /// For examples, of which the rest is left out.
    pub(super) steps: Steps,
}

/// Steps of all examples of a document: some hundred milliseconds, and many times what GitHub's REST API takes.
const EXAMPLE_STEPS_MAX: usize = 4_000_000;

impl<'d> SchemaWriter<'d> {
    pub(super) fn new(description: &'d ApiDescription, version: Version) -> Self {
        let mut taken = NameAllocator::default();
        let names = description.schemas.iter().map(|named| taken.unique(&named.name, "Schema")).collect();
        let problem = taken.unique("Problem", "Problem");
        let (referred, unwritten, steps) = (BTreeSet::new(), Vec::new(), Steps::new(EXAMPLE_STEPS_MAX));
        Self { description, version, names, problem, problem_is_referred: false, referred, unwritten, steps }
    }

    pub(super) fn problem_reference(&mut self) -> Value {
        self.problem_is_referred = true;
        json!({ "$ref": pointer(&self.problem) })
    }

    /// The named schemas that were referred to, in the description's order, and the network's problem.
    pub(super) fn into_components(mut self) -> Map<String, Value> {
        let mut written: Vec<(SchemaId, String, Value)> = Vec::new();
        let description = self.description;
        while let Some(id) = self.unwritten.pop() {
            let Some((named, name)) = description.schema(id).zip(self.name(id)) else { continue };
            written.push((id, name, self.write(&named.schema)));
        }
        written.sort_by_key(|(id, ..)| *id);
        let mut components: Map<_, _> = written.into_iter().map(|(_, name, schema)| (name, schema)).collect();
        if self.problem_is_referred {
            components.insert(self.problem, super::problems::schema(self.version));
        }
        components
    }

    fn name(&self, id: SchemaId) -> Option<String> {
        self.names.get(usize::try_from(id.0).ok()?).cloned()
    }

    /// Writes a schema with everything it says.
    pub(super) fn write(&mut self, schema: &Schema) -> Value {
        let mut written = self.shape(schema);
        if !schema.choices.is_empty() {
            let null = schema.nullable.then_some(Value::Null);
            written.insert("enum".into(), schema.choices.iter().cloned().chain(null).collect());
        }
        self.annotate(schema, &mut written);
        if self.version == Version::V30 && written.len() > 1 {
            // Everything beside a reference is ignored there.
            if let Some(reference) = written.shift_remove("$ref") {
                written.shift_insert(0, "allOf".into(), json!([{ "$ref": reference }]));
            }
        }
        written.into()
    }

    /// Tells whether a value can stand in the document as an example of `schema`. Tools follow a `$ref` wherever it
    /// stands, also in a value.
    pub(super) fn can_show(&mut self, schema: &Schema, value: &Value) -> bool {
        !has_reference(value) && fits(self.description, schema, value, &mut self.steps)
    }

    fn annotate(&mut self, schema: &Schema, written: &mut Map<String, Value>) {
        if !schema.title.is_empty() {
            written.insert("title".into(), schema.title.as_str().into());
        }
        if !schema.description.is_empty() {
            written.insert("description".into(), markdown(&schema.description).into());
        }
        if let Some(default) = schema.default.as_ref().filter(|value| self.can_show(schema, value)) {
            written.insert("default".into(), default.clone());
        }
        if let Some(example) = schema.example.as_ref().filter(|value| self.can_show(schema, value)) {
            match self.version {
                Version::V31 => written.insert("examples".into(), json!([example])),
                Version::V30 => written.insert("example".into(), example.clone()),
            };
        }
        if schema.deprecated {
            written.insert("deprecated".into(), true.into());
        }
    }

    fn shape(&mut self, schema: &Schema) -> Map<String, Value> {
        match &schema.shape {
            Shape::Any => Map::new(),
            Shape::Boolean => self.typed("boolean", schema.nullable),
            Shape::Integer(bounds) => self.number("integer", schema.nullable, bounds),
            Shape::Number(bounds) => self.number("number", schema.nullable, bounds),
            Shape::String(bounds) => self.string(schema.nullable, bounds),
            Shape::Array(array) => self.array(schema.nullable, array),
            Shape::Object(object) => self.object(schema.nullable, object),
            Shape::OneOf(one_of) => self.one_of(schema.nullable, one_of),
            Shape::Ref(id) => self.reference(schema, *id),
        }
    }

    fn typed(&self, name: &str, nullable: bool) -> Map<String, Value> {
        let mut written = Map::new();
        match (nullable, self.version) {
            (false, _) => {
                written.insert("type".into(), name.into());
            }
            (true, Version::V31) => {
                written.insert("type".into(), json!([name, "null"]));
            }
            (true, Version::V30) => {
                written.insert("type".into(), name.into());
                written.insert("nullable".into(), true.into());
            }
        }
        written
    }

    /// Only null. 3.0.3 has no type for it, and heeds `nullable` only beside a type.
    fn null(&self) -> Value {
        match self.version {
            Version::V31 => json!({ "type": "null" }),
            Version::V30 => json!({ "type": "string", "nullable": true, "enum": [null] }),
        }
    }

    fn number(&self, name: &str, nullable: bool, bounds: &NumberBounds) -> Map<String, Value> {
        let mut written = self.typed(name, nullable);
        if !bounds.format.is_empty() {
            written.insert("format".into(), bounds.format.as_str().into());
        }
        for (inclusive, exclusive, bound, is_exclusive) in [
            ("minimum", "exclusiveMinimum", &bounds.minimum, bounds.minimum_is_exclusive),
            ("maximum", "exclusiveMaximum", &bounds.maximum, bounds.maximum_is_exclusive),
        ] {
            let Some(bound) = bound else { continue };
            match (is_exclusive, self.version) {
                (false, _) => {
                    written.insert(inclusive.into(), bound.clone().into());
                }
                (true, Version::V31) => {
                    written.insert(exclusive.into(), bound.clone().into());
                }
                (true, Version::V30) => {
                    written.insert(inclusive.into(), bound.clone().into());
                    written.insert(exclusive.into(), true.into());
                }
            }
        }
        written
    }

    fn string(&self, nullable: bool, bounds: &StringBounds) -> Map<String, Value> {
        let mut written = self.typed("string", nullable);
        for (name, text) in [("format", &bounds.format), ("pattern", &bounds.pattern)] {
            if !text.is_empty() {
                written.insert(name.into(), text.as_str().into());
            }
        }
        for (name, length) in [("minLength", bounds.length_min), ("maxLength", bounds.length_max)] {
            if let Some(length) = length {
                written.insert(name.into(), length.into());
            }
        }
        written
    }

    fn array(&mut self, nullable: bool, array: &ArrayOf) -> Map<String, Value> {
        let mut written = self.typed("array", nullable);
        written.insert("items".into(), self.write(&array.items));
        for (name, count) in [("minItems", array.items_min), ("maxItems", array.items_max)] {
            if let Some(count) = count {
                written.insert(name.into(), count.into());
            }
        }
        written
    }

    fn object(&mut self, nullable: bool, object: &Object) -> Map<String, Value> {
        let mut written = self.typed("object", nullable);
        if !object.properties.is_empty() {
            let mut properties = Map::new();
            for property in &object.properties {
                properties.insert(property.name.clone(), self.write(&property.schema));
            }
            written.insert("properties".into(), properties.into());
        }
        let required = object.properties.iter().filter(|property| property.required);
        let required: Vec<_> = required.map(|property| property.name.as_str()).collect();
        if !required.is_empty() {
            written.insert("required".into(), required.into());
        }
        match &object.additional {
            None => {
                written.insert("additionalProperties".into(), false.into());
            }
            // This is what it means to say nothing.
            Some(additional) if **additional == Schema::default() => {}
            Some(additional) => {
                written.insert("additionalProperties".into(), self.write(additional));
            }
        }
        if object.exactly_one {
            written.insert("minProperties".into(), 1.into());
            written.insert("maxProperties".into(), 1.into());
        }
        written
    }

    fn one_of(&mut self, nullable: bool, one_of: &OneOf) -> Map<String, Value> {
        let mut written = Map::new();
        if one_of.variants.is_empty() {
            return written;
        }
        let mut variants: Vec<Value> = one_of.variants.iter().map(|variant| self.write(variant)).collect();
        let pointers: Option<Vec<String>> = variants.iter().map(pure_reference).collect();
        if nullable {
            variants.push(self.null());
        }
        written.insert("anyOf".into(), variants.into());
        // Between alternatives without names OpenAPI's discriminator cannot decide.
        if let (Some(discriminator), Some(pointers)) = (&one_of.discriminator, pointers) {
            let target = |index: u32| pointers.get(usize::try_from(index).ok()?);
            let mapping: Map<String, Value> = discriminator
                .mapping
                .iter()
                .filter_map(|(value, index)| Some((value.clone(), target(*index)?.as_str().into())))
                .collect();
            let mut written_discriminator = json!({ "propertyName": discriminator.property });
            if !mapping.is_empty() {
                written_discriminator["mapping"] = mapping.into();
            }
            written.insert("discriminator".into(), written_discriminator);
        }
        written
    }

    fn reference(&mut self, schema: &Schema, id: SchemaId) -> Map<String, Value> {
        let mut written = Map::new();
        // A reference that leads nowhere, or in a circle, says nothing about values.
        let Some(name) = self.description.resolve(schema).and_then(|_| self.name(id)) else { return written };
        if self.referred.insert(id) {
            self.unwritten.push(id);
        }
        let reference = pointer(&name);
        if schema.nullable {
            written.insert("anyOf".into(), json!([{ "$ref": reference }, self.null()]));
        } else {
            written.insert("$ref".into(), reference.into());
        }
        written
    }
}

fn has_reference(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_reference),
        Value::Object(members) => members.iter().any(|(name, value)| name == "$ref" || has_reference(value)),
        _ => false,
    }
}

fn pointer(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

/// Returns the target of a schema that is a reference and nothing else.
fn pure_reference(schema: &Value) -> Option<String> {
    let members = schema.as_object().filter(|members| members.len() == 1)?;
    Some(members.get("$ref")?.as_str()?.to_owned())
}
