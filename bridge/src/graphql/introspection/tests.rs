//! What servers answer when they are asked for their schema.

use serde_json::{Value, json};

use super::{QUERY, QUERY_RICH, looks_like_introspection, read};
use crate::{
    graphql::{SchemaReading, draft::DraftBody, print, sdl},
    report::Report,
    testing::timed,
};

/// A schema, and what graphql-js answers to [`QUERY_RICH`] for it.
const LIBRARY: &str = include_str!("tests/library.graphql");
const LIBRARY_JSON: &str = include_str!("tests/library.json");

fn answer(types: &Value) -> Vec<u8> {
    json!({"data": {"__schema": {"queryType": {"name": "Query"}, "types": types}}}).to_string().into_bytes()
}

fn fine(types: &Value) -> SchemaReading {
    read(&answer(types)).unwrap_or_else(|error| panic!("{error}\n{types}"))
}

fn query_with(field: &Value) -> Value {
    json!([{"kind": "OBJECT", "name": "Query", "fields": [field]}, {"kind": "SCALAR", "name": "Int"}])
}

#[test]
fn introspection_and_sdl_of_a_server_are_the_same_schema() {
    let (introspection, sdl) = (read(LIBRARY_JSON.as_bytes()), sdl::read(LIBRARY.as_bytes()));
    let (introspection, sdl) = (introspection.expect("an answer"), sdl.expect("a schema"));
    // Their orders differ: graphql-js lists types as it comes across them.
    assert_eq!(sorted(&introspection), sorted(&sdl));
    assert_eq!(introspection.report.skipped.list[0].place, "subscription lent");
}

fn sorted(reading: &SchemaReading) -> Vec<String> {
    let mut types: Vec<String> =
        print::sdl(&reading.schema).split("\n\n").map(|ty| ty.trim().to_owned()).collect();
    types.sort();
    types
}

#[test]
fn every_form_of_the_answer_is_read() {
    let answer: Value = serde_json::from_str(LIBRARY_JSON).expect("JSON");
    let expected = read(LIBRARY_JSON.as_bytes()).expect("an answer").schema;
    let bare = json!({"__schema": answer["data"]["__schema"]}).to_string();
    let with_mark = format!("\u{feff}{LIBRARY_JSON}");
    let with_errors = json!({"errors": [{"message": "slow"}], "data": answer["data"]}).to_string();
    for form in [bare.as_str(), &with_mark, &with_errors] {
        assert_eq!(read(form.as_bytes()).expect("it is a form of the answer").schema, expected);
        assert!(looks_like_introspection(form.as_bytes()));
    }
    let subgraph = json!({"data": {"_service": {"sdl": LIBRARY}}}).to_string();
    assert_eq!(
        read(subgraph.as_bytes()).expect("a subgraph").schema,
        sdl::read(LIBRARY.as_bytes()).expect("").schema
    );
    assert!(looks_like_introspection(subgraph.as_bytes()));
    for other in ["", "{}", "[]", "{\"openapi\": \"3.1.0\"}", "type Query { a: Int }"] {
        assert!(!looks_like_introspection(other.as_bytes()), "{other}");
    }
}

