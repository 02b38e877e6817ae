//! The promises of forms: every value has its field, and no stranger's text makes a page long.

use serde_json::json;

use super::*;
use crate::read;

fn form(operation: &Value) -> Form {
    let document = json!({ "openapi": "3.1.0", "info": { "title": "t", "version": "1" },
        "components": { "schemas": { "Order": { "type": "string", "enum": ["up", "down"], "default": "up" } } },
        "paths": { "/a/{id}": { "post": operation } } });
    let reading = read(document.to_string().as_bytes()).unwrap();
    of(&reading.description, &reading.description.operations[0])
}

#[test]
fn every_kind_of_parameter_has_its_kind_of_field() {
    let query = |name: &str, schema: Value| json!({ "name": name, "in": "query", "schema": schema });
    let form = form(&json!({
        "responses": { "200": { "description": "ok" } },
        "parameters": [
            query("order", json!({ "$ref": "#/components/schemas/Order" })),
            query("limit", json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 20 })),
            query("share", json!({ "type": "number", "exclusiveMinimum": 0 })),
            query("flag", json!({ "type": "boolean" })),
            query("ids", json!({ "type": "array", "items": { "type": "integer" } })),
            query("filter", json!({ "type": "object", "properties": { "a": { "type": "string" } } })),
            { "name": "id", "in": "path", "required": true, "example": "x7", "schema": { "type": "string" } },
        ],
    }));
    let inputs: Vec<_> = form.fields.iter().map(|field| (field.name.as_str(), field.input)).collect();
    assert_eq!(
        inputs,
        [
            ("id", FormInput::Text),
            ("order", FormInput::Choice),
            ("limit", FormInput::Integer),
            ("share", FormInput::Number),
            ("flag", FormInput::Boolean),
            ("ids", FormInput::List),
            ("filter", FormInput::Json),
        ]
    );
    let field = |name: &str| form.fields.iter().find(|field| field.name == name).unwrap();
    assert_eq!(field("id").start(), "x7", "what is required begins with something");
    assert_eq!((field("order").start(), field("order").default.as_deref()), ("", Some("up")));
    assert_eq!(field("order").choices, ["up", "down"]);
    let limit = field("limit");
    assert_eq!((limit.minimum.as_deref(), limit.maximum.as_deref()), (Some("1"), Some("100")));
    assert_eq!(field("share").minimum, None, "zero itself is not allowed");
}

#[test]
fn a_body_begins_with_an_example() {
    let body = |content: Value| {
        let operation = json!({ "requestBody": { "content": content, "required": true },
            "responses": { "200": { "description": "ok" } },
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }] });
        form(&operation).body.unwrap()
    };
    let schema = json!({ "type": "object", "required": ["name"],
        "properties": { "name": { "type": "string", "example": "Ada" } } });
    let made_up = body(json!({ "application/json": { "schema": schema } }));
    assert!(made_up.is_json() && made_up.required);
    let text: Value = serde_json::from_str(&made_up.example.unwrap()).unwrap();
    assert_eq!(text["name"], "Ada");
    let given = body(json!({ "application/json": { "schema": schema, "example": { "name": "Bo" } } }));
    assert!(given.example.unwrap().contains("Bo"));
}

#[test]
fn texts_that_many_fields_may_refer_to_are_cut_or_left_out() {
    let long = "x".repeat(100_000);
    let schema = json!({ "type": "string", "description": long, "default": long, "example": long });
    let choices = json!({ "type": "string", "enum": vec![long.clone(); 3] });
    let many: Vec<_> = (100..200).map(|n| format!("{n}{}", &long[..1_000])).collect();
    let many = json!({ "type": "string", "enum": many });
    let form = form(&json!({
        "responses": { "200": { "description": "ok" } },
        "parameters": [{ "name": "a", "in": "query", "description": long, "schema": schema },
            { "name": "b", "in": "query", "schema": choices },
            { "name": "c", "in": "query", "schema": many }],
    }));
    let bytes = serde_json::to_vec(&form).unwrap().len();
    assert!(bytes < 20_000, "{bytes} bytes");
}

