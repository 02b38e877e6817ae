//! Swagger 2.0: addresses, bodies, forms, lists, definitions, security.

use serde_json::{Value, json};

use super::{neutral, reading, says};
use crate::{
    description::{BodyKind, Shape, Style},
    report::{Reading, SecurityScheme},
};

fn swagger(paths: Value, members: Value) -> Value {
    let mut document = json!({ "swagger": "2.0", "info": { "title": "T", "version": "1" }, "paths": paths });
    document.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    document
}

fn post(parameters: Value, members: Value) -> Reading {
    let paths = json!({ "/": { "post": { "parameters": parameters, "responses": {} }, "get": {} } });
    reading(&swagger(paths, members))
}

#[test]
fn addresses_are_made_of_scheme_host_and_base_path() {
    let table = [
        (json!({}), vec![]),
        (json!({ "basePath": "/v2/" }), vec!["/v2"]),
        (json!({ "basePath": "/" }), vec![]),
        (json!({ "host": "a.example", "basePath": "v2" }), vec!["https://a.example/v2"]),
        (
            json!({ "host": "a.example:81", "schemes": ["http", "https", "wss"] }),
            vec!["https://a.example:81", "http://a.example:81"],
        ),
    ];
    for (members, servers) in table {
        let reading = reading(&swagger(json!({ "/": { "get": {} } }), members.clone()));
        assert_eq!(reading.servers, servers, "{members}");
    }
}

