//! What a stranger wrote costs what it is paid for with, and no text is made that nobody is told.

use super::*;
use crate::{PlanError, testing::timed};

fn schema(json: &Value) -> Schema {
    serde_json::from_value(json.clone()).unwrap()
}

fn list(items: &Value) -> Value {
    json!({ "shape": { "array": { "items": items } } })
}

fn alternatives(count: usize, one: &Value) -> Value {
    json!({ "shape": { "oneOf": { "variants": vec![one; count] } } })
}

/// Checks that were taken, and what was told.
fn taken(schema: &Value, value: &Value) -> (usize, String) {
    let (left, told) = checks_left(&self::schema(schema), &value.to_string());
    (CHECKS_MAX - left, told)
}

/// What was found wrong.
fn problems(schema: &Schema, value: &Value) -> Vec<Problem> {
    let (description, text) = (ApiDescription::default(), value.to_string());
    let mut checker = Checker::new(&description);
    let value = Json::parse(&text, VALUE_DEPTH_MAX).unwrap();
    checker.json(&ValuePath::Root("body"), &value, schema, STEPS_DEPTH_MAX);
    checker.finish().unwrap_err()
}

#[test]
fn what_is_wrong_is_looked_for_until_enough_was_told() {
    let wrong_choice = json!({ "shape": "any", "choices": [1, 2] });
    for (items, value) in [(json!({ "shape": "boolean" }), json!(7)), (wrong_choice, json!(7))] {
        let (taken, told) = taken(&list(&items), &json!(vec![value; 100_000]));
        assert!(taken < 2_000, "{taken} checks");
        assert!(told.contains("`body[19]`") && !told.contains("`body[20]`"), "{told}");
    }
    let booleans = json!({ "shape": { "object": { "additional": { "shape": "boolean" } } } });
    let members: serde_json::Map<_, _> = (0..100_000).map(|n| (format!("m{n}"), json!(7))).collect();
    let (taken, _) = taken(&booleans, &members.into());
    assert!(taken < 2_000, "{taken} checks");

    let (text, description) = (vec!["x"; 100_000].join(","), ApiDescription::default());
    let mut checker = Checker::new(&description);
    let integers = Schema::array(Schema::integer());
    assert!(checker.text(&ValuePath::Root("p"), &text, &integers, STEPS_DEPTH_MAX).is_none());
    assert!(checker.steps.left() > CHECKS_MAX - 5_000, "{} checks left", checker.steps.left());
}

#[test]
fn a_check_that_cannot_be_paid_for_ends_with_one_problem() {
    let choices: Vec<_> = (0..4_000).map(|n| format!("choice {n}")).collect();
    let (_, told) =
        taken(&list(&json!({ "shape": "any", "choices": choices })), &json!(vec!["choice 3999"; 100_000]));
    assert_eq!(told.matches("too complex").count(), 1, "{told}");
}

#[test]
fn no_text_is_made_for_an_alternative_that_does_not_fit() {
    const COUNT: usize = 10_000;
    let object = |object: Value| json!({ "shape": { "object": object } });
    let required = json!([{ "name": "a", "required": true, "schema": { "shape": "any" } }]);
    let either = json!({ "shape": { "oneOf": { "variants": [list(&json!({ "shape": "boolean" })), { "shape": "boolean" }] } } });
    for (variant, value) in [
        (json!({ "shape": "boolean" }), json!(7)),
        (json!({ "shape": "any", "choices": ["x"] }), json!([1])),
        (object(json!({})), json!({ "x": 1 })),
        (object(json!({ "properties": required })), json!({})),
        (object(json!({ "exactly_one": true })), json!({})),
        (json!({ "shape": { "array": { "items": { "shape": "any" }, "items_min": 1 } } }), json!([])),
        (list(&json!({ "shape": "boolean" })), json!([1])),
        (json!({ "shape": { "ref": 0 } }), json!(7)),
        (either, json!([1])),
    ] {
        let (taken, _) = taken(&alternatives(COUNT, &variant), &value);
        assert!(taken < 5 * COUNT, "{variant} {value}: {taken} checks");
    }
}