#[test]
fn missing_parts_are_taken_as_their_usual_values() {
    let int = json!({"kind": "SCALAR", "name": "Int", "ofType": null});
    let reading = fine(&json!([
        {"kind": "OBJECT", "name": "Query", "description": null, "interfaces": null, "fields": [
            {"name": "a", "type": int, "args": null},
            {"name": "b", "type": int, "deprecationReason": "old"},
            {"name": "c", "type": int, "isDeprecated": true, "args": [{"name": "x", "type": int, "defaultValue": null}]},
            {"name": "d", "type": int, "isDeprecated": null, "deprecationReason": null},
            {"name": "e", "type": {"kind": "INTERFACE", "name": "I"}},
        ]},
        {"kind": "INTERFACE", "name": "I", "possibleTypes": [{"kind": "OBJECT", "name": "T"}], "fields": null},
        {"kind": "OBJECT", "name": "T", "interfaces": [], "fields": [{"name": "a", "type": int}]},
        {"kind": "OBJECT", "name": "__Type"}, {"kind": "OBJECT"}, {"kind": "ODD", "name": "X"}, {},
    ]));
    insta::assert_snapshot!(print::sdl(&reading.schema), @r#"
    schema {
      query: Query
    }

    type Query {
      a: Int
      b: Int @deprecated(reason: "old")
      c(x: Int): Int @deprecated
      d: Int
      e: I
    }

    interface I

    type T implements I {
      a: Int
    }
    "#);
    let skipped: Vec<_> = reading.report.skipped.list.iter().map(ToString::to_string).collect();
    assert_eq!(skipped, ["a type: has no name", "type X: its kind `ODD` is unknown", "a type: has no name"]);
}

#[test]
fn defaults_are_sdl_and_what_is_not_is_shown_as_text() {
    for (text, value) in [
        ("5", json!(5)),
        ("-1.5e3", json!(-1.5e3)),
        ("\"a\\u{1F680}\"", json!("a🚀")),
        ("[A, B]", json!(["A", "B"])),
        ("{a: {b: [1]}}", json!({"a": {"b": [1]}})),
        ("true", json!(true)),
        ("null", Value::Null),
        ("nullsFirst", json!("nullsFirst")),
        ("1 # comment", json!(1)),
        ("", json!("")),
        ("1} type Query { a: Int", json!("1} type Query { a: Int")),
        ("1 b: Int", json!("1 b: Int")),
        ("1 @deprecated", json!("1 @deprecated")),
        ("{\"a\": 1}", json!("{\"a\": 1}")),
        ("java.util.List@1f", json!("java.util.List@1f")),
    ] {
        let int = json!({"kind": "SCALAR", "name": "Int"});
        let field =
            json!({"name": "a", "type": int, "args": [{"name": "x", "type": int, "defaultValue": text}]});
        let reading = fine(&query_with(&field));
        let fields = reading.schema.query.and_then(|id| reading.schema.fields(id)).expect("a query root");
        assert_eq!(fields[0].args[0].default.clone().unwrap_or_default(), value, "{text}");
        let is_odd = value == json!(text) && text != "nullsFirst";
        assert_eq!(reading.report.warnings.count(), usize::from(is_odd), "{text}");
    }
}

#[test]
fn what_is_no_answer_is_explained() {
    // Text, because a JSON value nested this deeply could not even be dropped.
    let lists = |depth: usize| {
        let (open, close) = ("{\"kind\":\"LIST\",\"ofType\":".repeat(depth), "}".repeat(depth));
        let field = format!("{{\"name\":\"a\",\"type\":{open}{{\"name\":\"Int\"}}{close}}}");
        format!("[{{\"kind\":\"OBJECT\",\"name\":\"Query\",\"fields\":[{field}]}}]")
    };
    let typed = |ty: Value| query_with(&json!({"name": "a", "type": ty})).to_string();
    let with_types =
        |types: &str| format!("{{\"__schema\":{{\"queryType\":{{\"name\":\"Query\"}},\"types\":{types}}}}}");
    read(with_types(&lists(16)).as_bytes()).expect("16 lists are allowed");
    for (json, told) in [
        (String::new(), "line 1, column 0: this is not JSON: EOF while parsing a value"),
        ("<html>".into(), "line 1, column 1: this is not JSON: expected value"),
        ("[]".into(), "this is not an introspection result"),
        ("{}".into(), "there is no `__schema` in it"),
        ("{\"data\":null}".into(), "there is no `__schema` in it"),
        (
            "{\"errors\":[{\"message\":\"Introspection is\\nnot allowed\"}],\"data\":null}".into(),
            "the server answered with an error: Introspection isnot allowed. If introspection is switched off",
        ),
        ("{\"__schema\":{}}".into(), "there is no query and no mutation"),
        ("{\"__schema\":{\"queryType\":{\"name\":\"Q\"}}}".into(), "the root type `Q` is not an object type"),
        (
            "{\"__schema\":{\"types\":5}}".into(),
            "this is not an introspection result: invalid type: integer `5`",
        ),
        (with_types(&lists(17)), "lists of `Int` are nested deeper than 16"),
        (with_types(&lists(40)), "Query.a: lists are nested too deeply"),
        (with_types(&lists(5_000)), "this is not JSON: recursion limit exceeded"),
        (with_types(&typed(Value::Null)), "Query.a: it has no type"),
        (with_types(&typed(json!({"kind": "SCALAR"}))), "Query.a: its type has no name"),
        (with_types(&typed(json!({"kind": "LIST"}))), "Query.a: its type is cut off"),
        (
            with_types(&typed(
                json!({"kind": "NON_NULL", "ofType": {"kind": "NON_NULL", "ofType": {"name": "Int"}}}),
            )),
            "Query.a: a non-null type is inside another one",
        ),
        (with_types(&typed(json!({"kind": "SCALAR", "name": "Nope"}))), "the type `Nope` is not defined"),
        (with_types(&typed(json!({"kind": "SCALAR", "name": "a b"}))), "the type `a b` is not defined"),
    ] {
        let error = read(json.as_bytes()).expect_err("it is no answer").to_string();
        let error = error.strip_prefix("GraphQL introspection: ").unwrap_or(&error);
        assert!(error.contains(told), "{error}\n{told}\n{}", json.get(..200).unwrap_or(&json));
    }
}

#[test]
fn names_that_are_no_names_never_get_into_a_schema() {
    let int = json!({"kind": "SCALAR", "name": "Int"});
    let reading = fine(&json!([
        {"kind": "OBJECT", "name": "Query", "fields": [
            {"name": "a", "type": int, "args": [{"name": "x) { evil } #", "type": int}]},
            {"name": "b { evil }", "type": int}, {"name": "", "type": int}, {"type": int}, {"name": "__c", "type": int},
        ]},
        {"kind": "SCALAR", "name": "Evil } type"},
    ]));
    assert_eq!(print::sdl(&reading.schema), "schema {\n  query: Query\n}\n\ntype Query {\n  a: Int\n}\n");
    assert_eq!(reading.report.skipped.count(), 5 + 1);
}

#[test]
fn the_limits_of_size_and_of_types_hold() {
    let types = |count: usize| {
        let scalars = (1..count).map(|n| json!({"kind": "SCALAR", "name": format!("S{n}")}));
        let query =
            json!({"kind": "OBJECT", "name": "Query", "fields": [{"name": "a", "type": {"name": "Int"}}]});
        answer(&std::iter::once(query).chain(scalars).collect())
    };
    assert!(read(&types(20_000)).is_ok());
    assert!(read(&types(20_001)).expect_err("too many").to_string().contains("20000 are the most"));
    let size = crate::limits::DOCUMENT_BYTES_MAX;
    let padded = |size: usize| {
        let mut json = types(1);
        json.resize(size, b' ');
        json
    };
    assert!(read(&padded(size)).is_ok());
    assert!(read(&padded(size + 1)).expect_err("too large").to_string().contains("16777216 are the most"));
}

#[test]
fn the_queries_are_one_line_and_differ_only_in_what_newer_servers_know() {
    let plain = QUERY_RICH
        .replace("specifiedByURL isOneOf ", "")
        .replace("args(includeDeprecated: true)", "args")
        .replace("inputFields(includeDeprecated: true)", "inputFields")
        .replace("defaultValue isDeprecated deprecationReason", "defaultValue");
    assert_eq!(plain, QUERY);
    assert!(!QUERY.contains(['\n', '"', '\\']) && QUERY.matches("ofType").count() == 9);
}

/// The interfaces of the query root, as those interfaces tell.
fn implemented(interfaces: &[Value]) -> Vec<String> {
    let types: Value = std::iter::once(json!({"kind": "OBJECT", "name": "Query"}))
        .chain(interfaces.iter().cloned())
        .collect();
    let raw = serde_json::from_value(json!({"types": types})).expect("a schema");
    let draft = super::draft(raw, &mut Report::default()).expect("a draft");
    let DraftBody::Object(query) = &draft.types[0].body else { panic!("not an object") };
    query.implements.iter().map(|named| named.name.clone()).collect()
}

#[test]
fn an_interface_is_noted_once_at_an_object() {
    let objects = vec![json!({"name": "Query"}); 1_000];
    assert_eq!(implemented(&[json!({"kind": "INTERFACE", "name": "I", "possibleTypes": objects})]), ["I"]);
}

#[test]
fn an_interface_whose_name_is_too_long_is_noted_at_no_object() {
    let with = |bytes: usize| json!({"kind": "INTERFACE", "name": "N".repeat(bytes), "possibleTypes": [{"name": "Query"}]});
    assert_eq!(implemented(&[with(255), with(256)]), ["N".repeat(255)]);
}

#[test]
fn the_long_name_of_a_type_is_not_repeated_for_its_fields() {
    let int = json!({"name": "Int"});
    let field = |i: u32| json!({"name": format!("f{i}"), "type": int, "args": [{"name": "x", "type": int}]});
    let fields: Value = (0..100_000).map(field).collect();
    let query = json!({"kind": "OBJECT", "name": "Query", "fields": [field(0)]});
    let types = answer(&json!([query, {"kind": "OBJECT", "name": "T".repeat(6_000_000), "fields": fields}]));
    let reading = timed(|| read(&types)).expect("a schema");
    assert_eq!(reading.schema.types.len(), 2);
}

#[test]
fn the_long_name_of_a_field_is_not_repeated_for_its_arguments() {
    let int = json!({"name": "Int"});
    let args: Value = (0..200_000).map(|i| json!({"name": format!("x{i}"), "type": int})).collect();
    let types = answer(&query_with(&json!({"name": "f".repeat(6_000_000), "type": int, "args": args})));
    let error = timed(|| read(&types)).expect_err("no field has a name");
    assert!(error.to_string().contains("there is no query"), "{error}");
}

#[test]
fn the_nearest_name_is_looked_for_while_the_problem_will_be_told() {
    let field = |i: u32| json!({"name": format!("f{i}"), "type": {"name": format!("Zz{i:05}x")}});
    let scalar = |i: u32| json!({"kind": "SCALAR", "name": format!("Zz{i:05}y")});
    let fields: Value = (0..60_000).map(field).collect();
    let query = json!({"kind": "OBJECT", "name": "Query", "fields": fields});
    let types = answer(&std::iter::once(query).chain((0..19_000).map(scalar)).collect());
    let error = timed(|| read(&types)).expect_err("undefined types");
    assert_eq!(error.problems.len(), 20);
    assert!(error.problems.iter().all(|problem| problem.what.contains("did you mean")));
}