#[test]
fn a_body_parameter_becomes_the_body() {
    let pet = json!({ "$ref": "#/definitions/Pet" });
    let definitions = json!({ "definitions": { "Pet": { "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } } } });
    let reading = post(
        json!([{ "in": "body", "name": "pet", "required": true, "description": "D", "schema": pet }]),
        definitions,
    );
    let operation = &reading.description.operations[0];
    let body = operation.body.clone().unwrap();
    assert!(operation.parameters.is_empty());
    assert_eq!((body.kind, body.required, body.description.as_str()), (BodyKind::Json, true, "D"));
    assert_eq!(neutral(&body.schema), json!({ "shape": { "ref": 0 } }));
    assert_eq!(reading.description.schemas[0].name, "Pet");
}

#[test]
fn consumes_of_the_operation_comes_before_that_of_the_document() {
    let body = json!([{ "in": "body", "name": "b", "schema": { "type": "string" } }]);
    let with = |of_operation: Value, of_document: Value| {
        let paths = json!({ "/": { "post": { "parameters": body, "consumes": of_operation } } });
        let reading = reading(&swagger(paths, json!({ "consumes": of_document })));
        let body = reading.description.operations[0].body.clone().unwrap();
        (body.media_type, body.also)
    };
    let is = |kind: &str, also: &[&str]| (kind.to_owned(), also.iter().map(ToString::to_string).collect());
    assert_eq!(with(json!(["text/plain"]), json!(["application/json"])), is("text/plain", &[]));
    let (both, json) = (json!(["application/xml", "application/json"]), "application/json");
    assert_eq!(with(json!([]), both), is(json, &["application/xml"]));
    assert_eq!(with(json!([]), json!([])), is(json, &[]));
}

#[test]
fn form_data_becomes_a_form_and_with_files_one_of_several_parts() {
    let fields = json!([
        { "in": "formData", "name": "name", "type": "string", "required": true },
        { "in": "formData", "name": "age", "type": "integer", "minimum": 0 } ]);
    let reading = post(fields, json!({}));
    let body = reading.description.operations[0].body.clone().unwrap();
    assert_eq!((body.kind, body.required), (BodyKind::Form, true));
    let Shape::Object(object) = body.schema.shape else { panic!() };
    let members: Vec<_> = object.properties.iter().map(|p| (p.name.as_str(), p.required)).collect();
    assert_eq!(members, [("name", true), ("age", false)]);
    let reading = post(json!([{ "in": "formData", "name": "f", "type": "file" }]), json!({}));
    let body = reading.description.operations[0].body.clone().unwrap();
    assert_eq!((body.kind, body.media_type.as_str()), (BodyKind::Text, "multipart/form-data"));
    let Shape::Object(object) = body.schema.shape else { panic!() };
    let Shape::String(bounds) = &object.properties[0].schema.shape else { panic!() };
    assert_eq!(bounds.format, "binary");
}

#[test]
fn lists_are_separated_as_their_format_says() {
    let list = |place: &str, format: Value| json!([{ "in": place, "name": "l", "type": "array", "items": { "type": "integer" }, "collectionFormat": format }]);
    let table = [
        ("query", json!("csv"), Style::Comma),
        ("query", Value::Null, Style::Comma),
        ("query", json!("multi"), Style::Exploded),
        ("query", json!("ssv"), Style::Space),
        ("query", json!("pipes"), Style::Pipe),
        ("header", json!("csv"), Style::Comma),
    ];
    for (place, format, style) in table {
        let reading = post(list(place, format.clone()), json!({}));
        let parameter = &reading.description.operations[0].parameters[0];
        assert_eq!(parameter.style, style, "{format}");
        assert_eq!(
            neutral(&parameter.schema),
            json!({ "shape": { "array": { "items": { "shape": { "integer": {} } } } } })
        );
    }
    let reading = post(list("query", json!("tsv")), json!({}));
    assert!(says(&reading.report.warnings, "`l` has the style tabDelimited, which is not offered; left out"));
}

#[test]
fn shared_parameters_and_answers_keep_their_meaning() {
    let paths = json!({ "/a/{id}": {
        "parameters": [{ "$ref": "#/parameters/Id" }, { "in": "body", "name": "all", "schema": { "type": "string" } }],
        "post": { "parameters": [{ "$ref": "#/parameters/Body" }], "responses": { "200": { "$ref": "#/responses/Ok" } } },
        "put": { "parameters": [{ "$ref": "#/parameters/Field" }, { "in": "body", "name": "all", "schema": { "type": "boolean" } }] },
        "patch": {} } });
    let members = json!({
        "parameters": {
            "Id": { "in": "path", "name": "id", "type": "integer", "required": true },
            "Body": { "in": "body", "name": "all", "required": true, "schema": { "type": "array", "items": { "type": "string" } } },
            "Field": { "in": "formData", "name": "f", "type": "string" } },
        "responses": { "Ok": { "description": "D", "schema": { "type": "boolean" }, "examples": { "application/json": true } } } });
    let reading = reading(&swagger(paths, members));
    let operations = &reading.description.operations;
    assert_eq!(operations[0].parameters[0].name, "id");
    assert_eq!(operations[0].parameters.len(), 1);
    let post = operations[0].body.clone().unwrap();
    assert!(post.required);
    assert!(matches!(reading.description.resolve(&post.schema).unwrap().shape, Shape::Array(_)));
    let content = operations[0].responses[0].content.clone().unwrap();
    assert_eq!((content.schema.shape, content.example), (Shape::Boolean, Some(json!(true))));
    assert_eq!(operations[1].body.clone().unwrap().schema.shape, Shape::Boolean);
    let patch = operations[2].body.clone().unwrap();
    assert!(matches!(reading.description.resolve(&patch.schema).unwrap().shape, Shape::String(_)));
}

#[test]
fn security_definitions_are_listed() {
    let reading = post(
        json!([]),
        json!({ "securityDefinitions": {
        "k": { "type": "apiKey", "in": "query", "name": "key" }, "b": { "type": "basic" }, "o": { "type": "oauth2" } } }),
    );
    let expected = [
        SecurityScheme::ApiKeyQuery("key".into()),
        SecurityScheme::Basic,
        SecurityScheme::Other("OAuth 2".into()),
    ];
    assert_eq!(reading.security, expected);
}

#[test]
fn a_large_body_that_many_operations_share_is_not_copied() {
    let large = "x".repeat(100_000);
    let one = json!({ "post": { "parameters": [{ "$ref": "#/parameters/Body" }] } });
    let paths = Value::Object((0..500).map(|i| (format!("/p{i}"), one.clone())).collect());
    let members = json!({ "parameters": { "Body": { "in": "body", "name": "b", "schema": { "type": "string", "description": large } } } });
    let reading = reading(&swagger(paths, members));
    assert_eq!((reading.report.bridged, reading.description.schemas.len()), (500, 1));
}
