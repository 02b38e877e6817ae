//! The answers of `fits` are those of JSON Schema, and it always answers.

use serde_json::{Value, json};

use super::*;
use crate::description::{Discriminator, NamedSchema, Property, SchemaId};

fn alone(schema: &Schema, value: &Value) -> bool {
    fits(&ApiDescription::default(), schema, value, &mut Steps::new(usize::MAX))
}

fn choices(schema: Schema, choices: &[Value]) -> Schema {
    Schema { choices: choices.to_vec(), ..schema }
}

#[test]
fn values_fit_as_json_schema_says() {
    let bounded = |minimum_is_exclusive| {
        Schema::of(Shape::Integer(NumberBounds {
            minimum: Some(0.into()),
            maximum: Some(10.into()),
            minimum_is_exclusive,
            ..NumberBounds::default()
        }))
    };
    let text = |bounds| Schema::of(Shape::String(bounds));
    let pattern = text(StringBounds { pattern: "^[A-Z]{3}$".into(), ..StringBounds::default() });
    let unknown_pattern = text(StringBounds { pattern: "(?=a)a".into(), ..StringBounds::default() });
    let short = text(StringBounds { length_min: Some(2), length_max: Some(3), ..StringBounds::default() });
    let date = text(StringBounds { format: "date".into(), ..StringBounds::default() });
    let int32 =
        Schema::of(Shape::Integer(NumberBounds { format: "int32".into(), ..NumberBounds::default() }));
    let pair = ArrayOf { items: Schema::integer(), items_min: Some(1), items_max: Some(2) };
    let pair = Schema::of(Shape::Array(Box::new(pair)));
    let named = |required| Property { name: "name".into(), required, schema: Schema::string() };
    let closed = Schema::of(Shape::Object(Object { properties: vec![named(true)], ..Object::default() }));
    let one = Object { properties: vec![named(false)], exactly_one: true, ..Object::default() };
    let one = Schema::of(Shape::Object(one));
    let union = OneOf { variants: vec![Schema::integer(), Schema::string().or_null()], discriminator: None };
    let union = Schema::of(Shape::OneOf(union));
    let kind = Discriminator { property: "name".into(), mapping: Vec::new() };
    let tagged = OneOf { variants: vec![Schema::default()], discriminator: Some(kind) };
    let tagged = Schema::of(Shape::OneOf(tagged));
    for (schema, value, expected) in [
        (&Schema::default(), json!(null), true),
        (&Schema::boolean(), json!("true"), false),
        (&Schema::string(), json!(null), false),
        (&Schema::string().or_null(), json!(null), true),
        (&Schema::integer(), json!(1.0), true),
        (&Schema::integer(), json!(1.5), false),
        (&Schema::number(), json!(1.5), true),
        (&int32, json!(2_147_483_647), true),
        (&int32, json!(2_147_483_648_i64), false),
        (&bounded(false), json!(0), true),
        (&bounded(true), json!(0), false),
        (&bounded(true), json!(10), true),
        (&bounded(true), json!(11), false),
        (&pattern, json!("ABC"), true),
        (&pattern, json!("ABCD"), false),
        (&unknown_pattern, json!("a"), false),
        (&short, json!("é"), false),
        (&short, json!("éé"), true),
        (&short, json!("éééé"), false),
        (&date, json!("2026-01-31"), true),
        (&date, json!("31.1.2026"), false),
        (&pair, json!([]), false),
        (&pair, json!([1, 2]), true),
        (&pair, json!([1, "2"]), false),
        (&pair, json!([1, 2, 3]), false),
        (&closed, json!({"name": "a"}), true),
        (&closed, json!({}), false),
        (&closed, json!({"name": "a", "more": 1}), false),
        (&one, json!({"name": "a"}), true),
        (&one, json!({}), false),
        (&union, json!(null), true),
        (&union, json!(true), false),
        (&tagged, json!({"name": "a"}), true),
        (&tagged, json!({"name": null}), false),
        (&tagged, json!({}), false),
        (&choices(Schema::string(), &[json!("a")]), json!("a"), true),
        (&choices(Schema::string(), &[json!("a")]), json!("b"), false),
        (&choices(Schema::string().or_null(), &[json!("a")]), json!(null), true),
    ] {
        assert_eq!(alone(schema, &value), expected, "{schema:?} {value}");
    }
}

#[test]
fn schemas_that_lead_in_circles_end() {
    let me = || Schema::reference(SchemaId(0));
    let both = Schema::of(Shape::OneOf(OneOf { variants: vec![me(), me()], discriminator: None }));
    for schema in [me(), both] {
        let schemas = vec![NamedSchema { name: "Circle".into(), schema }];
        let description = ApiDescription { schemas, ..ApiDescription::default() };
        assert!(!fits(&description, &me(), &json!(1), &mut Steps::new(usize::MAX)));
    }
    assert!(!alone(&Schema::reference(SchemaId(7)), &json!(1)));
}

/// Steps that holding `value` against the schema takes.
fn steps(schema: &Value, value: &Value) -> usize {
    let schema: Schema = serde_json::from_value(schema.clone()).expect("a schema");
    let mut steps = Steps::new(STEPS_MAX);
    fits(&ApiDescription::default(), &schema, value, &mut steps);
    STEPS_MAX - steps.left()
}

#[test]
fn what_takes_long_takes_many_steps() {
    let pattern = json!({ "shape": { "string": { "pattern": "(a*)*b" } } });
    assert!(steps(&pattern, &json!("a")) >= PATTERN_STEPS, "a pattern is compiled");
    assert!(steps(&pattern, &json!("a".repeat(300))) >= 9_000, "and tried at each place of the text");
    let large = json!(vec![1; 1_000]);
    let choices = json!({ "shape": "any", "choices": vec![large.clone(); 16] });
    assert!(steps(&choices, &large) >= 1_000, "each choice is as large as the value");
    let text = json!("a".repeat(64_000));
    let texts = json!({ "shape": "any", "choices": vec![text.clone(); 16] });
    assert!(steps(&texts, &text) >= 1_000, "a long text is compared byte by byte");
    let property = |n| json!({ "name": format!("p{n}"), "schema": { "shape": "any" } });
    let properties: Vec<_> = (0..160).map(property).collect();
    let object = json!({ "shape": { "object": { "properties": properties } } });
    assert!(steps(&object, &json!({})) >= 10, "all properties are looked at for what is missing");
    let members: serde_json::Map<_, _> = (0..100).map(|n| (format!("p{n}"), json!(1))).collect();
    assert!(steps(&object, &members.into()) >= 1_000, "each member is looked for among the properties");
}
