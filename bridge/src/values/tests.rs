//! The promises of values: tables, below, at and above each bound.

mod cost;

use serde_json::{Value, json};

use super::*;
use crate::description::{Discriminator, NamedSchema, NumberBounds, SchemaId, StringBounds};

fn refusal_of_text(description: &ApiDescription, schema: &Schema, text: &str) -> Option<String> {
    let mut checker = Checker::new(description);
    let value = checker.text(&ValuePath::Root("p"), text, schema, STEPS_DEPTH_MAX);
    let problems =
        checker.finish().map_err(|problems| crate::PlanError::Problems(problems).to_string()).err();
    assert_eq!(value.is_none(), problems.is_some(), "{text}");
    problems
}

fn refusal_of_json(description: &ApiDescription, schema: &Schema, text: &str) -> Option<String> {
    let mut checker = Checker::new(description);
    let value = Json::parse(text, VALUE_DEPTH_MAX).unwrap();
    let fits = checker.json(&ValuePath::Root("body"), &value, schema, STEPS_DEPTH_MAX);
    let problems =
        checker.finish().map_err(|problems| crate::PlanError::Problems(problems).to_string()).err();
    assert_eq!(fits, problems.is_none(), "{text}");
    problems
}

fn accepts(schema: &Schema, text: &str) -> bool {
    refusal_of_text(&ApiDescription::default(), schema, text).is_none()
}

fn integer(format: &str) -> Schema {
    Schema::of(Shape::Integer(NumberBounds { format: format.into(), ..NumberBounds::default() }))
}

#[test]
fn values_have_one_spelling() {
    let (whole, number, boolean, text) =
        (Schema::integer(), Schema::number(), Schema::boolean(), Schema::string());
    for (schema, text, accepted) in [
        (&whole, "0", true),
        (&whole, "-7", true),
        (&whole, "9223372036854775807", true),
        (&whole, "18446744073709551615", true),
        (&whole, "18446744073709551616", false),
        (&whole, "-9223372036854775808", true),
        (&whole, "-9223372036854775809", false),
        (&whole, "7.0", false),
        (&whole, "1e3", false),
        (&whole, "+7", false),
        (&whole, "007", false),
        (&whole, " 7", false),
        (&whole, "", false),
        (&whole, "null", false),
        (&whole, "٣", false),
        (&number, "4.5", true),
        (&number, "-0.25e-3", true),
        (&number, "1E+2", true),
        (&number, "1e400", false),
        (&number, "NaN", false),
        (&number, "inf", false),
        (&number, "1,5", false),
        (&number, "0x1f", false),
        (&number, ".5", false),
        (&number, "5.", false),
        (&number, "1e", false),
        (&number, "1e+-2", false),
        (&number, "", false),
        (&boolean, "true", true),
        (&boolean, "false", true),
        (&boolean, "TRUE", false),
        (&boolean, "1", false),
        (&boolean, "yes", false),
        (&boolean, "", false),
        (&text, "", true),
        (&text, "007", true),
        (&text, "null", true),
        (&Schema::default(), "anything", true),
        (&Schema::integer().or_null(), "null", true),
        (&Schema::integer().or_null(), "NULL", false),
        (&integer("int32"), "2147483647", true),
        (&integer("int32"), "2147483648", false),
        (&integer("int32"), "-2147483648", true),
        (&integer("int32"), "-2147483649", false),
        (&integer("int64"), "9223372036854775807", true),
        (&integer("int64"), "9223372036854775808", false),
        (&integer("uint32"), "4294967295", true),
        (&integer("uint32"), "4294967296", false),
        (&integer("uint32"), "-1", false),
        (&integer("whatever"), "18446744073709551615", true),
    ] {
        assert_eq!(accepts(schema, text), accepted, "{schema:?} {text:?}");
    }
}