#[test]
fn of_a_large_choice_only_what_is_shown_is_written() {
    let large = NamedSchema { name: "Large".into(), schema: schema(&json!({ "shape": "any" })) };
    let large = NamedSchema {
        schema: Schema { choices: vec![json!(vec![0; 2_000_000])], ..large.schema.clone() },
        ..large
    };
    let description = ApiDescription { schemas: vec![large], ..ApiDescription::default() };
    let items = schema(&list(&alternatives(20, &json!({ "shape": { "ref": 0 } }))));
    let ones = json!(vec![1; 100]).to_string();
    let told = timed(|| [(); 5].map(|()| refusal_of_json(&description, &items, &ones).unwrap()));
    let told = &told[0];
    let shown = format!("`body[0]` is `1`, expected one of [{}", "0,".repeat(39));
    assert!(told.starts_with(&shown) && told.len() < 20 * 200, "{told}");
}

#[test]
fn a_large_choice_is_paid_for_by_each_value_that_is_compared_with_it() {
    let (mut choice, value) = (vec![1; 1_000], vec![1; 1_000]);
    choice[999] = 2;
    let variant = json!({ "shape": "any", "choices": [choice] });
    let (taken, _) = taken(&alternatives(10_000, &variant), &json!(value));
    assert!(taken >= 40_000, "{taken} checks");
}

#[test]
fn a_long_text_is_paid_for_by_each_alternative_that_reads_it() {
    let digits = format!("1{}", "0".repeat(99_999));
    let below = json!({ "shape": { "number": { "maximum": 1 } } });
    let description = ApiDescription::default();
    let choice = json!({ "shape": "any", "choices": [1] });
    for (variant, at_least) in [(&below, 600_000), (&choice, 900_000)] {
        let schema = schema(&alternatives(1_000, variant));
        let (left, _) = checks_left(&schema, &digits);
        assert!(CHECKS_MAX - left > at_least, "{left} checks left");
        let mut checker = Checker::new(&description);
        assert!(checker.text(&ValuePath::Root("p"), &digits, &schema, STEPS_DEPTH_MAX).is_none());
        assert!(CHECKS_MAX - checker.steps.left() > at_least, "{} checks left", checker.steps.left());
    }
}

#[test]
fn names_that_tell_an_alternative_are_paid_for() {
    let discriminator = |names: usize| {
        let mapping: Vec<_> = (0..names).map(|n| json!([format!("k{n}"), 0])).collect();
        json!({ "shape": { "oneOf": { "variants": [{ "shape": "boolean" }],
            "discriminator": { "property": "t", "mapping": mapping } } } })
    };
    let (taken_by_mapping, _) = taken(&list(&discriminator(16_000)), &json!([{ "t": "k15999" }]));
    assert!(taken_by_mapping > 1_000, "{taken_by_mapping} checks");
    let members: serde_json::Map<_, _> = (0..16_000).map(|n| (format!("m{n}"), json!(1))).collect();
    let (taken, _) = taken(&discriminator(0), &members.into());
    assert!(taken > 1_000, "{taken} checks");
}

#[test]
fn alternatives_of_what_commas_separate_are_paid_for() {
    let mut variants = vec![json!({ "shape": "boolean" }); 1_600];
    variants.push(list(&json!({ "shape": "boolean" })));
    let lists = alternatives(500, &list(&json!({ "shape": { "oneOf": { "variants": variants } } })));
    let (schema, description) = (schema(&lists), ApiDescription::default());
    let mut checker = Checker::new(&description);
    assert!(checker.text(&ValuePath::Root("p"), "1", &schema, STEPS_DEPTH_MAX).is_none());
    assert!(checker.steps.left() < CHECKS_MAX - 50_000, "{} checks left", checker.steps.left());
}

