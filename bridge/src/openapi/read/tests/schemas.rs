//! One table for each part of JSON Schema.

use serde_json::{Value, json};

use super::{neutral, says, schema, schema_in};
use crate::description::{Schema, Shape};

#[test]
fn types_and_bounds() {
    let integer = |bounds: Value| json!({ "shape": { "integer": bounds } });
    let any_object = json!({ "shape": { "object": { "additional": { "shape": "any" } } } });
    let table = [
        (json!(true), json!({ "shape": "any" })),
        (json!({}), json!({ "shape": "any" })),
        (json!({ "type": "boolean" }), json!({ "shape": "boolean" })),
        (
            json!({ "type": "string", "format": "binary" }),
            json!({ "shape": { "string": { "format": "binary" } } }),
        ),
        (json!({ "pattern": "^a$" }), json!({ "shape": { "string": { "pattern": "^a$" } } })),
        (
            json!({ "type": "string", "contentEncoding": "base64" }),
            json!({ "shape": { "string": { "format": "byte" } } }),
        ),
        (json!({ "type": ["string", "null"] }), json!({ "shape": { "string": {} }, "nullable": true })),
        (json!({ "type": "null" }), json!({ "shape": "any" , "nullable": true })),
        (
            json!({ "type": "integer", "minimum": 1, "exclusiveMinimum": true }),
            integer(json!({ "minimum": 1, "minimum_is_exclusive": true })),
        ),
        (
            json!({ "type": "integer", "exclusiveMinimum": 0 }),
            integer(json!({ "minimum": 0, "minimum_is_exclusive": true })),
        ),
        (json!({ "type": "integer", "minimum": 5, "exclusiveMinimum": 0 }), integer(json!({ "minimum": 5 }))),
        (
            json!({ "type": "integer", "maximum": 5, "exclusiveMaximum": 5 }),
            integer(json!({ "maximum": 5, "maximum_is_exclusive": true })),
        ),
        (json!({ "type": ["integer", "number"] }), json!({ "shape": { "number": {} } })),
        (
            json!({ "type": "array", "items": { "type": "boolean" }, "maxItems": 3 }),
            json!({ "shape": { "array": { "items": { "shape": "boolean" }, "items_max": 3 } } }),
        ),
        (json!({ "type": "array" }), json!({ "shape": { "array": { "items": { "shape": "any" } } } })),
        (
            json!({ "type": "array", "items": false }),
            json!({ "shape": { "array": { "items": { "shape": "any" }, "items_max": 0 } } }),
        ),
        (
            json!({ "type": "array", "prefixItems": [{}, {}], "items": { "type": "string" } }),
            json!({ "shape": { "array": { "items": { "shape": "any" } } } }),
        ),
        (json!({ "type": "object" }), any_object.clone()),
        (json!({ "additionalProperties": true }), any_object),
        (json!({ "type": "object", "additionalProperties": false }), json!({ "shape": { "object": {} } })),
        (json!({ "not": {}, "if": {}, "then": {} }), json!({ "shape": "any" })),
        (
            json!({ "type": "string", "default": null, "examples": [null, "a"] }),
            json!({ "shape": { "string": {} }, "example": "a" }),
        ),
        (
            json!({ "type": "string", "x-example": "a", "default": "b", "deprecated": true }),
            json!({ "shape": { "string": {} }, "example": "a", "default": "b", "deprecated": true }),
        ),
    ];
    for (source, expected) in table {
        assert_eq!(neutral(&schema(source.clone())), expected, "{source}");
    }
}

#[test]
fn several_types_are_alternatives() {
    let both = schema(json!({ "type": ["string", "integer", "null"], "minimum": 1, "minLength": 2 }));
    let expected = json!({ "nullable": true, "shape": { "oneOf": { "variants": [
        { "shape": { "string": { "length_min": 2 } } }, { "shape": { "integer": { "minimum": 1 } } } ] } } });
    assert_eq!(neutral(&both), expected);
}

#[test]
fn enums_and_constants_are_choices_without_null() {
    let table = [
        (
            json!({ "enum": ["a", "b", null] }),
            json!({ "shape": { "string": {} }, "nullable": true, "choices": ["a", "b"] }),
        ),
        (json!({ "const": 7 }), json!({ "shape": { "integer": {} }, "choices": [7] })),
        (json!({ "enum": [1, 2.5] }), json!({ "shape": { "number": {} }, "choices": [1, 2.5] })),
        (json!({ "enum": [1, "a"] }), json!({ "shape": "any", "choices": [1, "a"] })),
        (
            json!({ "type": "string", "enum": [1.5, true, "a", "a"] }),
            json!({ "shape": { "string": {} }, "choices": ["1.5", "true", "a"] }),
        ),
        (
            json!({ "type": "integer", "enum": ["1", 2] }),
            json!({ "shape": { "integer": {} }, "choices": [1, 2] }),
        ),
    ];
    for (source, expected) in table {
        assert_eq!(neutral(&schema(source.clone())), expected, "{source}");
    }
}

