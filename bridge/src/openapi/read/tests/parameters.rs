//! Parameters: places, styles, names, and what becomes of those that cannot be sent.

use serde_json::{Value, json};

use super::{get, reading, says, with_paths};
use crate::{
    description::{Place, Shape, Style},
    limits::PARAMETERS_MAX,
};

fn parameter(place: &str, members: Value) -> Value {
    let mut parameter = json!({ "name": "p", "in": place, "schema": { "type": "string" } });
    parameter.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    parameter
}

#[test]
fn styles_have_the_defaults_of_the_specification() {
    let table = [
        ("query", json!({}), Style::Exploded),
        ("query", json!({ "style": "form", "explode": false }), Style::Comma),
        ("query", json!({ "style": "spaceDelimited" }), Style::Space),
        ("query", json!({ "style": "pipeDelimited", "explode": false }), Style::Pipe),
        ("query", json!({ "style": "pipeDelimited", "explode": true }), Style::Exploded),
        ("query", json!({ "style": "deepObject", "explode": true }), Style::DeepObject),
        ("path", json!({ "required": true }), Style::Comma),
        ("path", json!({ "required": true, "explode": true }), Style::Exploded),
        ("header", json!({}), Style::Comma),
        (
            "query",
            json!({ "content": { "application/json": { "schema": { "type": "object" } } } }),
            Style::Json,
        ),
    ];
    for (place, members, style) in table {
        let path = if place == "path" { "/{p}" } else { "/" };
        let (operation, _) = get(path, json!({ "parameters": [parameter(place, members.clone())] }));
        assert_eq!(operation.parameters[0].style, style, "{place} {members}");
    }
}

#[test]
fn what_cannot_be_sent_is_left_out_unless_it_is_required() {
    let table = [
        parameter("cookie", json!({})),
        parameter("formData", json!({})),
        parameter("query", json!({ "style": "matrix" })),
        parameter("query", json!({ "name": "" })),
        parameter("query", json!({ "name": "a\nb" })),
    ];
    for mut source in table {
        let (operation, reading) = get("/", json!({ "parameters": [source] }));
        assert!(operation.parameters.is_empty());
        assert_eq!(reading.report.warnings.count(), 1, "{source}");
        source["required"] = true.into();
        let paths = json!({ "/": { "get": { "parameters": [source] } }, "/ok": { "get": {} } });
        let reading = super::reading(&with_paths(&paths));
        assert_eq!(reading.report.bridged, 1);
        assert!(says(&reading.report.skipped, "GET /: "), "{source}");
    }
    for style in ["label", "matrix"] {
        let source = parameter("path", json!({ "required": true, "style": style }));
        let paths = json!({ "/{p}": { "get": { "parameters": [source] } }, "/ok": { "get": {} } });
        assert!(says(&reading(&with_paths(&paths)).report.skipped, &format!("`p` has the style {style}")));
    }
}

#[test]
fn headers_that_a_caller_may_not_set_are_left_out_even_when_required() {
    for name in [
        "Accept",
        "content-type",
        "AUTHORIZATION",
        "Host",
        "Cookie",
        "X-Forwarded-For",
        "X-Farthing-Price",
        "a_b",
        "a b",
    ] {
        let source = parameter("header", json!({ "name": name, "required": true }));
        let (operation, reading) = get("/", json!({ "parameters": [source] }));
        assert!(operation.parameters.is_empty(), "{name}");
        assert_eq!(reading.report.warnings.count(), 1, "{name}");
    }
    let (operation, _) =
        get("/", json!({ "parameters": [parameter("header", json!({ "name": "X-Trace" }))] }));
    assert_eq!(operation.parameters[0].place, Place::Header);
}