#[test]
fn names_in_a_problem_are_few_and_short() {
    let property =
        |n: usize| json!({ "name": format!("p{n}"), "required": true, "schema": { "shape": "any" } });
    let properties: Vec<_> = (0..1_000).map(property).collect();
    let (mut inner, mut value) = (json!({ "shape": { "object": { "properties": properties } } }), json!({}));
    let name = "\u{1f600}".repeat(80);
    for _ in 0..20 {
        inner = json!({ "shape": { "object": { "additional": inner } } });
        value = json!({ name.as_str(): value });
    }
    let problems = problems(&schema(&inner), &value);
    let [Problem::Missing(names)] = &problems[..] else { panic!("{problems:?}") };
    assert_eq!(names.len(), PROBLEMS_MAX);
    assert!(names.iter().all(|name| name.len() <= 1024), "{names:?}");

    let long = "x".repeat(1_000_000);
    let known = json!([{ "name": long, "schema": { "shape": "any" } }]);
    let told = self::problems(
        &schema(&json!({ "shape": { "object": { "properties": known } } })),
        &json!({ "y": 1 }),
    );
    let [Problem::NoMember { known, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(known[0].len(), 80);

    let told = PlanError::Problems(vec![Problem::Missing(vec![long; 2]), Problem::Other("more".into())]);
    assert_eq!(told.to_string().len(), 8 * 1024 + "; more".len());
}

#[test]
fn of_a_text_only_the_beginning_is_looked_at_to_show_it() {
    let hidden = "\u{200b}".repeat(1_000_000);
    assert_eq!(shown(&format!("a{hidden}b")), "a");
    assert_eq!(shown(&format!("{}b", "\u{200b}".repeat(100))), "b");
    assert_eq!(shown(&"\u{1f600}".repeat(100)), "\u{1f600}".repeat(80));
}

#[test]
fn alternatives_are_listed_as_far_as_they_are_read() {
    let choices = |n: u32| {
        let choices: Vec<_> = (0..20).map(|m| format!("{}{}", n * 20 + m, "\u{1f600}".repeat(100))).collect();
        json!({ "shape": "any", "choices": choices })
    };
    let variants: Vec<_> = (0..20).map(choices).collect();
    let problems = problems(&schema(&json!({ "shape": { "oneOf": { "variants": variants } } })), &json!("x"));
    let [Problem::Value { expected, .. }] = &problems[..] else { panic!("{problems:?}") };
    assert!(expected.len() < 16 * 1024, "{} bytes", expected.len());
}

#[test]
fn a_check_that_has_taken_all_it_may_says_so() {
    let description = ApiDescription::default();
    let checker = |checks| {
        let mut checker = Checker::new(&description);
        checker.spend(checks);
        checker.finish()
    };
    assert!(checker(CHECKS_MAX - 1).is_ok());
    assert_eq!(checker(CHECKS_MAX).unwrap_err()[0].to_string(), "the call is too complex to check");
}

#[test]
fn an_item_that_could_not_be_looked_at_is_not_called_wrong() {
    let members: Vec<_> =
        (0..15).map(|i| json!({ "name": format!("m{i}"), "schema": { "shape": "any" } })).collect();
    let alternative = |i: usize| {
        let kind = json!({ "name": "kind", "required": true, "schema": { "shape": "any", "choices": [i] } });
        let properties: Vec<_> = members.iter().cloned().chain([kind]).collect();
        json!({ "shape": { "object": { "properties": properties } } })
    };
    let variants: Vec<_> = (0..200).map(alternative).collect();
    let item = json!({ "m0": 1, "m1": 1, "m2": 1, "kind": 199 });
    let items = json!({ "shape": { "oneOf": { "variants": variants } } });
    let (taken, told) = taken(&list(&items), &json!(vec![item; 20_000]));
    assert!(taken == CHECKS_MAX && told.contains("too complex") && !told.contains("expected"), "{told}");
}