#[test]
fn required_members_need_not_be_declared_and_read_only_ones_need_not_be_sent() {
    let source = json!({ "type": "object", "required": ["id", "name", "other"], "properties": {
        "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" }, "free": true, "never": false } });
    let (read, reading) = schema_in("3.1.0", &source, &json!({}));
    let Shape::Object(object) = read.shape else { panic!() };
    let members: Vec<_> = object.properties.iter().map(|p| (p.name.as_str(), p.required)).collect();
    assert_eq!(members, [("id", false), ("name", true), ("free", false), ("other", true)]);
    assert!(says(&reading.report.warnings, "`never` may never be given"));
}

#[test]
fn words_that_are_no_types_are_understood_or_told() {
    for (kind, shape) in [("int", "integer"), ("float", "number"), ("bool", "boolean"), ("date", "string")] {
        let (read, reading) = schema_in("3.0.0", &json!({ "type": kind }), &json!({}));
        assert!(neutral(&read)["shape"].to_string().contains(shape), "{kind}");
        assert!(says(&reading.report.repaired, &format!("`{kind}` is not a type")));
    }
    let (read, reading) = schema_in("3.0.0", &json!({ "type": "banana" }), &json!({}));
    assert_eq!(read, Schema::default());
    assert!(says(&reading.report.warnings, "`banana` is not a type; taken as any JSON"));
}

#[test]
fn null_among_the_alternatives_makes_the_rest_nullable() {
    let named = json!({ "Pet": { "type": "object", "properties": { "name": { "type": "string" } } } });
    let reference = json!({ "$ref": "#/components/schemas/Pet" });
    for nothing in [
        json!({ "type": "null" }),
        json!({ "enum": [null] }),
        json!({ "const": null }),
        json!({ "type": ["null"] }),
    ] {
        let source = json!({ "anyOf": [reference, nothing], "title": "Maybe" });
        let (read, _) = schema_in("3.1.0", &source, &named);
        assert_eq!(neutral(&read), json!({ "shape": { "ref": 0 }, "nullable": true, "title": "Maybe" }));
    }
    let (read, _) =
        schema_in("3.0.3", &json!({ "nullable": true, "allOf": [reference], "description": "D" }), &named);
    assert_eq!(neutral(&read), json!({ "shape": { "ref": 0 }, "nullable": true, "description": "D" }));
}

#[test]
fn discriminators_point_to_variants() {
    let named =
        json!({ "Cat": { "type": "object" }, "Dog": { "type": "object" }, "Eel": { "type": "object" } });
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let source = json!({ "oneOf": [to("Cat"), to("Dog"), to("Eel")], "type": "object", "discriminator": {
        "propertyName": "kind",
        "mapping": { "cat": "#/components/schemas/Cat", "hound": "Dog", "lost": "#/components/schemas/None" } } });
    let (read, _) = schema_in("3.0.3", &source, &named);
    let Shape::OneOf(one_of) = read.shape else { panic!() };
    let discriminator = one_of.discriminator.unwrap();
    assert_eq!(discriminator.property, "kind");
    assert_eq!(discriminator.mapping, [("cat".into(), 0), ("hound".into(), 1), ("Eel".into(), 2)]);
}

#[test]
fn all_of_is_merged() {
    let named = json!({
        "Base": { "type": "object", "required": ["id"], "properties": { "id": { "type": "integer", "minimum": 1 } } },
        "Closed": { "type": "object", "additionalProperties": false, "properties": { "id": { "maximum": 9 } } },
    });
    let source = json!({ "description": "D", "required": ["name"], "allOf": [
        { "$ref": "#/components/schemas/Base" }, { "$ref": "#/components/schemas/Closed" },
        { "properties": { "name": { "type": "string", "minLength": 1 } } } ] });
    let (read, reading) = schema_in("3.0.3", &source, &named);
    let expected = json!({ "description": "D", "shape": { "object": { "properties": [
        { "name": "name", "required": true, "schema": { "shape": { "string": { "length_min": 1 } } } },
        { "name": "id", "required": true, "schema": { "shape": { "integer": { "minimum": 1, "maximum": 9 } } } } ] } } });
    assert_eq!(neutral(&read), expected);
    assert!(reading.report.warnings.is_empty(), "{:?}", reading.report);
}