#[test]
fn an_operation_s_own_parameter_replaces_that_of_its_path() {
    let paths = json!({ "/{id}": {
        "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } },
                       { "name": "q", "in": "query", "schema": { "type": "string" } }],
        "get": { "parameters": [{ "name": "q", "in": "query", "schema": { "type": "boolean" } }] } } });
    let reading = reading(&with_paths(&paths));
    let parameters = &reading.description.operations[0].parameters;
    let names: Vec<_> = parameters.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["id", "q"]);
    assert_eq!(parameters[1].schema.shape, Shape::Boolean);
}

#[test]
fn the_template_and_its_parameters_are_brought_together() {
    let sources = json!([
        parameter("path", json!({ "name": "a" })),
        parameter("path", json!({ "name": "gone", "required": true }))
    ]);
    let (operation, reading) = get("/{a}/{b}.json", json!({ "parameters": sources }));
    let names: Vec<_> = operation.parameters.iter().map(|p| (p.name.as_str(), p.required)).collect();
    assert_eq!(names, [("a", true), ("b", true)]);
    assert!(says(&reading.report.repaired, "`a` is in the path, so it is required"));
    assert!(says(&reading.report.repaired, "`b` of the path was not declared"));
    assert!(says(&reading.report.warnings, "the path has no `gone`"));
}

#[test]
fn a_name_stands_for_one_parameter() {
    let (operation, reading) = get(
        "/{p}",
        json!({ "parameters": [parameter("query", json!({})), parameter("path", json!({ "required": true }))] }),
    );
    assert_eq!(operation.parameters.len(), 1);
    assert_eq!(operation.parameters[0].place, Place::Path);
    assert!(says(&reading.report.warnings, "`p` is declared in several places"));
    let both = json!([
        parameter("query", json!({ "required": true })),
        parameter("path", json!({ "required": true }))
    ]);
    let reading = super::reading(&with_paths(
        &json!({ "/{p}": { "get": { "parameters": both } }, "/ok": { "get": {} } }),
    ));
    assert!(says(&reading.report.skipped, "`p` is declared in several places, and it is required"));
}

#[test]
fn there_are_only_so_many_parameters() {
    let many = |optional: usize, required: usize| -> Value {
        let one = |i: usize| json!({ "name": format!("p{i}"), "in": "query", "required": i >= optional });
        (0..optional + required).map(one).collect()
    };
    for (n, kept) in [
        (PARAMETERS_MAX - 1, PARAMETERS_MAX - 1),
        (PARAMETERS_MAX, PARAMETERS_MAX),
        (PARAMETERS_MAX + 2, PARAMETERS_MAX),
    ] {
        let (operation, reading) = get("/", json!({ "parameters": many(n - 3, 3) }));
        assert_eq!(operation.parameters.len(), kept);
        assert_eq!(operation.parameters.iter().filter(|p| p.required).count(), 3);
        assert_eq!(reading.report.warnings.is_empty(), n == kept);
    }
    let paths =
        json!({ "/": { "get": { "parameters": many(0, PARAMETERS_MAX + 1) } }, "/ok": { "get": {} } });
    assert!(says(&reading(&with_paths(&paths)).report.skipped, "requires more than 64 parameters"));
}

#[test]
fn examples_are_found_wherever_they_are() {
    let table = [
        json!({ "example": 5 }),
        json!({ "examples": { "one": { "value": 5 }, "two": { "value": 6 } } }),
        json!({ "x-example": 5 }),
        json!({ "example": null, "examples": [null, 5] }),
    ];
    for members in table {
        let (operation, _) = get("/", json!({ "parameters": [parameter("query", members.clone())] }));
        assert_eq!(operation.parameters[0].example, Some(json!(5)), "{members}");
    }
    let (operation, reading) = get(
        "/",
        json!({ "parameters": [parameter("query", json!({ "allowReserved": true, "deprecated": true, "description": "D" }))] }),
    );
    assert!(operation.parameters[0].deprecated);
    assert_eq!(operation.parameters[0].description, "D");
    assert!(says(&reading.report.warnings, "reserved characters of `p` are sent encoded"));
}
