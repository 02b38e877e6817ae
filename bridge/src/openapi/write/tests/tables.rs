//! What a schema becomes in each version.

use serde_json::{Value, json};

use super::super::{Version, schemas::SchemaWriter};
use crate::description::{ApiDescription, NamedSchema, Schema, SchemaId};

fn written(version: Version, schema: &Value) -> Value {
    let named = |name: &str, schema| NamedSchema { name: name.into(), schema };
    let schemas = vec![
        named("Planet", Schema::string()),
        named("Star", Schema::string()),
        named("Circle", Schema::reference(SchemaId(2))),
    ];
    let description = ApiDescription { schemas, ..ApiDescription::default() };
    let schema: Schema = serde_json::from_value(schema.clone()).expect("a schema in its own form");
    SchemaWriter::new(&description, version).write(&schema)
}

const PLANET: &str = "#/components/schemas/Planet";
const STAR: &str = "#/components/schemas/Star";

#[test]
fn schemas_are_written_as_their_version_wants_them() {
    let null_30 = || json!({ "type": "string", "nullable": true, "enum": [null] });
    let planet = || json!({ "$ref": PLANET });
    let star = || json!({ "$ref": STAR });
    let to_planet = || json!({ "ref": 0 });
    let alternatives = || json!([{ "shape": { "ref": 0 } }, { "shape": { "ref": 1 } }]);
    let bounds =
        || json!({ "minimum": 1, "minimum_is_exclusive": true, "maximum": 9, "maximum_is_exclusive": true });
    let table = [
        // Nullability
        (json!({ "shape": "any" }), json!({}), json!({})),
        (json!({ "shape": "any", "nullable": true }), json!({}), json!({})),
        (json!({ "shape": "boolean" }), json!({ "type": "boolean" }), json!({ "type": "boolean" })),
        (
            json!({ "shape": { "string": {} }, "nullable": true }),
            json!({ "type": ["string", "null"] }),
            json!({ "type": "string", "nullable": true }),
        ),
        // References
        (json!({ "shape": to_planet() }), planet(), planet()),
        (
            json!({ "shape": to_planet(), "nullable": true }),
            json!({ "anyOf": [planet(), { "type": "null" }] }),
            json!({ "anyOf": [planet(), null_30()] }),
        ),
        (
            json!({ "shape": to_planet(), "description": "Home", "default": "Earth" }),
            json!({ "$ref": PLANET, "description": "Home", "default": "Earth" }),
            json!({ "allOf": [planet()], "description": "Home", "default": "Earth" }),
        ),
        (
            json!({ "shape": to_planet(), "nullable": true, "description": "Home", "default": null }),
            json!({ "anyOf": [planet(), { "type": "null" }], "description": "Home", "default": null }),
            json!({ "anyOf": [planet(), null_30()], "description": "Home", "default": null }),
        ),
        (json!({ "shape": { "ref": 2 } }), json!({}), json!({})),
        (json!({ "shape": { "ref": 3 }, "nullable": true }), json!({}), json!({})),
        // Choices
        (
            json!({ "shape": { "string": {} }, "choices": ["a", "b"] }),
            json!({ "type": "string", "enum": ["a", "b"] }),
            json!({ "type": "string", "enum": ["a", "b"] }),
        ),
        (
            json!({ "shape": { "string": {} }, "nullable": true, "choices": ["a"] }),
            json!({ "type": ["string", "null"], "enum": ["a", null] }),
            json!({ "type": "string", "nullable": true, "enum": ["a", null] }),
        ),
        (
            json!({ "shape": to_planet(), "choices": ["Earth"] }),
            json!({ "$ref": PLANET, "enum": ["Earth"] }),
            json!({ "allOf": [planet()], "enum": ["Earth"] }),
        ),
        // Alternatives
        (
            json!({ "shape": { "oneOf": { "variants": alternatives() } }, "nullable": true }),
            json!({ "anyOf": [planet(), star(), { "type": "null" }] }),
            json!({ "anyOf": [planet(), star(), null_30()] }),
        ),
        (
            json!({ "shape": { "oneOf": { "variants": alternatives(),
                "discriminator": { "property": "kind", "mapping": [["p", 0], ["s", 1], ["?", 2]] } } } }),
            json!({ "anyOf": [planet(), star()],
                "discriminator": { "propertyName": "kind", "mapping": { "p": PLANET, "s": STAR } } }),
            json!({ "anyOf": [planet(), star()],
                "discriminator": { "propertyName": "kind", "mapping": { "p": PLANET, "s": STAR } } }),
        ),
        (
            json!({ "shape": { "oneOf": { "variants": [{ "shape": to_planet() }, { "shape": "boolean" }],
                "discriminator": { "property": "kind" } } } }),
            json!({ "anyOf": [planet(), { "type": "boolean" }] }),
            json!({ "anyOf": [planet(), { "type": "boolean" }] }),
        ),
        (json!({ "shape": { "oneOf": { "variants": [] } } }), json!({}), json!({})),
        // Bounds
        (
            json!({ "shape": { "integer": bounds() } }),
            json!({ "type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 9 }),
            json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true, "maximum": 9, "exclusiveMaximum": true }),
        ),
        (
            json!({ "shape": { "number": { "minimum": 0.5, "format": "double" } } }),
            json!({ "type": "number", "format": "double", "minimum": 0.5 }),
            json!({ "type": "number", "format": "double", "minimum": 0.5 }),
        ),
        (
            json!({ "shape": { "string": { "format": "date", "length_min": 1, "length_max": 2, "pattern": "a" } } }),
            json!({ "type": "string", "format": "date", "pattern": "a", "minLength": 1, "maxLength": 2 }),
            json!({ "type": "string", "format": "date", "pattern": "a", "minLength": 1, "maxLength": 2 }),
        ),
        (
            json!({ "shape": { "array": { "items": { "shape": "boolean" }, "items_min": 1, "items_max": 2 } } }),
            json!({ "type": "array", "items": { "type": "boolean" }, "minItems": 1, "maxItems": 2 }),
            json!({ "type": "array", "items": { "type": "boolean" }, "minItems": 1, "maxItems": 2 }),
        ),
        // Objects
        (
            json!({ "shape": { "object": { "properties": [{ "name": "a", "required": true, "schema": { "shape": "any" } }] } } }),
            json!({ "type": "object", "properties": { "a": {} }, "required": ["a"], "additionalProperties": false }),
            json!({ "type": "object", "properties": { "a": {} }, "required": ["a"], "additionalProperties": false }),
        ),
        (
            json!({ "shape": { "object": { "additional": { "shape": "any" } } } }),
            json!({ "type": "object" }),
            json!({ "type": "object" }),
        ),
        (
            json!({ "shape": { "object": { "additional": { "shape": "boolean" }, "exactly_one": true } } }),
            json!({ "type": "object", "additionalProperties": { "type": "boolean" }, "minProperties": 1, "maxProperties": 1 }),
            json!({ "type": "object", "additionalProperties": { "type": "boolean" }, "minProperties": 1, "maxProperties": 1 }),
        ),
        // Examples and defaults, which must fit
        (
            json!({ "shape": { "integer": {} }, "default": 1, "example": 2, "deprecated": true, "title": "Count" }),
            json!({ "type": "integer", "title": "Count", "default": 1, "examples": [2], "deprecated": true }),
            json!({ "type": "integer", "title": "Count", "default": 1, "example": 2, "deprecated": true }),
        ),
        (
            json!({ "shape": "any", "default": { "$ref": "#/x" }, "example": [{ "$ref": "#/x" }] }),
            json!({}),
            json!({}),
        ),
        (
            json!({ "shape": { "integer": {} }, "default": "1", "example": 2.5 }),
            json!({ "type": "integer" }),
            json!({ "type": "integer" }),
        ),
    ];
    for (schema, in_31, in_30) in table {
        assert_eq!(written(Version::V31, &schema), in_31, "3.1: {schema}");
        assert_eq!(written(Version::V30, &schema), in_30, "3.0.3: {schema}");
    }
}