#[test]
fn of_a_long_text_only_as_much_is_written_as_a_field_has() {
    let long = json!(vec![0.1; 500_000]);
    crate::testing::timed(|| (0..3_000).for_each(|_| assert_eq!(text_of_field(&long), None)));
    assert_eq!(text_of_field(&json!([0.1, 2])).as_deref(), Some("[0.1,2]"));
    assert_eq!(
        text_of_field(&"x".repeat(FIELD_BYTES_MAX).into()).map(|text| text.len()),
        Some(FIELD_BYTES_MAX)
    );
}

#[test]
fn bytes_are_files_and_the_parts_of_a_form_are_fields() {
    let body = |content: Value| {
        let operation = json!({ "requestBody": { "content": content },
            "responses": { "200": { "description": "ok" } },
            "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }] });
        form(&operation).body.unwrap()
    };
    for (media_type, input) in [
        ("image/png", BodyInput::File),
        ("application/octet-stream", BodyInput::File),
        ("image/svg+xml", BodyInput::Text),
        ("text/csv", BodyInput::Text),
        ("application/yaml", BodyInput::Text),
        ("multipart/mixed", BodyInput::Parts(Vec::new())),
        ("multipart/form-data", BodyInput::Parts(Vec::new())),
    ] {
        assert_eq!(body(json!({ media_type: {} })).input, input, "{media_type}");
    }
    let file = json!({ "type": "string", "format": "binary" });
    let parts = json!({ "type": "object", "required": ["image"], "properties": {
        "note": { "type": "string", "description": "Comes back." },
        "image": file, "more": { "type": "array", "items": file },
        "stars": { "type": "integer", "minimum": 1 } } });
    let described = [parts.clone(), json!({ "oneOf": [{ "type": "integer" }, parts] })];
    for schema in described {
        let body = body(json!({ "multipart/form-data": { "schema": schema } }));
        let BodyInput::Parts(parts) = &body.input else { panic!("{body:?}") };
        let seen: Vec<_> = parts.iter().map(|part| (&*part.name, part.input, part.several)).collect();
        assert_eq!(
            seen,
            [
                ("image", FormInput::File, false),
                ("note", FormInput::Text, false),
                ("more", FormInput::File, true),
                ("stars", FormInput::Integer, false),
            ]
        );
        assert!(parts[0].required && !parts[1].required && parts[0].place.is_none());
        assert_eq!((&*parts[1].description, parts[3].minimum.as_deref()), ("Comes back.", Some("1")));
        let told = serde_json::to_string(&body).unwrap();
        assert_eq!(serde_json::from_str::<BodyField>(&told).unwrap(), body);
    }
}

#[test]
fn a_file_is_sent_as_what_it_is_called_where_that_is_described() {
    let field = |media_type: &str, also: &[&str]| BodyField {
        kind: BodyKind::Text,
        media_type: media_type.to_owned(),
        also: also.iter().map(|kind| (*kind).to_owned()).collect(),
        input: BodyInput::File,
        required: true,
        type_name: String::new(),
        description: String::new(),
        example: None,
    };
    let png = field("image/png", &["image/gif", "audio/*"]);
    for (given, sent) in [
        ("image/png", "image/png"),
        ("Image/GIF", "Image/GIF"),
        ("audio/ogg", "audio/ogg"),
        ("image/x-png", "image/png"),
        ("", "image/png"),
    ] {
        assert_eq!(png.type_of_file(given), sent, "{given}");
    }
    assert_eq!(field("image/*", &[]).type_of_file("video/mp4"), "video/mp4", "which is refused for nothing");
    assert_eq!(field("image/png", &["*/*"]).type_of_file(""), "image/png");
}
