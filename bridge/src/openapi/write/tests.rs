//! Documents are what their readers rely on: whole, valid, the same every time, in both versions.

mod large;
mod round_trip;
mod tables;

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::testing;

fn options(version: Version) -> WriteOptions {
    WriteOptions {
        version,
        servers: vec!["https://localhost:3000/services/0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b/".into()],
        service: Some("0b5f2a3e-6a3c-4c39-9a65-6a1c3f1d2e4b".into()),
        price: Some("0.001".into()),
        prices: [("getPlanet".to_owned(), "0.01".to_owned())].into(),
        needs_secret: true,
    }
}

fn pretty(document: &Value) -> String {
    serde_json::to_string_pretty(document).expect("a document")
}

/// A line for each place where the document of 3.0.3 says something else than that of 3.1.0.
fn otherwise_in_3_0(description: &ApiDescription) -> String {
    let [newer, older] = [Version::V31, Version::V30].map(|version| write(description, &options(version)));
    differences("", &newer, &older).join("\n")
}

/// The places where `other` is not as `one`, with what it has there.
fn differences(at: &str, one: &Value, other: &Value) -> Vec<String> {
    match (one, other) {
        _ if one == other => Vec::new(),
        (Value::Object(one), Value::Object(other)) => {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            let of_member = |name: &String| match (one.get(name), other.get(name)) {
                (Some(one), Some(other)) => differences(&format!("{at}/{name}"), one, other),
                (_, Some(new)) => vec![format!("{at}/{name}: {new}")],
                (_, None) => vec![format!("{at}/{name}: left out")],
            };
            names.into_iter().flat_map(of_member).collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let items = one.iter().zip(other).enumerate();
            items
                .flat_map(|(index, (one, other))| differences(&format!("{at}/{index}"), one, other))
                .collect()
        }
        _ => vec![format!("{at}: {other}")],
    }
}

#[test]
fn a_rest_service_is_written_as_openapi_3_1() {
    insta::assert_snapshot!("rest-31", pretty(&write(&testing::rest(), &options(Version::V31))));
}

#[test]
fn a_rest_service_is_written_as_openapi_3_0() {
    insta::assert_snapshot!("rest-30", otherwise_in_3_0(&testing::rest()));
}

#[test]
fn a_graphql_service_is_written_as_openapi_3_1() {
    insta::assert_snapshot!("graphql-31", pretty(&write(&testing::graphql(), &options(Version::V31))));
}

#[test]
fn a_graphql_service_is_written_as_openapi_3_0() {
    insta::assert_snapshot!("graphql-30", otherwise_in_3_0(&testing::graphql()));
}

#[test]
fn a_description_that_says_nothing_becomes_a_document() {
    let document = write(&ApiDescription::default(), &WriteOptions::default());
    insta::assert_snapshot!("nothing-31", pretty(&document));
}

#[test]
fn no_script_begins_in_a_strangers_markdown() {
    for (text, expected) in [
        ("a < b <b>c</b>", "a < b <b>c</b>"),
        ("<script>x</script>", "&lt;script>x&lt;/script>"),
        ("<<SCRIPT src=a>", "<&lt;SCRIPT src=a>"),
        ("<", "<"),
        ("<ßßßßßß", "<ßßßßßß"),
    ] {
        assert_eq!(markdown(text), expected);
    }
}

/// Calls `visit` with every object in `value`.
fn each_object<'v>(value: &'v Value, visit: &mut impl FnMut(&'v Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            visit(members);
            members.values().for_each(|value| each_object(value, visit));
        }
        Value::Array(items) => items.iter().for_each(|value| each_object(value, visit)),
        _ => {}
    }
}

/// What `$ref`s point to. A property may be called `$ref`; then it is an object.
fn references(document: &Value) -> BTreeSet<&str> {
    let mut references = BTreeSet::new();
    each_object(document, &mut |members| {
        references.extend(members.get("$ref").and_then(Value::as_str));
    });
    references
}

fn operation_ids(document: &Value) -> Vec<&str> {
    let mut ids = Vec::new();
    each_object(&document["paths"], &mut |members| {
        ids.extend(members.get("operationId").and_then(Value::as_str));
    });
    ids
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_reference_of_every_document_resolves(description in testing::descriptions()) {
        for version in [Version::V31, Version::V30] {
            let document = write(&description, &options(version));
            let targets = references(&document);
            for target in &targets {
                let pointer = target.trim_start_matches('#');
                prop_assert!(document.pointer(pointer).is_some(), "{target}");
            }
            let schemas = document["components"]["schemas"].as_object();
            for name in schemas.into_iter().flat_map(Map::keys) {
                prop_assert!(targets.contains(format!("#/components/schemas/{name}").as_str()), "{name} is unused");
            }
        }
    }

    #[test]
    fn every_operation_is_in_the_document_once(description in testing::descriptions()) {
        let document = write(&description, &options(Version::V31));
        let ids = operation_ids(&document);
        prop_assert_eq!(ids.len(), description.operations.len());
        prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    }

    #[test]
    fn the_typed_crate_agrees_with_every_3_0_document(description in testing::descriptions()) {
        let mut shown = description.clone();
        share(&mut shown);
        let document = document(&shown, &options(Version::V30));
        let typed = serde_json::from_value::<openapiv3::OpenAPI>(document.clone());
        prop_assert!(typed.is_ok(), "{:?}", typed.err());
        let again = agreed(document);
        prop_assert_eq!(agreed(again.clone()), again);
    }

    #[test]
    fn the_same_description_becomes_the_same_document(description in testing::descriptions()) {
        let options = options(Version::V31);
        prop_assert_eq!(pretty(&write(&description, &options)), pretty(&write(&description.clone(), &options)));
    }
}