#[test]
fn bounds_hold_below_at_and_above() {
    let bounds = |minimum: Value, maximum: Value, exclusive| NumberBounds {
        format: String::new(),
        minimum: minimum.as_number().cloned(),
        maximum: maximum.as_number().cloned(),
        minimum_is_exclusive: exclusive,
        maximum_is_exclusive: exclusive,
    };
    let large = json!(9_007_199_254_740_993_u64);
    let length = Schema::of(Shape::String(StringBounds {
        length_min: Some(2),
        length_max: Some(3),
        ..StringBounds::default()
    }));
    for (schema, accepted, refused, expected) in [
        (
            Schema::of(Shape::Integer(bounds(json!(1), json!(10), false))),
            &["1", "10"][..],
            &["0", "11"][..],
            "a whole number from 1 to 10",
        ),
        (
            Schema::of(Shape::Integer(bounds(json!(1), json!(10), true))),
            &["2", "9"],
            &["1", "10"],
            "a whole number above 1 and below 10",
        ),
        (
            Schema::of(Shape::Integer(bounds(json!(0.5), json!(null), false))),
            &["1"],
            &["0"],
            "a whole number of at least 0.5",
        ),
        (
            Schema::of(Shape::Integer(bounds(large.clone(), large, false))),
            &["9007199254740993"],
            &["9007199254740992", "9007199254740994"],
            "a whole number from 9007199254740993 to 9007199254740993",
        ),
        (
            Schema::of(Shape::Number(bounds(json!(0), json!(1), true))),
            &["0.0001", "1e-9"],
            &["0", "1.0", "-0.0"],
            "a number above 0 and below 1",
        ),
        (
            Schema::of(Shape::Number(bounds(json!(null), json!(1.5), false))),
            &["1.5", "-9"],
            &["1.51"],
            "a number of at most 1.5",
        ),
        (length, &["ab", "äöü"], &["a", "abcd"], "text of 2 to 3 characters"),
    ] {
        for text in accepted {
            assert!(accepts(&schema, text), "{expected}: {text}");
        }
        for text in refused {
            let refusal = refusal_of_text(&ApiDescription::default(), &schema, text);
            assert_eq!(refusal, Some(format!("`p` is `{text}`, expected {expected}")));
        }
    }
}

#[test]
fn a_choice_is_exact_and_the_nearest_is_told() {
    let schema = |choices: &[Value]| Schema { choices: choices.to_vec(), ..Schema::default() };
    let formats = schema(&[json!("geojson"), json!("csv")]);
    let numbers = schema(&[json!(1), json!(2.5), json!(true)]);
    let whole = Schema { choices: vec![json!(1), json!(100)], ..Schema::integer() };
    let broken = Schema { choices: vec![json!(1), json!(2.5)], ..Schema::number() };
    for (schema, text, refusal) in [
        (&formats, "csv", None),
        (&formats, "CSV", Some("`p` is `CSV`, expected one of geojson, csv")),
        (&formats, "geojso", Some("`p` is `geojso`, expected one of geojson, csv; did you mean `geojson`?")),
        (&numbers, "1", None),
        (&numbers, "2.5", None),
        (&numbers, "true", None),
        (&numbers, "01", Some("`p` is `01`, expected one of 1, 2.5, true")),
        // Who reads whole numbers would take another one out of these.
        (&whole, "100", None),
        (&whole, "100000e-3", Some("`p` is `100000e-3`, expected one of 1, 100")),
        (&whole, "100.0", Some("`p` is `100.0`, expected one of 1, 100")),
        (&numbers, "10e-1", Some("`p` is `10e-1`, expected one of 1, 2.5, true")),
        (&numbers, "25e-1", None),
        (&broken, "1.0", None),
        (&broken, "25e-1", None),
    ] {
        let found = refusal_of_text(&ApiDescription::default(), schema, text);
        assert_eq!(found.as_deref(), refusal, "{text}");
    }
    let either = Schema { nullable: true, ..formats };
    assert_eq!(refusal_of_json(&ApiDescription::default(), &either, "null"), None);
    assert!(refusal_of_json(&ApiDescription::default(), &either, "1").is_some());
}

/// `Pet` is a cat or a dog, told apart by `kind`; `Tree` has trees within.
fn zoo() -> ApiDescription {
    let object = |properties: Vec<(&str, bool, Schema)>| {
        let property =
            |(name, required, schema): (&str, bool, Schema)| Property { name: name.into(), required, schema };
        Object { properties: properties.into_iter().map(property).collect(), ..Object::default() }
    };
    let named = |name: &str, shape| NamedSchema { name: name.into(), schema: Schema::of(shape) };
    let kind = |kind: &str| Schema { choices: vec![kind.into()], ..Schema::string() };
    let animal = |name: &str, property: &str| {
        object(vec![("kind", true, kind(name)), (property, true, Schema::integer())])
    };
    let cats_and_dogs = |discriminator| OneOf {
        variants: vec![Schema::reference(SchemaId(0)), Schema::reference(SchemaId(1))],
        discriminator,
    };
    let by_kind =
        Discriminator { property: "kind".into(), mapping: vec![("cat".into(), 0), ("dog".into(), 1)] };
    let trees = Schema::array(Schema::reference(SchemaId(4)));
    ApiDescription {
        schemas: vec![
            named("Cat", Shape::Object(animal("cat", "lives"))),
            named("Dog", Shape::Object(animal("dog", "tricks"))),
            named("Pet", Shape::OneOf(cats_and_dogs(Some(by_kind)))),
            named("Animal", Shape::OneOf(cats_and_dogs(None))),
            named("Tree", Shape::Object(object(vec![("trees", false, trees)]))),
            named(
                "Maze",
                Shape::OneOf(OneOf {
                    variants: vec![
                        Schema::reference(SchemaId(5)),
                        Schema::array(Schema::reference(SchemaId(5))),
                    ],
                    discriminator: None,
                }),
            ),
        ],
        ..ApiDescription::default()
    }
}

