//! Samples show what is known best, and what is made up is true to its schema.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{description::Schema, fits::fits, limits::SAMPLES_BYTES_MAX, steps::Steps, testing};

fn operation(responses: &Value) -> ApiDescription {
    let operations = json!([{ "method": "GET", "path": "/", "id": "get", "responses": responses }]);
    serde_json::from_value(json!({ "title": "", "operations": operations })).expect("a description")
}

fn answer(content: &Value) -> ApiDescription {
    operation(&json!([{ "status": { "code": 201 }, "content": content }]))
}

fn sample(description: &ApiDescription) -> (Origin, u16, String) {
    let sample = for_operation(description, 0, &mut Steps::new(usize::MAX)).expect("a sample");
    (sample.origin, sample.status, sample.body)
}

/// Samples by operation id, as many as fit into [`SAMPLES_BYTES_MAX`] together, in the description's order.
pub(crate) fn for_service(description: &ApiDescription) -> BTreeMap<String, Sample> {
    let (mut bytes_left, mut steps) = (SAMPLES_BYTES_MAX, steps_of_service());
    let mut samples = BTreeMap::new();
    for (index, operation) in description.operations.iter().enumerate() {
        let Some(sample) = for_operation(description, index, &mut steps) else { continue };
        let bytes = operation.id.len() + sample.media_type.len() + sample.body.len();
        if let Some(left) = bytes_left.checked_sub(bytes) {
            bytes_left = left;
            samples.insert(operation.id.clone(), sample);
        }
    }
    samples
}

#[test]
fn the_best_known_example_becomes_the_sample() {
    let schema = json!({ "shape": { "integer": {} }, "example": 7 });
    let json = "application/json";
    let with_media = answer(&json!({ "media_type": json, "schema": schema, "example": 9 }));
    assert_eq!(sample(&with_media), (Origin::MediaExample, 201, "9".into()));
    let with_schema = answer(&json!({ "media_type": json, "schema": schema }));
    assert_eq!(sample(&with_schema), (Origin::SchemaExample, 201, "7".into()));
    let bare = answer(&json!({ "media_type": json, "schema": { "shape": { "integer": {} } } }));
    assert_eq!(sample(&bare), (Origin::Synthesised, 201, "1".into()));
    let text = answer(&json!({ "media_type": "text/csv", "schema": { "shape": "any" }, "example": "a,b" }));
    assert_eq!(sample(&text), (Origin::MediaExample, 201, "a,b".into()));
}

#[test]
fn json_is_shown_before_other_successes_and_failures_never() {
    let content =
        |media_type: &str| json!({ "media_type": media_type, "schema": { "shape": { "string": {} } } });
    let description = operation(&json!([
        { "status": { "code": 404 }, "content": content("application/json") },
        { "status": { "code": 200 }, "content": content("text/plain") },
        { "status": { "class": 2 }, "content": content("application/geo+json") },
    ]));
    assert_eq!(sample(&description), (Origin::Synthesised, 200, "\"text\"".into()));
    let only_failure = operation(&json!([{ "status": "default", "content": content("application/json") }]));
    assert_eq!(for_operation(&only_failure, 0, &mut Steps::new(usize::MAX)), None);
    assert_eq!(
        sample(&operation(&json!([{ "status": { "code": 204 } }]))),
        (Origin::Synthesised, 204, String::new())
    );
    let xml = answer(&json!({ "media_type": "application/xml", "schema": { "shape": { "object": {} } } }));
    assert_eq!(for_operation(&xml, 0, &mut Steps::new(usize::MAX)), None);
}

#[test]
fn a_sample_is_bounded_and_so_are_all_of_a_service() {
    let example = |bytes: usize| {
        let content = json!({ "media_type": "text/plain", "schema": { "shape": { "string": {} } }, "example": "x".repeat(bytes) });
        answer(&content)
    };
    assert_eq!(sample(&example(SAMPLE_BYTES_MAX)).0, Origin::MediaExample);
    assert_eq!(sample(&example(SAMPLE_BYTES_MAX + 1)).0, Origin::Synthesised);
    let mut many = example(SAMPLE_BYTES_MAX);
    let one = many.operations[0].clone();
    many.operations = (0..100).map(|index| Operation { id: format!("op{index}"), ..one.clone() }).collect();
    let samples = for_service(&many);
    let bytes: usize = samples.values().map(|sample| sample.body.len()).sum();
    assert_eq!((samples.len(), bytes), (7, 7 * SAMPLE_BYTES_MAX));
}

