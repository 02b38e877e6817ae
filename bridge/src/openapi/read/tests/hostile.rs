//! Documents that mean harm, and documents that are damaged: no panic, no long wait, no deep stack.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{read, reading, says, schema_in, with_paths};
use crate::{
    description::Shape,
    document::encode,
    limits::{SCHEMA_NODES_MAX, SCHEMAS_MAX},
    testing::timed,
};

fn to(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

#[test]
fn doubling_all_of_is_cut_off() {
    let named: serde_json::Map<_, _> = (0..60)
        .map(|i| (format!("A{i}"), json!({ "allOf": [to(&format!("A{}", i + 1)), to(&format!("A{}", i + 1)), { "properties": { (format!("p{i}")): {} } }] })))
        .collect();
    let (_, reading) = timed(|| schema_in("3.0.3", &to("A0"), &Value::Object(named)));
    assert!(!reading.report.warnings.is_empty());
}

#[test]
fn long_chains_of_all_of_and_references_are_cut_off() {
    let chain: serde_json::Map<_, _> = (0..5_000)
        .map(|i| {
            (
                format!("A{i}"),
                json!({ "allOf": [to(&format!("A{}", i + 1)), { "properties": { (format!("p{i}")): {} } }] }),
            )
        })
        .collect();
    timed(|| schema_in("3.0.3", &to("A0"), &Value::Object(chain)));
    let references: serde_json::Map<_, _> =
        (0..5_000).map(|i| (format!("A{i}"), to(&format!("A{}", i + 1)))).collect();
    timed(|| schema_in("3.0.3", &to("A0"), &Value::Object(references)));
}

#[test]
fn alternatives_that_multiply_are_cut_off() {
    let wide: Value = (0..2_000).map(|i| json!({ "properties": { (format!("v{i}")): {} } })).collect();
    let members: serde_json::Map<_, _> = (0..2_000).map(|i| (format!("m{i}"), json!({}))).collect();
    let source = json!({ "properties": members, "oneOf": wide });
    let (_, reading) = timed(|| {
        let mut document = with_paths(
            &json!({ "/": { "post": { "requestBody": { "content": { "application/json": { "schema": source } } } } } }),
        );
        document["openapi"] = "3.0.3".into();
        let reading = read(document.to_string().as_bytes()).unwrap();
        ((), reading)
    });
    assert!(says(&reading.report.warnings, "merge into too many"));
}

#[test]
fn what_many_parts_have_made_together_is_not_copied_for_each_of_them() {
    let long = "y".repeat(100_000);
    let choices: Vec<String> = (0..60_000).map(|i| format!("c{i}")).collect();
    let first = json!({ "type": "string", "enum": choices, "example": long, "default": long });
    let parts = [first].into_iter().chain((0..60_000).map(|i| json!({ "type": "string", "minLength": i })));
    let whole = json!({ "allOf": parts.collect::<Value>() });
    let (schema, _) = timed(|| schema_in("3.0.3", &whole, &json!({})));
    assert_eq!((schema.choices.len(), schema.example), (60_000, Some(long.into())));
}

#[test]
fn many_parts_with_members_of_their_own_are_cut_off() {
    let parts: Value = (0..50_000).map(|i| json!({ "properties": { (format!("p{i}")): {} } })).collect();
    let (_, reading) = timed(|| schema_in("3.0.3", &json!({ "allOf": parts }), &json!({})));
    assert!(says(&reading.report.warnings, "merge into too many"));
}

#[test]
fn a_discriminator_of_many_variants_is_read_in_one_step_for_each() {
    let n = SCHEMAS_MAX - 1;
    let mut named: serde_json::Map<_, _> = (0..n).map(|i| (format!("S{i}"), json!({}))).collect();
    // The first is named many times before the others.
    let variants = std::iter::repeat_n(0, 400_000).chain(0..n).map(|i| to(&format!("S{i}")));
    let mapping: serde_json::Map<_, _> = (10..n).map(|i| (format!("m{i}"), format!("S{i}").into())).collect();
    let discriminator = json!({ "propertyName": "kind", "mapping": mapping });
    named
        .insert("A0".into(), json!({ "oneOf": variants.collect::<Value>(), "discriminator": discriminator }));
    let text = with_all(&named).to_string();
    let reading = timed(|| read(text.as_bytes()).unwrap());
    let Shape::OneOf(one_of) = &reading.description.schemas[0].schema.shape else { panic!() };
    let mapped: HashMap<_, _> = one_of.discriminator.clone().unwrap().mapping.into_iter().collect();
    assert_eq!((mapped["S0"], mapped["S9"], mapped["m10"]), (0, 400_009, 400_010));
    assert_eq!(mapped.len(), n);
}

#[test]
fn deep_schemas_get_names_and_fit_a_small_stack() {
    let mut schema = json!({ "type": "string" });
    for _ in 0..40 {
        schema = json!({ "type": "object", "properties": { "x": schema } });
    }
    let worker = std::thread::Builder::new().stack_size(1024 * 1024);
    let names =
        worker.spawn(move || schema_in("3.0.3", &schema, &json!({})).1.description.schemas.len()).unwrap();
    assert_eq!(names.join().unwrap(), 2);
}

#[test]
fn merging_deep_schemas_fits_a_small_stack() {
    let mut schema = json!({ "type": "string" });
    for _ in 0..22 {
        schema = json!({ "allOf": [{ "properties": { "x": schema } }, { "properties": { "y": {} } }] });
    }
    let named: serde_json::Map<_, _> = (0..80)
        .map(|i| (format!("A{i}"), json!({ "allOf": [{ "properties": { "x": to(&format!("A{}", i + 1)) } }, { "properties": { "x": to(&format!("A{}", i + 2)) } }] })))
        .collect();
    let worker = std::thread::Builder::new().stack_size(1024 * 1024);
    let done = worker.spawn(move || {
        timed(|| schema_in("3.0.3", &schema, &json!({})));
        timed(|| read(with_all(&named).to_string().as_bytes()).unwrap());
    });
    done.unwrap().join().unwrap();
}

fn with_all(named: &serde_json::Map<String, Value>) -> Value {
    let mut document = with_paths(
        &json!({ "/": { "post": { "requestBody": { "content": { "application/json": { "schema": to("A0") } } } } } }),
    );
    document["components"] = json!({ "schemas": named });
    document
}

#[test]
fn named_schemas_are_limited_below_at_and_above() {
    for (n, cut) in [(SCHEMAS_MAX - 1, false), (SCHEMAS_MAX, false), (SCHEMAS_MAX + 1, true)] {
        let named: serde_json::Map<_, _> =
            (0..n).map(|i| (format!("S{i}"), json!({ "type": "boolean" }))).collect();
        let properties: serde_json::Map<_, _> =
            (0..n).map(|i| (format!("p{i}"), to(&format!("S{i}")))).collect();
        let mut document = with_paths(
            &json!({ "/": { "post": { "requestBody": { "content": { "application/json": { "schema": { "properties": properties } } } } } } }),
        );
        document["components"] = json!({ "schemas": named });
        let reading = timed(|| read(document.to_string().as_bytes()).unwrap());
        assert_eq!(reading.description.schemas.len(), n.min(SCHEMAS_MAX));
        assert_eq!(says(&reading.report.warnings, "named schemas are too many"), cut, "{n}");
    }
}

#[test]
fn schemas_are_limited_in_all() {
    let properties: serde_json::Map<_, _> =
        (0..SCHEMA_NODES_MAX + 10).map(|i| (format!("p{i}"), json!({}))).collect();
    let document = with_paths(
        &json!({ "/": { "post": { "requestBody": { "content": { "application/json": { "schema": { "properties": properties } } } } } } }),
    );
    let reading = timed(|| read(document.to_string().as_bytes()).unwrap());
    assert!(says(&reading.report.warnings, "the schemas are too many"));
}

/// A document of four megabytes, as large services have them.
fn large() -> Value {
    let paths: serde_json::Map<_, _> = (0..900)
        .map(|i| {
            let list: Value = (0..8).map(|j| json!({ "name": format!("p{j}"), "in": "query", "description": "How many of them, and which, in a sentence of usual length.", "schema": { "type": "integer", "minimum": 0 } })).collect();
            let answer = json!({ "description": "OK", "content": { "application/json": { "schema": to(&format!("S{i}")), "example": { "id": i, "names": ["a", "b", "c"] } } } });
            (format!("/resources{i}/{{id}}/parts"), json!({ "get": { "operationId": format!("op{i}"), "parameters": list, "responses": { "200": answer, "404": answer } } }))
        })
        .collect();
    let named: serde_json::Map<_, _> = (0..2_300)
        .map(|i| {
            let members: serde_json::Map<_, _> = (0..10).map(|j| (format!("member{j}"), json!({ "type": "string", "description": "What it is, in a sentence of the usual length.", "example": "text" }))).collect();
            (format!("S{i}"), json!({ "type": "object", "properties": members, "additionalProperties": to(&format!("S{}", (i + 900) % 2_300)) }))
        })
        .collect();
    json!({ "openapi": "3.1.0", "info": { "title": "Large", "version": "1" }, "paths": paths, "components": { "schemas": named } })
}

#[test]
fn a_large_document_is_read_in_time_in_both_languages() {
    let document = large();
    let json = document.to_string();
    assert!(json.len() > 4_000_000, "{}", json.len());
    let reading = timed(|| read(json.as_bytes()).unwrap());
    assert_eq!((reading.report.bridged, reading.description.schemas.len()), (900, 2_300));
    assert!(encode(&reading.description).is_ok());
    // JSON is YAML; the comment keeps it from being taken for JSON.
    let yaml = format!("# YAML\n{json}");
    assert_eq!(timed(|| read(yaml.as_bytes()).unwrap()).description, reading.description);
}

/// JSON with the words of OpenAPI in it, mostly in wrong places.
fn any_json() -> impl Strategy<Value = Value> {
    const WORDS: &[&str] = &[
        "openapi",
        "swagger",
        "2.0",
        "3.0.0",
        "3.1.0",
        "info",
        "paths",
        "/a/{b}",
        "/{b}.json",
        "get",
        "post",
        "parameters",
        "name",
        "in",
        "query",
        "path",
        "body",
        "formData",
        "schema",
        "type",
        "object",
        "array",
        "string",
        "null",
        "properties",
        "items",
        "allOf",
        "oneOf",
        "anyOf",
        "$ref",
        "#/paths",
        "#/components/schemas/A",
        "components",
        "schemas",
        "A",
        "required",
        "enum",
        "const",
        "requestBody",
        "content",
        "application/json",
        "responses",
        "200",
        "default",
        "nullable",
        "discriminator",
        "propertyName",
        "mapping",
        "servers",
        "url",
        "variables",
        "securitySchemes",
        "collectionFormat",
        "definitions",
        "additionalProperties",
        "example",
        "examples",
        "minimum",
        "exclusiveMinimum",
    ];
    let word = || proptest::sample::select(WORDS).prop_map(ToOwned::to_owned);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from)
    ];
    leaf.prop_recursive(7, 120, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::vec((word(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

const VALID: &[&str] = &[
    include_str!("documents/fastapi.json"),
    include_str!("documents/spring.json"),
    include_str!("documents/shop.yaml"),
];

/// Every value of a document, by pointer.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| pointers(item, &format!("{at}/{i}"), found));
        }
        Value::Object(members) => {
            for (key, member) in members {
                pointers(member, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn nonsense_in_the_right_frame_is_read_or_refused(paths in any_json(), schema in any_json(), version in proptest::sample::select(&["3.0.3", "3.1.0"][..])) {
        let document = json!({ "openapi": version, "paths": { "/": { "post": { "requestBody": { "content": { "application/json": { "schema": schema } } } } }, "/x": paths },
            "components": { "schemas": { "A": schema, "B": paths } } });
        reading(&document);
        let swagger = json!({ "swagger": "2.0", "paths": { "/": { "post": paths }, "/x": schema }, "parameters": paths, "responses": schema, "definitions": { "A": schema } });
        let _ = read(swagger.to_string().as_bytes());
        let _ = read(paths.to_string().as_bytes());
    }

    #[test]
    fn a_document_with_one_value_replaced_is_read_or_refused(which in 0..2_usize, place in any::<prop::sample::Index>(), value in any_json()) {
        let mut document: Value = serde_json::from_str(VALID[which]).unwrap();
        let mut found = Vec::new();
        pointers(&document, "", &mut found);
        *document.pointer_mut(&found[place.index(found.len())]).unwrap() = value;
        if let Ok(reading) = read(document.to_string().as_bytes()) {
            crate::Api::new(reading.description).unwrap();
        }
    }

    #[test]
    fn damaged_text_is_read_or_refused(which in 0..3_usize, at in any::<prop::sample::Index>(), length in 0..40_usize, bytes in proptest::collection::vec(any::<u8>(), 0..8)) {
        let mut document = VALID[which].as_bytes().to_vec();
        let at = at.index(document.len());
        let end = (at + length).min(document.len());
        document.splice(at..end, bytes);
        if let Ok(reading) = read(&document) {
            crate::Api::new(reading.description).unwrap();
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400), text in "[-:{}\\[\\]&*!|>\"'#%@ \na-c0-9~?,]{0,200}") {
        let _ = read(&bytes);
        let _ = read(text.as_bytes());
        let _ = super::super::looks_like_openapi(&bytes);
    }
}