#[test]
fn a_value_is_one_of_its_alternatives() {
    let zoo = zoo();
    let [pet, animal] = [2, 3].map(|id| Schema::reference(SchemaId(id)));
    for (schema, text, refusal) in [
        (&pet, r#"{"kind":"cat","lives":9}"#, None),
        (
            &pet,
            r#"{"kind":"dog","lives":9}"#,
            Some("missing `body.tricks`; `body` has no `lives`; it takes `kind`, `tricks`"),
        ),
        (&animal, r#"{"kind":"dog","tricks":0}"#, None),
        (&animal, "7", Some("`body` is `7`, expected an object, as JSON")),
        (&pet, r#"{"kind":"bird"}"#, Some("`body` is `{\"kind\":\"bird\"}`, expected an object, as JSON")),
    ] {
        assert_eq!(refusal_of_json(&zoo, schema, text).as_deref(), refusal, "{text}");
    }
    let text_or_number = Schema::of(Shape::OneOf(OneOf {
        variants: vec![Schema::integer(), Schema::boolean()],
        discriminator: None,
    }));
    assert!(accepts(&text_or_number, "7") && accepts(&text_or_number, "true"));
    assert_eq!(
        refusal_of_text(&zoo, &text_or_number, "x").unwrap(),
        "`p` is `x`, expected a whole number such as 7, or true or false"
    );
}

#[test]
fn everything_wrong_in_an_object_is_told_with_its_path() {
    let zoo = zoo();
    let tree = Schema::reference(SchemaId(4));
    assert_eq!(refusal_of_json(&zoo, &tree, r#"{"trees":[{"trees":[{}]},{}]}"#), None);
    assert_eq!(
        refusal_of_json(&zoo, &tree, r#"{"trees":[{"tree":[]},{"trees":7}],"x":1}"#).unwrap(),
        "`body.trees[0]` has no `tree`; did you mean `trees`?; `body.trees[1].trees` is `7`, \
         expected a list, as a JSON array; `body` has no `x`; it takes `trees`"
    );
}

#[test]
fn exactly_one_member_is_given_and_is_not_null() {
    let mut object = Object { exactly_one: true, ..Object::default() };
    for name in ["id", "name"] {
        let schema = Schema::string().or_null();
        object.properties.push(Property { name: name.into(), required: false, schema });
    }
    let schema = Schema::of(Shape::Object(object));
    let description = ApiDescription::default();
    assert_eq!(refusal_of_json(&description, &schema, r#"{"id":"1","name":null}"#), None);
    for (text, given) in [("{}", 0), (r#"{"id":null}"#, 0), (r#"{"id":"1","name":"2"}"#, 2)] {
        assert_eq!(
            refusal_of_json(&description, &schema, text).unwrap(),
            format!("`body` takes exactly one member that is not null, not {given}")
        );
    }
}

#[test]
fn a_schema_that_leads_in_circles_ends() {
    let zoo = zoo();
    let maze = Schema::reference(SchemaId(5));
    let nested = format!("{}7{}", "[".repeat(VALUE_DEPTH_MAX), "]".repeat(VALUE_DEPTH_MAX));
    for text in ["7", "[[7]]", &nested] {
        let mut checker = Checker::new(&zoo);
        let value = Json::parse(text, VALUE_DEPTH_MAX).unwrap();
        assert!(!checker.json(&ValuePath::Root("body"), &value, &maze, STEPS_DEPTH_MAX));
        assert!(checker.finish().is_err());
    }
    let mut checker = Checker::new(&zoo);
    assert!(checker.text(&ValuePath::Root("p"), &nested, &maze, STEPS_DEPTH_MAX).is_none());
    // Cut short by the number of references.
    let endless = ApiDescription {
        schemas: vec![NamedSchema { name: "A".into(), schema: Schema::reference(SchemaId(0)) }],
        ..ApiDescription::default()
    };
    assert!(refusal_of_text(&endless, &Schema::reference(SchemaId(0)), "7").is_some());
}

#[test]
fn at_most_a_screenful_is_told() {
    let schema = Schema::array(Schema::integer());
    let many = vec!["x"; 1000].join(",");
    let description = ApiDescription::default();
    let mut checker = Checker::new(&description);
    assert!(checker.text(&ValuePath::Root("p"), &many, &schema, STEPS_DEPTH_MAX).is_none());
    assert_eq!(checker.finish().unwrap_err().len(), PROBLEMS_MAX);
}

/// What is left of the checks after `text` was held against `schema`, and what was told.
fn checks_left(schema: &Schema, text: &str) -> (usize, String) {
    let description = ApiDescription::default();
    let mut checker = Checker::new(&description);
    let value = Json::parse(text, VALUE_DEPTH_MAX).unwrap();
    assert!(!checker.json(&ValuePath::Root("body"), &value, schema, STEPS_DEPTH_MAX));
    let left = checker.steps.left();
    (left, crate::PlanError::Problems(checker.finish().unwrap_err()).to_string())
}

#[test]
fn members_that_nobody_knows_are_compared_until_enough_was_told() {
    let property = |n: usize| json!({ "name": format!("property_{n}"), "schema": { "shape": "boolean" } });
    let properties: Vec<_> = (0..200).map(property).collect();
    let schema: Schema =
        serde_json::from_value(json!({ "shape": { "object": { "properties": properties } } })).unwrap();
    let members: Vec<String> = (0..20_000).map(|n| format!("\"properti_{n}\":1")).collect();
    let (left, told) = checks_left(&schema, &format!("{{{}}}", members.join(",")));
    assert!(left > CHECKS_MAX / 2, "{left} checks left");
    assert!(told.contains("properti_19") && !told.contains("properti_20"), "{told}");
}

#[test]
fn choices_and_hints_for_every_item_are_paid_for() {
    let choices: Vec<String> = (0..4_000).map(|n| format!("choice {n:04}")).collect();
    let schema: Schema = serde_json::from_value(json!({ "shape": { "array": { "items": {
        "shape": { "string": {} }, "choices": choices } } } }))
    .unwrap();
    let last = vec!["choice 3999"; 100_000];
    let (left, told) = checks_left(&schema, &json!(last).to_string());
    assert_eq!(left, 0);
    assert!(told.contains("too complex"), "{told}");

    // In alternatives a problem may never be told, and no hint is made for it.
    let item = json!({ "shape": { "oneOf": { "variants": [
        { "shape": { "string": {} }, "choices": choices }, { "shape": "boolean" }] } } });
    let schema: Schema = serde_json::from_value(json!({ "shape": { "array": { "items": item } } })).unwrap();
    let (left, told) = checks_left(&schema, &json!(vec!["choise 3999"; 5_000]).to_string());
    assert!(left > CHECKS_MAX / 2, "{left} checks left: {told}");
}

#[test]
fn required_members_among_many_given_ones_are_paid_for() {
    let property =
        |n: usize| json!({ "name": format!("p{n}"), "required": true, "schema": { "shape": "boolean" } });
    let properties: Vec<_> = (0..2_000).map(property).collect();
    let schema =
        json!({ "shape": { "object": { "properties": properties, "additional": { "shape": "boolean" } } } });
    let schema: Schema = serde_json::from_value(schema).unwrap();
    let members: Vec<String> = (0..20_000).map(|n| format!("\"x{n}\":true")).collect();
    let (left, told) = checks_left(&schema, &format!("{{{}}}", members.join(",")));
    assert_eq!(left, 0);
    assert!(told.contains("too complex") && !told.contains("p1999"), "nothing was looked for: {told}");
}

#[test]
fn a_body_of_the_largest_size_that_is_right_is_taken() {
    const BODY_BYTES: usize = 4 * 1024 * 1024;
    let codes: Vec<String> = (0..250).map(|n| format!("{n:03}")).collect();
    let code = json!({ "shape": { "string": {} }, "choices": codes });
    let list =
        |items: Value| serde_json::from_value(json!({ "shape": { "array": { "items": items } } })).unwrap();
    let count = BODY_BYTES / "\"000\",".len();
    let body = serde_json::to_string(&vec!["249"; count]).unwrap();
    assert_eq!(refusal_of_json(&ApiDescription::default(), &list(code.clone()), &body), None);
    let either = json!({ "shape": { "oneOf": { "variants": [code, { "shape": { "string": {} } }] } } });
    let free = serde_json::to_string(&vec!["any text"; 100_000]).unwrap();
    assert_eq!(refusal_of_json(&ApiDescription::default(), &list(either), &free), None);
}