#[test]
fn values_are_made_up_as_the_schema_wants_them() {
    let text = |bounds: Value| json!({ "shape": { "string": bounds } });
    let number = |bounds: Value| json!({ "shape": { "number": bounds } });
    let integer = |bounds: Value| json!({ "shape": { "integer": bounds } });
    for (schema, expected) in [
        (json!({ "shape": "any" }), json!({})),
        (json!({ "shape": "boolean" }), json!(true)),
        (json!({ "shape": "boolean", "choices": [false] }), json!(false)),
        (json!({ "shape": "boolean", "default": false }), json!(false)),
        (integer(json!({})), json!(1)),
        (integer(json!({ "minimum": 10 })), json!(10)),
        (integer(json!({ "minimum": 10, "minimum_is_exclusive": true })), json!(11)),
        (integer(json!({ "maximum": -10, "maximum_is_exclusive": true })), json!(-11)),
        (integer(json!({ "minimum": 9.5 })), json!(10)),
        (number(json!({})), json!(1.5)),
        (number(json!({ "minimum": 0.0, "minimum_is_exclusive": true, "maximum": 0.5 })), json!(0.5)),
        (
            number(
                json!({ "minimum": 0, "minimum_is_exclusive": true, "maximum": 1, "maximum_is_exclusive": true }),
            ),
            json!(0.5),
        ),
        (text(json!({})), json!("text")),
        (text(json!({ "format": "date-time" })), json!("2026-01-31T12:00:00Z")),
        (text(json!({ "format": "uuid" })), json!("6f1c0a52-3d0e-4b6e-9d0b-2f4f6f1f7a10")),
        (text(json!({ "format": "email" })), json!("someone@example.com")),
        (text(json!({ "format": "uri" })), json!("https://example.com/")),
        (text(json!({ "length_min": 6 })), json!("textte")),
        (text(json!({ "length_max": 2 })), json!("te")),
        (
            json!({ "shape": { "array": { "items": { "shape": "boolean" }, "items_min": 2 } } }),
            json!([true, true]),
        ),
        (json!({ "shape": { "array": { "items": { "shape": "boolean" }, "items_max": 0 } } }), json!([])),
        (
            json!({ "shape": { "object": { "properties": [{ "name": "host", "schema": { "shape": { "string": {} } } }] } } }),
            json!({ "host": "host" }),
        ),
        (
            json!({ "shape": { "object": { "exactly_one": true, "properties": [
                { "name": "a", "schema": { "shape": "boolean" } }, { "name": "b", "schema": { "shape": "boolean" } }] } } }),
            json!({ "a": true }),
        ),
    ] {
        let parsed: Schema = serde_json::from_value(schema.clone()).expect("a schema");
        let value = made_up::value(&ApiDescription::default(), &parsed, &mut Steps::new(usize::MAX));
        assert_eq!(value, Some(expected), "{schema}");
        assert!(
            fits(
                &ApiDescription::default(),
                &parsed,
                &value.unwrap_or_default(),
                &mut Steps::new(usize::MAX)
            ),
            "{schema}"
        );
    }
}

#[test]
fn recursion_ends_where_it_may_and_has_no_value_where_it_may_not() {
    let node = |required: bool| {
        let next = json!({ "name": "next", "required": required, "schema": { "shape": { "ref": 0 } } });
        let schema = json!({ "shape": { "object": { "properties": [next] } } });
        let description =
            json!({ "title": "", "operations": [], "schemas": [{ "name": "Node", "schema": schema }] });
        let description: ApiDescription = serde_json::from_value(description).expect("a description");
        made_up::value(&description, &description.schemas[0].schema, &mut Steps::new(usize::MAX))
    };
    assert_eq!(node(true), None);
    let depth = node(false).expect("an end").to_string().matches("next").count();
    assert!((1..10).contains(&depth), "{depth}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_description_gets_the_same_bounded_samples(description in testing::descriptions()) {
        let samples = for_service(&description);
        prop_assert!(samples.values().all(|sample| sample.body.len() <= SAMPLE_BYTES_MAX));
        prop_assert_eq!(samples, for_service(&description));
    }
}

#[test]
fn arrays_within_arrays_are_made_up_as_long_as_they_stay_small() {
    let nested = |levels: usize| {
        let mut schema = json!({ "shape": "boolean" });
        for _ in 0..levels {
            schema = json!({ "shape": { "array": { "items": schema, "items_min": 100 } } });
        }
        let schema: Schema = serde_json::from_value(schema).expect("a schema");
        made_up::value(&ApiDescription::default(), &schema, &mut Steps::new(usize::MAX))
    };
    assert_eq!(nested(1).expect("100 values").as_array().map(Vec::len), Some(100));
    assert_eq!(nested(3), None, "a million values");
}

#[test]
fn choices_that_do_not_fit_are_not_all_tried() {
    let schema = json!({ "shape": "boolean", "choices": (0..40_000).collect::<Vec<_>>() });
    let schema: Schema = serde_json::from_value(schema).expect("a schema");
    let mut steps = Steps::new(100_000);
    let value = made_up::value(&ApiDescription::default(), &schema, &mut steps);
    assert_eq!(value, Some(json!(true)));
    assert!(steps.take(1), "some are left");
    assert!(!steps.take(99_000), "comparing them was counted");
}

#[test]
fn a_large_example_is_copied_into_no_sample() {
    let description = json!({ "title": "", "operations": [], "schemas": [
        { "name": "Large", "schema": { "shape": "any", "example": vec![1; 100_000] } }] });
    let description: ApiDescription = serde_json::from_value(description).expect("a description");
    let schema = &description.schemas[0].schema;
    assert_eq!(made_up::value(&description, schema, &mut Steps::new(usize::MAX)), None);
}

#[test]
fn of_an_example_only_as_much_is_written_as_a_sample_has() {
    let content = json!({ "media_type": "application/json", "schema": { "shape": { "ref": 0 } } });
    let mut description = answer(&content);
    let large = json!({ "name": "Large", "schema": { "shape": "boolean", "example": vec![0.1; 500_000] } });
    description.schemas = serde_json::from_value(json!([large])).expect("schemas");
    let one = description.operations[0].clone();
    let operation = |index| Operation { id: format!("op{index}"), ..one.clone() };
    description.operations = (0..crate::limits::OPERATIONS_MAX).map(operation).collect();
    let samples = testing::timed(|| for_service(&description));
    assert!(samples.values().all(|sample| sample.origin == Origin::Synthesised && sample.body == "true"));
}