#[test]
fn what_cannot_be_combined_is_any_json_with_a_warning() {
    let clash = json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] });
    let choices = json!({ "allOf": [{ "enum": ["a"] }, { "enum": ["b"] }] });
    for source in [clash, choices] {
        let (read, reading) = schema_in("3.0.3", &source, &json!({}));
        assert_eq!(read, Schema::default());
        assert!(says(&reading.report.warnings, "cannot be combined; taken as any JSON"));
    }
}

#[test]
fn members_beside_alternatives_belong_to_each() {
    let source = json!({ "properties": { "a": { "type": "string" } }, "oneOf": [
        { "properties": { "b": { "type": "string" } } }, { "properties": { "c": { "type": "string" } } } ] });
    let Shape::OneOf(one_of) = schema(source).shape else { panic!() };
    for variant in &one_of.variants {
        let Shape::Object(object) = &variant.shape else { panic!() };
        assert_eq!(object.properties.len(), 2);
    }
    let only_requires = json!({ "type": "object", "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    assert!(matches!(schema(only_requires).shape, Shape::Object(_)));
}

#[test]
fn references_may_be_spelled_in_any_way_and_lead_anywhere_in_the_document() {
    let named =
        json!({ "A b/c~d": { "type": "string" }, "Alias": { "$ref": "#/components/schemas/A%20b~1c~0d" } });
    let source = json!({ "type": "object", "properties": {
        "a": { "$ref": "#/components/schemas/A%20b~1c~0d" },
        "b": { "$ref": "#/components/schemas/A b~1c%7E0d" },
        "c": { "$ref": "#/components/schemas/Alias" },
        "d": { "$ref": "#/paths/~1/post/responses/200" } } });
    let (_, reading) = schema_in("3.0.3", &source, &named);
    let names: Vec<_> = reading.description.schemas.iter().map(|named| named.name.as_str()).collect();
    assert_eq!(names, ["A_b_c_d", "Alias", "Post200"]);
}

#[test]
fn references_that_lead_nowhere_are_any_json_with_a_warning() {
    let table = [
        ("#/components/schemas/None", "does not have"),
        ("other.yaml#/Pet", "another document"),
        ("https://example.org/pet.json", "another document"),
        ("#anchor", "does not have"),
        ("#/%zz", "does not have"),
    ];
    for (reference, told) in table {
        let (read, reading) = schema_in("3.0.3", &json!({ "$ref": reference }), &json!({}));
        assert_eq!(read, Schema::default());
        assert!(says(&reading.report.warnings, told), "{reference}: {:?}", reading.report.warnings);
    }
}

#[test]
fn cycles_are_fine_unless_there_is_nothing_else() {
    let named = json!({
        "Node": { "type": "object", "properties": { "next": { "$ref": "#/components/schemas/Node" } } },
        "Self": { "$ref": "#/components/schemas/Self" },
        "A": { "$ref": "#/components/schemas/B" },
        "B": { "$ref": "#/components/schemas/A" },
        "Inside": { "allOf": [{ "$ref": "#/components/schemas/Inside" }, { "properties": { "x": {} } }] },
    });
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let source = json!({ "type": "object", "properties": { "n": to("Node"), "s": to("Self"), "a": to("A"), "i": to("Inside") } });
    let (_, reading) = schema_in("3.0.3", &source, &named);
    let warnings = &reading.report.warnings;
    assert!(says(warnings, "schema Self: it only refers to itself"));
    assert!(
        says(warnings, "schema A: it only refers to itself")
            || says(warnings, "schema B: it only refers to itself")
    );
    assert!(says(warnings, "`allOf` contains itself"));
    assert_eq!(warnings.count(), 3, "{warnings:?}");
    for named in &reading.description.schemas {
        assert!(reading.description.resolve(&named.schema).is_some(), "{}", named.name);
    }
}

#[test]
fn what_stands_beside_a_reference_counts_from_3_1_on() {
    let named = json!({ "Pet": { "type": "object", "properties": { "name": { "type": "string" } } } });
    let source = json!({ "$ref": "#/components/schemas/Pet", "description": "D", "properties": { "age": { "type": "integer" } } });
    let (old, _) = schema_in("3.0.3", &source, &named);
    assert_eq!(neutral(&old), json!({ "shape": { "ref": 0 }, "description": "D" }));
    let (new, _) = schema_in("3.1.0", &source, &named);
    let Shape::Object(object) = new.shape else { panic!() };
    assert_eq!(object.properties.len(), 2);
    assert_eq!(new.description, "D");
}
